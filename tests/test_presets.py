"""The presets: the promised ones exist, fit the app, survive their written forms and show what they say."""

from __future__ import annotations

import numpy as np
import pytest

from dpsim.beats import beats, count_beats
from dpsim.forms import from_dict, from_query, from_toml, preset, preset_names, to_dict, to_query, to_toml
from dpsim.metrics import step_metrics
from dpsim.scenario import COLLECTIVES, check_app_bounds
from dpsim.simulate import count_events, simulate
from dpsim.trace import BACKWARD, MAX_EVENTS, SEND

PROMISED = (
    "first-screen",
    "chapter-19-2",
    "accelerate-doc",
    "empty-rank",
    "ring-8",
    "ring-64",
    "overlap",
    "accumulation",
    *(f"collective-{name}" for name in COLLECTIVES),
)

every_preset = pytest.mark.parametrize("name", preset_names())


def test_every_promised_preset_exists_and_the_first_screen_comes_first() -> None:
    assert set(PROMISED) <= set(preset_names())
    assert preset_names()[0] == "first-screen"


@every_preset
def test_a_preset_has_its_file_s_name_and_a_title_that_fits_a_control(name: str) -> None:
    scenario = preset(name)
    assert scenario.name == name
    assert 1 <= len(scenario.title) <= 60


@every_preset
def test_a_preset_survives_toml_url_and_json(name: str) -> None:
    scenario = preset(name)
    assert from_toml(to_toml(scenario)) == scenario
    assert from_query(to_query(scenario)) == scenario
    assert from_dict(to_dict(scenario, full=True)) == scenario


@every_preset
def test_a_preset_fits_the_app(name: str) -> None:
    scenario = check_app_bounds(preset(name))
    assert len(simulate(scenario).events) <= count_events(scenario) <= MAX_EVENTS


NUMBERED = [n for n in preset_names() if preset(n).model.kind == "given" or n == "overlap"]


@pytest.mark.parametrize("name", [n for n in NUMBERED if preset(n).world_size <= 16])
def test_what_travels_differs_in_every_cell_so_that_a_misrouted_chunk_shows(name: str) -> None:
    brought = simulate(preset(name)).scaled.sum(axis=2)  # [steps, ranks, parameters]
    for step in brought:
        if name == "chapter-19-2":  # [1, 3] and [3, 1] are given by the book: they differ between the ranks
            assert np.all(step[0] != step[1])
        else:
            assert len(np.unique(step)) == step.size


def test_the_first_screen_has_uneven_valid_tokens_and_one_straggler() -> None:
    trace = simulate(preset("first-screen"))
    assert trace.scenario.world_size == 4
    assert trace.valid_tokens[0, :, 0].tolist() == [7, 2, 5, 2]
    assert trace.scenario.batch.lengths == (8, 8, 8, 8)
    assert trace.scenario.reduction == "token_weighted"
    measured = step_metrics(trace, 0)
    assert measured.straggler is not None
    assert np.flatnonzero(measured.wait_s == 0).tolist() == [measured.straggler]
    assert len(set(measured.wait_s.tolist())) == 4


def test_chapter_19_2_is_the_book_s_example() -> None:
    scenario = preset("chapter-19-2")
    assert scenario.model.gradient_sums == (((1.0, 3.0),), ((3.0, 1.0),))
    assert scenario.model.parameters == (5.0, 5.0)
    assert (scenario.optimizer.kind, scenario.optimizer.learning_rate) == ("sgd", 0.1)


def test_the_empty_rank_has_no_valid_token() -> None:
    assert simulate(preset("empty-rank")).valid_tokens[0].tolist() == [[0], [4], [12]]


@pytest.mark.parametrize("algorithm", COLLECTIVES)
def test_a_collective_s_preset_runs_that_collective_on_the_same_numbers(algorithm: str) -> None:
    scenario, ring = preset(f"collective-{algorithm}"), preset("collective-ring")
    assert scenario.collective == algorithm
    assert (scenario.model, scenario.batch) == (ring.model, ring.batch)
    assert simulate(scenario).reduced == pytest.approx(simulate(ring).reduced, rel=1e-12)


def test_rings_of_eight_and_sixty_four_ranks() -> None:
    for name, size in (("ring-8", 8), ("ring-64", 64)):
        assert (preset(name).collective, preset(name).world_size) == ("ring", size)


def test_accumulation_synchronises_once_for_several_micro_batches() -> None:
    trace = simulate(preset("accumulation"))
    assert set(trace.scenario.micro_batches) == {3}
    sends = trace.events.where(kind=SEND, bucket=0)
    assert len(sends) == 2 * 3 * 4  # one ring of four ranks
    last = trace.events.where(kind=BACKWARD, micro_batch=1)
    assert trace.events.start_s[sends].min() >= trace.events.end_s[last].max()


def test_overlap_has_several_buckets_from_the_second_step_on_and_hides_some_of_them() -> None:
    trace = simulate(preset("overlap"))
    events = trace.events
    assert trace.steps >= 2
    for step in range(trace.steps):
        sends = events.where(step=step, kind=SEND)
        travelled = set(events.bucket[sends].tolist()) - {-2}  # -2 is the count of valid tokens
        measured = step_metrics(trace, step)
        if step == 0:
            assert travelled == {0}
            assert measured.exposed_communication_s == pytest.approx(measured.communication_s)
        else:
            assert len(travelled) >= 2
            assert 0 < measured.exposed_communication_s < 0.9 * measured.communication_s


@pytest.mark.parametrize("name", preset_names())
def test_the_beats_can_be_counted_before_they_are_made(name: str) -> None:
    """The app refuses what has too many of them, so the count may not be too low."""
    assert count_beats(preset(name)) >= len(beats(simulate(preset(name))))
