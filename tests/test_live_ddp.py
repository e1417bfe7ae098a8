"""DistributedDataParallel through our hook, on what real models have: tied, frozen, unused parameters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from live_runs import needs_torch

pytestmark = needs_torch

HERE = Path(__file__).parent


def test_tied_frozen_and_unused_parameters_and_a_rank_without_a_valid_token(tmp_path: Path) -> None:
    alone = {"GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(HERE.parent), "TMPDIR": str(tmp_path)}
    programs = [
        subprocess.Popen(
            [sys.executable, str(HERE / "odd_models.py"), str(rank), "2", str(tmp_path)],
            stdout=subprocess.PIPE,
            env=os.environ | alone,
        )
        for rank in range(2)
    ]
    said = [program.communicate(timeout=600)[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0]
    # Gloo writes to standard output too; ours is the line that is JSON.
    first, second = (json.loads(next(x for x in out.split(b"\n") if x.startswith(b"{"))) for out in said)

    expected = first["alone"]
    assert first == second  # bit for bit
    assert first["gradients"]["E"] == pytest.approx(expected["E"], rel=1e-12)
    assert "out.bias" in expected
    assert first["gradients"]["out.bias"] is None
    assert not any(first["gradients"]["unused"] or [])
    travelled = [name for names in first["buckets"] for name in names]
    assert sorted(travelled) == ["E", "unused"]  # the tied one once, the frozen one never
