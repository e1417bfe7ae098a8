"""Questions as Moodle XML, the format of Moodle's question bank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dpsim.exports.frozen import Frozen, LeftOut
from dpsim.exports.put import Answer, Put, decimal, line

_TYPES = {
    "numerical": "numerical",
    "single": "multichoice",
    "multiple": "multichoice",
    "matching": "matching",
}
_UNIT_MAY_BE_TYPED, _NO_UNIT = "0", "3"


def moodle_xml(
    questions: Iterable[tuple[Frozen, Put]], topics: Mapping[str, str], left_out: Sequence[LeftOut]
) -> str:
    """The questions, in categories by topic, whose descriptions say what of the topic was left out."""
    quiz = Element("quiz")
    for topic, group in groupby(questions, key=lambda pair: pair[0].item.topic):
        pairs = list(group)
        _category(quiz, topic, topics[topic], [e for e in left_out if e.topic == topic])
        for frozen, put in pairs:
            _question(quiz, frozen, put)
    indent(quiz)
    return str(tostring(quiz, "utf-8", xml_declaration=True), "utf-8") + "\n"


def _category(quiz: Element, topic: str, title: str, left_out: Sequence[LeftOut]) -> None:
    category = SubElement(quiz, "question", type="category")
    _text(category, "category", f"$course$/top/dpsim/{line(title).replace('/', '//')}", "")
    said = [f"Exercises of dpsim on: {title}.", *(f"{entry.said}." for entry in left_out)]
    _text(category, "info", "\n".join(map(line, said)), "plain_text")
    _leaf(category, "idnumber", f"dpsim-{topic}")


def _question(quiz: Element, frozen: Frozen, put: Put) -> None:
    question = SubElement(quiz, "question", type=_TYPES[put.kind])
    _text(question, "name", line(frozen.name), "")
    _text(question, "questiontext", put.text)
    _text(question, "generalfeedback", put.general)
    _leaf(question, "defaultgrade", "1")
    _leaf(question, "penalty", "0.3333333")
    _leaf(question, "hidden", "0")
    _leaf(question, "idnumber", frozen.idnumber)
    if put.kind == "numerical":
        _numerical(question, put)
    else:
        _chosen(question, put)
    tags = SubElement(question, "tags")
    for tag in ("dpsim", frozen.item.id):
        _text(tags, "tag", tag, "")


def _numerical(question: Element, put: Put) -> None:
    for answer in put.answers:
        _leaf(_answer(question, answer, "moodle_auto_format"), "tolerance", answer.tolerance)
    if put.units:
        units = SubElement(question, "units")
        for name, multiplier in put.units:
            unit = SubElement(units, "unit")
            _leaf(unit, "multiplier", multiplier)
            _leaf(unit, "unit_name", name)
    _leaf(question, "unitgradingtype", "0")
    _leaf(question, "unitpenalty", "0")
    _leaf(question, "showunits", _UNIT_MAY_BE_TYPED if put.units else _NO_UNIT)
    _leaf(question, "unitsleft", "0")


def _chosen(question: Element, put: Put) -> None:
    _leaf(question, "shuffleanswers", "true")
    if put.kind != "matching":
        _leaf(question, "single", "true" if put.kind == "single" else "false")
        _leaf(question, "answernumbering", "abc")
        _leaf(question, "showstandardinstruction", "1")
    _text(question, "correctfeedback", put.right)
    _text(question, "partiallycorrectfeedback", "")
    _text(question, "incorrectfeedback", "")
    SubElement(question, "shownumcorrect")
    for answer in put.answers:
        if put.kind == "matching":
            _text(_text(question, "subquestion", answer.of), "answer", answer.text, "")
        else:
            _answer(question, answer, "markdown")


def _answer(question: Element, answer: Answer, form: str) -> Element:
    element = SubElement(question, "answer", fraction=decimal(answer.percent), format=form)
    _leaf(element, "text", answer.text)
    _text(element, "feedback", answer.feedback)
    return element


def _text(parent: Element, tag: str, text: str, form: str = "markdown") -> Element:
    """An element of `parent` that holds a text, in a format where it has one."""
    element = SubElement(parent, tag, {"format": form} if form else {})
    _leaf(element, "text", text)
    return element


def _leaf(parent: Element, tag: str, text: str) -> None:
    SubElement(parent, tag).text = text
