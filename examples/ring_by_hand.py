"""An all-reduce on a ring, by hand: four ranks, four chunks, six rounds.

Run it: ``python ring_by_hand.py``. It needs nothing but Python and checks itself.
"""

# region: start
gradients = [  # one row for each rank, one chunk for each column
    [3.0, -1.0, 8.0, 2.0],
    [5.0, -4.0, -3.0, 6.0],
    [-2.0, 7.0, 1.0, 9.0],
    [4.0, 0.0, -6.0, -5.0],
]
ranks = len(gradients)
total = [sum(column) for column in zip(*gradients, strict=True)]
sent = [0] * ranks
# endregion

# region: ring
held = [list(row) for row in gradients]
for n in range(2 * (ranks - 1)):
    adding = n < ranks - 1  # first the reduce-scatter, then the all-gather
    messages = [(r, (r - n) % ranks, held[r][(r - n) % ranks]) for r in range(ranks)]
    for r, chunk, value in messages:
        right = (r + 1) % ranks
        held[right][chunk] = held[right][chunk] + value if adding else value
        sent[r] += 1
# endregion

# region: checks
assert held == [total] * ranks  # every rank holds the whole sum
assert sent == [2 * (ranks - 1)] * ranks  # and sent as many chunks of one R-th each
# endregion

if __name__ == "__main__":
    print("the sum on every rank:", held[0])
    print("each rank sent its gradient", sent[0] / ranks, "times")
