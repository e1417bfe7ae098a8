"""The operator's keys: what is made, kept, refused, and never shown."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest
from certificates import operator as an_operator
from certificates import private, token, verified
from command_line import Capture, answer, complaint
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import PrivateFormat, load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st
from pem_files import pem, public_pem, quotes_nothing
from strategies import law

from dpsim.checks import InputError
from dpsim.cli import main
from dpsim.credential import keys
from dpsim.credential.did import read_document


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DPSIM_KEY", "DPSIM_KEY_PEM", "DPSIM_BASE_URL", "DPSIM_ISSUER"):
        monkeypatch.delenv(name, raising=False)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Files.


def test_a_new_key_is_a_p256_key_that_its_owner_alone_can_read(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    made = keys.new(path)
    assert mode(path) == 0o600
    read = load_pem_private_key(path.read_bytes(), None)
    assert isinstance(read, ec.EllipticCurvePrivateKey)
    assert isinstance(read.curve, ec.SECP256R1)
    assert made.thumbprints == keys.load(path).thumbprints == (keys.thumbprint(read.public_key()),)


def test_its_mode_is_no_matter_of_the_settings_of_the_shell(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys.new(tmp_path / "key.pem")
        keys.rotate(tmp_path / "key.pem")
    finally:
        os.umask(before)
    assert mode(tmp_path / "key.pem") == 0o600


def test_no_two_new_keys_are_the_same(tmp_path: Path) -> None:
    assert keys.new(tmp_path / "a").thumbprints != keys.new(tmp_path / "b").thumbprints


@pytest.mark.parametrize("kind", ["file", "empty file", "folder", "link", "dangling link"])
def test_a_new_key_overwrites_nothing(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "key.pem", tmp_path / "other"
    if kind == "folder":
        path.mkdir()
    elif "link" in kind:
        path.symlink_to(other)
    else:
        path.write_text("" if kind == "empty file" else "precious")
    if kind == "link":
        other.write_text("precious")
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError, match="must not be there yet"):
        keys.new(path)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert other.exists() == (kind == "link")


@pytest.mark.parametrize("path", ["nowhere/key.pem", "a\0b"])
def test_a_key_that_cannot_be_written_is_an_error_in_words(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match=r"^FILE: must be a place one can write to"):
        keys.new(str(tmp_path / path))


def test_rotating_puts_a_new_key_first_and_keeps_the_former_ones_public(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    known = list(keys.new(path).thumbprints)
    for _ in range(3):
        path.chmod(0o640)
        found = keys.rotate(path)
        assert list(found.thumbprints[1:]) == known
        assert found.thumbprints == keys.load(path).thumbprints
        assert (mode(path), path.read_text().count("PRIVATE KEY-----")) == (0o600, 2)
        known.insert(0, found.thumbprints[0])
    assert [p.name for p in tmp_path.iterdir()] == ["key.pem"]


def test_rotating_follows_a_link_and_leaves_it(tmp_path: Path) -> None:
    path, link = tmp_path / "key.pem", tmp_path / "link"
    first = keys.new(path)
    link.symlink_to(path)
    assert keys.rotate(link).thumbprints[1:] == first.thumbprints
    assert link.is_symlink()
    assert keys.load(path).thumbprints[1:] == first.thumbprints


def test_a_second_rotation_at_the_same_time_is_refused_and_loses_no_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    keys.new(path)
    (tmp_path / "key.pem.new").touch()
    before = path.read_bytes()
    with pytest.raises(InputError, match="another rotation") as caught:
        keys.rotate(path)
    assert caught.value.value == "key.pem.new"
    assert path.read_bytes() == before


def test_there_is_an_end_to_former_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key.pem"
    keys.new(path)
    monkeypatch.setattr(keys, "MOST_KEYS", 2)
    keys.rotate(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="at most 2 keys"):
        keys.rotate(path)
    assert path.read_bytes() == before


def test_rotating_what_is_no_key_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    with pytest.raises(InputError, match="must be a file that can be read"):
        keys.rotate(path)
    path.write_text("precious")
    with pytest.raises(InputError):
        keys.rotate(path)
    assert path.read_text() == "precious"


A, B = private("a"), private("b")
REFUSED = {
    "nothing": "",
    "text": "not a key",
    "public key alone": public_pem(A),
    "former key first": public_pem(B) + pem(A),
    "two private keys": pem(A) + pem(B),
    "the key twice": pem(A) + public_pem(A),
    "a former key twice": pem(A) + public_pem(B) * 2,
    "text behind": pem(A) + "text",
    "text before": "text\n" + pem(A),
    "text between": pem(A) + "text\n" + public_pem(B),
    "SEC1": pem(A, PrivateFormat.TraditionalOpenSSL),
    "OpenSSH": pem(A, PrivateFormat.OpenSSH),
    "password": pem(A, password=b"secret"),
    "half": pem(A)[:120],
    "no end": pem(A).replace("END", "EMD"),
    "P-384": pem(ec.derive_private_key(7, ec.SECP384R1())),
    "secp256k1": pem(ec.derive_private_key(7, ec.SECP256K1())),
    "Ed25519": pem(ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))),
    "P-384 before": pem(A) + public_pem(ec.derive_private_key(7, ec.SECP384R1())),
    "Ed25519 before": pem(A) + public_pem(ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))),
    "too many": pem(A) + "".join(public_pem(ec.derive_private_key(n, ec.SECP256R1())) for n in range(1, 101)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_one_private_key_and_public_ones_is_refused_and_not_quoted(name: str) -> None:
    with pytest.raises(InputError) as caught:
        keys.read(REFUSED[name], "DPSIM_KEY_PEM")
    assert caught.value.field == "DPSIM_KEY_PEM"
    quotes_nothing(caught.value, REFUSED[name])


@given(data=st.data())
@law(100)
def test_a_damaged_key_is_never_quoted(data: st.DataObject) -> None:
    whole = pem(A) + public_pem(B)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + data.draw(st.sampled_from(["", "!", "A", "\n", "-", "=", "é"])) + whole[at + 1 :]
    try:
        keys.read(damaged)
    except InputError as error:
        quotes_nothing(error, whole)


def test_an_rsa_key_is_refused() -> None:
    with pytest.raises(InputError, match="P-256"):
        keys.read(pem(rsa.generate_private_key(65_537, 1024)))


def test_line_ends_and_empty_lines_are_no_matter() -> None:
    text = f"\n\n{pem(A)}\n\n{public_pem(B)}\n"
    names = (keys.thumbprint(A.public_key()), keys.thumbprint(B.public_key()))
    assert keys.read(text).thumbprints == keys.read(text.replace("\n", "\r\n")).thumbprints == names


def test_nothing_that_is_printed_holds_the_private_key() -> None:
    """Neither the operator's own text, nor what is published, nor a certificate."""
    by = an_operator("a")
    secret = private("a").private_numbers().private_value
    texts = [
        repr(by),
        str(by.keys),
        json.dumps(by.did_document()),
        token(by),
        repr(verified(token(by), by=by)),
    ]
    lines = [line for line in pem(A).splitlines() if "-" not in line]
    for text in texts:
        assert not any(written in text for written in (*lines, str(secret), f"{secret:x}"))
    assert all("d" not in method["publicKeyJwk"] for method in by.did_document()["verificationMethod"])


# The command.


def test_keys_new_rotate_and_show(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key.pem"
    made = answer(capsys, "keys", "new", path)
    assert mode(path) == 0o600
    assert "must not be there yet" in complaint(capsys, "keys", "new", path)
    assert answer(capsys, "keys", "show", path) == {"thumbprint": made["thumbprint"], "former": []}
    rotated = answer(capsys, "keys", "rotate", path)
    assert rotated["former"] == [made["thumbprint"]]
    monkeypatch.setenv("DPSIM_BASE_URL", "https://example.org")
    shown = answer(capsys, "keys", "show", path)
    names = [rotated["thumbprint"], made["thumbprint"]]
    assert shown["assertionMethod"] == [f"did:web:example.org#{name}" for name in names]


@pytest.mark.parametrize("action", ["new", "rotate", "show"])
@pytest.mark.parametrize("json", [[], ["--json"]])
def test_no_command_prints_the_private_key(
    action: str, json: list[str], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "key.pem"
    if action != "new":
        keys.new(path)
    before = path.read_text() if path.exists() else ""
    assert main(["keys", action, str(path), *json]) == 0
    printed = capsys.readouterr()
    for secret in re.findall(
        r"PRIVATE KEY-----\n(.+?)\n-----END PRIVATE", before + path.read_text(), re.DOTALL
    ):
        assert not any(line in printed.out + printed.err for line in secret.splitlines())


def test_what_is_shown_on_a_terminal_is_the_document_as_a_file(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.new(tmp_path / "key.pem")
    monkeypatch.setenv("DPSIM_BASE_URL", "https://example.org")
    assert main(["keys", "show", str(tmp_path / "key.pem")]) == 0
    assert read_document("--keys", capsys.readouterr().out.encode())["id"] == "did:web:example.org"


@pytest.mark.parametrize(
    "call", [["keys"], ["keys", "old", "f"], ["keys", "new"], ["keys", "show", "nowhere"]]
)
def test_a_wrong_call_gets_one_line(call: list[str], capsys: Capture) -> None:
    complaint(capsys, *call)
