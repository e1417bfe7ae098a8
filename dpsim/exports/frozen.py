"""Which variants of the bank an export takes, and what it leaves out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from dpsim.checks import InputError, whole
from dpsim.exercises import Item, items, variant
from dpsim.questions import Asked
from dpsim.wording import plural

MOST_VARIANTS = 50
MOST_SEED = 1_000_000
RING = "a ring to be composed by hand is no question of this format"
REPEATED = "they ask the same as variants of earlier seeds"


@dataclass(frozen=True)
class Frozen:
    """One variant of an item with its numbers in place. Item and seed name it, in every export alike."""

    item: Item
    seed: int
    asked: Asked

    @property
    def idnumber(self) -> str:
        """What a platform knows the question by."""
        return f"dpsim-{self.item.id}-{self.seed}"

    @property
    def name(self) -> str:
        """What a teacher sees in a list of questions."""
        return f"{self.item.id} seed {self.seed} ({self.item.title})"


@dataclass(frozen=True)
class LeftOut:
    """An item that is missing in an export, or so many of its variants, and why."""

    item: str
    topic: str
    variants: int
    why: str

    @property
    def said(self) -> str:
        """The same as a sentence without its full stop."""
        return f"{plural(self.variants, 'variant')} of {self.item} left out: {self.why}"


@dataclass(frozen=True)
class Choice:
    """What an export takes, in the order of the bank, and what it leaves out."""

    taken: tuple[Frozen, ...]
    left_out: tuple[LeftOut, ...]


def chosen(ids: Sequence[str], variants: int, seed: int) -> Choice:
    """`variants` variants, of the seeds from `seed` on, of each item named; of every item where none is.

    A question for a number is taken as one for a number. A variant that asks the same as an earlier one is
    left out. InputError for an item that does not exist and for numbers out of bounds.
    """
    variants = whole("--variants", variants, 1, MOST_VARIANTS)
    seed = whole("--seed", seed, 0, MOST_SEED)
    for name in ids:
        if name not in items():
            raise InputError("--items", "must be ids of exercises, such as x-R1", name)
    taken: list[Frozen] = []
    left_out: list[LeftOut] = []
    for item in (item for name, item in items().items() if not ids or name in ids):
        kind = item.kinds[0]
        if kind == "ring":
            left_out.append(LeftOut(item.id, item.topic, variants, RING))
            continue
        different: dict[Hashable, Frozen] = {}
        for n in range(seed, seed + variants):
            asked = variant(item.id, str(n), kind)
            different.setdefault(_content(asked), Frozen(item, n, asked))
        taken += different.values()
        if repeated := variants - len(different):
            left_out.append(LeftOut(item.id, item.topic, repeated, REPEATED))
    if not taken:
        raise InputError("--items", "must name an exercise that this format can express", " ".join(ids))
    return Choice(tuple(taken), tuple(left_out))


def _content(asked: Asked) -> Hashable:
    """What makes a variant another one: not the order of its options, which platforms shuffle."""
    return asked.question, frozenset(asked.options), asked.answer, asked.wrong
