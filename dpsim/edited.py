"""A collective as it is written: its algorithm and, behind a comma, one thing that is done wrong in it.

``ring``: as it should be. ``ring, without 5``: row 5 of its schedule is never sent. ``ring, twice 5``: row 5
arrives twice. ``ring, not awaited``: nobody waits for it before the optimizer step.

Rows are those of the algorithm on so many ranks, counted from 0, whatever the length of the vector: a row
whose chunk has no elements in some bucket is not sent there anyway. The same edit holds for the all-reduce of
every bucket; the count of valid tokens is never edited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsim.checks import InputError
from dpsim.parts import COLLECTIVES

WITHOUT, TWICE, NOT_AWAITED = "without", "twice", "not awaited"
RULE = (
    f"must be one of {', '.join(COLLECTIVES)}, alone or followed by “, {WITHOUT} ROW”, “, {TWICE} ROW” or "
    f"“, {NOT_AWAITED}”"
)
_FORM = re.compile(rf"([a-z-]+)(?:, (?:({WITHOUT}|{TWICE}) (0|[1-9][0-9]{{0,8}})|({NOT_AWAITED})))?")


@dataclass(frozen=True)
class Collective:
    """The algorithm, and what is done wrong: `edit` is "" where nothing is, `row` -1 where none is named."""

    algorithm: str
    edit: str = ""
    row: int = -1

    def __str__(self) -> str:
        edit = f"{self.edit} {self.row}" if self.row >= 0 else self.edit
        return f"{self.algorithm}, {edit}" if edit else self.algorithm

    @property
    def awaited(self) -> bool:
        """Whether the optimizer waits for the sum."""
        return self.edit != NOT_AWAITED

    @property
    def moves_otherwise(self) -> bool:
        """Whether other transfers happen than the algorithm's."""
        return self.row >= 0


def parsed(written: object) -> Collective:
    """The collective in a text; InputError where it is none."""
    found = _FORM.fullmatch(written) if isinstance(written, str) else None
    if found is None or found[1] not in COLLECTIVES:
        raise InputError("collective", RULE, written)
    algorithm, edit, row, unawaited = found.groups()
    return Collective(algorithm, edit or unawaited or "", int(row) if row else -1)


def rows_of(algorithm: str, world_size: int) -> int:
    """How many rows the schedule of `algorithm` has on so many ranks, where no chunk is empty."""
    if algorithm == "ring":
        return 2 * world_size * (world_size - 1)
    if algorithm == "halving-doubling":
        power = 1 << (world_size.bit_length() - 1)
        return 2 * power * (power - 1) + 2 * power * (world_size - power)
    return 2 * (world_size - 1)


def checked(written: object, world_size: int) -> Collective:
    """The collective in a text, if what is done wrong in it can be on so many ranks."""
    found = parsed(written)
    if found.edit and world_size == 1:
        rule = "must be an algorithm alone on one rank, which sends nothing and has nobody to wait for"
        raise InputError("collective", rule, written)
    rows = rows_of(found.algorithm, world_size)
    if found.row >= rows:
        rule = f"must name a row from 0 to {rows - 1}: {found.algorithm} on {world_size} ranks has no other"
        raise InputError("collective", rule, written)
    return found


def fitted(written: str, world_size: int) -> str:
    """The same collective on so many ranks; the algorithm alone where its edit does not fit them."""
    try:
        return str(checked(written, world_size))
    except InputError:
        return parsed(written).algorithm
