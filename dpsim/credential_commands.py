"""The commands about certificates: an operator's keys, and verifying a file."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from typing import Any

from dpsim.base_url import base_url
from dpsim.checks import read_bytes

EXIT = {"valid": 0, "not valid": 1, "not verified": 3}
MOST_BYTES = 10_000_000

Report = dict[str, Any]


def new_command(args: argparse.Namespace) -> Report:
    from dpsim.credential import keys  # cryptography is loaded where a key is needed

    made = keys.new(args.file)
    then = "keep a copy in a safe place, and start the app with DPSIM_KEY naming it"
    return {"file": args.file, "thumbprint": made.thumbprints[0], "next": then}


def rotate_command(args: argparse.Namespace) -> Report:
    from dpsim.credential import keys

    thumbprint, *former = keys.rotate(args.file).thumbprints
    then = "start the app anew; certificates of the former keys stay valid"
    return {"file": args.file, "thumbprint": thumbprint, "former": former, "next": then}


def show_command(args: argparse.Namespace) -> Report:
    from dpsim.credential import did, keys

    shown, reached = keys.load(args.file), base_url()
    if not reached:
        thumbprint, *former = shown.thumbprints
        return {"thumbprint": thumbprint, "former": former}
    return did.document(did.did_web(reached), shown.public)


def as_json(report: Report) -> str:
    """For a terminal too: a DID document is a file to be put somewhere."""
    return json.dumps(report, indent=2)


def verify_command(args: argparse.Namespace) -> Report:
    from dpsim.credential.baked import token_in
    from dpsim.credential.verify import verify

    text = token_in(read_bytes("FILE", args.file, MOST_BYTES))
    listed = (
        None if args.status is None else token_in(read_bytes("--status", args.status, MOST_BYTES), "--status")
    )
    found = verify(text, _issuer(args.keys), listed, time.time())
    unused = listed is not None and any(
        c.name == "revocation" and c.outcome == "not checked" for c in found.checks
    )
    return {
        # Whoever gives a list wants it looked at: a list that is of no use leaves the question open.
        "outcome": "not verified" if unused and found.outcome == "valid" else found.outcome,
        "checks": [asdict(check) for check in found.checks],
        "key": found.kid,
        "says": None if found.facts is None else asdict(found.facts) | {"id": str(found.facts.id)},
        "credential": found.credential,
    }


def verification(report: Report) -> str:
    """The answer of `verify` for a terminal: the outcome, a line for each check, then what it says."""
    lines = [report["outcome"]]
    lines += [f"  {c['name']:10}  {c['outcome']:11}  {c['said']}" for c in report["checks"]]
    if (says := report["says"]) is not None:
        name = says["name"] or "nobody by name"
        lines += [
            f"{says['title']}: {says['right']} of {says['of']} right",
            f"of {name}, by {says['issuer']}",
        ]
    return "\n".join(lines)


def _issuer(path: str | None) -> Report | None:
    """The DID document of the call, else that of the operator here, if there is one."""
    from dpsim.credential.did import read_document
    from dpsim.credential.operator import operator

    if path is not None:
        return read_document("--keys", read_bytes("--keys", path, MOST_BYTES))
    own = operator()
    return None if own is None else own.did_document()
