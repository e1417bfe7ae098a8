"""`dpsim live` and `dpsim devices`: the keys other programs read, and what wrong calls get."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import Capture, answer, complaint
from live_runs import MODES, needs_torch

from dpsim.beats import beats
from dpsim.cli import main
from dpsim.forms import to_toml
from dpsim.scenario import SCHEMES, Batch, Scenario
from dpsim.trace_files import load

pytestmark = needs_torch


def test_live_saves_a_trace_that_opens_again_and_can_be_told(capsys: Capture, tmp_path: Path) -> None:
    saved, perfetto = tmp_path / "trace.json", tmp_path / "perfetto.json"
    out = ("--out", saved, "--perfetto", perfetto)
    found = answer(capsys, "live", "first-screen", "--devices", "cpu", "--dtype", "float32", *out)
    trace = load(saved)
    assert trace.source == "measured"
    assert trace.machine["process_ids"].split() == [str(pid) for pid in found["pids"]]
    assert trace.machine["dtype"] == found["dtype"] == "float32"
    assert trace.parameters[1, 0].tolist() == found["parameters_after"]
    assert any(b.id == "allreduce.b0.r5" for b in beats(trace))
    assert perfetto.stat().st_size > 0
    assert [b["id"] for b in answer(capsys, "beats", saved)["beats"]] == [b.id for b in beats(trace)]


@pytest.mark.parametrize("mode", MODES)
def test_live_answers_the_keys_of_simulate_and_where_it_ran(mode: str, capsys: Capture) -> None:
    simulated = answer(capsys, "simulate", "accelerate-doc")
    found = answer(capsys, "live", "accelerate-doc", "--devices", "cpu", "--mode", mode)
    assert set(found) >= {*simulated, "devices", "backend", "dtype", "pids"}
    assert (found["source"], found["mode"]) == ("measured", mode)
    assert (found["devices"], found["backend"], found["dtype"]) == (["cpu", "cpu"], "gloo", "float64")
    assert len(set(found["pids"])) == 2
    assert os.getpid() not in found["pids"]
    assert "CPU processes" in found["hardware"]
    assert found["probe"].startswith("SUM right, AVG ")
    assert [round(w, 4) for w in found["parameters_after"]] == [0.2117, 0.3172]
    for key in ("gradient", "loss", "parameters_before", "parameters_after"):
        assert found[key] == pytest.approx(simulated[key], rel=1e-12)
    assert found["comparison"] == simulated["comparison"]
    assert found["metrics"]["step_time_s"] > 0
    assert found["metrics"]["scaling_efficiency"] is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_live_takes_a_reduction(scheme: str, capsys: Capture) -> None:
    simulated = answer(capsys, "simulate", "empty-rank", "--reduction", scheme, "--steps", 2)
    found = answer(capsys, "live", "empty-rank", "--reduction", scheme, "--steps", 2, "--devices", "cpu")
    for key in ("reduction", "undefined", "steps"):
        assert found[key] == simulated[key]
    for key in ("gradient", "parameters_after", "loss"):
        wanted = simulated[key]
        assert found[key] == (None if wanted is None else pytest.approx(wanted, rel=1e-12))


def test_live_on_another_number_of_ranks_where_the_scenario_can_take_it(
    capsys: Capture, tmp_path: Path
) -> None:
    free = Scenario(name="free", world_size=4, batch=Batch(lengths=[3, 1, 4, 1, 5, 9]))
    (tmp_path / "free.toml").write_text(to_toml(free), "utf-8")
    gradients = [
        answer(capsys, "live", tmp_path / "free.toml", "--ranks", ranks, "--devices", "cpu")["gradient"]
        for ranks in (1, 2, 3)
    ]
    for gradient in gradients[1:]:
        assert gradient == pytest.approx(gradients[0], rel=1e-12, abs=1e-15)  # law 1, as run


WRONG = [
    (["live", "first-screen", "--ranks", "3"], "must have one entry per rank, 3"),
    (["live", "first-screen", "--ranks", "0"], "--ranks: must be a whole number"),
    (["live", "ring-64"], "world_size: must be a whole number from 1 to 16, got 64"),
    (["live", "first-screen", "--steps", "1000"], "steps: must be a whole number from 1 to 200"),
    (["live", "first-screen", "--mode", "rings"], "mode: must be one of chunks, library, ddp"),
    (["live", "first-screen", "--devices", "tpu"], "devices: must be one of auto, cpu, cuda"),
    (["live", "first-screen", "--dtype", "int8"], "dtype: must be one of float32, float64"),
    (["live", "nothing"], "scenario: must be a .toml file"),
    (["live", "first-screen", "--reduction", "mean"], "--reduction: must be one of"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_call_is_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert message in complaint(capsys, *arguments)


def test_devices_says_what_there_is_and_why(capsys: Capture) -> None:
    found = answer(capsys, "devices")
    assert found["live"] is True
    assert found["probe"]["SUM"] == "right"
    assert "Gloo" in found["why"] or "NCCL" in found["why"]
    if found["devices"] == ["cpu"]:
        assert found["why"].startswith("no GPU: ")
        assert "must be auto or cpu where torch finds no GPU" in complaint(
            capsys, "live", "accelerate-doc", "--devices", "cuda"
        )
    assert main(["devices"]) == 0
    assert found["why"] in capsys.readouterr().out
