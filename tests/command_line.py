"""Calling the command line in this process, and reading its answers as strictly as a program does."""

from __future__ import annotations

import io
import json
import sys
from typing import Any, NoReturn

import pytest

from dpsim.cli import main

Capture = pytest.CaptureFixture[str]


def strict_json(text: str) -> Any:
    """`text` as JSON; NaN and Infinity, which Python would write and read, are no JSON."""

    def refused(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refused)


def answer(capture: Capture, *arguments: object) -> dict[str, Any]:
    """What a command answers under --json: one object on one line, nothing on standard error, exit code 0."""
    code = main([*map(str, arguments), "--json"])
    printed = capture.readouterr()
    assert (code, printed.err) == (0, ""), f"{code}: {printed.err}"
    assert printed.out.count("\n") == 1
    found = strict_json(printed.out)
    assert isinstance(found, dict)
    return found


def complaint(capture: Capture, *arguments: object) -> str:
    """The one line that a wrong call gets: exit code 2, nothing on standard output."""
    code = main([*map(str, arguments)])
    printed = capture.readouterr()
    assert (code, printed.out) == (2, "")
    line, newline, rest = printed.err.partition("\n")
    assert (newline, rest) == ("\n", "")
    assert line.isprintable()
    assert line.startswith("dpsim: ")
    assert "Traceback" not in line
    return line


def standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes | str) -> None:
    """Let a command find `content` on standard input, as UTF-8 that is read strictly."""
    data = content.encode() if isinstance(content, str) else content
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8", "strict"))
