"""Laws 3 and 4: what any all-reduce schedule must do, and what it may cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, numbers, scenarios

from dpsim.collectives import REDUCE, build, contributions, run_values, with_row_twice, without_row
from dpsim.metrics import step_metrics
from dpsim.network import cost
from dpsim.scenario import COLLECTIVES, Batch, Model, Network, Scenario
from dpsim.simulate import simulate
from dpsim.timeline import clock
from dpsim.trace import RECEIVE

SHAPES = [(a, r, e) for a in COLLECTIVES for r in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16) for e in (1, 5, 48)]


@pytest.mark.parametrize(("algorithm", "ranks", "elements"), SHAPES)
def test_law_3_every_rank_holds_the_whole_sum(algorithm: str, ranks: int, elements: int) -> None:
    values = np.random.default_rng(3).integers(-(2**40), 2**40, (ranks, elements))
    final, _ = run_values(build(algorithm, ranks, elements), values.astype(np.float64))
    assert final.tolist() == [values.sum(axis=0).tolist()] * ranks  # whole numbers: exact in any order


@pytest.mark.parametrize(("algorithm", "ranks", "elements"), SHAPES)
def test_law_3_every_contribution_is_in_exactly_once(algorithm: str, ranks: int, elements: int) -> None:
    schedule = build(algorithm, ranks, elements)
    counts, payloads = contributions(schedule)
    sent = schedule.chunk_elements > 0
    assert np.all(counts[:, sent] == 1)
    assert all(set(np.unique(p)) <= {0, 1} for p in payloads)


@pytest.mark.parametrize(("algorithm", "ranks"), [(a, r) for a in COLLECTIVES for r in (2, 3, 4, 6, 8)])
def test_law_3_a_dropped_transfer_shows_a_0_and_a_doubled_addition_a_2(algorithm: str, ranks: int) -> None:
    schedule = build(algorithm, ranks, 48)
    for row in range(len(schedule.round)):
        dropped, _ = contributions(without_row(schedule, row))
        assert dropped.min() == 0
        doubled, _ = contributions(with_row_twice(schedule, row))
        assert doubled.max() == (2 if schedule.op[row] == REDUCE else 1)


@law(60)
@given(scenarios())
def test_law_3_every_payload_of_a_trace_is_what_its_sender_held_and_all_end_with_the_sum(
    scenario: Scenario,
) -> None:
    """A replay of the events, from `scaled` alone. In each algorithm the first half of the rounds adds."""
    made = simulate(scenario)
    receives = made.events.where(kind=RECEIVE)
    parts = dict(zip(receives.tolist(), np.split(made.payload, made.payload_stops[:-1]), strict=False))
    events = made.events
    groups = sorted({(events.step[i], events.micro_batch[i], events.bucket[i]) for i in receives})
    held: dict[tuple[int, int, int], int] = {}
    for t, k, b in (tuple(map(int, group)) for group in groups if group[2] >= 0):
        rows = events.where(kind=RECEIVE, step=t, micro_batch=k, bucket=b)
        lengths = {int(events.chunk[i]): len(parts[i]) for i in rows}
        starts = {c: sum(n for d, n in lengths.items() if d < c) for c in lengths}
        done = sum(n for (s, m, o), n in held.items() if (s, m) == (t, k) and o < b)
        held[t, k, b] = sum(lengths.values())
        window = made.scaled[t, :, k] if k >= 0 else made.scaled[t].sum(axis=1)
        stop = scenario.model.size - done
        state = window[:, stop - held[t, k, b] : stop].copy()
        total, half = state.sum(axis=0), (events.round[rows].max() + 1) // 2
        for n in range(events.round[rows].max() + 1):
            before = state.copy()  # a round reads the state at its start
            for i in rows[events.round[rows] == n]:
                c = int(events.chunk[i])
                chunk = slice(starts[c], starts[c] + lengths[c])
                assert parts[i].tobytes() == before[events.peer[i], chunk].tobytes()
                kept = parts[i] + state[events.rank[i], chunk] if n < half else parts[i]
                state[events.rank[i], chunk] = kept
        assert len({row.tobytes() for row in state}) == 1
        assert state[0] == pytest.approx(total, rel=1e-12, abs=1e-12)


@law(40)
@given(scenarios())
def test_law_3_the_count_of_valid_tokens_arrives_whole_on_every_rank(scenario: Scenario) -> None:
    made = simulate(scenario)
    counted = scenario.reduction in ("token_weighted", "token_weighted_not_compensated")
    expected = made.valid_tokens[0].sum() if counted else -1
    assert np.all(made.counted == expected)


def rounds_in_closed_form(algorithm: str, ranks: int) -> int:
    log_up, log_down = (ranks - 1).bit_length(), ranks.bit_length() - 1
    folded = ranks != 2**log_down
    return {
        "ring": 2 * (ranks - 1),
        "tree": 2 * log_up,
        "halving-doubling": 2 * (log_down + folded),
        "parameter-server": 2 if ranks > 1 else 0,
    }[algorithm]


@pytest.mark.parametrize(("algorithm", "ranks", "elements"), SHAPES)
def test_law_4_rounds_and_bytes_equal_their_closed_forms(algorithm: str, ranks: int, elements: int) -> None:
    schedule = build(algorithm, ranks, elements)
    sent, size = schedule.bytes_sent(4.0), 4.0 * elements
    assert schedule.rounds == rounds_in_closed_form(algorithm, ranks)
    assert sent.sum() == 2 * (ranks - 1) * size  # all four move the same bytes in all
    power = ranks & (ranks - 1) == 0
    if ranks == 1:
        assert sent.tolist() == [0.0]
    elif algorithm == "parameter-server":
        assert sent.tolist() == [(ranks - 1) * size, *[size] * (ranks - 1)]
    elif algorithm == "ring":  # every chunk twice, but r + 1 not reduced and r + 2 not gathered
        chunk = 4.0 * schedule.chunk_elements
        r = np.arange(ranks)
        assert sent.tolist() == (2 * size - chunk[(r + 1) % ranks] - chunk[(r + 2) % ranks]).tolist()
    elif algorithm == "halving-doubling" and power and elements % ranks == 0:
        assert sent.tolist() == [2 * (ranks - 1) * size / ranks] * ranks


@law(50)
@given(
    st.integers(1, 16), numbers(1, 1e6), numbers(0, 1e-2), numbers(1e6, 1e11), st.sampled_from(COLLECTIVES)
)
def test_law_4_the_clock_of_equal_arrivals_equals_the_closed_form(
    ranks: int, size: float, latency: float, bandwidth: float, algorithm: str
) -> None:
    schedule = build(algorithm, ranks, 720720)  # 1 to 16 divide it: chunks of one size
    network = Network(latency_s=latency, bandwidth_bytes_per_s=bandwidth)
    _, end = clock(schedule, network, size / 720720, np.zeros(ranks))
    taken = float(end.max(initial=0.0))
    expected = cost(algorithm, ranks, size, latency, bandwidth)
    assert taken == pytest.approx(expected.time_s, rel=1e-12)
    assert schedule.bytes_sent(size / 720720) == pytest.approx(expected.bytes_sent, rel=1e-12)
    assert expected.rounds == schedule.rounds
    if algorithm == "ring" and ranks > 1:
        assert taken == pytest.approx(2 * (ranks - 1) * (latency + size / (ranks * bandwidth)), rel=1e-12)


@pytest.mark.parametrize(("algorithm", "milliseconds"), [("ring", 17.5), ("parameter-server", 140.0)])
def test_law_4_eight_ranks_100_mb_10_gb_per_s(algorithm: str, milliseconds: float) -> None:
    model = Model(kind="given", gradient_sums=[[[float(r)] * 8] for r in range(8)])
    network = Network(latency_s=0.0, bandwidth_bytes_per_s=10e9, gradient_bytes=100e6)
    scenario = Scenario(
        name="ports",
        world_size=8,
        collective=algorithm,
        model=model,
        network=network,
        batch=Batch(lengths=[4] * 8),
        reduction="mean_of_rank_means",
    )
    measured = step_metrics(simulate(scenario), 0)
    assert measured.exposed_communication_s == pytest.approx(milliseconds / 1000, rel=1e-12)
    assert cost(algorithm, 8, 100e6, 0.0, 10e9).time_s == pytest.approx(milliseconds / 1000, rel=1e-12)
