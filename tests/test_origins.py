"""Where numbers come from: every origin is held against the trace, and its arithmetic is done again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsim.batch import global_batch
from dpsim.beats import beats
from dpsim.comparison import compare
from dpsim.contrast import contrast
from dpsim.derivations import Derivations
from dpsim.forms import from_query, preset, preset_names
from dpsim.metrics import step_metrics
from dpsim.origins import Origin, Origins, inside_text
from dpsim.replay import all_reduces
from dpsim.scenario import SCHEMES, Batch, Model, Scenario
from dpsim.simulate import simulate
from dpsim.trace import Trace
from dpsim.ui.stage.payload import ghost_of, stage_data
from dpsim.wording import number

MORE = {
    "momentum": ("first-screen", {"steps": "3", "optimizer.kind": "momentum"}),
    "clipped after": ("first-screen", {"steps": "2", "optimizer.clip_norm": "0.5"}),
    "adam": ("first-screen", {"steps": "3", "optimizer.kind": "adam", "reduction": "sum_over_world_size"}),
    "clipped before": ("first-screen", {"optimizer.clip_norm": "0.5", "optimizer.clip": "before"}),
    "micro-batch means": ("accumulation", {"reduction": "mean_of_micro_batch_means"}),
    "every micro-batch": ("accumulation", {"buckets.sync_every_micro_batch": "true"}),
    "rank means": ("overlap", {"reduction": "mean_of_rank_means"}),
    "not compensated": ("ring-8", {"reduction": "token_weighted_not_compensated"}),
    "undefined": ("empty-rank", {"reduction": "mean_of_rank_means"}),
}  # fmt: skip
SCENARIOS = {name: preset(name) for name in preset_names()} | {
    title: from_query(keys, base=preset(name)) for title, (name, keys) in MORE.items()
}


def written(text: str) -> float:
    """The value of written arithmetic."""
    plain = text.replace("−", "-").replace("×", "*").replace("^", "**").replace("²", "**2")
    plain = re.sub(r"√([\d.e-]+)", r"(\1)**0.5", plain.replace(" to clip it", ""))
    assert re.fullmatch(r"[-+*/(). \de]+", plain), text
    return float(eval(plain))


def sums_in(origin: Origin) -> Iterator[tuple[str, str]]:
    """The lines that claim "arithmetic = result"."""
    for _, how in origin.lines:
        if " = " in how and not how.startswith("|g|"):
            left, _, right = how.rpartition(" = ")
            yield left, re.sub(r" (s|ms|µs)$", "", right)


def all_origins(trace: Trace) -> list[Origin]:
    scenario = trace.scenario
    ways, batch = compare(scenario), global_batch(scenario)
    derived = Derivations(trace, batch, ways)
    found: list[Origin] = []
    for t in range(trace.steps):
        of = Origins(trace, t, batch)
        found += [of.all_valid(), of.step_time(), *derived.compared(t)]
        found += [of.valid_of(r) for r in range(scenario.world_size)]
        found += [derived.updated(t, i, None) for i in range(min(4, scenario.model.size))]
        for part in all_reduces(trace, t) if scenario.world_size <= 16 else ():
            cells = of.cells(part)
            found += [o for row in cells.brought for o in row] + list(cells.arrivals)
            found += [o for row in cells.added_up.values() for o in row]
    for r, micro in enumerate(scenario.micro_batches):
        found += [derived.token(r, k) for k in range(micro)]
    return found


def arithmetic_is_right(trace: Trace) -> None:
    """Every written line of `trace`'s origins, done again."""
    checked = 0
    for origin in all_origins(trace):
        for left, right in sums_in(origin):
            terms = [abs(float(x.replace("e−", "e-"))) for x in re.findall(r"\d[\d.]*(?:e−?\d+)?", left)]
            # Four digits were written of each: the result may be off by a few of the last ones.
            slack = 4e-3 * max([*terms, abs(written(right))])
            assert abs(written(left) - written(right)) <= slack, f"{origin.title}: {left} = {right}"
            checked += 1
    assert checked > 5


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_the_arithmetic_of_every_origin_is_right(scenario: Scenario) -> None:
    arithmetic_is_right(simulate(scenario))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_every_origin_names_a_beat_that_is_told(scenario: Scenario) -> None:
    ids = {beat.id for beat in beats(simulate(scenario))}
    of_counts = scenario.reduction in ("token_weighted", "token_weighted_not_compensated")
    for origin in all_origins(simulate(scenario)):
        if of_counts or not origin.beat.endswith("count"):
            assert origin.beat in ids, origin.title


@pytest.mark.parametrize(
    "name", ["first-screen", "accumulation", "overlap", "collective-halving-doubling", "ring-8"]
)
def test_a_cell_tells_what_is_held_there(name: str) -> None:
    trace = simulate(preset(name))
    for t in range(trace.steps):
        of = Origins(trace, t, global_batch(trace.scenario))
        for part in all_reduces(trace, t):
            cells = of.cells(part)
            for arrival, origin in zip(part.arrivals, cells.arrivals, strict=True):
                assert origin.counts == tuple(arrival.counts)
                now = number(float(arrival.now[0]))
                assert origin.lines[0][1].endswith(f"= {now}" if arrival.adds else f"{now}, kept as it came")
                assert len(origin.parts) == 1 + arrival.adds
                assert origin.parts[-1].counts == tuple(arrival.payload_counts), "what came is what was sent"


def test_the_tokens_in_a_partial_sum_are_those_of_its_ranks() -> None:
    trace = simulate(preset("first-screen"))
    part = all_reduces(trace, 0)[1]
    cells = Origins(trace, 0, global_batch(trace.scenario)).cells(part)
    (second,) = [o for o in cells.arrivals if o.beat == "allreduce.b0.r1" and o.title == "Chunk 0 on rank 2"]
    assert "14 valid of 24 tokens" in second.says  # 7 + 2 + 5 of 8 + 8 + 8
    assert second.lines == (("element 0", "−2 + 8 = 6"), ("what the ranks brought", "3 + 5 − 2 = 6"))


def test_a_parameter_is_the_optimizers_arithmetic() -> None:
    scenario = preset("first-screen")
    derived = Derivations(simulate(scenario), global_batch(scenario), compare(scenario))
    assert derived.updated(0, 0, None).lines[-1] == ("θ0 − rate × g0", "0.5 − 0.1 × 0.625 = 0.4375")
    assert derived.updated(0, 0, None).lines[0] == ("gradient g0 = sum / N", "10 / 16 = 0.625")


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_the_last_line_of_a_parameter_is_the_traces_value(kind: str) -> None:
    scenario = from_query(
        {"steps": "4", "optimizer.kind": kind, "optimizer.clip_norm": "0.7"}, base=preset("overlap")
    )
    trace = simulate(scenario)
    derived = Derivations(trace, global_batch(scenario), compare(scenario))
    for t in range(4):
        for i in range(4):
            last = derived.updated(t, i, None).lines[-1][1]
            assert last.endswith(f"= {number(float(trace.parameters[t + 1, 0, i]))}")


def test_a_skipped_step_keeps_its_parameters_and_says_why() -> None:
    scenario = SCENARIOS["undefined"]
    derived = Derivations(simulate(scenario), global_batch(scenario), compare(scenario))
    origin = derived.updated(0, 0, None)
    assert origin.says == "Kept as it was: the optimizer step is skipped, since rank 0 has no valid token."
    undefined = derived.compared(0)[1]
    assert undefined.says == "Undefined: rank 0 has no valid token."
    assert dict(derived.token(1, 0).lines)["naive mean of rank means (this run)"].startswith(
        "undefined: rank 0"
    )


def test_a_token_tells_its_weight_under_every_reduction() -> None:
    scenario = preset("first-screen")
    ways = compare(scenario)
    derived = Derivations(simulate(scenario), global_batch(scenario), ways)
    for r, n in enumerate((7, 2, 5, 2)):
        values = [how.rpartition("= ")[2] for _, how in derived.token(r, 0).lines]
        right = [1, 16 / (4 * n), 16 / (4 * n), 16 / (4 * 16), 16 / 4]
        assert values == [number(v) for v in right]
    assert len(SCHEMES) == 5


def test_an_own_table_stands_beside_the_five() -> None:
    scenario = replace(preset("first-screen"), reduction=((0.1,), (0.2,), (0.3,), (0.4,)))
    derived = Derivations(simulate(scenario), global_batch(scenario), compare(scenario))
    assert derived.token(3, 0).lines[-1] == ("own table of weights (this run)", "0.4 × 16 = 6.4")


@pytest.mark.parametrize("name", preset_names())
def test_law_6_the_parts_of_the_step_time_add_up(name: str) -> None:
    trace = simulate(preset(name))
    for t in range(trace.steps):
        origin = Origins(trace, t, global_batch(trace.scenario)).step_time()
        m = step_metrics(trace, t)
        for what, how in origin.lines:
            if what.startswith("rank"):
                unit = {"s": 1, "ms": 1e-3, "µs": 1e-6}[how.rpartition(" ")[2]]
                assert written(how.partition(" = ")[0]) * unit == pytest.approx(m.step_time_s, rel=2e-3)


def test_the_rows_compared_are_those_of_the_contrast() -> None:
    for scenario in SCENARIOS.values():
        trace, ways = simulate(scenario), compare(scenario)
        derived = Derivations(trace, global_batch(scenario), ways)
        for t in range(trace.steps):
            assert [o.title for o in derived.compared(t)] == [row.name for row in contrast(trace, t, ways)]


def test_repeated_sequences_are_not_in_the_reference() -> None:
    scenario = replace(
        preset("first-screen"),
        world_size=2,
        model=Model(kind="scalar", vocabulary=2),
        batch=Batch(lengths=(2, 3, 4), shard="strided"),
        compute=replace(preset("first-screen").compute, speed=None),
    )
    derived = Derivations(simulate(scenario), global_batch(scenario), compare(scenario))
    assert "before dealing, 9 valid tokens" in derived.compared(0)[-1].says


def test_who_is_inside_as_runs() -> None:
    assert inside_text(np.array([1, 1, 0, 1, 0, 1])) == "0–1, 3, 5"
    assert inside_text(np.array([0, 0])) == ""


# -- in the payload ------------------------------------------------------------------------------------------


def data_of(scenario: Scenario) -> tuple[dict[str, Any], Trace]:
    trace, ways = simulate(scenario), compare(scenario)
    told = beats(trace, ways)
    return stage_data(trace, told, ways, told[0].id), trace


def sixteen() -> Scenario:
    """The benchmark's ring of sixteen ranks."""
    return replace(
        preset("ring-8"),
        world_size=16,
        model=Model(kind="scalar", vocabulary=16),
        batch=Batch(lengths=(8,) * 16, valid=tuple(1 + (5 * rank) % 8 for rank in range(16))),
    )


@pytest.mark.parametrize("scenario", [sixteen(), preset("ring-64")], ids=["16", "64"])
def test_the_payload_stays_small(scenario: Scenario) -> None:
    data, _ = data_of(scenario)
    assert len(json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()) < 500_000
    texts = data["origins"]["texts"]
    assert len(set(texts)) == len(texts), "every text once"


@pytest.mark.parametrize("name", [n for n in preset_names() if preset(n).world_size <= 16])
def test_every_number_on_a_card_has_its_own_origin(name: str) -> None:
    data, trace = data_of(preset(name))
    rows, texts = data["origins"]["rows"], data["origins"]["texts"]
    for t, step in enumerate(data["steps"]):
        for group, part in zip(step["groups"], all_reduces(trace, t), strict=True):
            for i, arrival in enumerate(part.arrivals):
                row = rows[group["made"] + i]
                assert number(float(arrival.now[0])) in texts[row[2][1]]
                assert texts[row[3]] == data["who"][group["inside"][i]]
                assert data["beats"][row[4]]["id"].startswith("s1." if t else ("allreduce", "count"))
            for r in range(trace.scenario.world_size):
                row = rows[group["own"][r]]
                assert texts[row[3]].index("1") == r
        assert len(step["origins"]["compare"]) == len(step["compare"])
        assert len(step["origins"]["after"]) == len(step["after"])


def test_terms_travel_once_and_only_those_that_occur() -> None:
    terms = data_of(preset("chapter-19-2"))[0]["terms"]
    assert {"rank", "reduce-scatter", "naive mean"} <= set(terms)
    assert "staleness" not in terms
    assert terms["rank"][1:] == ["rank", "ranks"]


def test_a_ghost_is_small_and_leaves_the_id_alone() -> None:
    data, _ = data_of(preset("ring-8"))
    ghost = ghost_of(data)
    assert len(json.dumps(ghost)) < 3000
    assert ghost["world"] == 8
    assert ghost["steps"][0]["after"] == data["steps"][0]["after"]
    assert (data | {"ghost": ghost})["id"] == data["id"]
    two = ghost_of(data_of(preset("overlap"))[0], 1)
    assert two["steps"][0] is None
    assert two["steps"][1] is not None
