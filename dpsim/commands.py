"""What each command does: from the arguments of the call to the report that it prints."""

from __future__ import annotations

import argparse
import io
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dpsim import app, hardware, network
from dpsim.beats import beats, beats_as_text
from dpsim.checks import InputError, choice, decoded, number, read_text, whole
from dpsim.collectives import OPS, build
from dpsim.edits import with_world_size
from dpsim.exports import export
from dpsim.forms import preset, preset_names, preset_or_file
from dpsim.reduce_input import reduce_report
from dpsim.report import calibration_report, live_report, trace_report
from dpsim.scenario import COLLECTIVES, MAX_RANKS, MAX_STEPS, SCHEMES, Scenario
from dpsim.simulate import simulate
from dpsim.trace import MAX_EVENTS, Trace
from dpsim.trace_files import load, save, to_perfetto

MAX_INPUT_BYTES = 50_000_000

Report = dict[str, Any]


def reduce_command(args: argparse.Namespace) -> Report:
    if args.file == "-":
        if sys.stdin is None:
            raise InputError("input", "must be open", "no standard input")
        data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        return reduce_report(decoded("input", data, MAX_INPUT_BYTES, "standard input"))
    return reduce_report(read_text("FILE", args.file, MAX_INPUT_BYTES))


def schedule_command(args: argparse.Namespace) -> Report:
    choice("algorithm", args.algorithm, COLLECTIVES)
    size = whole("--world-size", args.world_size, 1, MAX_RANKS)
    elements = whole("--elements", args.elements, 1, 10**12)
    schedule = build(args.algorithm, size, elements)
    if len(schedule.round) > MAX_EVENTS:
        rule = f"must give at most {MAX_EVENTS} transfers; {args.algorithm} has {len(schedule.round)}"
        raise InputError("--world-size", rule, size)
    columns = (schedule.round, schedule.source, schedule.destination, schedule.chunk, schedule.op)
    names = ("round", "source", "destination", "chunk")
    transfers = [
        dict(zip(names, row[:4], strict=True)) | {"op": OPS[row[4]]}
        for row in zip(*(c.tolist() for c in columns), strict=True)
    ]
    bounds = schedule.bounds.tolist()
    return {
        "algorithm": args.algorithm,
        "world_size": size,
        "elements": elements,
        "chunks": [list(pair) for pair in itertools.pairwise(bounds)],
        "transfers": transfers,
        "rounds": schedule.rounds,
        "bytes_sent_per_rank": [int(b) for b in schedule.bytes_sent(4.0)],
    }


def cost_command(args: argparse.Namespace) -> Report:
    result = network.cost(
        choice("algorithm", args.algorithm, COLLECTIVES),
        whole("--world-size", args.world_size, 1, MAX_RANKS),
        number("--bytes", args.bytes, 0, 1e18, open_low=True),
        number("--latency", args.latency, 0, 3600),
        number("--bandwidth", args.bandwidth, 0.001, 1e18),
    )
    return {
        "algorithm": args.algorithm,
        "world_size": result.world_size,
        "time_s": result.time_s,
        "algbw_bytes_per_s": result.algbw_bytes_per_s,
        "busbw_bytes_per_s": result.busbw_bytes_per_s,
        "rounds": result.rounds,
        "bytes_sent_per_rank": result.bytes_sent.tolist(),
    }


def simulate_command(args: argparse.Namespace) -> Report:
    scenario, where = _on_hardware(_chosen(args), args)
    return _kept(simulate(scenario), args) | where


def live_command(args: argparse.Namespace) -> Report | None:
    from dpsim.live.launch import run_live  # where there are no live runs, everything else still works
    from dpsim.live.torchrun import under_torchrun

    if under_torchrun():
        return _rank(args)
    scenario = _chosen(args)
    if args.ranks is not None:
        scenario = replace(scenario, world_size=whole("--ranks", args.ranks, 1, MAX_RANKS))

    with _progress() as say:
        trace = run_live(scenario, mode=args.mode, dtype=args.dtype, devices=args.devices, on_progress=say)
    return _kept(trace, args) | live_report(trace)


def calibrate_command(args: argparse.Namespace) -> Report:
    from dpsim.live.calibrate import calibrate

    hardware.place(args.name)  # nobody waits for what cannot be kept
    chosen = {"ranks": args.ranks, "dtype": args.dtype, "devices": args.devices}
    with _progress() as say:
        found = calibrate(args.name, **chosen, on_progress=say)
    path = hardware.save(found.hardware)
    points = {"messages": found.messages, "forward": found.forward, "backward": found.backward}
    return calibration_report(found.hardware, points) | {"kept": str(path)}


def hardware_command(_: argparse.Namespace) -> Report:
    kept = {name: hardware.to_dict(hardware.load(name)) for name in hardware.names()}
    return {"folder": str(hardware.folder()), "hardware": kept}


@contextmanager
def _progress() -> Iterator[Callable[[Any], None]]:
    """Tells on a terminal how far a live run is, in one line that is gone when it ends."""

    def say(progress: Any) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{progress.text} ", end="", file=sys.stderr, flush=True)

    try:
        yield say
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)


def _on_hardware(scenario: Scenario, args: argparse.Namespace) -> tuple[Scenario, Report]:
    """The scenario with the costs of the hardware that the call names, and what the answer says of it."""
    if args.hardware is None:
        return scenario, {}
    return hardware.predicted(scenario, hardware.load(args.hardware)), {"hardware": args.hardware}


def _rank(args: argparse.Namespace) -> Report | None:
    """One rank of a live run that torchrun has started; the report is rank 0's."""
    from dpsim.live.torchrun import Call, run_rank

    def keep(trace: Trace, hosts: list[Report]) -> Report:
        return _kept(trace, args) | live_report(trace) | {"clock": trace.machine["clock"], "hosts": hosts}

    words = " ".join(f"{name}={value}" for name, value in vars(args).items() if name != "run")
    scenario = partial(fitted, args)
    return run_rank(Call(words, scenario, args.mode, args.dtype, args.devices, keep))


def fitted(args: argparse.Namespace, ranks: int) -> Scenario:
    """The scenario of the call for the ranks that torchrun has started. A preset is fitted to them; a file
    says itself how many it is for, unless the call overrules it."""
    scenario = _chosen(args)
    rule = f"must be {ranks}, as many ranks as torchrun has started"
    if args.ranks is not None and args.ranks != ranks:
        raise InputError("--ranks", rule, args.ranks)
    bound = args.ranks is None and args.scenario not in preset_names()
    if bound and scenario.world_size != ranks:
        rule += f"; --ranks {ranks} fits the scenario to them"
        raise InputError("world_size", rule, scenario.world_size)
    return with_world_size(scenario, ranks)


def devices_command(_: argparse.Namespace) -> Report:
    from dpsim.live.errors import LiveError
    from dpsim.live.launch import look

    try:
        found = look()
    except LiveError as error:
        return {"live": False, "why": error.rule, "devices": []}
    return {
        "live": True,
        "why": found.chosen.hardware,
        "devices": list(found.machine.cuda) or ["cpu"],
        "backend": found.chosen.backend,
        "dtype": found.chosen.dtype,
        "probe": found.probe,
        "cores": found.machine.cores,
        "versions": {"python": found.machine.python, "torch": found.machine.torch},
    }


def _chosen(args: argparse.Namespace) -> Scenario:
    """The scenario of the call, with what the call changes in it."""
    scenario = preset_or_file(args.scenario)
    if args.reduction is not None:
        scenario = replace(scenario, reduction=choice("--reduction", args.reduction, SCHEMES))
    if args.steps is not None:
        scenario = replace(scenario, steps=whole("--steps", args.steps, 1, MAX_STEPS))
    return scenario


def _kept(trace: Trace, args: argparse.Namespace) -> Report:
    """The report on a trace, which is saved first where that is wanted."""
    report = trace_report(trace)
    if args.out is not None:
        write("--out", args.out, lambda: save(trace, args.out))
    if args.perfetto is not None:
        write(
            "--perfetto", args.perfetto, lambda: Path(args.perfetto).write_text(to_perfetto(trace), "utf-8")
        )
    return report


def write(option: str, path: str, work: Callable[[], object]) -> None:
    """Do the work that writes to `path`; InputError names the option that gave it."""
    try:
        work()
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or "no such path"
        raise InputError(option, f"must be a place one can write to ({reason})", path) from None


def presets_command(_: argparse.Namespace) -> Report:
    return {"presets": [{"name": n, "title": preset(n).title} for n in preset_names()]}


def beats_command(args: argparse.Namespace) -> Report:
    where: Report = {}
    if args.scenario.endswith(".json"):
        if args.hardware is not None:
            raise InputError("--hardware", "must be left out where a saved trace is told", args.hardware)
        trace = load(args.scenario)
    else:
        scenario, where = _on_hardware(preset_or_file(args.scenario), args)
        trace = simulate(scenario)
    told = beats(trace)
    return where | {
        "scenario": trace.scenario.name,
        "beats": [
            {
                "id": b.id,
                "step": b.step,
                "phase": b.phase,
                "title": b.title,
                "moment_s": b.moment_s,
                "sentence": b.sentence,
                "arithmetic": list(b.arithmetic),
                "details": list(b.details),
            }
            for b in told
        ],
        "text": beats_as_text(told),
    }


def export_command(args: argparse.Namespace) -> Report:
    made = export(args.format, args.items or (), args.variants, args.seed)
    if args.out is not None:
        write("--out", args.out, lambda: Path(args.out).write_bytes(made.text.encode()))
        return made.report | {"file": args.out}
    if isinstance(sys.stdout, io.TextIOWrapper):  # a file for others, whatever this terminal speaks
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    return made.report | {"text": made.text.rstrip("\n")}


def items_command(args: argparse.Namespace) -> Report:
    from dpsim.items_report import items_report  # only who writes exercises waits for all that they may name
    from dpsim.own_items import MOST_BYTES

    return items_report({path: read_text("FILE", path, MOST_BYTES) for path in args.files})


def app_command(args: argparse.Namespace) -> Report:
    port = whole("--port", args.port, 1, 65535)
    return {"url": f"http://{args.address}:{port}", "command": app.command(args.address, port)}
