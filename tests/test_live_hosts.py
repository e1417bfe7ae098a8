"""Runs over several hosts: clocks that are compared by messages, and two agents of torchrun on loopback.

Two agents on one machine count as two hosts by `DPSIM_HOST`. Their clocks are one in truth, so what is
estimated between them can be checked.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_runs import gap, needs_torch, obeys_law_2, obeys_law_3, obeys_law_8
from strategies import law

from dpsim.checks import InputError
from dpsim.commands import fitted
from dpsim.comparison import compare
from dpsim.edits import with_world_size
from dpsim.forms import preset, to_toml
from dpsim.live.assemble import assemble
from dpsim.live.devices import Machine
from dpsim.live.errors import LiveError
from dpsim.live.hosts import Host, Place, agreed, described_hosts, hosts_of
from dpsim.live.offsets import Drift, Exchange, Offset, most_wrong, offset, on_one_clock
from dpsim.live.torchrun import Call, decision
from dpsim.simulate import simulate
from dpsim.trace import COLUMNS, RECEIVE, SEND, Trace
from dpsim.trace_files import from_json, load
from dpsim.ui.opening import opened_trace

ROOT = Path(__file__).parent.parent
SECOND = 10**9
delays = st.integers(0, SECOND)
drifts = st.integers(-500, 500)  # parts in a million: what a clock that is being set right may do


class Other:
    """A clock that was `ahead` of ours at our 0 and gains `ppm` on it; both in whole nanoseconds."""

    def __init__(self, ahead: int, ppm: int) -> None:
        self.ahead, self.ppm = ahead, ppm

    def at(self, ours: int) -> int:
        return ours + self.ahead + ours * self.ppm // 10**6

    def exchange(self, sent: int, there: int, back: int) -> Exchange:
        """A message that took `there`, answered at once, whose answer took `back`."""
        came = self.at(sent + there)
        return Exchange(sent, came, came, sent + there + back)


@law(100)
@given(
    st.integers(-(10**18), 10**18),
    st.integers(0, 10**18),
    st.lists(st.tuples(delays, delays, delays), min_size=1, max_size=9),
)
def test_the_true_offset_is_within_the_error_whatever_the_delays(
    ahead: int, start: int, ways: list[tuple[int, int, int]]
) -> None:
    exchanges = []
    for there, pause, back in ways:
        came = start + there + ahead
        exchanges.append(Exchange(start, came, came + pause, start + there + pause + back))
    found = offset(exchanges)
    assert abs(found.ahead - ahead) <= found.error
    assert found.error == -(-min(there + back for there, _, back in ways) // 2)


@law(100)
@given(
    st.integers(-(10**16), 10**16),
    drifts,
    st.tuples(delays, delays),
    st.tuples(delays, delays),
    st.integers(0, 100 * SECOND),
    st.lists(st.floats(0, 1), min_size=2, max_size=9),
)
def test_a_steady_drift_is_followed_within_the_error_and_order_stays(
    ahead: int, ppm: int, first: tuple[int, int], last: tuple[int, int], run: int, parts: list[float]
) -> None:
    clock = Other(ahead, ppm)
    begun = clock.exchange(SECOND, *first)
    ended = clock.exchange(begun.back + 1000 + run, *last)
    drift = Drift(offset([begun]), offset([ended]))
    ours = sorted(begun.back + round(part * (ended.sent - begun.back)) for part in parts)
    found = drift.on_rank_0(np.array([clock.at(t) for t in ours])).tolist()
    rounded = 3  # the two offsets, the clock and the interpolation are each in whole nanoseconds
    assert all(abs(f - t) <= drift.error + rounded for f, t in zip(found, ours, strict=True))
    assert all(a <= b for a, b in pairwise(found))


def test_between_two_hosts_both_errors_count() -> None:
    assert [most_wrong(errors) for errors in ([0], [0, 7], [0, 7, 3, 5])] == [0, 7, 12]


def answered(trace: Trace, clocks: list[Other | None]) -> list[dict[str, Any]]:
    """What ranks on these clocks would hand in of a simulated trace, which is taken to start at second 2."""
    results = []
    payloads = {i: trace.payload_of(i).tolist() for i in np.flatnonzero(trace.events.kind == RECEIVE)}
    for rank, clock in enumerate(clocks):
        own = np.flatnonzero(trace.events.rank == rank)

        def seen(seconds: float, clock: Other | None = clock) -> int:
            ours = 2 * SECOND + round(seconds * SECOND)
            return clock.at(ours) if clock else ours

        events = {name: getattr(trace.events, name)[own].tolist() for name in COLUMNS}
        events |= {name: [seen(s) for s in events[name]] for name in ("start_s", "end_s")}
        arrays = {
            name: getattr(trace, name)[:, rank].tolist()
            for name in ("parameters", "loss_sums", "gradient_sums", "scaled", "counted", "reduced")
        }
        brought = [payloads[i] for i in own.tolist() if i in payloads]
        times = {"zero_ns": seen(0.0), "end_ns": seen(float(trace.events.end_s.max()))}
        results.append({**arrays, **times, "events": events, "payloads": brought})
    return results


MACHINE = dict.fromkeys(("hardware", "versions", "date", "process_ids"), "of a test")


def in_order(trace: Trace) -> np.ndarray:
    """Numbers of the events in an order that does not look at the time."""
    events = trace.events
    names = ("chunk", "peer", "round", "bucket", "micro_batch", "kind", "rank", "step")
    return np.lexsort([getattr(events, name) for name in names])


def test_times_of_a_host_whose_clock_is_hours_ahead_and_drifts_come_right() -> None:
    simulated = simulate(replace(preset("first-screen"), steps=3))
    other = Other(10**13 + 7, 50)
    before = offset([other.exchange(SECOND, 30_000, 900), other.exchange(SECOND, 70_000, 70_000)])
    after = offset([other.exchange(4 * SECOND, 500, 20_000)])
    drift = Drift(before, after)
    assert drift.error == 15_450
    assert abs(before.ahead - after.ahead) > 100_000  # the drift is far more than the error
    results = on_one_clock(answered(simulated, [None, None, other, other]), [None, None, drift, drift])
    found = assemble(simulated.scenario, results, MACHINE, drift.error / SECOND)
    pair = in_order(found), in_order(simulated)
    for name in ("start_s", "end_s"):
        times = [getattr(t.events, name)[rows] for t, rows in zip((found, simulated), pair, strict=True)]
        assert float(np.abs(times[0] - times[1]).max()) <= drift.error / SECOND + 3e-9
    from_json(found.to_json())  # no event ends before it starts, whichever way the clocks are wrong


def test_times_that_contradict_each_other_by_more_than_the_error_are_refused() -> None:
    simulated = simulate(preset("first-screen"))
    wrong = Offset(2 * SECOND, 50_000_000, 1000)
    drift = Drift(wrong, replace(wrong, at=3 * SECOND))
    results = on_one_clock(answered(simulated, [None] * 4), [None, None, drift, drift])
    sentence = (
        r"^live: a message seems to have been there .+ ms before it was sent, .+ at most 0\.001 ms apart"
    )
    with pytest.raises(LiveError, match=sentence):
        assemble(simulated.scenario, results, MACHINE, drift.error / SECOND)
    early = assemble(simulated.scenario, results, MACHINE, 0.05)  # were they known no better, it is drawn
    receives = early.events.where(kind=RECEIVE)
    assert np.any(early.events.end_s[receives] == early.events.start_s[receives])
    from_json(early.to_json())


def place(host: str, local_rank: int, *cuda: str, nccl: bool = True) -> Place:
    machine = Machine("3.13", "2.13", "Linux", 8, cuda, True, nccl)
    return Place(f"boot of {host}", host, local_rank, 2, 100 + local_rank, machine)


def two_hosts(*cuda: tuple[str, ...], nccl: bool = True) -> list[Place]:
    return [place(host, r, *own, nccl=nccl) for host, own in zip("ab", cuda, strict=True) for r in range(2)]


def test_ranks_with_one_clock_are_on_one_host() -> None:
    places = two_hosts((), ())
    assert hosts_of(places) == [Host("a", (0, 1)), Host("b", (2, 3))]
    assert hosts_of([places[0], places[2], places[1], places[3]]) == [Host("a", (0, 2)), Host("b", (1, 3))]
    assert [Place.read(p.text()) for p in places] == places


def test_the_trace_says_which_hosts_and_how_wrong_their_clocks_may_be() -> None:
    first, second = hosts_of(two_hosts((), ()))
    assert "clock" not in described_hosts([first], two_hosts((), ())[:2])
    told = described_hosts(
        [first, replace(second, drift=Drift(Offset(0, 5, 20_100), Offset(9, 6, 30_100)))], two_hosts((), ())
    )
    assert told["clock"].endswith("at most 0.031 ms wrong between two hosts")  # rounded up, never down
    assert told["hosts"] == "a (ranks 0, 1); b (ranks 2, 3)"


def test_all_hosts_agree_on_devices_backend_and_dtype() -> None:
    cpu = agreed(two_hosts((), ()), "auto", None)
    assert (cpu.devices, cpu.backend, cpu.dtype) == (("cpu",) * 4, "gloo", "float64")
    both = agreed(two_hosts(("X", "X"), ("X", "X")), "auto", None)
    assert (both.devices, both.backend) == (("cuda:0", "cuda:1") * 2, "nccl")
    assert both.dtype == "float32"
    shared = agreed(two_hosts(("X", "X"), ("X",)), "cuda", None)  # b's two ranks share a GPU
    assert (shared.devices, shared.backend) == (("cuda:0", "cuda:1", "cuda:0", "cuda:0"), "gloo")
    assert agreed(two_hosts(("X", "X"), ()), "auto", None).devices == ("cpu",) * 4
    with pytest.raises(InputError, match=r"^devices: must be auto or cpu where torch finds no GPU"):
        agreed(two_hosts(("X", "X"), ()), "cuda", None)


def called(words: str = "live", ranks: int | None = None, name: str = "first-screen", **how: Any) -> Call:
    args = argparse.Namespace(scenario=name, ranks=ranks, reduction=None, steps=None)
    how = {"mode": "chunks", "dtype": None, "devices": "auto"} | how
    return Call(words, partial(fitted, args), **how, keep=lambda trace, hosts: {})


def test_rank_0_decides_for_all_and_a_preset_is_fitted_to_the_ranks(tmp_path: Path) -> None:
    places = two_hosts((), ())[:3]
    job, chosen = decision(called(), ["live"] * 3, places)
    assert (job.scenario.world_size, job.devices, chosen.backend) == (3, ("cpu",) * 3, "gloo")
    (tmp_path / "two.toml").write_text(to_toml(preset("accelerate-doc")), "utf-8")
    own = {"name": str(tmp_path / "two.toml")}
    assert decision(called(**own), ["live"] * 2, places[:2])[0].scenario.world_size == 2
    assert decision(called(ranks=3, **own), ["live"] * 3, places)[0].scenario.world_size == 3
    wrong = [
        (
            called(**own),
            ["live"] * 3,
            r"^world_size: must be 3, .+; --ranks 3 fits the scenario to them, got 2$",
        ),
        (
            called(ranks=2),
            ["live"] * 3,
            r"^--ranks: must be 3, as many ranks as torchrun has started, got 2$",
        ),
        (
            called(),
            ["live", "live", "lively"],
            r"^arguments: must be the same .+, rank 2 otherwise, got 'lively'$",
        ),
        (called(mode="rings"), ["live"] * 3, r"^mode: must be one of"),
        (called(dtype="int8"), ["live"] * 3, r"^dtype: must be one of"),
        (called(devices="tpu"), ["live"] * 3, r"^devices: must be one of"),
        (called(devices="cuda"), ["live"] * 3, r"^devices: must be auto or cpu"),
        (called(name="nothing"), ["live"] * 3, r"^scenario: must be a \.toml file"),
    ]
    for call, words, sentence in wrong:
        with pytest.raises(InputError, match=sentence):
            decision(call, words, places)


Agents = list[subprocess.Popen[str]]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """Where agents and ranks may write; whatever happens, none of them and nothing of ours stays there. What
    torchrun and torch themselves leave (logs, an empty cache) is named after them."""
    (tmp_path / "tmp").mkdir()
    yield tmp_path
    alive = descendants(tmp_path)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    assert alive == []
    left = [path.name for path in (tmp_path / "tmp").iterdir()]
    assert [name for name in left if not re.match(r"torchelastic_|torchinductor_", name)] == []


def descendants(room: Path) -> list[int]:
    """The processes, dead ones aside, that write into a room: agents and ranks alike have it in their
    environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={room / 'tmp'}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # somebody else's, or gone meanwhile
            continue
    return found


def agents(room: Path, ranks: int, *arguments: object) -> Agents:
    """Two agents of torchrun with `ranks` ranks each, the commands of the README on loopback."""
    started, port = [], free_port()
    for node in range(2):
        command = ["--nnodes", 2, "--nproc-per-node", ranks, "--node-rank", node]
        command += ["--master-addr", "127.0.0.1", "--master-port", port, "-m", "dpsim", "live", *arguments]
        own = {"DPSIM_HOST": f"host-{node}", "TMPDIR": str(room / "tmp"), "GLOO_SOCKET_IFNAME": "lo"}
        with (room / f"out{node}").open("w") as out, (room / f"err{node}").open("w") as err:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "torch.distributed.run", *map(str, command)],
                    cwd=ROOT,
                    env=os.environ | own | {"OMP_NUM_THREADS": "1"},
                    stdout=out,
                    stderr=err,
                    text=True,
                )
            )
    return started


def finished(started: Agents, seconds: float = 240.0) -> list[int]:
    """The exit codes; agents that do not end are ended."""
    end = time.monotonic() + seconds
    try:
        return [agent.wait(max(end - time.monotonic(), 0.1)) for agent in started]
    finally:
        for agent in started:
            agent.kill()


def sentences(room: Path) -> list[str]:
    """What the ranks complained of; torchrun's own report aside."""
    lines = [line for node in range(2) for line in (room / f"err{node}").read_text().splitlines()]
    assert not any(line.startswith("Traceback") for line in lines if "dpsim" in line)
    return [line for line in lines if line.startswith("dpsim: ")]


def measured_on_two_hosts(room: Path, ranks: int, *arguments: object) -> tuple[dict[str, Any], Trace]:
    saved = room / "trace.json"
    codes = finished(agents(room, ranks, *arguments, "--devices", "cpu", "--json", "--out", saved))
    assert codes == [0, 0], [(room / f"err{node}").read_text() for node in range(2)]
    assert (room / "out1").read_text() == ""
    trace = load(saved)
    assert opened_trace(saved.read_text("utf-8")).source == "recorded"
    return json.loads((room / "out0").read_text()), trace


def tells_of_two_hosts(found: dict[str, Any], trace: Trace, ranks: int) -> None:
    names = [(host["name"], host["ranks"]) for host in found["hosts"]]
    assert names == [("host-0", [*range(ranks)]), ("host-1", [*range(ranks, 2 * ranks)])]
    assert found["hosts"][0]["clock_error_s"] == 0
    error_s = found["hosts"][1]["clock_error_s"]
    # In truth both agents read the same clock, which is 0 ahead of itself.
    assert all(abs(ahead_s) <= error_s for ahead_s in found["hosts"][1]["clock_offset_s"])
    assert 0 < error_s < 1
    said = re.search(r"^2 hosts, .+ at most ([\d.e-]+) ms wrong between two hosts$", trace.machine["clock"])
    assert said is not None
    assert error_s <= float(said[1]) / 1e3 <= error_s + 1.001e-6
    assert len(set(found["pids"])) == 2 * ranks == len(trace.machine["process_ids"].split())


@needs_torch
def test_two_agents_with_two_ranks_each_equal_one_device_and_their_trace_opens(room: Path) -> None:
    found, trace = measured_on_two_hosts(room, 2, "first-screen", "--steps", 3, "--dtype", "float64")
    tells_of_two_hosts(found, trace, 2)
    assert (found["devices"], found["backend"], found["source"]) == (["cpu"] * 4, "gloo", "measured")
    assert found["parameters_after"] == trace.parameters[3, 0].tolist()
    one_device = compare(trace.scenario).one_device
    for step in range(3):
        assert gap(trace.gradient(step), one_device.gradient[step]) <= 1e-12
    obeys_law_2(trace)
    obeys_law_3(trace)
    obeys_law_8(trace, simulate(trace.scenario))
    events, error_s = trace.events, found["hosts"][1]["clock_error_s"]
    sends, receives = events.where(kind=SEND), events.where(kind=RECEIVE)
    assert np.array_equal(events.rank[sends], events.peer[receives])
    assert np.all(events.end_s[receives] - events.start_s[sends] >= -error_s)


@needs_torch
def test_ddp_runs_on_two_hosts_and_a_preset_is_fitted_to_the_ranks(room: Path) -> None:
    found, trace = measured_on_two_hosts(room, 1, "first-screen", "--mode", "ddp", "--dtype", "float64")
    tells_of_two_hosts(found, trace, 1)
    assert (trace.scenario.world_size, found["mode"]) == (2, "ddp")
    assert gap(trace.gradient(0), compare(trace.scenario).one_device.gradient[0]) <= 1e-12
    obeys_law_2(trace)


@needs_torch
def test_a_file_for_other_ranks_is_refused_in_one_sentence_and_ends_all(room: Path) -> None:
    (room / "three.toml").write_text(to_toml(with_world_size(preset("accelerate-doc"), 3)), "utf-8")
    started = agents(room, 1, room / "three.toml", "--out", room / "trace.json")
    assert 0 not in finished(started)
    (sentence,) = sentences(room)
    assert sentence == (
        "dpsim: world_size: must be 2, as many ranks as torchrun has started; --ranks 2 fits the scenario to "
        "them, got 3"
    )
    assert not (room / "trace.json").exists()


def process_of_rank(rank: int, room: Path, started: Agents, works_s: float) -> int:
    """The process of a rank once it has threads that talk to the others, and has computed since."""
    since: dict[int, float] = {}
    while all(agent.poll() is None for agent in started):
        for pid in set(descendants(room)) - {agent.pid for agent in started}:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/comm")]
            if f"RANK={rank}".encode() in environment and any("gloo" in name for name in threads):
                used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]
                computed_s = int(used) / os.sysconf("SC_CLK_TCK")
                if computed_s - since.setdefault(pid, computed_s) >= works_s:
                    return pid
        time.sleep(0.02)
    raise AssertionError("an agent ended before its rank had met the others")


@needs_torch
def test_a_rank_that_is_killed_ends_all_hosts_within_seconds_and_leaves_nothing(room: Path) -> None:
    long = replace(preset("accelerate-doc"), steps=200)
    long = replace(long, compute=replace(long.compute, work_factor=2000))
    (room / "long.toml").write_text(to_toml(long), "utf-8")
    started = agents(room, 1, room / "long.toml", "--devices", "cpu", "--out", room / "trace.json")
    # Setting torch up takes a few seconds more; then the run would go on for minutes.
    os.kill(process_of_rank(1, room, started, works_s=5.0), signal.SIGKILL)
    killed = time.monotonic()
    assert 0 not in finished(started)
    assert time.monotonic() - killed < 60
    (sentence,) = sentences(room)
    assert re.match(r"dpsim: live: rank 0 (lost|could not join) the other ranks ", sentence)
    assert not (room / "trace.json").exists()
