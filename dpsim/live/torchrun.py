"""A rank that torchrun has started: the loop of every live run, on as many hosts as torchrun spans."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dpsim.checks import InputError, choice
from dpsim.live.assemble import Result, assemble
from dpsim.live.board import JOINING, Board
from dpsim.live.devices import Choice
from dpsim.live.errors import LiveError
from dpsim.live.hosts import Host, Place, agreed, described_hosts, hosts_of
from dpsim.live.job import DEVICES, DTYPES, Job, check_runs_live, from_line
from dpsim.live.launch import Done, described, switched_off
from dpsim.live.offsets import Drift, most_wrong, on_one_clock
from dpsim.live.watch import explained
from dpsim.live.worker import explanation, ready
from dpsim.scenario import Scenario
from dpsim.trace import Trace

if TYPE_CHECKING:
    from dpsim.live.meeting import Meeting

Report = dict[str, Any]

# All ranks are there and have only to connect, a fraction of a second. But Gloo hears nothing of one that
# dies meanwhile, and waits five times as long as it is told to.
JOINING_S = 20.0


def under_torchrun() -> bool:
    """Whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@dataclass(frozen=True)
class Call:
    """What every rank was called with; only rank 0 asks for its scenario, by the number of ranks, and has
    the trace written down by `keep`, which is also given the hosts."""

    words: str
    scenario: Callable[[int], Scenario]
    mode: str
    dtype: str | None
    devices: str
    keep: Callable[[Trace, list[Report]], Report]


def run_rank(call: Call) -> Report | None:
    """Run this process' rank; at rank 0 what `keep` makes of the trace, None elsewhere.

    Ends the process with exit code 2 where the run fails, and torchrun then ends the others. One rank says
    why, in one sentence on standard error.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with tempfile.TemporaryDirectory() as folder:
        board = Board.made(Path(folder) / "board", size)  # it outlives its file, of which so nothing can stay
    meeting: Meeting | None = None
    with _own_output():
        try:
            found = ready()
            from dpsim.live.meeting import Meeting

            meeting = Meeting()
            return _run(call, meeting, Place.here(found), board)
        except Exception as error:  # whatever it is, it has to be told, and the process has to end
            failure = explanation(error)
            _end(explained(rank, failure, board.read(rank).told, ""), meeting)


@contextmanager
def _at_most(seconds: float, meeting: Meeting) -> Iterator[None]:
    """End the process if what is done here takes longer, even inside of torch."""
    rule = f"rank {meeting.rank} could not join the other ranks within {seconds:g} s"
    late = threading.Timer(seconds, _end, (LiveError(rule), meeting))
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


@contextmanager
def _own_output() -> Iterator[None]:
    """Libraries print what they like; it goes to standard error, so that the report is alone on ours."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _end(error: InputError, meeting: Meeting | None) -> NoReturn:
    """End at once: with a peer gone, torch may wait for it while it tidies up."""
    if meeting is None or meeting.first_to_fail():
        print(f"dpsim: {error}", file=sys.stderr, flush=True)
    if meeting is not None:
        meeting.has_spoken()
    os._exit(2)


def _run(call: Call, meeting: Meeting, place: Place, board: Board) -> Report | None:
    rank = meeting.rank
    if reason := next(filter(None, meeting.told(switched_off() or "", "off")), None):
        raise LiveError(reason)  # on one host is enough: all know it at once, and nobody waits
    words = meeting.told(call.words, "call")
    places = [Place.read(text) for text in meeting.told(place.text(), "place")]
    if rank == 0:
        job, chosen = decision(call, words, places)
        meeting.decide(job.line(0, Path()))
    else:
        job, _, _ = from_line(meeting.decided())
    from dpsim.live.loop import Loop

    board.post(rank, JOINING)
    with _at_most(JOINING_S, meeting):
        meeting.begin(job)
    hosts = hosts_of(places)
    leaders = [host.ranks[0] for host in hosts]
    before = meeting.offsets(leaders)
    result = Loop(job, rank, board).run()
    after = meeting.offsets(leaders)
    texts = meeting.collected(json.dumps(result, allow_nan=False))
    report = None
    if rank == 0:
        hosts[1:] = [
            replace(h, drift=Drift(*ends)) for h, *ends in zip(hosts[1:], before, after, strict=True)
        ]
        results = [json.loads(text) for text in texts]
        report = call.keep(_trace(job, chosen, places, hosts, results), [host.report() for host in hosts])
    meeting.end()
    return report


def decision(call: Call, words: list[str], places: list[Place]) -> tuple[Job, Choice]:
    """What rank 0 has all ranks do, and on what; InputError where it cannot be."""
    for rank, own in enumerate(words):
        if own != words[0]:
            rule = (
                f"must be the same for every rank; rank 0 was called with {words[0]}, rank {rank} otherwise"
            )
            raise InputError("arguments", rule, own)
    choice("devices", call.devices, DEVICES)
    choice("dtype", call.dtype or DTYPES[0], DTYPES)
    scenario = call.scenario(len(places))
    check_runs_live(scenario, call.mode)
    chosen = agreed(places, call.devices, call.dtype)
    return Job(scenario, call.mode, chosen.dtype, chosen.devices, chosen.backend), chosen


def _trace(job: Job, chosen: Choice, places: list[Place], hosts: list[Host], results: list[Result]) -> Trace:
    """The trace of all ranks, every event on rank 0's clock."""
    pids = tuple(place.pid for place in places)
    machine = described(Done(places[0].machine, chosen, job, pids, results))
    drifts = {rank: host.drift for host in hosts for rank in host.ranks}
    results = on_one_clock(results, [drifts[rank] for rank in range(len(places))])
    # How well a device's clock is tied to its host's is not known: then times may not be held to the error.
    on_hosts = set(chosen.devices) == {"cpu"}
    error_s = most_wrong([host.error for host in hosts]) / 1e9 if on_hosts else math.inf
    return assemble(job.scenario, results, machine | described_hosts(hosts, places), error_s)
