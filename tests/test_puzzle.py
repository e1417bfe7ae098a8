"""The ring puzzle: what is read, what is right, and what is said about the first thing that is wrong.

The judge stands on the values interpreter; here every schedule is also played with sets and counters.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.collectives import COPY, build
from dpsim.puzzle import (
    MOST_ROUNDS,
    MOST_TRANSFERS,
    Transfer,
    cost_of,
    in_lines,
    judge,
    parse,
    solution,
    state_after,
    written,
)
from dpsim.scenario import COLLECTIVES

RANKS = (3, 4, 5, 6)
Cells = dict[tuple[int, int], Counter[int]]


def played(size: int, text: str) -> Cells:
    """Who is in what at the end, by rank and chunk: the rules once more, in the plainest way."""
    cells: Cells = {(r, c): Counter({r: 1}) for r in range(size) for c in range(size)}
    for line in text.split("|"):
        before = {cell: Counter(who) for cell, who in cells.items()}
        for source, _, to, _, chunk, op in line.split(";") if line else []:
            came = before[int(source), int(chunk)]
            cell = int(to), int(chunk)
            cells[cell] = cells[cell] + came if op == "+" else Counter(came)
    return cells


def complete(size: int, text: str) -> bool:
    return all(who == Counter(range(size)) for who in played(size, text).values())


def as_text(algorithm: str, size: int) -> str:
    """A known algorithm for R chunks: where it has fewer, each of its chunks is a run of the puzzle's."""
    made = build(algorithm, size, 60)
    few = len(made.bounds) - 1
    rounds: list[list[str]] = [[] for _ in range(made.rounds)]
    rows = zip(made.round, made.source, made.destination, made.chunk, made.op, strict=True)
    for n, source, to, chunk, op in rows:
        for c in range(size):
            if c * few // size == chunk:
                rounds[n].append(f"{source}>{to}.{c}{'=' if op == COPY else '+'}")
    return "|".join(";".join(line) for line in rounds)


@st.composite
def composed(draw: Any) -> tuple[int, str]:
    """A world size and a well-formed text: any transfers, no round empty but perhaps the last."""
    size = draw(st.sampled_from(RANKS))
    rank = st.integers(0, size - 1)
    one = st.tuples(rank, rank, rank, st.sampled_from("+=")).filter(lambda t: t[0] != t[1])
    lines = draw(st.lists(st.lists(one, min_size=1, max_size=5), max_size=5))
    text = "|".join(";".join(f"{a}>{b}.{c}{op}" for a, b, c, op in line) for line in lines)
    return size, text + ("|" if lines and draw(st.booleans()) else "")


@st.composite
def working(draw: Any) -> tuple[int, str]:
    """A schedule that works: a known algorithm, its ranks and its chunks under other names."""
    size = draw(st.sampled_from(RANKS))
    text = as_text(draw(st.sampled_from(COLLECTIVES)), size)
    ranks, chunks = (draw(st.permutations(range(size))) for _ in range(2))
    return size, re.sub(
        r"(\d)>(\d)\.(\d)", lambda t: f"{ranks[int(t[1])]}>{ranks[int(t[2])]}.{chunks[int(t[3])]}", text
    )


# -- the written form ----------------------------------------------------------------------------------------


@law(200)
@given(composed())
@example((3, ""))
def test_what_is_read_is_written_the_same(case: tuple[int, str]) -> None:
    size, text = case
    assert written(parse(size, text)) == text
    assert sum(map(len, parse(size, text))) == len(re.findall(">", text))


def test_a_transfer_is_who_to_whom_which_chunk_and_what_is_done() -> None:
    assert parse(4, "0>1.3+|2>0.1=") == ((Transfer(0, 1, 3, "+"),), (Transfer(2, 0, 1, "="),))
    assert in_lines(4, "0>1.3+|2>0.1=|") == [
        "Round 1: rank 0 sends chunk 3 to rank 1, which adds it.",
        "Round 2: rank 2 sends chunk 1 to rank 0, which keeps it.",
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0>0.1+", "cannot send to itself"),
        ("0>3.1+", "from 0 to 2"),
        ("0>1.3=", "from 0 to 2"),
        ("|0>1.0+", "no empty round"),
        ("0>1.0+||1>2.0+", "no empty round"),
        ("0>1.0", "written like"),
        ("0>1.0*", "written like"),
        (" 0>1.0+", "written like"),
        ("0>1.0+;", "written like"),
        ("٠>1.0+", "written like"),
        ("<b>", "written like"),
        ("0>1.0+|" * MOST_ROUNDS, f"at most {MOST_ROUNDS} rounds"),
        (";".join(["0>1.0+"] * (MOST_TRANSFERS + 1)), f"at most {MOST_TRANSFERS} transfers"),
        ("x" * 100_000, f"at most {MOST_TRANSFERS} transfers"),
    ],
)
def test_what_breaks_a_rule_is_refused_in_one_line(text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule) as caught:
        parse(3, text)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("size", [2, 7, 64, 3.5, True])
def test_the_puzzle_is_for_three_to_six_ranks(size: Any) -> None:
    with pytest.raises(InputError, match="from 3 to 6"):
        parse(size, "")


@given(st.sampled_from(RANKS), st.text("0123456+=>.;| ax", max_size=30))
def test_any_text_is_read_or_refused(size: int, text: str) -> None:
    try:
        rounds = parse(size, text)
    except InputError:
        return
    assert written(rounds) == text


# -- what is in a chunk --------------------------------------------------------------------------------------


@law(200)
@given(composed())
def test_the_state_is_that_of_sets_and_counters(case: tuple[int, str]) -> None:
    size, text = case
    sent = [line.split(";") for line in text.split("|") if line]
    for line in sent:  # what hangs on the order within a round is refused elsewhere
        kept = [t[2:5] for t in line if t[-1] == "="]
        assume(all([t[2:5] for t in line].count(cell) == 1 for cell in kept))
    found = state_after(size, text)
    assert found.shape == (size, size, size)
    for (r, c), who in played(size, text).items():
        assert found[r, c].tolist() == [who[q] for q in range(size)]


def test_a_round_reads_the_state_at_its_start() -> None:
    assert state_after(3, "0>1.0+;1>2.0+")[2, 0].tolist() == [0, 1, 1]
    assert state_after(3, "0>1.0+|1>2.0+")[2, 0].tolist() == [1, 1, 1]


# -- the verdict ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", RANKS)
@pytest.mark.parametrize("algorithm", COLLECTIVES)
def test_every_known_algorithm_is_accepted(algorithm: str, size: int) -> None:
    text = as_text(algorithm, size)
    assert complete(size, text)
    found = judge(size, text)
    assert found.right
    best = 2 * (size - 1)
    least = f"{best} rounds, and every rank sends {best} chunks, {Fraction(best, size)} of the gradient: no"
    only = f"needs only {best} rounds of one turn each, and {best} chunks"
    if algorithm == "ring":
        assert least in found.feedback
    elif (algorithm, size) != ("halving-doubling", 4):
        assert only in found.feedback


@pytest.mark.parametrize("size", RANKS)
def test_the_solution_is_the_ring(size: int) -> None:
    text = solution(size)
    assert text == as_text("ring", size)
    cost = cost_of(size, parse(size, text))
    assert (cost.rounds, cost.turns, cost.sent) == (2 * (size - 1),) * 3


def test_a_round_lasts_as_long_as_its_busiest_port() -> None:
    push, both, back = "1>0.0+;2>0.0+", "0>1.0+;1>0.1+", "0>1.0=;0>2.0=;0>2.1="
    for text, turns, sent in ((push, 2, 1), (both, 1, 1), (back, 3, 3), (f"{push}|{both}|{back}", 6, 4)):
        cost = cost_of(3, parse(3, text))
        assert (cost.turns, cost.sent) == (turns, sent)
    assert "2 rounds that last 12 turns" in judge(3, as_text("parameter-server", 3)).feedback


@law(200)
@given(composed())
def test_only_what_is_complete_is_right(case: tuple[int, str]) -> None:
    size, text = case
    found = judge(size, text)
    if found.right:
        assert complete(size, text)
    elif complete(size, text):
        assert found.feedback.startswith("In round ")


@law(150)
@given(working(), st.data())
def test_a_schedule_that_works_is_right_and_without_one_transfer_the_gap_is_named(
    case: tuple[int, str], data: st.DataObject
) -> None:
    size, text = case
    assert complete(size, text)
    assert judge(size, text).right
    lines = [line.split(";") for line in text.split("|")]
    n = data.draw(st.integers(0, len(lines) - 1))
    dropped = lines[n].pop(data.draw(st.integers(0, len(lines[n]) - 1)))
    short = "|".join(";".join(line) for line in lines if line)
    found = judge(size, short)
    assert not found.right
    chunk = int(re.search(r"[Cc]hunk (\d)", found.feedback)[1])
    rank = int(re.search(r"rank (\d)", found.feedback)[1])
    missing = re.search(r"contributions? of ranks? ([\d, and]+) (?:is|are) missing", found.feedback)
    cells = played(size, short)
    assert chunk == int(dropped[4])
    assert {int(q) for q in re.findall(r"\d", missing[1])} == set(range(size)) - set(cells[rank, chunk])


@law(150)
@given(working(), st.data())
def test_with_one_transfer_twice_it_is_named(case: tuple[int, str], data: st.DataObject) -> None:
    size, text = case
    lines = [line.split(";") for line in text.split("|")]
    n = data.draw(st.integers(0, len(lines) - 1))
    twice = data.draw(st.sampled_from(lines[n]))
    lines[n].append(twice)
    found = judge(size, "|".join(";".join(line) for line in lines))
    source, _, to, _, chunk, op = twice
    assert not found.right
    said = f"In round {n + 1} a transfer stands twice: rank {source} sends chunk {chunk} to rank {to}, which "
    assert said + ("adds" if op == "+" else "keeps") in found.feedback


@law(150)
@given(working(), st.data())
def test_what_is_added_again_in_a_later_round_is_counted_and_named(
    case: tuple[int, str], data: st.DataObject
) -> None:
    size, text = case
    added = data.draw(st.sampled_from(re.findall(r"\d>\d\.\d\+", text)))
    longer = f"{text}|{added}"
    found = judge(size, longer)
    rank, chunk = int(added[2]), int(added[4])
    assert not found.right
    assert set(played(size, longer)[rank, chunk].values()) == {2}
    assert f"On rank {rank} chunk {chunk} ends with the contribution of rank 0 in it twice" in found.feedback
    assert (
        f"In round {text.count('|') + 2} rank {rank} adds what comes from rank {added[0]}" in found.feedback
    )


def test_nothing_sent_is_not_right() -> None:
    assert not judge(3, "").right


def test_what_would_hang_on_the_order_within_a_round_is_refused() -> None:
    for other, word in (("2>1.0=", "kept"), ("2>1.0+", "added to")):
        found = judge(3, f"0>1.0=;{other}")
        assert not found.right
        assert f"In round 1 rank 1 keeps chunk 0 from rank 0, and the same chunk is {word} from rank 2" in (
            found.feedback
        )


def test_sending_on_what_comes_in_the_same_round_is_explained() -> None:
    found = judge(3, "0>1.0+;1>2.0+;2>0.0+")
    assert "A round reads what was there at its start: in round 1 rank 0 sends chunk 0 on" in found.feedback


def test_missing_everywhere_comes_before_missing_somewhere() -> None:
    text = solution(3)
    last = text.rpartition("|")[0]
    assert "could send it to be kept" in judge(3, last).feedback
    assert judge(3, "0>1.0+").feedback.startswith("No rank has all of chunk 0: even on rank 1 ")
    assert np.all(state_after(3, text) == 1)
