"""What learners answered, in a database: a SQLite file, or any other that SQLAlchemy reaches.

A learner is the hash of a key that only the browser holds (`dpsim.recovery`). A call that changes something
is one transaction. A database that cannot be reached, or that fails, is an UnreachableError, whose text says
so and holds no address.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DataError, IntegrityError, SQLAlchemyError

from dpsim.checks import InputError, text
from dpsim.progress import LONGEST_GIVEN, LONGEST_NAME, LONGEST_SEED, Attempt, name
from dpsim.user_data import user_data

MOST = 20_000  # a learner's attempts, and places; more are refused, so that what was learned stays known
WAIT_S = 10.0  # for another who writes to the same SQLite file
CONNECT_S = 3  # for a database on another machine
AGAIN_S = 30.0  # after a failure nobody waits for the database again before that
LOCK = 0x6470_7369_6D  # names our lock in PostgreSQL while tables are made

_TABLES = sql.MetaData()
_LEARNERS = sql.Table(
    "learners",
    _TABLES,
    sql.Column("id", sql.String(64), primary_key=True),
    sql.Column("created_at", sql.Double, nullable=False),
)
_NUMBER = sql.BigInteger().with_variant(
    sql.Integer, "sqlite"
)  # the only kind that SQLite counts up by itself


def _whose() -> sql.Column[str]:
    return sql.Column(
        "learner", sql.ForeignKey("learners.id", ondelete="CASCADE"), nullable=False, index=True
    )


_ATTEMPTS = sql.Table(
    "attempts",
    _TABLES,
    sql.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    _whose(),
    sql.Column("item", sql.String(LONGEST_NAME), nullable=False),
    sql.Column("seed", sql.String(LONGEST_SEED), nullable=False),
    sql.Column("kind", sql.String(40), nullable=False),
    sql.Column("given", sql.String(LONGEST_GIVEN), nullable=False),
    sql.Column("right", sql.Boolean, nullable=False),
    sql.Column("misconception", sql.String(LONGEST_NAME), nullable=False),
    sql.Column("at", sql.Double, nullable=False),
)
_PLACES = sql.Table(
    "places",
    _TABLES,
    sql.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    _whose(),
    sql.Column("place", sql.String(LONGEST_NAME), nullable=False),
    sql.Column("given", sql.String(LONGEST_GIVEN), nullable=False),
    sql.UniqueConstraint("learner", "place"),
)
_OF_ATTEMPT = [_ATTEMPTS.c[field.name] for field in fields(Attempt)]


class UnreachableError(Exception):
    """The database does not answer, or not as it should."""


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


class Store:
    """Attempts and answers of all learners. Nothing is connected before the first call."""

    def __init__(self, url: str) -> None:
        self._written = url
        self._engine: sql.Engine | None = None
        self._preparing = threading.Lock()
        self._failed_at = -AGAIN_S

    def record(self, learner: str, attempt: Attempt) -> None:
        """Keep an attempt; InputError where the learner has as many as are kept."""
        with self._writing(learner) as connection:
            mine = _ATTEMPTS.c.learner == learner
            _check_room(connection, _ATTEMPTS, mine, "attempts")
            connection.execute(sql.insert(_ATTEMPTS).values(learner=learner, **asdict(attempt)))

    def keep_answer(self, learner: str, place: str, given: str) -> None:
        """Keep the last answer at a lesson's place, instead of the one before."""
        row = {"learner": learner, "place": name("place", place)}
        row |= {"given": text("given", given, LONGEST_GIVEN)}
        mine = _PLACES.c.learner == learner
        with self._writing(learner) as connection:
            connection.execute(sql.delete(_PLACES).where(mine, _PLACES.c.place == place))
            _check_room(connection, _PLACES, mine, "places")
            connection.execute(sql.insert(_PLACES).values(row))

    def attempts(self, learner: str) -> list[Attempt]:
        """All attempts, in the order of their times."""
        chosen = sql.select(*_OF_ATTEMPT).where(_ATTEMPTS.c.learner == learner)
        with self._begun() as connection:
            rows = connection.execute(chosen.order_by(_ATTEMPTS.c.at, _ATTEMPTS.c.number)).all()
        return [Attempt(**row._asdict()) for row in rows]

    def answers(self, learner: str) -> dict[str, str]:
        """The last answer by place."""
        chosen = sql.select(_PLACES.c.place, _PLACES.c.given).where(_PLACES.c.learner == learner)
        with self._begun() as connection:
            rows = connection.execute(chosen.order_by(_PLACES.c.number)).all()
        return {row.place: row.given for row in rows}

    def export(self, learner: str) -> dict[str, Any]:
        """Everything that is kept about a learner, as JSON can hold it; times in seconds since 1970, UTC."""
        chosen = sql.select(_LEARNERS.c.created_at).where(_LEARNERS.c.id == learner)
        with self._begun() as connection:
            created_at = connection.execute(chosen).scalar()
        return {
            "learner": learner,
            "created_at": created_at,
            "attempts": [asdict(attempt) for attempt in self.attempts(learner)],
            "answers": self.answers(learner),
        }

    def delete(self, learner: str) -> None:
        """Delete everything that is kept about a learner; a SQLite file is overwritten there."""
        with self._begun(writes=True) as connection:
            for table in (_ATTEMPTS, _PLACES):
                connection.execute(sql.delete(table).where(table.c.learner == learner))
            connection.execute(sql.delete(_LEARNERS).where(_LEARNERS.c.id == learner))
        if self._open().dialect.name == "sqlite":
            _pragma(self._open(), "wal_checkpoint(TRUNCATE)")  # nor is it in the file beside it any more

    def close(self) -> None:
        """Let the connections go; the next call makes new ones."""
        if self._engine is not None:
            self._engine.dispose()

    @contextmanager
    def _writing(self, learner: str) -> Iterator[Connection]:
        """A transaction that holds this learner's row, made if it is not there: writers take turns."""
        chosen = sql.select(_LEARNERS.c.id).where(_LEARNERS.c.id == learner).with_for_update()
        with self._begun(writes=True) as connection:
            if connection.execute(chosen).scalar() is None:
                try:
                    with connection.begin_nested():
                        new = sql.insert(_LEARNERS).values(id=learner, created_at=time.time())
                        connection.execute(new)
                except IntegrityError:  # another process was faster
                    connection.execute(chosen)
            yield connection

    @contextmanager
    def _begun(self, *, writes: bool = False) -> Iterator[Connection]:
        """A transaction."""
        engine = self._open()
        with self._guarded(), engine.execution_options(dpsim_writes=writes).begin() as connection:
            yield connection

    def _open(self) -> sql.Engine:
        """The engine, with its tables there."""
        if self._engine is None:
            with self._preparing:
                if self._engine is None:
                    with self._guarded():
                        engine = _engine(self._written)
                        _make_tables(engine)
                        self._engine = engine
        assert self._engine is not None
        return self._engine

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Whatever goes wrong with the database is an UnreachableError; for a while it is so at once."""
        if time.monotonic() - self._failed_at < AGAIN_S:
            raise UnreachableError(SAID)
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, ImportError, OSError) as error:
            if not isinstance(error, (DataError, IntegrityError)):  # those are of one row
                self._failed_at = time.monotonic()
            raise UnreachableError(SAID) from error


SAID = "The database cannot be reached."


def _check_room(connection: Connection, table: sql.Table, mine: Any, what: str) -> None:
    if connection.execute(sql.select(sql.func.count()).select_from(table).where(mine)).scalar_one() >= MOST:
        raise InputError(what, f"must be at most {MOST:,} for one learner", "one more")


def _engine(written: str) -> sql.Engine:
    """The engine of a URL."""
    url = make_url(written)
    if url.get_backend_name() == "sqlite":
        return _sqlite(url)
    waits = {"connect_timeout": CONNECT_S} if url.get_backend_name() == "postgresql" else {}
    return sql.create_engine(url, pool_pre_ping=True, pool_timeout=WAIT_S, connect_args=waits)


def _sqlite(url: URL) -> sql.Engine:
    if url.database in (None, "", ":memory:"):
        raise ArgumentError("what is in memory does not last")
    file = Path(str(url.database))
    if file == user_data() / "progress.sqlite3":
        file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)  # nobody else's business; what SQLite puts beside it is made alike
    engine = sql.create_engine(url, pool_timeout=WAIT_S, connect_args={"timeout": WAIT_S})

    @sql.event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # we say ourselves when a transaction begins
        for pragma in ("foreign_keys = ON", "synchronous = NORMAL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @sql.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Who reads first and then writes cannot wait for another writer any more: he takes his turn at once.
        writes = connection.get_execution_options().get("dpsim_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _make_tables(engine: sql.Engine) -> None:
    """Make the tables that are not there, in one transaction that two processes cannot be in at once."""
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with engine.execution_options(dpsim_writes=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
        _TABLES.create_all(connection)


def _write_ahead(engine: sql.Engine) -> None:
    """Have readers never wait for a writer; without that it works too, only slower. SQLite refuses to change
    over while another connection is busy, and does not wait for it."""
    end = time.monotonic() + WAIT_S
    while not _pragma(engine, "journal_mode = WAL") and time.monotonic() < end:
        time.sleep(0.02)


def _pragma(engine: sql.Engine, what: str) -> bool:
    """Tell SQLite something outside a transaction; whether it could be done now."""
    connection = engine.raw_connection()
    try:
        connection.cursor().execute(f"PRAGMA {what}").fetchall()
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    finally:
        connection.close()
    return True
