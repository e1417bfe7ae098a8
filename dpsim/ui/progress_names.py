"""What the progress page calls things, and which questions a misconception could show at."""

from __future__ import annotations

from collections.abc import Iterable

from dpsim.exercises import items, variant
from dpsim.lessons import Lesson, lessons
from dpsim.misconceptions import misconceptions
from dpsim.progress import DAY_S, Attempt
from dpsim.questions import Asked, Question
from dpsim.wording import plural

HOUR_S = 3600.0


def title(item: str) -> str:
    """An exercise's title; its id where the bank does not have it any more."""
    return items()[item].title if item in items() else item


def misconception(name: str) -> tuple[str, str]:
    """What is believed, and what holds instead; the bare id where it is not known any more."""
    found = misconceptions().get(name)
    return (found.name, found.right) if found else (name, "")


def readable() -> list[Lesson]:
    """The lessons that can be read."""
    return [lesson for lesson in lessons().values() if isinstance(lesson, Lesson)]


def places(lesson: Lesson) -> dict[str, str]:
    """Where the lesson asks something, and the item that an answer there counts for."""
    return {
        (place := f"{lesson.slug}/{screen.slug}/{asked.id}"): place
        if isinstance(asked, Question)
        else asked.item
        for screen in lesson.screens
        for asked in screen.asked
    }


def can_show(attempts: Iterable[Attempt]) -> dict[str, set[str]]:
    """The misconceptions that a wrong answer can show, by item: at every lesson's question, and at those of
    the bank's exercises that were answered."""
    found = {
        f"{lesson.slug}/{screen.slug}/{question.id}": _shows(question.asked)
        for lesson in readable()
        for screen in lesson.screens
        for question in screen.questions
    }
    answered = {attempt.item for attempt in attempts} & set(items())
    return found | {item: _shows(variant(item, "")) for item in answered}


def _shows(asked: Asked) -> set[str]:
    wrong = [option.misconception for option in asked.options if not option.right]
    return {name for name in (*wrong, *(slip.misconception for slip in asked.wrong)) if name}


def when(seconds: float) -> str:
    """A time to come, counted from now."""
    if seconds < HOUR_S:
        return "within the hour"
    if seconds < 36 * HOUR_S:
        return f"in {plural(round(seconds / HOUR_S), 'hour')}"
    return f"in {plural(round(seconds / DAY_S), 'day')}"
