"""Questions: what is asked, what every answer gets to hear, and how a typed number is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dpsim.checks import InputError, shown

LONGEST_ANSWER = 40
_SPACES = re.compile(r"[\s\u2009\u200a\u202f\u00a0'’]")  # thin, hair, narrow and plain, and Swiss apostrophes
_WRITTEN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)


@dataclass(frozen=True)
class Option:
    """One answer to choose, and what is said to whoever chose it."""

    text: str
    feedback: str
    right: bool = False


@dataclass(frozen=True)
class Wrong:
    """A number that a known mistake leads to: a reference to a figure, and what is said about it."""

    figure: str
    feedback: str


@dataclass(frozen=True)
class Question:
    """A question of one of two kinds: with `options` to choose one from, or with a number to type.

    `answer` is a reference to the figure that is right, within `tolerance`; `wrong` are the known mistakes,
    `other` is said about any other number, `feedback` about the right one.
    """

    id: str
    objective: str
    question: str
    options: tuple[Option, ...] = ()
    answer: str = ""
    tolerance: float = 0.0
    feedback: str = ""
    wrong: tuple[Wrong, ...] = ()
    other: str = ""

    @property
    def right_option(self) -> Option:
        """The option that is right."""
        return next(option for option in self.options if option.right)


@dataclass(frozen=True)
class Verdict:
    """What an answer is: right or not, and the explanation of exactly that answer."""

    right: bool
    feedback: str


def grade(question: Question, given: str, value: Callable[[str], float]) -> Verdict:
    """The verdict on an option's number, as text, or on a typed number; `value` looks up a figure."""
    if question.options:
        option = question.options[int(given)]
        return Verdict(option.right, option.feedback)
    typed = read_number(given)
    if abs(typed - value(question.answer)) <= question.tolerance:
        return Verdict(True, question.feedback)
    for wrong in question.wrong:
        if abs(typed - value(wrong.figure)) <= question.tolerance:
            return Verdict(False, wrong.feedback)
    return Verdict(False, question.other)


def read_number(typed: str) -> float:
    """A number as people type it: 0.5, 0,5, −2, 1 000, 7/4. InputError where it is none."""
    plain = _SPACES.sub("", typed).replace("−", "-").replace("–", "-").replace("⁄", "/").replace(",", ".")
    parts = plain.split("/")
    rule = "must be a number, such as 0.5, −2 or 7/4"
    if len(typed) > LONGEST_ANSWER or len(parts) > 2 or not all(map(_WRITTEN.fullmatch, parts)):
        raise InputError("answer", rule, typed)
    numbers = [float(part) for part in parts]
    if len(numbers) == 2 and numbers[1] == 0:
        raise InputError("answer", "must not divide by zero", typed)
    value = numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]
    if abs(value) == float("inf"):
        raise InputError("answer", rule, shown(typed))
    return value
