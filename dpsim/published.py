"""Figures from outside, each with the source it is from: what others measured, counted or defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from dpsim.checks import InputError, number, sequence, text, toml
from dpsim.wording import duration, listed
from dpsim.wording import number as plain
from dpsim.wording import size as in_bytes

MOST_VALUES = 40
MOST_ENTRIES = 400
LONGEST = 300
_KEYS = ("value", "unit", "says", "source")
_LARGE = ((1e9, "billion"), (1e6, "million"))


@dataclass(frozen=True)
class Published:
    """One figure, or several that belong together, as they were published; `unit` may be nothing."""

    name: str
    values: tuple[float, ...]
    unit: str
    says: str
    source: str

    @property
    def value(self) -> float:
        """The figure, where it is one; InputError where there are several."""
        if len(self.values) > 1:
            raise InputError(f"published.{self.name}", "must be one number", list(self.values))
        return self.values[0]

    def written(self, value: float) -> str:
        """One of the values with its unit."""
        if self.unit in _SCALED:
            return _SCALED[self.unit](value)
        return f"{count(value)} {self.unit}".rstrip()


_SCALED: Mapping[str, Callable[[float], str]] = {
    "s": duration,
    "B": in_bytes,
    "B/s": lambda value: f"{in_bytes(value)}/s",
}


def count(value: float) -> str:
    """A number with what makes a long one readable: 25,557,032 as it is, 7.5e9 as 7.5 billion."""
    for scale, name in _LARGE:
        short = value / scale
        if short >= 1 and short == float(f"{short:.3g}"):
            return f"{short:.3g} {name}"
    return f"{value:,.0f}" if value == int(value) and abs(value) >= 10_000 else plain(value)


@cache
def published() -> Mapping[str, Published]:
    """Every figure that is shipped, by name, in the order of the file."""
    return read((resources.files("dpsim") / "content" / "published.toml").read_text("utf-8"))


def read(written: str) -> dict[str, Published]:
    """The figures of such a file; InputError names the entry, the rule and the value."""
    entries = toml("published.toml", written)
    if len(entries) > MOST_ENTRIES:
        raise InputError("published.toml", f"must have at most {MOST_ENTRIES} entries", len(entries))
    return {name: _entry(name, entry) for name, entry in entries.items()}


def _entry(name: str, entry: Any) -> Published:
    where = f"published.{name}"
    if not name.isidentifier() or not name.isascii() or name != name.lower():
        raise InputError(where, "must be named in small letters, digits and underscores", name)
    if not isinstance(entry, dict) or set(entry) != set(_KEYS):
        raise InputError(where, f"must be a table of {listed(_KEYS)}", entry)
    value, says, source = entry["value"], entry["says"], entry["source"]
    many = sequence(f"{where}.value", value, MOST_VALUES) if isinstance(value, list) else (value,)
    for key in ("says", "source"):
        if not str(entry[key]).strip():
            raise InputError(f"{where}.{key}", "must say something", entry[key])
    return Published(
        name,
        tuple(number(f"{where}.value", one) for one in many),
        text(f"{where}.unit", entry["unit"], 20),
        text(f"{where}.says", says, LONGEST),
        text(f"{where}.source", source, LONGEST),
    )
