"""What is said of files with own items: a variant of each item, and what is wrong with the others."""

from __future__ import annotations

from typing import Any

from dpsim.checks import InputError
from dpsim.content_check import wrong_in_own
from dpsim.exercises import Item, variant_of
from dpsim.exercises.own import in_texts
from dpsim.questions import Asked
from dpsim.wording import number, plural

SAMPLE = "sample"  # the seed of the variant that is shown


def items_report(texts: dict[str, str]) -> dict[str, Any]:
    """The items in the texts of files by their names, the mistakes, and both as text."""
    read: dict[str, str | InputError] = dict(texts)
    found = in_texts(read)
    mistakes = [*map(str, found.mistakes)]
    mistakes += [said for item in found.items for said in wrong_in_own(item)]
    shown = [(item, variant_of(item, SAMPLE, "number")) for item in found.items]
    counted = f"{plural(len(shown), 'item')} can be asked, {plural(len(mistakes), 'mistake')}"
    return {
        "items": [_keys(item, asked) for item, asked in shown],
        "mistakes": mistakes,
        "text": "\n\n".join(
            [*(_told(item, asked) for item, asked in shown), "\n".join([*mistakes, counted])]
        ),
    }


def _keys(item: Item, asked: Asked) -> dict[str, Any]:
    return {
        "id": item.id,
        "title": item.title,
        "topic": item.topic,
        "objective": item.objective,
        "source": item.source,
        "kinds": list(item.kinds),
        "question": asked.question,
        "answer": asked.answer,
        "unit": asked.unit,
        "tolerance": asked.tolerance,
        "wrong": [
            {"value": slip.value, "feedback": slip.feedback, "misconception": slip.misconception}
            for slip in asked.wrong
        ],
        "feedback": asked.feedback,
        "other": asked.other,
        "solution": asked.solution,
        "link": asked.link,
    }


def _told(item: Item, asked: Asked) -> str:
    """A variant as somebody reads it who looks it over."""
    right = f"{asked.exact}, give or take {number(asked.tolerance)}"
    lines = [f"{item.id}: {item.title}", asked.question, f"  right  {right}: {asked.feedback}"]
    lines += [f"  wrong  {number(slip.value)}: {slip.feedback}" for slip in asked.wrong]
    lines += [f"  other  {asked.other}"]
    lines += [f"  | {line}" for line in asked.solution.split("\n\n")]
    lines += [f"  shown  /lab?{asked.link}"] if asked.link else []
    return "\n".join(lines)
