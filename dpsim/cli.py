"""The command line. Every subcommand takes ``--json`` and then prints one JSON object; errors are one line
on standard error and exit code 2. Other programs read this: keys are only ever added."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dpsim import app, commands, credential_commands, operator_commands
from dpsim.checks import InputError
from dpsim.commands import Report
from dpsim.exports import FORMATS
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


@dataclass(frozen=True)
class _Command:
    """What a command does: its report, how that reads on a terminal, and the exit code that follows."""

    report: Callable[[argparse.Namespace], Report | None]
    text: Callable[[Report], str] = _readable
    code: Callable[[Report], int] = lambda _: 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dpsim", description="See, run and check synchronous data-parallel training.")
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    def command(
        name: str,
        run: Callable[[argparse.Namespace], Report | None],
        what: str,
        among: Any = subparsers,
        **more: Callable[[Report], Any],
    ) -> _Parser:
        sub: _Parser = among.add_parser(name, help=what, description=what)
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.set_defaults(run=_Command(run, **more))
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
    told = command(
        "beats",
        commands.beats_command,
        "a step told as text, beat by beat",
        text=lambda report: str(report["text"]),
    )
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
    sub = command(
        "export",
        commands.export_command,
        "the exercise bank as a file for learning platforms",
        text=lambda report: report["text"] if "text" in report else _readable(report),
    )
    sub.add_argument("format", metavar="|".join(FORMATS))
    sub.add_argument("--items", nargs="+", metavar="ID", help="these exercises only, such as x-R1")
    sub.add_argument("--variants", type=_number, default=1, metavar="K", help="of each, 1 to 50")
    sub.add_argument(
        "--seed", type=_number, default=1, metavar="S", help="of the first (default: %(default)s)"
    )
    sub.add_argument("--out", metavar="FILE", help="else it is printed")
    command("presets", commands.presets_command, "the presets by name and title")
    what = "the key that signs certificates, and former ones"
    keys = subparsers.add_parser("keys", help=what, description=what).add_subparsers(
        dest="action", required=True, parser_class=_Parser
    )
    made = command("new", credential_commands.new_command, "make a key in a new file", keys)
    what = "a new key; the former ones stay to verify with"
    rotated = command("rotate", credential_commands.rotate_command, what, keys)
    what = "what may be known of the keys: the DID document where DPSIM_BASE_URL is set"
    as_json = credential_commands.as_json
    shown = command("show", credential_commands.show_command, what, keys, text=as_json)
    for sub in (made, rotated, shown):
        sub.add_argument("file", metavar="FILE", help="PEM; the private key stands in it")
    sub = command(
        "verify",
        credential_commands.verify_command,
        "verify a certificate; exit code 0 valid, 1 not valid, 3 not verified",
        text=credential_commands.verification,
        code=lambda report: credential_commands.EXIT[report["outcome"]],
    )
    sub.add_argument("file", metavar="FILE", help="a certificate: .jwt, or .png with one in it")
    sub.add_argument("--keys", metavar="did.json", help="the issuer's keys (default: those of the settings)")
    sub.add_argument("--status", metavar="list.jwt", help="the issuer's status list")
    sub = command(
        "revoke", operator_commands.revoke_command, "revoke a certificate that was issued here, for good"
    )
    sub.add_argument("certificate", metavar="ID|FILE", help="its id, or its file (.jwt or .png)")
    sub = command(
        "results",
        operator_commands.results_command,
        "all tests that were handed in, as CSV for a gradebook",
        text=operator_commands.results_text,
    )
    sub.add_argument("--out", metavar="FILE.csv", help="where to write them (default: standard output)")
    sub = command(
        "items",
        commands.items_command,
        "check files with exercises of your own, and show a variant of each",
        text=lambda report: str(report["text"]),
        code=lambda report: 1 if report["mistakes"] else 0,
    )
    sub.add_argument("files", nargs="+", metavar="FILE.yaml")
    sub = command(
        "app", commands.app_command, "start the app", code=lambda report: app.run(report["command"])
    )
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
        report = args.run.report(args)
    except _UsageError as error:
        print(f"dpsim: {InputError('arguments', str(error), ' '.join(given))}", file=sys.stderr)
        return 2
    except InputError as error:
        print(f"dpsim: {error}", file=sys.stderr)
        return 2
    if report is None:  # a rank whose report is another's
        return 0
    text = json.dumps(report, allow_nan=False) if args.json else args.run.text(report)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # whoever read us has had enough, as in `dpsim beats … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if args.command == "app" else int(args.run.code(report))
    return int(args.run.code(report))
