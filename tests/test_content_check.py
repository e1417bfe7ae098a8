"""The content check: it passes on what is here, and fails on each thing that it promises to find."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from test_lessons import CHOOSE, HEADER, PRACTICE, PREDICT

from dpsim import content_check
from dpsim import lessons as files
from dpsim.content_check import check, minutes_needed, texts
from dpsim.coverage import covering, wrong_rows
from dpsim.lessons import Lesson, lessons, read_lesson

TEXT = (
    "Words and words, [more](/lesson?lesson=one-step&screen=the-moves-of-a-step) of them. "
    + "Words and words. " * 55
)
GOOD = HEADER + "## First\n\n" + TEXT + "\n\n" + PREDICT + "\n" + CHOOSE + "\n" + PRACTICE


@pytest.fixture
def with_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """What the check says about a lesson, beside the own ones."""

    def say(text: str) -> list[str]:
        (tmp_path / "small.md").write_text(text, "utf-8")
        monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path))
        return check()

    return say


def test_the_content_is_whole() -> None:
    assert check() == []


def test_a_good_lesson_passes(with_lesson: Callable[[str], list[str]]) -> None:
    assert with_lesson(GOOD) == []


def test_there_must_be_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "OWN", tmp_path)
    said = check()
    assert said[0] == "content/lessons: there are no lessons"
    assert set(said[1:]) >= {f"content/lessons: no lesson covers {s}" for s in ("S1", "S13", "E1", "E12")}


def test_there_must_be_exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_check, "items", dict)
    assert "exercises: there are no exercises" in check()


def test_the_readme_must_say_where_every_statement_is(monkeypatch: pytest.MonkeyPatch) -> None:
    where = covering(lesson for lesson in lessons().values() if isinstance(lesson, Lesson))
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    assert list(wrong_rows(readme, where)) == []
    (row,) = re.findall(r"^\| E4 .*\n", readme, re.MULTILINE)
    assert list(wrong_rows(readme.replace(row, ""), where)) == ["README.md: the table has no row for E4"]
    renamed = readme.replace(row, row.replace("*The ring by hand*", "somewhere"))
    assert list(wrong_rows(renamed, where)) == ["README.md: the row of E4 must name *The ring by hand*"]


MISTAKES = [
    (
        "Words and words. ",
        "Words and 7 words. ",
        "small.md: line 18: must compute its numbers as {{figure}}, got '7'",
    ),
    ('text = "This"', 'text = "3 of them"', "small.md: choose: must compute its numbers"),
    ('feedback = "Yes"', 'feedback = "Yes, 12"', "small.md: guess: must compute its numbers"),
    ('sums = "Add up"', 'sums = "Add up"\nmore = "Nothing"', "small.md: objective more has no question"),
    (PRACTICE, "", "small.md: objective sums has no item of the bank"),
    (
        "/lesson?lesson=one-step",
        "/lesson?lesson=two-steps",
        "small.md: line 18: must link to a lesson that exists",
    ),
    ("the-moves-of-a-step", "the-move", "small.md: line 18: must link to a screen that exists"),
    ("/lesson?", "/lessons?", "small.md: line 18: must link to one of /, /lab,"),
    ("minutes = 1", 'minutes = 1\nterms = ["straggler"]', "small.md: terms: straggler does not stand"),
    ('item = "x-C1"', 'item = "x-C0"', "small.md, line 51: exercise.item: must be one of "),
    (
        'feedback = "Yes"',
        'feedback = "Yes"\nmisconception = "M99"',
        "small.md, line 20: predict.misconception",
    ),
    ("minutes = 1", "minutes = 9", "small.md: minutes must be about 2.2, got 9"),
    ("```predict", "```riddle", "small.md, line 20: directive: must be one of "),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_what_is_wrong_is_found(
    with_lesson: Callable[[str], list[str]], old: str, new: str, message: str
) -> None:
    assert old in GOOD
    (said,) = with_lesson(GOOD.replace(old, new, 1))
    assert said.startswith(message)


def test_the_check_reads_every_text_of_a_lesson() -> None:
    lesson = read_lesson("small.md", GOOD)
    read = {text for _, text in texts(lesson)}
    for text in (
        "Small",
        "With {{R}} ranks.",
        "Add up",
        "First",
        "How many?",
        "No",
        "That is another run",
        "That",
    ):
        assert text in read


def test_the_lessons_take_about_eight_minutes() -> None:
    for lesson in lessons().values():
        assert isinstance(lesson, Lesson)
        assert 6 <= minutes_needed(lesson) <= 11
