"""Checks of input. An error names the field, the rule and the value, in one line."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST_DOTS = 40  # in a line of TOML, those of numbers aside
_POINT = re.compile(r"\d\.\d")
LARGEST = 1e100  # sums of squares of such numbers stay finite in float64


def shown(value: object) -> str:
    """`value` as one short line, safe to put into a message."""
    try:
        text = repr(value).replace("\n", " ")
    except (ValueError, RecursionError):  # an integer of over 4,300 digits, or deep nesting
        return "something too long to be written"
    return text if len(text) <= 60 else text[:57] + "..."


def key_shown(key: str) -> str:
    """`key` as a field's name in a message: as it is where it looks like one, else quoted and short."""
    return key if 0 < len(key) <= 60 and all(c.isalnum() or c in "_-." for c in key) else shown(key)


def name_shown(name: str) -> str:
    """A file's name as text that can be shown; its bytes that are no UTF-8 are written as \\xff."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class InputError(ValueError):
    """Input that breaks a rule: `field` says where, `rule` what holds there, `value` what came."""

    def __init__(self, field: str, rule: str, value: object) -> None:
        super().__init__(f"{field}: {rule}, got {shown(value)}")
        self.field = field
        self.rule = rule
        self.value = value


def whole(field: str, value: Any, low: int, high: int) -> int:
    """`value` as an int in [low, high]; 6.0 is whole, "6" and True are not numbers here."""
    rule = f"must be a whole number from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(field, rule, value)
    if isinstance(value, float) and not value.is_integer():  # also NaN and infinity
        raise InputError(field, rule, value)
    if not low <= value <= high:
        raise InputError(field, rule, value)
    return int(value)


def number(
    field: str,
    value: Any,
    low: float = -LARGEST,
    high: float = LARGEST,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """`value` as a finite float between `low` and `high`, the ends excluded where said."""
    rule = f"must be a finite number{_between(low, high, open_low, open_high)}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(field, rule, value)
    try:
        result = float(value)
    except OverflowError:
        raise InputError(field, rule, value) from None
    inside = low <= result <= high and not (open_low and result == low)
    if not math.isfinite(result) or not inside or (open_high and result == high):
        raise InputError(field, rule, value)
    return result


def _between(low: float, high: float, open_low: bool, open_high: bool) -> str:
    if (low, high) == (-LARGEST, LARGEST):
        return f" between {low:g} and {high:g}"
    parts = []
    if low > -LARGEST:
        parts.append(f"{'above' if open_low else 'of at least'} {low:g}")
    if high < LARGEST:
        parts.append(f"{'below' if open_high else 'of at most'} {high:g}")
    return " " + " and ".join(parts)


def choice(field: str, value: Any, options: Iterable[str]) -> str:
    """`value`, one of `options`."""
    names = list(options)
    if not isinstance(value, str) or value not in names:
        raise InputError(field, f"must be one of {', '.join(names)}", value)
    return value


def text(field: str, value: Any, longest: int) -> str:
    """`value` as one line of at most `longest` printable characters."""
    if not isinstance(value, str) or len(value) > longest or not (value.isprintable()):
        raise InputError(field, f"must be one line of at most {longest} characters", value)
    return value


def flag(field: str, value: Any) -> bool:
    """`value`, true or false."""
    if not isinstance(value, bool):
        raise InputError(field, "must be true or false", value)
    return value


def sequence(field: str, value: Any, longest: int, length: int | None = None) -> tuple[Any, ...]:
    """`value` as a tuple of 1 to `longest` entries, or of exactly `length`."""
    if not isinstance(value, (list, tuple)):
        raise InputError(field, "must be a list", value)
    if length is not None and len(value) != length:
        raise InputError(field, f"must have {length} entries", value)
    if not 1 <= len(value) <= longest:
        raise InputError(field, f"must have 1 to {longest} entries", value)
    return tuple(value)


def toml(field: str, text: str, first_line: int = 1) -> dict[str, Any]:
    """The table in TOML text that stands from `first_line` on in its file, so that messages name its lines.

    The parser takes the square of the parts of a dotted key in time, so lines of many dots are refused first.
    """
    for number, line in enumerate(text.split("\n"), first_line):
        if _POINT.sub("", line).count(".") > MOST_DOTS:
            rule = f"must have at most {MOST_DOTS} dots in a line (line {number})"
            raise InputError(field, rule, line.strip()[:40])
    try:
        return tomllib.loads("\n" * (first_line - 1) + text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of 5,000 digits
        raise InputError(field, f"must be TOML ({error})", text[:40]) from None


def read_text(field: str, path: str | Path, most: int) -> str:
    """The text of the file at `path`, of at most `most` bytes of UTF-8."""
    return decoded(field, read_bytes(field, path, most), most, _name(path))


def read_bytes(field: str, path: str | Path, most: int) -> bytes:
    """The file at `path`, of at most `most` bytes."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or "no such path"
        raise InputError(field, f"must be a file that can be read ({reason})", _name(path)) from None
    if len(data) > most:
        raise InputError(field, f"must have at most {most} bytes", _name(path))
    return data


def _name(path: str | Path) -> str:
    return Path(path).name or str(path)


def decoded(field: str, data: bytes, most: int, name: str) -> str:
    """`data`, at most `most` bytes, as UTF-8 text without a byte order mark; `name` says where it is from."""
    if len(data) > most:
        raise InputError(field, f"must have at most {most} bytes", name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(field, "must be UTF-8 text", name) from None
