"""How fast the core is: the clock against SimPy, a ring of 1,024 ranks, the import, the presets.

`python benchmarks/core.py` prints one Markdown table. Every ratio is against the baseline named in its row,
measured in the same run; seconds are medians.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from statistics import median

import numpy as np
import simpy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dpsim.collectives import build, even_bounds
from dpsim.forms import preset
from dpsim.scenario import Network
from dpsim.simulate import simulate
from dpsim.timeline import clock
from dpsim.trace_files import from_json

NETWORK = Network(latency_s=5e-6, bandwidth_bytes_per_s=10e9)
ELEMENT_BYTES = 4.0
SAME_S = 1e-9  # how far the two end times may lie apart
AIM_SPEEDUP, AIM_LARGE_S, AIM_IMPORT_S = 50, 1.0, 0.3
HEAVY = ("torch", "streamlit", "plotly")
RUNS, SHORT_RUNS = 5, 10

Row = tuple[str, str, str, str, str]


def main() -> None:
    """Measure everything and print the table."""
    rows = [("measured", "dpsim", "baseline", "ratio", "aim"), ("---",) * 5]
    for size in (64, 256):
        rows += against_simpy(size)
    rows += [*large_ring(1024), importing()]
    rows += [presets(name) for name in ("ring-8", "ring-64", "first-screen")]
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, SimPy {simpy.__version__}"
    print(f"{versions}, {os.cpu_count()} cores ({platform.machine()})\n")
    for row in rows:
        print("|", " | ".join(row), "|")


def seconds(runs: int, *works: Callable[[], object]) -> list[float]:
    """The median time of each work. They take turns, so that a slow moment of the machine meets them all."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return [median(taken) for taken in times]


def verdict(aim: str, reached: bool) -> str:
    """The aim, and whether it was reached."""
    return f"{aim}: {'reached' if reached else 'MISSED'}"


def against_simpy(size: int) -> list[Row]:
    """Messages per second on a ring whose chunks and ready times are uneven, against the same in SimPy."""
    elements = 1000 * size + size // 2
    ready = np.array([1e-6 * (r * 7 % 11) for r in range(size)])
    schedule = build("ring", size, elements)
    bounds = even_bounds(elements, size)
    cost_s = NETWORK.latency_s + np.diff(bounds) * ELEMENT_BYTES / NETWORK.bandwidth_bytes_per_s

    ours = float(clock(schedule, NETWORK, ELEMENT_BYTES, ready)[1].max())
    theirs = simpy_ring(ready.tolist(), cost_s.tolist())
    if abs(ours - theirs) > SAME_S:
        raise SystemExit(f"{size} ranks: dpsim's clock ends at {ours} s, SimPy at {theirs} s")

    messages = len(schedule.message_starts)
    simpy_s, clock_s, both_s = seconds(
        RUNS,
        lambda: simpy_ring(ready.tolist(), cost_s.tolist()),
        lambda: clock(schedule, NETWORK, ELEMENT_BYTES, ready),
        lambda: clock(build("ring", size, elements), NETWORK, ELEMENT_BYTES, ready),
    )
    return [
        (
            f"ring, {size} ranks, {what}",
            f"{messages / taken / 1e6:.2f} M messages/s",
            f"SimPy {messages / simpy_s / 1e6:.3f} M messages/s",
            f"{simpy_s / taken:.0f} times as fast",
            verdict(f"at least {AIM_SPEEDUP} times", simpy_s / taken >= AIM_SPEEDUP),
        )
        for what, taken in (("clock", clock_s), ("build and clock", both_s))
    ]


def simpy_ring(ready_s: list[float], cost_s: list[float]) -> float:
    """When a ring all-reduce ends: a process per rank, a sending and a receiving port each.

    `ready_s` [R] is when a rank may start; until then its receiving port is taken. `cost_s` [C] is what a
    message with that chunk takes.
    """
    env = simpy.Environment()
    size = len(ready_s)
    rounds = 2 * (size - 1)
    sending = [simpy.Resource(env) for _ in range(size)]
    receiving = [simpy.Resource(env) for _ in range(size)]
    arrived = [[env.event() for _ in range(rounds)] for _ in range(size)]

    def rank(r: int) -> Generator[simpy.Event, object, None]:
        with receiving[r].request() as not_ready:
            yield not_ready
            yield env.timeout(ready_s[r])
        right = (r + 1) % size
        for n in range(rounds):
            if n > 0:
                yield arrived[r][n - 1]
            with sending[r].request() as send, receiving[right].request() as receive:
                yield send
                yield receive
                yield env.timeout(cost_s[(r - n) % size])
            arrived[right][n].succeed()

    for r in range(size):
        env.process(rank(r))
    env.run()
    return float(env.now)


def large_ring(size: int) -> list[Row]:
    """Seconds to build and to clock one large ring, against copying its columns once."""
    ready = np.zeros(size)
    schedule = build("ring", size, 1000 * size)
    columns = (schedule.round, schedule.source, schedule.destination, schedule.chunk, schedule.op)
    copy_s, build_s, both_s = seconds(
        RUNS,
        lambda: [column.copy() for column in columns],
        lambda: build("ring", size, 1000 * size),
        lambda: clock(build("ring", size, 1000 * size), NETWORK, ELEMENT_BYTES, ready),
    )
    what = f"ring, {size} ranks, {len(schedule.round) / 1e6:.1f} M messages"
    baseline = f"copy of its columns {copy_s:.3f} s"
    aim = verdict(f"under {AIM_LARGE_S:g} s", both_s < AIM_LARGE_S)
    return [
        (f"{what}, build", f"{build_s:.3f} s", baseline, f"{build_s / copy_s:.1f} times", ""),
        (f"{what}, build and clock", f"{both_s:.3f} s", baseline, f"{both_s / copy_s:.1f} times", aim),
    ]


def importing() -> Row:
    """Seconds of `import dpsim` in a fresh interpreter, against `import numpy` alone."""
    fresh_import("dpsim")  # writes the byte code
    pairs = [(fresh_import("dpsim"), fresh_import("numpy")) for _ in range(SHORT_RUNS)]
    ours, theirs = median(p[0] for p in pairs), median(p[1] for p in pairs)
    return (
        f"import dpsim, without {', '.join(HEAVY)}",
        f"{ours:.3f} s",
        f"import numpy {theirs:.3f} s",
        f"{ours / theirs:.2f} times",
        verdict(f"under {AIM_IMPORT_S:g} s", ours < AIM_IMPORT_S),
    )


def fresh_import(module: str) -> float:
    """Seconds the import takes in a new interpreter; it must not load a heavy module."""
    code = f"""
import time
start = time.perf_counter()
import {module}
taken = time.perf_counter() - start
import json, sys
print(json.dumps([taken, sorted(set({HEAVY!r}) & set(sys.modules))]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    taken, loaded = json.loads(done.stdout)
    if loaded:
        raise SystemExit(f"import {module} loads {', '.join(loaded)}")
    return float(taken)


def presets(name: str) -> Row:
    """Milliseconds of `simulate` on a preset, against reading the same trace back."""
    scenario = preset(name)
    text = simulate(scenario).to_json()
    ours, theirs = seconds(SHORT_RUNS, lambda: simulate(scenario), lambda: from_json(text))
    baseline = f"from_json {theirs * 1e3:.1f} ms"
    return f"simulate {name}", f"{ours * 1e3:.1f} ms", baseline, f"{ours / theirs:.2f} times", ""


if __name__ == "__main__":
    main()
