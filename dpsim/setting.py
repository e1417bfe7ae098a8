"""A lesson's setting: its scenario, the variants of it that it names, and the figures of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpsim.checks import InputError, choice
from dpsim.figures import Figure, figure
from dpsim.forms import PARTS, from_dict, preset, preset_names, to_dict
from dpsim.prose import filled, literal
from dpsim.questions import Asked
from dpsim.scenario import Scenario, check_app_bounds


@dataclass(frozen=True, eq=False)
class Setting:
    """What a lesson's texts and directives may name."""

    scenario: Scenario
    variants: Mapping[str, Scenario] = field(default_factory=dict)

    def named(self, name: str) -> Scenario:
        """The lesson's own scenario for "", else its variant or the preset of that name."""
        if not name:
            return self.scenario
        if name in self.variants:
            return self.variants[name]
        return preset(choice("scenario", name, (*self.variants, *preset_names())))

    def figure(self, reference: str) -> Figure:
        """The figure that ``name`` or ``name @ scenario`` refers to."""
        name, at, where = (part.strip() for part in reference.partition("@"))
        if at and not where:
            raise InputError("figure", "must name a scenario behind its @", reference)
        return figure(self.named(where), name)

    def number(self, reference: str) -> Figure:
        """The figure, if it is one number."""
        found = self.figure(reference)
        if found.value is None:
            raise InputError("figure", "must be one number", f"{reference}: {found.text}")
        return found

    def shown(self, text: str) -> str:
        """A lesson's Markdown with its figures in place."""
        return filled(text, lambda reference: self.figure(reference).text, literal)

    def asked(self, asked: Asked) -> Asked:
        """A question with its figures in place."""
        options = [
            replace(o, text=self.shown(o.text), feedback=self.shown(o.feedback)) for o in asked.options
        ]
        return replace(
            asked,
            question=self.shown(asked.question),
            options=tuple(options),
            wrong=tuple(replace(slip, feedback=self.shown(slip.feedback)) for slip in asked.wrong),
            feedback=self.shown(asked.feedback),
            other=self.shown(asked.other),
        )


def scenario_on(base: Scenario | None, written: Any) -> Scenario:
    """The preset that `written` names, or a table's keys on top of `base` or of the preset it names."""
    if isinstance(written, str):
        return check_app_bounds(preset(written))
    if not isinstance(written, Mapping):
        raise InputError("scenario", "must be a preset's name or a table of keys", written)
    keys = dict(written)
    if "preset" in keys:
        base = preset(keys.pop("preset"))
    data = to_dict(base, full=True) if base is not None else {}
    for key, value in keys.items():
        on_top = key in PARTS and isinstance(value, Mapping) and isinstance(data.get(key), Mapping)
        data[key] = {**data[key], **value} if on_top else value
    return check_app_bounds(from_dict(data))
