"""Lessons: Markdown with a TOML header, screens and directives; read whole, or refused with file and line.

A lesson that could be read is one whose every directive, scenario, figure, beat and region exists.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from dpsim.app import PACKAGE
from dpsim.checks import InputError, choice, name_shown, number, read_text, sequence, toml, whole
from dpsim.directives import (
    Break,
    Directive,
    Exercise,
    Practice,
    Predict,
    Recording,
    Stage,
    directive,
)
from dpsim.exercises import items
from dpsim.glossary import glossary
from dpsim.keys import NAME, Keys, check_text, placed
from dpsim.prose import FIGURE
from dpsim.questions import Question
from dpsim.setting import Setting, scenario_on

MAX_LESSON_BYTES = 200_000
MAX_LESSONS = 100
MAX_SCREENS = 40
MAX_FIGURES = 1000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
OWN = PACKAGE / "content" / "lessons"

_HEADER = re.compile(r"\+\+\+\n(.*?)^\+\+\+\n", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"```(.*)")
_COVERED = re.compile(r"[SE][0-9]{1,2}")


@dataclass(frozen=True)
class Prose:
    """Markdown as it was written, and the line it starts on."""

    text: str
    line: int


Block = Prose | Directive


@dataclass(frozen=True)
class Screen:
    """One idea: a heading, the slug that a link names it by, and what is under it."""

    title: str
    slug: str
    blocks: tuple[Block, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        """What the screen asks, in order."""
        return tuple(block.question for block in self.blocks if isinstance(block, (Predict, Exercise)))

    @property
    def practices(self) -> tuple[Practice, ...]:
        """The bank's exercises on the screen, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Practice))

    @property
    def stages(self) -> int:
        """How many of its blocks draw a stage."""
        return sum(
            isinstance(block, (Stage, Break)) or (isinstance(block, Recording) and "stage" in block.show)
            for block in self.blocks
        )

    @property
    def asked(self) -> tuple[Question | Practice, ...]:
        """All that can be answered on the screen."""
        return (*self.questions, *self.practices)


@dataclass(frozen=True, eq=False)
class Lesson:
    """A lesson: what its header says, its setting, and its screens. `objectives` are texts by name."""

    slug: str
    title: str
    summary: str
    order: float
    minutes: int
    covers: tuple[str, ...]
    terms: tuple[str, ...]
    objectives: Mapping[str, str]
    setting: Setting
    screens: tuple[Screen, ...]


def lesson_files() -> dict[str, Path | InputError]:
    """Every lesson's file by slug: the package's, then those in the folder that DPSIM_LESSONS names."""
    found: dict[str, Path | InputError] = {path.stem: path for path in sorted(OWN.glob("*.md"))}
    named = os.environ.get("DPSIM_LESSONS")
    if not named:
        return found
    try:
        paths = sorted(path for path in Path(named).iterdir() if path.match("[!.]*.md"))
    except OSError:
        return found | {"DPSIM_LESSONS": InputError("DPSIM_LESSONS", "must name a folder", named)}
    if len(paths) > MAX_LESSONS:
        rule = f"must hold at most {MAX_LESSONS} lessons"
        return found | {"DPSIM_LESSONS": InputError("DPSIM_LESSONS", rule, len(paths))}
    for path in paths:
        name, stem = name_shown(path.name), name_shown(path.stem)
        taken = InputError(name, "must not have the name of another lesson", stem)
        odd = InputError(name, "must be a file", "something else")
        found[name if stem in found else stem] = taken if stem in found else path if path.is_file() else odd
    return found


def lessons() -> dict[str, Lesson | InputError]:
    """Every lesson by slug, in their order; an error in the place of one that could not be read."""
    read: dict[str, Lesson | InputError] = {}
    for slug, path in lesson_files().items():
        try:
            if isinstance(path, InputError):
                raise path
            name = name_shown(path.name)
            read[slug] = read_lesson(name, read_text(name, path, MAX_LESSON_BYTES))
        except InputError as error:
            read[slug] = error

    def place(slug: str) -> tuple[float, str]:
        lesson = read[slug]
        return (lesson.order if isinstance(lesson, Lesson) else float("inf"), slug)

    return {slug: read[slug] for slug in sorted(read, key=place)}


def read_lesson(file: str, text: str) -> Lesson:
    """The lesson in the text of a file; InputError names the file, the line and what was expected."""
    return _read(file, text, tuple(items()))


@lru_cache(maxsize=2 * MAX_LESSONS)
def _read(file: str, text: str, _known: tuple[str, ...]) -> Lesson:
    """The same, read anew when exercises that it may name have come or gone."""
    text = text.replace("\r\n", "\n")
    slug = file.removesuffix(".md")
    if len(FIGURE.findall(text)) > MAX_FIGURES:
        raise InputError(file, f"must hold at most {MAX_FIGURES} figures", len(FIGURE.findall(text)))
    if found := _CONTROL.search(text):
        raise InputError(
            f"{file}, line {text.count(chr(10), 0, found.start()) + 1}", "must be plain text", found[0]
        )
    if not NAME.fullmatch(slug):
        raise InputError(file, "must be named in small letters and digits with hyphens", slug)
    header = _HEADER.match(text)
    if header is None:
        raise InputError(
            f"{file}, line 1", "must start with a TOML header between two lines of +++", text[:40]
        )
    data = toml(f"{file}: header", header[1], first_line=2)
    lesson = _headed(slug, file, data)
    rest = text[header.end() :].split("\n")
    screens = tuple(_screens(file, rest, text.count("\n", 0, header.end()) + 1, lesson))
    if not 1 <= len(screens) <= MAX_SCREENS:
        raise InputError(file, f"must have 1 to {MAX_SCREENS} screens, each starting with ##", len(screens))
    _check_names(file, screens, lesson)
    return replace(lesson, screens=screens)


def _headed(slug: str, file: str, data: dict[str, object]) -> Lesson:
    """The lesson of a header, without its screens."""
    where = f"{file}, header"
    with placed(f"{where}.scenario"):
        scenario = scenario_on(None, data.get("scenario"))
    variants = {}
    for name, written in Keys(f"{where}.variants", data.get("variants", {}), Setting(scenario)).left.items():
        with placed(f"{where}.variants.{name}"):
            variants[name] = scenario_on(scenario, written)
    keys = Keys(where, data, Setting(scenario, variants))
    for taken in ("scenario", "variants"):
        keys.take(taken, "")
    objectives = Keys(f"{where}.objectives", keys.take("objectives"), keys.setting)
    covers = keys.take("covers", [])
    for statement in sequence(f"{where}.covers", covers, 30) if covers != [] else ():
        if not isinstance(statement, str) or not _COVERED.fullmatch(statement):
            raise InputError(f"{where}.covers", "must list statements such as S1", statement)
    terms = keys.take("terms", [])
    for term in sequence(f"{where}.terms", terms, 20) if terms != [] else ():
        choice(f"{where}.terms", term, tuple(glossary()))
    lesson = Lesson(
        slug=slug,
        title=keys.name("title"),
        summary=keys.text("summary"),
        order=number(f"{where}.order", keys.take("order")),
        minutes=whole(f"{where}.minutes", keys.take("minutes"), 1, 60),
        covers=tuple(covers),
        terms=tuple(terms),
        objectives={name: objectives.text(name) for name in tuple(objectives.left)},
        setting=keys.setting,
        screens=(),
    )
    keys.done()
    return lesson


def _screens(file: str, lines: list[str], first: int, lesson: Lesson) -> Iterator[Screen]:
    """The screens in these lines, the first of which is line `first` of the file."""
    starts = [i for i, line in enumerate(lines) if line.startswith("## ")]
    before = next((i for i, line in enumerate(lines[: starts[0] if starts else None]) if line.strip()), None)
    if before is not None:
        where = f"{file}, line {first + before}"
        raise InputError(where, "must start a screen with ## before anything else", lines[before])
    for start, end in pairwise([*starts, len(lines)]):
        title = lines[start].removeprefix("## ").strip()
        slug = "-".join(re.findall(r"[a-z0-9]+", title.lower()))
        if not slug:
            raise InputError(f"{file}, line {first + start}", "must have a heading with letters", title)
        blocks = tuple(_blocks(file, lines[start + 1 : end], first + start + 1, lesson.setting))
        yield Screen(title, slug, blocks)


def _blocks(file: str, lines: list[str], first: int, setting: Setting) -> Iterator[Block]:
    """Prose and directives in these lines."""
    prose: list[str] = []
    place = 0
    while place <= len(lines):
        fence = _FENCE.match(lines[place]) if place < len(lines) else None
        if place == len(lines) or fence:
            yield from _prose(file, "\n".join(prose), first + place - len(prose), setting)
            prose = []
        if fence:
            where = f"{file}, line {first + place}"
            end = next((i for i in range(place + 1, len(lines)) if lines[i].startswith("```")), None)
            if end is None:
                raise InputError(where, "must close its block with ```", lines[place])
            body = "\n".join(lines[place + 1 : end])
            yield directive(fence[1].strip(), body, first + place + 1, where, setting)
            place = end
        elif place < len(lines):
            prose.append(lines[place])
        place += 1


def _prose(file: str, text: str, first: int, setting: Setting) -> Iterator[Prose]:
    """The prose in these lines, if there is any: checked line by line, so that a mistake's line is named."""
    if not text.strip():
        return
    line = first + len(text) - len(text.lstrip("\n"))
    text = text.strip("\n")
    for number_of, written in enumerate(text.split("\n"), line):
        check_text(f"{file}, line {number_of}", written, setting)
    check_text(f"{file}, line {line}", text, setting)  # a link may go on in the next line
    yield Prose(text, line)


def _check_names(file: str, screens: tuple[Screen, ...], lesson: Lesson) -> None:
    """Slugs and question ids are there once, a screen has one stage at most, objectives exist."""
    slugs = [screen.slug for screen in screens]
    ids = [asked.id for screen in screens for asked in screen.asked]
    for what, names in (("screen", slugs), ("question", ids)):
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{file}: {what} {name}", "must have a name of its own", name)
    for screen in screens:
        if screen.stages > 1:
            raise InputError(f"{file}: screen {screen.slug}", "must have one stage at most", screen.title)
        for asked in screen.asked:
            if asked.objective not in lesson.objectives:
                rule = f"must be one of {', '.join(lesson.objectives)}"
                raise InputError(f"{file}: {asked.id}.objective", rule, asked.objective)
