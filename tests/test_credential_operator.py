"""Who issues certificates: the address and its one identifier, the DID document, and the settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from certificates import ID, private
from certificates import operator as an_operator
from hypothesis import given
from hypothesis import strategies as st
from openbadgeslib.keys import public_jwk_from_pem
from openbadgeslib.ob3 import build_did_document, did_web_from_url
from pem_files import pem, public_pem, quotes_nothing
from strategies import law

from dpsim.base_url import address
from dpsim.checks import InputError
from dpsim.credential import keys
from dpsim.credential.did import did_web, document, read_document
from dpsim.credential.operator import Links, missing, operator

A, B = private("a"), private("b")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DPSIM_KEY", "DPSIM_KEY_PEM", "DPSIM_BASE_URL", "DPSIM_ISSUER"):
        monkeypatch.delenv(name, raising=False)


# The address, and the identifier made of it.

SAME = [
    ("example.org", "example.org", "example.org"),
    ("example.org/", "example.org", "example.org"),
    ("Example.ORG:443/", "example.org", "example.org"),
    ("w3c-ccg.github.io/user/alice", "w3c-ccg.github.io/user/alice", "w3c-ccg.github.io:user:alice"),
    ("example.com:3000/user/alice/", "example.com:3000/user/alice", "example.com%3A3000:user:alice"),
    ("example.com:03000", "example.com:3000", "example.com%3A3000"),
    ("example.org/Apps/d_p-2.0", "example.org/Apps/d_p-2.0", "example.org:Apps:d_p-2.0"),
    ("xn--bcher-kva.example", "xn--bcher-kva.example", "xn--bcher-kva.example"),
    ("localhost:80", "localhost:80", "localhost%3A80"),
]


@pytest.mark.parametrize(("url", "one_form", "identifier"), SAME)
def test_an_address_has_one_form_and_one_identifier(url: str, one_form: str, identifier: str) -> None:
    """The examples of the did:web specification among them."""
    assert address(f"https://{url}") == address(f"HTTPS://{one_form}") == f"https://{one_form}"
    assert did_web(f"https://{one_form}") == f"did:web:{identifier}"


def test_without_tls_there_is_only_this_machine() -> None:
    assert address("http://localhost:8501/") == "http://localhost:8501"
    assert address("http://LOCALHOST:80") == "http://localhost"
    assert did_web("http://localhost:8501") == "did:web:localhost%3A8501"


LABEL = st.text("abyz09", min_size=1, max_size=8)
SEGMENT = st.text("aZ09_-", min_size=1, max_size=8)


@given(
    host=st.tuples(LABEL, st.sampled_from(["org", "example", "de"])),
    port=st.none() | st.integers(1, 65_535).filter(lambda port: port != 443),
    path=st.lists(SEGMENT, max_size=3),
)
@law(150)
def test_the_identifier_is_the_one_that_another_library_makes(
    host: tuple[str, str], port: int | None, path: list[str]
) -> None:
    url = (
        f"https://{'.'.join(host)}{'' if port is None else f':{port}'}{''.join('/' + part for part in path)}"
    )
    assert address(url) == url
    assert did_web(url) == did_web_from_url(url)


NO_ADDRESS = [
    *(
        "",
        "example.org",
        "//example.org",
        "http://example.org",
        "ftp://example.org",
        "https://",
        "https:///path",
    ),
    *(
        "http://localhost.example.org",
        "http://127.0.0.1:8501",
        "https://127.0.0.1",
        "https://127.1",
        "https://[::1]",
    ),
    *(
        f"https://example.org{rest}"
        for rest in (":0", ":65536", ":", ":a", ":٣٠٠٠", "?a=b", "#a", "\\a", "\n")
    ),
    *(f"https://example.org/{rest}" for rest in ("a//b", "..", "./a", "%41", "~a", "a b", "a" * 200)),
    *("https://exa_mple.org", "https://-a.org", "https://a-.org", "https://a..org", "https://bücher.example"),
    *(" https://example.org", f"https://{'a' * 64}.org"),
]


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_what_is_no_address_for_others_is_refused(url: str) -> None:
    with pytest.raises(InputError) as caught:
        address(url)
    assert caught.value.field == "DPSIM_BASE_URL"


@pytest.mark.parametrize(
    "url", ["https://user:hunter2@example.org", "https://example.org/hunter2@", "hunter2@"]
)
def test_a_password_in_an_address_is_not_shown(url: str) -> None:
    with pytest.raises(InputError) as caught:
        address(url)
    assert "hunter2" not in f"{caught.value} {caught.value.value}"


def test_links_stand_under_the_address() -> None:
    links = Links("https://example.org/dp")
    assert links.verify(ID) == f"https://example.org/dp/verify?id={ID}"
    assert links.status == "https://example.org/dp/status/1"
    assert links.did_document == "https://example.org/dp/did.json"
    assert Links("https://example.org:8443").did_document == "https://example.org:8443/.well-known/did.json"


# The DID document.


def test_the_did_document_is_the_one_that_another_library_makes() -> None:
    by = an_operator("a", ("b",), "https://example.org:8443/dp")
    found = by.did_document()
    names = [method["publicKeyJwk"].pop("kid") for method in found["verificationMethod"]]
    methods = [(name, public_jwk_from_pem(public_pem(key))) for name, key in zip(names, (A, B), strict=True)]
    assert found == build_did_document("did:web:example.org%3A8443:dp", methods)


def test_the_did_document_keeps_the_rules_of_did_core() -> None:
    found = an_operator("a", ("b",)).did_document()
    assert found["@context"][0] == "https://www.w3.org/ns/did/v1"
    ids = [method["id"] for method in found["verificationMethod"]]
    assert len(set(ids)) == 2
    assert found["assertionMethod"] == ids
    for method in found["verificationMethod"]:
        assert set(method) == {"id", "type", "controller", "publicKeyJwk"}
        assert (method["type"], method["controller"]) == ("JsonWebKey2020", found["id"])
        assert method["id"].partition("#")[::2] == (found["id"], method["publicKeyJwk"]["kid"])
        assert set(method["publicKeyJwk"]) == {"kty", "crv", "x", "y", "kid"}


def test_a_did_document_reads_back() -> None:
    found = document("did:web:example.org", [A.public_key()])
    assert read_document("--keys", json.dumps(found).encode()) == found


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"id": "a"}', '{"id": 7, "verificationMethod": []}', "x" * 200_001]
)
def test_what_is_no_did_document_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^--keys"):
        read_document("--keys", text.encode())


# Settings.


def test_without_settings_there_is_no_operator_and_the_command_is_named() -> None:
    assert operator() is None
    key, url = missing()
    assert "DPSIM_KEY is not set" in key
    assert "python -m dpsim keys new" in key
    assert "DPSIM_BASE_URL is not set" in url


def test_settings_make_an_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key.pem"
    made = keys.new(path)
    monkeypatch.setenv("DPSIM_KEY", str(path))
    (only,) = missing()
    assert "DPSIM_BASE_URL" in only
    assert operator() is None
    monkeypatch.setenv("DPSIM_BASE_URL", "https://Learn.example.org:8443/")
    found = operator()
    assert found is not None
    assert (found.keys.thumbprints, missing()) == (made.thumbprints, ())
    assert (found.did, found.name) == ("did:web:learn.example.org%3A8443", "dpsim at learn.example.org")
    monkeypatch.setenv("DPSIM_ISSUER", "A school")
    again = operator()
    assert again is not None
    assert again.name == "A school"


def test_the_key_may_stand_in_a_setting_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSIM_KEY_PEM", pem(A))
    monkeypatch.setenv("DPSIM_BASE_URL", "https://example.org")
    found = operator()
    assert found is not None
    assert found.keys.thumbprints == (keys.thumbprint(A.public_key()),)


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("DPSIM_KEY", "nowhere.pem", "DPSIM_KEY"),
        ("DPSIM_KEY_PEM", pem(A)[:100], "DPSIM_KEY_PEM"),
        ("DPSIM_BASE_URL", "http://example.org", "DPSIM_BASE_URL"),
        ("DPSIM_ISSUER", "two\nlines", "DPSIM_ISSUER"),
        ("DPSIM_ISSUER", "x" * 201, "DPSIM_ISSUER"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error_and_nothing_is_made_up(
    name: str, value: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPSIM_BASE_URL", "https://example.org")
    if not name.startswith("DPSIM_KEY"):
        monkeypatch.setenv("DPSIM_KEY_PEM", pem(A))
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        operator()
    assert caught.value.field == field
    quotes_nothing(caught.value, pem(A))
    assert list(tmp_path.iterdir()) == []


def test_two_settings_for_one_key_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("DPSIM_KEY", "key.pem"),
        ("DPSIM_KEY_PEM", pem(A)),
        ("DPSIM_BASE_URL", "https://a.org"),
    ):
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="must be left out where DPSIM_KEY_PEM is set"):
        operator()
