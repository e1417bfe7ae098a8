"""An operator with keys of its own, a certificate of it, and forging by hand: with cryptography alone."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from dpsim.base_url import address
from dpsim.credential.credential import Award, credential, sign
from dpsim.credential.keys import Keys
from dpsim.credential.operator import Operator
from dpsim.credential.verify import NAMES, Verification, verify

Change = Callable[[dict[str, Any]], object]

ID = UUID("3f2c8a10-9d57-4e0b-8b1e-0c6a5d4e3f21")
PASSED, ISSUED, NOW = 1_700_000_000.5, 1_700_000_100.25, 1_700_000_200.0  # November 2023
INDEX = 94_567


@cache
def private(name: str) -> ec.EllipticCurvePrivateKey:
    """A P-256 key that is always the same; another name is another key."""
    return ec.derive_private_key(int.from_bytes(sha256(name.encode()).digest()) >> 1, ec.SECP256R1())


def operator(
    key: str = "now", former: tuple[str, ...] = (), url: str = "https://learn.example.org"
) -> Operator:
    keys = Keys(private(key), tuple(private(name).public_key() for name in former))
    return Operator(keys, address(url), "A school")


def certificate(by: Operator | None = None, name: str = "Ada Lovelace", right: int = 23) -> dict[str, Any]:
    return credential(by or operator(), Award(right, 25, PASSED), name, ID, INDEX, ISSUED)


def token(by: Operator | None = None, **of: Any) -> str:
    by = by or operator()
    return sign(by, certificate(by, **of))


def verified(text: str, status_list: str | None = None, by: Operator | None = None) -> Verification:
    return verify(text, (by or operator()).did_document(), status_list, NOW)


def outcomes(found: Verification) -> dict[str, str]:
    return {check.name: check.outcome for check in found.checks}


def said(found: Verification, name: str) -> str:
    (one,) = (check.said for check in found.checks if check.name == name)
    return one


def part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def written(value: Any) -> str:
    return part(json.dumps(value, separators=(",", ":")).encode())


def opened(text: str, which: int) -> Any:
    """Header (0) or payload (1) of a token, read without any check."""
    return json.loads(base64.urlsafe_b64decode(text.split(".")[which] + "=="))


def raw(key: ec.EllipticCurvePrivateKey, message: bytes) -> bytes:
    """An ES256 signature by RFC 7518: r and s, 32 bytes each."""
    r, s = decode_dss_signature(key.sign(message, ec.ECDSA(SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def forged(header: str, payload: str, key: ec.EllipticCurvePrivateKey | None = None) -> str:
    """A token of any two parts, signed with the operator's own key: whatever is wrong with it, not the
    signature."""
    signature = raw(key or private("now"), f"{header}.{payload}".encode())
    return f"{header}.{payload}.{part(signature)}"


def with_header(changed: Mapping[str, Any], drop: tuple[str, ...] = ()) -> str:
    """The certificate under another header, signed anew with the operator's key."""
    text = token()
    header = {key: value for key, value in (opened(text, 0) | changed).items() if key not in drop}
    return forged(written(header), text.split(".")[1])


def with_payload(change: Change) -> str:
    """The certificate with a changed payload, signed anew with the operator's key."""
    text = token()
    payload = copy.deepcopy(opened(text, 1))
    change(payload)
    return forged(text.split(".")[0], written(payload))


def altered(change: Change) -> str:
    """The certificate with a changed payload under its old signature."""
    header, _, signature = token().split(".")
    return f"{header}.{with_payload(change).split('.')[1]}.{signature}"


def subject(payload: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = payload["credentialSubject"]
    return found


def refused(text: str, check: str = "signature") -> str:
    """`text` is not valid because of `check`, and nothing of what it says is handed on; what was said."""
    found = verified(text)
    assert found.outcome == "not valid"
    assert outcomes(found)[check] == "failed"
    if check == "signature":
        assert (found.credential, found.facts) == (None, None)
    assert tuple(outcomes(found)) == NAMES
    return said(found, check)
