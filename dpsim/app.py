"""Starting the app: from a clone, or from an installed wheel that carries the app's files with it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from dpsim.checks import InputError

PACKAGE = Path(__file__).resolve().parent


def folder() -> Path:
    """Where app.py, pages/ and .streamlit/ lie: inside the installed package, else beside it in a clone."""
    installed = PACKAGE / "_app"
    return installed if installed.is_dir() else PACKAGE.parent


def command(address: str, port: int) -> list[str]:
    """The command that serves the app at `address` and `port`."""
    if find_spec("streamlit") is None:
        raise InputError("app", "needs the package streamlit to be installed", "no streamlit")
    options = ["--server.address", address, "--server.port", str(port), "--server.headless", "true"]
    return [sys.executable, "-m", "streamlit", "run", str(folder() / "app.py"), *options]


def run(started: list[str]) -> int:
    """Serve until interrupted. Streamlit reads .streamlit/config.toml from the folder it starts in."""
    try:
        return subprocess.call(started, cwd=folder())
    except KeyboardInterrupt:
        return 0
