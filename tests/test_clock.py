"""The clock against a discrete-event model of ports in SimPy, and the buckets against torch's own function.

In the SimPy model every message is a process that waits for what it needs, holds the sender's sending port
and the receiver's receiving port for latency + bytes / bandwidth, and then announces that its chunks are
there. One rule of the design ties it to the schedule: a port serves its rounds in order.
"""

from __future__ import annotations

import math
import sys
from itertools import groupby, pairwise

import numpy as np
import pytest
import simpy
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, numbers
from torch.distributed import _compute_bucket_assignment_by_size as torch_buckets

from dpsim.collectives import Schedule, build
from dpsim.scenario import COLLECTIVES, Batch, Buckets, Model, Network, Scenario
from dpsim.timeline import buckets, clock

Message = tuple[int, int, int]  # round, source, destination


def in_simpy(
    schedule: Schedule, network: Network, element_bytes: float, ready: np.ndarray
) -> dict[Message, tuple[float, float]]:
    """Start and end of every message."""
    env = simpy.Environment()
    ports = [(simpy.Resource(env, 1), simpy.Resource(env, 1)) for _ in ready]
    rows = zip(
        schedule.round.tolist(),
        schedule.source.tolist(),
        schedule.destination.tolist(),
        schedule.chunk.tolist(),
        strict=True,
    )
    messages = {key: [row[3] for row in group] for key, group in groupby(rows, lambda row: row[:3])}
    finished = {message: env.event() for message in messages}
    times: dict[Message, tuple[float, float]] = {}

    def needed(message: Message) -> list[simpy.Event]:
        n, source, destination = message
        before = [m for m in messages if m[0] < n]
        at_ports = [m for m in before if m[1] == source or m[2] == destination]
        bringing = [m for m in before if m[2] == source and set(messages[m]) & set(messages[message])]
        both_ready = env.timeout(max(ready[source], ready[destination]))
        return [both_ready, *(finished[m] for m in {*at_ports, *bringing})]

    def carry(message: Message) -> object:
        _, source, destination = message
        yield env.all_of(needed(message))
        with ports[source][0].request() as sending, ports[destination][1].request() as receiving:
            yield sending
            yield receiving
            begun = env.now
            carried = sum(int(schedule.chunk_elements[c]) for c in messages[message]) * element_bytes
            yield env.timeout(network.latency_s + carried / network.bandwidth_bytes_per_s)
            times[message] = (begun, env.now)
        finished[message].succeed()

    for message in messages:
        env.process(carry(message))
    env.run()
    return times


def assert_same_times(schedule: Schedule, network: Network, element_bytes: float, ready: np.ndarray) -> None:
    expected = in_simpy(schedule, network, element_bytes, ready)
    start, end = clock(schedule, network, element_bytes, ready)
    for i, message in enumerate(
        zip(schedule.round.tolist(), schedule.source.tolist(), schedule.destination.tolist(), strict=True)
    ):
        assert (start[i], end[i]) == pytest.approx(expected[message], rel=1e-9, abs=1e-15)


networks = st.builds(Network, latency_s=numbers(0, 1e-2), bandwidth_bytes_per_s=numbers(1e3, 1e9))


@pytest.mark.parametrize("algorithm", COLLECTIVES)
@law(40)
@given(st.integers(1, 12), st.integers(1, 50), networks, numbers(0.5, 1e4))
def test_equal_arrivals_take_the_times_of_the_discrete_event_model(
    algorithm: str, ranks: int, elements: int, network: Network, element_bytes: float
) -> None:
    schedule = build(algorithm, ranks, elements)
    assert_same_times(schedule, network, element_bytes, np.full(ranks, 0.25))


@pytest.mark.parametrize("algorithm", COLLECTIVES)
@law(40)
@given(st.integers(2, 12), st.integers(1, 50), networks, st.integers(0, 2**32 - 1))
def test_uneven_arrivals_take_the_times_of_the_discrete_event_model(
    algorithm: str, ranks: int, elements: int, network: Network, seed: int
) -> None:
    ready = np.random.default_rng(seed).uniform(0, 0.05, ranks)  # all different: nobody ties at a port
    assert_same_times(build(algorithm, ranks, elements), network, 8.0, ready)


@law(60)
@given(st.integers(2, 16), st.integers(1, 4), networks, st.integers(0, 2**32 - 1))
def test_a_ring_that_starts_together_ends_when_one_that_starts_piecemeal_does(
    world: int, each: int, network: Network, seed: int
) -> None:
    """Why all ranks enter an all-reduce together: a late rank's chunk has all the hops before it anyway."""
    ready = np.random.default_rng(seed).uniform(0, 5, world)
    schedule = build("ring", world, each * world)
    piecemeal = clock(schedule, network, 4.0, ready)[1].max()
    together = clock(schedule, network, 4.0, np.full(world, ready.max()))[1].max()
    assert math.isclose(piecemeal, together, rel_tol=1e-12)


def test_workers_queue_at_the_parameter_server_in_the_order_in_which_they_arrive() -> None:
    network = Network(latency_s=1.0, bandwidth_bytes_per_s=1e9)
    schedule = build("parameter-server", 4, 1)
    start, end = clock(schedule, network, 0.0, np.array([0.0, 5.0, 0.5, 0.25]))
    assert start[:3].tolist() == [5.0, 1.25, 0.25]  # ranks 1, 2, 3 push; 3 came first
    assert start[3:].tolist() == [6.0, 7.0, 8.0]  # the server sends to one after another
    assert end.max() == 9.0


def test_one_message_has_one_latency_however_many_chunks_it_carries() -> None:
    network = Network(latency_s=1.0, bandwidth_bytes_per_s=1e3)
    schedule = build("halving-doubling", 4, 8)
    start, end = clock(schedule, network, 500.0, np.zeros(4))
    first = schedule.round == 0
    assert set(start[first]) == {0.0}
    assert set(end[first]) == {1.0 + 2.0}  # half of 8 elements of 500 bytes


def bigram(cap: float | None, gradient_bytes: float | None, vocabulary: int, width: int) -> Scenario:
    model = Model(vocabulary=vocabulary, width=width)
    network = Network(gradient_bytes=gradient_bytes)
    batch = Batch(lengths=[1] * 4)
    return Scenario(name="b", steps=2, model=model, batch=batch, network=network, buckets=Buckets(cap))


def by_torch(scenario: Scenario, limits: list[int]) -> list[tuple[str, ...]]:
    """The tensors' names in each bucket, from backward's order: b, W, E. Bytes are stood for by uint8."""
    v, d, size = scenario.model.vocabulary, scenario.model.width, scenario.bytes_per_element
    names, elements = ("b", "W", "E"), (v, v * d, v * d)
    sizes = [round(n * size) for n in elements]
    tensors = [torch.empty(n, dtype=torch.uint8, device="meta") for n in sizes]
    groups, _ = torch_buckets(tensors, limits)
    return [tuple(names[i] for i in group) for group in groups]


@law(150)
@given(st.integers(2, 64), st.integers(1, 16), st.integers(1, 10**6), numbers(0.01, 1.3))
def test_buckets_close_where_torch_closes_them(v: int, d: int, each: int, part: float) -> None:
    size = each * v * (2 * d + 1)
    cap = math.ceil(part * size)
    scenario = bigram(float(cap), float(size), v, d)
    made = buckets(scenario, 1)
    assert [tuple(reversed(b.names)) for b in made] == by_torch(scenario, [cap])


@law(150)
@given(st.integers(2, 64), st.integers(1, 16), st.integers(1, 10**6))
def test_without_a_cap_the_first_bucket_is_1_mib_and_the_rest_25(v: int, d: int, each: int) -> None:
    scenario = bigram(None, float(each * v * (2 * d + 1)), v, d)
    made = buckets(scenario, 1)
    limits = [torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, 25 * 2**20]
    assert [tuple(reversed(b.names)) for b in made] == by_torch(scenario, limits)


@law(60)
@given(st.integers(2, 64), st.integers(1, 16), st.none() | numbers(1, 1e6))
def test_the_very_first_backward_uses_one_bucket(v: int, d: int, cap: float | None) -> None:
    scenario = bigram(cap, None, v, d)
    (only,) = buckets(scenario, 0)
    assert (only.start, only.stop, only.names) == (0, scenario.model.size, ("E", "W", "b"))
    assert [tuple(reversed(only.names))] == by_torch(scenario, [sys.maxsize])


@law(60)
@given(st.integers(2, 64), st.integers(1, 16), numbers(1, 1e5))
def test_buckets_cover_the_gradient_from_its_end_and_split_no_tensor(v: int, d: int, cap: float) -> None:
    made = buckets(bigram(cap, None, v, d), 1)
    edges = {0, v * d, 2 * v * d, v * (2 * d + 1)}
    assert made[0].stop == v * (2 * d + 1)
    assert made[-1].start == 0
    assert all(a.start == b.stop for a, b in pairwise(made))
    assert {b.start for b in made} | {b.stop for b in made} <= edges


@pytest.mark.parametrize("kind", ["scalar", "given"])
def test_a_model_of_one_tensor_has_one_bucket_in_every_step(kind: str) -> None:
    model = Model(kind=kind, gradient_sums=[[[1, 2, 3]]] if kind == "given" else None)
    parts = {"model": model, "batch": Batch(lengths=[1]), "buckets": Buckets(cap_bytes=0.5)}
    scenario = Scenario(name="one", world_size=1, **parts)
    assert [len(buckets(scenario, step)) for step in (0, 1, 2)] == [1, 1, 1]
