"""What a family of figures is: what it says, its keys, where it comes from, how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsim.wording import duration, number, size


@dataclass(frozen=True)
class Family:
    """Figures of one kind: what they say, their keys (rank, scheme, way, micro, count, stage, published),
    their source, how written. The source gives a number, a list, text, a published figure, or None if
    undefined.
    """

    says: str
    keys: tuple[str, ...]
    of: Callable[..., Any]
    written: Callable[[float], str] = number


def percent(value: float) -> str:
    """A value in percent, with three digits."""
    return f"{number(float(f'{value:.3g}'))} %"


def gigabytes(value: float) -> str:
    """A value in GB, with three digits."""
    return f"{number(float(f'{value:.3g}'))} GB"


UNITS = {duration: "s", size: "B", percent: "%", gigabytes: "GB"}
