"""The parts of live runs that need no torch: plans, the board, the choice of devices, jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law, scenarios

from dpsim.checks import InputError
from dpsim.collectives import REDUCE, build
from dpsim.live.assemble import check_replicas
from dpsim.live.board import BACKWARD, STARTING, Activity, Board
from dpsim.live.devices import Choice, Machine, choose
from dpsim.live.errors import LiveError
from dpsim.live.job import Job, from_line
from dpsim.live.plan import plan
from dpsim.scenario import COLLECTIVES, Scenario


@law(100)
@given(st.sampled_from(COLLECTIVES), st.integers(1, 9), st.integers(1, 20))
def test_the_plans_of_all_ranks_together_are_the_schedule(algorithm: str, size: int, elements: int) -> None:
    schedule = build(algorithm, size, elements)
    columns = (schedule.round, schedule.source, schedule.destination, schedule.chunk, schedule.op)
    rows = sorted(zip(*(c.tolist() for c in columns), strict=True))
    sent, received = [], []
    for rank in range(size):
        rounds = plan(schedule, rank)
        assert [r.number for r in rounds] == sorted({r.number for r in rounds})
        for turn in rounds:
            for message in turn.sends:
                op = REDUCE if message.adds else 1 - REDUCE
                sent += [(turn.number, rank, message.peer, c, op) for c in message.chunks]
            for message in turn.receives:
                op = REDUCE if message.adds else 1 - REDUCE
                received += [(turn.number, message.peer, rank, c, op) for c in message.chunks]
                bounds = [(p.start, p.stop) for p in message.parts]
                assert bounds == [tuple(schedule.bounds[[c, c + 1]].tolist()) for c in message.chunks]
                assert message.elements == int(schedule.chunk_elements[list(message.chunks)].sum())
    assert sorted(sent) == sorted(received) == rows


def test_the_board_keeps_what_a_rank_did_last_and_tells_it(tmp_path: Path) -> None:
    board = Board.made(tmp_path / "board", 3)
    assert board.read(2) == Activity()
    assert board.read(2).told == "while starting"
    Board(tmp_path / "board").post(1, BACKWARD, 4, 1)
    Board(tmp_path / "board").tick(1, 77)
    assert board.read(1) == Activity(4, BACKWARD, 1, -1, -1, 77)
    assert board.read(1).told == "in the backward pass of step 5, micro-batch 2"
    assert board.read(0).phase == STARTING
    assert board.read(0) < board.read(1)


def machine(*cuda: str, nccl: bool = True, gloo: bool = True) -> Machine:
    return Machine("3.13", "2.13", "Linux", 8, cuda, gloo, nccl)


def test_without_a_gpu_ranks_are_processes_in_float64() -> None:
    found = choose(machine(), "auto", None, 4)
    assert found == Choice(("cpu",) * 4, "gloo", "float64", "no GPU: 4 CPU processes on 8 cores, Gloo")
    assert choose(machine(), "cpu", "float32", 1).dtype == "float32"
    assert choose(machine("X"), "cpu", None, 1).hardware.startswith("CPU, as wanted: 1 CPU process on")
    with pytest.raises(InputError, match=r"^devices: must be auto or cpu where torch finds no GPU"):
        choose(machine(), "cuda", None, 2)


def test_one_gpu_is_shared_and_its_messages_are_not_a_cluster_s() -> None:
    found = choose(machine("NVIDIA H200"), "auto", None, 4)
    assert found.devices == ("cuda:0",) * 4
    assert (found.backend, found.dtype) == ("gloo", "float32")
    assert found.hardware == (
        "1 NVIDIA H200: ranks share it, Gloo, staged through host memory, "
        "so communication times are not those of a cluster"
    )
    assert choose(machine("A", "B"), "cuda", None, 3).devices == ("cuda:0", "cuda:1", "cuda:0")


def test_a_gpu_for_every_rank_is_used_over_nccl_where_torch_has_it() -> None:
    found = choose(machine("NVIDIA H100", "NVIDIA H100"), "auto", "float64", 2)
    assert (found.devices, found.backend) == (("cuda:0", "cuda:1"), "nccl")
    assert found.dtype == "float64"
    assert found.hardware == "2 NVIDIA H100, a rank on each of 2, NCCL"
    assert choose(machine("A", "B", nccl=False), "auto", None, 2).backend == "gloo"
    with pytest.raises(LiveError, match="no Gloo"):
        choose(machine(gloo=False), "auto", None, 2)


@law(50)
@given(scenarios())
def test_a_job_survives_its_line(scenario: Scenario) -> None:
    job = Job(scenario, "chunks", "float64", ("cpu",) * scenario.world_size, "gloo", broadcast=False)
    line = job.line(0, Path("/nowhere"))
    assert line.count("\n") == 1
    assert from_line(line) == (job, 0, Path("/nowhere"))


def test_law_2_names_the_rank_whose_replica_differs_in_one_bit() -> None:
    parameters = np.ones((3, 4, 5))
    check_replicas(parameters)
    parameters[2, 3, 1] = np.nextafter(1.0, 2.0)
    with pytest.raises(
        LiveError, match=r"^live: rank 3 does not hold the same parameters as rank 0 after step 2"
    ):
        check_replicas(parameters)
