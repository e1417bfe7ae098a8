"""The content check: it passes on what is here, and fails on each thing that it promises to find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from test_lessons import CHOOSE, HEADER, PREDICT

from dpsim import lessons as files
from dpsim.content_check import check, minutes_needed, texts
from dpsim.lessons import Lesson, lessons, read_lesson

GOOD = HEADER + "## First\n\n" + "Words and words. " * 60 + "\n\n" + PREDICT + "\n" + CHOOSE


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
    assert check() == ["content/lessons: there are no lessons"]


MISTAKES = [
    (
        "Words and words. ",
        "Words and 7 words. ",
        "small.md: line 18: must compute its numbers as {{figure}}, got '7'",
    ),
    ('text = "This"', 'text = "3 of them"', "small.md: choose: must compute its numbers"),
    ('feedback = "Yes"', 'feedback = "Yes, 12"', "small.md: guess: must compute its numbers"),
    ('sums = "Add up"', 'sums = "Add up"\nmore = "Nothing"', "small.md: objective more has no question"),
    ("minutes = 1", "minutes = 9", "small.md: minutes must be about 1.8, got 9"),
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
        assert 6 <= minutes_needed(lesson) <= 10
