"""The scenarios behind the exercises: small, within the app's bounds, and each shows the very answer.

A token stands for a sample where samples are asked for. Where times are asked for the clock has nothing in it
but what the question names: no optimizer time, and messages without latency unless latency is the question.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsim.forms import to_query
from dpsim.scenario import Batch, Buckets, Compute, Model, Network, Scenario

LINK_BYTES_PER_S = 10e9  # of a scene whose all-reduce is given by its time


def link(scenario: Scenario, beat: str = "") -> str:
    """The query that opens `scenario`, at a beat."""
    return to_query(scenario) + (f"&beat={beat}" if beat else "")


def samples(
    name: str,
    title: str,
    ranks: int,
    each: int,
    micro_batches: int = 1,
    *,
    sync_every: bool = False,
    gradient_bytes: float | None = None,
) -> Scenario:
    """Every rank computes `each` samples in each of its micro-batches."""
    return Scenario(
        name,
        Batch(lengths=(each,) * (ranks * micro_batches), micro_batches=micro_batches),
        title=title,
        world_size=ranks,
        reduction="mean_of_rank_means",
        model=Model("scalar", vocabulary=max(2, ranks)),
        network=Network(gradient_bytes=gradient_bytes),
        buckets=Buckets(sync_every_micro_batch=sync_every),
    )  # fmt: skip


def dealt(name: str, title: str, ranks: int, count: int) -> Scenario:
    """`count` samples dealt by a distributed sampler."""
    return Scenario(
        name,
        Batch(lengths=(1,) * count, shard="strided"),
        title=title,
        world_size=ranks,
        model=Model("scalar", vocabulary=4),
    )


def given(
    name: str,
    title: str,
    sums: Sequence[Sequence[Sequence[float]]],
    valid: Sequence[int],
    reduction: str | tuple[tuple[float, ...], ...] = "token_weighted",
    *,
    lengths: Sequence[int] | None = None,
    parameters: tuple[float, ...] | None = None,
) -> Scenario:
    """Gradient sums [R][K][P] as they are, over these valid tokens per micro-batch."""
    table = tuple(tuple(tuple(cell) for cell in row) for row in sums)
    return Scenario(
        name,
        Batch(lengths=tuple(lengths or valid), valid=tuple(valid), micro_batches=len(table[0])),
        title=title,
        world_size=len(table),
        reduction=reduction,
        model=Model("given", gradient_sums=table, parameters=parameters),
    )


def clocked(
    name: str,
    title: str,
    compute_s: Sequence[float],
    gradient_bytes: float | None,
    bandwidth: float = LINK_BYTES_PER_S,
    *,
    latency_s: float = 0.0,
    forward: float = 1 / 3,
    tokens: int = 4,
) -> Scenario:
    """Ranks that compute for these times, `forward` of it forward, then a ring without overlap."""
    ranks, quickest = len(compute_s), min(compute_s)
    even = len(set(compute_s)) == 1
    return Scenario(
        name,
        Batch(lengths=(tokens,) * ranks),
        title=title,
        world_size=ranks,
        reduction="mean_of_rank_means",
        model=Model("scalar", vocabulary=max(2, ranks)),
        compute=Compute(
            forward_s_per_token=quickest * forward / tokens,
            backward_s_per_token=quickest * (1 - forward) / tokens,
            speed=None if even else tuple(quickest / t for t in compute_s),
            optimizer_s=0.0,
        ),
        network=Network(latency_s, bandwidth, gradient_bytes),
        buckets=Buckets(overlap=False),
    )


def ring_bytes(ranks: int, seconds: float, bandwidth: float = LINK_BYTES_PER_S) -> float:
    """How many bytes a ring of `ranks` reduces in these seconds, without latency."""
    return seconds * bandwidth * ranks / (2 * (ranks - 1))
