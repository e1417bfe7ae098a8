"""The ranks' processes, kept warm between runs: starting torch takes seconds, a run a fraction of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]  # where the processes find dpsim, wherever they run
IDLE_S = 240.0  # less than a process itself would wait, so that none is met on its way out

Message = dict[str, Any]


class Process:
    """One rank's process: lines of JSON in and out, never blocking."""

    def __init__(self) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it has no name, and lives as long as we do)
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        quiet = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
        self.popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "dpsim.live.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=os.environ | quiet,
            start_new_session=True,  # Ctrl-C is the launcher's to handle
            bufsize=0,
        )
        self.ready: Message | None = None
        self._out = b""
        self._in = bytearray()
        for pipe in (self.popen.stdin, self.popen.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    def send(self, line: str) -> None:
        """Hand over a line; it is written as the process takes it."""
        self._in += line.encode()

    def messages(self) -> list[Message]:
        """Write what can be written, and return what has come since."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        try:
            while self._in and (written := self.popen.stdin.write(self._in)):
                del self._in[:written]
        except BrokenPipeError:
            self._in.clear()  # it is dead, which whoever watches it will see
        while block := self.popen.stdout.read(1 << 20):  # None: nothing there yet, empty: it has ended
            self._out += block
        *lines, self._out = self._out.split(b"\n")
        return [json.loads(line) for line in lines]

    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        return self.popen.poll()

    def stopped(self) -> bool:
        """Whether the process has been stopped, as by SIGSTOP; where the system cannot say, it has not."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in ("T", "t")

    def last_words(self) -> str:
        """The last line it wrote to standard error."""
        self.log.seek(0)
        lines = self.log.read().decode("utf-8", "replace").split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")

    def end(self) -> None:
        """Kill the process, whatever it is doing, and leave nothing of it."""
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.log):
            assert pipe is not None
            pipe.close()


class Pool:
    """Processes that wait for the next run. Only whoever holds the machine's turn may touch it."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self._used = time.monotonic()

    def take(self, count: int) -> list[Process]:
        """`count` processes, those that are there first."""
        if time.monotonic() - self._used > IDLE_S or any(p.code() is not None for p in self.processes):
            self.close()
        while len(self.processes) < count:
            self.processes.append(Process())
        return self.processes[:count]

    def give_back(self) -> None:
        """The run is over and all is well: they may wait for the next."""
        self._used = time.monotonic()

    def close(self) -> None:
        """End every process."""
        while self.processes:
            self.processes.pop().end()
