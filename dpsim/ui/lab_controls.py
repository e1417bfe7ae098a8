"""The lab's controls: five at first sight, the rest on demand. Each reads the scenario and edits it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpsim.batch import global_batch
from dpsim.edits import (
    changed,
    with_algorithm,
    with_assignment,
    with_drawn_sequences,
    with_micro_batches,
    with_model,
    with_sequences,
    with_shard,
    with_slowest,
    with_world_size,
)
from dpsim.parts import MAX_LENGTH, MAX_SEQUENCES, MODELS, SHARDS
from dpsim.prose import literal
from dpsim.reduction import NAMES, reduction
from dpsim.scenario import APP_RANKS, APP_STEPS, COLLECTIVES, OPTIMIZERS, SCHEMES, Scenario
from dpsim.typed import numbers, table, wholes, written, written_table
from dpsim.ui.lab_state import STAGE, lab
from dpsim.ui.lab_widgets import amount, line, meaning, select, set_to, switch
from dpsim.ui.live_state import is_live
from dpsim.ui.token_editor import token_editor

SHARD_NAMES = {
    "contiguous": "one run of sequences after another",
    "strided": "every R-th, as a distributed sampler does",
    "longest_first": "longest first, to whoever has least tokens",
    "balance_valid": "most valid tokens first, to whoever has fewest",
    "by_hand": "by hand",
}
MODEL_NAMES = {
    "bigram": "bigram: the next token from this one",
    "scalar": "scalar: logits = x · w",
    "given": "given: gradient sums typed in",
}
OPTIMIZER_NAMES = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam"}
COLLECTIVE_NAMES = {
    "ring": "ring",
    "tree": "tree",
    "halving-doubling": "halving-doubling",
    "parameter-server": "parameter server",
}


def first_five(scenario: Scenario) -> None:
    """What a first look shows."""
    ranks, how, collective, slowest, steps = st.columns([1, 2, 1.4, 1.4, 1])
    with ranks:
        amount(
            "Ranks", "world_size", scenario.world_size, with_world_size,
            min_value=1, max_value=APP_RANKS, help=meaning("rank"),
        )  # fmt: skip
    with how:
        custom = not isinstance(scenario.reduction, str)
        names = [*SCHEMES, "custom"] if custom else list(SCHEMES)
        value = "custom" if custom else str(scenario.reduction)
        help_ = meaning("token-weighted mean") + " " + meaning("naive mean")
        select("Reduction", "reduction", value, names, NAMES, _reduction, help=help_)
    with collective:
        select(
            "Collective", "collective", scenario.algorithm, COLLECTIVES, COLLECTIVE_NAMES,
            with_algorithm, help=meaning("collective"),
        )  # fmt: skip
    with slowest:
        amount(
            "Slowest rank's speed, %", "slowest", float(min(scenario.speeds)), with_slowest, unit=0.01,
            min_value=0.1, max_value=1e5, step=5.0, help=meaning("straggler"),
        )  # fmt: skip
    with steps:
        amount(
            "Steps", "steps", scenario.steps, set_to("steps"),
            min_value=1, max_value=APP_STEPS, help=meaning("step"),
        )  # fmt: skip


def _reduction(scenario: Scenario, value: str) -> Scenario:
    return scenario if value == "custom" else changed(scenario, "reduction", value)


def on_demand(scenario: Scenario) -> None:
    """Everything else that a scenario holds, a group to a button."""
    groups = {
        "Batch": _batch,
        "Model and optimizer": _model,
        "Compute and network": _clock,
        "Buckets": _buckets,
        "Own weights": _weights,
    }
    with st.container(horizontal=True, gap="small"):
        for label, group in groups.items():
            popover = st.popover(label, key=f"lab.group.{label}", on_change="rerun")
            if popover.open:  # for a class of thirty it matters that what nobody sees is not drawn
                with popover:
                    group(scenario)
    for key, message in lab().refused.items():
        if key not in lab().drawn and key != "tokens":
            st.error(literal(message))


def _batch(scenario: Scenario) -> None:
    batch = scenario.batch
    drawn = batch.sequences is not None
    switch("Draw the sequences from the seed", "batch.drawn", drawn, _draw)
    if drawn:
        left, right = st.columns(2)
        with left:
            amount(
                "Sequences", "batch.sequences", batch.count,
                lambda s, v: with_drawn_sequences(s, v, s.batch.max_length),
                min_value=1, max_value=MAX_SEQUENCES,
            )  # fmt: skip
        with right:
            amount(
                "Longest, in tokens", "batch.max_length", batch.max_length,
                lambda s, v: with_drawn_sequences(s, s.batch.count, v), min_value=1, max_value=MAX_LENGTH,
            )  # fmt: skip
    else:
        dealt = global_batch(scenario)
        lengths, valid = tuple(dealt.lengths.tolist()), tuple(dealt.valid.tolist())
        line("Tokens of each sequence", "batch.lengths", written(lengths), _lengths)
        line("Valid tokens of each sequence", "batch.valid", written(valid), _valid)
    amount("Seed", "seed", scenario.seed, set_to("seed"), min_value=0, max_value=2**32 - 1)
    token_editor(scenario, lab())
    select("How they are dealt", "batch.shard", batch.shard, SHARDS, SHARD_NAMES, with_shard)
    if batch.assignment is not None:
        line(
            "Sequences of each rank, a line a rank; a semicolon parts micro-batches", "batch.assignment",
            written_table(batch.assignment), lambda s, v: with_assignment(s, table("batch.assignment", v)),
            tall=True,
        )  # fmt: skip
    else:
        micro = batch.micro_batches if isinstance(batch.micro_batches, tuple) else (batch.micro_batches,)
        line(
            "Micro-batches a step: one number, or one for each rank", "batch.micro_batches", written(micro),
            _micro_batches, help=meaning("gradient accumulation"),
        )  # fmt: skip


def _draw(scenario: Scenario, value: bool) -> Scenario:
    if value:
        return with_drawn_sequences(scenario, scenario.batch.count, scenario.batch.max_length)
    dealt = global_batch(scenario)
    return with_sequences(scenario, tuple(dealt.lengths.tolist()), tuple(dealt.valid.tolist()))


def _lengths(scenario: Scenario, text: str) -> Scenario:
    lengths = wholes("batch.lengths", text)
    known = global_batch(scenario).valid.tolist()
    kept = [min(n, known[i]) if i < len(known) else n for i, n in enumerate(lengths)]
    return with_sequences(scenario, lengths, tuple(kept))


def _valid(scenario: Scenario, text: str) -> Scenario:
    lengths = tuple(global_batch(scenario).lengths.tolist())
    return with_sequences(scenario, lengths, wholes("batch.valid", text))


def _micro_batches(scenario: Scenario, text: str) -> Scenario:
    values = wholes("batch.micro_batches", text)
    return with_micro_batches(scenario, values[0] if len(values) == 1 else values)


def _model(scenario: Scenario) -> None:
    model, optimizer = scenario.model, scenario.optimizer
    select("Model", "model.kind", model.kind, MODELS, MODEL_NAMES, with_model)
    if model.kind == "given":
        line(
            "Gradient sums, a line a rank; a semicolon parts micro-batches", "model.gradient_sums",
            written_table(model.gradient_sums or ()), _gradient_sums, tall=True,
            help=meaning("gradient sum"),
        )  # fmt: skip
        st.caption("They are sums over the valid tokens, and stay as typed when a token is masked.")
    else:
        left, right = st.columns(2)
        with left:
            amount(
                "Vocabulary", "model.vocabulary", model.vocabulary,
                lambda s, v: with_model(s, s.model.kind, v), min_value=2, max_value=64,
            )  # fmt: skip
        if model.kind == "bigram":
            with right:
                amount("Width", "model.width", model.width, _width, min_value=1, max_value=16)
    start = written(model.parameters) if model.parameters is not None else ""
    line("Parameters to start from; empty: drawn from the seed", "model.parameters", start, _parameters)
    select(
        "Optimizer", "optimizer.kind", optimizer.kind, OPTIMIZERS, OPTIMIZER_NAMES, set_to("optimizer.kind")
    )
    amount(
        "Learning rate", "optimizer.learning_rate", float(optimizer.learning_rate),
        set_to("optimizer.learning_rate"), min_value=0.0, max_value=1e6,
    )  # fmt: skip
    coefficients = {"momentum": ("momentum",), "adam": ("beta1", "beta2", "epsilon")}.get(optimizer.kind, ())
    for name in coefficients:
        key = f"optimizer.{name}"
        amount(name, key, float(getattr(optimizer, name)), set_to(key), min_value=0.0, max_value=1.0)
    switch("Clip the gradient's norm", "optimizer.clips", optimizer.clip_norm is not None, _clips)
    if optimizer.clip_norm is not None:
        amount(
            "Norm to clip to", "optimizer.clip_norm", float(optimizer.clip_norm),
            set_to("optimizer.clip_norm"), min_value=0.0, max_value=1e9,
        )  # fmt: skip
        when = {"after": "after the average", "before": "before the average, on each rank"}
        select("Clip", "optimizer.clip", optimizer.clip, tuple(when), when, set_to("optimizer.clip"))


def _clips(scenario: Scenario, value: bool) -> Scenario:
    return changed(scenario, "optimizer.clip_norm", 1.0 if value else None)


def _width(scenario: Scenario, value: int) -> Scenario:
    plain = replace(scenario, model=replace(scenario.model, parameters=None))
    return changed(plain, "model.width", value)


def _parameters(scenario: Scenario, text: str) -> Scenario:
    return changed(scenario, "model.parameters", list(numbers("model.parameters", text)) or None)


def _gradient_sums(scenario: Scenario, text: str) -> Scenario:
    rows = table("model.gradient_sums", text)
    plain = replace(scenario, model=replace(scenario.model, parameters=None))
    return changed(plain, "model.gradient_sums", [[list(cell) for cell in row] for row in rows])


def _clock(scenario: Scenario) -> None:
    compute, network, live = scenario.compute, scenario.network, is_live(STAGE)
    if live:
        st.caption("Live, latency, bandwidth and the time of a token are measured. Slow ranks are put there.")
    left, right = st.columns(2)
    with left:
        for name, label in (("forward", "Forward"), ("backward", "Backward")):
            key = f"compute.{name}_s_per_token"
            amount(
                f"{label}, ms a token", key, float(getattr(compute, f"{name}_s_per_token")), set_to(key),
                unit=1e-3, min_value=0.0, max_value=3.6e6, disabled=live,
            )  # fmt: skip
        amount(
            "Optimizer, ms", "compute.optimizer_s", float(compute.optimizer_s), set_to("compute.optimizer_s"),
            unit=1e-3, min_value=0.0, max_value=3.6e6, disabled=live,
        )  # fmt: skip
    with right:
        amount(
            "Latency of a link, µs", "network.latency_s", float(network.latency_s),
            set_to("network.latency_s"), unit=1e-6, min_value=0.0, max_value=3.6e9,
            disabled=live,
        )  # fmt: skip
        key = "network.bandwidth_bytes_per_s"
        amount(
            "Bandwidth of a link, GB/s", key, float(network.bandwidth_bytes_per_s), set_to(key),
            unit=1e9, min_value=0.0, max_value=1e9, disabled=live,
        )  # fmt: skip
        key = "network.gradient_bytes"
        size = network.gradient_bytes or 4.0 * scenario.model.size
        amount(
            "The gradient stands for, MB", key, float(size), set_to(key), unit=1e6, min_value=0.0,
            max_value=1e9, disabled=live,
            help="The tiny gradient takes as long on the link as one of this many bytes.",
        )  # fmt: skip
    line(
        "Speed of each rank, 1 is normal", "compute.speed", written(scenario.speeds), _speeds,
        help=meaning("straggler"),
    )  # fmt: skip


def _speeds(scenario: Scenario, text: str) -> Scenario:
    return changed(scenario, "compute.speed", list(numbers("compute.speed", text)) or None)


def _buckets(scenario: Scenario) -> None:
    buckets = scenario.buckets
    own = buckets.cap_bytes is not None
    switch("A cap of my own", "buckets.capped", own, _capped, help=meaning("bucket"))
    if own:
        amount(
            "Cap, MB", "buckets.cap_bytes", float(buckets.cap_bytes or 0), set_to("buckets.cap_bytes"),
            unit=1e6, min_value=0.0, max_value=1e9,
        )  # fmt: skip
    else:
        st.caption("torch's own: the first bucket closes at 1 MiB, the others at 25 MiB.")
    switch(
        "Overlap with the backward pass", "buckets.overlap", buckets.overlap, set_to("buckets.overlap"),
        help=meaning("overlap"),
    )  # fmt: skip
    key = "buckets.sync_every_micro_batch"
    switch("Synchronise every micro-batch", key, buckets.sync_every_micro_batch, set_to(key))


def _capped(scenario: Scenario, value: bool) -> Scenario:
    whole = scenario.bytes_per_element * scenario.model.size
    return changed(scenario, "buckets.cap_bytes", whole / 2 if value else None)


def _weights(scenario: Scenario) -> None:
    """A table w of one's own, from the weights of the reduction that is chosen now."""
    st.caption("The gradient is the sum of w · S over ranks and micro-batches, with these weights w.")
    rows = _table_now(scenario)
    line("Weights, a line a rank", "weights", "\n".join(map(written, rows)), _own_weights, tall=True)


def _table_now(scenario: Scenario) -> tuple[tuple[float, ...], ...]:
    batch = global_batch(scenario)
    now = reduction(scenario.reduction, batch.shard_counts(batch.valid), scenario.micro_batches).weights
    return tuple(tuple(row[:k]) for row, k in zip(now.tolist(), scenario.micro_batches, strict=True))


def _own_weights(scenario: Scenario, text: str) -> Scenario:
    rows = [list(numbers("reduction", row)) for row in text.splitlines() if row.strip()]
    return changed(scenario, "reduction", rows)
