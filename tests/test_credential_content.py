"""What a certificate has to say, when it holds, and what is not passed because it could not be checked.

The forgeries here carry the operator's own signature: they are refused for what they say.
"""

from __future__ import annotations

from typing import Any

import pytest
from certificates import (
    ISSUED,
    NOW,
    Change,
    altered,
    operator,
    outcomes,
    private,
    refused,
    said,
    subject,
    token,
    verified,
    with_payload,
)

from dpsim.credential.did import document
from dpsim.credential.verify import SKEW_S, verify

# Claims beside their counterparts, and the content: signed by the issuer, and refused for what it says.


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        ("iss", "did:web:eve.example"),
        ("sub", "urn:uuid:00000000-0000-4000-8000-000000000000"),
        ("jti", "urn:uuid:00000000-0000-4000-8000-000000000000"),
        ("nbf", int(ISSUED) - 1),
        ("nbf", float(int(ISSUED))),
        ("nbf", str(int(ISSUED))),
        ("exp", int(NOW) + 1000),
    ],
)
def test_a_claim_that_differs_from_its_counterpart_is_refused(claim: str, other: Any) -> None:
    assert refused(with_payload(lambda payload: payload.update({claim: other})), "content").startswith(
        f"{claim} must equal"
    )


@pytest.mark.parametrize("claim", ["iss", "sub", "jti", "nbf"])
def test_a_claim_that_is_missing_is_refused(claim: str) -> None:
    assert refused(with_payload(lambda payload: payload.pop(claim)), "content").startswith(
        f"{claim} must equal"
    )


CONTENT: list[tuple[str, Change]] = [
    ("@context", lambda p: p["@context"].reverse()),
    ("@context", lambda p: p["@context"].append("https://eve.example/context.json")),
    ("@context", lambda p: p.pop("@context")),
    ("type", lambda p: p["type"].remove("OpenBadgeCredential")),
    ("type", lambda p: p.update(type="OpenBadgeCredential")),
    ("id", lambda p: p.update(id="https://eve.example", jti="https://eve.example")),
    ("id", lambda p: p.update(id=p["id"].upper())),
    ("id", lambda p: p.update(id=f"urn:uuid:{p['id'][9:].upper()}")),
    ("id", lambda p: p.update(id=f"urn:uuid:{{{p['id'][9:]}}}")),
    ("name", lambda p: p.update(name="")),
    ("issuer", lambda p: p.update(issuer=p["issuer"]["id"])),
    ("issuer.type", lambda p: p["issuer"].update(type="Profile")),
    ("issuer.name", lambda p: p["issuer"].pop("name")),
    ("issuer.url", lambda p: p["issuer"].update(url=7)),
    ("validFrom", lambda p: p.update(validFrom="2023-11-14")),
    ("validFrom", lambda p: p.update(validFrom="2026-02-30T00:00:00Z")),
    ("validFrom", lambda p: p.update(validFrom="2023-11-14T22:15:00+00:00")),
    ("awardedDate", lambda p: p.pop("awardedDate")),
    ("credentialSubject", lambda p: p.update(credentialSubject=[subject(p)])),
    ("credentialSubject.id", lambda p: subject(p).update(id="mailto:a@b.org")),
    ("credentialSubject.type", lambda p: subject(p).update(type=["Person"])),
    ("identifier", lambda p: subject(p)["identifier"].append(subject(p)["identifier"][0])),
    ("identifier.hashed", lambda p: subject(p)["identifier"][0].update(hashed=0)),
    ("identifier.identityType", lambda p: subject(p)["identifier"][0].update(identityType="emailAddress")),
    ("achievement", lambda p: subject(p).pop("achievement")),
    ("achievement.type", lambda p: subject(p)["achievement"].update(type=["Badge"])),
    ("achievement.name", lambda p: subject(p)["achievement"].update(name=None)),
    ("achievement.criteria", lambda p: subject(p)["achievement"].update(criteria="all")),
    ("resultDescription", lambda p: subject(p)["achievement"].update(resultDescription=[])),
    (
        "resultDescription.valueMax",
        lambda p: subject(p)["achievement"]["resultDescription"][0].update(valueMax="+25"),
    ),
    (
        "resultDescription.resultType",
        lambda p: subject(p)["achievement"]["resultDescription"][0].update(resultType="Percent"),
    ),
    ("result", lambda p: subject(p)["result"].append({"value": "25"})),
    ("result.resultDescription", lambda p: subject(p)["result"][0].update(resultDescription="urn:other")),
    ("result.value", lambda p: subject(p)["result"][0].update(value=23)),
    ("result.value", lambda p: subject(p)["result"][0].update(value="023")),
    ("result.value", lambda p: subject(p)["result"][0].update(value="26")),
    ("result.value", lambda p: subject(p)["result"][0].update(value="19")),
    ("credentialStatus", lambda p: p.pop("credentialStatus")),
    ("credentialStatus.statusPurpose", lambda p: p["credentialStatus"].update(statusPurpose="message")),
    ("statusListIndex", lambda p: p["credentialStatus"].update(statusListIndex=94_567)),
    ("statusListIndex", lambda p: p["credentialStatus"].update(statusListIndex="-1")),
]


@pytest.mark.parametrize(("field", "change"), CONTENT)
def test_content_that_breaks_a_rule_is_refused_and_the_member_is_named(field: str, change: Change) -> None:
    found = verified(with_payload(change))
    assert (found.outcome, outcomes(found)["signature"], outcomes(found)["content"]) == (
        "not valid",
        "passed",
        "failed",
    )
    assert said(found, "content").startswith(f"{field} must be ")
    assert found.facts is None


def test_a_member_that_is_not_known_changes_nothing() -> None:
    """A later certificate may say more; who verifies with an older program still can."""
    assert verified(with_payload(lambda payload: payload.update(evidence=[]))).outcome == "valid"


# Dates.


def test_a_certificate_from_the_future_is_refused_beyond_what_clocks_differ_by() -> None:
    for now, outcome in ((int(ISSUED) - SKEW_S, "valid"), (int(ISSUED) - SKEW_S - 1, "not valid")):
        found = verify(token(), operator().did_document(), None, now)
        assert found.outcome == outcome
        assert outcomes(found)["dates"] == ("passed" if outcome == "valid" else "failed")


def test_a_certificate_that_has_ended_is_refused() -> None:
    until = {"validUntil": "2023-11-14T22:20:00Z", "exp": int(ISSUED) + 300}
    text = with_payload(lambda payload: payload.update(until))
    for now, outcome in ((ISSUED + 200, "valid"), (ISSUED + 400, "not valid")):
        assert verify(text, operator().did_document(), None, now).outcome == outcome


# What cannot be checked is not passed.


def test_without_the_issuers_keys_nothing_is_verified_and_nothing_handed_on() -> None:
    found = verify(token(), None, None, NOW)
    assert (found.outcome, found.credential, found.facts) == ("not verified", None, None)
    assert list(outcomes(found).values()) == ["not checked", "not checked", "passed", "passed", "not checked"]
    assert verify(altered(lambda p: subject(p).pop("id")), None, None, NOW).outcome == "not valid"


def test_with_another_issuers_keys_nothing_is_verified() -> None:
    found = verify(token(), operator(url="https://other.example").did_document(), None, NOW)
    assert (found.outcome, found.credential) == ("not verified", None)
    assert "another issuer's" in said(found, "issuer key")
    assert "issuer's key alone" in said(found, "revocation")
    renamed = document("did:web:other.example", [private("now").public_key()])
    assert verify(token(), renamed, None, NOW).outcome == "not verified"


def test_without_a_status_list_it_is_valid_and_says_that_revocation_was_not_checked() -> None:
    found = verified(token())
    assert (found.outcome, outcomes(found)["revocation"]) == ("valid", "not checked")
    assert "https://learn.example.org/status/1" in said(found, "revocation")


# Rotation.


def test_rotation_keeps_certificates_of_former_keys_valid() -> None:
    old = token(operator("first"))
    for later in (operator("second", ("first",)), operator("third", ("second", "first"))):
        assert verified(old, by=later).outcome == "valid"
        assert verified(token(later), by=later).outcome == "valid"


def test_a_former_key_that_is_taken_out_makes_its_certificates_not_valid() -> None:
    old = token(operator("first"))
    assert verified(old, by=operator("third", ("second",))).outcome == "not valid"
