"""Questions: what is asked, and what every answer gets to hear."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from dpsim.checks import InputError
from dpsim.typed_number import read_number
from dpsim.wording import number

KINDS = ("choose-one", "choose-several", "number", "order", "cell", "ring")
EDGE = 1e-12  # relative: what rounding in a float may add to an answer that lies on the tolerance's edge


@dataclass(frozen=True)
class Option:
    """One answer to choose, and what is said to whoever chose it. `misconception` is its id, or nothing."""

    text: str
    feedback: str
    right: bool = False
    misconception: str = ""


@dataclass(frozen=True)
class Slip:
    """A number that a known mistake leads to, and what is said to whoever types it."""

    value: float
    feedback: str
    misconception: str = ""


@dataclass(frozen=True)
class Asked:
    """A question as it is put to somebody: Markdown in which every number is in place.

    kind            options                                   an answer, as it is given and kept
    choose-one      two to six, one of them right             an option's index: "2"
    choose-several  two to eight, any of them right           their indices in order: "0,2", or "" for none
    number          none; `answer` in `unit`, `wrong`         what was typed
    order           the steps in their right order            their indices in the chosen order: "1,0,2"
    cell            cells with words of their own: "2.1";     a cell, rank and chunk: "2.1"
                    `answer` is the world size, and the number of chunks
    ring            none; `answer` is the world size          transfers, as `dpsim.puzzle` writes them

    `feedback` is said about what is right, `other` about a wrong answer that has no words of its own.
    `solution` shows the way with these numbers. `link` is the query that opens the very situation. `written`
    is the exact answer as text, where that is more than the number and its unit.
    """

    kind: str
    question: str
    options: tuple[Option, ...] = ()
    answer: float = 0.0
    unit: str = ""
    tolerance: float = 0.0
    wrong: tuple[Slip, ...] = ()
    feedback: str = ""
    other: str = ""
    solution: str = ""
    link: str = ""
    written: str = ""

    @property
    def right_options(self) -> tuple[Option, ...]:
        """The options that are right."""
        return tuple(option for option in self.options if option.right)

    @property
    def exact(self) -> str:
        """The exact number, with its unit, as text."""
        return self.written or f"{number(self.answer)} {self.unit}".rstrip()

    def shuffled(self, seed: str) -> list[int]:
        """The order in which steps to be put in order are first shown: never the right one."""
        places = list(range(len(self.options)))
        draw = random.Random(f"{seed}/shuffled")
        while places == sorted(places):
            draw.shuffle(places)
        return places


@dataclass(frozen=True)
class Question:
    """A question of a lesson: its name, what it tests, and what is asked, with figures still in braces."""

    id: str
    objective: str
    asked: Asked


@dataclass(frozen=True)
class Verdict:
    """What an answer is: right or not, the explanation of exactly that answer, the mistake it shows."""

    right: bool
    feedback: str
    misconception: str = ""


def as_choice(asked: Asked, seed: str) -> Asked:
    """A question for a number as one with options: the right number among those of known mistakes."""
    right = Option(asked.exact, asked.feedback, right=True)
    slips = [
        Option(f"{number(s.value)} {asked.unit}".rstrip(), s.feedback, misconception=s.misconception)
        for s in asked.wrong
    ]
    options = [right, *slips]
    random.Random(f"{seed}/options").shuffle(options)
    return Asked("choose-one", asked.question, tuple(options), solution=asked.solution, link=asked.link)


def grade(asked: Asked, given: str) -> Verdict:
    """The verdict on an answer of any kind but a ring's; InputError where it is malformed."""
    if asked.kind == "number":
        return _grade_number(asked, read_number(given, asked.unit))
    if asked.kind == "choose-one":
        option = asked.options[_index(given, len(asked.options))]
        return Verdict(option.right, option.feedback, option.misconception)
    if asked.kind == "choose-several":
        return _grade_several(asked, set(_indices(given, len(asked.options))))
    if asked.kind == "order":
        return _grade_order(asked, _indices(given, len(asked.options)))
    if not re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", given):
        raise InputError("answer", "must name a cell by rank and chunk", given)
    named = next((option for option in asked.options if option.text == given), None)
    if named is None:
        return Verdict(False, asked.other)
    return Verdict(named.right, named.feedback, named.misconception)


def _grade_number(asked: Asked, typed: float) -> Verdict:
    def meets(value: float) -> bool:
        return abs(typed - value) <= asked.tolerance + EDGE * max(abs(value), abs(typed))

    if meets(asked.answer):
        return Verdict(True, asked.feedback)
    for slip in asked.wrong:
        if meets(slip.value):
            return Verdict(False, slip.feedback, slip.misconception)
    return Verdict(False, asked.other)


def _grade_several(asked: Asked, chosen: set[int]) -> Verdict:
    right = {i for i, option in enumerate(asked.options) if option.right}
    if chosen == right:
        return Verdict(True, asked.feedback or " ".join(o.feedback for o in asked.right_options))
    off = [i for i in range(len(asked.options)) if i in chosen - right] or sorted(right - chosen)
    option = asked.options[off[0]]  # one thing at a time: first what is wrongly there, then what is missing
    begin = "You chose" if off[0] in chosen else "You left out"
    return Verdict(False, f"{begin} “{option.text}”. {option.feedback}", option.misconception)


def _grade_order(asked: Asked, order: list[int]) -> Verdict:
    if sorted(order) != list(range(len(asked.options))):
        raise InputError("answer", "must put every step at one place", order)
    if order == sorted(order):
        return Verdict(True, asked.feedback)
    first = next(i for i, step in enumerate(order) if step != i)
    option = asked.options[first]
    said = f"Place {first + 1} is not “{asked.options[order[first]].text}”. {option.feedback}"
    return Verdict(False, said, asked.options[order[first]].misconception)


def _index(given: str, count: int) -> int:
    if not re.fullmatch(r"[0-9]{1,2}", given) or int(given) >= count:
        raise InputError("answer", f"must be an option from 0 to {count - 1}", given)
    return int(given)


def _indices(given: str, count: int) -> list[int]:
    return [_index(part, count) for part in given.split(",")] if given else []
