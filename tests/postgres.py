"""A PostgreSQL server of the tests' own, in a folder of its own, reached through a socket there alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LONGEST_START_S = 60.0
# Nothing here has to survive a power cut, and nobody comes over the network.
SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=")
NO_POSTGRES = "no PostgreSQL: install postgresql, or put its initdb on the path"


def postgres_programs() -> Path | None:
    """The folder that holds `initdb` and `postgres`, on the path or where Debian puts them; None without."""
    named = shutil.which("initdb")
    found = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].resolve().parent if found else None


@contextmanager
def served_postgres(programs: Path) -> Iterator[str]:
    """An empty PostgreSQL server while the block runs; the URL of its database."""
    with tempfile.TemporaryDirectory(prefix="dpsim-pg-", dir="/tmp") as made:  # a socket's path must be short
        folder, data = Path(made), Path(made) / "data"
        as_whom: dict[str, Any] = {"cwd": made, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}}
        if os.geteuid() == 0:  # it refuses to run as root
            as_whom |= {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(folder, "postgres", "postgres")
        options = ["-D", str(data), "-U", "dpsim", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([programs / "initdb", *options], check=True, capture_output=True, **as_whom)
        options = ["-D", str(data), "-k", made, *(part for s in SETTINGS for part in ("-c", s))]
        with (folder / "log").open("wb") as log:
            command = [programs / "postgres", *options]
            server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, **as_whom)
        try:
            _wait(folder, server)
            yield f"postgresql+psycopg://dpsim@/postgres?host={made}"
        finally:
            server.send_signal(signal.SIGINT)  # its fast shutdown
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait(folder: Path, server: subprocess.Popen[bytes]) -> None:
    """Return once the server takes connections; raise with its log if it does not."""
    end = time.monotonic() + LONGEST_START_S
    while time.monotonic() < end and server.poll() is None:
        said = (folder / "log").read_text("utf-8", "replace")
        if "ready to accept connections" in said:
            return
        time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL does not start:\n{(folder / 'log').read_text('utf-8', 'replace')}")
