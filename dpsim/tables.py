"""The tables of the database: learners, what they answered, their tests and certificates.

All that belongs to a learner goes with the learner. The status indices do not: whether a certificate was
revoked can still be asked after its learner was deleted, and nothing in them points to one.
"""

from __future__ import annotations

import sqlalchemy as sql

from dpsim.progress import LONGEST_GIVEN, LONGEST_NAME, LONGEST_SEED

LONGEST_JWT = 65_536
NUMBER = sql.BigInteger().with_variant(sql.Integer, "sqlite")  # the only kind that SQLite counts up by itself

TABLES = sql.MetaData()


def _counted() -> sql.Column[int]:
    return sql.Column("number", NUMBER, primary_key=True, autoincrement=True)


def _whose() -> sql.Column[str]:
    return sql.Column(
        "learner", sql.ForeignKey("learners.id", ondelete="CASCADE"), nullable=False, index=True
    )


LEARNERS = sql.Table(
    "learners",
    TABLES,
    sql.Column("id", sql.String(64), primary_key=True),
    sql.Column("created_at", sql.Double, nullable=False),
)
ATTEMPTS = sql.Table(
    "attempts",
    TABLES,
    _counted(),
    _whose(),
    sql.Column("item", sql.String(LONGEST_NAME), nullable=False),
    sql.Column("seed", sql.String(LONGEST_SEED), nullable=False),
    sql.Column("kind", sql.String(40), nullable=False),
    sql.Column("given", sql.String(LONGEST_GIVEN), nullable=False),
    sql.Column("right", sql.Boolean, nullable=False),
    sql.Column("misconception", sql.String(LONGEST_NAME), nullable=False),
    sql.Column("at", sql.Double, nullable=False),
)
PLACES = sql.Table(
    "places",
    TABLES,
    _counted(),
    _whose(),
    sql.Column("place", sql.String(LONGEST_NAME), nullable=False),
    sql.Column("given", sql.String(LONGEST_GIVEN), nullable=False),
    sql.UniqueConstraint("learner", "place"),
)
TESTS = sql.Table(
    "tests",
    TABLES,
    _counted(),
    _whose(),
    sql.Column("seed", sql.String(LONGEST_SEED), nullable=False),
    sql.Column("fingerprint", sql.String(64), nullable=False),
    sql.Column("begun", sql.Double, nullable=False),
    sql.Column("ended", sql.Double),  # nothing while it is open
    sql.Column("right", sql.Integer),  # nothing while it is open, and for ever where it was given up
    sql.Column("of", sql.Integer),
)
TEST_ANSWERS = sql.Table(
    "test_answers",
    TABLES,
    _counted(),
    sql.Column("test", sql.ForeignKey("tests.number", ondelete="CASCADE"), nullable=False),
    sql.Column("question", sql.Integer, nullable=False),
    sql.Column("given", sql.String(LONGEST_GIVEN), nullable=False),
    sql.Column("at", sql.Double, nullable=False),
    sql.UniqueConstraint("test", "question"),
)
STATUS_INDICES = sql.Table(
    "status_indices",
    TABLES,
    sql.Column("index", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("revoked", sql.Boolean, nullable=False),
)
CERTIFICATES = sql.Table(
    "certificates",
    TABLES,
    sql.Column("id", sql.String(36), primary_key=True),
    _whose(),
    sql.Column("test", sql.ForeignKey("tests.number", ondelete="CASCADE"), nullable=False, index=True),
    sql.Column("jwt", sql.Text, nullable=False),
    sql.Column("index", sql.ForeignKey("status_indices.index"), nullable=False, unique=True),
    sql.Column("issued_at", sql.Double, nullable=False),
)
