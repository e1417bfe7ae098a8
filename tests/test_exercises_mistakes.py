"""The mistakes that the bank knows: every number that one leads to, and the misconception it shows.

The formulas are those of the list that the bank was written from, in the numbers that stand in a question.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log2, sqrt

import pytest
from exercise_numbers import numbers

from dpsim.exercises import items, variant

Mistakes = list[tuple[float, str]]


def ring(r: float) -> float:
    """2 (R - 1) / R."""
    return 2 * (r - 1) / r


def tree(r: float) -> int:
    """A tree's rounds one way."""
    return ceil(log2(r))


def overlap(f: float, b: float, a: float) -> Mistakes:
    """Where backward hides everything, forward and backward alone are right."""
    known = [(f + b + a, ""), (b + max(f, a), "")]
    return [*known, (f + b, "M17")] if a > b else known


def hierarchy(machines: float, cards: float, size: float) -> Mistakes:
    inter = ring(machines) * size
    return [(inter, "M16"), (ring(machines * cards) * size, ""), (inter / cards**2, "")]


def printed(*q: float) -> Mistakes:
    means = [total / count for total, count in zip(q[:4], q[4:8], strict=True)]
    return [(sum(means) / 4, "M9"), (sum(means), ""), (max(means), "")]


MISTAKES: dict[str, Callable[..., Mistakes]] = {
    "R1": lambda b, r: [(b, "M1"), (b / r, "M1"), (r * r * b, "")],
    "R2": lambda r, b: [(b, "M2"), (b * r, "M2"), (b / (r - 1), "")],
    "R3": lambda d, r, b: [(ceil(d / b), "M1"), (floor(floor(d / r) / b), ""), (ceil(d / r), "")],
    "R4": lambda d, r: [(0, "M5"), (d % r, ""), (r - 1, "")],
    "R5": lambda r, e: [(e, "M6"), (r, ""), (e * r, "")],
    "G1": lambda *g: [(sum(g), "M3"), (g[0], ""), (sum(g) / 16, "M3")],
    "G2": lambda h, r: [(h, "M4"), (h / r, "M4"), (r * r * h, "M4")],
    "G3": lambda h, n, b, r, _: [
        (r * h * b / n, "M4"), (h * b / n / r, "M4"), (sqrt(r) * h * b / n, "M4")
    ],
    "T1": lambda _, n, a, __, m, b: [((a + b) / 2, "M8"), (a + b, ""), ((m * a + n * b) / (n + m), "")],
    "T2": lambda _, n, __, m, *___: [(1, "M8"), (n / m, ""), (m / (n + m), "")],
    "T3": lambda *q: [(sum(q[:-2]), "M3"), (q[0], "M8"), (q[-2] * sum(q[:-2]), "M3")],
    "A1": lambda r, k, b: [(b * k, "M1"), (r * b, "M1"), (r * b / k, "")],
    "A2": lambda _, k, base: [(base, "M7"), ((k - 1) * base, ""), (base / k, "")],
    "A3": lambda r, k, g: [(g, ""), (k * r * g, "M3"), (k / r * g, "M3")],
    "C1": lambda r: [(r - 1, ""), (2 * tree(r), ""), (r * (r - 1), "")],
    "C2": lambda s, r: [(2 * (r - 1) * s, "M15"), (s, ""), ((r - 1) * s / r, "")],
    "C3": lambda r, s, w: [(s / w, ""), (r * s / w, "M15"), (2 * (r - 1) * s / w, "M15")],
    "C4": lambda a, b: [(b / a, "M15"), (1, "M15"), (log2(b) / log2(a), "")],
    "C5": lambda r, hop: [(2 * hop, "M15"), (2 * hop * tree(r), ""), ((r - 1) * hop, "")],
    "B1": lambda *q: [
        (sum(q[:-1]) / len(q[:-1]) + q[-1], ""), (min(q[:-1]) + q[-1], ""), (max(q[:-1]), "")
    ],
    "B2": lambda r, s: [(1 - s / 100 / r, ""), (1 - s / 100, ""), (1 / (1 + s / 100 * r), "")],
    "B3": lambda r, p: [(p, ""), (r * p, ""), (p**r, "")],
    "B4": lambda *q: [
        (max(q[:-1]) / q[-1], "M12"), (sum(q[:-1]) / q[-1] / len(q[:-1]), ""), (sum(q[:-1]) / q[-1], "")
    ],
    "O1": overlap,
    "O2": lambda n, each, mib: [(n, "M20"), (1, "M20"), (ceil(n * each / (mib * 2**20)), "")],
    "S1": lambda one, r, t: [(one / t, "M17"), (t / one, ""), (1 - t / one, "")],
    "S2": lambda one, r, t: [(one / t, "M17"), (r, "M17"), (t / one, "")],
    "S3": lambda c, r, s, w: [
        (c / r, "M17"), ((c + ring(r) * s / w) / r, ""), (c + ring(r) * s / w, "M17")
    ],
    "S4": lambda h, r, e: [(h, ""), (h / r, "M17"), (h * e, "")],
    "Y1": lambda p, _, r: [(2 * p, ""), (4 * p, ""), (16 * p / r, "M13")],
    "Y3": lambda p, r: [(0, "M14"), (4 * p / r, "M13"), (25, "M20")],
    "Z1": lambda p, r, *_: [(16 * p / r, "M19"), (16 * p, "M19"), (2 * p + 14 * p / r, "M19")],
    "Z3": lambda _, s, __, r: [(ring(r) * s, "M19"), (ring(r) * s / 2, ""), (3 * (r - 1) * s, "M15")],
    "D1": lambda r: [(0, ""), (1, ""), ((r - 1) / 2, "")],
    "K1": lambda p: [(100 / p, "M21"), (1 / (1 - p / 100), ""), ((100 / p) ** 2, "")],
    "K2": lambda f, b, a: [((f + b + a) / 2, "M21"), (f + b, "M21"), (f + b + a / 4, "")],
    "P1": lambda r, s, fast, slow: [
        (ring(r) * s / fast, "M16"),
        (ring(r) * s / ((fast + slow) / 2), "M16"),
        (2 * (r - 1) * s / slow, "M15"),
    ],
    "P2": hierarchy,
    "W1": lambda b, r: [(b, "M10"), (1, ""), (b / r / r, "M1")],
    "W2": printed,
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_every_known_mistake_is_there_with_its_number(name: str) -> None:
    for i in range(25):
        asked = variant(f"x-{name}", f"mistake {i}", "number")
        known = [float(n) for n in numbers(asked.question)]
        expected = MISTAKES[name](*(known[:4] if name == "G1" else known))
        assert [slip.value for slip in asked.wrong] == pytest.approx([v for v, _ in expected]), asked.question
        assert [slip.misconception for slip in asked.wrong] == [m for _, m in expected]


def test_the_mistakes_of_every_number_are_listed_here() -> None:
    assert {f"x-{name}" for name in MISTAKES} == {i for i, item in items().items() if "number" in item.kinds}
