"""Typed numbers, verdicts, figures in Markdown, and digits that were typed."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from asked import every_answer
from hypothesis import given
from hypothesis import strategies as st

from dpsim.checks import InputError
from dpsim.lessons import Lesson, lessons
from dpsim.prose import filled, literal, typed_digits
from dpsim.questions import Asked, Question, grade
from dpsim.typed_number import read_number
from dpsim.wording import number

TYPED = [
    ("4", 4), ("-2", -2), ("−2", -2), ("–2", -2), ("+3", 3), ("0,25", 0.25), ("0.25", 0.25), (" .5 ", 0.5),
    ("1/4", 0.25), ("7 / 4", 1.75), ("−7⁄4", -1.75), ("1\u2009000", 1000), ("1 000,5", 1000.5),
    ("1\u202f000", 1000), ("2e3", 2000), ("3.", 3), ("1,234.5", 1234.5), ("1.234,5", 1234.5),
    ("1,234,567", 1234567), ("1.234.567", 1234567), ("0,125", 0.125), ("1234,567", 1234.567), ("3·10^6", 3e6),
    ("2×10⁻³", 0.002), ("½", 0.5), ("1½", 1.5), ("−2 ¾", -2.75), ("1 3/4", 1.75), ("1 000/4", 250),
    ("1’000", 1000),
    ("10 000 000", 1e7), ("1e-3", 0.001),
]  # fmt: skip

NOT_TYPED = [
    "",
    " ",
    "abc",
    "1/0",
    "1/2/3",
    "1,2,3",
    "--1",
    "nan",
    "inf",
    "1e999",
    "0x10",
    "1+1",
    "1,23,4",
    "10 5",
    "1 0000",
    "1.2.3",
    "1,234.5.6",
    "2^3",
    "٣",
    "9" * 41,
    "/2",
]


@pytest.mark.parametrize(("typed", "value"), TYPED)
def test_a_number_is_read_as_people_type_it(typed: str, value: float) -> None:
    assert read_number(typed) == value


@pytest.mark.parametrize("typed", NOT_TYPED)
def test_what_is_no_number_gets_a_message(typed: str) -> None:
    with pytest.raises(InputError, match=r"^answer: must "):
        read_number(typed)


UNITS = [
    ("250 ms", "s", 0.25), ("0.25 s", "s", 0.25), ("0.25", "s", 0.25), ("3µs", "ms", 0.003),
    ("3 us", "ms", 0.003),
    ("40 MB", "B", 4e7), ("1 GiB", "B", 2.0**30), ("1.5 kB", "B", 1500), ("12,5 %", "%", 12.5),
    ("2 min", "s", 120),
    ("3 samples", "samples", 3), ("1 sample", "samples", 1), ("1/4 s", "s", 0.25), ("3e-3 s", "s", 0.003),
    ("2 x", "", 2), ("10 GB/s", "GB/s", 10), ("5 GPU hours", "GPU hours", 5),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "unit", "value"), UNITS)
def test_a_unit_may_be_typed_behind_it(typed: str, unit: str, value: float) -> None:
    assert read_number(typed, unit) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("typed", "unit"),
    [("3 s", ""), ("3 s", "B"), ("3 MB", "s"), ("3 apples", "s"), ("3 m", "s"), ("3 m", "ms")],
)
def test_another_kind_of_unit_is_a_message(typed: str, unit: str) -> None:
    with pytest.raises(InputError, match="must be"):
        read_number(typed, unit)


def test_a_comma_that_may_mean_two_things_is_asked_about() -> None:
    with pytest.raises(InputError, match=r"could be 1\.000 or 1000"):
        read_number("1,000")


@given(
    st.builds(Fraction, st.integers(-1000, 1000), st.integers(1, 40)),
    st.builds(Fraction, st.integers(1, 400), st.sampled_from((1, 3, 10, 40))),
    st.booleans(),
)
def test_the_edge_of_the_tolerance_counts_as_right(
    answer: Fraction, tolerance: Fraction, above: bool
) -> None:
    edge = answer + (tolerance if above else -tolerance)
    asked = Asked("number", "?", answer=float(answer), tolerance=float(tolerance), feedback="yes", other="no")
    assert grade(asked, f"{edge.numerator}/{edge.denominator}").right
    beyond = answer + tolerance * Fraction(1001, 1000) if above else answer - tolerance * Fraction(1001, 1000)
    assert not grade(asked, repr(float(beyond))).right


@given(st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-3 or x == 0))
def test_every_number_that_is_shown_can_be_typed(value: float) -> None:
    assert read_number(number(value)) == pytest.approx(value, rel=1e-3)


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_a_message(text: str) -> None:
    try:
        value = read_number(text)
    except InputError:
        return
    assert abs(value) < float("inf")


OWN = [lesson for lesson in lessons().values() if isinstance(lesson, Lesson)]
ASKED = [(lesson, q) for lesson in OWN for screen in lesson.screens for q in screen.questions]
each_question = pytest.mark.parametrize(("lesson", "question"), ASKED, ids=[q.id for _, q in ASKED])


@each_question
def test_every_answer_gets_an_explanation_of_its_own(lesson: Lesson, question: Question) -> None:
    asked = lesson.setting.asked(question.asked)
    said = []
    for answer, feedback, right in every_answer(asked):
        verdict = grade(asked, answer)
        assert verdict.right == right
        assert feedback in verdict.feedback
        assert len(feedback) > 20
        said.append(verdict.feedback)
    assert len(set(said)) == len(said)


@each_question
def test_no_wrong_explanation_gives_a_typed_answer_away(lesson: Lesson, question: Question) -> None:
    asked = lesson.setting.asked(question.asked)
    if len(asked.written) < 2:  # small counts stand everywhere
        return
    for told in (asked.question, asked.other, *(slip.feedback for slip in asked.wrong)):
        assert not asked.written or literal(asked.written) not in re.split(r"[\s,:;]+", told)


def test_the_right_option_is_not_always_at_the_same_place() -> None:
    options = [q.asked.options for _, q in ASKED if q.asked.kind == "choose-one"]
    places = {next(i for i, option in enumerate(own) if option.right) for own in options}
    assert len(places) >= 3


def test_figures_are_written_as_code_formulas_and_markdown_need_it() -> None:
    said = {"a": "106 %", "b": "[1, −2]", "c": "15.8 ms"}
    text = "It is {{a}}, `{{ a }}`, ${{a}}$ and $${{c}}$$, {{b}}."
    assert filled(text, said.__getitem__, lambda t: f"<{t}>") == (
        "It is <106 %>, `106 %`, $106\\,\\%$ and $$15.8\\,\\text{ms}$$, <[1, −2]>."
    )


DIGITS = [
    ("There are {{R}} ranks.", []),
    ("There are 2 ranks.", ["2"]),
    ("It is 0.5, not 50%.", ["0.5,", "50%."]),
    ("On rank 0, and on ranks 0, 1 and 2.", []),
    ("`x[0] = 5`, S1 and L2", []),
    ("$1/R$, $g_0$, $x^2$, $2(R-1)$", []),
    ("$1/10$", ["10"]),
    ("$0.5$", ["0.5"]),
    ("$4$", ["4"]),
    ("1. first\n2. second", []),
    ("[a puzzle](/practice?item=x-ring-4) of 5", ["5"]),
    ("$$\n\\frac{1}{R} = {{after}}\n$$", []),
]


@pytest.mark.parametrize(("text", "typed"), DIGITS)
def test_typed_digits_are_found(text: str, typed: list[str]) -> None:
    assert typed_digits(text) == typed
