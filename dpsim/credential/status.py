"""Which certificates are revoked: a W3C Bitstring Status List, a bit for each, signed like a certificate."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpsim.checks import InputError, number, whole
from dpsim.credential.credential import CONTEXTS, ENTRIES
from dpsim.credential.did import key_of
from dpsim.credential.encoding import LAST_S, base64url, from_base64url, from_time, time
from dpsim.credential.jws import check_claims, read, signed
from dpsim.credential.operator import Operator

DAYS = 30  # that a list may be taken for current: who keeps an old one cannot pass it off for ever
TYPES = ["VerifiableCredential", "BitstringStatusListCredential"]
_BYTES = ENTRIES // 8
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True)
class StatusList:
    """A status list that its issuer has signed; times in seconds since 1970."""

    bits: bytes
    issued: int
    until: int

    def is_revoked(self, index: int) -> bool:
        """Whether entry `index` is set, the first one being the leftmost bit of the first byte."""
        if not 0 <= index < ENTRIES:
            raise InputError("statusListIndex", f"must be from 0 to {ENTRIES - 1}", index)
        return bool(self.bits[index // 8] & (0x80 >> index % 8))


def status_list(operator: Operator, revoked: Iterable[int], at: float) -> str:
    """The operator's status list with the entries `revoked` set, issued at `at`, as a signed token."""
    number("at", at, 0, LAST_S - DAYS * 86_400)
    bits = bytearray(_BYTES)
    for index in revoked:
        whole("index", index, 0, ENTRIES - 1)
        bits[index // 8] |= 0x80 >> index % 8
    url = operator.links.status
    credential = {
        "@context": CONTEXTS[:1],
        "id": url,
        "type": TYPES,
        "issuer": operator.did,
        "validFrom": time(at),
        "validUntil": time(at + DAYS * 86_400),
        "credentialSubject": {
            "id": f"{url}#list",
            "type": "BitstringStatusList",
            "statusPurpose": "revocation",
            "encodedList": "u" + base64url(gzip.compress(bytes(bits), mtime=0)),
        },
    }
    return signed(operator, credential)


def read_list(text: str, did_document: Mapping[str, Any], url: str) -> StatusList:
    """The status list in `text`; InputError unless it is the one at `url`, for revocation, signed with a key
    of the document, and of just the size that lists here have. Its dates are for the caller to judge."""
    token = read(text)
    found, subject = token.payload, token.payload.get("credentialSubject")
    if found.get("type") != TYPES or found.get("@context") != CONTEXTS[:1] or not isinstance(subject, dict):
        raise InputError("status list", "must be a BitstringStatusListCredential", found.get("type"))
    if subject.get("type") != "BitstringStatusList" or subject.get("statusPurpose") != "revocation":
        raise InputError("status list", "must be for revocation", subject.get("statusPurpose"))
    if found.get("id") != url or subject.get("id") != f"{url}#list":
        raise InputError("status list", "must be the one that the certificate names", found.get("id"))
    if found.get("issuer") != did_document.get("id"):
        raise InputError("status list", "must be by the issuer of the certificate", found.get("issuer"))
    issued, until = (from_time(name, found.get(name)) for name in ("validFrom", "validUntil"))
    check_claims(token)
    if not token.holds(key_of(did_document, token.kid)):
        raise InputError("status list", "must be signed with the issuer's key", "another signature")
    return StatusList(_expanded(subject.get("encodedList")), issued, until)


def _expanded(encoded: Any) -> bytes:
    """The bits of an encodedList. Never more is decompressed than a list has."""
    rule = f"must be {ENTRIES} bits, compressed with GZIP, in base64url with a u in front"
    try:
        if not isinstance(encoded, str) or encoded[:1] != "u":
            raise ValueError("no multibase")
        reader = zlib.decompressobj(_GZIP)
        bits = reader.decompress(from_base64url("encodedList", encoded[1:]), _BYTES + 1)
    except (ValueError, zlib.error):  # an InputError is a ValueError
        raise InputError("encodedList", rule, "something else") from None
    if len(bits) != _BYTES or not reader.eof or reader.unused_data:
        raise InputError("encodedList", rule, "another size")
    return bits
