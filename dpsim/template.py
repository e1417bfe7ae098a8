"""Texts in which numbers are filled in: {name}, and {= formula}.

In a formula of Markdown ($…$) braces are TeX's, so there a number keeps its own, which TeX does not show:
\\frac{n}{ranks} is a fraction of two numbers. Behind a command, _, ^ or a brace they may hold anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from dpsim.checks import InputError
from dpsim.formula import NAME, Formula, Number, formula
from dpsim.prose import check_markdown, pieces
from dpsim.wording import number
from dpsim.yaml_file import Value

LONGEST = 4000
_BRACES = re.compile(r"\{([^{}]*)\}")
_TEX_S = re.compile(r"[A-Za-z_^}]\Z")  # what stands before braces that belong to TeX


@dataclass(frozen=True)
class Place:
    """Where a number is filled in; `in_tex` where it keeps its braces."""

    formula: Formula
    in_tex: bool


@dataclass(frozen=True)
class Template:
    """A text with places for numbers."""

    parts: tuple[str | Place, ...]

    def filled(self, values: Mapping[str, Number], write: Callable[[float], str] = number) -> str:
        """The text with its numbers in place. InputError where one of them has no value."""

        def fill(place: Place) -> str:
            written = write(float(place.formula.value(values)))
            return f"{{{written}}}" if place.in_tex else written

        return "".join(part if isinstance(part, str) else fill(part) for part in self.parts)


def markdown(value: Value, names: Collection[str]) -> Template:
    """The Markdown that was written, without HTML; InputError names the line and what was expected."""
    text = _written(value)
    start = 0
    for line in text.split("\n"):  # first line by line, so that a mistake's line is named
        check_markdown(value.at(value.line_of(start)), line)
        start += len(line) + 1
    check_markdown(value.field, text)
    parts: list[str | Place] = []
    start = 0
    for kind, piece in pieces(text):
        for sign in "$`" if kind == "text" else "":
            if sign in piece:
                where = value.at(value.line_of(start + piece.index(sign)))
                raise InputError(where, f"must close every {sign} with another", piece.strip()[:40])
        parts += _parts(value, piece, start, names, in_tex=kind == "formula")
        start += len(piece)
    return Template(tuple(parts))


def plain(value: Value, names: Collection[str]) -> Template:
    """The text that was written, as it is."""
    return Template(tuple(_parts(value, _written(value), 0, names, in_tex=False)))


def _written(value: Value) -> str:
    text = value.text()
    if not text.strip() or len(text) > LONGEST:
        raise value.wrong(f"must be text of 1 to {LONGEST} characters")
    return text


def _parts(
    value: Value, piece: str, start: int, names: Collection[str], *, in_tex: bool
) -> list[str | Place]:
    """What a piece is made of that stands at `start` of the text."""
    parts: list[str | Place] = []
    end = 0
    for found in _BRACES.finditer(piece):
        where = value.at(value.line_of(start + found.start()))
        inner = found[1].strip()
        if inner.startswith("="):
            place = Place(formula(where, inner[1:].strip(), names), in_tex)
        elif inner in names:
            place = Place(formula(where, inner, names), in_tex)
        elif in_tex and (_TEX_S.search(piece[: found.start()]) or not NAME.fullmatch(inner)):
            continue
        else:
            rule = f"must have one of {', '.join(names)} in braces, or = and a formula"
            raise InputError(where, rule, found[0])
        parts += [_kept(value, piece, start, end, found.start(), in_tex), place]
        end = found.end()
    return [*parts, _kept(value, piece, start, end, len(piece), in_tex)]


def _kept(value: Value, piece: str, start: int, begin: int, end: int, in_tex: bool) -> str:
    """A part of a piece that stays as it is: without braces, but for TeX's."""
    kept = piece[begin:end]
    found = None if in_tex else re.search("[{}]", kept)
    if found:
        where = value.at(value.line_of(start + begin + found.start()))
        raise InputError(where, "must have braces around a name or = and a formula alone", kept.strip()[:40])
    return kept
