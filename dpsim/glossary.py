"""The glossary: what a term means, and where terms stand in a text, to be explained in place."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources


@dataclass(frozen=True)
class Term:
    """A term, what it means in a sentence or two, and its other written forms."""

    name: str
    says: str
    also: tuple[str, ...] = ()


@cache
def glossary() -> dict[str, Term]:
    """All terms by name, in the order of the file."""
    text = (resources.files("dpsim") / "content" / "glossary.toml").read_text("utf-8")
    return {
        name: Term(name, entry["says"], tuple(entry.get("also", ())))
        for name, entry in tomllib.loads(text).items()
    }


@cache
def _forms() -> tuple[re.Pattern[str], dict[str, Term]]:
    forms = {form.lower(): term for term in glossary().values() for form in (term.name, *term.also)}
    longest_first = sorted(forms, key=len, reverse=True)
    pattern = rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])"
    return re.compile(pattern, re.IGNORECASE), forms


@lru_cache(maxsize=8192)
def terms_in(text: str) -> tuple[tuple[int, int, Term], ...]:
    """Start, end and term of the first occurrence of every term in `text`, in order."""
    pattern, forms = _forms()
    found: dict[str, tuple[int, int, Term]] = {}
    for match in pattern.finditer(text):
        term = forms[match.group().lower()]
        found.setdefault(term.name, (match.start(), match.end(), term))
    return tuple(sorted(found.values(), key=lambda place: place[0]))
