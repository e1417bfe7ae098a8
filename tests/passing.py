"""A server that issues certificates, and a learner who has passed a test there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpsim.credential import keys
from dpsim.exercises import items
from dpsim.final_test import Posed, fingerprint, objectives, questions
from dpsim.kept_tests import Sitting
from dpsim.questions import Asked
from dpsim.recovery import learner_id
from dpsim.score import Score
from dpsim.store import Store

KEY = "0123456789abcdef" * 2
WHO = learner_id(KEY)
SEED = "a test that was passed"
ITEM = next(iter(items()))


def settings(folder: Path, base_url: str, database: str) -> dict[str, str]:
    """The environment of a server with a new key in `folder`."""
    keys.new(folder / "key.pem")
    return {
        "DPSIM_KEY": str(folder / "key.pem"),
        "DPSIM_BASE_URL": base_url,
        "DPSIM_DATABASE": database,
        "DPSIM_ISSUER": "A school",
    }


@cache
def posed() -> tuple[Posed, ...]:
    return questions(SEED, objectives())


def sat(kept: Store, right: int, who: str = WHO) -> Sitting:
    """A test of `who`, handed in with one answer and a score of so many of 36."""
    test = kept.begin_test(who, SEED, fingerprint(posed()))
    kept.answer_test(who, test.number, 0, given(posed()[0].asked))
    kept.end_test(who, test.number, lambda _: Score(right, 36))
    return kept.tests(who)[-1]


def given(asked: Asked) -> str:
    """Some answer that can be given to a question."""
    return {"number": "7", "choose-one": "0", "choose-several": "0", "cell": "0.0"}.get(
        asked.kind, ",".join(map(str, range(len(asked.options))))
    )
