"""What the bank is made of: an item draws its numbers and makes a question of them, perhaps with a chart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from random import Random

from dpsim.checks import InputError
from dpsim.questions import Asked, Option, Slip
from dpsim.typed_number import read_number
from dpsim.wording import number

NUMBER = ("number", "choose-one")  # a question for a number, typed or chosen
WHOLE = 0.01  # the tolerance of what is counted
TOPICS = {
    "scatter": "Scatter and data",
    "step": "One step",
    "gradients": "Gradients and learning rate",
    "tokens": "Tokens",
    "accumulation": "Accumulation",
    "ring": "The ring",
    "barrier": "Barrier and stragglers",
    "overlap": "Overlap and buckets",
    "scaling": "Scaling",
    "memory": "Memory and sharding",
    "beyond": "Asynchrony, compression, topology",
    "real-runs": "Real runs",
    "page": "Six questions on the whole",
}
_NUMBERS = re.compile(r"(?<![\w.])−?[0-9]+(?:\.[0-9]+)?(?:e−?[0-9]+)?")


@dataclass(frozen=True)
class Series:
    """An answer as a function of the one number that matters; `at` is the number that was drawn."""

    title: str
    x_name: str
    y_name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    at: float


@dataclass(frozen=True)
class Drawn:
    """One variant of an item: what is asked, and a chart where no scenario can show the answer."""

    asked: Asked
    chart: Series | None = None


@dataclass(frozen=True)
class Item:
    """An exercise whose numbers are drawn anew for every seed. `kinds` are those it can be asked in.

    An item that somebody else wrote says in `source` on which line of which file it stands, and may say in
    `objective` which of a lesson's objectives it tests, as in ``the-ring-by-hand/bytes``.
    """

    id: str
    title: str
    topic: str
    kinds: tuple[str, ...]
    draw: Callable[[Random], Drawn]
    objective: str = ""
    source: str = ""


def near(value: float) -> float:
    """The tolerance of what is measured: one percent."""
    return abs(value) / 100


def numeric(
    question: str,
    answer: float,
    unit: str,
    wrong: Iterable[Slip],
    *,
    tolerance: float,
    feedback: str,
    other: str,
    solution: Iterable[str],
    link: str = "",
) -> Asked:
    """A question for a number. `solution` is its lines, each a paragraph."""
    return Asked(
        "number", question, answer=answer, unit=unit, tolerance=tolerance, wrong=tuple(wrong),
        feedback=feedback, other=other, solution="\n\n".join(solution), link=link,
    )  # fmt: skip


def chosen(
    draw: Random,
    kind: str,
    questions: tuple[str, ...],
    rights: Iterable[Option],
    wrongs: Iterable[Option],
    *,
    solution: Iterable[str],
    link: str = "",
    feedback: str = "",
) -> Asked:
    """A question with these options, in an order of the draw."""
    options = [*rights, *wrongs]
    draw.shuffle(options)
    return Asked(
        kind, draw.choice(questions), tuple(options), feedback=feedback,
        solution="\n\n".join(solution), link=link,
    )  # fmt: skip


def series(
    title: str,
    x_name: str,
    y_name: str,
    x: Iterable[float],
    of: Callable[[float], float],
    at: float,
) -> Series:
    """The series of `of` over `x` and the drawn number `at`, in ascending order."""
    places = sorted({*map(float, x), float(at)})
    return Series(title, x_name, y_name, tuple(places), tuple(float(of(v)) for v in places), float(at))


def fits(asked: Asked) -> bool:
    """Whether a variant can be asked: its answers are told apart, can be typed as they are written, and the
    right one does not stand in the question."""
    return not unfit(asked)


def unfit(asked: Asked) -> str:
    """Why a variant cannot be asked; nothing where it can."""
    if asked.kind != "number":
        texts = [option.text for option in asked.options]
        return "" if len(set(texts)) == len(texts) else "two options read the same"
    values = [asked.answer, *(slip.value for slip in asked.wrong)]
    for a, b in combinations(values, 2):
        if not abs(a - b) > 3 * asked.tolerance:
            return f"{number(a)} and {number(b)} lie within three tolerances of each other"
    for value in values:
        if not _typed(value, asked):
            return f"{value!r} is written as {number(value)}, which is further off than the tolerance"
    if number(asked.answer) in _given(asked):
        return f"the answer, {number(asked.answer)}, stands in the question"
    return ""


def _typed(value: float, asked: Asked) -> bool:
    """Whether `value`, as it is written on an option, is taken for itself where it is typed."""
    try:
        return abs(read_number(number(value), asked.unit) - value) <= asked.tolerance
    except InputError:
        return False


def _given(asked: Asked) -> set[str]:
    """The numbers that stand in a question."""
    return set(_NUMBERS.findall(asked.question))
