r"""The bank's Markdown as Moodle reads it: formulas between \( and \), safe from its Markdown.

Moodle makes HTML of Markdown first and looks for formulas afterwards. So whatever Markdown would take for its
own stands behind a backslash: a backslash itself, an underscore, a star.
"""

from __future__ import annotations

import re

from dpsim.prose import pieces

_MARKDOWN = re.compile(r"[\\`*_\[\]]")
_HTML = {"<": r"\lt ", ">": r"\gt "}


def with_mathjax(text: str) -> str:
    """`text` with every formula in the form that MathJax finds in Moodle's HTML."""
    return "".join(_formula(piece) if kind == "formula" else piece for kind, piece in pieces(text))


def _formula(piece: str) -> str:
    shown = piece.startswith("$$")
    tex = " ".join(piece.strip("$").split())
    for sign, command in _HTML.items():
        tex = tex.replace(sign, command)
    escaped = _MARKDOWN.sub(r"\\\g<0>", tex)
    return rf"\\[{escaped}\\]" if shown else rf"\\({escaped}\\)"
