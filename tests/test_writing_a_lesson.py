"""docs/writing-a-lesson.md, followed to the letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from guides import Guide
from streamlit.testing.v1 import AppTest
from test_app import APP

from dpsim.directives import QUESTIONS, READERS

ROOT = Path(__file__).parent.parent
FOLLOWED = Guide("writing-a-lesson.md", "markdown", "DPSIM_LESSONS")
GUIDE, FILE, LESSON = FOLLOWED.text, FOLLOWED.file, FOLLOWED.example


@pytest.fixture
def teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a teacher stands who has carried out the steps so far."""
    monkeypatch.setenv("DPSIM_LESSONS", FOLLOWED.followed(tmp_path))
    return tmp_path


def test_the_lesson_of_the_guide_passes_the_check(teacher: Path) -> None:
    said = FOLLOWED.checked(teacher)
    assert (said.returncode, said.stderr) == (0, "")
    assert re.fullmatch(r"content: .* lessons load, run and are told\n", said.stdout)


def test_the_mistake_of_the_guide_is_named_with_its_file(teacher: Path) -> None:
    old, new = re.findall(r"change `([^`]+)` to\n`([^`]+)`", GUIDE)[0]
    assert old in LESSON
    (teacher / FILE).write_text(LESSON.replace(old, new), "utf-8")
    said = FOLLOWED.checked(teacher)
    assert said.returncode == 1
    assert "the-long-answer.md" in said.stdout
    assert "must be one of loud, got 'quiet'" in said.stdout


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=30).switch_page("pages/lesson.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def test_it_opens_at_the_address_that_the_guide_names(teacher: Path) -> None:
    (address,) = re.findall(r"its address is `/lesson\?lesson=([a-z-]+)`", GUIDE)
    app = opened(lesson=address)
    assert not app.exception
    assert app.title[0].value == "One short answer, one long one"
    app.radio[0].set_value("0")
    app.button(key=f"{address}/one-short-answer-one-long-one/who:give").click().run()
    assert "**Right.**" in app.success[0].value
    assert len(app.get("bidi_component")) >= 1
    app.button(key="next").click().run()
    assert not app.exception
    assert app.title[0].value == "Now with numbers"


def test_a_lesson_with_a_mistake_says_so_and_the_others_open(teacher: Path) -> None:
    (teacher / FILE).write_text(LESSON.replace('beat = "barrier"', 'beat = "lunch"'), "utf-8")
    line = LESSON[: LESSON.index("```stage")].count("\n") + 1
    app = opened()
    assert not app.exception
    (said,) = [error.value for error in app.error]
    assert f"the\\-long\\-answer\\.md, line {line}" in said
    assert "must be one of" in said
    assert "The long answer" not in [heading.value for heading in app.subheader]
    assert len(app.subheader) >= 2


def test_the_guide_names_every_block_and_every_kind_of_question() -> None:
    rows = set(re.findall(r"^\| `([a-z]+)` \|", GUIDE, re.MULTILINE))
    assert rows == set(READERS)
    assert set(re.findall(r"^- `([a-z-]+)`:", GUIDE, re.MULTILINE)) == set(QUESTIONS)


def test_the_app_is_started_by_the_readme_s_command() -> None:
    assert FOLLOWED.commands[2].strip() in (ROOT / "README.md").read_text("utf-8")
