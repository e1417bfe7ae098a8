"""The eight faults: what each does to the numbers, worked out by hand, and what is told of it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpsim.batch import global_batch
from dpsim.beats import beats, beats_as_text
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.edits import changed, with_micro_batches, with_world_size
from dpsim.faults import FAULTS, NAMED, broken, consequence, fault_of, healthy_of, mended
from dpsim.forms import from_query, preset, preset_names, to_query
from dpsim.metrics import step_metrics
from dpsim.mishaps import REAL_LINE
from dpsim.parts import Buckets, Compute, Network
from dpsim.replay import all_reduces, check_replayable
from dpsim.replicas import beside
from dpsim.report import trace_report
from dpsim.scenario import Scenario
from dpsim.simulate import simulate
from dpsim.timeline import COUNT
from dpsim.trace import BARRIER, OPTIMIZER, RECEIVE, Trace
from dpsim.trace_files import from_json, to_perfetto
from dpsim.ui.stage.offline import offline_page
from dpsim.ui.stage.payload import stage_data

NAMES = tuple(fault.name for fault in FAULTS)
GIVEN, BIGRAM = preset("first-screen"), preset("next-token")
SUMS = [[Fraction(int(v)) for v in row[0]] for row in GIVEN.model.gradient_sums or ()]  # [R][P]
VALID = [7, 2, 5, 2]
N, R, P = sum(VALID), 4, 4


def whole_sum() -> list[Fraction]:
    return [sum((row[i] for row in SUMS), Fraction(0)) for i in range(P)]


def ring_by_hand(rows: list[list[Fraction]], dropped: int = -1, doubled: int = -1) -> list[list[Fraction]]:
    """What every rank holds after a ring over one element a chunk, in which one transfer goes wrong.

    Round n: rank r sends chunk r - n to rank r + 1; the first half is added, the second replaces.
    """
    held, number = [list(row) for row in rows], 0
    ranks = len(rows)
    for n in range(2 * (ranks - 1)):
        sent = [(r, (r - n) % ranks, held[r][(r - n) % ranks]) for r in range(ranks)]
        for r, chunk, value in sent:
            for _ in range(0 if number == dropped else 2 if number == doubled else 1):
                to = (r + 1) % ranks
                held[to][chunk] = held[to][chunk] + value if n < ranks - 1 else value
            number += 1
    return held


@cache
def healthy(name: str) -> Scenario:
    """A preset in which the fault can be."""
    return BIGRAM if name == "padding-counted" else GIVEN


@cache
def run(name: str) -> tuple[Scenario, Trace]:
    scenario = broken(healthy(name), name)
    return scenario, simulate(scenario)


def floats(rows: list[list[Fraction]]) -> np.ndarray:
    return np.array([[float(v) for v in row] for row in rows])


# -- the numbers, by hand ----------------------------------------------------------------------------------


def test_a_wrong_divisor_divides_the_sum_by_the_number_of_ranks() -> None:
    _, trace = run("wrong-divisor")
    assert trace.reduced[0] == pytest.approx(floats([[v / R for v in whole_sum()]] * R), abs=1e-15)


def test_a_forgotten_factor_divides_by_the_ranks_once_too_often() -> None:
    _, trace = run("factor-forgotten")
    assert trace.reduced[0] == pytest.approx(floats([[v / (R * N) for v in whole_sum()]] * R), abs=1e-15)


def test_counted_padding_gives_the_mean_over_every_token() -> None:
    scenario, trace = run("padding-counted")
    batch, v = global_batch(scenario), scenario.model.vocabulary
    assert batch.valid_total == int(global_batch(BIGRAM).lengths.sum())
    start = trace.parameters[0, 0]

    def loss(parameters: np.ndarray) -> float:
        embedding, weight, bias = parameters[:v], parameters[v : 2 * v], parameters[2 * v :]
        total = 0.0
        for tokens, labels in zip(batch.tokens, batch.labels, strict=True):
            for x, y in zip(tokens, labels, strict=True):
                logits = embedding[x] * weight + bias
                total += float(np.log(np.exp(logits).sum()) - logits[y])
        return total / sum(map(len, batch.tokens))

    step = 1e-6
    by_differences = [
        (loss(start + step * e) - loss(start - step * e)) / (2 * step) for e in np.eye(len(start))
    ]
    assert trace.reduced[0, 0] == pytest.approx(by_differences, abs=1e-8)


@pytest.mark.parametrize("row", range(24))
def test_a_ring_without_a_row_leaves_what_one_by_hand_does(row: int) -> None:
    trace = simulate(replace(GIVEN, collective=f"ring, without {row}"))
    by_hand = floats([[v / N for v in held] for held in ring_by_hand(SUMS, dropped=row)])
    assert trace.reduced[0] == pytest.approx(by_hand, abs=1e-15)
    assert trace.parameters[1] == pytest.approx(trace.parameters[0] - 0.1 * by_hand, abs=1e-15)


@pytest.mark.parametrize("row", range(24))
def test_a_ring_with_a_row_twice_leaves_what_one_by_hand_does(row: int) -> None:
    trace = simulate(replace(GIVEN, collective=f"ring, twice {row}"))
    by_hand = floats([[v / N for v in held] for held in ring_by_hand(SUMS, doubled=row)])
    assert trace.reduced[0] == pytest.approx(by_hand, abs=1e-15)


def test_without_a_barrier_every_rank_uses_only_its_own_part() -> None:
    """One bucket begins to travel when the last backward is done: nothing has arrived by then."""
    scenario, trace = run("no-barrier")
    own = floats([[v / N for v in row] for row in SUMS])
    assert trace.reduced[0] == pytest.approx(own, abs=1e-15)
    several = simulate(replace(scenario, steps=3))
    steps = np.arange(4)[:, None, None]
    assert several.parameters == pytest.approx(several.parameters[0] - steps * 0.1 * own, abs=1e-15)


def test_without_a_barrier_what_arrived_during_backward_is_used() -> None:
    """Equal ranks, three buckets, a fast network: two have arrived when backward is done, the last not."""
    scenario = replace(
        changed(BIGRAM, "batch.valid", [7, 2, 5, 3]),
        steps=2,
        collective="ring, not awaited",
        compute=Compute(),
        network=Network(latency_s=1e-6, bandwidth_bytes_per_s=1e15),
        buckets=Buckets(cap_bytes=1.0),
    )
    trace = simulate(scenario)
    (last, *_), v = [trace.buckets(1)[-1]], scenario.model.vocabulary
    assert [len(trace.buckets(t)) for t in range(2)] == [1, 3]
    own, total = trace.scaled[1].sum(axis=1), trace.scaled[1].sum(axis=(0, 1))
    n = int(trace.valid_tokens[1].sum())
    assert (last.start, last.stop) == (0, v)
    assert trace.reduced[1, :, v:] == pytest.approx(np.tile(total[v:] / n, (4, 1)), abs=1e-15)
    assert trace.reduced[1, :, :v] == pytest.approx(own[:, :v] / n, abs=1e-15)


def test_uneven_batches_hang_in_the_first_all_reduce_that_one_rank_does_not_enter() -> None:
    scenario, trace = run("uneven-batches")
    assert scenario.micro_batches == (2, 2, 2, 1)
    hang = trace.hangs
    assert hang is not None
    assert (hang.step, hang.micro_batch, hang.inside, hang.absent) == (0, 1, (0, 1, 2), (3,))
    assert trace.parameters[1].tobytes() == trace.parameters[0].tobytes()
    assert len(trace.events.where(kind=OPTIMIZER)) == 0
    assert set(trace.events.micro_batch[trace.events.where(kind=BARRIER)].tolist()) == {0}
    entered = [trace.events.end_s[trace.events.where(rank=r)].max() for r in (0, 1, 2)]
    assert list(hang.since_s) == pytest.approx(entered)
    assert max(trace.events.end_s) == max(hang.since_s)
    assert len(simulate(replace(scenario, steps=5)).undefined) == 1  # it never comes to another step


def test_clipping_before_the_average_shortens_every_ranks_own() -> None:
    scenario, trace = run("clipped-before")
    limit = scenario.optimizer.clip_norm
    assert limit is not None
    expected = np.zeros(P)
    for row in SUMS:
        own = np.array([float(R * v / N) for v in row])
        expected += own * min(1.0, limit / np.linalg.norm(own)) / R
    assert trace.reduced[0, 0] == pytest.approx(expected, abs=1e-15)
    assert np.linalg.norm(trace.reduced[0, 0]) <= limit


# -- the scenario ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_an_edit_that_its_link_carries_and_mending_takes_back(name: str) -> None:
    scenario = broken(healthy(name), name)
    assert from_query(to_query(scenario)) == scenario
    assert healthy_of(scenario, healthy(name)) == (NAMED[name], healthy(name))
    if name != "padding-counted":  # labels may be meant as they are
        assert fault_of(scenario) == NAMED[name]
        found = healthy_of(scenario)
        assert found == (NAMED[name], mended(scenario))
    assert fault_of(mended(scenario)) is None
    simulate(mended(scenario))


@pytest.mark.parametrize("preset_name", preset_names())
def test_a_fault_can_be_in_a_preset_or_says_why_not(preset_name: str) -> None:
    scenario = preset(preset_name)
    if scenario.world_size > 16:
        return
    assert fault_of(scenario) is None
    for name in NAMES:
        try:
            made = broken(scenario, name)
        except InputError as error:
            refused = error
        else:
            assert 2 <= len(consequence(made, scenario)) <= 3
            continue
        assert refused.field == "fault"


def test_what_cannot_be_is_refused_with_its_reason() -> None:
    alone = with_world_size(BIGRAM, 1)
    for name in ("factor-forgotten", "no-barrier", "dropped-chunk", "doubled-chunk", "uneven-batches",
                 "clipped-before"):  # fmt: skip
        with pytest.raises(InputError, match=r"fault: cannot be: .*one rank"):
            broken(alone, name)
    for scenario, name, why in (
        (GIVEN, "padding-counted", "gradient sums are given"),
        (broken(BIGRAM, "padding-counted"), "padding-counted", "every token counts already"),
        (preset("chapter-19-2"), "wrong-divisor", "would not be seen"),
        (broken(GIVEN, "no-barrier"), "no-barrier", "in this scenario already"),
        (GIVEN, "gremlins", "must be one of wrong-divisor"),
    ):
        with pytest.raises(InputError, match=why):
            broken(scenario, name)


def test_the_row_that_is_chosen_carries_something() -> None:
    sums = [[[0, 0, 0, 0]], [[0, 5, 0, 0]], [[0, 0, 0, 0]], [[0, 0, 0, 0]]]
    scenario = changed(GIVEN, "model.gradient_sums", sums)
    trace = simulate(broken(scenario, "dropped-chunk"))
    assert not np.array_equal(trace.reduced[0, 0], simulate(scenario).reduced[0, 0])


# -- what is told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collective", ["ring", "tree", "halving-doubling", "parameter-server"])
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_run_can_be_told_drawn_saved_and_reported(name: str, collective: str) -> None:
    for changes in ({}, {"steps": 2}, {"world_size": 3}):
        base = replace(healthy(name), collective=collective)
        if "world_size" in changes:
            base = with_world_size(base, 3)
        scenario = replace(broken(base, name), steps=changes.get("steps", 1))
        trace = simulate(scenario)
        ways = beside(trace)
        told = beats(trace, ways)
        assert len({beat.id for beat in told}) == len(told)
        assert all(np.isfinite(beat.moment_s) for beat in told)
        page = offline_page(stage_data(trace, told, ways, told[0].id), told)
        assert "NaN" not in page
        assert (
            "Infinity"
            not in page.replace("POSITIVE_Infinity", "").split('id="data">')[1].split("</script>")[0]
        )
        json.dumps(trace_report(trace), allow_nan=False)
        json.loads(to_perfetto(trace))
        again = from_json(trace.to_json())
        assert again.to_json() == trace.to_json()
        check_replayable(again)


def text(name: str) -> str:
    return beats_as_text(beats(run(name)[1]))


def test_the_beats_of_a_dropped_chunk_say_what_is_dropped_and_who_is_missing() -> None:
    told = {beat.id: beat for beat in beats(run("dropped-chunk")[1])}
    assert run("dropped-chunk")[0].collective == "ring, without 4"  # round 1, rank 0 to rank 1, chunk 3
    assert "rank 0 should send now, chunk 3 to rank 1, is dropped" in told["allreduce.b0.r1"].sentence
    assert "chunk 3 lacks ranks 0 and 3, on every rank" in told["barrier"].sentence
    assert "Every rank holds the same sum" not in told["barrier"].sentence
    assert "no replica shows that it is the wrong step" in told["optimizer"].sentence


def test_the_beats_of_a_doubled_chunk_say_who_is_in_it_twice() -> None:
    told = {beat.id: beat for beat in beats(run("doubled-chunk")[1])}
    assert "Rank 1 takes in chunk 3 from rank 0 twice." in told["allreduce.b0.r1"].sentence
    assert "only rank 2 is missing, ranks 0 and 3 twice" in told["allreduce.b0.r1"].sentence
    assert "chunk 3 has ranks 0 and 3 twice, on every rank" in told["barrier"].sentence
    counts = [a.counts.tolist() for a in all_reduces(run("doubled-chunk")[1], 0)[1].arrivals]
    assert max(map(max, counts)) == 2


def test_a_chunk_that_is_dropped_on_its_way_back_leaves_the_replicas_different() -> None:
    trace = simulate(replace(GIVEN, collective="ring, without 18"))  # round 4: rank 2 to rank 3, chunk 2
    told = {beat.id: beat for beat in beats(trace)}
    assert len({replica.tobytes() for replica in trace.parameters[1]}) == 2
    assert "All 4 replicas" not in told["optimizer"].sentence
    assert "The replicas are no longer equal: rank 1 holds" in told["optimizer"].sentence
    assert "chunk 2 lacks ranks 0 and 1, on ranks 0 and 3" in told["barrier"].sentence
    told_later = beats(simulate(replace(trace.scenario, steps=2)))
    start = next(beat for beat in told_later if beat.id == "s1.start")
    assert "The 4 replicas are no longer equal" in start.sentence


def test_the_comparison_is_with_what_the_worst_rank_really_has() -> None:
    trace = simulate(replace(GIVEN, collective="ring, without 18"))
    reference = np.array([float(v / N) for v in whole_sum()])
    held = floats([[v / N for v in row] for row in ring_by_hand(SUMS, dropped=18)])
    errors = [float(np.linalg.norm(row - reference) / np.linalg.norm(reference)) for row in held]
    ways = beside(trace)
    own = ways.schemes[ways.chosen]
    assert own.relative_l2_error[0] == pytest.approx(max(errors))
    assert max(errors) > 0.1
    assert errors[1] == 0
    report = trace_report(trace)
    assert report["replicas"]["shown"] == 0
    after = [[0.5, -0.25, 1.0, 0.1] - 0.1 * row for row in held]
    assert report["replicas"]["largest_difference"] == pytest.approx(np.ptp(after, axis=0).max())
    assert report["parameters_after"] == pytest.approx(after[0].tolist())


def test_without_a_barrier_there_is_none_and_the_messages_go_on() -> None:
    _, trace = run("no-barrier")
    events = trace.events
    assert len(events.where(kind=BARRIER)) == 0
    last_step = events.end_s[events.where(kind=OPTIMIZER)].max()
    assert events.end_s[events.where(kind=RECEIVE)].max() > last_step
    ids = [beat.id for beat in beats(trace)]
    assert "barrier" not in ids
    assert ids.index("optimizer") < ids.index("allreduce.b0.r0")
    assert ids[-1] == "late"
    metrics = step_metrics(trace, 0)
    assert metrics.step_time_s == pytest.approx(last_step)
    assert metrics.wait_s is not None
    assert not metrics.wait_s.any()
    assert "with what its buffers hold then: none of the 6 transfers to a rank had arrived" in text(
        "no-barrier"
    )


def test_the_beats_of_a_hang_end_with_who_waits_for_ever_and_what_a_real_run_prints() -> None:
    _, trace = run("uneven-batches")
    told = beats(trace)
    assert told[-1].id == "hang"
    assert "wait for rank 3 for ever: rank 3 has no such micro-batch" in told[-1].sentence
    assert REAL_LINE in told[-1].sentence
    metrics = step_metrics(trace, 0)
    assert (metrics.step_time_s, metrics.wait_s, metrics.exposed_communication_s) == (None, None, None)
    assert metrics.scaling_efficiency is None


def parameter_origin(name: str, rank: int, element: int) -> tuple[str, str]:
    """What is said of a parameter after the step on a rank, and how often each rank is in its gradient."""
    trace = run(name)[1]
    ways = beside(trace)
    told = beats(trace, ways)
    data = stage_data(trace, told, ways, told[0].id)
    (step,), texts = data["steps"], data["origins"]["texts"]
    after = (step["own"][rank]["origins"] if "own" in step else step["origins"])["after"]
    row = data["origins"]["rows"][after[element]]
    return texts[row[1]], texts[row[3]]


def test_a_click_on_a_parameter_says_which_rank_is_missing_or_counted_twice() -> None:
    says, counts = parameter_origin("dropped-chunk", 0, 3)
    assert counts == "0110"
    assert "from a gradient that lacks ranks 0 and 3" in says
    says, counts = parameter_origin("doubled-chunk", 0, 3)
    assert counts == "2112"  # rank 1 took in what ranks 0 and 3 had made of chunk 3 twice
    assert "has ranks 0 and 3 twice" in says
    for rank in range(R):
        says, counts = parameter_origin("no-barrier", rank, 0)
        assert counts == "".join(str(int(r == rank)) for r in range(R))
        assert "The replicas are no longer equal." in says


@pytest.mark.parametrize("edit", ["without 4", "twice 4", "without 18", "not awaited"])
def test_the_count_of_valid_tokens_is_never_edited(edit: str) -> None:
    trace = simulate(replace(GIVEN, collective=f"ring, {edit}"))
    assert trace.counted.tolist() == [[N] * R]
    (count,) = [part for part in all_reduces(trace, 0) if part.bucket == COUNT]
    assert len(count.arrivals) == 2 * (R - 1)  # one element is one chunk, which goes round once and back
    assert all(max(a.counts) == 1 for a in count.arrivals)


def test_what_a_reduction_fault_comes_to_is_in_its_beats() -> None:
    assert "raw sums over world size (this run, off by 300 %)" in text("wrong-divisor")
    assert "token-weighted, average not compensated (this run, off by 75 %)" in text("factor-forgotten")
    assert "32 tokens; 32 of them are valid" in text("padding-counted")
    assert "clipped on the rank" in text("clipped-before")


def test_the_consequence_has_the_numbers_of_the_two_runs() -> None:
    said = " ".join(consequence(broken(GIVEN, "wrong-divisor"), GIVEN))
    assert "4 times as long: it is off by 300 %" in said  # N / R = 16 / 4
    said = " ".join(consequence(broken(GIVEN, "no-barrier"), GIVEN))
    faster = step_metrics(simulate(GIVEN), 0).step_time_s - step_metrics(run("no-barrier")[1], 0).step_time_s
    assert f"looks faster by {1e3 * faster:.3g} ms of 15.8 ms, and is wrong" in said
    held = floats([[v / N for v in row] for row in SUMS])
    assert f"up to {0.1 * np.ptp(held, axis=0).max():.4g} apart" in said
    said = " ".join(consequence(broken(GIVEN, "dropped-chunk"), GIVEN))
    lost = ring_by_hand(SUMS, dropped=4)[0]
    off = np.linalg.norm(floats([lost])[0] - floats([whole_sum()])[0]) / np.linalg.norm(
        floats([whole_sum()])[0]
    )
    assert f"off by {100 * off:.4g} % from one device's" in said
    assert "comparing them would not find it" in said


def test_a_healthy_run_is_compared_as_before() -> None:
    ways = beside(simulate(GIVEN))
    assert list(ways.schemes) == list(compare(GIVEN).schemes)
    assert ways.chosen == "token_weighted"


def test_uneven_micro_batches_hang_only_where_each_is_synchronised() -> None:
    uneven = with_micro_batches(GIVEN, (2, 2, 2, 1))
    assert simulate(uneven).hangs is None
    assert simulate(changed(uneven, "buckets.sync_every_micro_batch", True)).hangs is not None
