"""Tests and certificates in the database: which seed was asked, the answers, the score, and what came of it.

Nothing is judged here. A test is open until it is handed in or given up; a learner has one open test at most.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import IntegrityError

from dpsim.checks import InputError, text, whole
from dpsim.database import Database, check_room
from dpsim.progress import LONGEST_GIVEN, LONGEST_SEED
from dpsim.recovery import known_as
from dpsim.score import MOST_QUESTIONS, Score
from dpsim.tables import CERTIFICATES, LONGEST_JWT, STATUS_INDICES, TEST_ANSWERS, TESTS

MOST_TESTS = 500  # a learner's tests, and certificates
INDICES = (
    131_072  # entries of the status list: the fewest that its standard has, so that one hides in a crowd
)
TRIES = 20  # for an index at random that nobody has

_INDEX = CERTIFICATES.c["index"]
_REVOKED = STATUS_INDICES.c.revoked


@dataclass(frozen=True)
class Sitting:
    """One test of a learner. `ended` and `score` are None while it is open; a test that was given up has
    ended without a score. Times are seconds since 1970, UTC."""

    number: int
    seed: str
    fingerprint: str
    begun: float
    ended: float | None
    score: Score | None


@dataclass(frozen=True)
class Certificate:
    """A certificate as it was issued: its id, whose and of which test, what was signed, its place in the
    status list, when, and whether it has been revoked."""

    id: str
    learner: str
    test: int
    jwt: str
    index: int
    issued_at: float
    revoked: bool


@dataclass(frozen=True)
class Result:
    """A test as a gradebook has it: who, as a teacher may know it; the last certificate's id, or nothing."""

    learner: str
    begun: float
    ended: float | None
    score: Score | None
    certificate: str


class KeptTests(Database):
    """The tests and certificates of all learners."""

    def begin_test(self, learner: str, seed: str, fingerprint: str) -> Sitting:
        """A new test; the one that is open already, if there is one."""
        text("test.seed", seed, LONGEST_SEED)
        with self._writing(learner) as connection:
            mine = TESTS.c.learner == learner
            chosen = sql.select(TESTS).where(mine, TESTS.c.ended.is_(None))
            row = connection.execute(chosen).first()
            if row is None:
                check_room(connection, TESTS, mine, "tests", MOST_TESTS)
                new = {"learner": learner, "seed": seed, "fingerprint": fingerprint, "begun": time.time()}
                connection.execute(sql.insert(TESTS).values(new))
                row = connection.execute(chosen).one()
        return _sitting(row)

    def tests(self, learner: str) -> list[Sitting]:
        """All tests, the first first."""
        chosen = sql.select(TESTS).where(TESTS.c.learner == learner).order_by(TESTS.c.number)
        with self._begun() as connection:
            return [_sitting(row) for row in connection.execute(chosen)]

    def open_test(self, learner: str) -> Sitting | None:
        """The test that is open."""
        return next((test for test in self.tests(learner) if test.ended is None), None)

    def test_answers(self, learner: str, test: int) -> dict[int, str]:
        """What was answered in a test, by question."""
        with self._begun() as connection:
            return _answers(connection, learner, test)

    def answer_test(self, learner: str, test: int, question: int, given: str) -> None:
        """Keep the answer to a question. InputError where it has one, which stands, and where the test is not
        open."""
        whole("test.question", question, 0, MOST_QUESTIONS - 1)
        row = {"test": test, "question": question, "given": text("given", given, LONGEST_GIVEN)}
        with self._writing(learner) as connection:
            if _mine(connection, learner, test).ended is not None:
                raise InputError("test", "must be open to be answered", "one that has ended")
            try:
                with connection.begin_nested():
                    connection.execute(sql.insert(TEST_ANSWERS).values(row | {"at": time.time()}))
            except IntegrityError:
                raise InputError("answer", "must be the first one to its question", "a second") from None

    def end_test(self, learner: str, test: int, scored: Callable[[Mapping[int, str]], Score]) -> Score | None:
        """Hand a test in: no answer comes in any more, and the score of those that are there is kept. A test
        that has ended keeps the score that it has."""
        with self._writing(learner) as connection:
            found = _sitting(_mine(connection, learner, test))
            if found.ended is not None:
                return found.score
            score = scored(_answers(connection, learner, test))
            _end(connection, test, asdict(score))
        return score

    def give_up_test(self, learner: str, test: int) -> None:
        """End a test without a score, unless it has ended."""
        with self._writing(learner) as connection:
            if _mine(connection, learner, test).ended is None:
                _end(connection, test, {})

    def draw_index(self) -> int:
        """A place in the status list that nobody has, at random, so that it says nothing of when."""
        with self._begun(writes=True) as connection:
            for _ in range(TRIES):
                if _takes(connection, index := secrets.randbelow(INDICES)):
                    return index
            free = set(range(INDICES)) - set(connection.scalars(sql.select(STATUS_INDICES.c["index"])))
            while free:
                index = secrets.choice(tuple(free))
                if _takes(connection, index):
                    return index
                free.remove(index)
        raise InputError("status list", f"must have room for one more of {INDICES:,}", "none left")

    def keep_certificate(self, learner: str, test: int, id: str, index: int, jwt: str) -> None:
        """Keep what was issued for a test that was passed, and revoke what was issued for it before, so that
        one stands whoever else issues at the same time. InputError for any other test, and where the last one
        was revoked: not because another took its place, then, so none does."""
        row: dict[str, object] = {"id": text("certificate.id", id, 36)}
        row |= {
            "jwt": text("certificate.jwt", jwt, LONGEST_JWT),
            "learner": learner,
            "test": test,
            "index": index,
            "issued_at": time.time(),
        }
        with self._writing(learner) as connection:
            score = _sitting(_mine(connection, learner, test)).score
            if score is None or not score.passed:
                raise InputError("certificate", "must be for a test that was passed", score)
            check_room(
                connection, CERTIFICATES, CERTIFICATES.c.learner == learner, "certificates", MOST_TESTS
            )
            last = sql.select(_REVOKED).join(CERTIFICATES).where(CERTIFICATES.c.test == test)
            if connection.execute(last.order_by(CERTIFICATES.c.issued_at.desc()).limit(1)).scalar():
                raise InputError("certificate", "must not have been revoked to be issued again", "revoked")
            before = STATUS_INDICES.c["index"].in_(sql.select(_INDEX).where(CERTIFICATES.c.test == test))
            connection.execute(sql.update(STATUS_INDICES).where(before).values(revoked=True))
            try:
                with connection.begin_nested():
                    connection.execute(sql.insert(CERTIFICATES).values(row))
            except IntegrityError:
                rule = "must have an id of its own, and an index that was drawn for it"
                raise InputError("certificate", rule, id) from None

    def certificate(self, id: str) -> Certificate | None:
        """The certificate with this id; None where there is none, or none any more."""
        return next(iter(self._certificates(CERTIFICATES.c.id == id)), None)

    def certificates(self, learner: str) -> list[Certificate]:
        """A learner's certificates, the first first."""
        return self._certificates(CERTIFICATES.c.learner == learner)

    def _certificates(self, which: sql.ColumnElement[bool]) -> list[Certificate]:
        chosen = sql.select(CERTIFICATES, _REVOKED).join(STATUS_INDICES).where(which)
        with self._begun() as connection:
            rows = connection.execute(chosen.order_by(CERTIFICATES.c.issued_at, CERTIFICATES.c.id)).all()
        return [Certificate(**row._mapping) for row in rows]

    def revoke(self, id: str) -> None:
        """Revoke a certificate for good; InputError where there is none with this id."""
        index = sql.select(_INDEX).where(CERTIFICATES.c.id == id)
        with self._begun(writes=True) as connection:
            change = sql.update(STATUS_INDICES).where(STATUS_INDICES.c["index"].in_(index))
            if connection.execute(change.values(revoked=True)).rowcount == 0:
                raise InputError("certificate", "must be the id of one that is kept here", id)

    def revoke_index(self, index: int) -> None:
        """Revoke for good whatever has this place in the status list, although its learner was deleted;
        InputError where nothing has it."""
        with self._begun(writes=True) as connection:
            change = sql.update(STATUS_INDICES).where(STATUS_INDICES.c["index"] == index)
            if connection.execute(change.values(revoked=True)).rowcount == 0:
                raise InputError("status index", "must be one that was drawn here", index)

    def revoked_indices(self) -> list[int]:
        """The places of all that were revoked, in order, those of deleted learners among them."""
        chosen = sql.select(STATUS_INDICES.c["index"]).where(_REVOKED).order_by(STATUS_INDICES.c["index"])
        with self._begun() as connection:
            return list(connection.scalars(chosen))

    def all_tests(self) -> list[Result]:
        """Every test of every learner, in the order in which they were begun."""
        issued = sql.select(CERTIFICATES.c.test, CERTIFICATES.c.id).order_by(CERTIFICATES.c.issued_at)
        with self._begun() as connection:
            last = {row.test: row.id for row in connection.execute(issued)}
            rows = connection.execute(sql.select(TESTS).order_by(TESTS.c.number)).all()
        return [
            Result(known_as(row.learner), row.begun, row.ended, _score(row), last.get(row.number, ""))
            for row in rows
        ]

    def _tests_exported(self, connection: Connection, learner: str) -> dict[str, Any]:
        """All of a learner's tests; of an open one not the seed, from which its answers follow."""
        rows = connection.execute(
            sql.select(TESTS).where(TESTS.c.learner == learner).order_by(TESTS.c.number)
        ).all()
        told = []
        for row in rows:
            test = dict(row._mapping)
            test.pop("learner")
            if row.ended is None:
                test.pop("seed")
            columns = (TEST_ANSWERS.c.question, TEST_ANSWERS.c.given, TEST_ANSWERS.c.at)
            given = sql.select(*columns).where(TEST_ANSWERS.c.test == row.number)
            answers = connection.execute(given.order_by(TEST_ANSWERS.c.question))
            told.append(test | {"answers": [dict(answer._mapping) for answer in answers]})
        chosen = sql.select(CERTIFICATES, _REVOKED).join(STATUS_INDICES)
        issued = connection.execute(chosen.where(CERTIFICATES.c.learner == learner))
        certificates = [{k: v for k, v in row._mapping.items() if k != "learner"} for row in issued]
        return {"tests": told, "certificates": certificates}


def _mine(connection: Connection, learner: str, test: int) -> Row[Any]:
    """The row of a learner's test; InputError where it is another's, or nobody's."""
    found = connection.execute(
        sql.select(TESTS).where(TESTS.c.number == test, TESTS.c.learner == learner)
    ).first()
    if found is None:
        raise InputError("test", "must be one that you have begun", test)
    return found


def _answers(connection: Connection, learner: str, test: int) -> dict[int, str]:
    chosen = sql.select(TEST_ANSWERS.c.question, TEST_ANSWERS.c.given).join(TESTS)
    chosen = chosen.where(TESTS.c.number == test, TESTS.c.learner == learner)
    rows = connection.execute(chosen.order_by(TEST_ANSWERS.c.question)).all()
    return {row.question: row.given for row in rows}


def _end(connection: Connection, test: int, score: dict[str, int]) -> None:
    connection.execute(sql.update(TESTS).where(TESTS.c.number == test).values(ended=time.time(), **score))


def _takes(connection: Connection, index: int) -> bool:
    """Take an index, unless somebody has it."""
    try:
        with connection.begin_nested():
            connection.execute(sql.insert(STATUS_INDICES).values(index=index, revoked=False))
    except IntegrityError:
        return False
    return True


def _sitting(row: Row[Any]) -> Sitting:
    return Sitting(row.number, row.seed, row.fingerprint, row.begun, row.ended, _score(row))


def _score(row: Row[Any]) -> Score | None:
    return None if row.right is None else Score(row.right, row.of)
