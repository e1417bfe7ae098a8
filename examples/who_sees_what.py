"""Ten numbers dealt to four ranks as a distributed sampler deals them, and the orders of three epochs.

Run it: ``python who_sees_what.py``. It needs nothing but Python and checks itself.
"""

import random
from fractions import Fraction


# region: deal
def deal(order: list[int], ranks: int) -> list[list[int]]:
    """What every rank gets: all equally many, so the first ones come again until the division is even."""
    each = -(-len(order) // ranks)  # rounded up
    padded = [order[i % len(order)] for i in range(each * ranks)]
    return [padded[rank::ranks] for rank in range(ranks)]


# endregion


# region: epoch
def order_of(epoch: int, samples: int, seed: int = 0) -> list[int]:
    """The same shuffled order on every rank, with no message between them: all draw it from one seed."""
    order = list(range(samples))
    random.Random(seed + epoch).shuffle(order)
    return order


# endregion

# region: checks
numbers = list(range(10))
hands = deal(numbers, 4)
dealt = [number for hand in hands for number in hand]
assert hands == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]]
assert Fraction(sum(numbers), len(numbers)) == Fraction(9, 2)
assert Fraction(sum(dealt), len(dealt)) == Fraction(23, 6)
assert len(dealt) - len(numbers) == -len(numbers) % 4
# Nobody says which epoch it is: the same order for ever. Everybody says it: a new one each time.
assert len({tuple(order_of(0, 10)) for _ in range(3)}) == 1
assert len({tuple(order_of(epoch, 10)) for epoch in range(3)}) == 3
assert sorted(order_of(2, 10)) == numbers
# endregion

if __name__ == "__main__":
    for rank, hand in enumerate(hands):
        print(f"rank {rank} sees:", hand)
    print("mean of the numbers:", sum(numbers) / len(numbers))
    print("mean of what was dealt:", round(sum(dealt) / len(dealt), 3))
