"""What learners answered, in a database: a SQLite file, or any other that SQLAlchemy reaches.

A learner is the hash of a key that only the browser holds (`dpsim.recovery`).
"""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

import sqlalchemy as sql

from dpsim.checks import text
from dpsim.database import check_room, pragma
from dpsim.kept_tests import KeptTests
from dpsim.progress import LONGEST_GIVEN, Attempt, name
from dpsim.tables import ATTEMPTS, LEARNERS, PLACES
from dpsim.user_data import user_data

MOST = 20_000  # a learner's attempts, and places; more are refused, so that what was learned stays known
_OF_ATTEMPT = [ATTEMPTS.c[field.name] for field in fields(Attempt)]


def address() -> str | None:
    """The database's URL: DPSIM_DATABASE, else a file in the user's data. None where it is "off"."""
    chosen = os.environ.get("DPSIM_DATABASE", "")
    if chosen == "off":
        return None
    return chosen or f"sqlite:///{user_data() / 'progress.sqlite3'}"


@lru_cache(maxsize=8)
def store(url: str) -> Store:
    """The store at a URL, one for all sessions of this process."""
    return Store(url)


class Store(KeptTests):
    """Attempts and answers of all learners, and their tests."""

    def record(self, learner: str, attempt: Attempt) -> None:
        """Keep an attempt; InputError where the learner has as many as are kept."""
        with self._writing(learner) as connection:
            mine = ATTEMPTS.c.learner == learner
            check_room(connection, ATTEMPTS, mine, "attempts", MOST)
            connection.execute(sql.insert(ATTEMPTS).values(learner=learner, **asdict(attempt)))

    def keep_answer(self, learner: str, place: str, given: str) -> None:
        """Keep the last answer at a lesson's place, instead of the one before."""
        row = {"learner": learner, "place": name("place", place)}
        row |= {"given": text("given", given, LONGEST_GIVEN)}
        mine = PLACES.c.learner == learner
        with self._writing(learner) as connection:
            connection.execute(sql.delete(PLACES).where(mine, PLACES.c.place == place))
            check_room(connection, PLACES, mine, "places", MOST)
            connection.execute(sql.insert(PLACES).values(row))

    def attempts(self, learner: str) -> list[Attempt]:
        """All attempts, in the order of their times."""
        chosen = sql.select(*_OF_ATTEMPT).where(ATTEMPTS.c.learner == learner)
        with self._begun() as connection:
            rows = connection.execute(chosen.order_by(ATTEMPTS.c.at, ATTEMPTS.c.number)).all()
        return [Attempt(**row._asdict()) for row in rows]

    def answers(self, learner: str) -> dict[str, str]:
        """The last answer by place."""
        chosen = sql.select(PLACES.c.place, PLACES.c.given).where(PLACES.c.learner == learner)
        with self._begun() as connection:
            rows = connection.execute(chosen.order_by(PLACES.c.number)).all()
        return {row.place: row.given for row in rows}

    def knows(self, learner: str) -> bool:
        """Whether anything is kept about a learner."""
        chosen = sql.select(LEARNERS.c.id).where(LEARNERS.c.id == learner)
        with self._begun() as connection:
            return connection.execute(chosen).first() is not None

    def export(self, learner: str) -> dict[str, Any]:
        """Everything that is kept about a learner but the seed of an open test, as JSON can hold it; times in
        seconds since 1970, UTC."""
        chosen = sql.select(LEARNERS.c.created_at).where(LEARNERS.c.id == learner)
        with self._begun() as connection:
            created_at = connection.execute(chosen).scalar()
            tests = self._tests_exported(connection, learner)
        return {
            "learner": learner,
            "created_at": created_at,
            "attempts": [asdict(attempt) for attempt in self.attempts(learner)],
            "answers": self.answers(learner),
            **tests,
        }

    def delete(self, learner: str) -> None:
        """Delete everything that is kept about a learner; a SQLite file is overwritten there. The indices of
        the learner's certificates stay, as they are."""
        with self._begun(writes=True) as connection:
            connection.execute(sql.delete(LEARNERS).where(LEARNERS.c.id == learner))
        if self._open().dialect.name == "sqlite":
            pragma(self._open(), "wal_checkpoint(TRUNCATE)")  # nor is it in the file beside it any more
