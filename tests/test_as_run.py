"""What ran side by side, and predicted beside measured: laws on simulated traces, whose numbers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsim.as_run import as_run
from dpsim.comparison import compare
from dpsim.differences import differences, message_cost
from dpsim.edits import on_one_device
from dpsim.forms import preset, preset_names
from dpsim.scenario import Scenario
from dpsim.simulate import simulate

SMALL = [name for name in preset_names() if preset(name).world_size <= 8]
WAYS = ("mean_of_rank_means", "token_weighted")


@pytest.mark.parametrize("name", SMALL)
def test_the_whole_batch_on_one_device_is_the_reference(name: str) -> None:
    scenario = preset(name)
    alone, reference = simulate(on_one_device(scenario)), compare(scenario).one_device
    for step in range(scenario.steps):
        assert alone.gradient(step) == pytest.approx(reference.gradient[step], rel=1e-12, abs=1e-15)
    assert alone.parameters[:, 0] == pytest.approx(reference.parameters, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", SMALL)
def test_the_comparison_of_traces_is_the_one_by_formula(name: str) -> None:
    scenario = preset(name)
    runs = {way: simulate(replace(scenario, reduction=way)) for way in WAYS}
    ran = as_run(runs | {"one_device": simulate(on_one_device(scenario))}, "token_weighted")
    formula = compare(scenario)
    assert ran.one_device.loss == pytest.approx(formula.one_device.loss)
    for way in WAYS:
        one, other = ran.schemes[way], formula.schemes[way]
        assert one.undefined == other.undefined
        for of in ("loss", "gradient", "relative_l2_error", "cosine"):
            for a, b in zip(getattr(one, of), getattr(other, of), strict=True):
                assert (a is None) == (b is None)
                assert a is None or a == pytest.approx(b, rel=1e-9, abs=1e-12)
        assert one.parameters == pytest.approx(other.parameters, rel=1e-9, abs=1e-12)
        assert (one.token_weight is None) == (other.token_weight is None)
        if one.token_weight is not None and other.token_weight is not None:
            assert np.array_equal(one.token_weight, other.token_weight, equal_nan=True)


def test_a_way_that_did_not_go_through_says_why_in_its_place() -> None:
    trace = simulate(preset("first-screen"))
    runs = {"token_weighted": trace, "mean_of_rank_means": "ran away", "one_device": trace}
    ran = as_run(runs, "token_weighted")
    failed = ran.schemes["mean_of_rank_means"]
    assert failed.undefined == "ran away"
    assert failed.gradient == (None,)


def slower(
    scenario: Scenario, *, latency: float = 1.0, bandwidth: float = 1.0, work: float = 1.0
) -> Scenario:
    network, compute = scenario.network, scenario.compute
    return replace(
        scenario,
        network=replace(
            network,
            latency_s=network.latency_s * latency,
            bandwidth_bytes_per_s=network.bandwidth_bytes_per_s * bandwidth,
        ),
        compute=replace(
            compute,
            forward_s_per_token=compute.forward_s_per_token * work,
            backward_s_per_token=compute.backward_s_per_token * work,
        ),
    )


def test_latency_and_bandwidth_are_found_again_in_the_messages() -> None:
    scenario = preset("next-token")
    latency, bandwidth = message_cost(simulate(scenario), 0)
    network = scenario.network
    assert latency == pytest.approx(network.latency_s + 8 / network.bandwidth_bytes_per_s)
    assert bandwidth == pytest.approx(network.bandwidth_bytes_per_s)


def test_few_bytes_show_no_bandwidth() -> None:
    scenario = preset("first-screen")
    few = replace(scenario, network=replace(scenario.network, gradient_bytes=4 * 1024.0))
    latency, bandwidth = message_cost(simulate(few), 0)
    assert latency is not None
    assert bandwidth is None
    machine = dict.fromkeys(("hardware", "versions", "date", "process_ids"), "x") | {"dtype": "float32"}
    found = differences(simulate(few), replace(simulate(few), source="measured", machine=machine), 0)
    (told,) = [d for d in found if d.unit == "B/s"]
    ran, stood_for = 4, simulate(few).bytes_per_element  # bytes an element: float32, and what it stands for
    assert told.predicted == pytest.approx(few.network.bandwidth_bytes_per_s * ran / stood_for)
    assert told.measured is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"latency": 3.0}, "latency: the smallest message"),
        ({"bandwidth": 0.25}, "bandwidth of a message"),
        ({"work": 2.0}, "arrival spread: the longest wait"),
    ],
)
def test_a_difference_is_named_where_it_was_made(change: dict[str, float], named: str) -> None:
    scenario = preset("next-token")
    found = differences(simulate(scenario), simulate(slower(scenario, **change)), 0)
    ratio = {d.name: d.measured / d.predicted for d in found if d.measured and d.predicted}
    assert ratio[named] == pytest.approx(next(iter(change.values())), rel=0.02)
    parts = {d.name: d.measured or 0.0 for d in found}
    whole = parts["forward and backward, slowest rank"] + parts["exposed communication"]
    whole += parts["optimizer step"] + parts["overhead: scatter, count and all between"]
    assert whole == pytest.approx(parts["step"])
