"""What holds for every exercise of the bank: variants, their answers, what each mistake gets to hear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations

import pytest
from exercise_numbers import NUMBERS
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.exercises import Series, chart_of, items, topics, variant
from dpsim.misconceptions import misconceptions
from dpsim.prose import check_markdown
from dpsim.questions import KINDS, Asked, grade
from dpsim.wording import number

SEEDS = 150
FORMULAS = [
    *("R1", "R2", "R3", "R4", "R5", "G1", "G2", "G3", "T1", "T2", "T3", "A1", "A2", "A3"),
    *("C1", "C2", "C3", "C4", "C5", "B1", "B2", "B3", "B4", "O1", "O2", "S1", "S2", "S3", "S4"),
    *("Y1", "Y3", "Z1", "Z3", "D1", "K1", "K2", "P1", "P2", "W1", "W2"),
]
ASKED_IN_WORDS = ["N1", *(f"E10-{i}" for i in range(1, 7))]
OTHERS = ["order-step", "order-ddp", "cell-ring", *(f"ring-{n}" for n in range(3, 7))]
SEVERAL = ["same", "holds", "equal", "hangs"]

every_item = pytest.mark.parametrize("item_id", items())
every_formula = pytest.mark.parametrize("item_id", [f"x-{name}" for name in FORMULAS])


@cache
def variants(item_id: str, kind: str, count: int = SEEDS) -> list[Asked]:
    return [variant(item_id, f"seed {i}", kind) for i in range(count)]


def all_kinds(item_id: str, count: int) -> Iterator[Asked]:
    for kind in items()[item_id].kinds:
        yield from variants(item_id, kind)[:count]


def texts(asked: Asked) -> list[str]:
    """Everything of a question that is read."""
    told = [
        asked.question,
        asked.feedback,
        asked.other,
        asked.solution,
        *(slip.feedback for slip in asked.wrong),
    ]
    told += [text for option in asked.options for text in (option.text, option.feedback)]
    return [text for text in told if text]


def test_the_bank_has_every_item_of_its_list() -> None:
    named = [*FORMULAS, *ASKED_IN_WORDS, *OTHERS, *(f"several-{name}" for name in SEVERAL)]
    assert sorted(items()) == sorted(f"x-{name}" for name in named)


def test_items_stand_in_the_order_of_their_topics() -> None:
    found = [item.topic for item in items().values()]
    assert found == sorted(found, key=list(topics()).index)
    assert set(found) == set(topics())
    assert len({item.title for item in items().values()}) > 50
    assert all(set(item.kinds) <= set(KINDS) for item in items().values())


@every_formula
def test_a_number_is_told_apart_from_every_known_mistake(item_id: str) -> None:
    for asked in variants(item_id, "number"):
        values = [asked.answer, *(slip.value for slip in asked.wrong)]
        assert len(values) >= 3
        assert asked.tolerance > 0
        for one, other in combinations(values, 2):
            assert abs(one - other) > 3 * asked.tolerance, asked


@every_formula
def test_typing_or_choosing_a_known_mistake_says_what_it_is(item_id: str) -> None:
    for i, asked in enumerate(variants(item_id, "number")[:60]):
        choice = variant(item_id, f"seed {i}", "choose-one")
        texts_of = [option.text for option in choice.options]
        assert grade(asked, repr(float(asked.answer))).right
        assert grade(asked, asked.exact).right
        assert grade(choice, str(texts_of.index(asked.exact))).right
        for slip in asked.wrong:
            written = f"{number(slip.value)} {asked.unit}".rstrip()
            found = [
                grade(asked, repr(float(slip.value))),
                grade(asked, written),
                grade(choice, str(texts_of.index(written))),
            ]
            for verdict in found:
                assert not verdict.right
                assert (verdict.feedback, verdict.misconception) == (slip.feedback, slip.misconception)
        other = grade(asked, "-98765.4")
        assert (other.right, other.feedback) == (False, asked.other)


@pytest.mark.parametrize("item_id", [i for i, item in items().items() if "choose-one" in item.kinds])
def test_one_option_is_right_and_each_is_its_own(item_id: str) -> None:
    places = set()
    for asked in variants(item_id, "choose-one"):
        assert 3 <= len(asked.options) <= 6
        assert len(asked.right_options) == 1
        assert len({option.text for option in asked.options}) == len(asked.options)
        verdicts = [grade(asked, str(i)) for i in range(len(asked.options))]
        assert [v.right for v in verdicts] == [o.right for o in asked.options]
        places.add([option.right for option in asked.options].index(True))
    assert len(places) >= 3  # the right one is at no place of its own


@pytest.mark.parametrize("name", SEVERAL)
def test_several_are_right_and_several_are_not(name: str) -> None:
    for asked in variants(f"x-several-{name}", "choose-several"):
        right = [str(i) for i, option in enumerate(asked.options) if option.right]
        assert 2 <= len(right) <= len(asked.options) - 2 <= 4
        assert grade(asked, ",".join(right)).right
        for i, option in enumerate(asked.options):
            given_now = sorted({*right} ^ {str(i)}, key=int)
            verdict = grade(asked, ",".join(given_now))
            assert not verdict.right
            assert option.text in verdict.feedback
            assert option.feedback in verdict.feedback
            assert verdict.misconception == option.misconception


@pytest.mark.parametrize("item_id", ["x-order-step", "x-order-ddp"])
def test_only_the_right_order_is_right(item_id: str) -> None:
    for asked in variants(item_id, "order")[:20]:
        count = len(asked.options)
        assert 5 <= count <= 7
        right = [
            order for order in permutations(range(count)) if grade(asked, ",".join(map(str, order))).right
        ]
        assert right == [tuple(range(count))]


@every_item
def test_every_text_is_markdown_and_every_answer_has_words_of_its_own(item_id: str) -> None:
    for asked in all_kinds(item_id, 100):
        for text in texts(asked):
            check_markdown(item_id, text)
            assert "  " not in text
            assert text.count("$") % 2 == 0
            assert text.count("`") % 2 == 0
        said = [slip.feedback for slip in asked.wrong] + [option.feedback for option in asked.options]
        said += [text for text in (asked.feedback, asked.other) if text]
        assert len(set(said)) == len(said)
        assert min(map(len, said)) > 20
        assert 3 <= len(asked.solution.split("\n\n")) <= 6
        assert asked.question.rstrip(".?!") != asked.question


@every_item
def test_no_question_contains_its_answer(item_id: str) -> None:
    for asked in all_kinds(item_id, SEEDS):
        if asked.kind == "number":
            assert number(asked.answer) not in NUMBERS.findall(asked.question), asked.question
        elif asked.kind != "order":
            for option in asked.right_options:
                told = rf"(?<![\w.−]){re.escape(option.text)}(?!\w|\.\d)"
                assert not re.search(told, asked.question, re.IGNORECASE), asked.question


@every_item
def test_the_same_seed_asks_the_same_and_other_seeds_ask_otherwise(item_id: str) -> None:
    for kind in (None, *items()[item_id].kinds):
        made = [variant(item_id, f"seed {i}", kind) for i in range(40)]
        assert made == [variant(item_id, f"seed {i}", kind) for i in range(40)]
        assert [asked.kind for asked in made] == [kind] * 40 or kind is None
        assert len(set(made)) >= 4
    assert {variant(item_id, f"seed {i}").kind for i in range(40)} == set(items()[item_id].kinds)


@every_item
def test_what_no_scenario_shows_has_a_chart(item_id: str) -> None:
    for i, asked in enumerate(variants(item_id, items()[item_id].kinds[0])[:40]):
        chart = chart_of(item_id, f"seed {i}")
        if asked.kind == "number":
            assert (chart is None) == bool(asked.link)
        if chart is not None:
            assert isinstance(chart, Series)
            assert chart.x == tuple(sorted(set(chart.x)))
            assert len(chart.x) == len(chart.y) >= 3
            assert chart.y[chart.x.index(chart.at)] == pytest.approx(asked.answer)


def test_every_misconception_is_caught_somewhere_and_known() -> None:
    caught = {
        found.misconception
        for item_id in items()
        for asked in all_kinds(item_id, 60)
        for found in (*asked.wrong, *asked.options)
    }
    assert caught - {""} == set(misconceptions())


@law(200)
@given(st.sampled_from(list(items())), st.text(st.characters(), max_size=30))
@example("x-R1", "\ud800")
@example("x-C2", "\x00/../ \n")
def test_any_text_is_a_seed(item_id: str, seed: str) -> None:
    asked = variant(item_id, seed)
    assert asked == variant(item_id, seed)
    assert asked.question


@pytest.mark.parametrize("item_id", ["", "R1", "x-", "x-R9", "X-R1", "x-R1 "])
def test_an_unknown_item_is_an_input_error(item_id: str) -> None:
    for call in (variant, chart_of):
        with pytest.raises(InputError, match=r"^item: must be "):
            call(item_id, "s")


@pytest.mark.parametrize(("item_id", "kind"), [("x-R1", "order"), ("x-E10-1", "number"), ("x-R1", "")])
def test_a_kind_that_an_item_has_not_is_an_input_error(item_id: str, kind: str) -> None:
    with pytest.raises(InputError, match=r"^kind: must be one of "):
        variant(item_id, "s", kind)
