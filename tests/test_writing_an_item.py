"""docs/writing-an-item.md, followed to the letter."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import Capture, answer, complaint
from guides import Guide
from own_files import SMALL, WHOLE, refused
from streamlit.testing.v1 import AppTest
from test_app import APP

from dpsim.cli import main
from dpsim.exercises import items, topics, variant
from dpsim.exercises.own import MOST_FILES, TITLE, TOPIC, in_texts
from dpsim.formula import FUNCTIONS
from dpsim.own_items import MOST_BYTES, MOST_ITEMS
from dpsim.wording import number

ROOT = Path(__file__).parent.parent
FOLLOWED = Guide("writing-an-item.md", "yaml", "DPSIM_ITEMS")
GUIDE, FILE, ITEM = FOLLOWED.text, FOLLOWED.file, FOLLOWED.example


@pytest.fixture
def teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a teacher stands who has carried out the steps so far."""
    monkeypatch.setenv("DPSIM_ITEMS", FOLLOWED.followed(tmp_path))
    return tmp_path


def test_the_exercise_of_the_guide_passes_the_check(teacher: Path) -> None:
    said = FOLLOWED.checked(teacher)
    assert (said.returncode, said.stderr) == (0, "")
    (promised,) = re.findall(r"ends with `([^`]+)`", GUIDE)
    assert said.stdout.endswith(f"{promised}\n")
    assert said.stdout.startswith("own-padding: What padding costs\nA micro-batch has ")


def test_the_mistake_of_the_guide_is_named_with_its_file_and_line(teacher: Path) -> None:
    old, new = re.findall(r"change `([^`]+)` to\s`([^`]+)`", GUIDE)[0]
    assert old in ITEM
    (teacher / FILE).write_text(ITEM.replace(old, new), "utf-8")
    line = ITEM[: ITEM.index(old)].count("\n") + 1
    expected = (
        f"{FILE}, line {line}: let.slots: must have one of rows, longest, mean at column 8, got 'longst'"
    )
    said = FOLLOWED.checked(teacher)
    assert (said.returncode, said.stderr) == (1, "")
    assert expected in said.stdout.split("\n")
    app = opened()
    assert not app.exception
    assert f"counting\\.yaml, line {line}" in app.error[0].value
    assert "own-padding" not in items()
    assert len(app.subheader) == len(topics())


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=30).switch_page("pages/practice.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def test_it_opens_at_the_address_that_the_guide_names_with_numbers_that_are_right(teacher: Path) -> None:
    (address,) = re.findall(r"its address is `/practice\?item=([a-z-]+)`", GUIDE)
    seed = next(str(i) for i in range(9) if variant(address, str(i)).kind == "number")
    app = opened(item=address, seed=seed)
    assert not app.exception
    assert app.title[0].value == "What padding costs"
    rows, mean, longest = map(int, re.findall(r"[0-9]+", app.text_input[0].label))
    padding = sum(longest - mean for _ in range(rows)) / (rows * longest)
    app.text_input[0].set_value(f"{padding:.1%}")
    app.button(key=f"practice/{address}/{seed}:give").click().run()
    assert "**Right.**" in app.success[0].value
    assert any(number(100 * padding) in block.value for block in app.markdown)


def test_the_guide_names_every_key_every_topic_and_every_function(teacher: Path) -> None:
    said = refused(SMALL.replace("tolerance: 0.1", "tolerance: 0.1\n  tolerances: 0.1"))
    known = re.findall(r"known are (.*), got", said)[0].split(", ")
    assert re.findall(r"^\| `([a-z]+)` \|", GUIDE, re.MULTILINE) == known
    (named,) = re.findall(r"^\*\*Topics\*\* are (.*)\.$", GUIDE, re.MULTILINE)
    assert re.findall("`([a-z-]+)`", named) == [*topics(), TOPIC]
    assert f"under *{TITLE}*" in GUIDE
    assert all(f"`{name}`" in GUIDE for name in FUNCTIONS)
    assert (
        f"At most {MOST_ITEMS} exercises to a file of {MOST_BYTES // 1000} kB, and {MOST_FILES} files."
        in GUIDE
    )


def test_the_link_of_the_guide_leads_to_the_lab() -> None:
    (link,) = re.findall(r"takes numbers as well: `([^`]+)`", GUIDE)
    text = re.sub(r"  link: .*", f"  link: {link}", WHOLE)
    assert in_texts({"mine.yaml": text}).mistakes == ()


def test_the_app_is_started_by_the_readme_s_command() -> None:
    assert FOLLOWED.commands[2].strip() in (ROOT / "README.md").read_text("utf-8")


def test_the_command_answers_in_json(teacher: Path, capsys: Capture) -> None:
    (teacher / "more.yaml").write_text(SMALL, "utf-8")
    said = answer(capsys, "items", teacher / FILE, teacher / "more.yaml")
    padding, small = said["items"]
    assert said["mistakes"] == []
    assert (padding["id"], small["id"]) == ("own-padding", "own-small")
    assert small["source"] == f"{teacher}/more.yaml, line 1"
    assert small["question"] == f"What is twice {small['answer'] / 2:.0f}?"
    assert small["wrong"] == [
        {"value": (small["answer"] / 2) ** 2, "feedback": "That is its square.", "misconception": ""}
    ]
    assert said["text"].endswith("2 items can be asked, 0 mistakes")


def test_the_command_names_every_mistake_and_shows_what_works(teacher: Path, capsys: Capture) -> None:
    broken = WHOLE.replace("formula: size", "formula: sise") + SMALL + SMALL
    (teacher / "broken.yaml").write_text(broken.replace("by-hand/bytes", "by-hand/bites"), "utf-8")
    (teacher / "lost.yaml").write_text(WHOLE.replace("by-hand/bytes", "by-hand/bites"), "utf-8")
    code = main(["items", str(teacher / "broken.yaml"), str(teacher / "lost.yaml"), "--json"])
    printed = capsys.readouterr()
    assert (code, printed.err) == (1, "")
    said = json.loads(printed.out)
    assert [item["id"] for item in said["items"]] == ["own-small", "own-ring"]
    assert [re.findall(r"(\w+\.yaml, line \d+: \S+):", mistake)[0] for mistake in said["mistakes"]] == [
        "broken.yaml, line 18: wrong[0].formula",
        "broken.yaml, line 47: id",
        "lost.yaml, line 1: objective",
    ]


def test_a_file_that_cannot_be_read_is_a_wrong_call(tmp_path: Path, capsys: Capture) -> None:
    assert "FILE: must be a file that can be read" in complaint(capsys, "items", tmp_path / "none.yaml")
    (tmp_path / "odd.yaml").write_bytes(b"\xff")
    assert "FILE: must be UTF-8 text" in complaint(capsys, "items", tmp_path / "odd.yaml")
    assert "arguments" in complaint(capsys, "items")
