"""A rank: `python -m dpsim.live.worker` takes a job per line on standard input, and answers in lines.

Nothing that comes in is ever run as code: a job is JSON that becomes a checked scenario. The process ends
when its standard input does, which is when its parent does, however that happens. (The signal that Linux can
send on a parent's death comes already when the thread ends that started the process, and a server's threads
come and go.)
"""

from __future__ import annotations

import json
import os
import platform
import queue
import shutil
import sys
import threading
from datetime import timedelta
from typing import IO, Any

from dpsim.checks import InputError, shown
from dpsim.live.board import JOINING, Board
from dpsim.live.errors import LiveError
from dpsim.live.job import from_line
from dpsim.live.pool import FOLDER

TIMEOUT = timedelta(seconds=600)  # of one collective; the launcher's deadline is shorter


def main() -> None:
    """Say what this process has, then do jobs until there are no more."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print what they like; only our own lines may reach the launcher
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        found = ready()
        _load_compiler()
        _say(out, ready=found)
    except Exception as error:  # a broken torch may raise anything
        _say(out, error={"kind": "torch", "text": f"{type(error).__name__}: {error}"})
        return
    while True:
        line = lines.get()
        try:
            _say(out, result=_work(line))
        except Exception as error:  # a rank says why it fails, whatever it is
            failure = explanation(error)
            _say(out, error=failure)
            if failure["kind"] != "input":
                return  # who knows what state this process is in


def _read(lines: queue.Queue[str]) -> None:
    """Pass lines on; at their end, end at once, whatever is going on."""
    for line in sys.stdin:
        lines.put(line)
    if FOLDER in os.environ:
        shutil.rmtree(os.environ[FOLDER], ignore_errors=True)
    os._exit(0)


def _say(out: IO[str], **message: Any) -> None:
    out.write(json.dumps(message, allow_nan=False) + "\n")
    out.flush()


def ready() -> dict[str, Any]:
    """This process and what torch finds on this machine."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)  # one process per rank is the parallelism here
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "pid": os.getpid(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gloo": dist.is_available() and dist.is_gloo_available(),
        "nccl": dist.is_available() and dist.is_nccl_available(),
        "cuda": devices,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _load_compiler() -> None:
    """The first optimizer makes torch load its compiler, which takes seconds: they belong to starting."""
    import torch

    torch.optim.SGD([torch.zeros(1)], 0.1)


def _work(line: str) -> dict[str, Any]:
    import torch
    import torch.distributed as dist

    from dpsim.live.loop import Loop

    job, rank, folder = from_line(line)
    board = Board(folder / "board")
    board.post(rank, JOINING)
    device = torch.device(job.devices[rank])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    size = job.scenario.world_size
    made: Any = dist  # whose types do not know the store
    store = made.FileStore(str(folder / "store"), size)
    dist.init_process_group(job.backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    try:
        return Loop(job, rank, board).run()
    finally:
        dist.destroy_process_group()


def explanation(error: Exception) -> dict[str, Any]:
    """An error as data; `kind` tells the launcher whom to believe when several ranks have one."""
    if isinstance(error, LiveError):
        return {"kind": "live", "text": error.rule}
    if isinstance(error, InputError):
        value = error.value if isinstance(error.value, (int, float, str, type(None))) else shown(error.value)
        return {"kind": "input", "field": error.field, "rule": error.rule, "value": value}
    text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    low = text.lower()
    if isinstance(error, MemoryError) or "out of memory" in low or "can't allocate memory" in low:
        return {"kind": "memory", "text": text}
    lost = "gloo" in low or "connection" in low or type(error).__name__.startswith("Dist")
    return {"kind": "lost" if lost else "bug", "text": text}


if __name__ == "__main__":
    main()
