"""What learners answered, in a database: all of it comes back, and after deleting nothing does.

The same laws hold on SQLite and on PostgreSQL. Without PostgreSQL its half is skipped, or fails where
DPSIM_REQUIRE_POSTGRES is 1.
"""

from __future__ import annotations

import json
import re
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from serving import ROOT

import dpsim.database
import dpsim.store
from dpsim.checks import InputError
from dpsim.database import UnreachableError
from dpsim.progress import Attempt
from dpsim.recovery import learner_id
from dpsim.store import Store

ANNE, BEN = learner_id("0" * 32), learner_id("1" * 32)
TABLES = ("learners", "attempts", "places")


def attempt(n: int = 0, **changed: Any) -> Attempt:
    given = {"item": f"x-{n}", "seed": str(n), "kind": "number", "given": "1/2", "right": True}
    return Attempt(**{**given, "misconception": "", "at": 1.7e9 + n / 7, **changed})


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that is in the database, read past the store."""
    engine = sql.create_engine(url, poolclass=sql.pool.NullPool)
    with engine.connect() as connection:
        return {t: [tuple(r) for r in connection.execute(sql.text(f"SELECT * FROM {t}"))] for t in TABLES}


def test_what_was_recorded_is_there_for_whoever_opens_it_anew(opened: Callable[[], Store]) -> None:
    odd = attempt(2, given="1½ ∑ 🙂 '; DROP TABLE attempts; --", misconception="m-1", right=False, seed="7f")
    first = opened()
    for each in (attempt(3), odd, attempt(1, kind="choose-several", given="")):
        first.record(ANNE, each)
    for given in ("1", "2"):
        first.keep_answer(ANNE, "one-step/screen/id", given)
    first.keep_answer(ANNE, "a/b/c", "0,2")
    first.close()
    again = opened()
    assert again.attempts(ANNE) == [attempt(1, kind="choose-several", given=""), odd, attempt(3)]
    assert again.answers(ANNE) == {"one-step/screen/id": "2", "a/b/c": "0,2"}


def test_learners_do_not_see_each_other(opened: Callable[[], Store]) -> None:
    kept = opened()
    kept.record(ANNE, attempt(1))
    kept.keep_answer(BEN, "a/b/c", "1")
    assert kept.attempts(BEN) == []
    assert kept.answers(ANNE) == {}
    kept.delete(ANNE)
    assert kept.answers(BEN) == {"a/b/c": "1"}


def test_the_export_is_everything_that_the_database_holds(opened: Callable[[], Store], url: str) -> None:
    kept = opened()
    nothing: dict[str, Any] = {"attempts": [], "answers": {}, "tests": [], "certificates": []}
    assert kept.export(ANNE) == {"learner": ANNE, "created_at": None, **nothing}
    kept.record(ANNE, attempt(1))
    kept.keep_answer(ANNE, "a/b/c", "1")
    export = kept.export(ANNE)
    assert json.loads(json.dumps(export)) == export
    ((learner, created_at),) = rows(url)["learners"]
    assert (export["learner"], export["created_at"]) == (learner, created_at)
    assert abs(created_at - time.time()) < 60
    (stored,) = rows(url)["attempts"]
    assert set(export["attempts"][0].values()) | {learner} == set(stored[1:])
    assert export["attempts"] == [asdict(attempt(1))]
    assert export["answers"] == {"a/b/c": "1"}


def test_after_deleting_nothing_remains(opened: Callable[[], Store], url: str) -> None:
    kept = opened()
    kept.record(ANNE, attempt(1, given="a-secret-thing"))
    kept.keep_answer(ANNE, "a/b/c", "a-secret-thing")
    assert all(rows(url).values())
    kept.delete(ANNE)
    assert rows(url) == {table: [] for table in TABLES}
    assert kept.export(ANNE)["created_at"] is None
    if url.startswith("sqlite"):
        folder = Path(url.removeprefix("sqlite:///")).parent
        assert not [file for file in folder.iterdir() if b"a-secret-thing" in file.read_bytes()]
    kept.delete(ANNE)
    kept.record(ANNE, attempt(2))
    assert kept.attempts(ANNE) == [attempt(2)]


def test_twenty_threads_record_at_once_and_nothing_is_lost(opened: Callable[[], Store]) -> None:
    kept, threads, each = opened(), 20, 15

    def work(thread: int) -> None:
        for n in range(each):
            kept.record(ANNE if thread % 2 else BEN, attempt(thread * each + n))
            kept.keep_answer(ANNE, f"a/b/{n}", str(thread))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    found = [int(a.seed) for learner in (ANNE, BEN) for a in kept.attempts(learner)]
    assert sorted(found) == list(range(threads * each))
    assert len(kept.answers(ANNE)) == each


def test_processes_that_start_at_once_find_one_set_of_tables(url: str) -> None:
    code = (
        "import sys\nfrom dpsim.store import Attempt, Store\nsys.stdin.readline()\n"
        f"Store({url!r}).record({ANNE!r}, Attempt('x', sys.argv[1], 'number', '1', True, '', 1.0))"
    )
    made = [
        subprocess.Popen([sys.executable, "-c", code, str(n)], cwd=ROOT, stdin=subprocess.PIPE)
        for n in range(4)
    ]
    time.sleep(1)  # so that all have loaded what they need
    for process in made:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [process.wait(60) for process in made] == [0] * 4
    kept = Store(url)
    assert sorted(a.seed for a in kept.attempts(ANNE)) == list("0123")
    kept.close()


def test_bounds_are_refused_with_a_message(
    opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = opened()
    monkeypatch.setattr(dpsim.store, "MOST", 3)
    for n in range(3):
        kept.record(ANNE, attempt(n))
    with pytest.raises(InputError, match="at most 3 for one learner"):
        kept.record(ANNE, attempt(3))
    kept.record(BEN, attempt(3))
    assert len(kept.attempts(ANNE)) == 3
    for place in ("a", "b", "c", "a"):
        kept.keep_answer(ANNE, place, "1")
    with pytest.raises(InputError, match="at most 3 for one learner"):
        kept.keep_answer(ANNE, "d", "1")
    for place, given in (
        ("", "1"),
        ("x" * 201, "1"),
        ("a", "1" * 4001),
        ("a", "\0"),
        ("a\n", "1"),
        ("a", "\ud800"),
    ):
        with pytest.raises(InputError):
            kept.keep_answer(ANNE, place, given)
    assert kept.answers(ANNE) == {"b": "1", "c": "1", "a": "1"}


def test_a_file_is_written_ahead_checked_and_its_owner_s_alone(tmp_path: Path) -> None:
    file = tmp_path / "p.sqlite3"
    kept = Store(f"sqlite:///{file}")
    kept.record(ANNE, attempt())
    beside = sqlite3.connect(file)
    assert beside.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert {stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()} == {0o600}
    engine = kept._open()
    with engine.connect() as connection, pytest.raises(sql.exc.IntegrityError):
        connection.exec_driver_sql("INSERT INTO places (learner, place, given) VALUES ('nobody', 'a', 'b')")
    beside.execute("BEGIN IMMEDIATE")  # somebody writes: readers read on, and a writer waits for his turn
    assert kept.attempts(ANNE) == [attempt()]
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(kept.record, ANNE, attempt(1))
        time.sleep(0.3)
        assert not waits.done()
        beside.commit()
        waits.result(10)
    beside.close()
    kept.close()


def closed_port() -> str:
    from serving import free_port

    return f"postgresql+psycopg://anne:hush@127.0.0.1:{free_port()}/dpsim"


@pytest.mark.parametrize(
    "broken",
    [
        "sqlite:////nowhere/at/all/p.sqlite3",
        "sqlite://",
        "nonsense",
        "nosuchdialect://x/y",
        "mysql+nosuchdriver://x/y",
    ],
)
def test_a_database_that_cannot_be_reached_is_said_to_be(broken: str) -> None:
    refuses(broken)


def test_a_server_that_is_not_there_is_said_to_be_and_not_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = refuses(closed_port())
    begun = time.monotonic()
    for _ in range(100):
        with pytest.raises(UnreachableError):
            kept.answers(ANNE)
    assert time.monotonic() - begun < 0.5
    monkeypatch.setattr(dpsim.database, "AGAIN_S", 0.0)
    with pytest.raises(UnreachableError):
        kept.answers(ANNE)


def refuses(broken: str) -> Store:
    """A store at a broken URL: every call says so, without what is in the URL."""
    kept = Store(broken)
    calls: list[Callable[[], object]] = [
        lambda: kept.record(ANNE, attempt()),
        lambda: kept.keep_answer(ANNE, "a", "b"),
        lambda: kept.attempts(ANNE),
        lambda: kept.answers(ANNE),
        lambda: kept.export(ANNE),
        lambda: kept.delete(ANNE),
    ]
    for call in calls:
        with pytest.raises(UnreachableError) as said:
            call()
        assert str(said.value) == "The database cannot be reached."
    return kept


def test_a_file_that_is_no_database_is_unreachable_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "p.sqlite3"
    file.write_bytes(b"a diary, and no database at all" * 100)
    refuses(f"sqlite:///{file}")
    assert file.read_bytes() == b"a diary, and no database at all" * 100


def test_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPSIM_DATABASE", "postgresql://x/y")
    assert dpsim.store.address() == "postgresql://x/y"
    monkeypatch.setenv("DPSIM_DATABASE", "off")
    assert dpsim.store.address() is None
    monkeypatch.delenv("DPSIM_DATABASE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "a" / "b"))
    chosen = dpsim.store.address()
    assert chosen == f"sqlite:///{tmp_path}/a/b/dpsim/progress.sqlite3"
    Store(chosen).record(ANNE, attempt())
    assert (tmp_path / "a" / "b" / "dpsim" / "progress.sqlite3").is_file()
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert re.fullmatch(r"sqlite:///.+/\.local/share/dpsim/progress\.sqlite3", dpsim.store.address() or "")
