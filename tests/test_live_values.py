"""Live runs on CPU processes: the published cases, the presets, drawn scenarios, in every mode.

Each is held against the simulator, one device, and laws 2, 3, 5 and 8 of the design.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from live_runs import MODES, gap, has_messages, live, needs_torch, obeys_the_laws
from strategies import law, scenarios
from test_reduction_cases import CASES, scenario_of

from dpsim.beats import beats, beats_as_text
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.forms import preset, preset_names
from dpsim.live.errors import LiveError
from dpsim.live.launch import run_live
from dpsim.metrics import step_metrics
from dpsim.scenario import Batch, Buckets, Compute, Model, Optimizer, Scenario
from dpsim.simulate import simulate
from dpsim.timeline import buckets
from dpsim.trace import ALL_REDUCE, FORWARD, OPTIMIZER, RECEIVE, SEND
from dpsim.trace_files import from_json, to_perfetto

pytestmark = needs_torch

every_mode = pytest.mark.parametrize("mode", MODES)


def makes_other_buckets(scenario: Scenario) -> bool:
    """Whether torch would cut these small tensors otherwise than the large ones that they stand for."""
    return scenario.buckets.cap_bytes is None and len(buckets(scenario, 1)) > 1


@pytest.mark.parametrize(("case", "scheme"), CASES)
def test_a_published_case_runs_live_as_given_gradients(case: dict, scheme: str) -> None:
    scenario, expected = scenario_of(case, scheme), case["expect"][scheme]
    trace, simulated = live(scenario), simulate(scenario)
    obeys_the_laws(trace, simulated)
    assert trace.payload.tobytes() == simulated.payload.tobytes()
    if isinstance(expected, str):
        assert f"undefined: {trace.undefined[0]}" == expected
        assert trace.gradient(0) is None
        assert trace.parameters[1].tobytes() == trace.parameters[0].tobytes()
        assert len(trace.events.where(kind=OPTIMIZER)) == 0
        return
    assert trace.gradient(0) == pytest.approx(np.atleast_1d(expected), rel=1e-12)
    if scheme == "token_weighted":
        assert gap(trace.gradient(0), compare(scenario).one_device.gradient[0]) <= 1e-12


@every_mode
@pytest.mark.parametrize("name", [n for n in preset_names() if preset(n).world_size <= 4])
def test_a_preset_runs_live_in_every_mode(name: str, mode: str) -> None:
    scenario = preset(name)
    if mode == "ddp" and makes_other_buckets(scenario):
        scenario = replace(scenario, buckets=replace(scenario.buckets, cap_bytes=1e15))
    trace, simulated = live(scenario, mode), simulate(scenario)
    obeys_the_laws(trace, simulated)
    if mode == "chunks":
        messages = (SEND, RECEIVE)
        assert [len(trace.events.where(kind=k)) for k in messages] == [
            len(simulated.events.where(kind=k)) for k in messages
        ]
        assert len(trace.events.where(kind=ALL_REDUCE)) == 0
        if scenario.model.kind == "given":
            assert trace.payload.tobytes() == simulated.payload.tobytes()
    else:  # single messages were not measured, so there are none
        assert not has_messages(trace)
        assert trace.payload.size == 0
        assert len(trace.events.where(kind=ALL_REDUCE)) > 0


@every_mode
@pytest.mark.parametrize("name", ["first-screen", "overlap", "accumulation", "empty-rank"])
def test_a_measured_trace_is_told_saved_and_measured_like_any_other(name: str, mode: str) -> None:
    trace = live(preset(name), mode)
    again = from_json(trace.to_json())
    assert again.to_json() == trace.to_json()
    assert again.machine["mode"] == mode
    told = beats(again)
    assert len({b.id for b in told}) == len(told)
    moments = [b.moment_s for b in told]
    assert moments == sorted(moments)
    rounds = [b.id for b in told if b.id.rpartition(".")[2].startswith("r")]
    assert bool(rounds) == (mode == "chunks")
    assert "All-reduce" in beats_as_text(told) or mode == "chunks"
    assert to_perfetto(again).count('"all_reduce"') >= (mode != "chunks")
    for t in range(trace.steps):
        found = step_metrics(again, t)
        assert found.step_time_s > 0
        assert found.wait_s.min() == 0
        assert found.one_device_step_time_s is None  # it was not measured
        assert (found.bytes_sent is None) == (mode != "chunks")


def test_the_accelerate_guide_live_on_two_ranks_gives_0_2117_and_0_3172() -> None:
    for mode in MODES:
        after = live(preset("accelerate-doc"), mode).parameters[1]
        assert [[round(float(w), 4) for w in replica] for replica in after] == [[0.2117, 0.3172]] * 2


@every_mode
def test_float32_stays_within_1e_5(mode: str) -> None:
    for name in ("accelerate-doc", "overlap", "first-screen"):
        trace = live(preset(name), mode, "float32")
        obeys_the_laws(trace, simulate(preset(name)), 1e-5)
        assert trace.machine["dtype"] == "float32"
        assert trace.bytes_per_element == 4.0


@law(20)
@given(scenarios(max_ranks=4))
def test_drawn_scenarios_in_chunks(scenario: Scenario) -> None:
    early = replace(scenario.optimizer, clip="after")
    if scenario.buckets.sync_every_micro_batch:
        scenario = replace(scenario, optimizer=early)
    obeys_the_laws(run_live(scenario, devices="cpu"), simulate(scenario), 1e-10)


@law(12)
@given(scenarios(max_ranks=4))
def test_drawn_scenarios_over_the_library(scenario: Scenario) -> None:
    if scenario.buckets.sync_every_micro_batch:
        scenario = replace(scenario, optimizer=replace(scenario.optimizer, clip="after"))
    obeys_the_laws(run_live(scenario, mode="library", devices="cpu"), simulate(scenario), 1e-10)


@law(12)
@given(scenarios(max_ranks=4))
def test_drawn_scenarios_under_ddp(scenario: Scenario) -> None:
    scenario = replace(
        scenario,
        optimizer=replace(scenario.optimizer, clip="after"),
        buckets=replace(scenario.buckets, overlap=True),
    )
    if makes_other_buckets(scenario):
        with pytest.raises(InputError, match=r"^buckets\.cap_bytes: must be given in mode ddp"):
            run_live(scenario, mode="ddp", devices="cpu")
        return
    obeys_the_laws(run_live(scenario, mode="ddp", devices="cpu"), simulate(scenario), 1e-10)


def test_warm_ranks_run_again() -> None:
    first, second = (run_live(preset("accelerate-doc"), devices="cpu").machine for _ in range(2))
    assert first["process_ids"] == second["process_ids"]


def test_ranks_start_from_different_seeds_and_only_the_broadcast_makes_them_equal() -> None:
    for mode in MODES:
        with pytest.raises(LiveError, match=r"^live: rank 1 does not hold the same parameters as rank 0"):
            run_live(preset("accelerate-doc"), mode=mode, devices="cpu", broadcast=False)


def test_repeated_work_takes_longer_and_changes_no_gradient() -> None:
    scenario = replace(preset("accelerate-doc"), steps=3)
    plain = live(scenario)
    heavy = live(replace(scenario, compute=Compute(work_factor=300, speed=[1.0, 0.25])))
    assert heavy.reduced.tobytes() == plain.reduced.tobytes()
    assert heavy.payload.tobytes() == plain.payload.tobytes()
    forward = [
        [heavy.events.where(step=t, rank=r, kind=FORWARD).tolist() for t in range(3)] for r in range(2)
    ]
    spent = heavy.events.end_s - heavy.events.start_s
    rank_0, rank_1 = (min(float(spent[rows].sum()) for rows in steps) for steps in forward)
    assert rank_1 > 1.5 * rank_0  # four times the work, on a machine that may be busy with something else


def test_micro_batches_may_differ_by_rank() -> None:
    batch = Batch(lengths=[3, 2, 4, 1, 5], valid=[1, 2, 3, 1, 4], micro_batches=[2, 3])
    for mode in MODES:
        for scheme in ("token_weighted", "mean_of_micro_batch_means"):
            scenario = Scenario(
                name="uneven", world_size=2, batch=batch, model=Model("scalar", 3), reduction=scheme, steps=2
            )
            obeys_the_laws(live(scenario, mode), simulate(scenario))


@every_mode
@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_every_optimizer_with_clipping_is_torch_s_and_the_formula_s(kind: str, mode: str) -> None:
    chosen = Optimizer(kind=kind, clip_norm=0.01, clip="after")
    scenario = replace(preset("overlap"), steps=3, optimizer=chosen)
    obeys_the_laws(live(scenario, mode), simulate(scenario))
    if mode != "ddp":
        before = replace(scenario, optimizer=replace(chosen, clip="before"))
        obeys_the_laws(live(before, mode), simulate(before))


def test_one_rank_alone_and_a_rank_without_a_sequence() -> None:
    alone = Scenario(name="alone", world_size=1, batch=Batch(lengths=[3]))
    empty = Scenario(name="empty", world_size=3, batch=Batch(lengths=[3, 2]))
    for mode in MODES:
        for scenario in (alone, empty):
            obeys_the_laws(live(scenario, mode), simulate(scenario))


BAD = [
    (replace(preset("ring-64"), world_size=17), "chunks", "world_size: must be a whole number from 1 to 16"),
    (replace(preset("first-screen"), steps=201), "chunks", "steps: must be a whole number from 1 to 200"),
    (preset("first-screen"), "rings", "mode: must be one of chunks, library, ddp"),
    (
        replace(preset("first-screen"), optimizer=Optimizer(clip_norm=1, clip="before")),
        "ddp",
        "optimizer.clip: must be after in mode ddp",
    ),
    (replace(preset("overlap"), buckets=Buckets(overlap=False)), "ddp", "buckets.overlap: must be true"),
    (
        replace(
            preset("accumulation"),
            optimizer=Optimizer(clip_norm=1, clip="before"),
            buckets=Buckets(sync_every_micro_batch=True),
        ),
        "chunks",
        "optimizer.clip: must be after where buckets.sync_every_micro_batch",
    ),
]


@pytest.mark.parametrize(("scenario", "mode", "message"), BAD)
def test_what_cannot_run_live_is_refused_before_anything_starts(
    scenario: Scenario, mode: str, message: str
) -> None:
    with pytest.raises(InputError, match="^" + message):
        run_live(scenario, mode=mode)


def test_parameters_that_run_away_are_the_learning_rate_s_fault() -> None:
    scenario = replace(preset("chapter-19-2"), steps=3, optimizer=Optimizer(learning_rate=1e6))
    heavy = replace(scenario, model=replace(scenario.model, gradient_sums=(((1e90, 3),), ((3, 1),))))
    with pytest.raises(InputError, match=r"^optimizer\.learning_rate: must be small enough"):
        run_live(heavy, devices="cpu")
