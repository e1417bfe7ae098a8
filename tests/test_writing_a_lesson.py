"""docs/writing-a-lesson.md, followed to the letter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from test_app import APP

from dpsim.directives import QUESTIONS, READERS

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "writing-a-lesson.md").read_text("utf-8")
(FILE,) = re.findall(r"Save this as `([^`]+)`", GUIDE)
(LESSON,) = re.findall(r"^~~~~markdown\n(.*?)^~~~~$", GUIDE, re.DOTALL | re.MULTILINE)
FOLDER, CHECK, START = re.findall(
    r"^```sh\n(.*?)^```$", re.sub(r"~~~~.*?~~~~", "", GUIDE, flags=re.S), re.S | re.M
)


@pytest.fixture
def teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a teacher stands who has carried out the steps so far."""
    (tmp_path / "dpsim").symlink_to(ROOT / "dpsim")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    said = subprocess.run(
        ["bash", "-euc", f'{FOLDER}\nprintf %s "$DPSIM_LESSONS"'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path / said.stdout))
    (tmp_path / FILE).write_text(LESSON, "utf-8")
    return tmp_path


def checked(where: Path) -> subprocess.CompletedProcess[str]:
    """What the guide's command for the check says."""
    command = CHECK.replace("python ", f"{sys.executable} ", 1)
    return subprocess.run(["bash", "-euc", command], cwd=where, capture_output=True, text=True, check=False)


def test_the_lesson_of_the_guide_passes_the_check(teacher: Path) -> None:
    said = checked(teacher)
    assert (said.returncode, said.stderr) == (0, "")
    assert re.fullmatch(r"content: .* lessons load, run and are told\n", said.stdout)


def test_the_mistake_of_the_guide_is_named_with_its_file(teacher: Path) -> None:
    old, new = re.findall(r"change `([^`]+)` to\n`([^`]+)`", GUIDE)[0]
    assert old in LESSON
    (teacher / FILE).write_text(LESSON.replace(old, new), "utf-8")
    said = checked(teacher)
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
    assert START.strip() in (ROOT / "README.md").read_text("utf-8")
