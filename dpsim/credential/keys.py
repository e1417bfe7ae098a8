"""An operator's keys: one PEM file with the private key first, then the public halves of former keys.

Certificates are signed with the private key; former keys stay, so that what they signed still verifies.
No message here ever holds a key's text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from dpsim.checks import InputError, read_text
from dpsim.credential.encoding import base64url

MOST_KEYS = 100  # in one file, the former ones included
MOST_BYTES = 100_000
_BLOCK = re.compile(r"\s*-----BEGIN ([A-Z0-9 ]{1,40})-----[A-Za-z0-9+/=\s]*-----END \1-----\s*")


@dataclass(frozen=True)
class Keys:
    """The private key that signs, and the public halves of former keys, newest first."""

    private: EllipticCurvePrivateKey = field(repr=False)
    former: tuple[EllipticCurvePublicKey, ...] = field(default=(), repr=False)

    @property
    def public(self) -> tuple[EllipticCurvePublicKey, ...]:
        """All public keys, the one that signs now first."""
        return (self.private.public_key(), *self.former)

    @property
    def thumbprints(self) -> tuple[str, ...]:
        """Their names, in the same order."""
        return tuple(thumbprint(key) for key in self.public)


def jwk(key: EllipticCurvePublicKey) -> dict[str, str]:
    """A P-256 public key as a JSON Web Key."""
    numbers = key.public_numbers()
    x, y = (base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def thumbprint(key: EllipticCurvePublicKey) -> str:
    """The key's name by RFC 7638: SHA-256 of its JWK, whose members are in alphabetical order."""
    text = json.dumps(jwk(key), sort_keys=True, separators=(",", ":"))
    return base64url(hashlib.sha256(text.encode("ascii")).digest())


def read(pem: str, where: str = "key") -> Keys:
    """The keys in PEM text: a private key in PKCS #8 without a password, then public keys, all on P-256.
    InputError names `where`, and never quotes the text."""
    blocks, at = [], 0
    while at < len(pem):
        block = _BLOCK.match(pem, at)
        if block is None:
            raise InputError(where, "must be PEM blocks and nothing else", f"{len(pem)} characters")
        blocks.append((block[1], block[0].strip().encode("ascii")))
        at = block.end()
    labels = [label for label, _ in blocks]
    if not labels or labels != ["PRIVATE KEY", *["PUBLIC KEY"] * (len(labels) - 1)]:
        rule = "must be one PRIVATE KEY (PKCS #8, no password), then PUBLIC KEY blocks"
        raise InputError(where, rule, ", ".join(labels[:3]) or "no block")
    if len(blocks) > MOST_KEYS:
        raise InputError(where, f"must hold at most {MOST_KEYS} keys", len(blocks))
    try:
        private = load_pem_private_key(blocks[0][1], None)
        former = [load_pem_public_key(data) for _, data in blocks[1:]]
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(where, "must be keys that can be read", "broken PEM") from None
    if not isinstance(private, EllipticCurvePrivateKey) or not isinstance(private.curve, SECP256R1):
        raise InputError(where, "must be a key on the curve P-256", "another kind of private key")
    keys = Keys(private, tuple(_on_p256(where, key) for key in former))
    if len(set(keys.thumbprints)) != len(keys.thumbprints):
        raise InputError(where, "must hold every key once", "the same key twice")
    return keys


def _on_p256(where: str, key: object) -> EllipticCurvePublicKey:
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise InputError(where, "must be a key on the curve P-256", "another kind of public key")
    return key


def load(path: str | Path, where: str = "FILE") -> Keys:
    """The keys in the file at `path`."""
    return read(read_text(where, path, MOST_BYTES), where)


def new(path: str | Path) -> Keys:
    """A new key in a new file that its owner alone can read; InputError where there is a file already."""
    keys = Keys(generate_private_key(SECP256R1()))
    _write(Path(path), keys, "must not be there yet, since a key is never overwritten")
    return keys


def rotate(path: str | Path) -> Keys:
    """A new key in the same file at once, with the former keys behind it. Two rotations never mix: the second
    finds the first one's unfinished file and is refused."""
    before, place = load(path), Path(path).resolve()
    keys = Keys(generate_private_key(SECP256R1()), before.public)
    if len(keys.public) > MOST_KEYS:
        raise InputError("FILE", f"must hold at most {MOST_KEYS} keys", place.name)
    unfinished = place.with_name(f"{place.name}.new")
    _write(unfinished, keys, "must not be there: another rotation is under way, or was broken off")
    try:
        unfinished.replace(place)
    except OSError as error:
        unfinished.unlink()
        raise InputError(
            "FILE", f"must be a file that can be replaced ({error.strerror})", place.name
        ) from None
    return keys


def _write(path: Path, keys: Keys, rule: str) -> None:
    """The keys as a file of mode 0600 that was not there before; `rule` is what is said where it was."""
    private = keys.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = [key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in keys.former]
    try:
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError("FILE", rule, path.name) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or "no such path"
        raise InputError("FILE", f"must be a place one can write to ({reason})", str(path)) from None
    try:
        with os.fdopen(place, "wb") as file:
            file.write(private + b"".join(public))
            file.flush()
            os.fsync(place)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise InputError("FILE", f"must be written ({error.strerror})", path.name) from None
