"""The commands of whoever runs the app for others: results for a gradebook, and revoking a certificate."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dpsim.checks import InputError, read_bytes
from dpsim.commands import write

if TYPE_CHECKING:
    from dpsim.kept_tests import Result
    from dpsim.store import Store

HEADER = (
    "learner", "name", "begun (UTC)", "ended (UTC)", "right", "of", "percent", "passed", "certificate",
)  # fmt: skip

Report = dict[str, Any]


def results_command(args: argparse.Namespace) -> Report:
    """Every test that was handed in, as CSV: to the file, else as the report's text."""
    from dpsim.csv_cells import rows

    with _kept() as kept:
        done = [result for result in kept.all_tests() if result.score is not None]
        text = rows(HEADER, [_row(result, kept) for result in done])
    report: Report = {"tests": len(done)}
    if args.out is None:
        return report | {"csv": text}
    write("--out", args.out, lambda: Path(args.out).write_text(text, "utf-8", newline=""))
    return report | {"file": args.out}


def results_text(report: Report) -> str:
    """For a terminal: the table itself where it went to no file."""
    if "csv" in report:
        return str(report["csv"]).rstrip("\r\n")
    return f"{report['tests']} tests in {report['file']}"


def _row(result: Result, kept: Store) -> tuple[str | int | float | None, ...]:
    score, issued = result.score, kept.certificate(result.certificate) if result.certificate else None
    assert score is not None
    return (
        result.learner, _name(issued.jwt) if issued else "", _time(result.begun), _time(result.ended),
        score.right, score.of, round(100 * score.right / score.of, 1), "yes" if score.passed else "no",
        result.certificate,
    )  # fmt: skip


def _name(jwt: str) -> str:
    """What the learner typed as a name on the certificate."""
    from dpsim.credential.content import facts
    from dpsim.credential.jws import read

    return facts(read(jwt).payload).name


def _time(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def revoke_command(args: argparse.Namespace) -> Report:
    """Revoke a certificate by its id or its file. By its file also where it is kept no more: the file says
    which entry of the status list is its own, once its signature is found to be ours."""
    with _kept() as kept:
        if (id := _id(args.certificate)) is None:
            found = _verified(args.certificate)
            id = str(found.id)
            kept.revoke_index(found.index)
        else:
            kept.revoke(id)
    return {"revoked": id}


def _id(given: str) -> str | None:
    try:
        return str(UUID(given.removeprefix("urn:uuid:")))
    except ValueError:
        return None


def _verified(path: str) -> Any:
    """The facts of a certificate's file that was signed here."""
    import time

    from dpsim.credential.baked import token_in
    from dpsim.credential.operator import missing, operator
    from dpsim.credential.verify import verify
    from dpsim.credential_commands import MOST_BYTES

    issuer = operator()
    if issuer is None:
        raise InputError("settings", " ".join(missing()), "no key or no address")
    found = verify(
        token_in(read_bytes("CERTIFICATE", path, MOST_BYTES)), issuer.did_document(), None, time.time()
    )
    if found.facts is None or found.outcome != "valid":
        raise InputError("CERTIFICATE", "must be the id or the file of one that was issued here", path)
    return found.facts


@contextmanager
def _kept() -> Iterator[Store]:
    from dpsim.database import UnreachableError
    from dpsim.store import address, store

    if (url := address()) is None:
        raise InputError("DPSIM_DATABASE", "must name the app's database", "off")
    try:
        yield store(url)
    except UnreachableError as error:
        raise InputError("DPSIM_DATABASE", "must be a database that can be reached", str(error)) from None
