"""Every answer of the bank, worked out anew from the numbers that stand in the question, in another way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import comb

import pytest
import torch
from exercise_numbers import numbers
from torch.distributed import _compute_bucket_assignment_by_size as torch_buckets
from torch.utils.data import BatchSampler, DistributedSampler

from dpsim.exercises import items, variant
from dpsim.questions import grade
from dpsim.wording import number

Known = list[Fraction]


class Ring:
    """A ring all-reduce carried out on sets of ranks, by the rule alone: pass on what came last."""

    def __init__(self, ranks: int) -> None:
        held = [[{r} for _ in range(ranks)] for r in range(ranks)]  # [rank][chunk]: who is in it
        self.sends: list[list[int]] = []  # [round][rank]: the chunk
        self.owned: list[int] = []
        last = list(range(ranks))
        while any(len(who) < ranks for row in held for who in row):
            self.sends.append(last)
            arriving = [(r, last[r - 1], held[r - 1][last[r - 1]]) for r in range(ranks)]
            summing = len(self.sends) < ranks
            for r, chunk, who in arriving:
                held[r][chunk] = held[r][chunk] | who if summing else who
            last = [chunk for _, chunk, _ in arriving]
            if len(self.sends) == ranks - 1:
                self.owned = [next(c for c in range(ranks) if len(row[c]) == ranks) for row in held]
        self.rounds = len(self.sends)

    def bytes_sent(self, size: Fraction, ranks: int) -> Fraction:
        """What a rank sends: one chunk in every round."""
        return sum((size / ranks for _ in self.sends), Fraction(0))


def in_lockstep(ranks: int, size: Fraction, rates: list[Fraction]) -> Fraction:
    """When the last message of a ring ends whose link r to r + 1 has its own bandwidth."""
    ready = [Fraction(0)] * ranks  # when rank r has what it sends next
    link = [Fraction(0)] * ranks
    for _ in range(2 * (ranks - 1)):
        link = [max(ready[r], link[r]) + size / ranks / rates[r] for r in range(ranks)]
        ready = [link[r - 1] for r in range(ranks)]
    return max(link)


def samplers(data: int, ranks: int, *, shuffle: bool = False) -> list[DistributedSampler]:
    return [DistributedSampler(range(data), ranks, r, shuffle=shuffle) for r in range(ranks)]


def steps_of_an_epoch(known: Known) -> int:
    data, ranks, each = map(int, known)
    found = {sum(1 for _ in BatchSampler(s, each, drop_last=False)) for s in samplers(data, ranks)}
    assert len(found) == 1
    return found.pop()


def repeated(known: Known) -> int:
    data, ranks = map(int, known)
    dealt = Counter(i for sampler in samplers(data, ranks) for i in sampler)
    assert set(dealt) == set(range(data))
    return sum(dealt.values()) - data


def orders(known: Known) -> int:
    ranks, epochs = map(int, known)
    shufflers = samplers(64, ranks, shuffle=True)
    return len({tuple(tuple(sampler) for sampler in shufflers) for _ in range(epochs)})


def accumulated(known: Known) -> float:
    ranks, micro, mean = known
    grads = []
    for _ in range(int(ranks)):
        weight = torch.zeros((), requires_grad=True)
        for _ in range(int(micro)):
            (weight * float(mean) * torch.ones(3)).mean().backward()
        grads.append(weight.grad)
    return float(torch.stack(grads).mean())


def overlapped(known: Known) -> float:
    """Very many small buckets: each travels when it is ready and the one before it is through."""
    forward, backward, reduce_ms = map(float, known)
    pieces, free = 4000, forward
    for i in range(1, pieces + 1):
        free = max(free, forward + backward * i / pieces) + reduce_ms / pieces
    return free


def buckets(known: Known) -> int:
    count, each, mib = known
    tensors = [torch.empty(int(each), dtype=torch.float32, device="meta") for _ in range(int(count))]
    groups, _ = torch_buckets(tensors, [int(mib) * 2**20])
    return len(groups)


def slow_step(known: Known) -> Fraction:
    ranks, p = int(known[0]), known[1]
    return sum((comb(ranks, k) * p**k * (1 - p) ** (ranks - k) for k in range(1, ranks + 1)), Fraction(0))


def steps_until_empty(known: Known) -> int:
    *left, each = known
    done = 0
    while all(samples >= each for samples in left):
        left = [samples - each for samples in left]
        done += 1
    return done


def staleness(known: Known) -> int:
    """Workers in turn: what each of them read, and the version it then updates."""
    ranks = int(known[0])
    read, found = [0] * ranks, set()
    for version in range(5 * ranks):  # so many updates have been made
        if version >= ranks:
            found.add(version - read[version % ranks])
        read[version % ranks] = version + 1
    assert len(found) == 1
    return found.pop()


def token_mean(known: Known) -> Fraction:
    _, n, a, _, m, b = known
    losses = [a] * int(n) + [b] * int(m)
    return sum(losses, Fraction(0)) / len(losses)


def against(known: Known) -> Fraction:
    """How much the naive mean moves if one token's value moves by 1, on rank 0 against rank 1."""
    n, m = int(known[1]), int(known[3])

    def naive(first: Fraction, second: Fraction) -> Fraction:
        return (sum([first, *[Fraction(7)] * (n - 1)]) / n + sum([second, *[Fraction(5)] * (m - 1)]) / m) / 2

    at = naive(Fraction(0), Fraction(0))
    return (naive(Fraction(1), Fraction(0)) - at) / (naive(Fraction(0), Fraction(1)) - at)


def divisor(known: Known) -> Fraction:
    *counts, ranks, _ = known
    assert len(counts) == ranks
    losses = [3 * n + i for i, n in enumerate(counts)]
    averaged = sum(losses) / ranks  # what DDP forms where nobody divides
    return averaged / (sum(losses) / sum(counts))


def hierarchy(known: Known) -> Fraction:
    machines, cards, size = known
    return Ring(int(machines)).bytes_sent(size / cards, int(machines))


def ring_time(size: Fraction, ranks: Fraction, rate: Fraction) -> Fraction:
    return in_lockstep(int(ranks), size, [rate] * int(ranks))


def sent(ranks: Fraction) -> Fraction:
    return Ring(int(ranks)).bytes_sent(Fraction(1), int(ranks))


ANSWERS: dict[str, Callable[[Known], Fraction | float]] = {
    "R1": lambda q: len([(r, i) for r in range(int(q[1])) for i in range(int(q[0]))]),
    "R2": lambda q: next(b for b in range(1, 10_000) if q[0] * b == q[1]),
    "R3": steps_of_an_epoch,
    "R4": repeated,
    "R5": orders,
    "G1": lambda q: sum(q[:4]) / 4,
    "G2": lambda q: sum(q[0] for _ in range(int(q[1]))),  # as far as R steps along one gradient
    "G3": lambda q: q[0] * (q[3] * q[4]) / q[1],
    "T1": token_mean,
    "T2": against,
    "T3": divisor,
    "A1": lambda q: sum(int(q[2]) for _ in range(int(q[0])) for _ in range(int(q[1]))),
    "A2": lambda q: sum(q[2] for _ in range(int(q[1]))),
    "A3": accumulated,
    "C1": lambda q: Ring(int(q[0])).rounds,
    "C2": lambda q: Ring(int(q[1])).bytes_sent(q[0], int(q[1])),
    "C3": lambda q: ring_time(q[1], q[0], q[2]),
    "C4": lambda q: sent(q[1]) / sent(q[0]),
    "C5": lambda q: Ring(int(q[0])).rounds * q[1],
    "B1": lambda q: sorted(q[:-1])[-1] + q[-1],
    "B2": lambda q: 100 / max([Fraction(100)] * int(q[0] - 1) + [100 + q[1]]),
    "B3": slow_step,
    "B4": steps_until_empty,
    "O1": overlapped,
    "O2": buckets,
    "S1": lambda q: (q[0] / q[1]) / q[2],
    "S2": lambda q: (q[1] / q[2]) / (1 / q[0]),  # samples in a millisecond
    "S3": lambda q: q[0] / q[1] + ring_time(q[2], q[1], q[3]),
    "S4": lambda q: q[1] * (q[0] / (q[1] * q[2])),
    "Y1": lambda q: q[0] * sum([2, 2, 4, 4, 4]),
    "Y3": lambda q: q[0] * torch.finfo(torch.float32).bits / 8,
    "Z1": lambda q: q[0] * (2 + 2 + Fraction(12) / q[1]),
    "Z3": lambda q: sum(q[1] / q[3] for _ in range(3) for _ in range(int(q[3]) - 1)),
    "D1": staleness,
    "K1": lambda q: Fraction(4 * 100_000) / ((4 + 4) * (q[0] / 100) * 100_000),
    "K2": lambda q: q[0] + q[1] + q[2] * 2 / 4,
    "P1": lambda q: in_lockstep(int(q[0]), q[1], [q[2]] * (int(q[0]) - 1) + [q[3]]),
    "P2": hierarchy,
    "W1": lambda q: len(range(0, int(q[0]), int(q[1]))),
    "W2": lambda q: q[0] / q[4],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_what_another_way_comes_to(name: str) -> None:
    for i in range(12):
        asked = variant(f"x-{name}", f"answer {i}", "number")
        expected = ANSWERS[name](numbers(asked.question))
        close = 1e-3 if name == "O1" else 1e-9
        assert asked.answer == pytest.approx(float(expected), rel=close), asked.question


def test_every_number_of_the_bank_is_worked_out_here() -> None:
    assert {f"x-{name}" for name in ANSWERS} == {i for i, item in items().items() if "number" in item.kinds}


def test_the_mean_with_an_empty_rank_is_undefined_and_the_others_are_what_they_say() -> None:
    for i in range(40):
        asked = variant("x-N1", f"empty {i}")
        known = numbers(asked.question.replace("one weight", ""))
        ranks = len(known) // 2
        first, second = known[:ranks], known[ranks:]
        counts, sums = (first, second) if asked.question.startswith("The ranks") else (second, first)
        (empty,) = [r for r, n in enumerate(counts) if n == 0]
        means = [s / n for s, n in zip(sums, counts, strict=True) if n]
        expected = {sum(sums) / sum(counts), sum(means) / (ranks - 1), sum(means) / ranks}
        assert {option.text for option in asked.options if not option.right} == {
            number(float(value)) for value in expected
        }
        (right,) = asked.right_options
        assert "undefined" in right.text
        assert f"Rank {empty} divides zero by zero" in right.feedback


CELLS = {
    r"Which chunk does rank (\d+) send in round (\d+) of the reduce-scatter": (
        lambda ring, ranks, rank, n: ring.sends[n - 1][rank]
    ),
    r"Which chunk is added to on rank (\d+) in round (\d+) of the reduce-scatter": (
        lambda ring, ranks, rank, n: ring.sends[n - 1][rank - 1]
    ),
    r"Which chunk does rank (\d+) send in round (\d+) of the all-gather": (
        lambda ring, ranks, rank, n: ring.sends[ranks - 2 + n][rank]
    ),
    r"Which chunk is complete on rank (\d+)": lambda ring, ranks, rank, _: ring.owned[rank],
}


def test_a_cell_of_the_ring_is_the_one_that_a_ring_of_sets_comes_to() -> None:
    asked_so = Counter[str]()
    for i in range(300):
        asked = variant("x-cell-ring", f"cell {i}")
        ranks = int(re.findall(r"ring of (\d) ranks", asked.question)[0])
        ((pattern, found),) = [(p, m) for p in CELLS if (m := re.search(p, asked.question))]
        rank, n = int(found[1]), int(found[2]) if found.re.groups == 2 else 0
        asked_so[pattern] += 1
        right = f"{rank}.{CELLS[pattern](Ring(ranks), ranks, rank, n)}"
        assert [option.text for option in asked.right_options] == [right]
        assert 2 <= len(asked.options) <= 4
        assert 3 <= ranks <= 8
        assert asked.answer == ranks, "so many cards with so many cells are drawn"
        for cell in (f"{r}.{c}" for r in range(ranks) for c in range(ranks)):
            verdict = grade(asked, cell)
            own = [option for option in asked.options if option.text == cell]
            assert verdict.right == (cell == right)
            assert verdict.feedback == (own[0].feedback if own else asked.other)
    assert len(asked_so) == 4


@pytest.mark.parametrize("ranks", [3, 4, 5, 6])
def test_a_ring_by_hand_names_its_ranks_and_its_rounds(ranks: int) -> None:
    asked = variant(f"x-ring-{ranks}", "s")
    assert (asked.kind, asked.answer) == ("ring", ranks)
    assert f"after {Ring(ranks).rounds} rounds" in asked.feedback
