"""``python -m dpsim.content_check``: every file of content loads, runs, is told, and teaches what it says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl

from dpsim.beats import beats
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.coverage import wrong_coverage
from dpsim.directives import Exercise, Practice, Predict
from dpsim.exercises import Item, items, mistakes, variant, variant_of
from dpsim.forms import from_query, preset, preset_names
from dpsim.glossary import terms_in
from dpsim.lessons import OWN, Lesson, Prose, lessons
from dpsim.prose import typed_digits, words
from dpsim.questions import Asked
from dpsim.scenario import check_app_bounds
from dpsim.simulate import simulate

WORDS_PER_MINUTE = 180
MINUTES_PER_STAGE = 1.0
MINUTES_PER_QUESTION = 0.4
MINUTES_OFF = 1.5
SEEDS = tuple(map(str, range(3)))  # of variants that are drawn to check an exercise
PAGES = ("/", "/lab", "/lesson", "/practice", "/test", "/progress")


def check() -> list[str]:
    """What is wrong with the content, a line each."""
    return [*_wrong_presets(), *_wrong_items(), *_wrong_lessons()]


def _wrong_items() -> list[str]:
    """What is wrong with the bank: every exercise draws variants, whose scenarios exist; own items can be
    read, and what they refer to is there."""
    wrong = [] if items() else ["exercises: there are no exercises"]
    wrong += map(str, mistakes())
    for item in items().values():
        wrong += wrong_in_own(item) if item.source else []
    for name in items():
        try:
            for seed in SEEDS:
                query = dict(parse_qsl(variant(name, seed).link))
                query.pop("beat", None)
                if query:
                    check_app_bounds(from_query(query))
        except InputError as error:
            wrong.append(f"exercises: {name}: {error}")
    return wrong


def wrong_in_own(item: Item) -> list[str]:
    """What an own item refers to and what is not there: its objective, and pages that its texts link to."""
    found = lessons()
    slug, _, objective = item.objective.partition("/")
    lesson, wrong = found.get(slug), []
    if slug and not (isinstance(lesson, Lesson) and objective in lesson.objectives):
        wrong.append(f"{item.source}: objective: must be one of a lesson's, got {item.objective!r}")
    asked = variant_of(item, SEEDS[0], "number")
    for text in (*_said(asked), asked.solution):
        wrong += [f"{item.source}: {said}" for said in _wrong_links(text, found)]
    return wrong


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
        wrong += _wrong_in(lesson, found) if isinstance(lesson, Lesson) else [str(lesson)]
    own = [found.get(path.stem) for path in OWN.glob("*.md")]
    return [*wrong, *wrong_coverage(lesson for lesson in own if isinstance(lesson, Lesson))]


def _wrong_in(lesson: Lesson, found: Mapping[str, Lesson | InputError]) -> list[str]:
    file = f"{lesson.slug}.md"
    wrong = [
        f"{file}: {where}: {said}" for where, text in texts(lesson) for said in _wrong_links(text, found)
    ]
    wrong += [
        f"{file}: {where}: must compute its numbers as {{{{figure}}}}, got {typed!r} in {text[:40]!r}"
        for where, text in texts(lesson)
        for typed in typed_digits(text)
    ]
    for name in lesson.objectives:
        asked = [one for screen in lesson.screens for one in screen.asked if one.objective == name]
        if not asked:
            wrong.append(f"{file}: objective {name} has no question")
        elif not any(isinstance(one, Practice) for one in asked):
            wrong.append(f"{file}: objective {name} has no item of the bank")
    read = "\n".join(text for _, text in texts(lesson))
    told = {term.name for _, _, term in terms_in(read)}
    wrong += [
        f"{file}: terms: {term} does not stand in the text" for term in lesson.terms if term not in told
    ]
    needed = minutes_needed(lesson)
    if abs(lesson.minutes - needed) > MINUTES_OFF:
        wrong.append(f"{file}: minutes must be about {needed:.1f}, got {lesson.minutes}")
    return wrong


def _wrong_links(text: str, found: Mapping[str, Lesson | InputError]) -> Iterator[str]:
    """Links to pages of the app that lead nowhere."""
    for link in re.findall(r"\]\(<?(/[^)\s>]*)", text):
        page, _, query = link.partition("?")
        asked = dict(parse_qsl(query))
        if page not in PAGES:
            yield f"must link to one of {', '.join(PAGES)}, got {link!r}"
        known = {"lesson": found, "item": items(), "preset": preset_names()}
        for key, names in known.items():
            if key in asked and asked[key] not in names:
                yield f"must link to a {key} that exists, got {link!r}"
        lesson = found.get(asked.get("lesson", ""))
        if not isinstance(lesson, Lesson) or "screen" not in asked:
            continue
        if asked["screen"] not in [screen.slug for screen in lesson.screens]:
            yield f"must link to a screen that exists, got {link!r}"


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
            elif not isinstance(block, Practice):
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
    stages = sum(screen.stages for screen in lesson.screens)
    return (
        sum(map(words, read)) / WORDS_PER_MINUTE
        + MINUTES_PER_STAGE * stages
        + MINUTES_PER_QUESTION * sum(len(screen.asked) for screen in lesson.screens)
    )


if __name__ == "__main__":
    found = check()
    counted = f"{len(preset_names())} presets, {len(items())} exercises and {len(lessons())} lessons"
    print("\n".join(found) if found else f"content: {counted} load, run and are told")
    sys.exit(bool(found))
