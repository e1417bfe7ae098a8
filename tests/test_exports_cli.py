"""`dpsim export`: the file or standard output, the report, and what a wrong call gets to hear."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from command_line import Capture, answer, complaint
from platforms import gift, moodle

from dpsim.base_url import base_url
from dpsim.checks import InputError
from dpsim.cli import main
from dpsim.exercises import items, topics

READERS = {"moodle": moodle, "gift": gift}


@pytest.fixture(autouse=True)
def no_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSIM_BASE_URL", raising=False)


@pytest.mark.parametrize("form", READERS)
def test_without_a_file_the_export_is_printed(form: str, capsys: Capture) -> None:
    assert main(["export", form, "--items", "x-R1", "x-C3", "--variants", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    ids = [f"dpsim-{item}-{seed}" for item in ("x-R1", "x-C3") for seed in (1, 2)]
    assert [question.id for question in READERS[form](printed.out)] == ids


@pytest.mark.parametrize("form", READERS)
def test_a_file_is_what_would_be_printed(form: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bank"
    main(["export", form])
    printed = capsys.readouterr().out
    report = answer(capsys, "export", form, "--out", path)
    assert path.read_bytes().decode() == printed
    assert report["file"] == str(path)
    assert "text" not in report


@pytest.mark.parametrize("form", READERS)
def test_the_report_counts_what_is_there_and_names_what_is_not(form: str, capsys: Capture) -> None:
    report = answer(capsys, "export", form, "--variants", 3, "--seed", 7)
    found = READERS[form](report["text"])
    assert report["questions"] == len(found) == sum(report["kinds"].values())
    assert report["items"] == len(items()) - 4
    assert report["questions"] + sum(e["variants"] for e in report["left_out"]) == 3 * len(items())
    assert (report["format"], report["variants"], report["seed"]) == (form, 3, 7)
    assert {int(question.id.rpartition("-")[2]) for question in found} == {7, 8, 9}
    assert report["categories"] == list(topics().values())
    assert [question.category for question in found] == sorted(
        (question.category for question in found),
        key=lambda category: report["categories"].index(category.rpartition("/")[2]),
    )
    assert set(report["kinds"]) == {"number", "choose-one", "choose-several", "order", "cell"}
    assert {"x-ring-3", "x-ring-4", "x-ring-5", "x-ring-6"} <= {entry["item"] for entry in report["left_out"]}
    assert all(entry["why"] for entry in report["left_out"])
    assert "DPSIM_BASE_URL" in report["links"]


def test_for_people_the_report_stands_in_lines(tmp_path: Path, capsys: Capture) -> None:
    assert main(["export", "gift", "--items", "x-R1", "x-ring-3", "--out", str(tmp_path / "a")]) == 0
    printed = capsys.readouterr().out
    assert "questions: 1\n" in printed
    assert "x-ring-3" in printed


def test_what_is_printed_is_utf_8_whatever_the_terminal_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, "ascii", newline="\r\n"))
    assert main(["export", "gift", "--items", "x-C1"]) == 0
    sys.stdout.flush()
    assert "\r" not in data.getvalue().decode()
    assert gift(data.getvalue().decode())


WRONG = [
    (["qti"], "format", "must be one of moodle, gift"),
    (["gift", "--variants", "0"], "--variants", "must be a whole number from 1 to 50"),
    (["gift", "--variants", "51"], "--variants", "must be a whole number from 1 to 50"),
    (["gift", "--variants", "two"], "--variants", "must be a whole number from 1 to 50"),
    (["moodle", "--seed", "-1"], "--seed", "must be a whole number from 0 to 1000000"),
    (["moodle", "--seed", "1000001"], "--seed", "must be a whole number from 0 to 1000000"),
    (["moodle", "--items", "x-R1", "x-R9"], "--items", "must be ids of exercises"),
    (["gift", "--items", "x-ring-3"], "--items", "must name an exercise that this format can express"),
    (["gift", "--out", "/no/such/folder/file"], "--out", "must be a place one can write to"),
]


@pytest.mark.parametrize(("call", "field", "rule"), WRONG)
def test_a_wrong_call_is_told_what_holds(call: list[str], field: str, rule: str, capsys: Capture) -> None:
    assert complaint(capsys, "export", *call).startswith(f"dpsim: {field}: {rule}")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://learn.example", "https://learn.example"),
        ("https://learn.example:8443/dp/", "https://learn.example:8443/dp"),
        ("http://localhost:8501", "http://localhost:8501"),
        ("", ""),
    ],
)
def test_an_address_is_kept_without_its_last_slash(
    given: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSIM_BASE_URL", given)
    assert base_url() == kept


@pytest.mark.parametrize(
    "given",
    [
        *("learn.example", "http://learn.example", "https://", "javascript:alert(1)", "https://a b"),
        *("https://learn.example/?q=1", "https://learn.example/#a", "https://me:pw@learn.example"),
        *("https://learn.example/)", "http://127.0.0.1", f"https://{'a' * 200}"),
    ],
)
def test_what_is_no_address_is_refused(given: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("DPSIM_BASE_URL", given)
    with pytest.raises(InputError, match=r"^DPSIM_BASE_URL: must be https://"):
        base_url()
    assert "DPSIM_BASE_URL" in complaint(capsys, "export", "gift")
