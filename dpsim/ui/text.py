"""Text for Streamlit's Markdown: terms explained in place, beats as a list, tables."""

from __future__ import annotations

import re
from html import escape

from dpsim.beats import Beat
from dpsim.glossary import terms_in
from dpsim.prose import literal
from dpsim.wording import duration

NONE = "—"

# What a term must not be marked in: fenced and inline code, formulas, links, headings.
_KEPT = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|^#[^\n]*", re.DOTALL | re.MULTILINE
)


def explained(markdown: str) -> str:
    """Our own Markdown with every term explained in place: hover, tap or focus it. Show it with HTML allowed.

    Only for text that holds no HTML and nothing that somebody typed: both are checked by whoever read it.
    """
    parts, place = [], 0
    plain = _KEPT.sub(lambda kept: "\0" * len(kept.group()), markdown)
    for start, end, term in terms_in(plain):
        says = escape(term.says, quote=True)
        word = f'<abbr class="term" tabindex="0" data-says="{says}">{markdown[start:end]}</abbr>'
        parts += [markdown[place:start], word]
        place = end
    return "".join([*parts, markdown[place:]])


def _code(text: str) -> str:
    """`text` as a code span that nothing in it can end."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def beats_markdown(told: tuple[Beat, ...]) -> str:
    """The list of beats as Markdown, complete without the stage."""
    blocks = []
    for i, beat in enumerate(told, 1):
        lines = [f"**{i}\\. {literal(beat.title)}** at {literal(duration(beat.moment_s))}"]
        lines.append(literal(beat.sentence))
        lines += [_code(line) for line in beat.arithmetic]
        lines += [f"- {literal(line)}" for line in beat.details]
        blocks.append("  \n".join(lines[: 2 + len(beat.arithmetic)]))
        if beat.details:
            blocks.append("\n".join(lines[2 + len(beat.arithmetic) :]))
    return "\n\n".join(blocks)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown, of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
