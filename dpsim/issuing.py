"""Issuing certificates for tests that were passed, each under an id and a status index of its own."""

from __future__ import annotations

import time
from uuid import uuid4

from dpsim.checks import InputError
from dpsim.credential.credential import Award, credential, holder, sign
from dpsim.credential.operator import Operator
from dpsim.kept_tests import Certificate, Sitting
from dpsim.store import Store

MOST = 10  # certificates for one test: each takes one of the status list's entries for good


def issued(kept: Store, learner: str, test: Sitting) -> Certificate | None:
    """The last certificate for a test, if there is one. If it is revoked, no other took its place: whoever
    runs the server revoked it."""
    every = [c for c in kept.certificates(learner) if c.test == test.number]
    return every[-1] if every else None


def issue(issuer: Operator, kept: Store, learner: str, test: Sitting, name: str) -> Certificate:
    """A certificate for a test that was passed. One that was issued for it before is revoked, so that only
    one stands. InputError for a name that cannot be one, where there were too many, and where the last
    one was revoked by whoever runs the server."""
    if test.score is None or test.ended is None or not test.score.passed:
        raise InputError("certificate", "must be for a test that was passed", test.score)
    before = [c for c in kept.certificates(learner) if c.test == test.number]
    if len(before) >= MOST:
        raise InputError("certificate", f"must be at most the {MOST}th for one test", len(before) + 1)
    named, id, index = holder(name), uuid4(), kept.draw_index()
    score = Award(test.score.right, test.score.of, test.ended)
    made = credential(issuer, score, named, id, index, time.time())
    kept.keep_certificate(learner, test.number, str(id), index, sign(issuer, made))
    found = kept.certificate(str(id))
    assert found is not None
    return found
