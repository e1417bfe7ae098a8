"""The test after the lessons: for every objective one exercise of the bank, with numbers of its own.

A seed makes the whole test: which item, in which kind, with which numbers. It stays on the server until the
test is handed in. The fingerprint tells the questions of one version of the content from those of another.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from dpsim.checks import InputError
from dpsim.directives import Practice
from dpsim.exercises import items, variant
from dpsim.lessons import Lesson, lessons
from dpsim.puzzle import judged
from dpsim.questions import Asked
from dpsim.score import Score

LEFT_OUT = "ring"  # a schedule composed by hand takes as long as ten other questions
TRIES = 20  # for numbers that differ, where an item is asked twice


@dataclass(frozen=True)
class Objective:
    """What somebody can do after a lesson, as Markdown, and the bank's items that test it."""

    lesson: str
    name: str
    text: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Posed:
    """One question of a test: what it tests, which item it is drawn from, and what is asked."""

    objective: Objective
    item: str
    asked: Asked


def objectives() -> tuple[Objective, ...]:
    """The objectives of all lessons that can be read, in their order; without those that no item tests."""
    found = []
    for lesson in lessons().values():
        if not isinstance(lesson, Lesson):
            continue
        asked = [one for screen in lesson.screens for one in screen.asked if isinstance(one, Practice)]
        for name, text in lesson.objectives.items():
            tested = dict.fromkeys(one.item for one in asked if one.objective == name and _kinds(one.item))
            if tested:
                found.append(Objective(lesson.slug, name, lesson.setting.shown(text), tuple(tested)))
    return tuple(found)


def _kinds(item: str) -> tuple[str, ...]:
    return tuple(kind for kind in items()[item].kinds if kind != LEFT_OUT)


@lru_cache(maxsize=128)  # those of a class at work: a page asks for its test at every click
def questions(seed: str, tested: tuple[Objective, ...]) -> tuple[Posed, ...]:
    """One question for each of these objectives, in their order. An item comes twice only where there are not
    enough of them, and then with other numbers, if it has some."""
    posed: list[Posed] = []
    for objective, item in zip(tested, _dealt(tested, Random(f"{seed}/items")), strict=True):
        before = {other.asked.question for other in posed if other.item == item}
        for attempt in range(TRIES):
            drawn = f"{seed}/{objective.lesson}/{objective.name}/{attempt}"
            asked = variant(item, drawn, Random(f"{drawn}/kind").choice(_kinds(item)))
            if asked.question not in before:
                break
        posed.append(Posed(objective, item, asked))
    return tuple(posed)


def _dealt(tested: Sequence[Objective], draw: Random) -> list[str]:
    """An item for every objective, as many different ones as there can be: a largest matching, grown along
    shortest augmenting paths."""
    choices = [draw.sample(objective.items, len(objective.items)) for objective in tested]
    taken: dict[int, str] = {}
    by: dict[str, int] = {}
    for first in draw.sample(range(len(tested)), len(tested)):
        reached: dict[str, int] = {}
        waiting, free = deque([first]), None
        while waiting and free is None:
            at = waiting.popleft()
            for item in choices[at]:
                if item in reached:
                    continue
                reached[item] = at
                if item not in by:
                    free = item
                    break
                waiting.append(by[item])
        while free is not None:  # everybody on the way gives up an item for the one that was found
            at = reached[free]
            before = taken.get(at)
            taken[at], by[free] = free, at
            free = before
    return [taken.get(at, choices[at][0]) for at in range(len(tested))]


def fingerprint(posed: Sequence[Posed]) -> str:
    """64 hexadecimal digits that change when what is asked changes, or what is right; words about the answers
    are not in it, so that a correction of them disturbs no test."""
    told = [
        [
            [one.objective.lesson, one.objective.name, one.item, one.asked.kind, one.asked.question],
            [[option.text, option.right] for option in one.asked.options],
            [float(one.asked.answer), one.asked.unit, float(one.asked.tolerance)],
        ]
        for one in posed
    ]
    return hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest()


def marks(posed: Sequence[Posed], answers: Mapping[int, str]) -> tuple[bool, ...]:
    """For every question whether its answer is right; `answers` are by the question's place, from 0."""
    return tuple(n in answers and _is_right(one.asked, answers[n]) for n, one in enumerate(posed))


def _is_right(asked: Asked, given: str) -> bool:
    try:
        return judged(asked, given).right
    except InputError:  # it was taken for an answer once, and is none any more
        return False


def score(posed: Sequence[Posed], answers: Mapping[int, str]) -> Score:
    """What the answers come to, judged anew."""
    return Score(sum(marks(posed, answers)), len(posed))
