"""What one live run is to do: checked here, written as one line of JSON for every rank."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsim.checks import InputError, choice, whole
from dpsim.forms import from_dict, to_dict
from dpsim.scenario import Scenario
from dpsim.size import check_size

MODES = ("chunks", "library", "ddp")
DTYPES = ("float32", "float64")
DEVICES = ("auto", "cpu", "cuda")
MAX_RANKS = 16
MAX_STEPS = 200


@dataclass(frozen=True)
class Job:
    """A run of `scenario`: how gradients are exchanged, in which dtype, on which device each rank computes
    (`cpu` or `cuda:n`, one per rank) and over which backend of torch.distributed."""

    scenario: Scenario
    mode: str
    dtype: str
    devices: tuple[str, ...]
    backend: str
    record: bool = True  # off: nothing is kept but the parameters, to measure what recording costs
    broadcast: bool = True  # off: every rank keeps its own start, to see that this breaks the replicas
    messages: tuple[int, ...] = ()  # elements of messages to go round a ring and be timed, after the steps

    def line(self, rank: int, folder: Path) -> str:
        """The job for one rank, whose files are in `folder`."""
        data: dict[str, Any] = vars(self) | {"scenario": to_dict(self.scenario, full=True)}
        return json.dumps(data | {"rank": rank, "folder": str(folder)}, allow_nan=False) + "\n"


def from_line(line: str) -> tuple[Job, int, Path]:
    """The job in a line, the rank it is for, and the folder."""
    data = json.loads(line)
    rank, folder = data.pop("rank"), Path(data.pop("folder"))
    data |= {"scenario": from_dict(data["scenario"]), "devices": tuple(data["devices"])}
    data["messages"] = tuple(data["messages"])
    return Job(**data), rank, folder


def check_runs_live(scenario: Scenario, mode: str) -> None:
    """InputError where `scenario` is too large for a live run, or cannot be run in this mode."""
    choice("mode", mode, MODES)
    whole("world_size", scenario.world_size, 1, MAX_RANKS)
    whole("steps", scenario.steps, 1, MAX_STEPS)
    check_size(scenario)
    _check_exchange(scenario, mode)
    chosen, rules = scenario.optimizer, "in mode ddp, whose averages leave while backward goes on"
    clips_first = chosen.clip_norm is not None and chosen.clip == "before"
    if clips_first and scenario.buckets.sync_every_micro_batch:
        rule = "must be after where buckets.sync_every_micro_batch is true: no rank knows its gradient before"
        raise InputError("optimizer.clip", rule, chosen.clip)
    if mode != "ddp":
        return
    if clips_first:
        raise InputError("optimizer.clip", f"must be after {rules}", chosen.clip)
    if not scenario.buckets.overlap:
        raise InputError("buckets.overlap", f"must be true {rules}", False)


def _check_exchange(scenario: Scenario, mode: str) -> None:
    """InputError where what goes wrong in the exchange cannot be run: what has no end, what leaves messages
    behind, and what the backend's own all-reduce does not let anybody change."""
    if scenario.hangs:
        rule = "must be the same on every rank: a run of this scenario would hang, and is only simulated"
        raise InputError("batch.micro_batches", rule, scenario.micro_batches)
    if not scenario.exchange.awaited:
        rule = "must be awaited: a run that does not wait is only simulated"
        raise InputError("collective", rule, scenario.collective)
    if mode != "chunks" and scenario.exchange.moves_otherwise:
        rule = (
            f"must be without a dropped or doubled row in mode {mode}: only mode chunks sends the rows itself"
        )
        raise InputError("collective", rule, scenario.collective)
