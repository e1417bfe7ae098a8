"""`dpsim verify`: a file, the issuer's keys and status list, an answer in words and in JSON, an exit code."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from certificates import INDEX, altered, certificate, operator, token
from command_line import Capture, complaint, strict_json
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from PIL import Image

from dpsim.cli import main
from dpsim.credential.baked import bake
from dpsim.credential.status import status_list
from dpsim.credential.verify import NAMES

NOW = 1_700_000_300.0


@pytest.fixture(autouse=True)
def at_a_time_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsim.credential_commands.time", SimpleNamespace(time=lambda: NOW))
    for name in ("DPSIM_KEY", "DPSIM_KEY_PEM", "DPSIM_BASE_URL", "DPSIM_ISSUER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A certificate in both forms, one that was altered, the issuer's keys, and its status lists."""
    picture = io.BytesIO()
    Image.new("L", (3, 3)).save(picture, "PNG")
    (tmp_path / "c.jwt").write_text(f"{token()}\n")
    (tmp_path / "c.png").write_bytes(bake(picture.getvalue(), token()))
    (tmp_path / "altered.jwt").write_text(altered(lambda payload: payload.update(name="Another")))
    (tmp_path / "did.json").write_text(json.dumps(operator().did_document()))
    (tmp_path / "list.jwt").write_text(status_list(operator(), [], NOW))
    (tmp_path / "revoked.jwt").write_text(status_list(operator(), [INDEX], NOW))
    return tmp_path


def call(capture: Capture, *arguments: object) -> tuple[int, dict[str, Any]]:
    code = main(["verify", *map(str, arguments), "--json"])
    printed = capture.readouterr()
    assert printed.err == ""
    found = strict_json(printed.out)
    assert isinstance(found, dict)
    return code, found


@pytest.mark.parametrize("name", ["c.jwt", "c.png"])
def test_a_certificate_is_valid_by_its_issuers_keys(name: str, files: Path, capsys: Capture) -> None:
    code, found = call(capsys, files / name, "--keys", files / "did.json", "--status", files / "list.jwt")
    assert (code, found["outcome"]) == (0, "valid")
    assert [(check["name"], check["outcome"]) for check in found["checks"]] == [
        (name, "passed") for name in NAMES
    ]
    assert found["credential"].items() >= certificate().items()
    assert (found["says"]["name"], found["says"]["right"], found["says"]["of"]) == ("Ada Lovelace", 23, 25)
    assert found["key"] in operator().did_document()["assertionMethod"]


def test_an_altered_certificate_is_not_valid_and_says_nothing(files: Path, capsys: Capture) -> None:
    code, found = call(capsys, files / "altered.jwt", "--keys", files / "did.json")
    assert (code, found["outcome"], found["credential"], found["says"]) == (1, "not valid", None, None)


def test_by_a_list_that_is_not_the_issuers_nothing_is_settled(files: Path, capsys: Capture) -> None:
    (files / "forged.jwt").write_text(status_list(operator("another key"), [], NOW))
    code, found = call(
        capsys, files / "c.jwt", "--keys", files / "did.json", "--status", files / "forged.jwt"
    )
    assert (code, found["outcome"]) == (3, "not verified")


def test_a_revoked_certificate_is_not_valid(files: Path, capsys: Capture) -> None:
    code, found = call(
        capsys, files / "c.jwt", "--keys", files / "did.json", "--status", files / "revoked.jwt"
    )
    assert (code, found["outcome"]) == (1, "not valid")


def test_without_keys_it_is_not_verified(files: Path, capsys: Capture) -> None:
    code, found = call(capsys, files / "c.jwt")
    assert (code, found["outcome"], found["credential"]) == (3, "not verified", None)


def test_the_operators_own_keys_are_taken_where_none_are_given(
    files: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = operator().keys.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    monkeypatch.setenv("DPSIM_KEY_PEM", own)
    monkeypatch.setenv("DPSIM_BASE_URL", "https://learn.example.org")
    assert call(capsys, files / "c.jwt")[0] == 0
    monkeypatch.setenv("DPSIM_BASE_URL", "http://learn.example.org")
    assert "DPSIM_BASE_URL" in complaint(capsys, "verify", files / "c.jwt")
    assert call(capsys, files / "c.jwt", "--keys", files / "did.json")[0] == 0  # then settings are no matter


def test_on_a_terminal_each_check_is_a_line(files: Path, capsys: Capture) -> None:
    assert main(["verify", str(files / "c.png"), "--keys", str(files / "did.json")]) == 0
    outcome, *lines = capsys.readouterr().out.splitlines()
    assert outcome == "valid"
    assert [line.split("  ")[1].strip() for line in lines[:5]] == list(NAMES)
    assert "23 of 25 right" in lines[5]
    assert "Ada Lovelace" in lines[6]
    assert main(["verify", str(files / "altered.jwt"), "--keys", str(files / "did.json")]) == 1
    assert "Ada" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["nowhere.jwt"], "FILE"),
        (["."], "FILE"),
        (["a\0b"], "FILE"),
        (["did.json"], "certificate"),
        (["c.jwt", "--keys", "nowhere"], "--keys"),
        (["c.jwt", "--keys", "c.jwt"], "--keys"),
        (["c.jwt", "--keys", "c.png"], "--keys"),
        (["c.jwt", "--status", "nowhere"], "--status"),
        (["c.jwt", "--status", "did.json"], "--status"),
    ],
)
def test_a_wrong_call_gets_one_line(
    arguments: list[str], field: str, files: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    assert complaint(capsys, "verify", *arguments).startswith(f"dpsim: {field}: ")


@pytest.mark.parametrize("place", ["FILE", "--keys", "--status"])
def test_a_private_key_in_the_wrong_place_is_not_shown(place: str, files: Path, capsys: Capture) -> None:
    key = files / "key.pem"
    assert main(["keys", "new", str(key)]) == 0
    capsys.readouterr()
    said = complaint(capsys, "verify", *([key] if place == "FILE" else [files / "c.jwt", place, key]))
    for line in key.read_text().splitlines():
        assert line[:16] not in said.replace("-----BEGIN", "")


def test_the_exit_code_is_that_of_the_process(files: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "dpsim",
        "verify",
        str(files / "altered.jwt"),
        "--keys",
        str(files / "did.json"),
    ]
    ran = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=False
    )
    assert (ran.returncode, ran.stderr, ran.stdout.splitlines()[0]) == (1, "", "not valid")
