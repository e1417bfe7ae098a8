"""Typed numbers, verdicts, figures in Markdown, and digits that were typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.checks import InputError
from dpsim.lessons import Lesson, lessons
from dpsim.prose import filled, typed_digits
from dpsim.questions import Question, grade, read_number
from dpsim.wording import number

TYPED = [
    ("4", 4), ("-2", -2), ("−2", -2), ("–2", -2), ("+3", 3), ("0,25", 0.25), ("0.25", 0.25), (" .5 ", 0.5),
    ("1/4", 0.25), ("7 / 4", 1.75), ("−7⁄4", -1.75), ("1\u2009000", 1000), ("1 000,5", 1000.5),
    ("1\u202f000", 1000), ("2e3", 2000), ("3.", 3),
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
    value = lesson.setting.value
    if question.options:
        verdicts = [grade(question, str(i), value) for i in range(len(question.options))]
        expected = 1
    else:
        given = [question.answer, *(wrong.figure for wrong in question.wrong)]
        verdicts = [grade(question, repr(value(figure)), value) for figure in given]
        verdicts.append(grade(question, "-987654", value))
        assert verdicts[0].right
        expected = 1
    assert [verdict.right for verdict in verdicts].count(True) == expected
    said = [verdict.feedback for verdict in verdicts]
    assert len(set(said)) == len(said)
    assert all(len(feedback) > 20 for feedback in said)


@each_question
def test_no_wrong_explanation_gives_a_typed_answer_away(lesson: Lesson, question: Question) -> None:
    if question.options:
        return
    name = question.answer
    for said in (question.question, question.other, *(wrong.feedback for wrong in question.wrong)):
        assert "{{" + name + "}}" not in said


def test_the_right_option_is_not_always_at_the_same_place() -> None:
    places = {next(i for i, option in enumerate(q.options) if option.right) for _, q in ASKED if q.options}
    assert len(places) >= 3


def test_figures_are_written_as_code_formulas_and_markdown_need_it() -> None:
    said = {"a": "106 %", "b": "[1, −2]", "c": "15.8 ms"}
    text = "It is {{a}}, `{{ a }}`, ${{a}}$ and $${{c}}$$, {{b}}."
    assert filled(text, said.__getitem__, lambda t: f"<{t}>") == (
        "It is <106 %>, `106 %`, $106 \\%$ and $$15.8 \\text{ms}$$, <[1, −2]>."
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
    ("$$\n\\frac{1}{R} = {{after}}\n$$", []),
]


@pytest.mark.parametrize(("text", "typed"), DIGITS)
def test_typed_digits_are_found(text: str, typed: list[str]) -> None:
    assert typed_digits(text) == typed
