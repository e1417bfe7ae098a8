"""Exports of the bank: every item is read back from both formats, and says what the bank says.

The readers are in platforms.py; none of them shares code with the writers.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from platforms import Read, gift, meant, moodle, multiple_grade, numerical_answer, seen

from dpsim.exercises import items, topics, variant
from dpsim.exports import export
from dpsim.questions import Asked, grade
from dpsim.typed_number import units_for

READERS = {"moodle": moodle, "gift": gift}
VARIANTS = 5
ITEMS = [name for name, item in items().items() if item.kinds != ("ring",)]
NUMBERS = [name for name in ITEMS if items()[name].kinds[0] == "number"]

each_format = pytest.mark.parametrize("form", READERS)


def of_kind(kind: str) -> list[str]:
    return [name for name in ITEMS if items()[name].kinds[0] == kind]


@cache
def exported(form: str) -> dict[str, list[Read]]:
    """What was read of the whole bank, by item."""
    found: dict[str, list[Read]] = {name: [] for name in ITEMS}
    for question in READERS[form](export(form, variants=VARIANTS).text):
        found[question.id.removeprefix("dpsim-").rpartition("-")[0]].append(question)
    return found


def read(form: str, item: str) -> list[tuple[Read, Asked]]:
    """Every question of an item beside what the bank asks for the same seed."""
    pairs = [
        (question, variant(item, question.id.rpartition("-")[2], items()[item].kinds[0]))
        for question in exported(form)[item]
    ]
    assert pairs
    return pairs


@each_format
@pytest.mark.parametrize("item", ITEMS)
def test_every_item_keeps_its_words_its_place_and_its_name(form: str, item: str) -> None:
    for question, asked in read(form, item):
        seed = question.id.rpartition("-")[2]
        assert question.id == f"dpsim-{item}-{seed}"
        assert question.name == f"{item} seed {seed} ({items()[item].title})"
        assert question.category == f"$course$/top/dpsim/{topics()[items()[item].topic]}"
        assert question.tags == ("dpsim", item)
        assert seen(question.text).startswith(meant(asked.question).removesuffix("</p>"))
        assert meant(asked.solution) in seen(question.general)


@each_format
@pytest.mark.parametrize("item", NUMBERS)
def test_a_number_keeps_its_answer_its_tolerance_and_the_words_for_every_mistake(
    form: str, item: str
) -> None:
    for question, asked in read(form, item):
        assert question.kind == "numerical"
        right, *known, other = question.answers
        assert float(right.text) == pytest.approx(asked.answer, rel=1e-14)
        assert [float(answer.text) for answer in known] == pytest.approx(
            [s.value for s in asked.wrong], rel=1e-14
        )
        assert [a.percent for a in question.answers] == [100] + [0] * (len(asked.wrong) + 1)
        for answer in (right, *known):
            assert answer.tolerance == pytest.approx(asked.tolerance, rel=1e-14)
        said = [asked.feedback, *(slip.feedback for slip in asked.wrong), asked.other]
        assert [seen(answer.feedback) for answer in question.answers] == [meant(text) for text in said]
        assert other.text == "*"
        if form == "moodle":
            assert question.text == asked.question
            assert [name for name, _ in question.units] == list(units_for(asked.unit))
            assert question.units[:1] == (((asked.unit, 1.0),) if asked.unit else ())
        elif asked.unit:
            assert question.text.endswith(f"\n\nType the number alone, without its unit ({asked.unit}).")
        else:
            assert question.text == asked.question


@each_format
@pytest.mark.parametrize("item", NUMBERS)
def test_numbers_are_graded_as_the_bank_grades_them(form: str, item: str) -> None:
    for question, asked in read(form, item):
        for value in (asked.answer, *(slip.value for slip in asked.wrong), 98765.4, -98765.4):
            edges = [
                value + sign * asked.tolerance * s
                for sign in (1, -1)
                for s in (0, 0.5, 1 - 1e-9, 1, 1 + 1e-6)
            ]
            for typed in edges:
                verdict, answer = grade(asked, repr(typed)), numerical_answer(question, typed)
                assert (answer.percent == 100) == verdict.right, (typed, asked)
                assert seen(answer.feedback) == meant(verdict.feedback)


@pytest.mark.parametrize("item", [name for name in NUMBERS if variant(name, "1", "number").unit])
def test_a_unit_may_be_typed_in_moodle_as_in_the_app(item: str) -> None:
    for question, asked in read("moodle", item):
        for unit, multiplier in question.units:
            for value in (asked.answer, *(slip.value for slip in asked.wrong)):
                typed = value * multiplier
                verdict, answer = grade(asked, f"{typed!r} {unit}"), numerical_answer(question, typed, unit)
                if (
                    unit == asked.unit or value == asked.answer
                ):  # Moodle forgives a wrong unit, the app does not
                    assert (answer.percent == 100) == verdict.right
                    assert seen(answer.feedback) == meant(verdict.feedback)


@each_format
@pytest.mark.parametrize("item", of_kind("choose-one"))
def test_a_choice_keeps_its_options_the_right_one_and_all_feedback(form: str, item: str) -> None:
    for question, asked in read(form, item):
        assert question.kind == "single"
        assert [seen(answer.text) for answer in question.answers] == [meant(o.text) for o in asked.options]
        assert [seen(answer.feedback) for answer in question.answers] == [
            meant(o.feedback) for o in asked.options
        ]
        assert [answer.percent for answer in question.answers] == [100 * o.right for o in asked.options]


@each_format
@pytest.mark.parametrize("item", of_kind("choose-several"))
def test_of_several_all_right_ones_are_full_marks_and_one_wrong_one_is_none(form: str, item: str) -> None:
    for question, asked in read(form, item):
        assert question.kind == "multiple"
        assert [seen(answer.text) for answer in question.answers] == [meant(o.text) for o in asked.options]
        assert [seen(answer.feedback) for answer in question.answers] == [
            meant(o.feedback) for o in asked.options
        ]
        right = {i for i, option in enumerate(asked.options) if option.right}
        for size in range(len(asked.options) + 1):
            for chosen in map(set, combinations(range(len(asked.options)), size)):
                share = multiple_grade(question, chosen)
                part = 0 if chosen - right else len(chosen) / len(right)
                assert share == pytest.approx(part, abs=1e-6)  # the bank: all or nothing
                assert grade(asked, ",".join(map(str, sorted(chosen)))).right == (part == 1)
        whole = question.right if form == "moodle" else question.general
        assert meant(asked.feedback) in seen(whole)


@each_format
@pytest.mark.parametrize("item", of_kind("order"))
def test_steps_are_matched_with_their_places(form: str, item: str) -> None:
    for question, asked in read(form, item):
        assert question.kind == "matching"
        places = ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th"][: len(asked.options)]
        found = {answer.text: answer.stem for answer in question.answers}
        assert [seen(found[place]) for place in places] == [meant(o.text) for o in asked.options]
        assert [answer.text for answer in question.answers] != places  # not shown in the right order
        whole = question.right if form == "moodle" else question.general
        assert meant(asked.feedback) in seen(whole)
        for option in asked.options:
            assert meant(option.feedback)[3:-4] in seen(question.general)


@each_format
@pytest.mark.parametrize("item", of_kind("cell"))
def test_a_cell_is_chosen_among_the_known_ones_and_two_others(form: str, item: str) -> None:
    for question, asked in read(form, item):
        assert question.kind == "single"
        cells = [
            ".".join(w for w in a.text.replace(",", "").split() if w.isdigit()) for a in question.answers
        ]
        assert len(set(cells)) == len(cells) >= 4
        for cell, answer in zip(cells, question.answers, strict=True):
            assert all(0 <= int(part) < asked.answer for part in cell.split("."))
            verdict = grade(asked, cell)
            assert answer.percent == 100 * verdict.right
            assert seen(answer.feedback) == meant(verdict.feedback)
        assert {option.text for option in asked.options} < set(cells)


def test_both_formats_hold_the_same_questions() -> None:
    for item in ITEMS:
        in_moodle, in_gift = exported("moodle")[item], exported("gift")[item]
        assert [q.id for q in in_moodle] == [q.id for q in in_gift]
        for one, other in zip(in_moodle, in_gift, strict=True):
            assert [a.feedback for a in one.answers] == [a.feedback for a in other.answers]


@each_format
def test_a_question_is_the_same_in_every_export_that_holds_it(form: str) -> None:
    once = {question.id: question for question in READERS[form](export(form, ["x-R1", "x-O1"], 3, 2).text)}
    whole = {question.id: question for item in ("x-R1", "x-O1") for question in exported(form)[item]}
    assert set(once) == {f"dpsim-{item}-{seed}" for item in ("x-R1", "x-O1") for seed in (2, 3, 4)}
    assert all(whole[id] == question for id, question in once.items())
    names = [question.name for found in exported(form).values() for question in found]
    assert len(set(names)) == len(names)


@each_format
@pytest.mark.parametrize("item", ["x-K1", "x-E10-3", "x-several-equal"])
def test_a_variant_that_asks_the_same_again_is_left_out_and_counted(form: str, item: str) -> None:
    """The same: with the same answers, in whatever order, since platforms shuffle them."""
    made = export(form, [item], 50)
    found = READERS[form](made.text)
    asked = [variant(item, str(seed), items()[item].kinds[0]) for seed in range(1, 51)]
    different = {(a.question, frozenset(o.text for o in a.options), a.solution, a.answer) for a in asked}
    assert len(found) == len(different) < 50
    assert len({(question.text, frozenset(question.answers)) for question in found}) == len(found)
    assert found[0].id == f"dpsim-{item}-1"
    (left_out,) = made.report["left_out"]
    assert (left_out["item"], left_out["variants"]) == (item, 50 - len(found))
    assert "the same" in left_out["why"]


@each_format
def test_rings_are_left_out_and_named(form: str) -> None:
    made = export(form, variants=2)
    rings = [entry for entry in made.report["left_out"] if "ring" in entry["why"]]
    assert [entry["item"] for entry in rings] == [f"x-ring-{n}" for n in range(3, 7)]
    assert all(entry["variants"] == 2 for entry in rings)
    assert "2 variants of x-ring-3 left out: a ring" in made.text


@each_format
def test_links_lead_to_the_operators_app_or_are_not_there(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSIM_BASE_URL", raising=False)
    without = READERS[form](export(form, variants=2).text)
    assert not any("](" in question.general for question in without)
    monkeypatch.setenv("DPSIM_BASE_URL", "https://learn.example/dp/")
    linked = READERS[form](export(form, variants=2).text)
    for bare, question in zip(without, linked, strict=True):
        item, _, seed = question.id.removeprefix("dpsim-").rpartition("-")
        asked = variant(item, seed, items()[item].kinds[0])
        link = f"\n\n[See exactly this on the stage](https://learn.example/dp/lab?{asked.link})"
        assert question.general == bare.general + (link if asked.link else "")
        target = asked.link.replace("&", "&amp;")
        assert not asked.link or f'<a href="https://learn.example/dp/lab?{target}">' in seen(question.general)
