"""Signed tokens: JSON Web Tokens in the compact form, by ES256 and nothing else.

The header is for finding the issuer's key, never for saying how to check: one algorithm, three keys, no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from dpsim.checks import InputError
from dpsim.credential.encoding import MOST_TOKEN, from_base64url, from_json, from_time
from dpsim.credential.operator import Operator

ALGORITHM = "ES256"
LONGEST_KID = 400


@dataclass(frozen=True)
class Token:
    """A token that has the right form. Nothing in it is known to be true before `holds` says so."""

    text: str
    kid: str
    payload: dict[str, Any]

    @property
    def did(self) -> str:
        """The issuer that the key's name belongs to."""
        return self.kid.partition("#")[0]

    def holds(self, key: EllipticCurvePublicKey) -> bool:
        """Whether `key` has signed exactly this text."""
        try:
            jwt.PyJWS().decode(self.text, key, algorithms=[ALGORITHM])
        except jwt.InvalidTokenError:
            return False
        return True


def signed(operator: Operator, credential: Mapping[str, Any]) -> str:
    """The credential, signed with the operator's key, its claims beside its own members."""
    kid = f"{operator.did}#{operator.keys.thumbprints[0]}"
    payload = {**credential, **claims(credential)}
    return jwt.encode(payload, operator.keys.private, ALGORITHM, {"kid": kid, "typ": "JWT"})


def read(text: str) -> Token:
    """The token in `text`; InputError where it has not exactly the form that `signed` gives."""
    if len(text) > MOST_TOKEN:
        raise InputError("token", f"must have at most {MOST_TOKEN} characters", len(text))
    parts = text.split(".")
    if len(parts) != 3:
        raise InputError("token", "must have three parts with a dot between them", f"{len(parts)} parts")
    header = from_json("header", from_base64url("header", parts[0]))
    if set(header) != {"alg", "kid", "typ"}:
        raise InputError("header", "must hold alg, kid and typ, and nothing else", sorted(header)[:5])
    if header["alg"] != ALGORITHM:
        raise InputError("header.alg", f"must be {ALGORITHM}", header["alg"])
    if header["typ"] != "JWT":
        raise InputError("header.typ", "must be JWT", header["typ"])
    kid = header["kid"]
    good = isinstance(kid, str) and len(kid) <= LONGEST_KID and kid.isascii() and kid.isprintable()
    if not good or not kid.startswith("did:") or kid.count("#") != 1:
        raise InputError("header.kid", "must be the address of a key, did:…#…", kid)
    payload = from_json("payload", from_base64url("payload", parts[1]))
    if len(from_base64url("signature", parts[2])) != 64:
        raise InputError("signature", "must have 64 bytes", f"{len(parts[2])} characters")
    return Token(text, kid, payload)


def claims(credential: Mapping[str, Any]) -> dict[str, Any]:
    """The registered claims of a token, each of which repeats a member of the credential."""
    issuer = credential["issuer"]
    return {
        "iss": issuer["id"] if isinstance(issuer, dict) else issuer,
        "sub": credential["credentialSubject"]["id"],
        "jti": credential["id"],
        "nbf": from_time("validFrom", credential["validFrom"]),
    } | ({"exp": from_time("validUntil", credential["validUntil"])} if "validUntil" in credential else {})


def check_claims(token: Token) -> None:
    """InputError unless every claim equals its counterpart, and the key's name is the issuer's. The members
    that have a counterpart must have been checked before."""
    wanted = claims(token.payload)
    for name, counterpart in (
        ("iss", "issuer"),
        ("sub", "credentialSubject.id"),
        ("jti", "id"),
        ("nbf", "validFrom"),
        ("exp", "validUntil"),
    ):
        given = token.payload.get(name)
        if given != wanted.get(name) or isinstance(given, (bool, float)):
            raise InputError(name, f"must equal {counterpart}", given)
    if token.did != wanted["iss"]:
        raise InputError("header.kid", "must name a key of the issuer", token.kid)
