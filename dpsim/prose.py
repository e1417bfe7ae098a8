"""The Markdown of lessons: no HTML, figures in double braces, and where a digit may be typed at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dpsim.checks import InputError

FIGURE = re.compile(r"\{\{([^{}]*)\}\}")
_PIECES = re.compile(r"(?P<code>`[^`\n]*`)|(?P<formula>\$\$.*?\$\$|\$[^$\n]*\$)", re.DOTALL)
_HTML = re.compile(r"<(?:[A-Za-z/!?]|\{\{)")  # a figure may begin with a letter
_IMAGE = re.compile(r"!\[")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]*)")
_DEFINED = re.compile(r"\]:")  # a link defined apart, wherever it may stand
_LINKED = re.compile(r"https?://|/[A-Za-z0-9]|/?#|/$")

# A digit may be typed where it is no number of a run: in code, as 0, 1 or 2 in formulas (1/R, an index),
# after a letter (S1, L2), as the name of a rank ("ranks 0 and 1"), and as the number of a list's entry.
_RANKS = re.compile(r"\branks? \d+(?:(?:, | and | to | or )\d+)*", re.IGNORECASE)
_ENTRY = re.compile(r"^\s*\d+\. ", re.MULTILINE)
_TARGET = re.compile(r"\]\([^)\n]*\)")  # where a link leads to
_TYPED = re.compile(r"(?<![A-Za-z0-9])[0-9][0-9.,/%]*")
_CONSTANT = re.compile(r"(?<![0-9.,])[012](?![0-9]|[.,][0-9])")


_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:^=<>&])")


# What Markdown makes links and typography of whatever is escaped; an unseen word joiner keeps it apart.
_JOINED = re.compile(
    r"(?<=:)(?=\S)|(?<=www)(?=\.)|(?<=@)|(?<=-)(?=[->])|(?<=<)(?=-)|(?<=[<>~])(?==)", re.IGNORECASE
)


def literal(text: str) -> str:
    """`text` so that Markdown shows it as it is: no emphasis, formula, link, emoji or HTML."""
    apart = _JOINED.sub("\u2060", " ".join(text.split()))
    escaped = _SPECIAL.sub(r"\\\1", apart)
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")


def check_markdown(field: str, text: str) -> str:
    """`text`, if it holds no HTML, no image, and links only to pages."""
    refused = ((_HTML, "no HTML"), (_IMAGE, "no image"), (_DEFINED, "no link defined apart"))
    for pattern, what in refused:
        if found := pattern.search(text):
            raise InputError(field, f"must hold {what}", text[found.start() :][:40])
    for found in _LINK.finditer(text):
        if not _LINKED.match(found[1]):
            raise InputError(field, "must link to https://…, http://…, /… or #… only", found[1])
    return text


def references(text: str) -> list[str]:
    """What stands between double braces, in order."""
    return [found[1].strip() for found in FIGURE.finditer(text)]


def filled(text: str, figure: Callable[[str], str], literal: Callable[[str], str] = str) -> str:
    """`text` with every figure in its place, as code, formulas and Markdown need it; `literal` escapes those
    that stand in the Markdown."""
    written: dict[str, Callable[[str], str]] = {"code": str, "formula": _tex, "text": literal}

    def fill(kind: str, piece: str) -> str:
        return FIGURE.sub(lambda found: written[kind](figure(found[1].strip())), piece)

    return "".join(fill(kind, piece) for kind, piece in pieces(text))


def typed_digits(text: str) -> list[str]:
    """The numbers in `text` that were typed and not computed."""
    found = []
    for kind, piece in pieces(_TARGET.sub("]", FIGURE.sub("", text))):
        if kind == "formula":
            found += _TYPED.findall(_CONSTANT.sub("", piece))
        elif kind == "text":
            found += _TYPED.findall(_ENTRY.sub("", _RANKS.sub("", piece)))
    return found


def words(text: str) -> int:
    """How many words a reader reads."""
    return len(re.findall(r"[\w’'-]+", FIGURE.sub("figure", text)))


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """The text cut into code spans, formulas and the rest."""
    place = 0
    for found in _PIECES.finditer(text):
        yield "text", text[place : found.start()]
        yield str(found.lastgroup), found.group()
        place = found.end()
    yield "text", text[place:]


def _tex(figure: str) -> str:
    """A figure in a formula: words and units stand upright, apart from their number, and % is no comment."""
    apart = re.sub(r"(?<=[0-9]) (?=[A-Za-zµ%])", r"\\,", figure)
    return re.sub(r"[A-Za-zµ]+", lambda word: rf"\text{{{word.group()}}}", apart).replace("%", r"\%")
