"""The key that a learner's answers are kept under, and the recovery code that a person can write down.

A key is 128 random bits as 32 hexadecimal digits. Who has it has the answers; only its hash is stored. The
code is the key in Crockford's base 32, with two signs more that give a typing mistake away.
"""

from __future__ import annotations

import hashlib
import re

from dpsim.checks import InputError

SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O and U
KEY_SIGNS, CHECK_SIGNS, GROUP = 26, 2, 4
PRIME = 1021  # the largest in two signs: one wrong sign, or two neighbours swapped, never go unseen
_KEY = re.compile(r"[0-9a-f]{32}")
_READ_AS = str.maketrans("OIL", "011")
_BETWEEN = re.compile(r"[\s\-‐-―−_.,]")


def is_key(key: object) -> bool:
    """Whether this is a key."""
    return isinstance(key, str) and _KEY.fullmatch(key) is not None


def learner_id(key: str) -> str:
    """What stands for a learner in the database: the SHA-256 of the key, from which the key cannot be had."""
    return hashlib.sha256(key.encode("ascii")).hexdigest()


def known_as(learner: str) -> str:
    """What a learner is called in a teacher's table: the beginning of what stands in the database."""
    return learner[:12]


def recovery_code(key: str) -> str:
    """The key as seven groups of four signs."""
    number = int(key, 16)
    signs = _written(number, KEY_SIGNS) + _written(number % PRIME, CHECK_SIGNS)
    return "-".join(signs[i : i + GROUP] for i in range(0, len(signs), GROUP))


def key_of(code: str) -> str:
    """The key of a recovery code, however it was typed: small letters, any spaces and hyphens, O for 0, I or
    l for 1. InputError where it is none; its message does not repeat the code."""
    signs = _BETWEEN.sub("", code[:200]).upper().translate(_READ_AS)
    field, count = "recovery code", KEY_SIGNS + CHECK_SIGNS
    if len(signs) != count:
        raise InputError(field, f"must have {count} letters and digits", len(signs))
    values = [SIGNS.find(sign) for sign in signs]
    if -1 in values:
        at = values.index(-1)
        raise InputError(field, "must be of letters but U, and digits", signs[at])
    number = _read(values[:KEY_SIGNS])
    if number >= 2**128 or number % PRIME != _read(values[KEY_SIGNS:]):
        raise InputError(field, "must be typed as it was shown; some sign differs", f"{count} signs")
    return f"{number:032x}"


def _written(number: int, count: int) -> str:
    return "".join(SIGNS[number >> 5 * place & 31] for place in reversed(range(count)))


def _read(values: list[int]) -> int:
    number = 0
    for value in values:
        number = number << 5 | value
    return number
