"""Lessons as files: the own ones are whole, and every mistake is named with its file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpsim.checks import InputError
from dpsim.directives import Chart, Code, Compare, Exercise, Predict, Stage
from dpsim.lessons import MAX_LESSON_BYTES, MAX_LESSONS, OWN, Lesson, Prose, lessons, read_lesson
from dpsim.scenario import Scenario

HEADER = """+++
title = "Small"
order = 3
minutes = 1
summary = "With {{R}} ranks."
covers = ["S1"]
scenario = "chapter-19-2"

[objectives]
sums = "Add up"

[variants.naive]
reduction = "mean_of_rank_means"
+++

"""

PREDICT = """```predict
id = "guess"
objective = "sums"
kind = "number"
question = "How many?"
answer = "R"
tolerance = 0.1
feedback = "Yes"
other = "No"

[[wrong]]
figure = "R @ first-screen"
feedback = "That is another run"
```
"""

PRACTICE = """```exercise
item = "x-C1"
objective = "sums"
```
"""

CHOOSE = """```exercise
id = "choose"
objective = "sums"
kind = "choose-one"
question = "Which?"

[[option]]
text = "This"
feedback = "Yes"
right = true

[[option]]
text = "That"
feedback = "No"
```
"""

WHOLE = (
    HEADER
    + "## First\n\nThere are {{R}} ranks, `{{N}}` and $g = {{after}}$.\n\n"
    + PREDICT
    + "\n"
    + CHOOSE
    + "\n## Second screen\n\n"
    + '```stage\nscenario = "naive"\nbeat = "barrier"\ncaption = "Look"\n```\n'
    + '```compare\nscenario = "first-screen"\n```\n'
    + '```chart\nshow = "weight"\nways = ["mean_of_rank_means"]\n```\n'
    + '```code\nfile = "one_step.py"\nregion = "step"\n```\n'
)


def refused(text: str, file: str = "small.md") -> str:
    """What is said about a lesson that cannot be read."""
    with pytest.raises(InputError) as caught:
        read_lesson(file, text)
    return str(caught.value)


def changed(old: str, new: str) -> str:
    """The whole lesson with one place changed."""
    assert WHOLE.count(old) >= 1
    return WHOLE.replace(old, new, 1)


def line_with(text: str, part: str) -> int:
    """The line of a text on which something stands first."""
    return text[: text.index(part)].count("\n") + 1


def test_a_lesson_is_read_whole() -> None:
    lesson = read_lesson("small.md", WHOLE)
    assert (lesson.slug, lesson.title, lesson.covers) == ("small", "Small", ("S1",))
    first, second = lesson.screens
    assert (first.slug, second.slug) == ("first", "second-screen")
    assert [type(block) for block in first.blocks] == [Prose, Predict, Exercise]
    assert [type(block) for block in second.blocks] == [Stage, Compare, Chart, Code]
    stage, comparison, _, code = second.blocks
    assert isinstance(stage, Stage)
    assert stage.scenario.reduction == "mean_of_rank_means"
    assert isinstance(comparison, Compare)
    assert comparison.scenario.name == "first-screen"
    assert isinstance(code, Code)
    assert code.region in code.whole
    assert "region" not in code.region


def test_a_file_with_windows_line_ends_is_the_same_lesson() -> None:
    lesson = read_lesson("small.md", WHOLE.replace("\n", "\r\n"))
    assert lesson.screens == read_lesson("small.md", WHOLE).screens


def test_keys_lie_on_top_of_the_lesson_s_scenario() -> None:
    text = changed('scenario = "naive"', "scenario = { optimizer = { learning_rate = 0.5 } }")
    stage = read_lesson("small.md", text).screens[1].blocks[0]
    assert isinstance(stage, Stage)
    base: Scenario = read_lesson("small.md", text).setting.scenario
    assert stage.scenario.optimizer.learning_rate == 0.5
    assert stage.scenario.model == base.model


MISTAKES = [
    ("```stage", "```video", "directive: must be one of stage, predict, exercise, "),
    ("```stage", "```", "directive: must be one of"),
    ('scenario = "naive"', 'scenario = "nope"', "stage.scenario: scenario: must be one of naive, "),
    ('scenario = "naive"', "scenario = { steps = 0 }", "stage.scenario: steps: must be a whole number"),
    ('beat = "barrier"', 'beat = "lunch"', "stage.beat: must be one of start, scatter, "),
    ('beat = "barrier"', 'best = "barrier"', "stage.best: unknown key; known are scenario, beat, caption"),
    ('beat = "barrier"', "beat = ", "stage: must be TOML (Invalid value (at line"),
    ("{{R}} ranks,", "{{Q}} ranks,", "figure: must be one of R, N, "),
    ("{{R}} ranks,", "{{R @ nope}} ranks,", "scenario: must be one of naive, first-screen, "),
    ("{{R}} ranks,", "{{valid.7}} ranks,", "figure: must name a rank from 0 to 1"),
    ("{{R}} ranks,", "{{R} ranks,", "must close every {{ with }}"),
    ("{{R}} ranks,", "<b>two</b> ranks,", "must hold no HTML, got '<b>two</b> ranks"),
    ("{{R}} ranks,", "two</b> ranks,", "must hold no HTML"),
    ("{{R}} ranks,", "<!-- --> ranks,", "must hold no HTML"),
    ("{{R}} ranks,", "![x](http://x/y.png) ranks,", "must hold no image"),
    ("{{R}} ranks,", "[x](javascript:alert) ranks,", "must link to https://…"),
    ("{{R}} ranks,", "[x]( JavaScript:alert) ranks,", "must link to https://…"),
    ("{{R}} ranks,", "[x](//elsewhere) ranks,", "must link to https://…"),
    ("{{R}} ranks,", "[x](&#106;avascript:alert) ranks,", "must link to https://…"),
    ('kind = "number"', 'kind = "essay"', "predict.kind: must be one of choose-one, choose-several, order, "),
    ('answer = "R"', 'answer = "colour"', "predict.answer: figure: must be one of R, N, "),
    ('answer = "R"', 'answer = "after"', "predict.answer: figure: must be one number"),
    ('other = "No"', "", "predict.other: is needed"),
    ("tolerance = 0.1", "tolerance = 0", "predict.tolerance: must be a finite number above 0"),
    ("tolerance = 0.1", "tolerance = 1", "predict.wrong: must lie more than three tolerances"),
    ('objective = "sums"', 'objective = "other"', "must be one of sums, got 'other'"),
    ('objective = "sums"', "objective = 3", "predict.objective: must be one line of at most 100 characters"),
    ('text = "That"\nfeedback = "No"', 'text = "That"', "exercise.option[1].feedback: is needed"),
    ('text = "That"', 'text = "That"\nright = true', "exercise.option: must be two to 6 tables"),
    ('text = "That"', 'text = "<i>That</i>"', "exercise.option[1].text: must hold no HTML"),
    ('id = "choose"', 'id = "guess"', "question guess: must have a name of its own"),
    ('id = "choose"', 'id = "Choose it"', "exercise.id: must be small letters"),
    ("## Second screen", "## First", "screen first: must have a name of its own"),
    ("## First\n", "Prose\n\n## First\n", "must start a screen with ## before anything else, got 'Prose'"),
    ('show = "weight"', 'show = "hope"', "chart.show: must be one of weight, error, loss"),
    ('["mean_of_rank_means"]', '["one_device"]', "chart.ways[0]: must be one of token_weighted, "),
    ('file = "one_step.py"', 'file = "../app.py"', "code.file: must be the name of a .py file in examples/"),
    ('file = "one_step.py"', 'file = "nope.py"', "code.file: must be a file that can be read"),
    ('region = "step"', 'region = "nope"', "code.region: must be one of start, all-reduce, step, checks"),
    ('```code\nfile', '```stage\n```\n```code\nfile', "screen second-screen: must have one stage at most"),
    ('title = "Small"', "", "header.title: is needed"),
    ('title = "Small"', 'title = "Small"\ncolour = 1', "header.colour: unknown key; known are "),
    ('title = "Small"', 'title = "Small', "header: must be TOML"),
    ("order = 3", 'order = "last"', "header.order: must be a finite number"),
    ("minutes = 1", "minutes = 0", "header.minutes: must be a whole number from 1 to 60"),
    ('covers = ["S1"]', 'covers = ["chapter"]', "header.covers: must list statements such as S1"),
    ('scenario = "chapter-19-2"', 'scenario = "nope"', "header.scenario: preset: must be one of "),
    ('scenario = "chapter-19-2"', "", "header.scenario: scenario: must be a preset's name"),
    ('reduction = "mean_of_rank_means"', 'reduction = "x"', "header.variants.naive: reduction: must be"),
    ("summary = \"With {{R}} ranks.\"", 'summary = "<b>"', "header.summary: must hold no HTML"),
    ('sums = "Add up"', "sums = 3", "header.objectives.sums: must be text"),
    ("+++\ntitle", "title", "line 1: must start with a TOML header"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"), MISTAKES, ids=[f"{m[1][:24]}-{i}" for i, m in enumerate(MISTAKES)]
)
def test_a_mistake_is_named_with_its_file_and_what_was_expected(old: str, new: str, message: str) -> None:
    said = refused(changed(old, new))
    assert said.startswith("small.md")
    assert message in said


def test_a_mistake_in_prose_or_in_a_directive_names_its_line() -> None:
    text = changed("{{R}} ranks,", "{{Q}} ranks,")
    assert refused(text).startswith(f"small.md, line {line_with(text, '{{Q}}')}: ")
    text = changed('beat = "barrier"', 'beat = "lunch"')
    assert refused(text).startswith(f"small.md, line {line_with(text, '```stage')}: stage.beat: ")
    text = changed('beat = "barrier"', "beat = ")
    assert f"(at line {line_with(text, 'beat = ')}, " in refused(text)
    text = changed("order = 3", "order = ")
    assert f"(at line {line_with(text, 'order = ')}, " in refused(text)


def test_a_block_that_is_not_closed_is_named() -> None:
    text = WHOLE.rstrip().removesuffix("```")
    assert refused(text).startswith(f"small.md, line {line_with(text, '```code')}: must close its block")


def test_a_lesson_needs_screens() -> None:
    assert "must have 1 to 40 screens" in refused(HEADER)


def test_a_file_s_name_is_its_link() -> None:
    assert "must be named in small letters" in refused(WHOLE, "Small Lesson.md")


def test_the_own_lessons_are_whole_and_in_their_order() -> None:
    found = lessons()
    assert list(found) == [
        "one-step", "who-sees-what", "whose-tokens-count", "accumulation", "the-ring-by-hand", "the-barrier",
        "hiding-the-talk", "on-your-devices", "what-next",
    ]  # fmt: skip
    assert all(isinstance(lesson, Lesson) for lesson in found.values())
    assert len(found) == len(list(OWN.glob("*.md")))


def test_a_folder_of_own_lessons_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.md").write_text(WHOLE, "utf-8")
    (tmp_path / "broken.md").write_text(WHOLE.replace("```stage", "```video"), "utf-8")
    (tmp_path / "one-step.md").write_text(WHOLE, "utf-8")
    (tmp_path / "large.md").write_text("x" * (MAX_LESSON_BYTES + 1), "utf-8")
    (tmp_path / "latin.md").write_bytes(b"\xff\xfe")
    (tmp_path / os.fsdecode(b"sm\xe4ll.md")).touch()
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path))
    found = lessons()
    assert list(found)[:4] == ["one-step", "who-sees-what", "small", "whose-tokens-count"]
    assert isinstance(found["one-step"], Lesson)
    assert found["one-step"].title == "One step"
    assert "must be one of stage" in str(found["broken"])
    assert "must not have the name of another lesson" in str(found["one-step.md"])
    assert f"must have at most {MAX_LESSON_BYTES} bytes" in str(found["large"])
    assert "must be UTF-8" in str(found["latin"])
    assert "sm\\xe4ll.md" in str(found["sm\\xe4ll"]), "a name that can be shown on a page"


def test_a_folder_that_is_none_or_too_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path / "nowhere"))
    assert "DPSIM_LESSONS: must name a folder" in str(lessons()["DPSIM_LESSONS"])
    monkeypatch.setenv("DPSIM_LESSONS", "n" * 5000)
    assert "DPSIM_LESSONS: must name a folder" in str(lessons()["DPSIM_LESSONS"])
    for i in range(MAX_LESSONS + 1):
        (tmp_path / f"a{i}.md").touch()
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path))
    found = lessons()
    assert f"must hold at most {MAX_LESSONS} lessons" in str(found["DPSIM_LESSONS"])
    assert isinstance(found["one-step"], Lesson)
