"""A saved trace of a live run: it opens as recorded, and every number says where it comes from."""

from __future__ import annotations

import json

import numpy as np
import pytest
from live_runs import MODES, has_messages, live, needs_torch
from test_origins import arithmetic_is_right

from dpsim.beats import beats
from dpsim.checks import InputError
from dpsim.comparison import compare
from dpsim.forms import preset
from dpsim.trace import ALL_REDUCE, Trace
from dpsim.ui.opening import opened_trace
from dpsim.ui.stage.payload import Data, stage_data

pytestmark = needs_torch

every_mode = pytest.mark.parametrize("mode", MODES)


def shown(trace: Trace) -> Data:
    """What the stage gets of a trace."""
    ways = compare(trace.scenario)
    told = beats(trace, ways)
    return stage_data(trace, told, ways, told[0].id)


@every_mode
@pytest.mark.parametrize("name", ["accelerate-doc", "overlap", "accumulation", "empty-rank"])
def test_a_saved_trace_opens_as_recorded_and_says_where_its_numbers_come_from(name: str, mode: str) -> None:
    measured = live(preset(name), mode)
    opened = opened_trace(measured.to_json())
    data = shown(opened)
    assert (opened.source, data["source"]) == ("recorded", "recorded")
    assert opened.parameters.tobytes() == measured.parameters.tobytes()
    arithmetic_is_right(opened)
    rows, texts = data["origins"]["rows"], data["origins"]["texts"]
    assert [texts[row[0]] for row in rows if row[4] < 0] == ["A masked token"]  # all others have their beat
    reduce = next(phase["label"] for phase in data["phases"] if phase["key"] == "reduce")
    assert (reduce == "All-reduce") == (not has_messages(opened))


@pytest.mark.parametrize("mode", ["library", "ddp"])
def test_a_whole_all_reduce_is_shown_as_one_without_messages(mode: str) -> None:
    trace = live(preset("overlap"), mode)
    size = trace.scenario.world_size
    data = shown(trace)
    for step in data["steps"]:
        for group in step["groups"]:
            assert (group["chunks"], group["round"], group["chunk"]) == (1, [0] * size, [0] * size)
            assert (group["source"], group["rank"]) == ([-1] * size, list(range(size)))
            assert [data["who"][i] for i in group["inside"]] == ["1" * size] * size
            row = data["origins"]["rows"][group["made"]]
            assert "measured" in data["origins"]["texts"][row[1]]
            assert row[5] == group["own"]  # made of what every rank brought
    assert "all_reduce" not in {data["spans"]["kinds"][kind] for kind in data["spans"]["kind"]}


def test_an_all_reduce_that_a_rank_is_twice_in_is_refused() -> None:
    trace = live(preset("accelerate-doc"), "library")
    data = json.loads(trace.to_json())
    data["events"]["rank"][int(np.flatnonzero(trace.events.kind == ALL_REDUCE)[-1])] = 0
    with pytest.raises(InputError, match=r"^trace\.events: must have one all_reduce a rank"):
        opened_trace(json.dumps(data))
