"""A database that may not answer: a SQLite file, or any other that SQLAlchemy reaches.

Nothing is connected before the first call. A call that changes something is one transaction. A database that
cannot be reached, or that fails, is an UnreachableError, whose text says so and holds no address.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DataError, IntegrityError, SQLAlchemyError

from dpsim.checks import InputError
from dpsim.tables import LEARNERS, TABLES
from dpsim.user_data import user_data

WAIT_S = 10.0  # for another who writes to the same SQLite file
CONNECT_S = 3  # for a database on another machine
AGAIN_S = 30.0  # after a failure nobody waits for the database again before that
LOCK = 0x6470_7369_6D  # names our lock in PostgreSQL while tables are made
SAID = "The database cannot be reached."


class UnreachableError(Exception):
    """The database does not answer, or not as it should."""


class Database:
    """The database at a URL, with its tables in it."""

    def __init__(self, url: str) -> None:
        self._written = url
        self._engine: sql.Engine | None = None
        self._preparing = threading.Lock()
        self._failed_at = -AGAIN_S

    def close(self) -> None:
        """Let the connections go; the next call makes new ones."""
        if self._engine is not None:
            self._engine.dispose()

    @contextmanager
    def _writing(self, learner: str) -> Iterator[Connection]:
        """A transaction that holds this learner's row, made if it is not there: writers take turns."""
        chosen = sql.select(LEARNERS.c.id).where(LEARNERS.c.id == learner).with_for_update()
        with self._begun(writes=True) as connection:
            if connection.execute(chosen).scalar() is None:
                try:
                    with connection.begin_nested():
                        new = sql.insert(LEARNERS).values(id=learner, created_at=time.time())
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


def check_room(connection: Connection, table: sql.Table, mine: Any, what: str, most: int) -> None:
    """InputError where a learner has as many rows of a table as are kept."""
    if connection.execute(sql.select(sql.func.count()).select_from(table).where(mine)).scalar_one() >= most:
        raise InputError(what, f"must be at most {most:,} for one learner", "one more")


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
        TABLES.create_all(connection)


def _write_ahead(engine: sql.Engine) -> None:
    """Have readers never wait for a writer; without that it works too, only slower. SQLite refuses to change
    over while another connection is busy, and does not wait for it."""
    end = time.monotonic() + WAIT_S
    while not pragma(engine, "journal_mode = WAL") and time.monotonic() < end:
        time.sleep(0.02)


def pragma(engine: sql.Engine, what: str) -> bool:
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
