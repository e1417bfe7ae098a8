"""What a certificate has to say: its members one by one, and what they come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dpsim.checks import InputError
from dpsim.credential.credential import CONTEXTS, TYPES
from dpsim.credential.encoding import from_time

LONGEST = 4000
_WHOLE = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)


@dataclass(frozen=True)
class Facts:
    """What a certificate says: `name` is "" where it names nobody; times are seconds since 1970; `until` is
    None where it does not end. `status_list` and `index` say where its revocation would stand."""

    id: UUID
    title: str
    name: str
    right: int
    of: int
    required: int
    issuer: str
    issuer_did: str
    issuer_url: str
    awarded: int
    issued: int
    until: int | None
    status_list: str
    index: int


def facts(credential: Mapping[str, Any]) -> Facts:
    """The facts of a credential, claims and dates aside; InputError at the first member that is not as it
    has to be. Members that are not known are passed over: the signature covers them too."""
    _same("@context", credential.get("@context"), CONTEXTS)
    _same("type", credential.get("type"), TYPES)
    issuer = _object("issuer", credential.get("issuer"))
    _same("issuer.type", issuer.get("type"), ["Profile"])
    subject = _object("credentialSubject", credential.get("credentialSubject"))
    _same("credentialSubject.type", subject.get("type"), ["AchievementSubject"])
    _uuid("credentialSubject.id", subject.get("id"))
    right, of, required = _score(subject)
    status = _object("credentialStatus", credential.get("credentialStatus"))
    _same("credentialStatus.type", status.get("type"), "BitstringStatusListEntry")
    _same("credentialStatus.statusPurpose", status.get("statusPurpose"), "revocation")
    return Facts(
        id=_uuid("id", credential.get("id")),
        title=_text("name", credential.get("name")),
        name=_name(subject.get("identifier")),
        right=right,
        of=of,
        required=required,
        issuer=_text("issuer.name", issuer.get("name")),
        issuer_did=_text("issuer.id", issuer.get("id")),
        issuer_url=_text("issuer.url", issuer.get("url")),
        awarded=from_time("awardedDate", credential.get("awardedDate")),
        issued=from_time("validFrom", credential.get("validFrom")),
        until=from_time("validUntil", credential["validUntil"]) if "validUntil" in credential else None,
        status_list=_text("statusListCredential", status.get("statusListCredential")),
        index=_whole("statusListIndex", status.get("statusListIndex")),
    )


def _score(subject: Mapping[str, Any]) -> tuple[int, int, int]:
    """Questions right, of how many, and how many were required."""
    achievement = _object("achievement", subject.get("achievement"))
    _same("achievement.type", achievement.get("type"), ["Achievement"])
    for name in ("id", "name", "description", "achievementType"):
        _text(f"achievement.{name}", achievement.get(name))
    criteria = _object("achievement.criteria", achievement.get("criteria"))
    _text("achievement.criteria.narrative", criteria.get("narrative"))
    described = _object(
        "resultDescription", _single("resultDescription", achievement.get("resultDescription"))
    )
    _same("resultDescription.type", described.get("type"), ["ResultDescription"])
    _same("resultDescription.resultType", described.get("resultType"), "RawScore")
    _same("resultDescription.valueMin", described.get("valueMin"), "0")
    _text("resultDescription.name", described.get("name"))
    of = _whole("resultDescription.valueMax", described.get("valueMax"))
    required = _whole("resultDescription.requiredValue", described.get("requiredValue"))
    result = _object("result", _single("result", subject.get("result")))
    _same("result.type", result.get("type"), ["Result"])
    id = _text("resultDescription.id", described.get("id"))
    _same("result.resultDescription", result.get("resultDescription"), id)
    right = _whole("result.value", result.get("value"))
    if not required <= right <= of:
        raise InputError("result.value", f"must be from {required} to {of}", right)
    return right, of, required


def _name(identifier: Any) -> str:
    """The name in the subject's identifier, "" where there is none."""
    if identifier is None:
        return ""
    identity = _object("identifier", _single("identifier", identifier))
    _same("identifier.type", identity.get("type"), "IdentityObject")
    _same("identifier.identityType", identity.get("identityType"), "name")
    _same("identifier.hashed", identity.get("hashed"), False)
    return _text("identifier.identityHash", identity.get("identityHash"))


def _same(field: str, value: Any, wanted: object) -> None:
    if type(value) is not type(wanted) or value != wanted:
        raise InputError(field, f"must be {wanted}", value)


def _typed(kind: type, rule: str) -> Callable[[str, Any], Any]:
    def checked(field: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise InputError(field, rule, value)
        return value

    return checked


_object: Callable[[str, Any], dict[str, Any]] = _typed(dict, "must be an object")


def _single(field: str, value: Any) -> Any:
    if not isinstance(value, list) or len(value) != 1:
        raise InputError(field, "must be a list of one", value)
    return value[0]


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST:
        raise InputError(field, f"must be text of 1 to {LONGEST} characters", value)
    return value


def _whole(field: str, value: Any) -> int:
    """A whole number that is written as text, as the data model has it."""
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise InputError(field, "must be a whole number, written as text", value)
    return int(value)


def _uuid(field: str, value: Any) -> UUID:
    if isinstance(value, str) and value.startswith("urn:uuid:"):
        try:
            found = UUID(value.removeprefix("urn:uuid:"))
        except ValueError:
            found = None
        if found is not None and found.urn == value:
            return found
    raise InputError(field, "must be urn:uuid: and a UUID in small letters", value)
