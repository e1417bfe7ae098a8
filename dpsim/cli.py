"""The command line. Every subcommand takes ``--json`` and then prints one JSON object; errors are one line
on standard error and exit code 2. Other programs read this: keys are only ever added."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dpsim import app, commands
from dpsim.checks import InputError
from dpsim.commands import Report
from dpsim.scenario import COLLECTIVES, SCHEMES


class _UsageError(Exception):
    """The call does not fit what --help says."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see {self.prog} --help)")


def _readable(report: Report, indent: str = "") -> str:
    """The report for a terminal: a line per key, six digits, nothing that is empty."""
    lines = []
    for key, value in report.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{key}:", _readable(value, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            rows = [list(value[0]), *(entry.values() for entry in value)]
            lines += [f"{indent}{key}:", *(f"{indent}  " + "  ".join(map(_rounded, row)) for row in rows)]
        elif value or not (key in ("undefined", "hangs") or isinstance(value, dict)):
            lines.append(f"{indent}{key}: {_rounded(value)}")
    return "\n".join(lines)


def _rounded(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_rounded, value))}]"
    if value is None:
        return "undefined"
    return str(float(f"{value:.6g}")) if isinstance(value, float) else str(value)


def _number(written: str) -> int | float | str:
    """What was typed, as a number if it is one; the check that follows names the field and the rule."""
    for kind in (int, float):
        try:
            return kind(written) if "_" not in written else written
        except ValueError:
            continue
    return written


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dpsim", description="See, run and check synchronous data-parallel training.")
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    def command(name: str, run: Callable[[argparse.Namespace], Report | None], what: str) -> _Parser:
        sub = subparsers.add_parser(name, help=what, description=what)
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.set_defaults(run=run)
        return sub

    sub = command("reduce", commands.reduce_command, "the five reductions of given counts and gradient sums")
    sub.add_argument("file", metavar="FILE|-", help="JSON with valid_tokens and gradient_sums")
    sub = command("schedule", commands.schedule_command, "the transfers of an all-reduce")
    sub.add_argument("algorithm", metavar="|".join(COLLECTIVES))
    sub.add_argument("--world-size", type=_number, required=True, metavar="R")
    sub.add_argument("--elements", type=_number, required=True, metavar="E")
    sub = command("cost", commands.cost_command, "the closed form of what an all-reduce costs")
    sub.add_argument("algorithm", metavar="|".join(COLLECTIVES))
    sub.add_argument("--world-size", type=_number, required=True, metavar="R")
    sub.add_argument("--bytes", type=_number, required=True, metavar="B")
    sub.add_argument("--latency", type=_number, required=True, metavar="S", help="seconds a message")
    sub.add_argument("--bandwidth", type=_number, required=True, metavar="BYTES_PER_S")
    told = command("beats", commands.beats_command, "a step told as text, beat by beat")
    told.add_argument("scenario", metavar="PRESET|FILE.toml|TRACE.json")
    simulated = command("simulate", commands.simulate_command, "simulate a scenario")
    simulated.add_argument("scenario", metavar="PRESET|FILE.toml")
    live = command(
        "live",
        commands.live_command,
        "run a scenario on this machine's devices, a process per rank; one rank of it under torchrun",
    )
    live.add_argument("scenario", metavar="PRESET|FILE.toml")
    live.add_argument("--devices", default="auto", metavar="auto|cpu|cuda")
    live.add_argument("--mode", default="chunks", metavar="chunks|library|ddp")
    live.add_argument("--dtype", metavar="float32|float64")
    live.add_argument("--ranks", type=_number, metavar="R")
    for sub in (simulated, live):
        sub.add_argument("--reduction", metavar="NAME", help=", ".join(SCHEMES))
        sub.add_argument("--steps", type=_number, metavar="n")
        sub.add_argument("--out", metavar="TRACE.json", help="save the trace")
        sub.add_argument("--perfetto", metavar="FILE", help="save the events for Chrome or Perfetto")
    for sub in (simulated, told):
        sub.add_argument("--hardware", metavar="NAME", help="predict it on hardware that is kept")
    sub = command(
        "calibrate",
        commands.calibrate_command,
        "measure messages and passes on this machine, and keep what they cost",
    )
    sub.add_argument("--name", default="this-machine", help="of the entry (default: %(default)s)")
    sub.add_argument("--devices", default="auto", metavar="auto|cpu|cuda")
    sub.add_argument("--ranks", type=_number, default=2, metavar="R")
    sub.add_argument("--dtype", metavar="float32|float64")
    command("hardware", commands.hardware_command, "the hardware that is kept")
    command("devices", commands.devices_command, "what live runs have on this machine")
    command("presets", commands.presets_command, "the presets by name and title")
    sub = command(
        "items", commands.items_command, "check files with exercises of your own, and show a variant of each"
    )
    sub.add_argument("files", nargs="+", metavar="FILE.yaml")
    sub = command("app", commands.app_command, "start the app")
    sub.add_argument("--port", type=_number, default=8501)
    sub.add_argument("--address", default="localhost", help="where it listens")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no minus sign gets its escape
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else arguments
    try:
        args = _parser().parse_args(given)
        report = args.run(args)
    except _UsageError as error:
        print(f"dpsim: {InputError('arguments', str(error), ' '.join(given))}", file=sys.stderr)
        return 2
    except InputError as error:
        print(f"dpsim: {error}", file=sys.stderr)
        return 2
    if report is None:  # a rank whose report is another's
        return 0
    if args.json:
        text = json.dumps(report, allow_nan=False)
    else:
        text = report["text"] if args.command in ("beats", "items") else _readable(report)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # whoever read us has had enough, as in `dpsim beats … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if args.command == "app":
        return app.run(report["command"])
    return 1 if report.get("mistakes") else 0
