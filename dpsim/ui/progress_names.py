"""What the progress page calls things, and which questions a misconception could show at."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from dpsim.lessons import Lesson, lessons
from dpsim.progress import DAY_S, Attempt
from dpsim.questions import Asked
from dpsim.wording import plural

HOUR_S = 3600.0


def _module(name: str) -> ModuleType | None:
    try:
        return import_module(f"dpsim.{name}")
    except ModuleNotFoundError:
        return None


def title(item: str) -> str:
    """An exercise's title; its id where the bank does not have it any more."""
    bank = _module("exercises")
    found = bank.items().get(item) if bank else None
    return found.title if found else item


def misconception(name: str) -> tuple[str, str]:
    """What is believed, and what holds instead; the bare id where it is not known any more."""
    module = _module("misconceptions")
    found = module.misconceptions().get(name) if module else None
    return (found.name, found.right) if found else (name, "")


def readable() -> list[Lesson]:
    """The lessons that can be read."""
    return [lesson for lesson in lessons().values() if isinstance(lesson, Lesson)]


def places(lesson: Lesson) -> list[str]:
    """Where the lesson asks something."""
    asked = [(screen.slug, question.id) for screen in lesson.screens for question in screen.questions]
    return [f"{lesson.slug}/{screen}/{question}" for screen, question in asked]


def can_show(attempts: Iterable[Attempt]) -> dict[str, set[str]]:
    """The misconceptions that a wrong answer can show, by item: at every lesson's question, and at the bank's
    exercises that were answered."""
    found = {
        f"{lesson.slug}/{screen.slug}/{question.id}": _shows(question.asked)
        for lesson in readable()
        for screen in lesson.screens
        for question in screen.questions
    }
    if bank := _module("exercises"):
        answered = {attempt.item for attempt in attempts} & set(bank.items())
        found |= {item: _shows(bank.variant(item, "")) for item in answered}
    return found


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
