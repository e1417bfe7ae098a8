"""A question of the bank as learning platforms know questions: what the formats share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from dpsim.exports.frozen import Frozen
from dpsim.exports.mathjax import with_mathjax
from dpsim.typed_number import units_for

ANY = "*"  # the answer that meets whatever no other has met
WRONG_CHOICE = -100.0  # of several: a wrong one takes all, the nearest to all or nothing
PLACES = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")  # no more steps are put in order
_NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0 has no such characters


@dataclass(frozen=True)
class Answer:
    """An answer, what it is worth in percent, what is said to it, and how far from a number one may be.

    `text` is Markdown in a question with options, a decimal number or ANY in one for a number, and the place
    of the step `of` where steps are put in order.
    """

    text: str
    percent: float
    feedback: str = ""
    tolerance: str = "0"
    of: str = ""


@dataclass(frozen=True)
class Put:
    """A question in Markdown with MathJax. `kind` is numerical, single, multiple or matching.

    `right` is said about what is right where no answer says so itself, `general` to everybody afterwards.
    `units` are what may stand behind a number: how many of it make one of the first.
    """

    kind: str
    text: str
    answers: tuple[Answer, ...]
    general: str
    right: str = ""
    units: tuple[tuple[str, str], ...] = ()


def put(frozen: Frozen, base_url: str) -> Put:
    """The question as platforms know it, with links into the app at `base_url`, or without where it is ""."""
    asked = frozen.asked
    general = [asked.solution]
    if asked.kind == "order":
        general += ["\n".join(f"{i}. {o.text}. {o.feedback}" for i, o in enumerate(asked.options, 1))]
    if base_url and asked.link:
        general += [f"[See exactly this on the stage]({base_url}/lab?{asked.link})"]
    kind, answers, right, units = _KINDS[asked.kind](frozen)
    return Put(kind, _text(asked.question), answers, _text("\n\n".join(general)), _text(right), units)


Parts = tuple[str, tuple[Answer, ...], str, tuple[tuple[str, str], ...]]


def _number(frozen: Frozen) -> Parts:
    asked = frozen.asked
    tolerance = decimal(asked.tolerance)
    answers = (
        Answer(decimal(asked.answer), 100, _text(asked.feedback), tolerance),
        *(Answer(decimal(slip.value), 0, _text(slip.feedback), tolerance) for slip in asked.wrong),
        Answer(ANY, 0, _text(asked.other)),
    )
    units = tuple((line(name), decimal(1 / factor)) for name, factor in units_for(asked.unit).items())
    return "numerical", answers, "", units


def _one(frozen: Frozen) -> Parts:
    options = frozen.asked.options
    answers = tuple(Answer(_text(o.text), 100 * o.right, _text(o.feedback)) for o in options)
    return "single", answers, frozen.asked.feedback, ()


def _several(frozen: Frozen) -> Parts:
    asked = frozen.asked
    share = round(100 / len(asked.right_options), 5)
    answers = tuple(
        Answer(_text(o.text), share if o.right else WRONG_CHOICE, _text(o.feedback)) for o in asked.options
    )
    return "multiple", answers, asked.feedback, ()


def _order(frozen: Frozen) -> Parts:
    asked = frozen.asked
    shown = asked.shuffled(frozen.idnumber)  # not every platform shuffles them
    answers = tuple(Answer(PLACES[i], 100, of=_text(asked.options[i].text)) for i in shown)
    return "matching", answers, asked.feedback, ()


def _cell(frozen: Frozen) -> Parts:
    """The cells with words of their own, and the same chunk on the neighbours of the right one's rank."""
    asked = frozen.asked
    answers = [Answer(_cell_named(o.text), 100 * o.right, _text(o.feedback)) for o in asked.options]
    rank, chunk = map(int, asked.right_options[0].text.split("."))
    named = {option.text for option in asked.options}
    for step in (-1, 1):
        cell = f"{(rank + step) % int(asked.answer)}.{chunk}"
        if cell not in named:
            answers.append(Answer(_cell_named(cell), 0, _text(asked.other)))
            named.add(cell)
    return "single", tuple(answers), asked.feedback, ()


def _cell_named(cell: str) -> str:
    rank, _, chunk = cell.partition(".")
    return f"rank {rank}, chunk {chunk}"


_KINDS = {
    "number": _number,
    "choose-one": _one,
    "choose-several": _several,
    "order": _order,
    "cell": _cell,
}


def decimal(value: float) -> str:
    """`value` as a decimal number without an exponent: fifteen digits, so that 0.1 + 0.2 is 0.3."""
    return format(Decimal(f"{value + 0.0:.15g}"), "f")  # + 0.0 makes -0.0 a plain 0


def plain(text: str) -> str:
    """`text` without the characters that XML knows no way to write."""
    return _NO_XML.sub("", text)


def line(text: str) -> str:
    """`text` as one line, for names, which are no Markdown."""
    return " ".join(plain(text).split())


def _text(markdown: str) -> str:
    return with_mathjax(plain(markdown))
