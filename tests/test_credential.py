"""What a certificate is: the published rules of its form, held against other readers and by hand.

Other readers: openbadgeslib, which verifies, reads DID documents and status lists, the JSON-LD contexts
that it carries, and for the signature cryptography alone.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from certificates import (
    ID,
    INDEX,
    ISSUED,
    NOW,
    PASSED,
    certificate,
    opened,
    operator,
    private,
    token,
    verified,
)
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st
from openbadgeslib.ob3 import OB3VerificationError, OB3Verifier
from openbadgeslib.ob3.contexts import load_context
from strategies import law

from dpsim.checks import InputError
from dpsim.credential.credential import Award, credential, holder
from dpsim.credential.encoding import from_base64url
from dpsim.credential.status import status_list
from dpsim.score import needed

VC, OB = "https://www.w3.org/ns/credentials/v2", "https://purl.imsglobal.org/spec/ob/v3p0/context-3.0.3.json"


def test_a_certificate_is_valid_by_the_issuers_keys_and_says_what_it_says() -> None:
    found = verified(token())
    assert found.outcome == "valid"
    assert found.credential == certificate() | {
        "iss": "did:web:learn.example.org",
        "sub": certificate()["credentialSubject"]["id"],
        "jti": f"urn:uuid:{ID}",
        "nbf": 1_700_000_100,
    }
    facts = found.facts
    assert facts is not None
    assert (facts.id, facts.name, facts.right, facts.of, facts.required) == (ID, "Ada Lovelace", 23, 25, 20)
    assert (facts.issuer, facts.issuer_did) == ("A school", "did:web:learn.example.org")
    assert (facts.awarded, facts.issued, facts.until) == (1_700_000_000, 1_700_000_100, None)
    assert (facts.status_list, facts.index) == ("https://learn.example.org/status/1", INDEX)


def test_the_header_holds_alg_typ_and_kid_and_nothing_else() -> None:
    (kid,) = operator().did_document()["assertionMethod"]
    assert opened(token(), 0) == {"alg": "ES256", "typ": "JWT", "kid": kid}


def test_the_signature_holds_by_cryptography_alone() -> None:
    signed, _, signature = token().rpartition(".")
    r, s = (
        int.from_bytes(half, "big")
        for half in (from_base64url("", signature)[:32], from_base64url("", signature)[32:])
    )
    private("now").public_key().verify(encode_dss_signature(r, s), signed.encode(), ec.ECDSA(SHA256()))


def test_another_open_badges_library_verifies_it_by_the_did_document_and_the_status_list() -> None:
    by, now = operator(url="https://learn.example.org:8443/dp", former=("before",)), time.time()
    served = {
        "https://learn.example.org:8443/dp/did.json": json.dumps(by.did_document()).encode(),
        "https://learn.example.org:8443/dp/status/1": status_list(by, [INDEX + 1], now).encode(),
    }
    reader = OB3Verifier.for_issuer_did(by.did, served.__getitem__)
    found = reader.verify(token(by), check_status=True, download=served.__getitem__)
    assert (found.id, found.recipient_id) == (f"urn:uuid:{ID}", certificate()["credentialSubject"]["id"])
    (identity,), (result,) = found.identifiers, found.results
    assert (identity.identity_hash, identity.identity_type, identity.hashed) == (
        "Ada Lovelace",
        "name",
        False,
    )
    (description,) = found.achievement.result_descriptions
    assert (result.value, result.result_description) == ("23", description.id)
    assert (description.result_type, description.value_min, description.value_max) == ("RawScore", "0", "25")
    assert description.required_value == "20"
    served["https://learn.example.org:8443/dp/status/1"] = status_list(by, [INDEX], now).encode()
    with pytest.raises(OB3VerificationError, match="revocation"):
        reader.verify(token(by), check_status=True, download=served.__getitem__)


# Classes of the Open Badges 3.0 data model, as far as they are used here: what is required, then the rest.
CLASSES: dict[str, tuple[set[str], set[str]]] = {
    "OpenBadgeCredential": (
        {"@context", "id", "type", "name", "issuer", "validFrom", "credentialSubject"},
        {"awardedDate", "credentialStatus", "validUntil", "description", "evidence", "credentialSchema"},
    ),
    "Profile": ({"id", "type"}, {"name", "url", "description", "email"}),
    "AchievementSubject": ({"type", "achievement"}, {"id", "identifier", "result"}),
    "IdentityObject": ({"type", "hashed", "identityHash", "identityType"}, {"salt"}),
    "Achievement": (
        {"id", "type", "criteria", "description", "name"},
        {"achievementType", "resultDescription", "image", "tag"},
    ),
    "ResultDescription": (
        {"id", "type", "name", "resultType"},
        {"valueMin", "valueMax", "requiredValue", "allowedValue"},
    ),
    "Result": ({"type"}, {"resultDescription", "value", "status"}),
    "BitstringStatusListEntry": (
        {"type", "statusPurpose", "statusListIndex", "statusListCredential"},
        {"id", "statusSize"},
    ),
}


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in `value` that has a type."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)
    if isinstance(value, dict) and "type" in value:
        yield value


@pytest.mark.parametrize("name", ["", "Ada Lovelace"])
def test_every_object_keeps_the_rules_of_its_class(name: str) -> None:
    seen = set()
    for each in objects(certificate(name=name)):
        kind = each["type"] if isinstance(each["type"], str) else each["type"][-1]
        required, others = CLASSES[kind]
        assert required <= set(each) <= required | others, kind
        seen.add(kind)
    assert seen == set(CLASSES) - ({"IdentityObject"} if not name else set())


def test_contexts_and_types_stand_in_the_published_order() -> None:
    found = certificate()
    assert found["@context"] == [VC, OB]
    assert found["type"] == ["VerifiableCredential", "OpenBadgeCredential"]
    arrays = [each["type"] for each in objects(found) if isinstance(each["type"], list)]
    assert sorted(kind for (kind, *_) in arrays) == [
        "Achievement",
        "AchievementSubject",
        "Profile",
        "Result",
        "ResultDescription",
        "VerifiableCredential",
    ]


@pytest.mark.parametrize("name", ["", "Ada Lovelace"])
def test_every_member_is_a_term_of_the_two_contexts(name: str) -> None:
    """Where a member is no term, a JSON-LD processor drops it, and it says nothing."""
    contexts = [load_context(url)["@context"] for url in (VC, OB)]
    common = {term for context in contexts for term in context} | {"@context"}
    for each in objects(opened(token(name=name), 1)):
        kinds = [each["type"]] if isinstance(each["type"], str) else each["type"]
        scoped = [c[kind]["@context"] for c in contexts for kind in kinds if "@context" in c.get(kind, {})]
        assert all(kind in common for kind in kinds)
        assert set(each) <= common.union(*scoped), kinds


def test_the_times_are_in_utc_and_agree() -> None:
    found = opened(token(), 1)
    assert found["validFrom"] == "2023-11-14T22:15:00Z"
    assert found["nbf"] == int(ISSUED) == 19_675 * 86_400 + 22 * 3600 + 15 * 60
    assert found["awardedDate"] == "2023-11-14T22:13:20Z"


def test_the_same_arguments_give_the_same_credential() -> None:
    assert certificate() == certificate()
    assert opened(token(), 1) == opened(token(), 1)


def test_the_subject_is_another_than_the_credential_and_belongs_to_it_alone() -> None:
    by, other = operator(), UUID(int=ID.int ^ 1)
    subjects = {
        credential(by, Award(25, 25, PASSED), "", id, 0, ISSUED)["credentialSubject"]["id"]
        for id in (ID, other)
    }
    assert len(subjects | {ID.urn, other.urn}) == 4
    assert all(re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", subject) for subject in subjects)


def test_without_a_name_nothing_names_anybody() -> None:
    text = json.dumps(certificate(name=""))
    assert "identi" not in text
    facts = verified(token(name="")).facts
    assert facts is not None
    assert facts.name == ""


@pytest.mark.parametrize(
    "name",
    ["Ada Lovelace", "Ἀρχιμήδης", "محمد بن موسى", "夏目 漱石", "ශ්‍රී ලංකා", "می‌خواهم", "O’Neill-García", "🦊"],
)
def test_a_name_may_be_in_any_script(name: str) -> None:
    facts = verified(token(name=name)).facts
    assert facts is not None
    assert facts.name == name


def test_a_name_is_composed_and_has_single_spaces() -> None:
    assert holder("  Rene\u0301   Descartes\n") == "Ren\u00e9 Descartes"


@pytest.mark.parametrize("name", ["a@b.org", "x" * 101, "turned\u202eround", "a\0b", "\ud800", "‍" * 101])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        holder(name)
    assert caught.value.field == "name"


@given(of=st.integers(1, 1000))
@law(200)
def test_the_least_score_is_the_first_with_four_fifths(of: int) -> None:
    assert 5 * needed(of) >= 4 * of > 5 * (needed(of) - 1)


@pytest.mark.parametrize(("right", "of"), [(19, 25), (0, 1), (79, 100), (26, 25), (-1, 25), (1, 0)])
def test_a_score_that_does_not_pass_or_cannot_be_is_refused(right: int, of: int) -> None:
    with pytest.raises(InputError, match=r"^score\."):
        Award(right, of, PASSED)


@pytest.mark.parametrize("index", [-1, 131_072, True, 0.5])
def test_an_index_outside_the_status_list_is_refused(index: Any) -> None:
    with pytest.raises(InputError, match=r"^index"):
        credential(operator(), Award(25, 25, PASSED), "", ID, index, ISSUED)


def test_nothing_is_issued_before_it_was_earned() -> None:
    with pytest.raises(InputError, match=r"^at"):
        credential(operator(), Award(25, 25, PASSED), "", ID, 0, PASSED - 1)


def test_thumbprints_are_those_of_rfc_7638() -> None:
    """SHA-256 of the required members in alphabetical order, without spaces."""
    for method in operator(former=("before",)).did_document()["verificationMethod"]:
        key = method["publicKeyJwk"]
        text = f'{{"crv":"P-256","kty":"EC","x":"{key["x"]}","y":"{key["y"]}"}}'
        digest = hashlib.sha256(text.encode()).digest()
        assert from_base64url("", key["kid"]) == digest
        assert method["id"] == f"did:web:learn.example.org#{key['kid']}"


def test_now_is_after_the_certificate_was_issued() -> None:
    assert PASSED < ISSUED < NOW
