"""Exports read back by others than their writers, and graded as Moodle grades them.

GIFT is read by pygiftparser, which keeps the escapes: taking them away is one regular expression. It knows no
minus sign and no answer for all other numbers; both are added here, to its own patterns and beside it.

Moodle XML has no schema, and no reader of it is to be had that knows numerical and matching questions. So it
is read here with the standard library, against tables made from Moodle's own importer and exporter: which
elements a question of a type has, and which fractions an answer may be worth.
"""

from __future__ import annotations

import builtins
import importlib
import io
import re
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any
from xml.etree import ElementTree


@dataclass(frozen=True)
class Said:
    """An answer that was read: what it is (or the stem that it belongs to), its worth, its feedback."""

    text: str
    percent: float
    feedback: str = ""
    tolerance: float = 0.0
    stem: str = ""


@dataclass(frozen=True)
class Read:
    """A question that was read. `units` are of Moodle XML alone, and so is what is `right` as a whole."""

    kind: str
    id: str
    name: str
    category: str
    text: str
    answers: tuple[Said, ...]
    general: str
    right: str = ""
    units: tuple[tuple[str, float], ...] = ()
    tags: tuple[str, ...] = ()


# --- Moodle XML

COMMON = ("name", "questiontext", "generalfeedback", "defaultgrade", "penalty", "hidden", "idnumber", "tags")
COMBINED = (
    "correctfeedback",
    "partiallycorrectfeedback",
    "incorrectfeedback",
    "shownumcorrect",
    "shuffleanswers",
)
ELEMENTS = {
    "numerical": {*COMMON, "answer", "units", "unitgradingtype", "unitpenalty", "showunits", "unitsleft"},
    "multichoice": {*COMMON, *COMBINED, "answer", "single", "answernumbering", "showstandardinstruction"},
    "matching": {*COMMON, *COMBINED, "subquestion"},
    "category": {"category", "info", "idnumber"},
}
MAY_MISS = {"units"}
MANY = {"answer", "subquestion"}
TEXTS = {"questiontext", "generalfeedback", "feedback", "subquestion", *COMBINED[:3]}
WORTH = (100, 90, 83.33333, 80, 75, 70, 66.66667, 60, 50, 40, 33.33333, 30, 25, 20, 16.66667)
WORTH += (14.28571, 12.5, 11.11111, 10, 5, 0)


def moodle(text: str) -> list[Read]:
    """The questions of a Moodle XML file; an AssertionError where an element is missing, twice or unknown."""
    quiz = ElementTree.fromstring(text.encode())
    assert quiz.tag == "quiz"
    category, found = "", []
    for question in quiz:
        assert question.tag == "question"
        kind = question.attrib["type"]
        tags = [child.tag for child in question]
        assert set(tags) | MAY_MISS >= ELEMENTS[kind] >= set(tags), (kind, tags)
        assert all(tags.count(tag) == 1 or tag in MANY for tag in tags), tags
        for element in question.iter():
            assert element.tag not in TEXTS or element.attrib["format"] == "markdown"
        if kind == "category":
            category = text_of(question.find("category"))
        else:
            found.append(moodle_question(question, kind, category))
    return found


def moodle_question(question: ElementTree.Element, kind: str, category: str) -> Read:
    answers = []
    for answer in question.iter("answer" if kind != "matching" else "subquestion"):
        if kind == "matching":
            answers.append(Said(text_of(answer.find("answer")), 100, stem=text_of(answer)))
            continue
        percent = float(answer.attrib["fraction"])
        assert any(abs(abs(percent) - worth) < 0.001 for worth in WORTH)
        tolerance = float(value_of(answer, "tolerance")) if kind == "numerical" else 0.0
        feedback = text_of(answer.find("feedback"))
        answers.append(Said(text_of(answer), percent, feedback, tolerance))
    if kind == "multichoice":
        kind = {"true": "single", "false": "multiple"}[value_of(question, "single")]
    units = [(value_of(u, "unit_name"), float(value_of(u, "multiplier"))) for u in question.iter("unit")]
    if kind == "numerical":
        assert value_of(question, "showunits") == ("0" if units else "3")  # typed with the number, or none
        assert value_of(question, "unitgradingtype") == "0"  # a unit is not asked for
    right = question.find("correctfeedback")
    return Read(
        kind,
        value_of(question, "idnumber"),
        text_of(question.find("name")),
        category,
        text_of(question.find("questiontext")),
        tuple(answers),
        text_of(question.find("generalfeedback")),
        "" if right is None else text_of(right),
        tuple(units),
        tuple(text_of(tag) for tag in question.iter("tag")),
    )


def text_of(element: ElementTree.Element | None) -> str:
    assert element is not None
    return value_of(element, "text").strip()


def value_of(element: ElementTree.Element, tag: str) -> str:
    found = element.find(tag)
    assert found is not None, tag
    return found.text or ""


# --- GIFT

KINDS = {
    "NumericAnswerSet": "numerical",
    "SelectSet": "single",
    "MultipleChoicesSet": "multiple",
    "MatchingSet": "matching",
}
_OTHERS = re.compile(r"^\t~#(.*)\n", re.MULTILINE)
_REMARK = re.compile(r"// \[id:([^\]]+)\] (.*)")


@cache
def readers() -> tuple[Any, Any]:
    """pygiftparser's parser, and the Markdown that it needs: an old one, which looks for plug-ins with a part
    of setuptools that is no more. None is used here, so something empty stands in while both are loaded."""
    gone = ModuleType("pkg_resources")
    vars(gone)["iter_entry_points"] = lambda *_: ()
    before = sys.modules.get("pkg_resources")
    sys.modules["pkg_resources"] = before or gone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser, utils, markdown = map(
            importlib.import_module, ("pygiftparser.parser", "pygiftparser.utils", "markdown")
        )
    if before is None:
        del sys.modules["pkg_resources"]
    delattr(builtins, "_")  # which its gettext has installed
    signed = utils.reAnswerNumericValue.pattern.replace("(?P<value>", "(?P<value>-?")
    utils.reAnswerNumericValue = re.compile(signed)
    return parser, markdown


def gift(text: str) -> list[Read]:
    """The questions of a GIFT file."""
    category, found = "", []
    for block in re.split(r"\n\s*\n", text):
        if declared := re.match(r"\$CATEGORY: (.*)", block):
            category = declared[1].strip()
        elif "::" in block:
            found.append(gift_question(block + "\n", category))
    return found


def gift_question(block: str, category: str) -> Read:
    others = _OTHERS.findall(block)
    (question,) = readers()[0].parseFile(io.StringIO(_OTHERS.sub("", block)))
    assert question.valid
    assert question.tail == ""
    assert question.markup == "markdown"
    kind = KINDS[type(question.answers).__name__]
    answers = []
    for answer in question.answers.answers:
        if kind == "numerical":
            text, stem, tolerance = repr(answer.value), "", answer.tolerance
        else:
            text, stem, tolerance = bare(answer.answer), bare(getattr(answer, "question", "")), 0.0
        answers.append(Said(text, answer.fraction, bare(answer.feedback), tolerance, stem))
    answers += [Said("*", 0, bare(feedback)) for feedback in others]
    assert len(others) == (kind == "numerical")
    id, tags = _REMARK.findall(block)[0]
    return Read(
        kind,
        id,
        bare(question.title),
        category,
        bare(question.text),
        tuple(answers),
        bare(question.generalFeedback),
        tags=tuple(re.findall(r"\[tag:([^\]]+)\]", tags)),
    )


def bare(text: str) -> str:
    r"""What stands in GIFT, without its escapes."""
    return re.sub(r"\\([~=#{}:\\n])", lambda found: "\n" if found[1] == "n" else found[1], text).strip()


# --- what is seen and how it is graded

_FORMULA = re.compile(r"\$([^$]+)\$")


@cache
def seen(text: str) -> str:
    """The HTML that a platform makes of Markdown, before it looks for formulas."""
    return str(_markdown().reset().convert(text))


@cache
def meant(text: str) -> str:
    r"""The HTML that a text of the bank should become: its formulas as they are, between \( and \)."""
    html = seen(_FORMULA.sub("FORMULA", text))
    for formula in _FORMULA.findall(text):
        html = html.replace("FORMULA", rf"\({formula}\)", 1)
    return html


@cache
def _markdown() -> Any:
    return readers()[1].Markdown()


def numerical_answer(question: Read, value: float, unit: str = "") -> Said:
    """The answer that Moodle takes a number for: the first that it meets, with or without its unit."""
    factor = 1 / dict(question.units)[unit] if unit else 1.0
    for answer in question.answers:
        if answer.text == "*" or any(_within(answer, v) for v in (value * factor, value)):
            return answer
    raise AssertionError("no answer for all other numbers")


def _within(answer: Said, value: float) -> bool:
    middle, least = float(answer.text), 1e-14  # PHP's precision
    tolerance = answer.tolerance + least * max(answer.tolerance, abs(middle), least)
    return middle - tolerance <= value <= middle + tolerance


def multiple_grade(question: Read, chosen: set[int]) -> float:
    """What Moodle gives for the options chosen, from 0 to 1."""
    return min(max(sum(question.answers[i].percent for i in chosen) / 100, 0), 1)
