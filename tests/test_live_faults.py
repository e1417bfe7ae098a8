"""Faults that run for real, chunk by chunk, agree with the simulation; and what a real hang says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from live_runs import live, needs_torch, obeys_law_5
from test_faults import healthy, ring_by_hand

from test_faults import SUMS, VALID  # isort: skip

from dpsim.as_run import as_run
from dpsim.beats import beats
from dpsim.checks import InputError
from dpsim.faults import broken
from dpsim.forms import preset
from dpsim.live.launch import run_live
from dpsim.live.together import run_together
from dpsim.mishaps import REAL_LINE
from dpsim.reduction import AS_EXCHANGED
from dpsim.simulate import simulate
from dpsim.trace import RECEIVE

pytestmark = needs_torch

RUNS = (
    "wrong-divisor", "factor-forgotten", "padding-counted", "dropped-chunk", "doubled-chunk", "clipped-before"
)  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_fault_runs_for_real_and_agrees_with_the_simulation(name: str) -> None:
    scenario = replace(broken(healthy(name), name), steps=2)
    trace, simulated = live(scenario), simulate(scenario)
    assert trace.source == "measured"
    for array in ("parameters", "reduced", "scaled", "payload"):
        found, right = getattr(trace, array), getattr(simulated, array)
        assert found == pytest.approx(right, rel=1e-12, abs=1e-12), array
    obeys_law_5(trace)
    assert trace.reduced[0].std(axis=0).max() == 0


@pytest.mark.parametrize(("edit", "times"), [("without 18", 0), ("twice 4", 2)])
def test_the_messages_of_a_broken_ring_are_really_sent_so(edit: str, times: int) -> None:
    """Row 18 of a ring of four is round 4, rank 2 to 3, chunk 2; row 4 is round 1, rank 0 to 1, chunk 3."""
    trace = live(replace(preset("first-screen"), collective=f"ring, {edit}"))
    key = (4, 3, 2, 2) if times == 0 else (1, 1, 0, 3)
    events = trace.events
    rows = [i for i in events.where(kind=RECEIVE).tolist() if events.bucket[i] == 0]
    names = ("round", "rank", "peer", "chunk")
    found = [tuple(int(getattr(events, n)[i]) for n in names) for i in rows]
    assert found.count(key) == times
    assert len(found) == 24 + times - 1
    assert max(len(list(same)) for _, same in groupby(sorted(found))) == max(times, 1)


def test_replicas_really_drift_apart_where_a_chunk_is_dropped_on_its_way_back() -> None:
    trace = live(replace(preset("first-screen"), collective="ring, without 18"))
    held = ring_by_hand(SUMS, dropped=18)
    by_hand = np.array([[float(v / sum(VALID)) for v in row] for row in held])
    assert trace.reduced[0] == pytest.approx(by_hand, abs=1e-15)
    assert len({replica.tobytes() for replica in trace.parameters[1]}) == 2
    assert "The replicas are no longer equal" in beats(trace)[-1].sentence


def test_beside_a_broken_run_the_others_run_as_they_should() -> None:
    done = run_together(broken(preset("first-screen"), "doubled-chunk"), "chunks", devices="cpu")
    ways = as_run(done.runs, done.chosen)
    errors = {name: way.relative_l2_error[0] for name, way in ways.schemes.items()}
    assert done.chosen == ways.chosen == AS_EXCHANGED
    assert errors["token_weighted"] == pytest.approx(0, abs=1e-12)
    assert errors[AS_EXCHANGED] == pytest.approx(0.1905, abs=1e-4)


@pytest.mark.parametrize("name", ["uneven-batches", "no-barrier"])
def test_what_has_no_end_or_leaves_messages_behind_is_not_started(name: str) -> None:
    with pytest.raises(InputError, match="is only simulated"):
        run_live(broken(preset("first-screen"), name), devices="cpu")


HANG = """
import datetime, sys
import torch.distributed as dist, torch
rank, store, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2,
                        timeout=datetime.timedelta(seconds=seconds))
for _ in range((3, 2)[rank]):
    dist.all_reduce(torch.ones(4))
dist.barrier()
"""


def test_a_real_run_with_uneven_batches_prints_the_line_that_is_quoted(tmp_path: object) -> None:
    """But for how long it waited, and for what only that build of torch has: the place in its source."""
    store = f"{tmp_path}/store"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", HANG, str(rank), store, "2"], stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [1, 1]
    quoted = re.fullmatch(r"(\w+: )\[(.+)\](.+)", REAL_LINE.replace("5000ms", "2000ms"))
    assert quoted is not None
    kind, place, line = quoted.groups()
    file = place.rpartition("/")[2].partition(":")[0]
    for text in said:
        (error,) = [found for found in text.splitlines() if kind in found]
        assert re.search(rf"{kind}\[.*{re.escape(file)}:\d+\]{re.escape(line)}$", error), text
