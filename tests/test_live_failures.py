"""What may go wrong in a live run, made to go wrong.

The run ends within seconds with a sentence that names the rank, and nothing stays behind.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Capture, answer, complaint
from live_runs import needs_torch

from dpsim.forms import preset
from dpsim.live import launch, pool, turns
from dpsim.live.errors import CancelledError, LiveError
from dpsim.live.launch import run_live
from dpsim.live.pool import Pool
from dpsim.live.watch import CAUSES, Progress, explained
from dpsim.live.worker import explanation
from dpsim.scenario import Batch, Compute, Scenario

pytestmark = needs_torch

ROOT = Path(__file__).parent.parent
GUIDE = preset("accelerate-doc")
LONG = replace(GUIDE, steps=200, compute=Compute(work_factor=2000))  # a minute, if it were let
ALONE = Scenario(name="alone", world_size=1, batch=Batch(lengths=[3]))
LONG_ALONE = replace(ALONE, steps=200, compute=Compute(work_factor=2000))
SOON_S = 60.0  # far less than a run would go on, and enough for a machine that is busy


def gone(pid: int) -> bool:
    """Whether there is no such process, or only what its parent has not asked about."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where runs make their folders; nothing but the lock may be left in it once their ranks have ended. The
    ranks are cold ones: the warm ones outlive what goes wrong here."""
    monkeypatch.setattr(launch, "POOL", Pool())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    launch.POOL.close()
    assert [p.name for p in tmp_path.iterdir() if p.name != "dpsim-live.lock"] == []


def in_the_second_step(act: Callable[[], object]) -> Callable[[Progress], None]:
    """Does something once the run is in the middle of its work."""
    todo = [act]

    def hear(progress: Progress) -> None:
        if progress.stage == "step" and progress.done >= 2 and todo:
            todo.pop()()

    return hear


@pytest.mark.parametrize(
    ("kill", "stall_s", "sentence"),
    [
        (signal.SIGKILL, 120.0, r"^live: rank 1 was killed by SIGKILL (in|at|while) .+ of step \d+"),
        (
            signal.SIGSTOP,
            5.0,
            r"^live: rank 1 was stopped (in|at|while) .+ of step \d+.*: no rank gave a sign of life",
        ),
    ],
)
def test_a_rank_that_dies_or_stops_in_a_step_ends_the_run(
    kill: signal.Signals, stall_s: float, sentence: str, folders: Path
) -> None:
    pids, hit = [], []

    def strike() -> None:
        pids.extend(p.pid for p in launch.POOL.processes)
        os.kill(pids[1], kill)
        hit.append(time.monotonic())

    with pytest.raises(LiveError, match=sentence):
        run_live(LONG, devices="cpu", stall_s=stall_s, on_progress=in_the_second_step(strike))
    assert time.monotonic() - hit[0] < SOON_S
    assert all(map(gone, pids))
    assert launch.POOL.processes == []


def test_a_run_can_be_cancelled_the_next_one_works_and_one_that_takes_too_long_is_ended(
    folders: Path,
) -> None:
    cancel, pids, at = threading.Event(), [], []

    def call_off() -> None:
        pids.extend(p.pid for p in launch.POOL.processes)
        at.append(time.monotonic())
        cancel.set()

    with pytest.raises(CancelledError, match=r"^live: the run was cancelled"):
        run_live(LONG_ALONE, devices="cpu", cancel=cancel, on_progress=in_the_second_step(call_off))
    assert time.monotonic() - at[0] < SOON_S
    assert len(pids) == 1
    assert all(map(gone, pids))
    assert run_live(ALONE, devices="cpu").source == "measured"
    begun = time.monotonic()
    with pytest.raises(
        LiveError, match=r"^live: the run was not done within 1 s: rank 0 hangs (in|at|while) "
    ):
        run_live(LONG_ALONE, devices="cpu", deadline_s=1.0)
    assert time.monotonic() - begun < SOON_S


PARENT = """
import sys
from dpsim.forms import preset
from dpsim.live.launch import POOL, run_live
from dpsim.scenario import Compute
from dataclasses import replace
scenario = replace(preset("accelerate-doc"), steps=200, compute=Compute(work_factor=2000))
def say(progress):
    if progress.stage == "step":
        print(*[p.pid for p in POOL.processes], flush=True)
run_live(scenario, devices="cpu", on_progress=say)
"""


def test_ranks_end_when_their_parent_is_killed_and_leave_no_folder(folders: Path) -> None:
    elsewhere = os.environ | {"TMPDIR": str(folders), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=elsewhere) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        (folder,) = [p for p in folders.iterdir() if p.is_dir()]
        assert folder.stat().st_mode & 0o777 == 0o700
        parent.kill()
    assert within(SOON_S, lambda: all(map(gone, pids)))
    assert within(SOON_S, lambda: not folder.exists())


def broken_torch(tmp_path: Path, line: str) -> dict[str, str]:
    """An environment in which importing torch runs `line`."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "torch.py").write_text(line, "utf-8")
    return os.environ | {"PYTHONPATH": str(tmp_path / "site"), "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "raise ImportError('No module named torch')",
            "torch cannot be used here (ImportError: No module named",
        ),
        ("raise OSError('libtorch.so: no such file')", "torch cannot be used here (OSError: libtorch.so"),
        ("import os; os._exit(3)", "rank 0 ended with exit code 3 while starting"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            "rank 0 was killed by SIGSEGV while starting",
        ),
    ],
)
def test_a_broken_torch_is_a_sentence_and_simulating_still_works(
    line: str, sentence: str, tmp_path: Path
) -> None:
    broken = broken_torch(tmp_path, line)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dpsim", *arguments, "--json"]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=broken, check=False)

    failed = run("live", "accelerate-doc")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith(f"dpsim: live: {sentence}")
    assert failed.stderr.count("\n") == 1
    if "ImportError" in line:
        found = json.loads(run("devices").stdout)
        assert (found["live"], found["devices"]) == (False, [])
        assert found["why"].startswith(sentence)
        assert run("simulate", "accelerate-doc").returncode == 0


def test_an_operator_can_switch_live_off(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("DPSIM_LIVE", "off")
    assert complaint(capsys, "live", "accelerate-doc").startswith(
        "dpsim: live: runs on this machine are switched off"
    )
    found = answer(capsys, "devices")
    assert found["live"] is False
    assert "DPSIM_LIVE=off" in found["why"]


def test_ranks_that_nobody_needs_any_more_end(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_S", 0.1)
    pids: set[int] = set()
    run_live(ALONE, devices="cpu", on_progress=lambda _: pids.update(p.pid for p in launch.POOL.processes))
    assert len(pids) == 1
    assert within(SOON_S, lambda: all(map(gone, pids)) and launch.POOL.processes == [])


def test_one_run_at_a_time_the_others_hear_their_place_and_can_leave_the_queue(folders: Path) -> None:
    heard: list[Progress] = []
    cancel = threading.Event()

    def hear(progress: Progress) -> None:
        heard.append(progress)
        if len(heard) >= 2:
            cancel.set()

    with (
        turns.turn(lambda place: None),  # somebody else has the machine
        pytest.raises(CancelledError, match=r"^live: the run was cancelled while it waited"),
    ):
        run_live(GUIDE, devices="cpu", on_progress=hear, cancel=cancel)
    assert {(p.stage, p.done) for p in heard} == {("queued", 1)}
    assert heard[0].text == "waiting for another run, number 1 in the queue"


def test_the_queue_keeps_its_order_and_is_bounded(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PLACES", 3)
    monkeypatch.setattr(turns, "FULL_S", 0.1)
    order: list[str] = []
    places: dict[str, list[int]] = {"first": [], "second": []}
    leave = threading.Event()

    def wait(name: str) -> None:
        with turns.turn(places[name].append):
            order.append(name)

    with turns.turn(lambda place: None):
        threads = []
        for i, name in enumerate(places):
            threads.append(threading.Thread(target=wait, args=(name,)))
            threads[-1].start()
            assert within(SOON_S, lambda i=i, name=name: i + 1 in places[name])
        with (
            pytest.raises(LiveError, match="another run is in progress, and 2 more are waiting"),
            turns.turn(lambda place: None),
        ):
            leave.set()
    for thread in threads:
        thread.join(SOON_S)
    assert order == ["first", "second"]
    assert not leave.is_set()


def test_a_holder_s_death_frees_the_machine(folders: Path) -> None:
    code = "import time, dpsim.live.turns as t\nwith t.turn(print):\n print(1, flush=True); time.sleep(60)"
    environment = os.environ | {"TMPDIR": str(folders), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        heard: list[int] = []

        def hear(place: int) -> None:
            heard.append(place)
            holder.kill()

        with turns.turn(hear):
            assert heard


def test_every_message_about_a_rank_is_one_line() -> None:
    failures = {
        kind: {"kind": kind, "text": "why", "field": "steps", "rule": "must", "value": 3} for kind in CAUSES
    }
    failures["died"] = {"kind": "died", "code": 1}
    for failure in failures.values():
        assert str(explained(1, failure, "in the forward pass", "last words")).isprintable()
    assert "rank 1 ran out of memory in the forward pass" in str(
        explained(1, explanation(MemoryError()), "in the forward pass", "")
    )
    text = "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried to"
    assert explanation(RuntimeError(text))["kind"] == "memory"
    assert (
        explanation(RuntimeError("[gloo/transport/tcp/pair.cc] Connection closed by peer"))["kind"] == "lost"
    )
    assert explanation(ValueError("a\nb")) == {"kind": "bug", "text": "ValueError: a b"}
    assert re.fullmatch(
        r"live: rank 0 was killed by SIGTERM there",
        str(explained(0, {"kind": "died", "code": -15}, "there", "")),
    )
