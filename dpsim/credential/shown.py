"""What paper and picture show of a certificate."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from dpsim.checks import InputError
from dpsim.credential.looks import can_be_set

LONGEST = {"id": 60, "name": 100, "title": 100, "score": 40, "date": 40, "issuer": 200, "link": 300}
KEY = "Learners have no account: a key that their browser keeps stands for each of them."
NAMELESS = (
    f"It carries no name. It proves that whoever holds the browser’s key passed; not who that was. {KEY}"
)
NAMED = (
    "The name was typed by the learner and checked by nobody. What is proved is that whoever holds the "
    f"browser’s key passed. {KEY}"
)

_LINK = re.compile(r"https?://[!-~]+")


def proves(name: str) -> str:
    """What a certificate under a name, or under none, proves and what it does not."""
    return NAMED if name.strip() else NAMELESS


@dataclass(frozen=True)
class Shown:
    """One certificate, each part as text: its id, the name that the learner typed (or ""), what was passed,
    the score, the date, the issuer's name, and the link of the page that verifies it.

    `name` and `issuer` may be in any script; InputError for anything else the fonts do not have.
    """

    id: str
    name: str
    title: str
    score: str
    date: str
    issuer: str
    link: str

    def __post_init__(self) -> None:
        for field, longest in LONGEST.items():
            _line(field, getattr(self, field), 0 if field == "name" else 1, longest)
        for field in ("id", "title", "score", "date"):
            if not can_be_set(getattr(self, field)):
                raise InputError(field, "must be in Latin, Greek or Cyrillic letters", getattr(self, field))
        if not _LINK.fullmatch(self.link):
            raise InputError("link", "must be an http or https address in ASCII", self.link)


def _line(field: str, value: object, least: int, most: int) -> None:
    rule = f"must be one line of {least} to {most} characters"
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise InputError(field, rule, value)
    # Invisible characters such as joiners belong to some scripts; line ends and half characters to none.
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in value):
        raise InputError(field, rule, value)
