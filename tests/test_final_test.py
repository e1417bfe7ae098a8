"""The test: a question for each objective from a seed, and a score that is judged anew from the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from asked import FAR, every_answer
from hypothesis import given
from hypothesis import strategies as st
from strategies import law
from test_lessons import WHOLE

from dpsim.checks import InputError
from dpsim.directives import Practice
from dpsim.exercises import items, variant
from dpsim.final_test import Objective, Posed, fingerprint, marks, objectives, questions, score
from dpsim.lessons import Lesson, lessons
from dpsim.progress import LONGEST_GIVEN
from dpsim.questions import Asked
from dpsim.score import PASS, Score, needed

ALL = objectives()
TYPED = [name for name, item in items().items() if "ring" not in item.kinds]
seeds = st.text(max_size=40)


def right_answer(asked: Asked) -> str:
    if asked.kind == "cell":
        return asked.right_options[0].text
    return next(given for given, _, right in every_answer(asked) if right)


def wrong_answer(asked: Asked) -> str:
    if asked.kind == "cell":
        return next(option.text for option in asked.options if not option.right)
    return next(given for given, _, right in every_answer(asked) if not right)


@st.composite
def some_objectives(draw: st.DrawFn) -> tuple[Objective, ...]:
    """Some objectives, with a few items each, many of them shared."""
    pool = draw(st.lists(st.sampled_from(TYPED), min_size=1, max_size=6, unique=True))
    each = st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True)
    chosen = draw(st.lists(each, min_size=1, max_size=6))
    return tuple(Objective("a-lesson", f"o{n}", "", tuple(names)) for n, names in enumerate(chosen))


def most_different(of: Sequence[Objective]) -> int:
    """How many different items these objectives can have: all ways are tried."""
    return max(len(set(way)) for way in product(*(objective.items for objective in of)))


def test_every_objective_of_the_lessons_is_tested_in_their_order_by_an_item_that_teaches_it() -> None:
    found = [(lesson.slug, name) for lesson in lessons().values() if isinstance(lesson, Lesson)
             for name in lesson.objectives]  # fmt: skip
    posed = questions("a seed", ALL)
    assert [(one.objective.lesson, one.objective.name) for one in posed] == found
    assert len(posed) >= 36
    for one in posed:
        lesson = lessons()[one.objective.lesson]
        assert isinstance(lesson, Lesson)
        drills = [d for screen in lesson.screens for d in screen.asked if isinstance(d, Practice)]
        assert one.objective.name in [drill.objective for drill in drills if drill.item == one.item]
        assert one.objective.text == lesson.setting.shown(lesson.objectives[one.objective.name])


@law(60)
@given(seeds, some_objectives())
def test_a_seed_says_everything_and_no_item_comes_twice_that_need_not(
    seed: str, of: tuple[Objective, ...]
) -> None:
    posed = questions(seed, of)
    assert [one.objective for one in posed] == list(of)
    assert all(one.item in one.objective.items for one in posed)
    assert len({one.item for one in posed}) == most_different(of)
    assert all(one.asked.kind in items()[one.item].kinds for one in posed)
    questions.cache_clear()
    assert questions(seed, of) == posed


@law(30)
@given(seeds)
def test_where_an_item_comes_twice_it_has_other_numbers(seed: str) -> None:
    for name in ("x-T1", "x-E10-1"):  # the latter has just three
        twice = tuple(Objective("a-lesson", f"o{n}", "", (name,)) for n in range(2))
        assert len({one.asked.question for one in questions(seed, twice)}) == 2
    one, other = questions(seed, ALL), questions(f"{seed}+", ALL)
    assert [p.asked for p in one] != [p.asked for p in other]


def test_every_item_and_every_kind_of_an_objective_comes_at_some_seed() -> None:
    drawn = [one for n in range(60) for one in questions(str(n), ALL)]
    for objective in ALL:
        assert {one.item for one in drawn if one.objective == objective} == set(objective.items)
    for name in {one.item for one in drawn}:
        kinds = {one.asked.kind for one in drawn if one.item == name}
        assert kinds == set(items()[name].kinds) - {"ring"}


def test_what_cannot_be_read_and_what_no_item_tests_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drill = '\n```exercise\nitem = "x-N1"\nobjective = "sums"\n```\n'
    ring = '\n```exercise\nitem = "x-ring-3"\nobjective = "sums"\n```\n'
    for name, lesson in (("tested", WHOLE + drill), ("by-ring", WHOLE + ring), ("plain", WHOLE)):
        (tmp_path / f"{name}.md").write_text(lesson, "utf-8")
    (tmp_path / "broken.md").write_text("nothing", "utf-8")
    monkeypatch.setenv("DPSIM_LESSONS", str(tmp_path))
    more = [objective for objective in objectives() if objective not in ALL]
    assert [(o.lesson, o.name, o.items) for o in more] == [("tested", "sums", ("x-N1",))]


@law(40)
@given(st.data())
def test_the_score_counts_the_right_answers_and_nothing_else(data: st.DataObject) -> None:
    posed = questions(data.draw(st.sampled_from("abcdef")), ALL)
    dealt = data.draw(st.lists(st.sampled_from(["right", "wrong", "open", "odd"]),
                               min_size=len(posed), max_size=len(posed)))  # fmt: skip
    given = {
        n: {"right": right_answer, "wrong": wrong_answer, "odd": lambda _: "no answer at all"}[what](
            one.asked
        )
        for n, (one, what) in enumerate(zip(posed, dealt, strict=True))
        if what != "open"
    }
    assert marks(posed, given) == tuple(what == "right" for what in dealt)
    assert score(posed, given) == Score(dealt.count("right"), len(posed))
    assert all(len(answer) <= LONGEST_GIVEN for answer in given.values())


def test_an_answer_to_a_question_that_is_not_there_counts_for_nothing() -> None:
    posed = questions("a", ALL)
    assert score(posed, {len(posed): FAR, -1: right_answer(posed[-1].asked)}) == Score(0, len(posed))


def test_four_fifths_pass_exactly() -> None:
    assert Fraction(80, 100) == PASS
    for of in range(1, 120):
        passed = [right for right in range(of + 1) if Score(right, of).passed]
        assert passed == [right for right in range(of + 1) if Fraction(right, of) >= Fraction(8, 10)]
        assert passed[0] == needed(of)


@pytest.mark.parametrize(("right", "of"), [(1, 0), (-1, 5), (6, 5), (True, 5), (1, 10_001)])
def test_a_score_is_of_so_many(right: int, of: int) -> None:
    with pytest.raises(InputError, match="score"):
        Score(right, of)


def changed(posed: tuple[Posed, ...], n: int, **change: object) -> tuple[Posed, ...]:
    one = posed[n]
    return (*posed[:n], replace(one, asked=replace(one.asked, **change)), *posed[n + 1 :])


def test_the_fingerprint_tells_what_is_asked_and_what_is_right() -> None:
    posed = questions("a", ALL)
    number = next(n for n, one in enumerate(posed) if one.asked.kind == "number")
    choice = next(n for n, one in enumerate(posed) if one.asked.kind == "choose-one")
    options = posed[choice].asked.options
    turned = tuple(replace(option, right=not option.right) for option in options)
    others = [
        questions("b", ALL), posed[:-1], posed[::-1],
        changed(posed, number, question="What else?"), changed(posed, number, answer=1e9),
        changed(posed, number, unit="s"), changed(posed, number, tolerance=9.0),
        changed(posed, choice, options=options[::-1]), changed(posed, choice, options=turned),
        (replace(posed[0], item="x-other"), *posed[1:]),
        (replace(posed[0], objective=replace(posed[0].objective, name="other")), *posed[1:]),
    ]  # fmt: skip
    prints = [fingerprint(posed), *map(fingerprint, others)]
    assert len(set(prints)) == len(prints)
    assert all(len(one) == 64 and set(one) <= set("0123456789abcdef") for one in prints)
    same = [changed(posed, number, feedback="Well done."), changed(posed, number, solution="So.", wrong=())]
    assert {fingerprint(one) for one in same} == {fingerprint(posed)}


def test_the_seed_of_a_variant_is_not_the_seed_of_the_test() -> None:
    """A test that is open must not be had in practice by its seed alone."""
    for seed in "abcde":
        alike = [variant(one.item, seed).question == one.asked.question for one in questions(seed, ALL)
                 if one.asked.kind == "number"]  # fmt: skip
        assert alike.count(True) < len(alike) / 2
