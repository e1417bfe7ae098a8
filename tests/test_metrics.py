"""The named metrics of a step, recomputed here from the scenario's numbers alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsim.forms import preset
from dpsim.metrics import StepMetrics, step_metrics
from dpsim.scenario import Batch, Compute, Network, Scenario
from dpsim.simulate import simulate

MS, US = 1e-3, 1e-6


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-15)


def test_the_first_screen_worked_out_by_hand() -> None:
    """Four ranks of 8 tokens each: 0.25 ms forward and 0.5 ms backward per token at speeds 1, 1.15, 1.05
    and 0.75; 0.1 ms a message, 10 GB/s; a gradient of 40 MB, 16 bytes a token, 8 bytes of count; 0.5 ms
    for the optimizer step."""
    found = step_metrics(simulate(preset("first-screen")), 0)
    scatter = 0.1 * MS + 8 * 16 / 10e9
    count = 6 * (0.1 * MS + 8 / 10e9)  # 2 (R - 1) rounds with the one number that travels
    compute = [8 * 0.75 * MS / speed for speed in (1, 1.15, 1.05, 0.75)]
    exposed = 6 * (0.1 * MS + 10e6 / 10e9)  # a chunk is 10 MB: 1.1 ms a round
    assert found.scatter_s == close([scatter] * 4)
    assert found.count_s == close([count] * 4)
    assert found.compute_s == close(compute)
    assert found.wait_s == close([8 * MS - c for c in compute])
    assert found.straggler == 3
    assert found.exposed_communication_s == close(exposed) == close(6.6 * MS)
    assert found.communication_s == close(exposed)  # one bucket: nothing to hide behind
    assert found.optimizer_s == close(0.5 * MS)
    total = scatter + count + 8 * MS + exposed + 0.5 * MS
    assert found.step_time_s == close(total)
    assert found.bytes_sent == close([2 * 3 / 4 * 40e6] * 4)
    assert found.algbw_bytes_per_s == close(40e6 / exposed)
    assert found.busbw_bytes_per_s == close(1.5 * 40e6 / exposed)
    alone = 0.1 * MS + 32 * 16 / 10e9 + 32 * 0.75 * MS + 0.5 * MS
    assert found.one_device_step_time_s == close(alone)
    assert found.scaling_efficiency == close(alone / (4 * total))


def test_without_latency_a_message_takes_its_bytes_over_the_bandwidth() -> None:
    scenario = preset("first-screen")
    network = Network(latency_s=0, bandwidth_bytes_per_s=10e9, gradient_bytes=40e6)
    found = step_metrics(simulate(replace(scenario, network=network)), 0)
    assert found.scatter_s == close([8 * 16 / 10e9] * 4)
    assert found.count_s == close([6 * 8 / 10e9] * 4)
    assert found.exposed_communication_s == close(6 * MS)
    assert found.busbw_bytes_per_s == close(10e9)  # a ring without latency uses every link fully
    assert found.step_time_s == close(128 / 10e9 + 48 / 10e9 + 8 * MS + 6 * MS + 0.5 * MS)


def test_one_rank_waits_for_nobody_and_is_its_own_one_device() -> None:
    scenario = Scenario(
        name="alone",
        world_size=1,
        batch=Batch(lengths=[5, 3], valid=[4, 3]),
        compute=Compute(forward_s_per_token=1 * MS, backward_s_per_token=2 * MS, optimizer_s=3 * MS),
        network=Network(latency_s=7 * US, bandwidth_bytes_per_s=128e6),
    )
    found = step_metrics(simulate(scenario), 0)
    assert found.step_time_s == close(7 * US + 1 * US + 8 * 3 * MS + 3 * MS)  # 8 tokens of 16 bytes: 1 us
    assert (found.wait_s.tolist(), found.exposed_communication_s) == ([0.0], 0.0)
    assert (found.straggler, found.communication_s, found.bytes_sent.tolist()) == (None, 0.0, [0.0])
    assert (found.algbw_bytes_per_s, found.busbw_bytes_per_s) == (None, None)
    assert found.one_device_step_time_s == close(found.step_time_s)
    assert found.scaling_efficiency == close(1.0)


def accumulating(*, each: bool) -> StepMetrics:
    """Two ranks, two micro-batches of 4 tokens: 4 ms forward, 8 ms backward each; rank 1 at half speed."""
    base = preset("chapter-19-2")
    sums = (((1.0, 3.0), (2.0, 5.0)), ((3.0, 1.0), (7.0, 4.0)))
    scenario = replace(
        base,
        model=replace(base.model, gradient_sums=sums),
        batch=Batch(lengths=[4] * 4, micro_batches=2),
        compute=Compute(forward_s_per_token=MS, backward_s_per_token=2 * MS, speed=[1.0, 0.5], optimizer_s=0),
        network=Network(latency_s=1 * MS, bandwidth_bytes_per_s=1e9, gradient_bytes=2e6),
        buckets=replace(base.buckets, sync_every_micro_batch=each),
    )
    return step_metrics(simulate(scenario), 0)


def test_accumulation_that_synchronises_once_waits_once() -> None:
    found = accumulating(each=False)
    assert found.compute_s == close([24 * MS, 48 * MS])
    assert found.wait_s == close([24 * MS, 0])
    assert found.exposed_communication_s == close(4 * MS)  # two rounds of 1 ms latency and 1 MB at 1 GB/s
    assert found.bytes_sent == close([2e6, 2e6])
    assert found.algbw_bytes_per_s == close(2e6 / (4 * MS))


def test_synchronising_every_micro_batch_sends_twice_as_much_in_twice_the_time() -> None:
    found = accumulating(each=True)
    assert found.compute_s == close([24 * MS, 48 * MS])
    assert found.wait_s == close([24 * MS, 0])
    assert found.exposed_communication_s == close(8 * MS)
    assert found.bytes_sent == close([4e6, 4e6])
    assert found.communication_s == close(8 * MS)
    assert found.algbw_bytes_per_s == close(4e6 / (8 * MS))


def test_a_skipped_optimizer_step_takes_no_time_and_the_one_device_skips_it_too() -> None:
    scenario = replace(preset("empty-rank"), reduction="mean_of_rank_means")
    found = step_metrics(simulate(scenario), 0)
    assert found.optimizer_s == 0.0
    assert found.count_s.tolist() == [0.0] * 3  # rank means need no count
    compute = 12 * 0.75 * MS
    assert found.step_time_s == close(0.1 * MS + 192 / 10e9 + compute + 4 * (0.1 * MS + 4 / 10e9))
    assert found.one_device_step_time_s == close(0.1 * MS + 576 / 10e9 + 3 * compute)
