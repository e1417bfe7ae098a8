"""Keys as PEM text, and the law that no error quotes any of it."""

from __future__ import annotations

import re
from typing import Any

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from dpsim.checks import InputError


def pem(key: Any, form: PrivateFormat = PrivateFormat.PKCS8, password: bytes | None = None) -> str:
    hidden = BestAvailableEncryption(password) if password else NoEncryption()
    return str(key.private_bytes(Encoding.PEM, form, hidden).decode())


def public_pem(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def quotes_nothing(error: InputError, text: str) -> None:
    """No line of a key's text is in the error, nor in what it was raised from."""
    said = f"{error} {error.value!r} {error.__cause__!r}"
    assert error.__suppress_context__ or error.__context__ is None
    for line in re.findall(r"[A-Za-z0-9+/=]{16,}", text):
        assert line[:16] not in said
