"""The global batch and how it is dealt: shards, micro-batches, counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, scenarios
from torch.utils.data import DistributedSampler

from dpsim.batch import global_batch, split
from dpsim.scenario import MASKED, Batch, Model, Scenario

sizes = st.lists(st.integers(0, 9), min_size=1, max_size=12)
world_sizes = st.integers(1, 9)


def dealt(ranks: int, **parts: object) -> list[list[int]]:
    """The sequence numbers of every rank."""
    batch = global_batch(Scenario(name="d", world_size=ranks, batch=Batch(**parts)))
    return [[i for cell in row for i in cell] for row in batch.assignment]


@law(60)
@given(sizes, world_sizes)
def test_contiguous_deals_runs_that_differ_by_at_most_one(lengths: list[int], ranks: int) -> None:
    rows = dealt(ranks, lengths=lengths, shard="contiguous")
    assert list(itertools.chain(*rows)) == list(range(len(lengths)))
    counts = [len(row) for row in rows]
    assert counts == sorted(counts, reverse=True)
    assert max(counts) - min(counts) <= 1


@law(60)
@given(sizes, world_sizes)
def test_strided_is_torch_s_distributed_sampler(lengths: list[int], ranks: int) -> None:
    rows = dealt(ranks, lengths=lengths, shard="strided")
    data = range(len(lengths))
    for r in range(ranks):
        sampler = DistributedSampler(data, num_replicas=ranks, rank=r, shuffle=False)
        assert rows[r] == list(sampler)


def best_largest_load(weights: list[int], ranks: int) -> int:
    """The smallest possible load of the fullest rank, by trying everything."""
    every = itertools.product(range(ranks), repeat=len(weights))
    return min(
        max(sum(w for w, o in zip(weights, to, strict=True) if o == r) for r in range(ranks)) for to in every
    )


@pytest.mark.parametrize(
    ("shard", "ranks"), [("longest_first", 2), ("longest_first", 3), ("balance_valid", 3)]
)
@law(25)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_greedy_shards_deal_each_once_and_within_the_bound_of_graham(
    shard: str, ranks: int, weights: list[int]
) -> None:
    """Longest first is never above 4/3 - 1/(3R) of the best dealing (Graham 1969)."""
    parts = (
        {"lengths": weights}
        if shard == "longest_first"
        else {"lengths": [9] * len(weights), "valid": weights}
    )
    rows = dealt(ranks, shard=shard, **parts)
    assert sorted(itertools.chain(*rows)) == list(range(len(weights)))
    load = max(sum(weights[i] for i in row) for row in rows)
    assert 3 * ranks * load <= (4 * ranks - 1) * best_largest_load(weights, ranks)


def test_longest_first_goes_by_length_and_balance_valid_by_valid_tokens() -> None:
    parts = {"lengths": [9, 8, 2, 1], "valid": [0, 1, 2, 1]}
    assert dealt(2, shard="longest_first", **parts) == [[0, 3], [1, 2]]
    assert dealt(2, shard="balance_valid", **parts) == [[2, 0], [1, 3]]


def test_by_hand_is_dealt_as_written() -> None:
    written = [[[3, 0], []], [[1], [4, 2]]]
    scenario = Scenario(
        name="h", world_size=2, batch=Batch(lengths=[1] * 5, shard="by_hand", assignment=written)
    )
    assert global_batch(scenario).assignment == (((3, 0), ()), ((1,), (4, 2)))
    assert scenario.micro_batches == (2, 2)


@law(60)
@given(st.lists(st.integers(), max_size=20), st.integers(1, 9))
def test_a_split_keeps_the_order_and_is_even(items: list[int], parts: int) -> None:
    made = split(items, parts)
    assert len(made) == parts
    assert list(itertools.chain(*made)) == items
    assert [len(p) for p in made] == [len(p) for p in np.array_split(np.array(items), parts)]


def test_micro_batches_may_differ_by_rank() -> None:
    batch = Batch(lengths=[1, 2, 3, 4, 5, 6, 7], micro_batches=[1, 3])
    made = global_batch(Scenario(name="k", world_size=2, batch=batch))
    assert made.assignment == (((0, 1, 2, 3),), ((4,), (5,), (6,)))
    assert made.shard_counts(made.lengths).tolist() == [[10, 0, 0], [5, 6, 7]]


@law(80)
@given(scenarios())
def test_counts_are_those_of_the_labels(scenario: Scenario) -> None:
    batch = global_batch(scenario)
    table = batch.shard_counts(batch.valid)
    assert table.dtype == np.int64
    assert table.shape == (scenario.world_size, max(scenario.micro_batches))
    for r, row in enumerate(batch.assignment):
        assert len(row) == scenario.micro_batches[r]
        for k, cell in enumerate(row):
            assert table[r, k] == sum(int((batch.labels[i] != MASKED).sum()) for i in cell)
            assert batch.shard_counts(batch.lengths)[r, k] == sum(len(batch.tokens[i]) for i in cell)
    assert batch.valid_total == sum(int((y != MASKED).sum()) for y in batch.labels)
    if scenario.batch.lengths is not None:
        assert batch.lengths.tolist() == list(scenario.batch.lengths)
        assert batch.valid.tolist() == list(scenario.batch.valid or ())


@law(60)
@given(scenarios(kinds=("bigram", "scalar")))
def test_tokens_and_labels_fit_the_model_and_come_from_the_seed(scenario: Scenario) -> None:
    first, again = global_batch(scenario), global_batch(scenario)
    for x, y, other in zip(first.tokens, first.labels, again.tokens, strict=True):
        assert len(x) == len(y)
        assert x.tolist() == other.tolist()
        assert set(y.tolist()) <= {MASKED, *range(scenario.model.vocabulary)}
        if scenario.model.kind == "bigram":
            assert set(x.tolist()) <= set(range(scenario.model.vocabulary))


def test_a_drawn_bigram_batch_predicts_the_next_token() -> None:
    model = Model(vocabulary=16)
    batch = global_batch(Scenario(name="n", model=model, batch=Batch(lengths=[12], valid=[12])))
    assert batch.labels[0][:-1].tolist() == batch.tokens[0][1:].tolist()


def test_written_tokens_and_labels_are_taken_as_they_are() -> None:
    tokens, labels = [[1, 2], [0]], [[2, -100], [1]]
    scenario = Scenario(
        name="t", world_size=1, model=Model(vocabulary=3), batch=Batch(tokens=tokens, labels=labels)
    )
    batch = global_batch(scenario)
    assert [t.tolist() for t in batch.tokens] == tokens
    assert [y.tolist() for y in batch.labels] == labels
    assert batch.valid.tolist() == [1, 1]


def test_more_ranks_than_sequences_leaves_ranks_without_work() -> None:
    assert dealt(4, lengths=[3, 3], shard="contiguous") == [[0], [1], [], []]
    assert dealt(4, lengths=[3, 3], shard="strided") == [[0], [1], [0], [1]]
