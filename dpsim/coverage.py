"""What the sources state, and whether every statement is covered: by a lesson, or by what is named here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dpsim.app import folder
from dpsim.checks import read_text
from dpsim.lessons import Lesson

# The chapter's statements and the encyclopedia page's, as the README's table tells them.
STATEMENTS = (*(f"S{i}" for i in range(1, 14)), *(f"E{i}" for i in range(1, 13)))
# Covered by no lesson's text but by what the app does. The README's row must say so.
ELSEWHERE = {"S11": "page taken along", "E9": "Practice"}

MAX_README_BYTES = 200_000
_ROW = re.compile(r"^\| ([SE]\d+) \| .+? \| (.+?) \|$", re.MULTILINE)


def covering(found: Iterable[Lesson]) -> dict[str, list[Lesson]]:
    """The lessons that cover each statement."""
    read = list(found)
    return {statement: [lesson for lesson in read if statement in lesson.covers] for statement in STATEMENTS}


def wrong_coverage(own: Iterable[Lesson]) -> Iterator[str]:
    """Statements that nothing covers, and rows of the README's table that do not say where they are."""
    where = covering(own)
    for statement, by in where.items():
        if not by and statement not in ELSEWHERE:
            yield f"content/lessons: no lesson covers {statement}"
    readme = folder() / "README.md"
    if readme.is_file():  # an installed package comes without it
        yield from wrong_rows(read_text("README.md", readme, MAX_README_BYTES), where)


def wrong_rows(readme: str, where: dict[str, list[Lesson]]) -> Iterator[str]:
    """What is wrong with the table: a row for every statement, which names the lessons that cover it."""
    rows = dict(_ROW.findall(readme))
    for statement, by in where.items():
        if statement not in rows:
            yield f"README.md: the table has no row for {statement}"
            continue
        named = [f"*{lesson.title}*" for lesson in by] or [ELSEWHERE.get(statement, "")]
        yield from (
            f"README.md: the row of {statement} must name {name}"
            for name in named
            if name not in rows[statement]
        )
