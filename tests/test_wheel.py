"""The distribution: a wheel carries all that the app needs, and its `app` command works outside the clone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, expect
from serving import ROOT, free_port, served


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel holds, as an installation would."""
    made = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(made)], check=True, capture_output=True)
    (wheel,) = made.glob("dpsim_learn-*.whl")
    ZipFile(wheel).extractall(made / "site")
    return made / "site"


def test_the_wheel_carries_the_app_its_theme_and_its_content(installed: Path) -> None:
    for part in ("app.py", "pages/step.py", ".streamlit/config.toml"):
        assert (installed / "dpsim" / "_app" / part).read_text("utf-8") == (ROOT / part).read_text("utf-8")
    for folder in ("content", "ui", "credential"):
        here = {p.relative_to(ROOT) for p in (ROOT / "dpsim" / folder).rglob("*") if p.is_file()}
        there = {p.relative_to(installed) for p in (installed / "dpsim" / folder).rglob("*") if p.is_file()}
        assert {p for p in here if "__pycache__" not in p.parts} == there
    (names,) = installed.glob("*.dist-info/entry_points.txt")
    assert "dpsim = dpsim.cli:main" in names.read_text("utf-8")


@pytest.mark.browser
def test_the_app_command_works_outside_the_clone(installed: Path, chromium: Browser, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "dpsim", "app", "--address", "127.0.0.1", "--port", str(port)]
    elsewhere = os.environ | {"PYTHONPATH": str(installed)}
    with served(command, port, tmp_path / "log", tmp_path, elsewhere) as url:
        page = chromium.new_page()
        page.goto(url)
        expect(page.locator(".stage .say h2")).to_have_text("Before the step", timeout=30_000)
        page.close()
