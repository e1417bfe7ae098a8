"""How certificates are written down: base64url, JSON and times, read so strictly that each has one form.

A reader that takes two spellings for one value lets a certificate be altered under its signature's eyes.
"""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from dpsim.checks import InputError

MOST_TOKEN = 65_536  # characters of a signed certificate or status list
DEEPEST = 12  # lists and objects in one another; a certificate has six
LAST_S = 253_402_300_799  # the year 9999
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def base64url(data: bytes) -> str:
    """`data` in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(field: str, text: str) -> bytes:
    """The bytes that `text` stands for; InputError unless it is just what `base64url` writes for them."""
    if _BASE64URL.fullmatch(text) and len(text) % 4 != 1:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if base64url(data) == text:
            return data
    raise InputError(field, "must be base64url without padding or spaces", f"{len(text)} characters")


def from_json(field: str, data: bytes) -> dict[str, Any]:
    """The JSON object in `data`: UTF-8, no key twice, finite numbers, at most 12 levels deep."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
        _check(value, DEEPEST)
    except (ValueError, RecursionError):  # ValueError: also bad UTF-8, and an integer of 5,000 digits
        rule = f"must be JSON with no key twice and at most {DEEPEST} levels"
        raise InputError(field, rule, f"{len(data)} bytes") from None  # no quoting: it may be a key's file
    if not isinstance(value, dict):
        raise InputError(field, "must be a JSON object", type(value).__name__)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _check(value: Any, levels: int) -> None:
    """ValueError where `value` is deeper than `levels`, or holds what not every reader can hold."""
    if isinstance(value, (dict, list)):
        if levels == 0:
            raise ValueError("too deep")
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            _check(part, levels - 1)
    elif isinstance(value, str):
        value.encode("utf-8")  # half a surrogate pair has no UTF-8; the error is a ValueError
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("no number")


def time(at: float) -> str:
    """`at`, in seconds since 1970, as ISO 8601 in UTC, to the whole second."""
    return datetime.fromtimestamp(math.floor(at), UTC).isoformat().replace("+00:00", "Z")


def from_time(field: str, value: Any) -> int:
    """The seconds since 1970 of a time that `time` wrote."""
    rule = "must be a time such as 2026-01-31T12:00:00Z"
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise InputError(field, rule, value)
    try:
        return int(datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:  # the 30th of February
        raise InputError(field, rule, value) from None
