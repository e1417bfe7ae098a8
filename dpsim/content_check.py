"""``python -m dpsim.content_check``: every file of content loads, runs, is told, and teaches what it says."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dpsim.beats import beats
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.directives import Break, Exercise, Predict, Stage
from dpsim.forms import preset, preset_names
from dpsim.lessons import Lesson, Prose, lessons
from dpsim.prose import typed_digits, words
from dpsim.questions import Asked
from dpsim.scenario import check_app_bounds
from dpsim.simulate import simulate

WORDS_PER_MINUTE = 180
MINUTES_PER_STAGE = 1.0
MINUTES_PER_QUESTION = 0.4
MINUTES_OFF = 1.5


def check() -> list[str]:
    """What is wrong with the content, a line each."""
    return [*_wrong_presets(), *_wrong_lessons()]


def _wrong_presets() -> list[str]:
    names = preset_names()
    wrong = [] if names else ["content/scenarios: there are no presets"]
    for name in names:
        try:
            scenario = check_app_bounds(preset(name))
            told = beats(simulate(scenario))
            compare(scenario)
        except InputError as error:
            wrong.append(f"content/scenarios/{name}.toml: {error}")
            continue
        if scenario.name != name or not scenario.title:
            wrong.append(f"content/scenarios/{name}.toml: needs the file's name as its name, and a title")
        if len(told) < 2:
            wrong.append(f"content/scenarios/{name}.toml: tells no beats")
    return wrong


def _wrong_lessons() -> list[str]:
    """What is wrong with the lessons. One that can be read has nothing in it that does not exist."""
    found = lessons()
    wrong = [] if found else ["content/lessons: there are no lessons"]
    for lesson in found.values():
        wrong += _wrong_in(lesson) if isinstance(lesson, Lesson) else [str(lesson)]
    return wrong


def _wrong_in(lesson: Lesson) -> list[str]:
    file = f"{lesson.slug}.md"
    wrong = [
        f"{file}: {where}: must compute its numbers as {{{{figure}}}}, got {typed!r} in {text[:40]!r}"
        for where, text in texts(lesson)
        for typed in typed_digits(text)
    ]
    asked = {question.objective for screen in lesson.screens for question in screen.questions}
    wrong += [f"{file}: objective {name} has no question" for name in lesson.objectives if name not in asked]
    needed = minutes_needed(lesson)
    if abs(lesson.minutes - needed) > MINUTES_OFF:
        wrong.append(f"{file}: minutes must be about {needed:.1f}, got {lesson.minutes}")
    return wrong


def texts(lesson: Lesson) -> Iterator[tuple[str, str]]:
    """Every text of a lesson that a learner reads, and where it stands."""
    yield from (("header", text) for text in (lesson.title, lesson.summary, *lesson.objectives.values()))
    for screen in lesson.screens:
        yield screen.slug, screen.title
        for block in screen.blocks:
            if isinstance(block, Prose):
                yield f"line {block.line}", block.text
            elif isinstance(block, (Predict, Exercise)):
                said = block.after if isinstance(block, Predict) else ""
                yield from ((block.question.id, text) for text in (*_said(block.question.asked), said))
            else:
                yield screen.slug, block.caption


def _said(asked: Asked) -> Iterator[str]:
    yield from (asked.question, asked.feedback, asked.other)
    for option in asked.options:
        yield from (option.text, option.feedback)
    yield from (slip.feedback for slip in asked.wrong)


def minutes_needed(lesson: Lesson) -> float:
    """About how long a lesson takes: its prose and questions read, its stages stepped through."""
    shown = [block for screen in lesson.screens for block in screen.blocks]
    asked = [question.asked for screen in lesson.screens for question in screen.questions]
    read = [block.text for block in shown if isinstance(block, Prose)]
    read += [text for one in asked for text in (one.question, *(o.text for o in one.options))]
    stages = sum(isinstance(block, (Stage, Break)) for block in shown)
    return (
        sum(map(words, read)) / WORDS_PER_MINUTE
        + MINUTES_PER_STAGE * stages
        + MINUTES_PER_QUESTION * len(asked)
    )


if __name__ == "__main__":
    found = check()
    counted = f"content: {len(preset_names())} presets and {len(lessons())} lessons load, run and are told"
    print("\n".join(found) if found else counted)
    sys.exit(bool(found))
