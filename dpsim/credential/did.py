"""An issuer's identity on the web: `did:web`, and the document that publishes its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePublicKey,
    EllipticCurvePublicNumbers,
)

from dpsim.checks import InputError
from dpsim.credential.encoding import from_base64url, from_json
from dpsim.credential.keys import jwk, thumbprint

CONTEXTS = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"]
MOST_BYTES = 200_000


def did_web(base_url: str) -> str:
    """The identifier of whoever publishes at `base_url`, an address as `dpsim.base_url` leaves it: the port's
    colon is written %3A, and the path's slashes become colons."""
    authority, *path = base_url.partition("://")[2].split("/")
    return ":".join(["did:web", authority.replace(":", "%3A"), *path])


def document(did: str, keys: Sequence[EllipticCurvePublicKey]) -> dict[str, Any]:
    """The DID document that publishes `keys`, each under its thumbprint, all of them to verify with."""
    names = [thumbprint(key) for key in keys]
    methods = [
        {
            "id": f"{did}#{name}",
            "type": "JsonWebKey2020",
            "controller": did,
            "publicKeyJwk": jwk(key) | {"kid": name},
        }
        for name, key in zip(names, keys, strict=True)
    ]
    return {
        "@context": CONTEXTS,
        "id": did,
        "verificationMethod": methods,
        "assertionMethod": [method["id"] for method in methods],
    }


def read_document(field: str, data: bytes) -> dict[str, Any]:
    """A DID document from its JSON."""
    if len(data) > MOST_BYTES:
        raise InputError(field, f"must have at most {MOST_BYTES} bytes", f"{len(data)} bytes")
    found = from_json(field, data)
    if not isinstance(found.get("id"), str) or not isinstance(found.get("verificationMethod"), list):
        raise InputError(field, "must be a DID document, with id and verificationMethod", sorted(found)[:5])
    return found


def key_of(did_document: Mapping[str, Any], kid: str) -> EllipticCurvePublicKey:
    """The P-256 key that `kid` names in the document; InputError where it is not there, or not one that may
    sign certificates. The key comes from the document alone, whatever stands in a certificate."""
    listed, methods = did_document.get("assertionMethod"), did_document.get("verificationMethod")
    if not isinstance(listed, list) or not isinstance(methods, list) or kid not in listed:
        raise InputError("kid", "must be one of the issuer's keys", kid)
    found = [m for m in methods if isinstance(m, dict) and m.get("id") == kid]
    if len(found) != 1 or found[0].get("controller") != did_document.get("id"):
        raise InputError("kid", "must name one key that is the issuer's own", kid)
    given = found[0].get("publicKeyJwk")
    if not isinstance(given, dict) or (given.get("kty"), given.get("crv")) != ("EC", "P-256") or "d" in given:
        raise InputError("kid", "must name a public key on the curve P-256", kid)
    x, y = (_coordinate(given.get(name)) for name in ("x", "y"))
    try:
        return EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()
    except ValueError:
        raise InputError("kid", "must name a point on the curve P-256", kid) from None


def _coordinate(value: Any) -> int:
    data = from_base64url("publicKeyJwk", value) if isinstance(value, str) else b""
    if len(data) != 32:
        raise InputError("publicKeyJwk", "must have coordinates of 32 bytes", f"{len(data)} bytes")
    return int.from_bytes(data, "big")
