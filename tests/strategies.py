"""Hypothesis strategies: small valid scenarios of every kind, and the settings that every test shares.

Hypothesis draws what is chosen (every choice of the design's scenario table can appear with every other) and
one seed, from which the long lists of numbers come: that keeps an example at a few milliseconds.
"""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from dpsim.scenario import (
    COLLECTIVES,
    OPTIMIZERS,
    SCHEMES,
    Batch,
    Buckets,
    Compute,
    Model,
    Network,
    Optimizer,
    Scenario,
)

ONCE_SHARDS = ("contiguous", "longest_first", "balance_valid", "by_hand")
SHARDS = (*ONCE_SHARDS, "strided")
MODELS = ("bigram", "scalar", "given")
FORMS = ("lengths", "tokens", "sequences")

BASE: dict[str, Any] = {"name": "base", "world_size": 2, "batch": {"lengths": [2, 3], "valid": [1, 3]}}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The small valid scenario `BASE` as a dictionary, with these dotted keys set."""
    data: dict[str, Any] = json.loads(json.dumps(BASE))
    for key, value in changes.items():
        *parts, name = key.split(".")
        target = data
        for part in parts:
            target = target.setdefault(part, {})
        target[name] = value
    return data


def law(examples: int) -> Any:
    """Settings of a property test: so many examples, the same ones every time, no clock."""
    slow = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=slow,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    """Finite floats in [low, high] with a few digits, so that a failing case can be read."""
    return st.integers(0, 1000).map(lambda i: low + (high - low) * i / 1000)


def batch(chance: Random, ranks: int, micro: list[int], model: Model, form: str, shard: str) -> Batch:
    """A batch of up to twelve sequences in this written form, dealt by `shard`."""
    count = chance.randint(1, 12)
    if model.kind == "given" and shard == "strided":  # whose sums cannot be repeated
        count = ranks * chance.randint(1, 2)
    lengths = [chance.randint(0 if form == "lengths" else 1, 6) for _ in range(count)]
    parts: dict[str, Any] = {"shard": shard}
    if form == "sequences":
        parts |= {"sequences": count, "max_length": chance.randint(1, 6)}
    elif form == "lengths":
        parts["lengths"] = lengths
        if chance.random() < 0.7:
            parts["valid"] = [chance.randint(0, n) for n in lengths]
    else:
        first, last = (0, model.vocabulary - 1) if model.kind == "bigram" else (-4, 4)
        marks = [-100, *range(model.vocabulary)]
        parts["tokens"] = [[chance.randint(first, last) for _ in range(n)] for n in lengths]
        parts["labels"] = [[chance.choice(marks) for _ in range(n)] for n in lengths]
    if shard == "by_hand":
        dealt: list[list[list[int]]] = [[[] for _ in range(k)] for k in micro]
        for i in chance.sample(range(count), count):
            chance.choice(chance.choice(dealt)).append(i)
        parts["assignment"] = dealt
    elif len(set(micro)) == 1 and chance.random() < 0.5:
        parts["micro_batches"] = micro[0]
    else:
        parts["micro_batches"] = micro
    return Batch(**parts)


def model(chance: Random, kind: str, micro: list[int]) -> Model:
    """A model of this kind, its start drawn from the seed or written down."""
    parts: dict[str, Any] = {"kind": kind, "vocabulary": chance.randint(2, 5)}
    if kind == "bigram":
        parts["width"] = chance.randint(1, 3)
    if kind == "given":
        size = chance.randint(1, 12)
        parts["gradient_sums"] = [[_vector(chance, size, 5) for _ in range(k)] for k in micro]
    made = Model(**parts)
    return made if chance.random() < 0.5 else replace(made, parameters=_vector(chance, made.size, 1))


def _vector(chance: Random, size: int, most: float) -> list[float]:
    return [round(chance.uniform(-most, most), 3) for _ in range(size)]


def optimizers(kinds: tuple[str, ...] = OPTIMIZERS, clips: bool = True) -> st.SearchStrategy[Optimizer]:
    """Optimizers of these kinds, with and without clipping before or after the average."""
    return st.builds(
        Optimizer,
        kind=st.sampled_from(kinds),
        learning_rate=numbers(0, 0.5),
        momentum=numbers(0, 0.95),
        beta1=numbers(0, 0.95),
        beta2=numbers(0.5, 0.999),
        clip_norm=st.none() | numbers(0.05, 2) if clips else st.none(),
        clip=st.sampled_from(("after", "before")) if clips else st.just("after"),
    )


@st.composite
def scenarios(
    draw: Any,
    *,
    max_ranks: int = 9,
    max_steps: int = 3,
    kinds: tuple[str, ...] = MODELS,
    shards: tuple[str, ...] = SHARDS,
    schemes: tuple[str, ...] = (*SCHEMES, "table"),
    optimizer: st.SearchStrategy[Optimizer] | None = None,
) -> Scenario:
    """A valid scenario that simulates in a few milliseconds."""
    ranks = draw(st.integers(1, max_ranks))
    chance = Random(draw(st.integers(0, 2**32 - 1)))
    micro = [draw(st.integers(1, 3))] * ranks
    if draw(st.booleans()):
        micro = [chance.randint(1, 3) for _ in range(ranks)]
    made = model(chance, draw(st.sampled_from(kinds)), micro)
    form = "lengths" if made.kind == "given" else draw(st.sampled_from(FORMS))
    scheme: Any = draw(st.sampled_from(schemes))
    if scheme == "table":
        scheme = [_vector(chance, k, 1) for k in micro]
    size = draw(st.none() | numbers(1e3, 1e8))
    cap = draw(st.none() | numbers(0.01, 1.2))
    return Scenario(
        name="drawn",
        title=draw(st.sampled_from(("", "a title & more = 100 % ≠ «1»"))),
        seed=draw(st.integers(0, 2**32 - 1)),
        steps=draw(st.integers(1, max_steps)),
        world_size=ranks,
        reduction=scheme,
        collective=draw(st.sampled_from(COLLECTIVES)),
        model=made,
        batch=batch(chance, ranks, micro, made, form, draw(st.sampled_from(shards))),
        optimizer=draw(optimizers() if optimizer is None else optimizer),
        compute=Compute(
            forward_s_per_token=draw(numbers(0, 1e-3)),
            backward_s_per_token=draw(numbers(0, 2e-3)),
            optimizer_s=draw(numbers(0, 1e-3)),
            speed=draw(st.sampled_from((None, [chance.uniform(0.3, 2) for _ in range(ranks)]))),
        ),
        network=Network(
            latency_s=draw(numbers(0, 1e-3)),
            bandwidth_bytes_per_s=draw(numbers(1e8, 1e11)),
            gradient_bytes=size,
        ),
        buckets=Buckets(
            cap_bytes=None if cap is None else cap * (size or 4.0 * made.size),
            overlap=draw(st.booleans()),
            sync_every_micro_batch=len(set(micro)) == 1 and draw(st.booleans()),
        ),
    )
