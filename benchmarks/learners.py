"""Thirty learners at once in the lab: how long the answer to a change takes, and what a session costs.

`python benchmarks/learners.py` opens thirty browser-like sessions, each a websocket that speaks Streamlit's
own protocol. Every learner acts every two to four seconds: three of four times a step on the stage, else a
change of a control. The baseline is one learner alone on a server of its own; then thirty, as this app is set
and with Streamlit's garbage collection after every run, which this app switches off.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from serving import free_port, served
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

LEARNERS = 30
SECONDS = 40
AIM_MEDIAN_S, AIM_P95_S = 0.1, 0.3
STEPS = ("start", "scatter", "forward", "backward", "allreduce.b0.r0", "barrier", "optimizer")


@dataclass
class Learner:
    """One session: its socket, the ids of what it uses, and how long every answer took."""

    socket: ClientConnection
    chance: random.Random
    ids: dict[str, str] = field(default_factory=dict)
    fragment: str = ""
    ranks: int = 4
    changes_s: list[float] = field(default_factory=list)
    steps_s: list[float] = field(default_factory=list)

    async def ask(self, message: BackMsg) -> float:
        """Send a message; the seconds until its script run has ended."""
        begun = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg.FromString(await self.socket.recv())
            kind = answer.WhichOneof("type")
            if kind == "delta":
                self.learn(answer)
            if kind == "script_finished":
                return time.perf_counter() - begun

    def learn(self, message: ForwardMsg) -> None:
        """Note the ids of the widgets that are used here."""
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind == "number_input" and element.number_input.label == "Ranks":
            self.ids["ranks"] = element.number_input.id
        if kind == "bidi_component" and element.bidi_component.component_name.endswith("dpsim_stage"):
            self.ids["stage"] = element.bidi_component.id
            self.fragment = message.delta.fragment_id

    def message(self, beat: str | None = None) -> BackMsg:
        """The message of a browser whose controls say what this learner has chosen."""
        message = BackMsg()
        run = message.rerun_script
        run.page_name = "lab"
        if "ranks" in self.ids:
            run.widget_states.widgets.add(id=self.ids["ranks"], double_value=self.ranks, int_value=self.ranks)
        if beat is not None:
            run.fragment_id = self.fragment
            run.widget_states.widgets.add(id=self.ids["stage"], json_value=json.dumps({"beat": beat}))
        return message

    async def act(self) -> None:
        """A step on the stage, or more or fewer ranks."""
        if self.chance.random() < 0.75:
            self.steps_s.append(await self.ask(self.message(self.chance.choice(STEPS))))
        else:
            self.ranks = self.chance.choice([r for r in range(2, 9) if r != self.ranks])
            self.changes_s.append(await self.ask(self.message()))


async def learner(url: str, number: int, seconds: float) -> Learner:
    """One learner's lesson."""
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    async with connect(address, subprotocols=["streamlit"], max_size=None, proxy=None, origin=url) as socket:
        found = Learner(socket, random.Random(number))
        await asyncio.sleep(number * 0.2)
        await found.ask(found.message())
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            await asyncio.sleep(found.chance.uniform(2, 4))
            await found.act()
        return found


def resident_bytes(pid: int) -> int:
    """The memory that a process and its children hold now."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kilobytes) * 1024


def server_pid(port: int) -> int:
    """The process that was started to listen at this port."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"--server.port\0{port}" in (folder / "cmdline").read_text("utf-8"):
                return int(folder.name)
        except OSError:
            continue
    raise SystemExit("the server has gone")


def measure(count: int, collects: bool, folder: Path) -> tuple[list[Learner], float]:
    """So many learners on a fresh server; also how many bytes of memory each has cost."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    command += ["--runner.postScriptGC", str(collects).lower()]
    with served(command, port, folder / "server.log", ROOT) as url:

        async def lesson(seconds: float, learners: int) -> list[Learner]:
            return await asyncio.gather(*(learner(url, n, seconds) for n in range(learners)))

        asyncio.run(lesson(1, 1))  # the server's own first run is nobody's
        before = resident_bytes(server_pid(port))
        found = asyncio.run(lesson(SECONDS, count))
        return found, (resident_bytes(server_pid(port)) - before) / count


def p95(values: list[float]) -> float:
    """The value that 95 % do not exceed."""
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def answer(values: list[float]) -> str:
    """Median and 95th percentile as text."""
    return f"{1000 * median(values):.0f} ms, {1000 * p95(values):.0f} ms"


def row(name: str, learners: list[Learner], each_bytes: float) -> tuple[str, ...]:
    """One line of the table."""
    changes = [s for one in learners for s in one.changes_s]
    steps = [s for one in learners for s in one.steps_s]
    reached = median(changes) <= AIM_MEDIAN_S and p95(changes) <= AIM_P95_S
    return (
        name,
        f"{len(changes)} / {len(steps)}",
        f"{answer(changes)} ({'reached' if reached else 'MISSED'})",
        answer(steps),
        f"{each_bytes / 1e6:.1f} MB",
    )


def main() -> None:
    """Measure everything and print the table."""
    rows: list[tuple[str, ...]] = [
        ("learners", "changes / steps", "a change: median, p95", "a step: median, p95", "a session")
    ]
    rows.append(("---",) * len(rows[0]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows.append(row("1, alone", *measure(1, False, folder)))
        rows.append(row(f"{LEARNERS}, as this app is set", *measure(LEARNERS, False, folder)))
        rows.append(row(f"{LEARNERS}, collecting after every run", *measure(LEARNERS, True, folder)))
    print(
        f"Streamlit {version('streamlit')}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; {SECONDS} s; "
        f"aims for a change: {1000 * AIM_MEDIAN_S:.0f} and {1000 * AIM_P95_S:.0f} ms"
    )
    for cells in rows:
        print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
