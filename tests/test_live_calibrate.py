"""Calibrating the clock to this machine, and predicting live runs with what was found."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from command_line import Capture, answer, complaint
from live_runs import needs_torch

from dpsim import hardware
from dpsim.checks import InputError
from dpsim.forms import preset
from dpsim.hardware import predicted
from dpsim.live import calibrate as measuring
from dpsim.live import launch
from dpsim.live.calibrate import (
    MESSAGES,
    TOKENS,
    WORK_FACTOR,
    Calibration,
    _message_times,
    _passes,
    calibrate,
    calibration_scenario,
)
from dpsim.live.errors import CancelledError, LiveError
from dpsim.live.job import MAX_RANKS, check_runs_live
from dpsim.live.launch import run_live
from dpsim.live.watch import Progress
from dpsim.scenario import Buckets
from dpsim.simulate import simulate
from dpsim.trace import BACKWARD, FORWARD

pytestmark = needs_torch

# A rank that a busy machine starves is not one that hangs.
(calibrate.__kwdefaults__ or {}).update(deadline_s=600.0, stall_s=120.0)


@cache
def calibration() -> Calibration:
    """This machine's CPUs, measured once."""
    return calibrate("here", devices="cpu")


def test_a_calibration_measures_messages_and_passes_and_says_where() -> None:
    found = calibration()
    entry = found.hardware
    assert found.messages.amounts == tuple(8 * n for n in MESSAGES)
    assert found.forward.amounts == found.backward.amounts == TOKENS
    for points, error in (
        (found.messages, entry.message_error),
        (found.forward, entry.forward_error),
        (found.backward, entry.backward_error),
    ):
        assert all(0 < seconds < 10 for seconds in points.seconds)
        assert points.line.error == error
    assert entry.latency_s == found.messages.line.fixed_s
    assert entry.bandwidth_bytes_per_s == 1 / found.messages.line.each_s
    assert (entry.name, entry.source, entry.ranks) == ("here", "measured", 2)
    assert (entry.devices, entry.backend, entry.dtype, entry.mode) == ("cpu cpu", "gloo", "float64", "chunks")
    assert "CPU processes" in entry.machine
    assert "torch" in entry.versions
    assert entry.model == "bigram, vocabulary 8, width 2"
    assert hardware.from_toml(hardware.to_toml(entry)) == entry


def test_a_run_of_much_work_takes_about_as_long_as_predicted() -> None:
    """Within a factor of ten, since what else the machine is doing may change between the two runs; without
    the work factor the prediction would be off by a factor of hundreds."""
    scenario = preset("overlap")
    busy = replace(scenario.compute, work_factor=300, speed=None)
    scenario = replace(scenario, world_size=2, compute=busy)
    measured = run_live(scenario, devices="cpu")
    simulated = simulate(predicted(scenario, calibration().hardware))
    took, expected = (float(trace.events.end_s.max()) for trace in (measured, simulated))
    assert expected / 10 < took < expected * 10
    assert measured.parameters[-1, 0].tolist() == pytest.approx(
        simulated.parameters[-1, 0].tolist(), rel=1e-12
    )
    for step in range(scenario.steps):
        assert [b.names for b in measured.buckets(step)] == [b.names for b in simulated.buckets(step)]


def test_messages_are_timed_from_when_the_last_rank_starts_per_round_of_the_ring() -> None:
    """Three ranks, so 4 rounds: from 100 and 300 ns, when the last of them starts, to 500 and 1100 ns."""
    turns = [[[(0, 450)], [(300, 1000)]], [[(100, 500)], [(200, 1100)]], [[(50, 400)], [(100, 900)]]]
    done = launch.Done(*(None,) * 4, [{"messages": rank} for rank in turns])
    assert _message_times(done) == pytest.approx(((400 + 800) / 2 / 4 / 1e9,))


def test_a_pass_is_one_of_those_that_a_micro_batch_makes_buckets_added_up() -> None:
    """The clock's own costs are found again, in its trace of the calibration."""
    buckets = Buckets(cap_bytes=1)  # from the second step on each tensor is one, in three events
    scenario = replace(calibration_scenario(3), buckets=buckets)
    trace, cost = simulate(scenario), scenario.compute
    assert len({b.names for b in trace.buckets(1)}) == 3
    for kind, each_s in ((FORWARD, cost.forward_s_per_token), (BACKWARD, cost.backward_s_per_token)):
        found = _passes(trace, kind)
        assert found.seconds == pytest.approx([n * each_s / WORK_FACTOR for n in TOKENS])
        assert found.line.each_s == pytest.approx(each_s / WORK_FACTOR)
        assert found.line.error < 1e-9


def test_as_many_ranks_as_a_live_run_may_have_fit() -> None:
    for ranks in (2, MAX_RANKS):
        check_runs_live(calibration_scenario(ranks), "chunks")


def test_the_command_keeps_what_it_found_and_simulate_predicts_with_it(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSIM_HARDWARE", str(tmp_path))
    found = answer(capsys, "calibrate", "--name", "here", "--devices", "cpu", "--dtype", "float32")
    assert found["kept"] == str(tmp_path / "here.toml")
    assert [row["bytes"] for row in found["messages"]] == [4 * n for n in MESSAGES]
    assert [row["tokens"] for row in found["forward"]] == list(TOKENS)
    worst = max(abs(row["fitted_s"] - row["measured_s"]) / row["measured_s"] for row in found["messages"])
    assert found["message_error"] == pytest.approx(worst)
    entry = answer(capsys, "hardware")["hardware"]["here"]
    assert {key: found[key] for key in entry} == entry
    assert entry["dtype"] == "float32"
    assert answer(capsys, "simulate", "overlap", "--hardware", "here")["hardware"] == "here"


def test_a_calibration_is_a_live_run_queue_progress_cancel_and_switch_included(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    heard: list[Progress] = []
    cancel = threading.Event()

    def hear(progress: Progress) -> None:
        heard.append(progress)
        if progress.stage == "step":
            cancel.set()

    with pytest.raises(CancelledError):
        calibrate("here", devices="cpu", on_progress=hear, cancel=cancel)
    assert "step" in {progress.stage for progress in heard}
    with pytest.raises(LiveError, match="not done within"):
        calibrate("here", devices="cpu", deadline_s=0.01)
    with pytest.raises(InputError, match=r"^ranks: must be a whole number from 2 to 16, got 1"):
        calibrate("here", ranks=1)
    monkeypatch.setenv("DPSIM_HARDWARE", str(tmp_path))
    for call, message in (
        (["--ranks", "1"], "ranks: must be a whole number from 2 to 16, got 1"),
        (["--devices", "tpu"], "devices: must be one of auto, cpu, cuda"),
        (["--dtype", "int8"], "dtype: must be one of float32, float64"),
    ):
        assert message in complaint(capsys, "calibrate", *call)
    monkeypatch.setenv("DPSIM_LIVE", "off")
    assert "switched off by its operator" in complaint(capsys, "calibrate")
    assert hardware.names() == []


@pytest.mark.parametrize(("bad", "comes"), [(0, True), (2, True), (3, False)])
def test_what_no_line_fits_is_measured_again_twice(
    monkeypatch: pytest.MonkeyPatch, bad: int, comes: bool
) -> None:
    tries = []

    def fitted(*_: object) -> str:
        tries.append(1)
        if len(tries) <= bad:
            raise InputError("messages", "must take longer", 0)
        return "a calibration"

    for name in ("carried_out", "assemble", "described", "_message_times"):
        monkeypatch.setattr(measuring, name, MagicMock())
    monkeypatch.setattr(measuring, "_fitted", fitted)
    with nullcontext() if comes else pytest.raises(InputError, match="must take longer"):
        assert measuring.calibrate("here") == "a calibration"
    assert len(tries) == min(bad + 1, 3)
