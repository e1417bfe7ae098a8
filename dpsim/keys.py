"""The keys of a lesson's tables: taken out one by one, each checked; an error names the place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpsim.checks import InputError, choice, key_shown, sequence
from dpsim.checks import text as one_line
from dpsim.figures import Figure
from dpsim.misconceptions import misconceptions
from dpsim.prose import FIGURE, check_markdown, references
from dpsim.scenario import Scenario
from dpsim.setting import Setting, scenario_on

LONGEST_TEXT = 4000
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class Keys:
    """The keys of one TOML table, taken out one by one: each is checked, and what nobody took is unknown."""

    def __init__(self, where: str, data: Any, setting: Setting) -> None:
        if not isinstance(data, dict):
            raise InputError(where, "must be a table of keys", data)
        self.where, self.setting = where, setting
        self.left = dict(data)
        self.known: list[str] = []

    def take(self, key: str, default: Any = None) -> Any:
        """The value of `key`; InputError where it is absent and has no default."""
        self.known.append(key)
        value = self.left.pop(key, default)
        if value is None:
            raise InputError(f"{self.where}.{key}", "is needed", None)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A piece of Markdown, without HTML, whose figures all exist."""
        value = self.take(key, default)
        name = f"{self.where}.{key}"
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            raise InputError(name, f"must be text of at most {LONGEST_TEXT} characters", value)
        return check_text(name, value, self.setting)

    def name(self, key: str, default: str | None = None) -> str:
        """A short plain text on one line."""
        return one_line(f"{self.where}.{key}", self.take(key, default), 100)

    def slug(self, key: str) -> str:
        """A name of small letters, digits and hyphens."""
        value = self.name(key)
        if not NAME.fullmatch(value):
            raise InputError(f"{self.where}.{key}", "must be small letters and digits with hyphens", value)
        return value

    def one_of(self, key: str, options: tuple[str, ...], default: str | None = None) -> str:
        """One of some words."""
        return choice(f"{self.where}.{key}", self.take(key, default), options)

    def several_of(
        self, key: str, options: tuple[str, ...], default: tuple[str, ...] | None = None
    ) -> tuple[str, ...]:
        """Some of some words."""
        name = f"{self.where}.{key}"
        found = sequence(name, self.take(key, default), len(options))
        return tuple(choice(f"{name}[{i}]", value, options) for i, value in enumerate(found))

    def scenario(self) -> Scenario:
        """The scenario: the lesson's own, a variant or preset by name, or keys on top of the lesson's."""
        written = self.take("scenario", "")
        with placed(f"{self.where}.scenario"):
            if isinstance(written, str):
                return self.setting.named(written)
            return scenario_on(self.setting.scenario, written)

    def figure(self, key: str) -> Figure:
        """The figure that is referred to, if it is one number."""
        with placed(f"{self.where}.{key}"):
            return self.setting.number(self.name(key))

    def misconception(self) -> str:
        """The id of the misconception that a wrong answer shows, or nothing."""
        return self.one_of("misconception", ("", *misconceptions()), "")

    def tables(self, key: str) -> list[Keys]:
        """The tables of a list of tables; none where it is absent."""
        found = self.take(key, [])
        if not isinstance(found, list):
            raise InputError(f"{self.where}.{key}", "must be a list of tables", found)
        return [Keys(f"{self.where}.{key}[{i}]", table, self.setting) for i, table in enumerate(found)]

    def done(self) -> None:
        """All keys have been taken."""
        for key, value in self.left.items():
            field = f"{self.where}.{key_shown(key)}"
            raise InputError(field, f"unknown key; known are {', '.join(self.known)}", value)


@contextmanager
def placed(where: str) -> Iterator[None]:
    """An InputError from inside has `where` before its field."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error.field}", error.rule, error.value) from None


def check_text(field: str, text: str, setting: Setting) -> str:
    """`text`, if it is Markdown without HTML whose figures all exist."""
    check_markdown(field, text)
    for reference in references(text):
        with placed(field):
            setting.figure(reference)
    if "{{" in FIGURE.sub("", text):
        raise InputError(field, "must close every {{ with }}", text)
    return text
