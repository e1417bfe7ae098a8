"""Revocation: the status list by its specification, and when a verifier believes it."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc
import zlib
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from certificates import (
    INDEX,
    ISSUED,
    NOW,
    Change,
    opened,
    operator,
    outcomes,
    part,
    private,
    raw,
    said,
    subject,
    token,
    verified,
    with_payload,
    written,
)
from hypothesis import given
from hypothesis import strategies as st
from openbadgeslib.ob3 import build_status_list_credential, decode_encoded_list, encode_bitstring, set_indices
from strategies import law

from dpsim.checks import InputError
from dpsim.credential.status import DAYS, read_list, status_list
from dpsim.credential.verify import verify

URL = "https://learn.example.org/status/1"
OTHER = "https://learn.example.org/status/2"
SIZE = 131_072
# Example 3 of the W3C Recommendation "Bitstring Status List v1.0": 131,072 entries, none of them set.
PUBLISHED = "uH4sIAAAAAAAAA-3BMQEAAADCoPVPbQwfoAAAAAAAAAAAAAAAAAAAAIC3AYbSVKsAQAAA"


def listed(*revoked: int, by: Any = None, at: float = ISSUED) -> str:
    return status_list(by or operator(), revoked, at)


def changed(change: Change, text: str | None = None) -> str:
    """The status list with another payload, signed anew with the operator's key."""
    header, payload, _ = (text or listed(INDEX)).split(".")
    found = opened(f"{header}.{payload}.", 1)
    change(found)
    message = f"{header}.{written(found)}"
    return f"{message}.{part(raw(private('now'), message.encode()))}"


# The list itself.


def test_a_status_list_has_the_published_form() -> None:
    found = opened(listed(), 1)
    assert found["type"] == ["VerifiableCredential", "BitstringStatusListCredential"]
    assert (found["id"], found["issuer"]) == (URL, "did:web:learn.example.org")
    assert subject(found)["type"] == "BitstringStatusList"
    assert subject(found)["statusPurpose"] == "revocation"
    assert (found["iss"], found["jti"], found["nbf"]) == (found["issuer"], URL, int(ISSUED))


def test_it_is_what_another_library_makes() -> None:
    """But for the bytes that GZIP may choose, and the claims that signing adds."""
    at = datetime.fromtimestamp(int(ISSUED), UTC)
    until = at + timedelta(days=DAYS)
    other = build_status_list_credential(
        "did:web:learn.example.org", URL, "revocation", [INDEX], issued=at, valid_until=until
    )
    found = opened(listed(INDEX), 1)
    assert decode_encoded_list(subject(found).pop("encodedList")) == decode_encoded_list(
        subject(other).pop("encodedList")
    )
    assert {key: found[key] for key in other} == other
    assert set(found) - set(other) == {"iss", "sub", "jti", "nbf", "exp"}


@given(st.sets(st.integers(0, SIZE - 1), max_size=40), st.integers(0, SIZE - 1))
@law(25)
def test_every_entry_is_found_where_it_was_put(revoked: set[int], other: int) -> None:
    text = listed(*revoked)
    assert set_indices(decode_encoded_list(subject(opened(text, 1))["encodedList"])) == revoked
    found = read_list(text, operator().did_document(), URL)
    assert {index for index in (*revoked, other) if found.is_revoked(index)} == revoked


def test_the_first_entry_is_the_leftmost_bit() -> None:
    bits = gzip.decompress(
        base64.urlsafe_b64decode(subject(opened(listed(0, 15), 1))["encodedList"][1:] + "==")
    )
    assert (len(bits), bits[:2]) == (SIZE // 8, bytes([0b1000_0000, 0b0000_0001]))


def test_the_published_example_reads_as_a_list_without_any_entry_set() -> None:
    text = changed(lambda payload: subject(payload).update(encodedList=PUBLISHED))
    assert read_list(text, operator().did_document(), URL).bits == bytes(SIZE // 8)


def test_a_list_with_every_other_entry_set_still_fits_into_a_token() -> None:
    revoked = Random(7).sample(range(SIZE), SIZE // 2)  # noise: GZIP makes nothing smaller of it
    assert read_list(listed(*revoked), operator().did_document(), URL).is_revoked(revoked[0])


@pytest.mark.parametrize("index", [-1, SIZE, 0.5, True])
def test_no_entry_is_set_outside_the_list(index: Any) -> None:
    with pytest.raises(InputError, match=r"^index"):
        listed(index)


# What comes of it.


def test_a_certificate_that_is_not_in_the_list_is_not_revoked() -> None:
    found = verified(token(), listed(INDEX - 1, INDEX + 1))
    assert (found.outcome, outcomes(found)["revocation"]) == ("valid", "passed")
    assert "2023-11-14T22:15:00Z" in said(found, "revocation")


def test_a_revoked_certificate_is_not_valid() -> None:
    found = verified(token(), listed(INDEX))
    assert (found.outcome, outcomes(found)["revocation"]) == ("not valid", "failed")
    assert "revoked" in said(found, "revocation")


def test_a_list_signed_with_a_former_key_counts() -> None:
    later = operator("second", ("first",))
    assert verified(token(later), listed(INDEX, by=operator("first")), later).outcome == "not valid"


@pytest.mark.parametrize("index", [SIZE, SIZE + 1, 10**11])
def test_an_index_beyond_the_list_fails(index: int) -> None:
    text = with_payload(lambda payload: payload["credentialStatus"].update(statusListIndex=str(index)))
    found = verified(text, listed())
    assert (found.outcome, outcomes(found)["revocation"]) == ("not valid", "failed")
    assert said(found, "revocation") == "statusListIndex must be from 0 to 131071."


def test_an_old_list_says_no_more_that_a_certificate_is_not_revoked() -> None:
    """But one that was revoked stays so."""
    at = ISSUED - DAYS * 86_400 - 1
    found = verified(token(), listed(at=at))
    assert (found.outcome, outcomes(found)["revocation"]) == ("valid", "not checked")
    assert verified(token(), listed(INDEX, at=at)).outcome == "not valid"
    assert outcomes(verified(token(), listed(at=ISSUED + 86_400)))["revocation"] == "not checked"


# A list that is not believed: it makes no certificate valid, and none invalid.


def distrusted(text: str) -> str:
    """What is said of a list that is not believed, though the certificate's entry is set in it."""
    found = verified(token(), text)
    assert (found.outcome, outcomes(found)["revocation"]) == ("valid", "not checked")
    assert said(found, "revocation").startswith("The status list that was given is not to be trusted. ")
    return said(found, "revocation").split("trusted. ")[1]


def test_forging_by_hand_gives_a_list_that_counts_where_nothing_is_changed() -> None:
    assert outcomes(verified(token(), changed(lambda payload: None)))["revocation"] == "failed"


def test_a_list_of_another_issuer() -> None:
    eve = operator("eve", url="https://eve.example")
    distrusted(listed(INDEX, by=eve))
    assert "must be by the issuer" in distrusted(changed(lambda p: p.update(issuer=eve.did, iss=eve.did)))
    theirs = changed(lambda p: p.update(id=URL, jti=URL), listed(INDEX, by=eve))
    distrusted(theirs)


def test_a_list_signed_with_another_key() -> None:
    message = listed(INDEX).rpartition(".")[0]
    said = distrusted(f"{message}.{part(raw(private('eve'), message.encode()))}")
    assert said == "status list must be signed with the issuer's key."
    assert "one of the issuer's keys" in distrusted(listed(INDEX, by=operator("eve")))


def test_a_list_without_a_signature() -> None:
    distrusted(json.dumps(opened(listed(INDEX), 1)))
    distrusted(f"{listed(INDEX).rpartition('.')[0]}.")
    header = written(opened(listed(), 0) | {"alg": "none"})
    distrusted(f"{header}.{listed(INDEX).split('.')[1]}.")
    distrusted("")


@pytest.mark.parametrize("purpose", ["suspension", "message", ["revocation", "suspension"], None])
def test_a_list_for_another_purpose(purpose: Any) -> None:
    assert (
        distrusted(changed(lambda p: subject(p).update(statusPurpose=purpose)))
        == "status list must be for revocation."
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(id=OTHER, jti=OTHER),
        lambda p: (p.update(sub=f"{OTHER}#list"), subject(p).update(id=f"{OTHER}#list")),
    ],
)
def test_another_list_of_the_same_issuer(change: Change) -> None:
    assert "the one that the certificate names" in distrusted(changed(change))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(type=["VerifiableCredential"]),
        lambda p: p.update(type="BitstringStatusListCredential"),
        lambda p: p["@context"].append("https://eve.example"),
        lambda p: p.update(credentialSubject=[subject(p)]),
    ],
)
def test_another_kind_of_list(change: Change) -> None:
    assert "must be a BitstringStatusListCredential" in distrusted(changed(change))


def test_a_certificate_is_no_status_list() -> None:
    assert "must be a BitstringStatusListCredential" in distrusted(token())


def test_a_status_list_is_no_certificate() -> None:
    found = verified(listed())
    assert (found.outcome, outcomes(found)["content"]) == ("not valid", "failed")


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(nbf=p["nbf"] - 1),
        lambda p: p.pop("exp"),
        lambda p: p.pop("validUntil"),
        lambda p: p.update(validFrom="yesterday"),
        lambda p: p.update(issuer={"id": p["issuer"]}),
    ],
)
def test_a_list_whose_members_do_not_agree(change: Change) -> None:
    distrusted(changed(change))


def bomb(size: int) -> str:
    reader = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return "u" + part(
        b"".join(reader.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)) + reader.flush()
    )


@pytest.mark.parametrize(
    "encoded",
    [
        "",
        "u",
        None,
        7,
        PUBLISHED[1:],
        f"z{PUBLISHED[1:]}",
        f"{PUBLISHED}=",
        f"{PUBLISHED[:40]}",
        "u" + part(bytes(SIZE // 8)),
        "u" + part(zlib.compress(bytes(SIZE // 8))),
        "u" + part(gzip.compress(bytes(SIZE // 8)) + b"more"),
        "u" + part(gzip.compress(bytes(SIZE // 8))[:-1]),
        "u" + part(gzip.compress(bytes(SIZE // 8))[:-8] + bytes(8)),
        encode_bitstring([], SIZE - 8),
        encode_bitstring([], SIZE + 8),
        bomb(20_000_000),
    ],
    ids=range(16),  # what is compressed holds the time
)
def test_a_list_that_does_not_decompress_to_just_its_size(encoded: Any) -> None:
    assert distrusted(changed(lambda p: subject(p).update(encodedList=encoded))).startswith(
        "encodedList must be"
    )


def test_no_more_is_decompressed_than_a_list_has() -> None:
    """Twenty megabytes in twenty kilobytes: memory stays where it was."""
    text = changed(lambda p: subject(p).update(encodedList=bomb(20_000_000)))
    tracemalloc.start()
    distrusted(text)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2_000_000


def test_without_the_issuers_key_no_list_is_believed() -> None:
    for document in (None, operator(url="https://other.example").did_document()):
        found = verify(token(), document, listed(INDEX), NOW)
        assert (found.outcome, outcomes(found)["revocation"]) == ("not verified", "not checked")
