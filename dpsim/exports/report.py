"""An export: the text of the file, and the report of what is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpsim.base_url import base_url
from dpsim.checks import choice
from dpsim.exercises import topics
from dpsim.exports.frozen import chosen
from dpsim.exports.gift import gift
from dpsim.exports.moodle import moodle_xml
from dpsim.exports.put import put

FORMATS = {"moodle": moodle_xml, "gift": gift}


@dataclass(frozen=True)
class Export:
    """A file for a learning platform: its text, and what is in it, and what was left out and why."""

    text: str
    report: dict[str, Any]


def export(form: str, ids: Sequence[str] = (), variants: int = 1, seed: int = 1) -> Export:
    """`variants` variants of each item named, of every item where none is, in the format `form`."""
    write = FORMATS[choice("format", form, FORMATS)]
    made = chosen(ids, variants, seed)
    base = base_url()
    questions = [(frozen, put(frozen, base)) for frozen in made.taken]
    kinds = Counter(frozen.asked.kind for frozen in made.taken)
    report = {
        "format": form,
        "questions": len(questions),
        "items": len({frozen.item.id for frozen in made.taken}),
        "variants": variants,
        "seed": seed,
        "kinds": dict(kinds),
        "categories": list(dict.fromkeys(topics()[frozen.item.topic] for frozen in made.taken)),
        "links": base or "left out: DPSIM_BASE_URL is not set",
        "left_out": [asdict(entry) for entry in made.left_out],
    }
    return Export(write(questions, topics(), made.left_out), report)
