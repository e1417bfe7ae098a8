"""Changes to a scenario that keep it whole: what depends on a changed value is fitted to it.

Every edit is a pure function Scenario -> Scenario; InputError where what was chosen cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpsim.batch import global_batch
from dpsim.checks import InputError, number, sequence, whole
from dpsim.edited import fitted
from dpsim.forms import PARTS, from_dict, from_query, preset, to_dict
from dpsim.parts import MAX_SEQUENCES
from dpsim.scenario import APP_RANKS, MASKED, Scenario

GIVEN_ELEMENTS = 4  # elements of a gradient that is drawn where none is given
LEAST = {"name": "x", "batch.sequences": "1"}  # a scenario needs a name and a batch
NEW_SEQUENCES = 8  # tokens of the sequences that a batch starts with when it is typed in


def changed(scenario: Scenario, key: str, value: Any) -> Scenario:
    """`scenario` with one dotted key set; None takes a value away."""
    data = to_dict(scenario, full=True)
    part, dot, name = key.rpartition(".")
    if not dot and name in PARTS:
        raise InputError(key, "must be changed key by key", value)
    target = data.setdefault(part, {}) if dot else data
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value
    return from_dict(data)


def with_world_size(scenario: Scenario, ranks: int) -> Scenario:
    """As many ranks; every rank keeps as many sequences, so the global batch grows and shrinks with them."""
    ranks = whole("world_size", ranks, 1, 1024)
    if ranks == scenario.world_size:
        return scenario
    data = to_dict(scenario, full=True)
    data["world_size"] = ranks
    data["collective"] = fitted(scenario.collective, ranks)
    batch, compute = data["batch"], data["compute"]
    each = -(-scenario.batch.count // scenario.world_size)
    _cut_or_repeat(batch, each * ranks)
    if "speed" in compute:
        compute["speed"] = (compute["speed"] + [1.0] * ranks)[:ranks]
    if isinstance(batch.get("micro_batches"), list):
        known = batch["micro_batches"]
        batch["micro_batches"] = (known + known[-1:] * ranks)[:ranks]
    _deal_anew(data)
    _fit_gradients(data, scenario.seed)
    return from_dict(data)


def on_preset(name: str | None, keys: Mapping[str, str]) -> Scenario:
    """The scenario of a link: the preset it names with its keys on top, or without a preset its keys alone.
    What the preset says of each rank is fitted to the link's number of ranks."""
    base = None if name is None else preset(name)
    if base is not None and "world_size" in keys:
        ranks = from_query({"world_size": keys["world_size"], **LEAST}).world_size
        base = with_world_size(base, whole("world_size", ranks, 1, APP_RANKS))
    return from_query(keys, base=base)


def on_one_device(scenario: Scenario) -> Scenario:
    """The same batch, whole, on one device: the reference that every way of reducing is held against."""
    data = to_dict(scenario, full=True)
    data["world_size"] = 1
    data["collective"] = scenario.algorithm
    data["reduction"] = "token_weighted"
    data["batch"].pop("assignment", None)
    data["batch"] |= {"shard": "contiguous", "micro_batches": 1}
    data["compute"].pop("speed", None)
    if "optimizer" in data:
        data["optimizer"]["clip"] = "after"  # with one rank there is no before
    if scenario.model.gradient_sums is not None:
        cells = [cell for row in scenario.model.gradient_sums for cell in row]
        data["model"]["gradient_sums"] = [[np.sum(cells, axis=0).tolist()]]
    return from_dict(data)


def with_algorithm(scenario: Scenario, algorithm: str) -> Scenario:
    """Another algorithm; what is done wrong in the collective stays where the new one has such a row."""
    chosen = replace(scenario.exchange, algorithm=algorithm)
    return changed(scenario, "collective", fitted(str(chosen), scenario.world_size))


def _cut_or_repeat(batch: dict[str, Any], count: int) -> None:
    """The batch with `count` sequences: the first ones, or the same again from the start."""
    if "sequences" in batch:
        batch["sequences"] = count
    for name in ("lengths", "valid", "tokens", "labels"):
        if name in batch:
            batch[name] = [batch[name][i % len(batch[name])] for i in range(count)]


def _deal_anew(data: dict[str, Any]) -> None:
    """Give up what was laid down for another number of ranks or micro-batches: dealing by hand, a table."""
    if data["batch"].pop("assignment", None) is not None:
        data["batch"]["shard"] = "contiguous"
    if not isinstance(data["reduction"], str):
        data["reduction"] = "token_weighted"


def _fit_gradients(data: dict[str, Any], seed: int) -> None:
    """Given gradient sums for every rank and micro-batch: those there are, others drawn from the seed."""
    if data["model"]["kind"] != "given":
        return
    known = data["model"].get("gradient_sums") or []
    size = len(known[0][0]) if known else GIVEN_ELEMENTS
    micro = data["batch"].get("micro_batches", 1)
    if data["batch"].get("shard") == "by_hand":  # it follows from the assignment
        micro = [len(row) for row in data["batch"]["assignment"]]
    table = []
    for r in range(data["world_size"]):
        k = micro if isinstance(micro, int) else micro[r]
        drawn = np.random.default_rng([seed, 3, r]).integers(-9, 10, (k, size)).astype(float).tolist()
        own = known[r][:k] if r < len(known) else []
        table.append(own + drawn[len(own) :])
    data["model"]["gradient_sums"] = table


def with_micro_batches(scenario: Scenario, micro_batches: int | tuple[int, ...]) -> Scenario:
    """As many micro-batches on every rank, or a number for each of them."""
    data = to_dict(scenario, full=True)
    each = list(micro_batches) if isinstance(micro_batches, tuple) else micro_batches
    if isinstance(each, list):
        each = [whole(f"batch.micro_batches[{r}]", k, 1, 64) for r, k in enumerate(each)]
        sequence("batch.micro_batches", each, 1024, scenario.world_size)
    else:
        each = whole("batch.micro_batches", each, 1, 64)
    _deal_anew(data)
    data["batch"]["micro_batches"] = each
    _fit_gradients(data, scenario.seed)
    return from_dict(data)


def with_sequence_count(scenario: Scenario, count: int) -> Scenario:
    """As many sequences: the first ones, or the same again from the start."""
    data = to_dict(scenario, full=True)
    _deal_anew(data)
    _cut_or_repeat(data["batch"], whole("batch.sequences", count, 1, MAX_SEQUENCES))
    return from_dict(data)


def with_model(scenario: Scenario, kind: str, vocabulary: int | None = None) -> Scenario:
    """Another kind of model, or another vocabulary; typed tokens and labels are taken modulo it."""
    data = to_dict(scenario, full=True)
    model, batch = data["model"], data["batch"]
    model["kind"] = kind
    v = model["vocabulary"] = whole("model.vocabulary", vocabulary or scenario.model.vocabulary, 2, 64)
    model.pop("parameters", None)
    if kind != "given":
        model.pop("gradient_sums", None)
    elif "sequences" in batch:
        raise InputError("model.kind", "'given' needs sequences that are typed in, not drawn", kind)
    if "tokens" in batch:
        if kind == "bigram":
            batch["tokens"] = [[x % v for x in row] for row in batch["tokens"]]
        batch["labels"] = [[y if y == MASKED else y % v for y in row] for row in batch["labels"]]
    _fit_gradients(data, scenario.seed)
    return from_dict(data)


def with_sequences(scenario: Scenario, lengths: tuple[int, ...], valid: tuple[int, ...]) -> Scenario:
    """A batch typed in: the length of every sequence, and how many of its tokens count."""
    batch = _batch_written(scenario, lengths=list(lengths), valid=list(valid))
    return from_dict(to_dict(scenario, full=True) | {"batch": batch})


def with_drawn_sequences(scenario: Scenario, count: int, max_length: int) -> Scenario:
    """A batch drawn from the seed."""
    batch = _batch_written(scenario, sequences=count, max_length=max_length)
    return from_dict(to_dict(scenario, full=True) | {"batch": batch})


def _batch_written(scenario: Scenario, **values: Any) -> dict[str, Any]:
    """The batch with its sequences replaced; how it is dealt stays, if it does not name sequences."""
    old = to_dict(scenario, full=True)["batch"]
    kept = {name: old[name] for name in ("shard", "micro_batches") if name in old}
    if scenario.batch.assignment is not None:
        kept["shard"] = "contiguous"
    return kept | values


def with_assignment(scenario: Scenario, rows: tuple[tuple[tuple[float, ...], ...], ...]) -> Scenario:
    """The sequences dealt by hand [R][K]."""
    data = to_dict(scenario, full=True)
    data["batch"].pop("micro_batches", None)
    data["batch"]["shard"] = "by_hand"
    data["batch"]["assignment"] = [
        [[whole("batch.assignment", i, 0, 4095) for i in cell] for cell in row] for row in rows
    ]
    if not isinstance(data["reduction"], str):
        data["reduction"] = "token_weighted"
    if len(rows) == scenario.world_size:
        _fit_gradients(data, scenario.seed)
    return from_dict(data)


def with_shard(scenario: Scenario, shard: str) -> Scenario:
    """Another way of dealing the sequences; by hand starts from how they are dealt now."""
    if shard == "by_hand":
        if scenario.batch.assignment is not None:
            return scenario
        dealt = global_batch(scenario).assignment
        flat = [i for row in dealt for cell in row for i in cell]
        if len(set(flat)) < len(flat):  # a sampler's repeats cannot be dealt by hand
            dealt = global_batch(changed(scenario, "batch.shard", "contiguous")).assignment
        return with_assignment(scenario, dealt)
    data = to_dict(scenario, full=True)
    if data["batch"].pop("assignment", None) is not None:
        each = set(scenario.micro_batches)
        data["batch"]["micro_batches"] = each.pop() if len(each) == 1 else list(scenario.micro_batches)
    data["batch"]["shard"] = shard
    return from_dict(data)


def with_slowest(scenario: Scenario, speed: float) -> Scenario:
    """The slowest rank's speed; where all are equally fast it is the last rank that is slowed down."""
    speed = number("compute.speed", speed, 0.001, 1000)
    speeds = list(scenario.speeds)
    slowest = len(speeds) - 1 - int(np.argmin(speeds[::-1]))
    speeds[slowest] = speed
    return changed(scenario, "compute.speed", None if set(speeds) == {1.0} else speeds)


def with_marks(scenario: Scenario, marks: tuple[str, ...]) -> Scenario:
    """Which tokens count: for every sequence "1101", 1 for a valid token and 0 for a masked one.

    A token that is made valid again gets its label back: the next token, and behind the last one the first.
    Sequences whose valid tokens come first stay counts, so that a link stays short.
    """
    batch = global_batch(scenario)
    if len(marks) != len(batch.tokens) or any(
        len(m) != len(x) or set(m) - {"0", "1"} for m, x in zip(marks, batch.tokens, strict=False)
    ):
        raise InputError("marks", "must have a 0 or 1 for every token of every sequence", list(marks)[:4])
    if scenario.batch.lengths is not None and not any("01" in m for m in marks):
        return changed(scenario, "batch.valid", [m.count("1") for m in marks])
    labels = []
    v = scenario.model.vocabulary
    for row, tokens, known in zip(marks, batch.tokens, batch.labels, strict=True):
        following = np.roll(tokens, -1) % v
        restored = np.where(known == MASKED, following, known)
        labels.append([int(y) if m == "1" else MASKED for m, y in zip(row, restored, strict=True)])
    data = to_dict(scenario, full=True)
    for name in ("lengths", "valid", "sequences"):
        data["batch"].pop(name, None)
    data["batch"] |= {"tokens": [x.tolist() for x in batch.tokens], "labels": labels}
    return from_dict(data)
