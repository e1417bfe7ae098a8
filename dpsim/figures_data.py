"""Figures of how data are dealt and accumulated, of more ranks, and of what a device must hold.

Those with keys of the kind `published` are worked out from figures with a source: ``steps_per_epoch.A.B.C``
for the samples A on B ranks with C in a batch of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsim.batch import global_batch
from dpsim.network import cost
from dpsim.published import Published
from dpsim.run_figures import Family, Run, gigabytes, percent
from dpsim.scaling import speedup, speedup_same_batch
from dpsim.wording import duration, size

STAGES = ("ddp", "stage1", "stage2", "stage3")  # plain data parallelism, and ZeRO's three stages


def three(value: float) -> str:
    """A number with three digits."""
    return f"{value:.3g}"


def memory(stage: str, parameters: float, ranks: float) -> float:
    """Bytes a rank holds for `parameters` under Adam in mixed precision (Rajbhandari et al. 2019): 2 for the
    weight and 2 for its gradient, 12 for the optimizer's state; what is sharded is divided by the ranks."""
    sharded = {"ddp": 0, "stage1": 12, "stage2": 14, "stage3": 16}[stage]
    return parameters * (16 - sharded + sharded / ranks)


def epoch_order(seed: int, epoch: int, count: int) -> list[int]:
    """The order in which a sampler that was told its epoch deals `count` sequences: one for all ranks."""
    return [int(i) for i in np.random.default_rng([seed, 4, epoch]).permutation(count)]


def _dealt(run: Run) -> list[list[int]]:
    """The sequence numbers that every rank gets, in their order."""
    return [[i for cell in row for i in cell] for row in global_batch(run.scenario).assignment]


def _all_dealt(run: Run) -> list[int]:
    return [i for row in _dealt(run) for i in row]


def _numbers(values: list[int]) -> str:
    return ", ".join(map(str, values))


def _order(run: Run, epoch: int) -> str:
    return _numbers(epoch_order(run.scenario.seed, epoch, run.scenario.batch.count))


def _steps(samples: Published, ranks: Published, per_rank: Published) -> int:
    each = -(-int(samples.value) // int(ranks.value))
    return -(-each // int(per_rank.value))


def _micro_sums(run: Run, rank: int) -> Any:
    """The gradient sums of a rank's micro-batches [K, P]."""
    return run.trace.gradient_sums[0][rank, : run.scenario.micro_batches[rank]]


def _micro_valid(run: Run, rank: int) -> Any:
    return run.trace.valid_tokens[0][rank, : run.scenario.micro_batches[rank]]


def _micro_means(run: Run, rank: int) -> Any:
    counts = _micro_valid(run, rank)
    return _micro_sums(run, rank) / counts[:, None] if np.all(counts) else None


def _mean_of_micro_means(run: Run, rank: int) -> Any:
    means = _micro_means(run, rank)
    return None if means is None else means.mean(axis=0)


def _micro_ratio(run: Run, scheme: str, rank: int, one: int, other: int) -> Any:
    weights = run.token_weight(scheme, rank)
    return None if weights is None or not weights[other] else weights[one] / weights[other]


def _traffic(run: Run) -> float | None:
    """Bytes of the gradient sent in the step, against those of one all-reduce."""
    scenario = run.scenario
    network, whole = scenario.network, scenario.model.size * scenario.bytes_per_element
    once = cost(
        scenario.collective, scenario.world_size, whole, network.latency_s, network.bandwidth_bytes_per_s
    )
    total, sent = float(once.bytes_sent.sum()), run.metrics.bytes_sent
    return float(sent.sum()) / total if total and sent is not None else None


SAMPLER = {
    "sequences": Family("sequences of the batch", (), lambda run: run.scenario.batch.count),
    "dealt": Family("sequences that are dealt, repeats included", (), lambda run: len(_all_dealt(run))),
    "repeats": Family(
        "how many sequences are dealt once more than there are",
        (),
        lambda run: len(_all_dealt(run)) - run.scenario.batch.count,
    ),
    "no_repeats": Family("wrong: no sequence is dealt twice", (), lambda run: 0),
    "rest": Family(
        "what is left over when the sequences are divided by the ranks",
        (),
        lambda run: run.scenario.batch.count % run.scenario.world_size,
    ),
    "without_rest": Family(
        "sequences that are dealt where the rest is dropped",
        (),
        lambda run: run.scenario.batch.count - run.scenario.batch.count % run.scenario.world_size,
    ),
    "times_ranks": Family(
        "wrong: sequences that are dealt if every rank gets all",
        (),
        lambda run: run.scenario.batch.count * run.scenario.world_size,
    ),
    "dealt_to": Family("how many sequences a rank gets", ("rank",), lambda run, r: len(_dealt(run)[r])),
    "hand": Family("the numbers of a rank's sequences", ("rank",), lambda run, r: _numbers(_dealt(run)[r])),
    "mean_number": Family(
        "the mean of the sequences' numbers", (), lambda run: (run.scenario.batch.count - 1) / 2
    ),
    "mean_dealt": Family(
        "the mean of the numbers of what was dealt", (), lambda run: np.mean(_all_dealt(run))
    ),
    "order": Family(
        "the shuffled order of an epoch, where the sampler knows the epoch's number", ("epoch",), _order
    ),
    "repeats_of": Family(
        "what a sampler repeats: samples, ranks", ("published",) * 2, lambda run, d, r: -d.value % r.value
    ),
    "rest_of": Family(
        "samples left over when they are divided by the ranks: samples, ranks",
        ("published",) * 2,
        lambda run, d, r: d.value % r.value,
    ),
    "samples_per_rank": Family(
        "samples of a rank in an epoch: samples, ranks",
        ("published",) * 2,
        lambda run, d, r: -(-d.value // r.value),
    ),
    "global_batch": Family(
        "samples in one step: ranks, samples in a batch of each",
        ("published",) * 2,
        lambda run, r, b: r.value * b.value,
    ),
    "steps_per_epoch": Family(
        "optimizer steps of an epoch: samples, ranks, samples in a batch of each",
        ("published",) * 3,
        lambda run, d, r, b: _steps(d, r, b),
    ),
    "steps_rounded_down": Family(
        "wrong: the same, what is left over dropped",
        ("published",) * 3,
        lambda run, d, r, b: d.value // r.value // b.value,
    ),
    "steps_alone": Family(
        "optimizer steps of an epoch on one rank: samples, samples in a batch",
        ("published",) * 2,
        lambda run, d, b: -(-d.value // b.value),
    ),
    "passes_needed": Family(
        "passes of a rank for a global batch: samples in it, ranks, samples in a pass of each",
        ("published",) * 3,
        lambda run, d, r, b: d.value / (r.value * b.value),
    ),
}

ACCUMULATION = {
    "all_passes": Family(
        "forward and backward passes of all ranks in a step", (), lambda run: sum(run.scenario.micro_batches)
    ),
    "idle_passes": Family(
        "passes of rank 0 that need no all-reduce of their own",
        (),
        lambda run: run.scenario.micro_batches[0] - 1,
    ),
    "micro_valid": Family("valid tokens of a rank's micro-batches", ("rank",), _micro_valid),
    "micro_sum": Family(
        "the gradient sum of one micro-batch", ("rank", "micro"), lambda run, r, k: _micro_sums(run, r)[k]
    ),
    "micro_mean": Family("the mean of a rank's micro-batch means", ("rank",), _mean_of_micro_means),
    "micro_ratio": Family(
        "how many times a token of a rank's first micro-batch named counts one of the second",
        ("scheme", "rank", "micro", "micro"),
        _micro_ratio,
    ),
    "traffic": Family("gradient bytes sent in the step, in all-reduces of the whole gradient", (), _traffic),
}

SCALING = {
    "speedup": Family(
        "tokens per second of that many ranks, each with its share, against one",
        ("count",),
        lambda run, r: speedup(run.scenario, r),
        three,
    ),
    "speedup_efficiency": Family(
        "that speed-up against the number of ranks",
        ("count",),
        lambda run, r: _of_ranks(speedup(run.scenario, r), r),
        percent,
    ),
    "speedup_same_batch": Family(
        "how many times as fast that many ranks are with the same batch as one device",
        ("count",),
        lambda run, r: speedup_same_batch(run.scenario, r),
        three,
    ),
    "same_batch_efficiency": Family(
        "that speed-up against the number of ranks",
        ("count",),
        lambda run, r: _of_ranks(speedup_same_batch(run.scenario, r), r),
        percent,
    ),
    "one_device_time": Family(
        "the step time of one device with the whole batch",
        (),
        lambda run: run.metrics.one_device_step_time_s,
        duration,
    ),
    "efficiency_of": Family(
        "a published scaling efficiency: throughput of all, of one, how many",
        ("published",) * 3,
        lambda run, all_, one, r: 100 * all_.value / (one.value * r.value),
        percent,
    ),
    "quotient": Family(
        "one published figure divided by another",
        ("published",) * 2,
        lambda run, a, b: a.value / b.value,
        three,
    ),
    "worth": Family(
        "how many devices of full speed they are worth: devices, efficiency in percent",
        ("published",) * 2,
        lambda run, r, e: r.value * e.value / 100,
        lambda value: f"{value:.0f}",
    ),
    "scaled_rate": Family(
        "a learning rate that grows with the batch: rate, its batch, the new batch",
        ("published",) * 3,
        lambda run, rate, old, new: rate.value * new.value / old.value,
    ),
    "rate_root": Family(
        "the same with the root of the batch's growth",
        ("published",) * 3,
        lambda run, rate, old, new: rate.value * (new.value / old.value) ** 0.5,
    ),
}

MEMORY = {
    "memory": Family(
        "what a rank holds for parameters, gradients and Adam's state: stage, parameters, ranks",
        ("stage", "published", "published"),
        lambda run, stage, p, r: memory(stage, p.value, r.value) / 1e9,
        gigabytes,
    ),
    "memory_of": Family(
        "what so many bytes for every parameter make: bytes, parameters",
        ("published",) * 2,
        lambda run, b, p: b.value * p.value / 1e9,
        gigabytes,
    ),
    "bytes_per_parameter": Family(
        "bytes of a parameter, its gradient and Adam's state", (), lambda run: memory("ddp", 1, 1), size
    ),
    "onebit_ratio": Family(
        "how many times fewer bytes travel: share sent uncompressed in percent, bits that one replaces",
        ("published",) * 2,
        lambda run, share, bits: 1 / (share.value / 100 + (1 - share.value / 100) / bits.value),
        three,
    ),
}

PUBLISHED = {
    "published": Family("a figure from outside, with its unit", ("published",), lambda run, entry: entry),
    "published_source": Family("where it is from", ("published",), lambda run, entry: entry.source),
    "published_says": Family("what it is", ("published",), lambda run, entry: entry.says),
}

DATA = SAMPLER | ACCUMULATION | SCALING | MEMORY | PUBLISHED


def _of_ranks(times: float | None, ranks: int) -> float | None:
    return None if times is None else 100 * times / ranks
