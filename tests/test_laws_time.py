"""Laws 5 and 6: nothing happens before what it needs, and a step's time is the sum of its parts.

Law 5 reads the events of a trace and nothing else. Times are compared without tolerance: a transfer starts at
the very number at which what it waits for ends.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from strategies import law, scenarios

from dpsim.metrics import step_metrics
from dpsim.scenario import Batch, Buckets, Compute, Model, Network, Scenario
from dpsim.simulate import simulate
from dpsim.trace import BACKWARD, BARRIER, FORWARD, OPTIMIZER, RECEIVE, SCATTER, SEND, Events, Trace

THE_COUNT = -2


def windows(events: Events) -> list[np.ndarray]:
    """The rows of every all-reduce: sends and receives of one step, micro-batch and bucket."""
    rows = np.flatnonzero((events.kind == SEND) | (events.kind == RECEIVE))
    keys = np.stack([events.step[rows], events.micro_batch[rows], events.bucket[rows]], axis=1)
    return [rows[np.all(keys == key, axis=1)] for key in np.unique(keys, axis=0)]


@law(50)
@given(scenarios())
def test_law_5_no_chunk_is_sent_before_it_arrived(scenario: Scenario) -> None:
    events = simulate(scenario).events
    for rows in windows(events):
        arrived: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        for i in rows[events.kind[rows] == RECEIVE]:
            arrived[events.rank[i], events.chunk[i]].append((events.round[i], events.end_s[i]))
        for i in rows[events.kind[rows] == SEND]:
            earlier = [e for n, e in arrived[events.rank[i], events.chunk[i]] if n < events.round[i]]
            assert events.start_s[i] >= max(earlier, default=0.0)


@law(50)
@given(scenarios())
def test_law_5_every_send_has_one_receive_at_the_same_time(scenario: Scenario) -> None:
    events = simulate(scenario).events
    ends: list[list[tuple[float, ...]]] = []
    for kind, source, destination in ((SEND, "rank", "peer"), (RECEIVE, "peer", "rank")):
        names = ("step", "micro_batch", "bucket", "round", source, destination, "chunk")
        columns = (*names, "start_s", "end_s", "bytes")
        rows = events.where(kind=kind)
        ends.append(sorted(zip(*(getattr(events, c)[rows].tolist() for c in columns), strict=True)))
    assert ends[0] == ends[1]


@law(50)
@given(scenarios())
def test_law_5_no_bucket_travels_before_both_ranks_have_filled_it(scenario: Scenario) -> None:
    events = simulate(scenario).events
    for i in np.flatnonzero((events.kind == SEND) & (events.bucket >= 0)):
        for rank in (int(events.rank[i]), int(events.peer[i])):
            rows = events.where(step=int(events.step[i]), kind=BACKWARD, rank=rank)
            if events.micro_batch[i] >= 0:
                rows = rows[events.micro_batch[rows] == events.micro_batch[i]]
            if scenario.buckets.overlap:
                rows = rows[events.bucket[rows] <= events.bucket[i]]  # -1: of an earlier micro-batch
            assert len(rows) > 0
            assert events.end_s[rows].max() <= events.start_s[i]


@law(50)
@given(scenarios())
def test_law_5_no_port_carries_two_messages_at_once(scenario: Scenario) -> None:
    events = simulate(scenario).events
    messages: dict[tuple[int, int], set[tuple[float, ...]]] = defaultdict(set)
    for i in np.flatnonzero((events.kind == SEND) | (events.kind == RECEIVE)):
        named = [getattr(events, c)[i] for c in ("step", "micro_batch", "bucket", "round", "peer")]
        messages[events.kind[i], events.rank[i]].add((events.start_s[i], events.end_s[i], *named))
    for at_port in messages.values():
        in_order = sorted(at_port)
        for (_, end, *_), (start, *_) in pairwise(in_order):
            assert end <= start


@law(50)
@given(scenarios())
def test_law_5_a_step_keeps_its_order_on_every_rank(scenario: Scenario) -> None:
    """Scatter, count, forward, backward, everything received, barrier, optimizer, the next step."""
    events = simulate(scenario).events
    for t in range(scenario.steps):
        own = [
            {
                k: events.where(step=t, rank=r, kind=k)
                for k in (SCATTER, FORWARD, BACKWARD, BARRIER, OPTIMIZER)
            }
            for r in range(scenario.world_size)
        ]
        everyone = events.where(step=t)
        received = everyone[(events.kind[everyone] == RECEIVE) | (events.kind[everyone] == SEND)]
        count = received[events.bucket[received] == THE_COUNT]
        barrier_start = [events.start_s[of[BARRIER]].max() for of in own]
        barrier_end = {events.end_s[of[BARRIER]].max() for of in own}
        assert len(barrier_end) == 1  # all leave it together
        for r, of in enumerate(own):
            first_forward = events.start_s[of[FORWARD]].min()
            assert events.end_s[of[SCATTER]].max() <= first_forward
            assert events.end_s[count].max(initial=0.0) <= first_forward
            for k in range(scenario.micro_batches[r]):
                forward = of[FORWARD][events.micro_batch[of[FORWARD]] == k]
                backward = of[BACKWARD][events.micro_batch[of[BACKWARD]] == k]
                assert events.end_s[forward].max() <= events.start_s[backward].min()
            assert events.end_s[of[BACKWARD]].max() <= barrier_start[r]
            mine = received[events.rank[received] == r]
            assert events.end_s[mine].max(initial=0.0) <= min(barrier_end)
            if len(of[OPTIMIZER]):
                assert events.start_s[of[OPTIMIZER]].min() >= max(barrier_end)
        if t + 1 < scenario.steps:
            assert events.start_s[events.where(step=t + 1)].min() >= events.end_s[everyone].max()


def arrivals(made: Trace, step: int) -> tuple[np.ndarray, float]:
    """Wait per rank and exposed communication, from the ends of backward and the barriers alone."""
    events, size = made.events, made.scenario.world_size
    wait, exposed = np.zeros(size), 0.0
    barriers = events.where(step=step, kind=BARRIER)
    backward = events.where(step=step, kind=BACKWARD)
    for k in np.unique(events.micro_batch[barriers]):
        before = backward[(events.micro_batch[backward] == k) | (k == -1)]
        end = events.end_s[barriers[events.micro_batch[barriers] == k]].max()
        own = np.array([events.end_s[before[events.rank[before] == r]].max() for r in range(size)])
        wait += own.max() - own
        exposed += end - own.max()
    return wait, exposed


@law(60)
@given(scenarios())
def test_law_6_the_parts_of_every_rank_add_up_to_the_step_time(scenario: Scenario) -> None:
    made = simulate(scenario)
    for t in range(scenario.steps):
        m = step_metrics(made, t)
        shared = m.exposed_communication_s + m.optimizer_s
        total = m.scatter_s + m.count_s + m.compute_s + m.wait_s + shared
        assert total == pytest.approx(np.full(scenario.world_size, m.step_time_s), rel=1e-9, abs=1e-12)
        parts = (m.scatter_s, m.count_s, m.compute_s, m.wait_s, np.array([shared]))
        assert all(np.all(part >= -1e-12) for part in parts)
        wait, exposed = arrivals(made, t)
        assert m.wait_s == pytest.approx(wait, abs=1e-12)
        assert m.exposed_communication_s == pytest.approx(exposed, abs=1e-12)


@law(60)
@given(scenarios())
def test_law_6_the_straggler_does_not_wait(scenario: Scenario) -> None:
    made = simulate(scenario)
    for t in range(scenario.steps):
        m = step_metrics(made, t)
        if m.straggler is not None:
            assert m.wait_s[m.straggler] == 0.0
            assert m.wait_s.max() > 0.0
        if not scenario.buckets.sync_every_micro_batch:
            assert m.wait_s.min() == 0.0


@law(60)
@given(scenarios())
def test_law_6_overlap_never_makes_a_step_longer(scenario: Scenario) -> None:
    with_it = simulate(replace(scenario, buckets=replace(scenario.buckets, overlap=True)))
    without = simulate(replace(scenario, buckets=replace(scenario.buckets, overlap=False)))
    for t in range(scenario.steps):
        longer = step_metrics(without, t).step_time_s
        assert step_metrics(with_it, t).step_time_s <= longer * (1 + 1e-12) + 1e-15


def test_law_6_a_step_worked_out_by_hand() -> None:
    """Two ranks of 4 and 2 tokens, rank 1 at half speed; 1 MB over 1 GB/s; 1 ms and 2 ms a token."""
    scenario = Scenario(
        name="by-hand",
        world_size=2,
        model=Model(kind="given", gradient_sums=[[[1, 2]], [[3, 4]]]),
        batch=Batch(lengths=[4, 2]),
        compute=Compute(1e-3, 2e-3, speed=[1.0, 0.25], optimizer_s=0.5e-3),
        network=Network(latency_s=1e-4, bandwidth_bytes_per_s=1e9, gradient_bytes=1e6),
    )
    m = step_metrics(simulate(scenario), 0)
    assert m.compute_s == pytest.approx([12e-3, 24e-3])
    assert m.wait_s == pytest.approx([12e-3, 0.0])
    assert m.straggler == 1
    assert m.exposed_communication_s == pytest.approx(2 * (1e-4 + 0.5e-3))
    assert m.scatter_s == pytest.approx([1e-4 + 64e-9, 1e-4 + 32e-9])
    # One element of 8 bytes in two chunks, of which one is empty: two messages, after the last scatter.
    assert m.count_s == pytest.approx([2 * (1e-4 + 8e-9), 32e-9 + 2 * (1e-4 + 8e-9)])
    assert m.step_time_s == pytest.approx(1e-4 + 64e-9 + 2 * (1e-4 + 8e-9) + 24e-3 + 1.2e-3 + 0.5e-3)
    assert m.bytes_sent.tolist() == [1e6, 1e6]
    assert m.algbw_bytes_per_s == pytest.approx(1e6 / 1.2e-3)
    assert m.busbw_bytes_per_s == pytest.approx(1e6 / 1.2e-3)  # 2 (R - 1) / R is 1 for two ranks
    alone = 1e-4 + 96e-9 + 6 * 3e-3 + 0.5e-3
    assert m.scaling_efficiency == pytest.approx(alone / (2 * m.step_time_s))


def test_law_6_overlap_hides_what_fits_behind_backward() -> None:
    """Three buckets from the second step on; without overlap all of their time is exposed."""
    times = {}
    for overlap in (True, False):
        scenario = Scenario(
            name="hide",
            steps=2,
            world_size=2,
            model=Model(vocabulary=4, width=2),
            batch=Batch(lengths=[10, 10]),
            network=Network(latency_s=0.0, bandwidth_bytes_per_s=1e9, gradient_bytes=5e6),
            buckets=Buckets(cap_bytes=1.0, overlap=overlap),
        )
        times[overlap] = [step_metrics(simulate(scenario), t).exposed_communication_s for t in (0, 1)]
    # E, W and b are 8, 8 and 4 of 20 elements: 2, 2 and 1 MB, as many ms over the ring of two ranks.
    # Backward takes 5 ms, so b and W travel behind it and only E's 2 ms show.
    assert times[True] == pytest.approx([5e-3, 2e-3])
    assert times[False] == pytest.approx([5e-3, 5e-3])
