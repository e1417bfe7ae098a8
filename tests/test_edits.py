"""Edits: what depends on a changed value is fitted to it, and every edited scenario is a whole one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, scenarios

from dpsim.batch import global_batch
from dpsim.checks import InputError
from dpsim.edits import (
    changed,
    with_assignment,
    with_drawn_sequences,
    with_marks,
    with_micro_batches,
    with_model,
    with_sequences,
    with_shard,
    with_slowest,
    with_world_size,
)
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.scenario import MASKED, Scenario
from dpsim.simulate import simulate

FIRST = preset("first-screen")
LEARNS = preset("next-token")


def marks(scenario: Scenario) -> tuple[str, ...]:
    return tuple("".join("0" if y == MASKED else "1" for y in row) for row in global_batch(scenario).labels)


def each(scenario: Scenario) -> float:
    return scenario.batch.count / scenario.world_size


@law(150)
@given(scenarios(max_steps=1), st.integers(1, 12))
def test_any_scenario_takes_any_world_size(scenario: Scenario, ranks: int) -> None:
    edited = with_world_size(scenario, ranks)
    assert edited.world_size == ranks
    assert len(edited.speeds) == len(edited.micro_batches) == ranks
    simulate(edited)
    assert from_query(to_query(edited)) == edited


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("ranks", [2, 3, 7, 16])
def test_every_rank_keeps_as_many_sequences(name: str, ranks: int) -> None:
    scenario = preset(name)
    assert each(with_world_size(scenario, ranks)) == -(-scenario.batch.count // scenario.world_size)


def test_more_ranks_and_fewer_again_is_where_one_started() -> None:
    assert with_world_size(with_world_size(FIRST, 9), 4) == FIRST
    assert with_world_size(FIRST, 4) is FIRST


def test_ranks_that_are_there_keep_their_gradients_and_speeds() -> None:
    grown = with_world_size(FIRST, 6)
    assert grown.model.gradient_sums is not None
    assert grown.model.gradient_sums[:4] == FIRST.model.gradient_sums
    assert grown.speeds == (*FIRST.speeds, 1.0, 1.0)
    assert len(set(grown.model.gradient_sums)) == 6, "new ranks bring numbers of their own"


@law(80)
@given(scenarios(max_ranks=4, max_steps=1), st.integers(1, 4))
def test_any_scenario_takes_any_number_of_micro_batches(scenario: Scenario, k: int) -> None:
    edited = with_micro_batches(scenario, k)
    assert edited.micro_batches == (k,) * scenario.world_size
    simulate(edited)


def test_micro_batches_may_differ_by_rank() -> None:
    assert with_micro_batches(FIRST, (1, 2, 1, 3)).micro_batches == (1, 2, 1, 3)
    with pytest.raises(InputError, match=r"batch.micro_batches: must have 4 entries"):
        with_micro_batches(FIRST, (1, 2))
    with pytest.raises(InputError, match=r"batch.micro_batches"):
        with_micro_batches(FIRST, 0)


@law(80)
@given(scenarios(max_ranks=4, max_steps=1), st.sampled_from(("bigram", "scalar", "given")), st.integers(2, 9))
def test_any_scenario_takes_any_model(scenario: Scenario, kind: str, vocabulary: int) -> None:
    if kind == "given" and (scenario.batch.sequences is not None or scenario.batch.shard == "strided"):
        return
    edited = with_model(scenario, kind, vocabulary)
    assert edited.model.kind == kind
    simulate(edited)


def test_given_gradients_need_sequences_that_are_typed_in() -> None:
    drawn = with_drawn_sequences(LEARNS, 4, 8)
    with pytest.raises(InputError, match=r"model.kind: 'given' needs sequences that are typed in"):
        with_model(drawn, "given")


@law(100)
@given(scenarios(max_ranks=4, max_steps=1), st.data())
def test_a_token_flipped_changes_its_own_count_alone(scenario: Scenario, data: st.DataObject) -> None:
    rows = marks(scenario)
    places = [(s, t) for s, row in enumerate(rows) for t in range(len(row))]
    if not places or not all(rows):
        return
    s, t = data.draw(st.sampled_from(places))
    flipped = "0" if rows[s][t] == "1" else "1"
    wanted = tuple(row[:t] + flipped + row[t + 1 :] if i == s else row for i, row in enumerate(rows))
    edited = with_marks(scenario, wanted)
    assert marks(edited) == wanted
    gained = global_batch(edited).valid - global_batch(scenario).valid
    assert gained[s] == (1 if flipped == "1" else -1)
    assert np.count_nonzero(gained) == 1
    before, after = global_batch(scenario).tokens, global_batch(edited).tokens
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), "the tokens stay"


def test_valid_tokens_that_come_first_stay_counts() -> None:
    edited = with_marks(LEARNS, ("11110000", "11000000", "11111111", "00000000"))
    assert edited.batch.valid == (4, 2, 8, 0)
    assert edited.batch.tokens is None


def test_a_token_that_is_valid_again_has_the_next_token_as_its_label() -> None:
    whole = global_batch(with_marks(LEARNS, ("1" * 8,) * 4))
    masked = with_marks(LEARNS, ("10101010",) * 4)
    back = global_batch(with_marks(masked, ("1" * 8,) * 4))
    for row, labels, tokens in zip(back.labels, whole.labels, whole.tokens, strict=True):
        assert row[:-1].tolist() == labels[:-1].tolist() == tokens[1:].tolist()
        assert row[-1] == tokens[0]


@pytest.mark.parametrize("wrong", [(), ("1" * 8,) * 3, ("1" * 7,) * 4, ("2" * 8,) * 4])
def test_marks_that_do_not_fit_are_refused(wrong: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="marks: must have a 0 or 1 for every token"):
        with_marks(LEARNS, wrong)


def test_dealing_by_hand_starts_from_how_it_is_dealt() -> None:
    by_hand = with_shard(with_micro_batches(LEARNS, 2), "by_hand")
    assert global_batch(by_hand).assignment == global_batch(with_micro_batches(LEARNS, 2)).assignment
    assert with_shard(by_hand, "contiguous").micro_batches == (2,) * 4
    repeats = with_shard(with_sequences(LEARNS, (4,) * 6, (4,) * 6), "strided")
    assert with_shard(repeats, "by_hand").batch.assignment is not None


def test_a_dealing_that_forgets_a_sequence_is_refused() -> None:
    with pytest.raises(InputError, match="must deal each of the sequences 0 to 3 exactly once"):
        with_assignment(LEARNS, (((0,),), ((1,),), ((2,),), ((2,),)))
    dealt = with_assignment(LEARNS, (((0, 1), (2,)), ((3,),), ((),), ((),)))
    assert dealt.micro_batches == (2, 1, 1, 1)
    with pytest.raises(InputError, match="must have one entry per rank, 4"):
        with_assignment(FIRST, (((0, 1, 2, 3),),))


def test_the_slowest_rank_is_slowed_down_and_equal_ranks_have_none() -> None:
    assert with_slowest(FIRST, 0.5).speeds == (*FIRST.speeds[:3], 0.5)
    assert with_slowest(changed(LEARNS, "compute.speed", None), 0.5).speeds == (1, 1, 1, 0.5)
    assert with_slowest(LEARNS, 1.0).compute.speed is None
    with pytest.raises(InputError, match=r"compute.speed: must be a finite number"):
        with_slowest(FIRST, 0)


def test_a_dotted_key_is_set_or_taken_away() -> None:
    assert changed(FIRST, "network.latency_s", 0.5).network.latency_s == 0.5
    assert changed(FIRST, "network.gradient_bytes", None).network.gradient_bytes is None
    for key, value in (("network", {}), ("colour", 1), ("network.colour", 1), ("steps", 0)):
        with pytest.raises(InputError, match=key):
            changed(FIRST, key, value)
