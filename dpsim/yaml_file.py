"""YAML as people write it by hand: tables, lists and texts, each with the line it stands on.

Every scalar is the text that was written, so that `no` is no truth value and `0.1` no float. Anchors,
aliases, tags and keys that stand twice are refused; depth and number are bounded while the file is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import yaml

from dpsim.checks import InputError, key_shown

MOST_DEPTH = 8
MOST_VALUES = 20_000
# Neither control characters and halves of characters, nor what YAML alone takes for the end of a line.
_REFUSED = re.compile(r"[^\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Value:
    """What was written, where it stands (`path` as in ``wrong[0].formula``), and whether a text follows a |,
    so that its first line is the next of the file."""

    file: str
    line: int
    path: str
    written: str | tuple[Value, ...] | dict[str, Value]
    literal: bool = False

    @property
    def field(self) -> str:
        """Its name in a message."""
        return self.at(self.line)

    def at(self, line: int) -> str:
        """Its name in a message about another of its lines."""
        return f"{self.file}, line {line}: {self.path}" if self.path else f"{self.file}, line {line}"

    def line_of(self, place: int) -> int:
        """The line on which the character at `place` of its text stands, as far as that is known."""
        return self.line + 1 + str(self.written).count("\n", 0, place) if self.literal else self.line

    def inside(self, key: str) -> Value:
        """The place of `key` in a table that stands here."""
        return replace(self, path=f"{self.path}.{key_shown(key)}" if self.path else key_shown(key))

    def wrong(self, rule: str, got: object = None) -> InputError:
        """The error that `rule` does not hold here."""
        kinds = {tuple: "a list", dict: "a table"}
        return InputError(
            self.field, rule, kinds.get(type(self.written), self.written) if got is None else got
        )

    def text(self) -> str:
        """The text; InputError where it is a list or a table."""
        if not isinstance(self.written, str):
            raise self.wrong("must be text; where it begins with a sign, write it on lines below a |")
        return self.written

    def entries(self, least: int, most: int) -> tuple[Value, ...]:
        """The entries of a list of `least` to `most`."""
        if not isinstance(self.written, tuple):
            raise self.wrong("must be a list")
        if not least <= len(self.written) <= most:
            raise self.wrong(f"must have {least} to {most} entries", len(self.written))
        return self.written

    def named(self, least: int, most: int) -> dict[str, Value]:
        """The entries of a table of `least` to `most` names."""
        if not isinstance(self.written, dict):
            raise self.wrong("must be a table of keys")
        if not least <= len(self.written) <= most:
            raise self.wrong(f"must have {least} to {most} keys", len(self.written))
        return self.written


class Table:
    """The keys of a table, taken out one by one; what nobody took is unknown."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self.left = dict(value.named(0, MOST_VALUES))
        self.known: list[str] = []

    def find(self, key: str) -> Value | None:
        """What stands under `key`, if it is there."""
        self.known.append(key)
        return self.left.pop(key, None)

    def take(self, key: str) -> Value:
        """What stands under `key`; InputError where it is absent."""
        found = self.find(key)
        if found is None:
            raise InputError(self.value.inside(key).field, "is needed", None)
        return found

    def done(self) -> None:
        """All keys have been taken."""
        for value in self.left.values():
            raise value.wrong(f"unknown key; known are {', '.join(self.known)}")


def read_yaml(file: str, text: str) -> Value:
    """The value in the text of a file; InputError names the file, the line and what was expected."""
    text = text.replace("\r\n", "\n")
    if found := _REFUSED.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"{file}, line {line}", "must be plain text", found[0])
    loader = _Loader(file, text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise InputError(f"{file}, line 1", "must hold something", text[:40])
        return _value(node, Value(file, 1, "", ""))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        words = ", ".join(said for said in (error.context, error.problem) if said)
        rule = f"must be YAML ({words}, at column {column + 1})"
        if "mapping values" in rule:
            rule += "; a text with a colon in it stands on lines below a |"
        got = text.split("\n")[line].strip() if line < text.count("\n") + 1 else "the end"
        raise InputError(f"{file}, line {line + 1}", rule, got[:40]) from None
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Composes nodes, but none that refers to another, has a type of its own, or lies too deep."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(text)
        self.file = file
        self.depth = self.count = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        parser: Any = self  # the types of what it inherits from the parser are not written down
        event = parser.peek_event()
        where = f"{self.file}, line {_line(event.start_mark)}"
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if anchor is not None:
            raise InputError(where, "must have no anchors (&) and no aliases (*)", anchor)
        if tag is not None:
            raise InputError(where, "must have no tags (!)", tag)
        self.count += 1
        if self.count > MOST_VALUES:
            raise InputError(where, f"must hold at most {MOST_VALUES} values", "more")
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise InputError(where, f"must nest at most {MOST_DEPTH} lists and tables", "more")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _line(mark: Any) -> int:
    """The line of a mark, counted from 1."""
    return int(mark.line) + 1


def _value(node: yaml.Node, at: Value) -> Value:
    """The value of a node that stands `at` a place."""
    if isinstance(node, yaml.ScalarNode):  # the line of its first sign, not that of its key
        return replace(at, line=_line(node.start_mark), written=node.value, literal=node.style == "|")
    if isinstance(node, yaml.SequenceNode):
        places = (
            replace(at, line=_line(entry.start_mark), path=f"{at.path}[{i}]" if at.path else "")
            for i, entry in enumerate(node.value)
        )
        return replace(at, written=tuple(map(_value, node.value, places)))
    table: dict[str, Value] = {}
    for key, inside in node.value:
        place = replace(at, line=_line(key.start_mark))
        if not isinstance(key, yaml.ScalarNode):
            raise place.wrong("must have names as keys", "a list or a table")
        place = place.inside(key.value)
        if key.value in table:
            rule = f"must not stand twice; it stands in line {table[key.value].line} as well"
            raise place.wrong(rule, key.value)
        table[key.value] = _value(inside, place)
    return replace(at, written=table)
