"""Lessons five to eight: their figures and charts against closed forms, and what they claim in words."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from test_lessons import WHOLE, refused

from dpsim.directives import Chart, Recording
from dpsim.figures import figure
from dpsim.forms import preset
from dpsim.lessons import Lesson, lessons, read_lesson
from dpsim.recordings import FOLDER, calibrated, prediction, recording, recordings
from dpsim.scenario import COLLECTIVES, Scenario
from dpsim.simulate import simulate
from dpsim.ui.lesson_charts import drawn
from dpsim.ui.lesson_charts_time import WORLD_SIZES, cut

RINGS = ("two-and-eight", "collective-ring", "ring-8", "ring-64")


def value(scenario: Scenario, name: str) -> float:
    return figure(scenario, name).number


def own(slug: str, variant_name: str = "") -> Scenario:
    lesson = lessons()[slug]
    assert isinstance(lesson, Lesson)
    return lesson.setting.named(variant_name)


@pytest.mark.parametrize("name", RINGS)
def test_a_rank_of_a_ring_sends_between_one_gradient_and_two(name: str) -> None:
    scenario = preset(name)
    ranks, gradient = scenario.world_size, Fraction(scenario.network.gradient_bytes or 0)
    sent = 2 * (ranks - 1) * gradient / ranks
    assert value(scenario, "busiest_bytes.ring") == pytest.approx(float(sent), rel=1e-12)
    assert gradient <= sent < 2 * gradient
    assert value(scenario, "all_sent") == pytest.approx(float(ranks * sent), rel=1e-12)


@pytest.mark.parametrize("algorithm", COLLECTIVES)
def test_the_clock_and_the_formula_agree_where_all_start_together(algorithm: str) -> None:
    scenario = preset("collective-ring")
    assert value(scenario, f"clock_time.{algorithm}") == pytest.approx(
        value(scenario, f"cost_time.{algorithm}"), rel=1e-9
    )


@pytest.mark.parametrize("name", ["chapter-19-2", "empty-rank", "ring-8"])
def test_how_likely_a_slow_step_is_by_counting_all_cases(name: str) -> None:
    scenario, slow = preset(name), Fraction(1, 100)
    assert value(scenario, "slow_chance") == pytest.approx(float(100 * slow))
    chance = sum(
        prod(slow if one else 1 - slow for one in ranks)
        for ranks in product((False, True), repeat=scenario.world_size)
        if any(ranks)
    )
    assert value(scenario, "some_slow") == pytest.approx(float(100 * chance), rel=1e-9)


def test_the_last_bucket_is_never_hidden_and_the_others_queue_before_it() -> None:
    scenario = preset("overlap")
    exposed = value(scenario, "last_exposed")
    assert exposed >= value(scenario, "last_bucket_time")
    behind = value(scenario, "first_ready") + value(scenario, "last_communication")
    assert exposed == pytest.approx(behind - value(scenario, "last_backward"), rel=1e-9)


def test_more_talk_in_several_buckets_and_yet_a_shorter_step() -> None:
    three, one = own("hiding-the-talk"), own("hiding-the-talk", "one")
    assert value(three, "last_communication") > value(one, "last_communication")
    assert value(three, "last_step_time") < value(one, "last_step_time")


def test_faster_devices_for_all_but_the_straggler_gain_nothing() -> None:
    old, new = own("the-barrier"), own("the-barrier", "quick")
    assert value(new, "compute_time.0") == pytest.approx(value(old, "compute_time.0") / 2)
    assert value(new, "step_time") == pytest.approx(value(old, "step_time"), rel=1e-12)


def test_a_straggler_costs_its_whole_delay_and_shows_the_communication_alone() -> None:
    scenario, straggler = own("the-barrier"), figure(own("the-barrier"), "straggler").text
    delay = value(scenario, f"compute_time.{straggler}") - value(scenario, "compute_time.0")
    assert value(scenario, "step_time") - value(scenario, "even_step_time") == pytest.approx(delay)
    assert value(scenario, f"in_all_reduce.{straggler}") == pytest.approx(value(scenario, "exposed"))
    parts = ("longest_compute_time", "exposed", "other_time")
    assert sum(value(scenario, part) for part in parts) == pytest.approx(value(scenario, "step_time"))


def test_helping_the_straggler_gains_more_than_ten_times_the_bandwidth() -> None:
    steps = [value(own("the-barrier", name), "step_time") for name in ("", "faster-network", "cured")]
    assert steps[2] < steps[1] < steps[0]


def test_a_recording_is_of_a_preset_and_has_the_numbers_of_the_simulation() -> None:
    trace, scenario = recording("two-processes"), preset("two-devices")
    assert trace.scenario == scenario
    computed = simulate(scenario)
    for name in ("parameters", "reduced", "gradient_sums"):
        assert getattr(trace, name) == pytest.approx(getattr(computed, name), rel=1e-12, abs=1e-14)
    assert np.array_equal(trace.parameters[:, 0], trace.parameters[:, 1])


@pytest.mark.parametrize("name", recordings())
def test_a_recording_says_that_it_is_one_and_names_no_host(name: str) -> None:
    trace = recording(name)
    assert (trace.source, prediction(name).source, calibrated(name).source) == (
        "recorded",
        "simulated",
        "measured",
    )
    assert re.fullmatch(r"\d+( \d+)*", trace.machine["process_ids"])
    assert not {"hosts", "host"} & set(trace.machine)
    assert (FOLDER / f"{name}.json").stat().st_size < 300_000


def test_the_prediction_s_total_is_right_because_its_parts_are_wrong_in_opposite_ways() -> None:
    any_run = preset("two-devices")
    assert value(any_run, "off.two-processes.step") < 5
    for part, sign in (("compute", 1), ("exposed", -1)):
        missed = value(any_run, f"predicted.two-processes.{part}") - value(
            any_run, f"recorded.two-processes.{part}"
        )
        assert np.sign(missed) == sign
        assert value(any_run, f"off.two-processes.{part}") > 20
    latency = value(any_run, "calibrated_latency.two-processes")
    assert latency > 1000 * value(any_run, "largest_time.two-processes")
    even = value(any_run, "break_even.two-processes") / value(any_run, "calibrated_bandwidth.two-processes")
    assert even == pytest.approx(latency)


def test_a_chart_of_time_has_a_line_for_every_algorithm_and_size() -> None:
    drawing, said = drawn(Chart(preset("collective-ring"), "time", (), ""))
    assert len(drawing.data) == 2 * len(COLLECTIVES)
    ring = drawing.data[0]
    network = preset("collective-ring").network
    for ranks, seconds in zip(WORLD_SIZES, ring.y, strict=True):
        chunk = 24e6 / ranks / network.bandwidth_bytes_per_s
        assert seconds == pytest.approx(2 * (ranks - 1) * (network.latency_s + chunk))
    assert "ring, 24 MB: 2.6 ms to " in said


def test_the_bars_of_a_step_add_up_to_it_on_every_rank() -> None:
    scenario = preset("straggler")
    drawing, said = drawn(Chart(scenario, "step", (), ""))
    for rank in range(scenario.world_size):
        total = sum(bar.x[rank] for bar in drawing.data)
        assert total == pytest.approx(1e3 * value(scenario, "step_time"))
    assert "rank 5: scatter and count" in said
    assert "wait 0, exposed" in said


def test_the_bars_of_buckets_are_every_way_to_cut_the_gradient() -> None:
    ways = cut(preset("overlap"))
    assert [figure(scenario, "last_buckets").text for scenario in ways] == ["1", "2", "3"]
    drawing, said = drawn(Chart(preset("overlap"), "buckets", (), ""))
    hidden, exposed = drawing.data
    for i, scenario in enumerate(ways):
        whole = 1e3 * value(scenario, "last_communication")
        assert hidden.y[i] + exposed.y[i] == pytest.approx(whole)
    assert "3 buckets: hidden 3.33 ms, exposed 2.07 ms, step time 10.8 ms" in said


RECORDED = '```recording\nname = "two-processes"\nshow = ["predicted"]\n```\n'


def test_a_recording_may_show_its_prediction_beside_a_stage_but_no_second_stage() -> None:
    lesson = read_lesson("small.md", WHOLE + RECORDED)
    block = lesson.screens[1].blocks[-1]
    assert isinstance(block, Recording)
    assert (block.show, block.scenario) == (("predicted",), preset("two-devices"))
    assert lesson.screens[1].stages == 1
    assert "must have one stage at most" in refused(WHOLE + RECORDED.replace('"predicted"', '"stage"'))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ('```recording\nname = "nobody"\n```\n', "recording.name: must be one of two-processes"),
        (RECORDED.replace('"predicted"', '"smell"'), "recording.show[0]: must be one of stage, predicted"),
        ('```chart\nshow = "time"\nways = ["token_weighted"]\n```\n', "chart.ways: unknown key"),
    ],
)
def test_a_mistake_in_a_block_of_time_is_named(block: str, said: str) -> None:
    assert said in refused(WHOLE + block)
