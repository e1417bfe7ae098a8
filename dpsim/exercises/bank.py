"""The bank: every item, and the variant of it that belongs to a seed."""

from __future__ import annotations

import random
from functools import cache

from dpsim.checks import InputError, choice
from dpsim.exercises import scatter
from dpsim.exercises.items import Drawn, Item, Series, fits
from dpsim.questions import Asked, as_choice

TOPICS = {
    "scatter": "Scatter and data",
}
AREAS = (scatter,)
MOST_TRIES = 200  # a draw that cannot be asked is drawn again; far fewer are needed


@cache
def items() -> dict[str, Item]:
    """Every item by its id, in the order of the topics."""
    return {item.id: item for area in AREAS for item in area.ITEMS}


def topics() -> dict[str, str]:
    """The topics in order: what items name them by, and their titles."""
    return dict(TOPICS)


def variant(item_id: str, seed: str, kind: str | None = None) -> Asked:
    """The question that belongs to an item and a seed; the seed also decides the kind, unless one is asked for.

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
