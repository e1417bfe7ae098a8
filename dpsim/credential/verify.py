"""Verifying a certificate: five checks, each of which says what was found or why it could not be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dpsim.checks import InputError, number
from dpsim.credential.content import Facts, facts
from dpsim.credential.did import key_of
from dpsim.credential.encoding import LAST_S, time
from dpsim.credential.jws import Token, check_claims, read
from dpsim.credential.status import read_list

NAMES = ("signature", "issuer key", "content", "dates", "revocation")
SKEW_S = 300  # by which two clocks may differ
Found = Literal["passed", "failed", "not checked"]


@dataclass(frozen=True)
class Check:
    """One of `NAMES`, what came of it, and a sentence that says so."""

    name: str
    outcome: Found
    said: str


@dataclass(frozen=True)
class Verification:
    """The checks in the order of `NAMES`; the name of the key, "" where the token could not be read; what the
    certificate says, None unless its signature holds; and that as facts, None where a member is wrong."""

    checks: tuple[Check, ...]
    kid: str
    credential: dict[str, Any] | None
    facts: Facts | None

    @property
    def outcome(self) -> Literal["valid", "not valid", "not verified"]:
        """Not valid where any check failed; not verified where none did, but the signature or the issuer's
        key could not be checked. Valid says nothing of a check that was not made."""
        found = {check.name: check.outcome for check in self.checks}
        if "failed" in found.values():
            return "not valid"
        return "valid" if found["signature"] == found["issuer key"] == "passed" else "not verified"


def verify(
    text: str, did_document: Mapping[str, Any] | None, status_list: str | None, now: float
) -> Verification:
    """What can be said at `now` of the token in `text`, by the issuer's DID document and status list as far
    as they are given. Whatever `text` holds, this never raises: a broken token is one that failed."""
    number("now", now, 0, LAST_S)
    try:
        token = read(text)
    except InputError as error:
        unread = "The certificate could not be read."
        rest = [Check(name, "not checked", unread) for name in NAMES[1:]]
        return Verification((Check("signature", "failed", _sentence(error)), *rest), "", None, None)
    signature, key = _signature(token, did_document)
    if signature.outcome == "failed":
        altered = "What the certificate says cannot be trusted."
        rest = [Check(name, "not checked", altered) for name in NAMES[2:]]
        return Verification((signature, key, *rest), token.kid, None, None)
    content, found = _content(token)
    checks = (
        signature,
        key,
        content,
        _dates(found, now),
        _revocation(found, key, did_document, status_list, now),
    )
    holds = signature.outcome == "passed"
    return Verification(checks, token.kid, token.payload if holds else None, found if holds else None)


def _signature(token: Token, did_document: Mapping[str, Any] | None) -> tuple[Check, Check]:
    """The checks of the signature and of the issuer's key, which need each other."""
    unkeyed = Check("signature", "not checked", "It takes the issuer's key.")
    if did_document is None:
        return unkeyed, Check("issuer key", "not checked", "The issuer's keys were not given.")
    if token.did != did_document.get("id"):
        said = f"The key is to be one of {token.did}; the keys that were given are another issuer's."
        return unkeyed, Check("issuer key", "not checked", said)
    try:
        key = key_of(did_document, token.kid)
    except InputError as error:
        return unkeyed, Check("issuer key", "failed", _sentence(error))
    published = Check("issuer key", "passed", f"It is among the keys given for {token.did}.")
    if token.holds(key):
        return Check("signature", "passed", "The key has signed exactly this text, by ES256."), published
    said = "The signature does not fit: the text was altered, or another key has signed it."
    return Check("signature", "failed", said), published


def _content(token: Token) -> tuple[Check, Facts | None]:
    try:
        found = facts(token.payload)
        check_claims(token)
    except InputError as error:
        return Check("content", "failed", _sentence(error)), None
    said = "It is an Open Badges 3.0 credential, and its claims agree with it."
    return Check("content", "passed", said), found


def _dates(found: Facts | None, now: float) -> Check:
    if found is None:
        return Check("dates", "not checked", "The content is not as it has to be.")
    if found.issued > now + SKEW_S:
        return Check("dates", "failed", f"It is dated {time(found.issued)}, which is still to come.")
    if found.until is not None and found.until <= now:
        return Check("dates", "failed", f"It was valid until {time(found.until)}.")
    return Check("dates", "passed", f"It is valid from {time(found.issued)}{_end(found.until)}.")


def _end(until: int | None) -> str:
    return " without end" if until is None else f" until {time(until)}"


def _revocation(
    found: Facts | None,
    key: Check,
    did_document: Mapping[str, Any] | None,
    status_list: str | None,
    now: float,
) -> Check:
    def unchecked(why: str) -> Check:
        return Check("revocation", "not checked", why)

    if found is None:
        return unchecked("The content is not as it has to be.")
    if did_document is None or key.outcome != "passed":
        return unchecked("A status list is trusted by the issuer's key alone.")
    if status_list is None:
        return unchecked(f"No status list was given; it is at {found.status_list}.")
    try:
        listed = read_list(status_list, did_document, found.status_list)
    except InputError as error:
        return unchecked(f"The status list that was given is not to be trusted. {_sentence(error)}")
    try:
        revoked = listed.is_revoked(found.index)
    except InputError as error:
        return Check("revocation", "failed", _sentence(error))
    if revoked:
        return Check(
            "revocation", "failed", f"The issuer has revoked it, says the list of {time(listed.issued)}."
        )
    if not listed.issued - SKEW_S <= now < listed.until:
        why = f"The status list holds from {time(listed.issued)} to {time(listed.until)}, not now."
        return unchecked(why)
    return Check("revocation", "passed", f"It is not revoked, says the list of {time(listed.issued)}.")


def _sentence(error: InputError) -> str:
    """What was broken, without what came: that is somebody else's text."""
    return f"{error.field} {error.rule}."
