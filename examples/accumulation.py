"""One rank that accumulates three micro-batches: means of means, and the sum divided once.

Run it: ``python accumulation.py``. It needs nothing but Python and checks itself.
"""

from fractions import Fraction

# region: rank
# The first entry of the gradient sum of each micro-batch, and how many valid tokens it is over.
sums = [-4, -2, -4]
counts = [6, 2, 1]
# endregion


# region: naive
def accumulate_means(sums: list[int], counts: list[int]) -> Fraction:
    """Each micro-batch's mean loss, divided by how many there are, as many guides have it."""
    gradient = Fraction(0)
    for own, n in zip(sums, counts, strict=True):
        gradient += Fraction(own, n) / len(sums)  # (loss.mean() / k).backward()
    return gradient


# endregion


# region: contract
def accumulate_sums(sums: list[int], counts: list[int]) -> Fraction:
    """Sums are accumulated, and divided once by the tokens of the whole window, counted before it starts."""
    total = sum(counts)
    gradient = Fraction(0)
    for own in sums:
        gradient += Fraction(own, total)  # (loss.sum() / total).backward()
    return gradient


# endregion

# region: checks
assert accumulate_means(sums, counts) == Fraction(-17, 9)
assert accumulate_sums(sums, counts) == Fraction(-10, 9)
# In the mean of means a token of the last micro-batch counts six times one of the first.
assert Fraction(1, 3 * counts[2]) / Fraction(1, 3 * counts[0]) == 6
# With equal counts there is nothing to get wrong.
assert accumulate_means(sums, [3, 3, 3]) == accumulate_sums(sums, [3, 3, 3])
# endregion

if __name__ == "__main__":
    print("mean of micro-batch means:", round(float(accumulate_means(sums, counts)), 3))
    print("sum divided once:         ", round(float(accumulate_sums(sums, counts)), 3))
