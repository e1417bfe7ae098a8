"""Tests and certificates in a database: the first answer stands, a score is kept once, and what a learner's
deletion leaves is a number that points to nobody. The same laws hold on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sql
from test_store import ANNE, BEN, attempt

import dpsim.kept_tests
from dpsim.checks import InputError
from dpsim.database import UnreachableError
from dpsim.kept_tests import INDICES
from dpsim.progress import LONGEST_GIVEN
from dpsim.score import Score
from dpsim.store import Store

Opened = Callable[[], Store]
PRINT = "f" * 64
OF_LEARNER = ("learners", "tests", "test_answers", "certificates")
PASSED, FAILED = Score(4, 5), Score(3, 5)


def uuid(n: int) -> str:
    return str(UUID(int=n, version=4))


def rows(url: str, *tables: str) -> dict[str, list[tuple[Any, ...]]]:
    """What is in the database, read past the store."""
    engine = sql.create_engine(url, poolclass=sql.pool.NullPool)
    with engine.connect() as connection:
        return {t: [tuple(r) for r in connection.execute(sql.text(f"SELECT * FROM {t}"))] for t in tables}


def ended(kept: Store, learner: str, score: Score, seed: str = "s") -> int:
    """The number of a test that came to this score."""
    number = kept.begin_test(learner, seed, PRINT).number
    assert kept.end_test(learner, number, lambda _: score) == score
    return number


def certified(kept: Store, learner: str, id: str) -> int:
    """The index of a certificate for a test that was passed."""
    index = kept.draw_index()
    kept.keep_certificate(learner, ended(kept, learner, PASSED), id, index, f"jwt of {id}")
    return index


def test_a_test_outlives_whoever_opened_it(opened: Opened) -> None:
    first, begun = opened(), time.time()
    test = first.begin_test(ANNE, "7f", PRINT)
    assert (test.seed, test.fingerprint, test.ended, test.score) == ("7f", PRINT, None, None)
    assert abs(test.begun - begun) < 60
    first.answer_test(ANNE, test.number, 35, "1½ ∑ 🙂 '; DROP TABLE tests; --")
    first.answer_test(ANNE, test.number, 0, "")
    first.close()
    again = opened()
    assert again.open_test(ANNE) == test
    assert again.test_answers(ANNE, test.number) == {0: "", 35: "1½ ∑ 🙂 '; DROP TABLE tests; --"}
    assert again.end_test(ANNE, test.number, lambda _: PASSED) == PASSED
    assert again.open_test(ANNE) is None
    (done,) = opened().tests(ANNE)
    assert (done.number, done.seed, done.score) == (test.number, "7f", PASSED)
    assert done.ended is not None
    assert begun - 60 < done.begun <= done.ended < time.time() + 60


def test_one_test_is_open_at_a_time(opened: Opened) -> None:
    kept = opened()
    test = kept.begin_test(ANNE, "1", PRINT)
    assert kept.begin_test(ANNE, "2", PRINT) == test
    kept.give_up_test(ANNE, test.number)
    kept.give_up_test(ANNE, test.number)
    after = kept.begin_test(ANNE, "2", PRINT)
    assert after.seed == "2"
    assert [(t.number, t.ended is None, t.score) for t in kept.tests(ANNE)] == [
        (test.number, False, None),
        (after.number, True, None),
    ]
    assert kept.end_test(ANNE, test.number, lambda _: PASSED) is None, "what was given up has no score"
    kept.end_test(ANNE, after.number, lambda _: FAILED)
    kept.give_up_test(ANNE, after.number)
    assert kept.tests(ANNE)[1].score == FAILED, "a score stays"


def test_the_first_answer_stands(opened: Opened) -> None:
    kept = opened()
    number = kept.begin_test(ANNE, "1", PRINT).number
    kept.answer_test(ANNE, number, 3, "first")
    with pytest.raises(InputError, match="must be the first one to its question"):
        opened().answer_test(ANNE, number, 3, "second")
    with pytest.raises(InputError, match="must be the first one to its question"):
        kept.answer_test(ANNE, number, 3, "first")
    kept.answer_test(ANNE, number, 4, "other")
    assert kept.test_answers(ANNE, number) == {3: "first", 4: "other"}


def test_of_answers_that_come_at_once_one_stands_and_all_others_are_refused(opened: Opened) -> None:
    kept = [opened() for _ in range(4)]
    number = kept[0].begin_test(ANNE, "1", PRINT).number
    start = threading.Barrier(16)

    def answer(thread: int) -> str:
        start.wait()
        try:
            kept[thread % 4].answer_test(ANNE, number, 0, str(thread))
        except InputError as error:
            return str(error)
        return "kept"

    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(answer, range(16)))
    assert sorted(set(said)) == ["answer: must be the first one to its question, got 'a second'", "kept"]
    assert kept[0].test_answers(ANNE, number) == {0: str(said.index("kept"))}


def test_who_begins_twice_at_once_has_one_test(opened: Opened) -> None:
    kept = [opened() for _ in range(4)]
    start = threading.Barrier(8)

    def begin(thread: int) -> int:
        start.wait()
        return kept[thread % 4].begin_test(ANNE, str(thread), PRINT).number

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(begin, range(8)))) == 1


def test_the_score_is_of_the_answers_that_are_kept(opened: Opened) -> None:
    """An answer that comes while the test is handed in is counted, or refused: never kept and not counted."""
    kept, other = opened(), opened()
    number = kept.begin_test(ANNE, "1", PRINT).number
    kept.answer_test(ANNE, number, 0, "a")
    late = ThreadPoolExecutor(1)
    counted: list[dict[int, str]] = []
    waiting: list[Any] = []

    def scored(answers: Mapping[int, str]) -> Score:
        waiting.append(late.submit(other.answer_test, ANNE, number, 1, "b"))
        counted.append(dict(answers))
        time.sleep(0.2)
        assert not waiting[0].done()
        return FAILED

    assert kept.end_test(ANNE, number, scored) == FAILED
    with pytest.raises(InputError, match="must be open to be answered"):
        waiting[0].result(20)
    late.shutdown()
    assert counted == [{0: "a"}] == [kept.test_answers(ANNE, number)]
    assert other.end_test(ANNE, number, lambda _: PASSED) == FAILED, "it is handed in once"
    with pytest.raises(InputError, match="must be open to be answered"):
        kept.answer_test(ANNE, number, 2, "c")


def test_a_test_is_its_learner_s_alone(opened: Opened, url: str) -> None:
    kept = opened()
    number = kept.begin_test(ANNE, "1", PRINT).number
    kept.answer_test(ANNE, number, 0, "a")
    calls: list[Callable[[], object]] = [
        lambda: kept.answer_test(BEN, number, 1, "x"),
        lambda: kept.end_test(BEN, number, lambda _: PASSED),
        lambda: kept.give_up_test(BEN, number),
        lambda: kept.keep_certificate(BEN, number, uuid(1), kept.draw_index(), "jwt"),
        lambda: kept.answer_test(ANNE, number + 99, 0, "x"),
    ]
    for call in calls:
        with pytest.raises(InputError, match="must be one that you have begun"):
            call()
    assert kept.test_answers(BEN, number) == {}
    assert kept.tests(BEN) == []
    assert [row[0] for row in rows(url, "learners")["learners"]] == [ANNE], "who is refused leaves nothing"


def test_bounds_are_refused_with_a_message(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = opened()
    number = kept.begin_test(ANNE, "1", PRINT).number
    for question, given in ((-1, "1"), (10_000, "1"), (0, "1" * (LONGEST_GIVEN + 1)), (0, "\0"), (0, "a\nb")):
        with pytest.raises(InputError):
            kept.answer_test(ANNE, number, question, given)
    for seed in ("s" * 41, "\ud800"):
        with pytest.raises(InputError):
            kept.begin_test(BEN, seed, PRINT)
    monkeypatch.setattr(dpsim.kept_tests, "MOST_TESTS", 2)
    kept.give_up_test(ANNE, number)
    ended(kept, ANNE, PASSED)
    with pytest.raises(InputError, match="at most 2 for one learner"):
        kept.begin_test(ANNE, "3", PRINT)
    assert kept.test_answers(ANNE, number) == {}


def test_a_certificate_is_for_a_test_that_was_passed(opened: Opened) -> None:
    kept = opened()
    index = kept.draw_index()
    for number in (ended(kept, ANNE, FAILED), kept.begin_test(ANNE, "open", PRINT).number):
        with pytest.raises(InputError, match="must be for a test that was passed"):
            kept.keep_certificate(ANNE, number, uuid(1), index, "jwt")
    kept.give_up_test(ANNE, number)
    with pytest.raises(InputError, match="must be for a test that was passed"):
        kept.keep_certificate(ANNE, number, uuid(1), index, "jwt")
    number = ended(kept, ANNE, PASSED)
    kept.keep_certificate(ANNE, number, uuid(1), index, "j.w.t")
    found = opened().certificate(uuid(1))
    assert found is not None
    assert (found.id, found.learner, found.test, found.jwt) == (uuid(1), ANNE, number, "j.w.t")
    assert (found.index, found.revoked) == (index, False)
    assert abs(found.issued_at - time.time()) < 60
    for id, taken in ((uuid(1), kept.draw_index()), (uuid(2), index), (uuid(3), INDICES)):
        with pytest.raises(InputError, match="must have an id of its own, and an index that was drawn"):
            kept.keep_certificate(ANNE, number, id, taken, "jwt")
    assert kept.revoked_indices() == [], "what was refused takes no other's place"
    kept.keep_certificate(ANNE, number, uuid(4), kept.draw_index(), "again")  # what was lost is issued again
    assert [(c.id, c.revoked) for c in kept.certificates(ANNE)] == [(uuid(1), True), (uuid(4), False)]
    assert kept.certificates(BEN) == []
    assert kept.certificate(uuid(9)) is None


def test_an_index_is_drawn_once_by_whomever(opened: Opened) -> None:
    kept = [opened() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda n: kept[n % 4].draw_index(), range(80)))
    assert len(set(drawn)) == 80
    assert all(0 <= index < INDICES for index in drawn)
    assert drawn != sorted(drawn)
    assert max(drawn) - min(drawn) > INDICES / 4, "they come from all of the list"
    assert kept[0].revoked_indices() == []


def test_the_last_index_is_found_and_then_there_is_none(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(dpsim.kept_tests, "INDICES", 30)
    kept = opened()
    assert sorted(kept.draw_index() for _ in range(30)) == list(range(30))
    with pytest.raises(InputError, match="status list: must have room for one more of 30"):
        kept.draw_index()


def test_what_is_revoked_stays_so(opened: Opened) -> None:
    kept = opened()
    indices = [certified(kept, learner, uuid(n)) for n, learner in enumerate((ANNE, ANNE, BEN))]
    kept.revoke(uuid(1))
    kept.revoke(uuid(1))
    assert opened().revoked_indices() == [indices[1]]
    assert [c.revoked for c in kept.certificates(ANNE)] == [False, True]
    kept.revoke(uuid(2))
    assert kept.revoked_indices() == sorted(indices[1:])
    with pytest.raises(InputError, match="must be the id of one that is kept here"):
        kept.revoke(uuid(9))


def test_what_is_left_of_a_deleted_learner_can_still_be_revoked(opened: Opened) -> None:
    kept = opened()
    index = certified(kept, ANNE, uuid(1))
    kept.delete(ANNE)
    kept.revoke_index(index)
    assert kept.revoked_indices() == [index]
    with pytest.raises(InputError, match="must be one that was drawn here"):
        kept.revoke_index((index + 1) % INDICES)
    assert kept.revoked_indices() == [index]


def test_deleting_a_learner_leaves_indices_that_point_to_nobody(opened: Opened, url: str) -> None:
    kept = opened()
    first, second = certified(kept, ANNE, uuid(1)), certified(kept, ANNE, uuid(2))
    third = certified(kept, BEN, uuid(3))
    kept.answer_test(ANNE, kept.begin_test(ANNE, "open", PRINT).number, 0, "a-secret-thing")
    kept.revoke(uuid(1))
    kept.delete(ANNE)
    assert kept.certificate(uuid(1)) is kept.certificate(uuid(2)) is None
    assert kept.tests(ANNE) == kept.certificates(ANNE) == []
    left = rows(url, *OF_LEARNER, "status_indices")
    assert [len(left[table]) for table in OF_LEARNER] == [1, 1, 0, 1]
    assert ANNE not in json.dumps(left, default=str)
    assert sorted(left["status_indices"]) == sorted([(first, True), (second, False), (third, False)])
    assert kept.revoked_indices() == [first]
    if url.startswith("sqlite"):
        folder = Path(url.removeprefix("sqlite:///")).parent
        assert not [file for file in folder.iterdir() if b"a-secret-thing" in file.read_bytes()]
    assert kept.certificate(uuid(3)) is not None


def test_the_export_is_everything_but_the_seed_of_an_open_test(opened: Opened, url: str) -> None:
    kept = opened()
    assert not kept.knows(ANNE)
    index = certified(kept, ANNE, uuid(1))
    number = kept.begin_test(ANNE, "not-to-be-told", PRINT).number
    kept.answer_test(ANNE, number, 2, "1/2")
    certified(kept, BEN, uuid(2))
    export = kept.export(ANNE)
    assert kept.knows(ANNE)
    assert json.loads(json.dumps(export)) == export
    assert "not-to-be-told" not in json.dumps(export)
    done, open_one = export["tests"]
    assert (done["seed"], done["right"], done["of"], done["answers"]) == ("s", 4, 5, [])
    stored = {row[0]: row for row in rows(url, "tests")["tests"]}
    told = [value for key, value in done.items() if key != "answers"]
    assert {ANNE, *told} == set(stored[done["number"]])
    told = [value for key, value in open_one.items() if key != "answers"]
    assert {ANNE, "not-to-be-told", *told} == set(stored[number])
    (answer,) = open_one["answers"]
    assert [(number, *answer.values())] == [row[1:] for row in rows(url, "test_answers")["test_answers"]]
    (certificate,) = export["certificates"]
    assert (certificate["id"], certificate["index"], certificate["revoked"]) == (uuid(1), index, False)
    assert certificate["jwt"] == f"jwt of {uuid(1)}"


def test_a_gradebook_has_every_test_and_no_whole_learner(opened: Opened) -> None:
    kept = opened()
    certified(kept, ANNE, uuid(1))
    failed = ended(kept, BEN, FAILED)
    kept.keep_certificate(ANNE, kept.tests(ANNE)[0].number, uuid(2), kept.draw_index(), "again")
    kept.begin_test(ANNE, "open", PRINT)
    found = kept.all_tests()
    assert [(r.learner, r.score, r.certificate, r.ended is None) for r in found] == [
        (ANNE[:12], PASSED, uuid(2), False),
        (BEN[:12], FAILED, "", False),
        (ANNE[:12], None, "", True),
    ]
    assert found[1].begun == kept.tests(BEN)[0].begun
    assert failed == kept.tests(BEN)[0].number
    assert ANNE not in repr(found)


def test_a_database_of_before_there_were_tests_gets_the_tables(url: str) -> None:
    engine = sql.create_engine(url, poolclass=sql.pool.NullPool)
    number = "INTEGER PRIMARY KEY" if url.startswith("sqlite") else "BIGSERIAL PRIMARY KEY"
    with engine.begin() as connection:
        for table in (
            "learners (id VARCHAR(64) PRIMARY KEY, created_at DOUBLE PRECISION NOT NULL)",
            f"attempts (number {number}, learner VARCHAR(64) NOT NULL REFERENCES learners (id) "
            "ON DELETE CASCADE, item VARCHAR(200) NOT NULL, seed VARCHAR(40) NOT NULL, kind VARCHAR(40) "
            'NOT NULL, given VARCHAR(4000) NOT NULL, "right" BOOLEAN NOT NULL, misconception VARCHAR(200) '
            "NOT NULL, at DOUBLE PRECISION NOT NULL)",
            f"places (number {number}, learner VARCHAR(64) NOT NULL REFERENCES learners (id) "
            "ON DELETE CASCADE, place VARCHAR(200) NOT NULL, given VARCHAR(4000) NOT NULL, "
            "UNIQUE (learner, place))",
        ):
            connection.execute(sql.text(f"CREATE TABLE {table}"))
        connection.execute(sql.text(f"INSERT INTO learners VALUES ('{ANNE}', 1.0)"))
        insert = "INSERT INTO places (learner, place, given) VALUES"
        connection.execute(sql.text(f"{insert} ('{ANNE}', 'a/b/c', '2')"))
    kept = Store(url)
    kept.record(ANNE, attempt(1))
    certified(kept, ANNE, uuid(1))
    assert kept.answers(ANNE) == {"a/b/c": "2"}
    assert len(kept.export(ANNE)["certificates"]) == 1
    kept.delete(ANNE)
    assert not any(rows(url, *OF_LEARNER, "attempts", "places").values())
    kept.close()


def test_a_database_that_cannot_be_reached_is_said_to_be(tmp_path: Path) -> None:
    file = tmp_path / "p.sqlite3"
    file.write_bytes(b"no database" * 1000)
    kept = Store(f"sqlite:///{file}")
    calls: list[Callable[[], object]] = [
        lambda: kept.begin_test(ANNE, "1", PRINT),
        lambda: kept.tests(ANNE),
        lambda: kept.test_answers(ANNE, 1),
        lambda: kept.answer_test(ANNE, 1, 1, "1"),
        lambda: kept.end_test(ANNE, 1, lambda _: PASSED),
        lambda: kept.give_up_test(ANNE, 1),
        lambda: kept.certificate(uuid(1)),
        lambda: kept.certificates(ANNE),
        lambda: kept.keep_certificate(ANNE, 1, uuid(1), 1, "jwt"),
        kept.draw_index,
        lambda: kept.revoke(uuid(1)),
        kept.revoked_indices,
        kept.all_tests,
        lambda: kept.knows(ANNE),
    ]
    for call in calls:
        with pytest.raises(UnreachableError, match=r"^The database cannot be reached\.$"):
            call()
