"""Text for Streamlit's Markdown: what someone typed is shown literally."""

from __future__ import annotations

import re

from dpsim.beats import Beat
from dpsim.wording import duration

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


def beats_markdown(told: tuple[Beat, ...]) -> str:
    """The list of beats as Markdown, complete without the stage."""
    blocks = []
    for i, beat in enumerate(told, 1):
        lines = [f"**{i}\\. {literal(beat.title)}** at {literal(duration(beat.moment_s))}"]
        lines.append(literal(beat.sentence))
        lines += [f"`{line}`" for line in beat.arithmetic]
        lines += [f"- {literal(line)}" for line in beat.details]
        blocks.append("  \n".join(lines[: 2 + len(beat.arithmetic)]))
        if beat.details:
            blocks.append("\n".join(lines[2 + len(beat.arithmetic) :]))
    return "\n\n".join(blocks)
