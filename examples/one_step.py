"""One step of synchronous data-parallel training, complete: two replicas, one mean, the same update.

Run it: ``python one_step.py``. It needs nothing but Python and checks itself.
"""

from math import isclose

# region: start
weights = [[5.0, 5.0], [5.0, 5.0]]  # one copy on each rank
gradients = [[1.0, 3.0], [3.0, 1.0]]  # each from data that the other rank never sees
learning_rate = 0.1
# endregion


# region: all-reduce
def all_reduce(vectors: list[list[float]]) -> list[list[float]]:
    """Every rank gets the sum of what all ranks brought."""
    total = [sum(entries) for entries in zip(*vectors, strict=True)]
    return [list(total) for _ in vectors]


# endregion


def close(one: list[float], other: list[float]) -> bool:
    """Equal up to rounding."""
    return all(map(isclose, one, other))


# region: step
ranks = len(weights)
summed = all_reduce(gradients)
mean = [[entry / ranks for entry in own] for own in summed]
for own, gradient in zip(weights, mean, strict=True):
    for i, entry in enumerate(gradient):
        own[i] -= learning_rate * entry
# endregion

# region: checks
assert mean[0] == [2.0, 2.0]
assert close(weights[0], [4.8, 4.8])
assert weights[0] == weights[1]  # not close: equal, bit for bit
# endregion

if __name__ == "__main__":
    print("mean gradient:", mean[0])
    for rank, own in enumerate(weights):
        print(f"rank {rank} now holds:", [round(entry, 6) for entry in own])
