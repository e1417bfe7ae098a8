"""Two ranks with 2 and 8 valid tokens: the naive mean of rank means, and the token-weighted mean.

Run it: ``python whose_tokens_count.py``. It needs nothing but Python and checks itself.
"""

from fractions import Fraction

Vector = list[Fraction]

# region: ranks
# What each rank knows: the gradient sum over its own valid tokens, and how many these are.
sums: list[Vector] = [[Fraction(6), Fraction(2)], [Fraction(-8), Fraction(-16)]]
counts = [2, 8]
# endregion


# region: naive
def mean_of_rank_means(sums: list[Vector], counts: list[int]) -> Vector:
    """Each rank divides first. The ranks' means are then averaged, whatever they were means of."""
    means = [[entry / n for entry in own] for own, n in zip(sums, counts, strict=True)]
    return [sum(column, Fraction(0)) / len(means) for column in zip(*means, strict=True)]


# endregion


# region: contract
def token_weighted_mean(sums: list[Vector], counts: list[int]) -> Vector | None:
    """Sums and counts are added up over all ranks, and divided once. None: no token counts, so no step."""
    total = sum(counts)
    if total == 0:
        return None
    return [sum(column, Fraction(0)) / total for column in zip(*sums, strict=True)]


# endregion

# region: checks
assert mean_of_rank_means(sums, counts) == [Fraction(1), Fraction(-1, 2)]
assert token_weighted_mean(sums, counts) == [Fraction(-1, 5), Fraction(-7, 5)]
# With equal counts there is nothing to get wrong.
assert mean_of_rank_means(sums, [5, 5]) == token_weighted_mean(sums, [5, 5])
# A rank without a valid token brings nothing, and does no harm.
assert token_weighted_mean([[Fraction(0)], [Fraction(4)], [Fraction(24)]], [0, 4, 12]) == [Fraction(7, 4)]
assert token_weighted_mean([[Fraction(0)]], [0]) is None
# endregion

if __name__ == "__main__":
    print("naive mean of rank means:", [float(entry) for entry in mean_of_rank_means(sums, counts)])
    found = token_weighted_mean(sums, counts)
    print("token-weighted mean:     ", found and [float(entry) for entry in found])
