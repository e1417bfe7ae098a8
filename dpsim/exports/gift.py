"""Questions in the GIFT format, as Moodle and others read it: text, a blank line after each question.

Of a number's unit GIFT knows nothing, so the question says it. It has no feedback for a right answer as a
whole: what there is stands before the worked solution.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from dpsim.exports.frozen import Frozen, LeftOut
from dpsim.exports.put import ANY, Answer, Put, decimal, line

_CONTROL = re.compile(r"[\\~=#{}:]")


def gift(
    questions: Iterable[tuple[Frozen, Put]], topics: Mapping[str, str], left_out: Sequence[LeftOut]
) -> str:
    """The questions, in categories by topic; above them, as remarks, what was left out."""
    blocks = ["".join(f"// {line(entry.said)}\n" for entry in left_out)] if left_out else []
    for topic, group in groupby(questions, key=lambda pair: pair[0].item.topic):
        blocks.append(f"$CATEGORY: $course$/top/dpsim/{line(topics[topic]).replace('/', '//')}\n")
        blocks += [_question(frozen, put) for frozen, put in group]
    return "\n".join(blocks)


def escaped(text: str) -> str:
    r"""`text` so that GIFT takes none of its characters for its own; a new line is \n."""
    return _CONTROL.sub(r"\\\g<0>", text).replace("\n", r"\n")


def _question(frozen: Frozen, put: Put) -> str:
    asks, begin = put.text, "{"
    if put.kind == "numerical":
        begin = "{#"
        if put.units:
            asks += f"\n\nType the number alone, without its unit ({put.units[0][0]})."
    general = "\n\n".join(part for part in (put.right, put.general) if part)
    lines = [
        f"// [id:{frozen.idnumber}] [tag:dpsim] [tag:{frozen.item.id}]",
        f"::{escaped(line(frozen.name))}::[markdown]{escaped(asks)} {begin}",
        *(f"\t{_ANSWERS[put.kind](answer)}" for answer in put.answers),
        f"\t####{_body(general)}",
        "}\n",
    ]
    return "\n".join(lines)


def _number(answer: Answer) -> str:
    if answer.text == ANY:
        return f"~#{_body(answer.feedback)}"
    return f"=%{decimal(answer.percent)}%{answer.text}:{answer.tolerance}#{_body(answer.feedback)}"


def _one(answer: Answer) -> str:
    return f"{'=' if answer.percent else '~'}{_body(answer.text)}#{_body(answer.feedback)}"


def _several(answer: Answer) -> str:
    return f"~%{decimal(answer.percent)}%{_body(answer.text)}#{_body(answer.feedback)}"


def _place(answer: Answer) -> str:
    return f"={_body(answer.of.replace('->', '→'))} -> {answer.text}"


_ANSWERS = {"numerical": _number, "single": _one, "multiple": _several, "matching": _place}


def _body(text: str) -> str:
    """`text` where a format in brackets or a weight between % could stand, which it may look like."""
    return f"{'[markdown]' if text[:1] in ('[', '%') else ''}{escaped(text)}"
