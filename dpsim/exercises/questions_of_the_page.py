"""The six questions of an encyclopedia's page on data parallelism (E10), in other words for every seed.

Their words are in content/questions_of_the_page.toml, and a misspelt key there is an error.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import partial
from importlib import resources
from random import Random
from typing import Any

from dpsim.exercises.items import Drawn, Item, chosen
from dpsim.exercises.scenes import link
from dpsim.forms import preset
from dpsim.questions import Option


@dataclass(frozen=True)
class Pool:
    """What a question draws from; `wrong` are the wrong options."""

    title: str
    questions: tuple[str, ...]
    rights: tuple[str, ...]
    said: str
    solution: tuple[str, ...]
    wrong: tuple[Option, ...]
    link: str


def _pools() -> dict[str, Pool]:
    path = resources.files("dpsim") / "content" / "questions_of_the_page.toml"
    found = {}
    for name, table in tomllib.loads(path.read_text("utf-8")).items():
        wrong = tuple(Option(**option) for option in table.pop("wrong"))
        shown, beat = table.pop("preset", ""), table.pop("beat", "")
        opens = link(preset(shown), beat) if shown else ""
        texts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
        found[name] = Pool(**texts, wrong=wrong, link=opens)
    return found


def _asked(pool: Pool, draw: Random) -> Drawn:
    right = Option(draw.choice(pool.rights), pool.said, right=True)
    wrong = draw.sample(pool.wrong, draw.choice((3, 4)))
    return Drawn(
        chosen(draw, "choose-one", pool.questions, (right,), wrong, solution=pool.solution, link=pool.link)
    )


ITEMS = tuple(
    Item(f"x-{name}", pool.title, "page", ("choose-one",), partial(_asked, pool))
    for name, pool in _pools().items()
)
