"""The app on a free loopback port, and a real Chromium: for the tests and for the benchmark."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, build_opener

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Of a kind of page and the URL that serves it: what opens such a page.
Pages = Callable[[Any, str], Callable[..., Any]]
ROOT = Path(__file__).resolve().parents[1]
# The shell without windows takes two thirds of the time.
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One renderer for all tabs: it compiles Streamlit's scripts once, which is half of what a page costs.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
)
LONGEST_START_S = 60.0


def free_port() -> int:
    """A loopback port that nothing listens on now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served_app(log: Path, port: int | None = None, **settings: str) -> Iterator[str]:
    """Serve the app from this clone while the block runs, at a free port or at this one; its URL, without a
    slash at the end. `settings` are added to the environment."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    with served(command, port, log, ROOT, os.environ | settings) as url:
        yield url


@contextmanager
def served(
    command: list[str], port: int, log: Path, folder: Path, environment: dict[str, str] | None = None
) -> Iterator[str]:
    """Run a command that serves the app at a port, until the block ends; its URL."""
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            wait_for_health(url, server, log)
            yield url
        finally:
            os.killpg(server.pid, signal.SIGTERM)  # the command may have started the server as its child
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def wait_for_health(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the server answers; raise with what it has written if it does not."""
    direct = build_opener(ProxyHandler({}))
    end = time.monotonic() + LONGEST_START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            with direct.open(f"{url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the app does not answer at {url}:\n{log.read_text('utf-8', 'replace')}")


def chromium_path() -> str | None:
    """The browser: the one that DPSIM_CHROMIUM names, else the first one on the path."""
    named = os.environ.get("DPSIM_CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def no_chromium() -> str:
    """Why there is no browser, and what to do about it."""
    named = os.environ.get("DPSIM_CHROMIUM")
    if named:
        return f"DPSIM_CHROMIUM names no program: {named}"
    return f"no Chromium: set DPSIM_CHROMIUM or install one of {', '.join(CHROMIUM_NAMES)}"


@contextmanager
def launched_chromium(path: str) -> Iterator[Browser]:
    """A headless Chromium while the block runs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGS))
        try:
            yield browser
        finally:
            browser.close()
