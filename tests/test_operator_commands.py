"""What the operator's commands say: results for a gradebook, and revoking by id or by file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from passing import WHO, sat, settings

from dpsim.cli import main
from dpsim.credential.operator import operator
from dpsim.issuing import issue
from dpsim.kept_tests import Certificate
from dpsim.recovery import known_as, learner_id
from dpsim.store import Store


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The database of a server that issues certificates."""
    url = f"sqlite:///{tmp_path / 'p.sqlite3'}"
    for name, value in settings(tmp_path, "https://learn.example.org", url).items():
        monkeypatch.setenv(name, value)
    return Store(url)


def certificate(kept: Store, name: str) -> Certificate:
    by = operator()
    assert by is not None
    return issue(by, kept, WHO, sat(kept, 30), name)


def test_results_have_a_row_for_every_test_that_was_handed_in(
    kept: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    made, other = certificate(kept, "Ada Lovelace"), learner_id("e" * 32)
    sat(kept, 12, other)
    kept.begin_test(learner_id("d" * 32), "s", "f")  # and is still open
    assert main(["results"]) == 0
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["learner"], first["name"], first["certificate"]) == (known_as(WHO), "Ada Lovelace", made.id)
    assert (first["right"], first["of"], first["percent"], first["passed"]) == ("30", "36", "83.3", "yes")
    assert (second["learner"], second["name"], second["passed"]) == (known_as(other), "", "no")


@pytest.mark.parametrize("name", ["=1+1", "+49", "-1", "＝HYPERLINK(0)"])
def test_a_name_is_no_formula_in_a_spreadsheet(kept: Store, tmp_path: Path, name: str) -> None:
    certificate(kept, name)
    assert main(["results", "--out", str(tmp_path / "r.csv")]) == 0
    (row,) = csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text("utf-8")))
    assert row["name"] == f"'{name}"


def test_results_as_json_say_how_many(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    certificate(kept, "")
    assert main(["results", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tests"] == 1


def test_a_place_that_cannot_be_written_to_is_said(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--out", "/nowhere/r.csv"]) == 2
    assert "--out: must be a place one can write to" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["{}", "urn:uuid:{}"])
def test_a_certificate_is_revoked_by_its_id(kept: Store, form: str) -> None:
    made = certificate(kept, "")
    assert main(["revoke", form.format(made.id)]) == 0
    assert kept.revoked_indices() == [made.index]


def test_and_by_its_file_although_its_learner_was_deleted(kept: Store, tmp_path: Path) -> None:
    made = certificate(kept, "")
    kept.delete(WHO)
    (tmp_path / "c.jwt").write_text(made.jwt)
    assert main(["revoke", str(tmp_path / "c.jwt")]) == 0
    assert kept.revoked_indices() == [made.index]


def test_a_file_that_was_altered_revokes_nothing(
    kept: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, _, signature = certificate(kept, "").jwt.split(".")
    other = certificate(kept, "").jwt.split(".")[1]
    (tmp_path / "c.jwt").write_text(".".join((head, other, signature)))
    before = kept.revoked_indices()
    assert main(["revoke", str(tmp_path / "c.jwt")]) == 2
    assert "must be the id or the file of one that was issued here" in capsys.readouterr().err
    assert kept.revoked_indices() == before


def test_an_id_that_is_not_kept_is_said(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["revoke", "3f2c8a10-9d57-4e0b-8b1e-0c6a5d4e3f21"]) == 2
    assert "must be the id of one that is kept here" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["results"], ["revoke", "3f2c8a10-9d57-4e0b-8b1e-0c6a5d4e3f21"]])
@pytest.mark.parametrize(("url", "said"), [("off", "must name the app's database"), ("x://y", "reached")])
def test_without_a_database_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    url: str,
    said: str,
) -> None:
    monkeypatch.setenv("DPSIM_DATABASE", url)
    assert main(command) == 2
    assert said in capsys.readouterr().err
