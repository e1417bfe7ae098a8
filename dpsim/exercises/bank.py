"""The bank: every item, and the variant of it that belongs to a seed."""

from __future__ import annotations

import random
from functools import cache

from dpsim.checks import InputError, choice
from dpsim.exercises import (
    accumulation,
    barrier,
    beyond,
    gradients,
    in_order,
    memory,
    on_the_ring,
    overlap,
    questions_of_the_page,
    real_runs,
    ring,
    scaling,
    scatter,
    several,
    tokens,
)
from dpsim.exercises.items import Drawn, Item, Series, fits
from dpsim.questions import Asked, as_choice

TOPICS = {
    "scatter": "Scatter and data",
    "step": "One step",
    "gradients": "Gradients and learning rate",
    "tokens": "Tokens",
    "accumulation": "Accumulation",
    "ring": "The ring",
    "barrier": "Barrier and stragglers",
    "overlap": "Overlap and buckets",
    "scaling": "Scaling",
    "memory": "Memory and sharding",
    "beyond": "Asynchrony, compression, topology",
    "real-runs": "Real runs",
    "page": "Six questions on the whole",
}
AREAS = (
    scatter, gradients, tokens, accumulation, ring, on_the_ring, barrier, overlap, scaling, memory, beyond,
    real_runs, in_order, several, questions_of_the_page,
)  # fmt: skip
MOST_TRIES = 200  # a draw that cannot be asked is drawn again; far fewer are needed


@cache
def items() -> dict[str, Item]:
    """Every item by its id, in the order of the topics."""
    every = [item for area in AREAS for item in area.ITEMS]
    order = list(TOPICS)
    return {item.id: item for item in sorted(every, key=lambda item: order.index(item.topic))}


def topics() -> dict[str, str]:
    """The topics in order: what items name them by, and their titles."""
    return dict(TOPICS)


def variant(item_id: str, seed: str, kind: str | None = None) -> Asked:
    """The question that belongs to an item and a seed. The seed decides its kind too, unless one is named.

    InputError where there is no such item, or it cannot be asked in that kind.
    """
    item, seed = _item(item_id), _plain(seed)
    if kind is None:
        kind = random.Random(f"{item_id}/{seed}/kind").choice(item.kinds)
    choice("kind", kind, item.kinds)
    asked = _drawn(item, seed).asked
    return as_choice(asked, f"{item_id}/{seed}") if (asked.kind, kind) == ("number", "choose-one") else asked


def chart_of(item_id: str, seed: str) -> Series | None:
    """The chart that belongs to an item and a seed, where no scenario can show its answer."""
    return _drawn(_item(item_id), _plain(seed)).chart


def _item(item_id: str) -> Item:
    if item_id not in items():
        raise InputError("item", "must be the id of an exercise, such as x-R1", item_id)
    return items()[item_id]


def _plain(seed: str) -> str:
    """`seed` without halves of characters, which a generator cannot be seeded with."""
    return seed.encode("utf-8", "replace").decode("utf-8")


def _drawn(item: Item, seed: str) -> Drawn:
    draw = random.Random(f"{item.id}/{seed}")
    for _ in range(MOST_TRIES):
        drawn = item.draw(draw)
        if fits(drawn.asked):
            return drawn
    raise AssertionError(f"{item.id}: no variant for {seed!r} in {MOST_TRIES} draws")
