"""The bank: every item, and the variant of it that belongs to a seed."""

from __future__ import annotations

import random
from functools import cache, lru_cache

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
    own,
    questions_of_the_page,
    real_runs,
    ring,
    scaling,
    scatter,
    several,
    tokens,
)
from dpsim.exercises.items import TOPICS, Drawn, Item, Series, fits
from dpsim.questions import Asked, as_choice

AREAS = (
    scatter, gradients, tokens, accumulation, ring, on_the_ring, barrier, overlap, scaling, memory, beyond,
    real_runs, in_order, several, questions_of_the_page,
)  # fmt: skip
MOST_TRIES = 200  # a draw that cannot be asked is drawn again; far fewer are needed


def items() -> dict[str, Item]:
    """Every item by its id, in the order of the topics: the bank's, and those of the folder of own items."""
    return _all(own.found())


def topics() -> dict[str, str]:
    """The topics in order: what items name them by, and their titles."""
    named = any(item.topic == own.TOPIC for item in own.found().items)
    return {**TOPICS, own.TOPIC: own.TITLE} if named else dict(TOPICS)


def mistakes() -> tuple[InputError, ...]:
    """What is wrong with the own items, each with its file and line. The others work."""
    return own.found().mistakes


@cache
def _shipped() -> tuple[Item, ...]:
    return tuple(item for area in AREAS for item in area.ITEMS)


@lru_cache(maxsize=2)
def _all(found: own.Found) -> dict[str, Item]:
    order = [*TOPICS, own.TOPIC]
    every = [*_shipped(), *found.items]
    return {item.id: item for item in sorted(every, key=lambda item: order.index(item.topic))}


def variant(item_id: str, seed: str, kind: str | None = None) -> Asked:
    """The question that belongs to an item and a seed. The seed decides its kind too, unless one is named.

    InputError where there is no such item, or it cannot be asked in that kind.
    """
    return variant_of(_item(item_id), seed, kind)


def variant_of(item: Item, seed: str, kind: str | None = None) -> Asked:
    """The same of an item that need not be in the bank."""
    seed = _plain(seed)
    if kind is None:
        kind = random.Random(f"{item.id}/{seed}/kind").choice(item.kinds)
    choice("kind", kind, item.kinds)
    asked = _drawn(item, seed).asked
    return as_choice(asked, f"{item.id}/{seed}") if (asked.kind, kind) == ("number", "choose-one") else asked


def chart_of(item_id: str, seed: str) -> Series | None:
    """The chart that belongs to an item and a seed, where no scenario can show its answer."""
    return _drawn(_item(item_id), _plain(seed)).chart


def _item(item_id: str) -> Item:
    found = items()
    if item_id not in found:
        raise InputError("item", "must be the id of an exercise, such as x-R1", item_id)
    return found[item_id]


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
