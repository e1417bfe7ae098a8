"""Spaced repetition and misconceptions: the laws, against a plain retelling; and the recovery code."""

from __future__ import annotations

import secrets
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dpsim.checks import InputError
from dpsim.progress import Attempt, due, held, learning, mastered, standings
from dpsim.recovery import is_key, key_of, learner_id, recovery_code

DAY = 86_400
HOUR = DAY // 24
LADDER = (1, 3, 7, 21)


def attempt(right: bool, at: float, item: str = "x", misconception: str = "") -> Attempt:
    return Attempt(item, "", "number", "1", right, misconception, at)


# Times are whole hours: exact, and often the same, often just at an edge.
ATTEMPTS = some.lists(
    some.builds(
        attempt,
        some.sampled_from([True, True, True, False]),
        some.integers(0, 60 * 24).map(lambda hours: float(hours * HOUR)),
        some.sampled_from("xyz"),
        some.sampled_from(["", "m", "n"]),
    ),
    max_size=30,
)


def right_days(*days: float) -> list[Attempt]:
    """Right answers after so many days each."""
    times = [sum(days[: i + 1]) for i in range(len(days))]
    return [attempt(True, day * DAY) for day in times]


def test_the_first_right_answer_rests_a_day_and_the_next_three_seven_and_twenty_one() -> None:
    answers = right_days(5, *LADDER)
    for n, days in enumerate(LADDER, 1):
        (item,) = learning(answers[:n])
        assert item.due == answers[n - 1].at + days * DAY
        assert due(answers[:n], item.due) == [item]
        assert due(answers[:n], item.due - 1) == []
    assert learning(answers) == []
    ((done),) = mastered(answers)
    assert (done.due, done.attempts, done.right, done.last) == (None, 5, 5, answers[-1].at)


def test_a_wrong_answer_is_due_at_once_and_its_days_begin_anew() -> None:
    for n in range(6):
        answers = [*right_days(5, *LADDER)[:n], attempt(False, 40.5 * DAY)]
        (item,) = due(answers, 40.5 * DAY)
        assert item.due == 40.5 * DAY
        (item,) = learning([*answers, attempt(True, 41 * DAY)])
        assert item.due == 42 * DAY


@given(ATTEMPTS, some.integers(0, 100), some.sampled_from("xyz"))
def test_a_right_answer_before_it_is_due_changes_nothing_but_the_counts(
    attempts: list[Attempt], hours: int, item: str
) -> None:
    now = max((a.at for a in attempts), default=0.0) + hours * HOUR
    before = standings(attempts).get(item)
    after = standings([*attempts, attempt(True, now, item)])[item]
    if before is not None and (before.due is None or now < before.due):
        assert after == replace(before, attempts=before.attempts + 1, right=before.right + 1, last=now)
    else:
        assert after.due is None or after.due > now


def answers_to(attempts: list[Attempt], item: str) -> list[Attempt]:
    """The answers to an item, in the order of their times and then as they came."""
    order = sorted(range(len(attempts)), key=lambda i: (attempts[i].at, i))
    return [attempts[i] for i in order if attempts[i].item == item]


def retold(attempts: list[Attempt], item: str, now: int) -> str:
    """Where an item stands at an hour, lived through hour by hour with a calendar: no box, no formula."""
    mine = answers_to(attempts, item)
    rungs: list[int] = []  # of the rests that are passed or begun
    rests = 0
    for hour in range(now + 1):
        rests = max(0, rests - 1) if hour else 0
        for one in (a for a in mine if a.at == hour * HOUR):
            if not one.right:
                rungs, rests = [], 0
            elif rests == 0 and len(rungs) <= len(LADDER):
                rungs = [*rungs, len(rungs)]
                rests = LADDER[rungs[-1]] * 24 if rungs[-1] < len(LADDER) else 0
    if not [a for a in mine if a.at <= now * HOUR]:
        return "unknown"
    if len(rungs) > len(LADDER):
        return "mastered"
    return "due" if rests == 0 else f"in {rests} hours"


@given(ATTEMPTS, some.integers(0, 60 * 24))
def test_it_stands_where_somebody_living_through_it_would_say(attempts: list[Attempt], now: int) -> None:
    known = [a for a in attempts if a.at <= now * HOUR]
    said = {}
    for item in learning(known):
        assert item.due is not None
        said[item.item] = "due" if item.due <= now * HOUR else f"in {round(item.due / HOUR) - now} hours"
    said |= {item.item: "mastered" for item in mastered(known)}
    assert {item: said.get(item, "unknown") for item in "xyz"} == {i: retold(attempts, i, now) for i in "xyz"}
    assert [i.item for i in due(known, now * HOUR)] == [
        i.item for i in learning(known) if said[i.item] == "due"
    ]


@given(ATTEMPTS)
def test_every_item_is_counted_and_stands_in_one_list(attempts: list[Attempt]) -> None:
    found = standings(attempts)
    for item, standing in found.items():
        mine = [a for a in attempts if a.item == item]
        assert (standing.attempts, standing.right) == (len(mine), sum(a.right for a in mine))
        assert standing.last == max(a.at for a in mine)
    lists = [i.item for i in (*learning(attempts), *mastered(attempts))]
    assert sorted(lists) == sorted(found) == sorted({a.item for a in attempts})
    assert all((a.due or 0) <= (b.due or 0) for a, b in pairwise(learning(attempts)))


@given(ATTEMPTS, some.randoms(use_true_random=False))
def test_items_do_not_touch_each_other_and_order_is_by_time(attempts: list[Attempt], chance: object) -> None:
    apart = list({(a.item, a.at): a for a in attempts}.values())  # one answer to an item at a time
    mixed = apart.copy()
    chance.shuffle(mixed)
    assert standings(mixed) == standings(apart)
    for item in "xyz":
        mine = [a for a in apart if a.item == item]
        assert standings(mine).get(item) == standings(apart).get(item)


def is_held(attempts: list[Attempt], wanted: str, can_show: dict[str, set[str]]) -> bool:
    """Whether a misconception is held, by its definition: quadratic, and with nothing kept on the way."""
    order = sorted(range(len(attempts)), key=lambda i: (attempts[i].at, i))
    story = [attempts[i] for i in order]

    def shows(a: Attempt) -> bool:
        return not a.right and a.misconception == wanted

    def speaks_against(i: int) -> bool:
        item = story[i].item
        known = wanted in can_show.get(item, set()) or any(shows(a) for a in story[:i] if a.item == item)
        return story[i].right and known

    return any(
        shows(a)
        and not any(later.item == a.item for later in story[i + 1 :])
        and not any(speaks_against(j) for j in range(i + 1, len(story)))
        for i, a in enumerate(story)
    )


@given(ATTEMPTS, some.dictionaries(some.sampled_from("xyz"), some.sets(some.sampled_from("mn"))))
def test_a_misconception_is_held_by_its_definition(
    attempts: list[Attempt], can_show: dict[str, set[str]]
) -> None:
    found = held(attempts, can_show)
    assert set(found) == {m for m in "mn" if is_held(attempts, m, can_show)}
    for misconception, item in found.items():
        last = answers_to(attempts, item)[-1]
        assert (last.right, last.misconception) == (False, misconception)


def test_a_misconception_ends_with_a_right_answer_where_it_had_shown() -> None:
    story = [
        attempt(False, 1, "x", "m"),
        attempt(False, 2, "y", "m"),
        attempt(False, 3, "z", "n"),
        attempt(False, 4, "x"),
    ]
    assert held(story) == {"n": "z", "m": "y"}
    assert held([*story, attempt(True, 5, "x")]) == {"n": "z"}
    assert held([*story, attempt(True, 5, "w")]) == {"n": "z", "m": "y"}
    assert held([*story, attempt(True, 5, "w")], {"w": {"m", "n"}}) == {}
    assert held([*story, attempt(True, 5, "x"), attempt(False, 6, "w", "m")]) == {"m": "w", "n": "z"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("item", ""), ("item", "x" * 201), ("item", "a\nb"), ("seed", 1), ("seed", "s" * 41),
        ("kind", "essay"), ("given", "\0"), ("given", "\ud800"), ("given", "1" * 4001), ("right", 1),
        ("misconception", "m" * 201),
        ("at", float("nan")), ("at", -1.0), ("at", 1e12), ("at", "2026-01-01"),
    ],
)  # fmt: skip
def test_an_attempt_that_breaks_a_rule_is_refused(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"attempt.{field}"):
        replace(attempt(True, 1.0), **{field: value})


KEYS = some.integers(0, 2**128 - 1).map(lambda n: f"{n:032x}")
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@given(KEYS)
def test_a_recovery_code_is_the_key_in_base_32_and_its_rest(key: str) -> None:
    code = recovery_code(key)
    assert len(code) == 34
    assert {len(group) for group in code.split("-")} == {4}
    digits = [CROCKFORD.index(sign) for sign in code.replace("-", "")]
    assert sum(d * 32**i for i, d in enumerate(reversed(digits[:26]))) == int(key, 16)
    assert digits[26] * 32 + digits[27] == int(key, 16) % 1021
    assert key_of(code) == key


@given(KEYS, some.data())
def test_a_code_is_read_however_it_is_typed(key: str, data: some.DataObject) -> None:
    alike = {"0": "0oO", "1": "1iIlL"}
    typed = []
    for sign in recovery_code(key).replace("-", ""):
        typed.append(data.draw(some.sampled_from(alike.get(sign, sign + sign.lower()))))
        typed.append(data.draw(some.sampled_from(["", "", "", " ", "-", " – ", "\t", "\u00a0"])))
    assert key_of("".join(typed)) == key


@given(KEYS, some.integers(0, 27), some.integers(1, 31))
def test_one_wrong_sign_is_always_noticed(key: str, place: int, step: int) -> None:
    signs = list(recovery_code(key).replace("-", ""))
    signs[place] = CROCKFORD[(CROCKFORD.index(signs[place]) + step) % 32]
    with pytest.raises(InputError, match="recovery code"):
        key_of("".join(signs))


@given(KEYS, some.integers(0, 24))
def test_two_neighbours_that_are_swapped_are_always_noticed(key: str, place: int) -> None:
    signs = list(recovery_code(key).replace("-", ""))
    if signs[place] == signs[place + 1]:
        return
    signs[place], signs[place + 1] = signs[place + 1], signs[place]
    with pytest.raises(InputError, match="recovery code"):
        key_of("".join(signs))


@given(some.one_of(some.text(), some.text(alphabet=CROCKFORD + "ilou- ", min_size=26, max_size=36)))
def test_whatever_is_typed_is_a_key_or_a_message_that_does_not_repeat_it(typed: str) -> None:
    said = ""
    try:
        assert is_key(key_of(typed))
    except InputError as error:
        said = str(error)
    assert len(said) < 120
    assert len(typed.strip()) < 4 or typed not in said


def test_what_is_stored_for_a_key_does_not_hold_it() -> None:
    key = secrets.token_hex(16)
    assert is_key(key)
    assert not any(map(is_key, (key.upper(), key[1:], key + "0", "", None, 5, "g" * 32)))
    assert len(learner_id(key)) == 64
    assert key not in learner_id(key)
    assert learner_id("00" * 16) == "84e0c0eafaa95a34c293f278ac52e45ce537bab5e752a00e6959a13ae103b65a"
