"""The ranks' processes, kept warm between runs: starting torch takes seconds, a run a fraction of one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]  # where the processes find dpsim, wherever they run
IDLE_S = 240.0  # how long processes wait for a run

FOLDER = "DPSIM_LIVE_FOLDER"  # what a rank removes when its parent has died

Message = dict[str, Any]


class Process:
    """One rank's process: lines of JSON in and out, never blocking."""

    def __init__(self, folder: Path) -> None:
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it has no name, and lives as long as we do)
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        mine = {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(folder), FOLDER: str(folder)}
        alone = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}  # loopback, and a thread each
        self.popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "dpsim.live.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=os.environ | mine | alone,
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
    """Processes that wait for the next run, and the one folder of mode 0700 in which they and all libraries
    that they load may write. Only whoever holds the machine's turn may touch it."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self._folder: Path | None = None
        self._idle: threading.Timer | None = None
        self._change = threading.RLock()  # between whoever has the turn and the timer

    def take(self, count: int) -> tuple[list[Process], Path]:
        """`count` processes, those that are there first, and a fresh folder for a run."""
        with self._change:
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            if any(process.code() is not None for process in self.processes):
                self.close()
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="dpsim-live-"))
            while len(self.processes) < count:
                self.processes.append(Process(self._folder))
            return self.processes[:count], Path(tempfile.mkdtemp(prefix="run-", dir=self._folder))

    def give_back(self) -> None:
        """The run is over and all is well: the processes may wait for the next, but not for ever."""
        with self._change:
            for run in self._folder.glob("run-*") if self._folder else ():
                shutil.rmtree(run, ignore_errors=True)
            self._idle = threading.Timer(IDLE_S, self._end_idle)
            self._idle.daemon = True
            self._idle.start()

    def _end_idle(self) -> None:
        with self._change:
            if self._idle is threading.current_thread():  # nobody has taken them meanwhile
                self.close()

    def close(self) -> None:
        """End every process, and leave nothing of them."""
        with self._change:
            while self.processes:
                self.processes.pop().end()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None
