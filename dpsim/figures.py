"""Named figures of a scenario's first step, as text and as a value, so that no text has to type a number.

A name is a family and its keys with dots between them: ``valid.0``, ``gradient.token_weighted``. Where the
figure is a list, one more key picks an entry: ``gradient.token_weighted.1``. The table below is all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsim.batch import global_batch
from dpsim.checks import InputError, choice, key_shown
from dpsim.figures_data import DATA, STAGES
from dpsim.figures_time import TIMES
from dpsim.figures_waits import WAITS
from dpsim.published import Published, published
from dpsim.recordings import PARTS, RECORDED, recordings
from dpsim.run_figures import Family, Run, gigabytes, percent, run
from dpsim.scenario import APP_RANKS, COLLECTIVES, SCHEMES, Scenario
from dpsim.wording import duration, size, vector

UNDEFINED = "undefined"


@dataclass(frozen=True)
class Figure:
    """A figure as text, and its value where it is one number: in percent where the text says so, in seconds
    and bytes where it has units. `text` is "undefined" where there is no such number."""

    text: str
    value: float | None
    unit: str = ""

    @property
    def number(self) -> float:
        """The value of a figure that is one number."""
        assert self.value is not None
        return self.value


UNITS = {duration: "s", size: "B", percent: "%", gigabytes: "GB"}

FAMILIES: dict[str, Family] = (
    {
        "R": Family("ranks", (), lambda run: run.scenario.world_size),
        "N": Family("all valid tokens", (), lambda run: run.counts().sum()),
        "P": Family("parameters", (), lambda run: run.scenario.model.size),
        "K": Family("micro-batches of a rank", ("rank",), lambda run, r: run.scenario.micro_batches[r]),
        "tokens": Family("a rank's tokens, valid or not", ("rank",), lambda run, r: _tokens(run)[r]),
        "all_tokens": Family("the tokens of all ranks", (), lambda run: _tokens(run).sum()),
        "tokens_per_rank": Family("all tokens divided by R", (), lambda run: _tokens(run).mean()),
        "valid": Family("a rank's valid tokens", ("rank",), lambda run, r: run.counts()[r]),
        "share": Family(
            "a rank's share of the valid tokens",
            ("rank",),
            lambda run, r: _share(run.counts()[r], run.counts().sum()),
        ),
        "S": Family("a rank's gradient sum", ("rank",), lambda run, r: run.sums()[r]),
        "sum": Family("the gradient sum of all ranks", (), lambda run: run.sums().sum(axis=0)),
        "mean": Family("a rank's own mean gradient, S/n", ("rank",), lambda run, r: run.mean(r)),
        "gradient": Family("the gradient", ("way",), lambda run, way: run.way(way).gradient[0]),
        "error": Family(
            "its relative L2 error",
            ("way",),
            lambda run, way: run.error(way),
            percent,
        ),
        "cosine": Family("its cosine against one device", ("way",), lambda run, way: run.way(way).cosine[0]),
        "weight": Family(
            "what one valid token on a rank weighs, 1 being right",
            ("scheme", "rank"),
            lambda run, scheme, r: run.token_weight(scheme, r),
        ),
        "factor": Family(
            "the factor w of a rank's gradient sum", ("scheme", "rank"), lambda run, s, r: run.factor(s, r)
        ),
        "ratio": Family(
            "how many times a token on the first rank counts one on the second",
            ("scheme", "rank", "rank"),
            lambda run, scheme, one, other: run.ratio(scheme, one, other),
        ),
        "before": Family("the parameters before the step", (), lambda run: run.trace.parameters[0, 0]),
        "after": Family(
            "the parameters after the step, in this run", (), lambda run: run.trace.parameters[1, 0]
        ),
        "parameters": Family(
            "the parameters after the step; they stay where it is undefined",
            ("way",),
            lambda run, way: run.way(way).parameters[1],
        ),
        "learning_rate": Family("the learning rate", (), lambda run: run.scenario.optimizer.learning_rate),
        "alone": Family(
            "wrong: the parameters of a rank that keeps its own mean",
            ("rank",),
            lambda run, r: run.moved(run.mean(r)),
        ),
        "summed": Family(
            "wrong: the parameters after a step along the sum",
            (),
            lambda run: run.moved(run.sums().sum(axis=0)),
        ),
        "uphill": Family(
            "wrong: the parameters after a step along the gradient, not against it",
            (),
            lambda run: run.moved(_times(-1, run.way("one_device").gradient[0])),
        ),
        "step_time": Family("the step time", (), lambda run: run.metrics.step_time_s, duration),
        "wait": Family(
            "how long a rank waits", ("rank",), lambda run, r: _at(run.metrics.wait_s, r), duration
        ),
        "straggler": Family("the number of the rank that comes last", (), lambda run: run.metrics.straggler),
        "exposed": Family(
            "the exposed communication", (), lambda run: run.metrics.exposed_communication_s, duration
        ),
        "bytes_sent": Family(
            "bytes of the gradient that a rank sends",
            ("rank",),
            lambda run, r: run.metrics.bytes_sent[r],
            size,
        ),
        "efficiency": Family(
            "the scaling efficiency", (), lambda run: _times(100, run.metrics.scaling_efficiency), percent
        ),
    }
    | TIMES
    | WAITS
    | RECORDED
    | DATA
)


def figure(scenario: Scenario, name: str) -> Figure:
    """The figure called `name`; InputError names what is not known of it."""
    family_name, *keys = name.split(".")
    if family_name not in FAMILIES:
        raise InputError("figure", f"must be one of {', '.join(FAMILIES)}", family_name)
    family = FAMILIES[family_name]
    shown = ".".join((family_name, *(kind.upper() for kind in family.keys)))
    if len(keys) < len(family.keys):
        raise InputError("figure", f"must be written {shown}", name)
    wanted = [_key(kind, key, scenario) for kind, key in zip(family.keys, keys, strict=False)]
    return _entry(name, family.of(run(scenario), *wanted), family.written, keys[len(wanted) :])


def _key(kind: str, key: str, scenario: Scenario) -> int | str | Published:
    if kind == "published":
        return published()[choice("figure", key, published())]
    if kind == "stage":
        return choice("figure", key, STAGES)
    if kind == "count":
        if key not in map(str, range(1, APP_RANKS + 1)):
            raise InputError("figure", f"must have a whole number from 1 to {APP_RANKS}", key)
        return int(key)
    if kind == "epoch":
        if key not in map(str, range(APP_RANKS)):
            raise InputError("figure", f"must have an epoch from 0 to {APP_RANKS - 1}", key)
        return int(key)
    if kind == "micro":
        known = [str(k) for k in range(min(scenario.micro_batches))]
        if key not in known:
            raise InputError("figure", f"must name a micro-batch from 0 to {len(known) - 1}", key)
        return int(key)
    if kind == "rank":
        known = [str(r) for r in range(scenario.world_size)]
        if key not in known:
            rule = f"must name a rank from 0 to {scenario.world_size - 1}"
            raise InputError("figure", rule, key)
        return int(key)
    if kind == "recording":
        return choice("figure", key, recordings())
    if kind == "part":
        return choice("figure", key, tuple(PARTS))
    if kind == "algorithm":
        return choice("figure", key, COLLECTIVES)
    schemes = SCHEMES if isinstance(scenario.reduction, str) else (*SCHEMES, "custom")
    if kind == "scheme":
        return choice("figure", key, schemes)
    return choice("figure", key, (*schemes, "one_device"))


def _entry(name: str, found: Any, written: Callable[[float], str], rest: Sequence[str]) -> Figure:
    """The figure of what was found: a number, a list, an entry of a list, text, or nothing."""
    if isinstance(found, str):
        if rest:
            raise InputError("figure", "must end behind its keys", key_shown(name))
        return Figure(found, None)
    unit = UNITS.get(written, "")
    if isinstance(found, Published):
        found, written, unit = found.values, found.written, found.unit
    values = None if found is None else [float(v) for v in np.ravel(found)]
    if rest:
        entries = 1 if values is None else len(values)
        if len(rest) > 1 or (values is not None and rest[0] not in map(str, range(entries))):
            rule = f"must end behind its keys, or with an entry from 0 to {entries - 1}"
            raise InputError("figure", rule, key_shown(name))
        values = None if values is None else [values[int(rest[0])]]
    if values is None:
        return Figure(UNDEFINED, None)
    if len(values) > 1:
        return Figure(vector(values), None)
    return Figure(written(values[0]), values[0], unit)


def _tokens(run: Run) -> Any:
    batch = global_batch(run.scenario)
    return batch.shard_counts(batch.lengths).sum(axis=1)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _at(values: Any, rank: int) -> Any:
    return None if values is None else values[rank]


def _times(factor: float, value: Any) -> Any:
    return None if value is None else factor * value
