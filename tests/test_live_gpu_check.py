"""The one command for machines with GPUs, on CPUs: what it checks, prints and saves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from live_runs import live, needs_torch

from benchmarks import gpu_check
from dpsim.forms import preset
from dpsim.trace_files import load

pytestmark = needs_torch


def test_it_runs_every_mode_and_dtype_and_saves_recordings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert gpu_check.main(["--devices", "cpu", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "SUM right" in printed
    assert printed.count("| right |") == 2 * 3 * 2
    assert "12 runs, 0 failed" in printed
    assert "Calibration, gloo: latency " in printed
    saved = sorted(tmp_path.iterdir())
    assert len(saved) == 6
    for path in saved:
        trace = load(path)
        assert trace.source == "recorded"
        assert trace.machine["mode"] in path.name


def test_it_sees_what_is_wrong() -> None:
    trace = live(preset("accelerate-doc"))
    assert gpu_check.checked(trace)[1] == "right"
    payload = trace.payload.copy()
    payload[-1] = np.nextafter(payload[-1], 1)
    assert gpu_check.checked(replace(trace, payload=payload))[1] == "other messages"
    off = trace.parameters * (1 + 1e-11)
    assert gpu_check.checked(replace(trace, parameters=off))[1] == "other parameters"
    assert "another gradient" in gpu_check.checked(replace(trace, reduced=trace.reduced * 1.1))[1]
    assert "another count" in gpu_check.checked(replace(trace, counted=trace.counted + 1))[1]
