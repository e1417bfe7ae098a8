"""`dpsim schedule` by carrying out its transfers, `dpsim cost` by closed forms written out here."""

from __future__ import annotations

import itertools
from math import ceil, floor, log2
from typing import Any

import pytest
from command_line import Capture, answer

from dpsim.scenario import COLLECTIVES


def replayed(found: dict[str, Any], values: list[list[int]]) -> list[list[int]]:
    """The printed transfers carried out; a round reads what was there at its start."""
    for n in range(found["rounds"]):
        before = [row[:] for row in values]
        for transfer in found["transfers"]:
            if transfer["round"] != n:
                continue
            source, target = before[transfer["source"]], values[transfer["destination"]]
            for i in range(*found["chunks"][transfer["chunk"]]):
                target[i] = target[i] + source[i] if transfer["op"] == "reduce" else source[i]
    return values


def closed_rounds(algorithm: str, ranks: int) -> int:
    if ranks == 1:
        return 0
    folded = 0 if log2(ranks).is_integer() else 2
    return {
        "ring": 2 * (ranks - 1),
        "tree": 2 * ceil(log2(ranks)),
        "halving-doubling": 2 * floor(log2(ranks)) + folded,
        "parameter-server": 2,
    }[algorithm]


@pytest.mark.parametrize("algorithm", COLLECTIVES)
@pytest.mark.parametrize("ranks", range(1, 10))
def test_schedule_prints_transfers_that_leave_the_whole_sum_on_every_rank(
    algorithm: str, ranks: int, capsys: Capture
) -> None:
    for elements in sorted({1, max(1, ranks - 1), ranks, ranks + 1, 3 * ranks + 2}):
        found = answer(capsys, "schedule", algorithm, "--world-size", ranks, "--elements", elements)
        values = [[100**r + i for i in range(elements)] for r in range(ranks)]  # a doubled rank shows
        whole = [sum(column) for column in zip(*values, strict=True)]
        assert replayed(found, [row[:] for row in values]) == [whole] * ranks
        edges = [0, *itertools.chain(*found["chunks"]), elements]
        assert edges[::2] == edges[1::2]  # every chunk starts where the one before it stops
        sizes = [stop - start for start, stop in found["chunks"]]
        assert max(sizes) - min(sizes) <= 1
        sent = [0] * ranks
        for transfer in found["transfers"]:
            assert set(transfer) == {"round", "source", "destination", "chunk", "op"}
            assert 0 <= transfer["round"] < found["rounds"]
            sent[transfer["source"]] += 4 * sizes[transfer["chunk"]]
        assert found["bytes_sent_per_rank"] == sent
        assert found["rounds"] == closed_rounds(algorithm, ranks)


def test_schedule_of_a_ring_is_that_of_the_design(capsys: Capture) -> None:
    found = answer(capsys, "schedule", "ring", "--world-size", 4, "--elements", 8)
    expected = [(s, r, (r + 1) % 4, (r - s) % 4, "reduce") for s in range(3) for r in range(4)]
    expected += [(3 + s, r, (r + 1) % 4, (r + 1 - s) % 4, "copy") for s in range(3) for r in range(4)]
    names = ("round", "source", "destination", "chunk", "op")
    assert sorted(tuple(t[n] for n in names) for t in found["transfers"]) == sorted(expected)
    assert found["chunks"] == [[0, 2], [2, 4], [4, 6], [6, 8]]
    assert found["bytes_sent_per_rank"] == [48] * 4


def closed_time(algorithm: str, ranks: int, size: float, latency: float, bandwidth: float) -> float:
    message, power = latency + size / bandwidth, 2 ** floor(log2(ranks))
    fold = 0.0 if power == ranks else 2 * message
    return {
        "ring": 2 * (ranks - 1) * (latency + size / ranks / bandwidth),
        "tree": 2 * ceil(log2(ranks)) * message,
        "halving-doubling": 2 * (log2(power) * latency + (power - 1) / power * size / bandwidth) + fold,
        "parameter-server": 2 * (ranks - 1) * message,
    }[algorithm]


def closed_bytes(algorithm: str, ranks: int, size: float) -> list[float]:
    power = 2 ** floor(log2(ranks))
    extra = ranks - power
    if algorithm == "ring":
        return [2 * (ranks - 1) / ranks * size] * ranks
    if algorithm == "parameter-server":
        return [(ranks - 1) * size] + [size] * (ranks - 1)
    if algorithm == "halving-doubling":
        inside = 2 * (power - 1) / power * size
        return [inside + size * (r < extra) for r in range(power)] + [size] * extra
    parents = [r & (r - 1) for r in range(1, ranks)]  # of a binomial tree: the lowest bit removed
    return [size * ((r > 0) + parents.count(r)) for r in range(ranks)]


@pytest.mark.parametrize("algorithm", COLLECTIVES)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 7, 8, 12, 64, 1000, 1024])
def test_cost_is_the_closed_form(algorithm: str, ranks: int, capsys: Capture) -> None:
    size, latency, bandwidth = 123_456_789, 2.5e-5, 1.2e10
    given_ = ("--bytes", size, "--latency", latency, "--bandwidth", bandwidth)
    found = answer(capsys, "cost", algorithm, "--world-size", ranks, *given_)
    time = closed_time(algorithm, ranks, size, latency, bandwidth)
    assert found["time_s"] == pytest.approx(time, rel=1e-12)
    assert found["algbw_bytes_per_s"] == pytest.approx(size / time, rel=1e-12)
    assert found["busbw_bytes_per_s"] == pytest.approx(2 * (ranks - 1) / ranks * size / time, rel=1e-12)
    assert found["rounds"] == closed_rounds(algorithm, ranks)
    assert found["bytes_sent_per_rank"] == pytest.approx(closed_bytes(algorithm, ranks, size), rel=1e-12)


@pytest.mark.parametrize(("algorithm", "seconds"), [("ring", 0.0175), ("parameter-server", 0.14)])
def test_cost_of_100_mb_on_8_ranks_at_10_gb_per_s(algorithm: str, seconds: float, capsys: Capture) -> None:
    wanted = ("--world-size", 8, "--bytes", 100e6, "--latency", 0, "--bandwidth", 10e9)
    assert answer(capsys, "cost", algorithm, *wanted)["time_s"] == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("algorithm", COLLECTIVES)
def test_cost_on_one_rank_is_nothing_and_its_bandwidths_are_null(algorithm: str, capsys: Capture) -> None:
    wanted = ("--world-size", 1, "--bytes", 8, "--latency", 1, "--bandwidth", 1)
    found = answer(capsys, "cost", algorithm, *wanted)
    assert (found["time_s"], found["rounds"], found["bytes_sent_per_rank"]) == (0.0, 0, [0.0])
    assert (found["algbw_bytes_per_s"], found["busbw_bytes_per_s"]) == (None, None)
