"""Exercises that a teacher wrote: drawn and worked out as their file says, and in the bank like any other."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from own_files import SMALL, WHOLE, read
from streamlit.testing.v1 import AppTest
from test_app import APP
from test_lessons import HEADER

from dpsim.checks import InputError
from dpsim.content_check import check
from dpsim.exercises import items, mistakes, topics, variant, variant_of
from dpsim.exercises.own import MOST_FILES
from dpsim.forms import from_query
from dpsim.lessons import Lesson, lessons
from dpsim.own_items import MOST_BYTES
from dpsim.prose import literal
from dpsim.questions import Asked, grade
from dpsim.wording import number


def asked(text: str, seed: str, kind: str = "number") -> Asked:
    found = read(text)
    assert not found.mistakes
    return variant_of(found.items[0], seed, kind)


def test_an_item_is_what_its_file_says() -> None:
    (item,) = read(WHOLE).items
    assert (item.id, item.title, item.topic) == ("own-ring", "What a rank sends", "ring")
    assert (item.objective, item.source) == ("the-ring-by-hand/bytes", "mine.yaml, line 1")
    assert item.kinds == ("number", "choose-one")
    (small,) = read(SMALL).items
    assert (small.topic, small.objective) == ("own", "")
    assert small.kinds == ("number",)  # one mistake and the answer are no choice


def drawn(seed: str) -> tuple[Fraction, Fraction]:
    """Ranks and size of a variant, read from its question."""
    words = asked(WHOLE, seed).question.split()
    return Fraction(words[words.index("ranks.") - 1]), Fraction(words[words.index("MB") - 1])


def test_every_variant_is_worked_out_from_the_numbers_in_its_question() -> None:
    seen = set()
    for seed in map(str, range(60)):
        one = asked(WHOLE, seed)
        ranks, size = drawn(seed)
        seen.add((ranks, size))
        assert ranks in (4, 8, 16)
        assert size in range(20, 401, 20)
        answer = 2 * (ranks - 1) * size / ranks
        assert (one.answer, one.unit) == (float(answer), "MB")
        assert one.tolerance == pytest.approx(answer / 100)
        assert [slip.value for slip in one.wrong] == [float(size), float(answer / 2)]
        assert [slip.misconception for slip in one.wrong] == ["", "M8"]
        chunk = number(float(size / ranks))
        assert one.feedback == f"In {2 * (ranks - 1)} rounds a chunk of {chunk} MB each."
        assert one.solution == (
            rf"A chunk is $\frac{{{size}}}{{{ranks}}} = {{{chunk}}}$ MB."
            "\n\n"
            rf"There are {2 * ranks - 2} rounds, as $\sum_{{i=1}}^{{n}} x_{{i}}$ has it."
        )
        query = dict(parse_qsl(one.link))
        assert query.pop("beat") == "allreduce.b0.r0"
        scenario = from_query(query)
        assert scenario.world_size == scenario.batch.count == ranks  # the preset is fitted to them
        assert scenario.network.gradient_bytes == float(size) * 1e6
    assert len(seen) > 20


def test_answers_and_mistakes_hear_their_own_words() -> None:
    one = asked(WHOLE, "a")
    assert grade(one, one.exact).right
    assert grade(one, number(one.wrong[0].value)).feedback == one.wrong[0].feedback
    assert grade(one, "98765").feedback == one.other
    options = asked(WHOLE, "a", "choose-one").options
    assert {option.text for option in options} == {one.exact, *(f"{number(s.value)} MB" for s in one.wrong)}


def test_the_same_seed_asks_the_same() -> None:
    assert asked(WHOLE, "x") == asked(WHOLE, "x")
    assert len({asked(WHOLE, str(i)).question for i in range(20)}) > 5


def test_numbers_that_collide_are_drawn_again() -> None:
    text = SMALL.replace("[3, 5, 7, 9]", "[1, 2, 3, 4, 5, 6]").replace("2 * n", "2 * n / (n - 1)")
    answers = {asked(text, str(i)).answer for i in range(40)}
    assert answers == {8 / 3, 2.5, 2.4}  # of 1 there is none, of 2 it is the square, and 3 is in the question


def test_a_percentage_is_one_of_the_answer_whatever_its_sign() -> None:
    text = SMALL.replace("[3, 5, 7, 9]", "[-3, -5]").replace("0.1", "2.5%")
    assert {(one.answer, one.tolerance) for one in (asked(text, str(i)) for i in range(20))} == {
        (-6.0, 0.15),
        (-10.0, 0.25),
    }


def test_steps_and_lists_hold_fractions_exactly() -> None:
    text = SMALL.replace("[3, 5, 7, 9]", "{from: 0.1, to: 1, step: 0.1}").replace("0.1\n", "0.001\n")
    seen = {asked(text, str(i)).answer for i in range(200)}
    assert seen == {float(Fraction(i, 5)) for i in range(1, 11)} - {0.0}
    text = SMALL.replace("[3, 5, 7, 9]", "[1/3, 2^-10]").replace("0.1\n", "0.0001\n")
    assert {asked(text, str(i)).answer for i in range(20)} == {2 / 3, 2**-9}


def test_a_text_may_be_quoted_or_plain_and_keys_are_just_text() -> None:
    text = SMALL.replace("    n: [", "    no: [").replace("{n}", "{no}").replace("* n", "* no")
    text = text.replace("n ^ 2", "'no ^ 2'").replace("n + n", "no + no")
    text = text.replace("What is twice {no}?", '"What: is twice {no}?"')
    assert asked(text, "a").question.startswith("What: is twice ")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A folder that DPSIM_ITEMS names, with these files."""
    monkeypatch.setenv("DPSIM_ITEMS", str(tmp_path))

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
        return tmp_path

    return write


def test_the_bank_takes_the_folder_s_items_in_and_notices_changes(folder: Callable[..., Path]) -> None:
    before = list(items())
    assert "own" not in topics()
    place = folder(a=SMALL)
    assert list(items()) == [*before, "own-small"]
    assert list(topics())[-1] == "own"
    assert variant("own-small", "a").question.startswith("What is twice ")
    folder(a=SMALL.replace("twice {n}", "the double of {n}"))
    assert variant("own-small", "a").question.startswith("What is the double of ")
    folder(b=WHOLE)
    found = [item.topic for item in items().values()]
    assert found == sorted(found, key=list(topics()).index)
    (place / "a.yaml").unlink()
    assert set(items()) == {*before, "own-ring"}
    assert "own" not in topics()
    with pytest.raises(InputError, match="must be the id of an exercise"):
        variant("own-small", "a")


def test_files_of_other_kinds_and_hidden_ones_are_left_alone(folder: Callable[..., Path]) -> None:
    place = folder()
    (place / "notes.txt").write_text("- [", "utf-8")
    (place / ".draft.yaml").write_text("- [", "utf-8")
    (place / "short.yml").write_text(SMALL, "utf-8")
    assert "own-small" in items()
    assert mistakes() == ()


def test_what_cannot_be_read_is_named_and_the_rest_works(folder: Callable[..., Path]) -> None:
    place = folder(good=SMALL, long="#" * (MOST_BYTES + 1))
    (place / "bytes.yaml").write_bytes(b"- id: \xff")
    (place / "gone.yaml").symlink_to(place / "nowhere")
    (place / "inner.yaml").mkdir()
    os.mkfifo(place / "pipe.yaml")
    (place / os.fsdecode(b"sm\xe4ll.yaml")).write_text("[", "utf-8")
    assert "own-small" in items()
    fields = [(error.field, error.rule) for error in mistakes()]
    names = ["bytes.yaml", "gone.yaml", "inner.yaml", "long.yaml", "pipe.yaml"]
    assert [field for field, _ in fields][:5] == names
    assert fields[4][1] == fields[2][1] == "must be a file"
    assert fields[5][0].startswith("sm\\xe4ll.yaml"), "a name that can be shown on a page"
    assert "must be UTF-8 text" in fields[0][1]
    assert "must be a file that can be read" in fields[1][1]
    assert f"must have at most {MOST_BYTES} bytes" in fields[3][1]


def test_a_folder_that_is_none_or_holds_too_many_files_is_named(
    folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(**{f"f{i}": "- a" for i in range(MOST_FILES + 1)})
    assert str(mistakes()[0]) == f"DPSIM_ITEMS: must hold at most {MOST_FILES} files, got {MOST_FILES + 1}"
    for named in (place / "nowhere", place / "f0.yaml"):
        monkeypatch.setenv("DPSIM_ITEMS", str(named))
        assert "DPSIM_ITEMS: must name a folder" in str(mistakes()[0])
    monkeypatch.setenv("DPSIM_ITEMS", "")
    assert mistakes() == ()


def test_looking_for_changes_is_quick(folder: Callable[..., Path]) -> None:
    folder(**{f"f{i}": SMALL.replace("own-small", f"own-{i}") for i in range(MOST_FILES)})
    items()
    started = time.process_time()
    for _ in range(50):
        items()
    assert time.process_time() - started < 1


def practice(item: str = "", seed: str = "a") -> AppTest:
    app = AppTest.from_file(APP, default_timeout=30).switch_page("pages/practice.py")
    if item:
        app.query_params["item"], app.query_params["seed"] = item, seed
    return app.run()


def test_practice_shows_the_items_and_the_mistakes(folder: Callable[..., Path]) -> None:
    folder(good=SMALL, bad=WHOLE.replace("{size} MB", "{<b>*x*</b>} MB"))
    app = practice()
    assert not app.exception
    (said,) = [error.value for error in app.error]
    assert said == literal(str(mistakes()[0]))
    assert "bad\\.yaml, line 12" in said
    assert "<b>" not in said
    assert app.subheader[-1].value == literal("From your teacher")
    app.button(key="open/own-small").click().run()
    assert app.title[0].value == "Twice"


def test_an_own_item_is_practised_like_any_other(folder: Callable[..., Path]) -> None:
    folder(a=WHOLE)
    one = variant("own-ring", "seed 2")
    app = practice("own-ring", "seed 2")
    assert not app.exception
    assert one.kind == "number"
    assert app.text_input[0].label == one.question
    place = "practice/own-ring/seed 2"
    app.text_input[0].set_value(number(one.wrong[1].value))
    app.button(key=f"{place}:give").click().run()
    assert one.wrong[1].feedback in app.warning[0].value
    app.text_input[0].set_value(number(one.answer))
    app.button(key=f"{place}:give").click().run()
    assert one.feedback in app.success[0].value
    assert one.solution in [block.value for block in app.markdown]
    links = [link.proto.label for link in app.get("page_link")]
    assert "See the lesson" in links
    assert "See exactly this on the stage" in links


LESSON = HEADER + '## First\n\n```exercise\nitem = "own-small"\nobjective = "sums"\n```\n'


def test_a_lesson_names_an_own_item_and_says_so_when_it_is_gone(
    folder: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(a=SMALL)
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "small.md").write_text(LESSON, "utf-8")
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path / "lessons"))
    lesson = lessons()["small"]
    assert isinstance(lesson, Lesson)
    assert lesson.screens[0].practices[0].item == "own-small"
    app = AppTest.from_file(APP, default_timeout=30).switch_page("pages/lesson.py")
    app.query_params["lesson"] = "small"
    app.run()
    assert not app.exception
    assert app.text_input[0].label.startswith("What is twice ")
    (place / "a.yaml").unlink()
    gone = lessons()["small"]
    assert isinstance(gone, InputError)
    assert "small.md, line 18: exercise.item: must be one of" in str(gone)


def test_the_content_check_covers_the_folder(folder: Callable[..., Path]) -> None:
    lost = WHOLE.replace("gradient once", "[gradient](/lesson?lesson=two-steps) once")
    folder(
        a=WHOLE.replace("by-hand/bytes", "by-hand/bites"),
        b="- [",
        c=lost.replace("own-ring", "own-lost"),
        d=SMALL,
    )
    assert check() == [
        "b.yaml, line 1: must be YAML (while parsing a flow node, expected the node content, but found "
        "'<stream end>', at column 4), got '- ['",
        "a.yaml, line 1: objective: must be one of a lesson's, got 'the-ring-by-hand/bites'",
        "c.yaml, line 1: must link to a lesson that exists, got '/lesson?lesson=two-steps'",
    ]


def test_progress_knows_an_own_item_by_its_title_and_by_its_id_when_it_is_gone(
    folder: Callable[..., Path],
) -> None:
    from dpsim.ui.progress_names import title

    place = folder(a=SMALL)
    assert title("own-small") == "Twice"
    (place / "a.yaml").unlink()
    assert title("own-small") == "own-small"


def test_what_is_drawn_can_be_written_as_json() -> None:
    one = asked(WHOLE, "a")
    assert json.loads(json.dumps(one.__dict__, default=vars, allow_nan=False))["answer"] == one.answer
