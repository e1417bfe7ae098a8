"""Files with own items that are right, for tests to change."""

from __future__ import annotations

from dpsim.exercises.own import Found, in_texts

WHOLE = r"""- id: own-ring
  title: What a rank sends
  topic: ring
  objective: the-ring-by-hand/bytes
  numbers:
    ranks: [4, 8, 16]
    size: {from: 20, to: 400, step: 20}
  let:
    rounds: 2 * (ranks - 1)
    chunk: size / ranks
  question: |
    A gradient of {size} MB travels round {ranks} ranks.
    How many MB does each rank send?
  answer: rounds * chunk
  unit: MB
  tolerance: 1 %
  wrong:
    - formula: size
      feedback: |
        That is the gradient once, but there are {rounds} rounds.
    - formula: answer / 2
      feedback: |
        That is the reduce-scatter alone.
      misconception: M8
  feedback: |
    In {rounds} rounds a chunk of {chunk} MB each.
  other: |
    How many rounds are there?
  solution: |
    A chunk is $\frac{size}{ranks} = {chunk}$ MB.

    There are {= 2 * ranks - 2} rounds, as $\sum_{i=1}^{n} x_{i}$ has it.
  link: preset=ring-8&world_size={ranks}&network.gradient_bytes={= size * 10^6}&beat=allreduce.b0.r0
"""
SMALL = """- id: own-small
  title: Twice
  numbers:
    n: [3, 5, 7, 9]
  question: What is twice {n}?
  answer: 2 * n
  tolerance: 0.1
  wrong:
    - formula: n ^ 2
      feedback: That is its square.
  feedback: Right it is.
  other: Add it to itself.
  solution: It is {= n + n}.
"""


def read(text: str) -> Found:
    return in_texts({"mine.yaml": text})


def refused(text: str) -> str:
    """What is said about a file of which nothing works."""
    found = read(text)
    assert not found.items
    (mistake,) = found.mistakes
    return str(mistake)
