"""The link of an exercise opens a run in the app that shows its answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl

import numpy as np
import pytest

from dpsim.exercises import items, variant
from dpsim.figures import figure, run
from dpsim.forms import from_query, to_query
from dpsim.questions import Asked
from dpsim.scenario import Scenario
from dpsim.trace import SEND
from dpsim.ui.picture import check_shown, picture


def opened(asked: Asked) -> tuple[Scenario, str]:
    """The scenario and the beat that a link names."""
    keys = dict(parse_qsl(asked.link, keep_blank_values=True))
    beat = keys.pop("beat", "")
    return check_shown(from_query(keys)), beat


def of(name: str, factor: float = 1.0) -> Callable[[Scenario], float]:
    """A figure of the linked run, in the item's unit."""
    return lambda scenario: factor * figure(scenario, name).number


def step_ms(scenario: Scenario) -> float:
    return 1000 * run(scenario).metrics.step_time_s


def communication(unit: float) -> Callable[[Scenario], float]:
    return lambda scenario: run(scenario).metrics.communication_s / unit


def rounds(scenario: Scenario) -> float:
    events = run(scenario).trace.events
    return len(set(events.round[events.where(kind=SEND)].tolist()))


def throughput(scenario: Scenario) -> float:
    """Against a job whose ranks all are as fast as the fastest."""
    found = run(scenario).metrics
    return float(found.compute_s.min()) / found.step_time_s


def repeats(scenario: Scenario) -> float:
    return of("all_tokens")(scenario) - scenario.batch.count


def loss_of_one_device(scenario: Scenario) -> float:
    (loss,) = run(scenario).ways.one_device.loss
    assert loss is not None
    return loss


def loss_of_rank_0(scenario: Scenario) -> float:
    trace = run(scenario).trace
    return float(trace.loss_sums[0, 0].sum() / trace.valid_tokens[0, 0].sum())


SHOWN: dict[str, Callable[[Scenario], float]] = {
    "R1": of("all_tokens"),
    "R2": of("tokens.0"),
    "R4": repeats,
    "G1": of("gradient.token_weighted"),
    "T1": loss_of_one_device,
    "T2": of("ratio.mean_of_rank_means.0.1"),
    "T3": of("tokens_per_rank"),
    "A1": of("all_tokens"),
    "A2": of("bytes_sent.0", 1e-6),
    "A3": of("gradient.custom"),
    "C1": rounds,
    "C2": of("bytes_sent.0", 1e-6),
    "C3": communication(1e-3),
    "C5": communication(1e-6),
    "B1": step_ms,
    "B2": throughput,
    "S1": of("efficiency", 0.01),
    "S2": lambda scenario: of("efficiency", 0.01)(scenario) * scenario.world_size,
    "S3": step_ms,
    "K2": step_ms,
    "W2": loss_of_rank_0,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_linked_run_shows_the_answer(name: str) -> None:
    for i in range(5):
        asked = variant(f"x-{name}", f"link {i}", "number")
        scenario, _ = opened(asked)
        # Only what is handed out at the start of a step is on the clock besides: nanoseconds.
        assert SHOWN[name](scenario) == pytest.approx(asked.answer, rel=1e-3), asked.question
        assert variant(f"x-{name}", f"link {i}", "choose-one").link == asked.link


def test_every_number_with_a_link_is_looked_up_here() -> None:
    linked = {i for i, item in items().items() if "number" in item.kinds and variant(i, "s").link}
    assert {f"x-{name}" for name in SHOWN} == linked


@pytest.mark.parametrize("item_id", [i for i in items() if variant(i, "s").link])
def test_a_link_opens_in_the_app_at_its_beat(item_id: str) -> None:
    for i in range(2):
        scenario, beat = opened(variant(item_id, f"open {i}"))
        assert scenario.title
        _, _, ids = picture(to_query(scenario))
        assert beat in ("", *ids)


def test_the_linked_run_has_no_mean_of_rank_means_where_a_rank_is_empty() -> None:
    for i in range(10):
        asked = variant("x-N1", f"link {i}")
        scenario, _ = opened(asked)
        assert figure(scenario, "gradient.mean_of_rank_means").text == "undefined"
        assert figure(scenario, "gradient.token_weighted").text in {option.text for option in asked.options}


def test_a_cell_is_asked_for_at_the_beat_before_it_shows() -> None:
    for i in range(60):
        asked = variant("x-cell-ring", f"link {i}")
        scenario, beat = opened(asked)
        ids = picture(to_query(scenario))[2]
        after = ids[ids.index(beat) + 1]
        n = int(re.fullmatch(r"allreduce\.b0\.r(\d+)", after)[1])
        (cell,) = [option.text for option in asked.right_options]
        rank, chunk = map(int, cell.split("."))
        events = run(scenario).trace.events
        rows = events.where(kind=SEND, bucket=0, round=n)
        sends = np.array([(events.rank[row], events.chunk[row]) for row in rows])
        source = rank if " send " in asked.question else (rank - 1) % scenario.world_size
        assert [source, chunk] in sends.tolist()
