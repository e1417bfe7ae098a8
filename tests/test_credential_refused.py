"""What is refused, each for itself: a changed score, name, date, key or algorithm, and every second spelling.

Most forgeries here carry the operator's own signature, so that nothing but the rule in question refuses them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from certificates import (
    NOW,
    Change,
    altered,
    certificate,
    forged,
    opened,
    operator,
    outcomes,
    part,
    private,
    raw,
    refused,
    said,
    subject,
    token,
    verified,
    with_header,
    with_payload,
    written,
)
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.credential.credential import sign
from dpsim.credential.keys import jwk
from dpsim.credential.verify import verify

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of the curve P-256


def test_forging_by_hand_gives_a_valid_certificate_where_nothing_is_changed() -> None:
    assert verified(with_header({})).outcome == "valid"
    assert verified(with_payload(lambda payload: None)).outcome == "valid"


# What it says, under the old signature.


def test_a_changed_score_is_refused() -> None:
    refused(altered(lambda payload: subject(payload)["result"][0].update(value="25")))


def test_a_changed_name_is_refused() -> None:
    refused(altered(lambda payload: subject(payload)["identifier"][0].update(identityHash="Eve")))


def test_a_name_that_is_taken_out_is_refused() -> None:
    refused(altered(lambda payload: subject(payload).pop("identifier")))


@pytest.mark.parametrize("member", ["validFrom", "awardedDate"])
def test_a_changed_date_is_refused(member: str) -> None:
    refused(altered(lambda payload: payload.update({member: "2023-01-01T00:00:00Z"})))


def test_a_status_entry_that_is_taken_out_is_refused() -> None:
    refused(altered(lambda payload: payload.pop("credentialStatus")))


@given(data=st.data())
@law(150)
def test_no_character_can_be_changed(data: st.DataObject) -> None:
    text = token()
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("ABCXYZabcxyz019-_.=+/ \n").filter(lambda other: other != text[at]))
    assert verified(text[:at] + letter + text[at + 1 :]).outcome == "not valid"


@given(text=st.text(max_size=60) | st.text("eyJh.=-_ \n", max_size=80))
@law(100)
def test_any_text_is_answered_never_an_error(text: str) -> None:
    found = verified(text)
    assert (found.outcome, found.credential) == ("not valid", None)


# The key.


def test_another_key_under_the_same_name_is_refused() -> None:
    refused(forged(*token().split(".")[:2], private("eve")))


def test_a_key_that_the_issuer_does_not_publish_is_refused() -> None:
    stranger = operator("eve")
    text = sign(stranger, certificate(stranger))
    assert refused(text, "issuer key") == "kid must be one of the issuer's keys."


def test_a_key_on_another_curve_is_refused() -> None:
    """As the one that signs, and as one that the document publishes under the right name."""
    other = ec.generate_private_key(ec.SECP384R1())
    (kid,) = operator().did_document()["assertionMethod"]
    numbers = other.public_key().public_numbers()
    coordinates = {name: part(getattr(numbers, name).to_bytes(48, "big")) for name in ("x", "y")}
    for curve in ("P-384", "P-256"):
        found = operator().did_document()
        found["verificationMethod"][0]["publicKeyJwk"] = {"kty": "EC", "crv": curve} | coordinates
        checks = verify(token(), found, None, NOW)
        assert (checks.outcome, outcomes(checks)["issuer key"]) == ("not valid", "failed")
    assert opened(token(), 0)["kid"] == kid


@pytest.mark.parametrize(
    "x", ["", "AAAA", part(b"\1" * 32), None, 7, part(b"\1" * 31), f"{part(b'1' * 32)}="]
)
def test_a_published_key_that_is_none_is_refused(x: Any) -> None:
    found = operator().did_document()
    found["verificationMethod"][0]["publicKeyJwk"]["x"] = x
    assert outcomes(verify(token(), found, None, NOW))["issuer key"] == "failed"


@pytest.mark.parametrize("kind", [{"crv": "P-384"}, {"crv": "secp256k1"}, {"kty": "OKP"}, {"kty": None}])
def test_a_published_key_that_says_it_is_another_kind_is_refused(kind: dict[str, Any]) -> None:
    found = operator().did_document()
    found["verificationMethod"][0]["publicKeyJwk"].update(kind)
    assert outcomes(verify(token(), found, None, NOW))["issuer key"] == "failed"


def test_a_document_that_gives_away_the_private_key_is_refused() -> None:
    """Everybody can sign with such a key."""
    found = operator().did_document()
    found["verificationMethod"][0]["publicKeyJwk"]["d"] = part(b"\1" * 32)
    assert verify(token(), found, None, NOW).outcome == "not valid"


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update(assertionMethod=[]),
        lambda found: found.pop("assertionMethod"),
        lambda found: found.update(verificationMethod=[]),
        lambda found: found.update(verificationMethod=found["verificationMethod"] * 2),
        lambda found: found["verificationMethod"][0].update(controller="did:web:eve.example"),
        lambda found: found["verificationMethod"][0].pop("publicKeyJwk"),
        lambda found: found.update(verificationMethod=7),
    ],
)
def test_a_key_has_to_be_one_that_the_issuer_itself_publishes_to_verify_with(change: Change) -> None:
    found = operator().did_document()
    change(found)
    assert outcomes(verify(token(), found, None, NOW))["issuer key"] == "failed"


def test_a_key_of_another_issuer_does_not_make_it_this_ones() -> None:
    """Its signature holds by the other's keys; but it says that this one issued it."""
    eve = operator("eve", url="https://eve.example")
    header = written({"alg": "ES256", "kid": eve.did_document()["assertionMethod"][0], "typ": "JWT"})
    text = forged(header, token().split(".")[1], private("eve"))
    by_eve = verify(text, eve.did_document(), None, NOW)
    assert (by_eve.outcome, outcomes(by_eve)["signature"]) == ("not valid", "passed")
    assert said(by_eve, "content") == "header.kid must name a key of the issuer."
    assert verified(text).outcome == "not valid"


# The algorithm, and other ways of bringing one's own key.


def test_no_signature_is_refused() -> None:
    header, payload, _ = with_header({"alg": "none"}).split(".")
    assert refused(f"{header}.{payload}.") == "header.alg must be ES256."
    refused(f"{token().rpartition('.')[0]}.")


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "es256", "ES384", "ES256K", "RS256", "HS256", "", None, 7, ["ES256"]]
)
def test_another_algorithm_is_refused_even_with_the_right_signature(alg: Any) -> None:
    assert refused(with_header({"alg": alg})) == "header.alg must be ES256."


def test_the_public_key_as_the_secret_of_hs256_is_refused() -> None:
    key = private("now").public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), json.dumps(jwk(key)).encode()):
        for alg in ("HS256", "ES256"):
            text = with_header({"alg": alg}).rpartition(".")[0]
            refused(f"{text}.{part(hmac.digest(secret, text.encode(), hashlib.sha256))}")
            refused(f"{text}.{part(hmac.digest(secret, text.encode(), hashlib.sha512))}")


@pytest.mark.parametrize(
    "brought",
    [
        {"jwk": jwk(private("eve").public_key())},
        {"jku": "https://eve.example/keys.json"},
        {"x5c": ["MIIB"]},
        {"x5u": "https://eve.example/chain.pem"},
        {"crit": ["exp"], "exp": 1},
        {"b64": False, "crit": ["b64"]},
        {"zip": "DEF"},
        {"cty": "JWT"},
    ],
    ids=lambda brought: next(iter(brought)),
)
def test_anything_else_in_the_header_is_refused(brought: dict[str, Any]) -> None:
    assert refused(with_header(brought)) == "header must hold alg, kid and typ, and nothing else."


def test_a_key_in_the_header_that_fits_the_signature_is_refused() -> None:
    header = opened(token(), 0) | {"jwk": jwk(private("eve").public_key())}
    refused(forged(written(header), token().split(".")[1], private("eve")))


@pytest.mark.parametrize("missing", ["alg", "kid", "typ"])
def test_a_header_without_one_of_its_keys_is_refused(missing: str) -> None:
    refused(with_header({}, drop=(missing,)))


@pytest.mark.parametrize(
    "kid",
    [
        "",
        "key",
        "#key",
        "did:web:learn.example.org",
        "did:a#b#c",
        "https://eve.example#k",
        None,
        7,
        "did:web:é#k",
        "did:web:learn.example.org#" + "k" * 400,
        "did:web:learn.example.org#\x1b[2J",
    ],
)
def test_a_kid_that_is_no_address_of_a_key_is_refused(kid: Any) -> None:
    refused(with_header({"kid": kid}))


@pytest.mark.parametrize("typ", ["jwt", "vc+jwt", "at+jwt", None])
def test_another_typ_is_refused(typ: Any) -> None:
    assert refused(with_header({"typ": typ})) == "header.typ must be JWT."


# The signature's bytes.


def resigned(signature: bytes) -> str:
    return f"{token().rpartition('.')[0]}.{part(signature)}"


def test_a_signature_that_is_none_is_refused() -> None:
    message, _, _ = token().rpartition(".")
    good = raw(private("now"), message.encode())
    der = private("now").sign(message.encode(), ec.ECDSA(SHA256()))
    big, one, zero = ORDER.to_bytes(32, "big"), (1).to_bytes(32, "big"), bytes(32)
    for bad in (good[:63], good + b"\0", good[:32], b"", der, good[32:] + good[:32], good[::-1]):
        refused(f"{message}.{part(bad)}")
    for r in (zero, one, big, b"\xff" * 32):
        for s in (zero, one, big, b"\xff" * 32):
            refused(f"{message}.{part(r + s)}")


def test_the_twin_of_a_signature_says_the_same_and_no_more() -> None:
    """With (r, s) also (r, n - s) is a signature, by whoever knows the first: ECDSA is made so, and RFC 7518
    has no rule against it. It covers the same text: nothing can be said with it that was not signed."""
    message, _, signature = token().rpartition(".")
    data = base64.urlsafe_b64decode(signature + "==")
    twin = data[:32] + (ORDER - int.from_bytes(data[32:], "big")).to_bytes(32, "big")
    found, first = verified(f"{message}.{part(twin)}"), verified(f"{message}.{signature}")
    assert (found.outcome, found.credential) == ("valid", first.credential)


# One spelling for each thing.


def test_padding_is_refused() -> None:
    header, payload, signature = token().split(".")
    for text in (f"{header}=.{payload}.{signature}", f"{header}.{payload}==.{signature}", f"{token()}=="):
        refused(text)
    refused(forged(f"{header}=", payload))
    refused(forged(header, f"{payload}="))


@pytest.mark.parametrize("space", [" ", "\n", "\t", "\r\n", "\0", "\ufeff"])
def test_whitespace_is_refused(space: str) -> None:
    header, payload, signature = token().split(".")
    refused(f"{space}{token()}")
    refused(f"{token()}{space}")
    refused(forged(f"{header[:4]}{space}{header[4:]}", payload))
    refused(forged(header, f"{payload[:8]}{space}{payload[8:]}"))
    refused(f"{header}.{payload}.{signature[:8]}{space}{signature[8:]}")


def test_the_other_alphabet_is_refused() -> None:
    header, payload, _ = token().split(".")
    for letter in "+/é":
        refused(forged(f"{header[:-1]}{letter}", payload))


def test_bits_beyond_the_last_byte_are_refused() -> None:
    """A signature of 64 bytes leaves four bits of its last letter unused."""
    text = token()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert letters.index(text[-1]) % 16 == 0
    refused(text[:-1] + letters[letters.index(text[-1]) + 1])


@pytest.mark.parametrize("parts", [0, 1, 2, 4, 5])
def test_another_number_of_parts_is_refused(parts: int) -> None:
    refused(".".join([*token().split("."), "e30", "e30"][:parts]))


def test_a_key_twice_is_refused() -> None:
    """Two readers might take two different ones."""
    text = token()
    header, payload = (json.dumps(opened(text, which)).encode() for which in (0, 1))
    twice = b'{"alg": "none", ' + header[1:]
    refused(forged(part(twice), text.split(".")[1]))
    refused(forged(text.split(".")[0], part(b'{"iss": "did:web:eve.example", ' + payload[1:])))
    inner = payload.replace(b'"value": "23"', b'"value": "23", "value": "25"')
    assert inner != payload
    refused(forged(text.split(".")[0], part(inner)))


@pytest.mark.parametrize(
    "extra",
    [
        b"NaN",
        b"Infinity",
        b"1e999",
        b'"\\ud800"',
        b"9" * 5000,
        b"[" * 20 + b"]" * 20,
        b"[" * 30_000 + b"]" * 30_000,
    ],
    ids=["NaN", "Infinity", "1e999", "half a pair", "5000 digits", "20 levels", "30000 levels"],
)
def test_what_not_every_reader_can_read_is_refused(extra: bytes) -> None:
    header = token().split(".")[0]
    data = json.dumps(opened(token(), 1)).encode()
    refused(forged(header, part(b'{"extra": ' + extra + b", " + data[1:])))


@pytest.mark.parametrize(
    "payload",
    [b"", b"null", b"[]", b'"text"', b"7", b"{", b"{} {}", b"\xff{}", b"\xef\xbb\xbf{}", b"{'a': 1}"],
)
def test_what_is_no_object_of_json_is_refused(payload: bytes) -> None:
    refused(forged(token().split(".")[0], part(payload)))


def test_a_token_beyond_64_kilobytes_is_refused_at_once() -> None:
    long = with_payload(lambda payload: payload.update(extra="x" * 50_000))
    assert len(long) > 65_536
    assert refused(long) == "token must have at most 65536 characters."
    shorter = with_payload(lambda payload: payload.update(extra="x" * 40_000))
    assert verified(shorter).outcome == "valid"
