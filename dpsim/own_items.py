"""Exercises that a teacher wrote: items of a YAML file, each read whole, or refused with file and line."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from dpsim.checks import InputError, choice
from dpsim.checks import text as one_line
from dpsim.formula import FUNCTIONS, NAME, Formula, Number, formula
from dpsim.misconceptions import misconceptions
from dpsim.questions import Asked, Slip
from dpsim.template import Template, markdown, plain
from dpsim.typed_number import read_number
from dpsim.yaml_file import Table, Value, read_yaml

MOST_BYTES = 200_000
MOST_ITEMS = 100
MOST_NAMES = 12  # of numbers, and of formulas in between
MOST_CHOICES = 100
MOST_STEPS = 100_000
MOST_WRONG = 5
MOST_LINES = 12  # of a solution
LONGEST_ID = 60
ANSWER = "answer"  # what texts and known mistakes call the answer
_ID = re.compile(r"own(?:-[a-z0-9]+)+")
_OBJECTIVE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*/[A-Za-z0-9_-]+")
_UNIT = re.compile(r"%|[^\W\d_][^\W_]*(?:[ /][^\W\d_]+)*")


@dataclass(frozen=True)
class Steps:
    """Numbers from `first` on, `count` of them, each `step` above the one before."""

    first: Fraction
    step: Fraction
    count: int

    def drawn(self, draw: Random) -> Fraction:
        """One of them."""
        return self.first + self.step * draw.randrange(self.count)


@dataclass(frozen=True)
class Choices:
    """The numbers of a list."""

    numbers: tuple[Number, ...]

    def drawn(self, draw: Random) -> Number:
        """One of them."""
        return draw.choice(self.numbers)


@dataclass(frozen=True)
class Tolerance:
    """How far off an answer may be: by so much, or by so many percent of the right one."""

    size: Number
    percent: bool

    def of(self, answer: Number) -> float:
        """The tolerance of this answer."""
        return float(max(answer, -answer) * self.size / 100 if self.percent else self.size)


@dataclass(frozen=True)
class Wrong:
    """A known mistake: what it leads to, and what is said about it."""

    formula: Formula
    feedback: Template
    misconception: str


@dataclass(frozen=True)
class OwnItem:
    """An item of a file; `source` says where it stands."""

    source: str
    id: str
    title: str
    topic: str
    objective: str
    numbers: tuple[tuple[str, Steps | Choices], ...]
    let: tuple[tuple[str, Formula], ...]
    question: Template
    answer: Formula
    unit: str
    tolerance: Tolerance
    wrong: tuple[Wrong, ...]
    feedback: Template
    other: Template
    solution: Template
    link: Template | None
    link_field: str

    def asked(self, draw: Random) -> Asked:
        """The question with numbers that are drawn; its link is what was written, with numbers in place.

        InputError where a formula has no value with them.
        """
        values: dict[str, Number] = {name: numbers.drawn(draw) for name, numbers in self.numbers}
        for name, written in self.let:
            values[name] = written.value(values)
        values[ANSWER] = self.answer.value(values)

        def said(text: Template) -> str:
            return " ".join(text.filled(values).split())

        lines = [" ".join(line.split()) for line in self.solution.filled(values).split("\n")]
        return Asked(
            "number",
            said(self.question),
            answer=float(values[ANSWER]),
            unit=self.unit,
            tolerance=self.tolerance.of(values[ANSWER]),
            wrong=tuple(
                Slip(float(one.formula.value(values)), said(one.feedback), one.misconception)
                for one in self.wrong
            ),
            feedback=said(self.feedback),
            other=said(self.other),
            solution="\n\n".join(line for line in lines if line),
            link=self.link.filled(values, _as_key) if self.link else "",
        )


def read_items(file: str, text: str, topics: Collection[str]) -> tuple[OwnItem | InputError, ...]:
    """The items in the text of a file, an error in the place of one that cannot be read. InputError where no
    item can. `topics` are those that an item may stand under, the last one where nothing is said."""
    entries = read_yaml(file, text).entries(1, MOST_ITEMS)
    return tuple(_read_or_refused(entry, topics) for entry in entries)


def _read_or_refused(entry: Value, topics: Collection[str]) -> OwnItem | InputError:
    try:
        return _item(entry, tuple(topics))
    except InputError as error:
        return error


def _item(entry: Value, topics: Sequence[str]) -> OwnItem:
    table = Table(entry)
    name, title, topic = table.take("id"), table.take("title"), table.find("topic")
    objective, drawn, between = table.find("objective"), table.take("numbers"), table.find("let")
    question, answer, unit = table.take("question"), table.take(ANSWER), table.find("unit")
    tolerance, wrong, feedback = table.take("tolerance"), table.take("wrong"), table.take("feedback")
    other, solution, link = table.take("other"), table.take("solution"), table.find("link")
    table.done()
    if not _ID.fullmatch(name.text()) or len(name.text()) > LONGEST_ID:
        raise name.wrong("must be own- and small letters and digits with hyphens")
    numbers = {_named(value, key): _numbers(value) for key, value in drawn.named(1, MOST_NAMES).items()}
    known, let = list(numbers), []
    for key, value in between.named(1, MOST_NAMES).items() if between else ():
        if key in known:
            raise value.wrong("must have a name of its own", key)
        let.append((_named(value, key), formula(value.field, value.text(), known)))
        known.append(key)
    told = [*known, ANSWER]
    return OwnItem(
        source=name.field.removesuffix(": id"),
        id=name.text(),
        title=_line(title),
        topic=choice(topic.field, topic.text(), topics) if topic else topics[-1],
        objective=_objective(objective) if objective else "",
        numbers=tuple(numbers.items()),
        let=tuple(let),
        question=markdown(question, known),
        answer=formula(answer.field, answer.text(), known),
        unit=_unit(unit),
        tolerance=_tolerance(tolerance),
        wrong=tuple(_wrong(one, told) for one in wrong.entries(1, MOST_WRONG)),
        feedback=markdown(feedback, told),
        other=markdown(other, told),
        solution=_solution(solution, told),
        link=plain(link, told) if link else None,
        link_field=link.field if link else "",
    )


def _named(value: Value, name: str) -> str:
    """A name that formulas may use."""
    if not NAME.fullmatch(name) or len(name) > 30:
        raise value.wrong("must be named in letters, digits and _, a letter first", name)
    if name in FUNCTIONS or name == ANSWER:
        raise value.wrong(f"must not have a name that is taken: {', '.join([*FUNCTIONS, ANSWER])}", name)
    return name


def _line(value: Value) -> str:
    """A plain text on one line."""
    line = one_line(value.field, value.text().strip(), 100)
    if not line:
        raise value.wrong("must say something")
    return line


def _constant(value: Value) -> Number:
    """A number, or a formula without names."""
    return formula(value.field, value.text()).value({})


def _numbers(value: Value) -> Steps | Choices:
    """What a number is drawn from."""
    if isinstance(value.written, tuple):
        return Choices(tuple(map(_constant, value.entries(2, MOST_CHOICES))))
    if isinstance(value.written, str):
        raise value.wrong("must be a list of numbers, or a table with from, to and step")
    table = Table(value)
    first, last, step = (Fraction(_constant(table.take(key))) for key in ("from", "to", "step"))
    table.done()
    if step <= 0 or not 2 <= (last - first) // step + 1 <= MOST_STEPS:
        raise value.wrong(f"must have 2 to {MOST_STEPS} steps up from `from` to `to`")
    return Steps(first, step, int((last - first) // step) + 1)


def _objective(value: Value) -> str:
    if not _OBJECTIVE.fullmatch(value.text()):
        raise value.wrong("must name a lesson and one of its objectives, as in one-step/moves")
    return value.text()


def _unit(value: Value | None) -> str:
    """A unit that can be typed behind a number."""
    unit = value.text().strip() if value else ""
    if value and unit:
        try:
            typed = read_number(f"1.5 {unit}", unit) if _UNIT.fullmatch(unit) and len(unit) <= 20 else None
        except InputError:
            typed = None
        if typed != 1.5:
            raise value.wrong("must be a unit that can stand behind a number, such as MB, tokens/s or %")
    return unit


def _tolerance(value: Value) -> Tolerance:
    text = value.text().strip()
    percent = text.endswith("%")
    size = formula(value.field, text.removesuffix("%").rstrip()).value({})
    if not 0 < size <= (20 if percent else 10**9):
        raise value.wrong("must be a number above 0, or a percentage of at most 20 %")
    return Tolerance(size, percent)


def _wrong(value: Value, names: Collection[str]) -> Wrong:
    table = Table(value)
    written = table.take("formula")
    feedback, shown = table.take("feedback"), table.find("misconception")
    table.done()
    return Wrong(
        formula(written.field, written.text(), names),
        markdown(feedback, names),
        choice(shown.field, shown.text(), misconceptions()) if shown else "",
    )


def _solution(value: Value, names: Collection[str]) -> Template:
    lines = sum(bool(line.strip()) for line in value.text().split("\n"))
    if lines > MOST_LINES:
        raise value.wrong(f"must have at most {MOST_LINES} lines", lines)
    return markdown(value, names)


def _as_key(value: float) -> str:
    """A number as a scenario's key has it."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
