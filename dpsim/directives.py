"""A lesson's directives: blocks of TOML that show or ask something. Each is checked as soon as it is read."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

from dpsim.app import folder
from dpsim.beats import beats, count_beats
from dpsim.checks import InputError, choice, flag, number, read_text, toml
from dpsim.exercises import items
from dpsim.faults import NAMED, Fault, broken
from dpsim.keys import Keys, placed
from dpsim.published import published
from dpsim.questions import Asked, Option, Question, Slip
from dpsim.recordings import recording, recordings
from dpsim.run_figures import run
from dpsim.scenario import SCHEMES, Scenario
from dpsim.setting import Setting

MOST_BEATS = 200  # of a stage inside a lesson
MAX_EXAMPLE_BYTES = 100_000
WAYS = ("token_weighted", "mean_of_rank_means", "one_device")
SHOWN = ("stage", "predicted")  # of a recording
PUBLISHED = ("memory", "published")  # charts of two published figures
TIMED = ("time", "step", "buckets")  # charts of time, which know no ways of reducing
CHARTS = ("weight", "error", "loss", *TIMED, "speedup", *PUBLISHED)


@dataclass(frozen=True)
class Stage:
    """The stage of a scenario, opened at a beat."""

    scenario: Scenario
    beat: str
    caption: str


@dataclass(frozen=True)
class Predict:
    """A question to commit to: what follows it is shown once the answer is locked. `after` is said then."""

    question: Question
    after: str


@dataclass(frozen=True)
class Exercise:
    """A question that is graded at once and may be tried again."""

    question: Question


@dataclass(frozen=True)
class Practice:
    """An exercise of the bank, by its name: variants without end, the first of which is the same for all."""

    item: str
    objective: str

    @property
    def id(self) -> str:
        """Its name on the screen."""
        return self.item.lower()


@dataclass(frozen=True)
class Compare:
    """Ways of reducing side by side, with what a token weighs under them unless `weights` is false."""

    scenario: Scenario
    ways: tuple[str, ...]
    caption: str
    weights: bool


@dataclass(frozen=True)
class Chart:
    """A chart of some ways of reducing: the weight of one token on each rank, or loss or error over steps.

    Or of time: all-reduces against the number of ranks, the last step rank by rank, the sizes of buckets.
    Or of the scenario's speed-up on other numbers of ranks. Or of two published figures, `names`: the memory
    for so many parameters on so many ranks, or the second list of figures against the first.
    """

    scenario: Scenario
    show: str
    ways: tuple[str, ...]
    caption: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Collectives:
    """The four algorithms of an all-reduce side by side: rounds, bytes and time of a scenario's gradient."""

    scenario: Scenario
    caption: str


@dataclass(frozen=True)
class Break:
    """The stage of a scenario as it should be, and with one of some faults at a time."""

    scenario: Scenario
    faults: tuple[Fault, ...]
    caption: str


@dataclass(frozen=True)
class Recording:
    """A run that was measured somewhere else: its stage, what was predicted beside it, or both."""

    scenario: Scenario
    name: str
    show: tuple[str, ...]
    beat: str
    caption: str


@dataclass(frozen=True)
class Code:
    """A region of a complete file under examples/, and that file."""

    file: str
    region: str
    whole: str
    caption: str


Directive = Stage | Predict | Exercise | Practice | Compare | Chart | Collectives | Recording | Break | Code


def directive(kind: str, body: str, line: int, where: str, setting: Setting) -> Directive:
    """The directive `kind` in this TOML, which starts on `line` of its file; `where` names both."""
    reader = READERS[choice(f"{where}: directive", kind, READERS)]
    data = toml(f"{where}: {kind}", body, line)
    keys = Keys(f"{where}: {kind}", data, setting)
    made = reader(keys)
    keys.done()
    return made


def _stage(keys: Keys) -> Stage:
    scenario = keys.scenario()
    _check_beats(f"{keys.where}.scenario", scenario)
    ids = tuple(beat.id for beat in beats(run(scenario).trace))
    return Stage(scenario, keys.one_of("beat", ids, ids[0]), keys.text("caption", ""))


def _check_beats(where: str, scenario: Scenario) -> None:
    if count_beats(scenario) > MOST_BEATS:
        raise InputError(where, f"must have at most {MOST_BEATS} beats", count_beats(scenario))


def _predict(keys: Keys) -> Predict:
    return Predict(_question(keys), keys.text("after", ""))


def _exercise(keys: Keys) -> Exercise | Practice:
    if "item" in keys.left:
        return Practice(keys.one_of("item", tuple(items())), keys.slug("objective"))
    return Exercise(_question(keys))


QUESTIONS = ("choose-one", "choose-several", "order", "number")


def _question(keys: Keys) -> Question:
    kind = keys.one_of("kind", QUESTIONS)
    name, objective, question = keys.slug("id"), keys.slug("objective"), keys.text("question")
    asked = Asked(kind, question)
    if kind == "number":
        asked = _number(keys, asked)
    else:
        said = keys.text("feedback") if kind == "order" else ""
        asked = replace(asked, options=_options(keys, kind), feedback=said)
    return Question(name, objective, asked)


def _number(keys: Keys, asked: Asked) -> Asked:
    right, values, wrong = keys.figure("answer"), [], []
    tolerance = number(f"{keys.where}.tolerance", keys.take("tolerance"), 0, 1e9, open_low=True)
    feedback, other = keys.text("feedback"), keys.text("other")
    for table in keys.tables("wrong"):
        value = table.figure("figure").number
        wrong.append(Slip(value, table.text("feedback"), table.misconception()))
        values.append(value)
        table.done()
    for one, another in combinations([right.number, *values], 2):
        if abs(one - another) <= 3 * tolerance:  # else one answer could be taken for the other
            rule = "must lie more than three tolerances from the answer and from each other"
            raise InputError(f"{keys.where}.wrong", rule, [one, another])
    return replace(
        asked, answer=right.number, unit=right.unit, written=right.text, tolerance=tolerance,
        wrong=tuple(wrong), feedback=feedback, other=other,
    )  # fmt: skip


def _options(keys: Keys, kind: str) -> tuple[Option, ...]:
    """The options; those of an order stand in their right order, and none of them is right by itself."""
    options = []
    for table in keys.tables("option"):
        right = kind != "order" and flag(f"{table.where}.right", table.take("right", False))
        options.append(Option(table.text("text"), table.text("feedback"), right, table.misconception()))
        table.done()
    most, rights = {"choose-one": (6, (1,)), "choose-several": (8, range(1, 9)), "order": (8, (0,))}[kind]
    if not 2 <= len(options) <= most or sum(option.right for option in options) not in rights:
        many = {"choose-one": ", exactly one of them", "choose-several": ", one or more", "order": ""}[kind]
        rule = f"must be two to {most} tables{many}{' with right = true' if many else ' in the right order'}"
        raise InputError(f"{keys.where}.option", rule, [option.text for option in options])
    return tuple(options)


def _compare(keys: Keys) -> Compare:
    return Compare(
        keys.scenario(),
        keys.several_of("ways", (*SCHEMES, "one_device"), WAYS),
        keys.text("caption", ""),
        flag(f"{keys.where}.weights", keys.take("weights", True)),
    )


def _chart(keys: Keys) -> Chart:
    show = keys.one_of("show", CHARTS)
    scenario, caption = keys.scenario(), keys.text("caption", "")
    if show in PUBLISHED:
        names = keys.several_of("figures", tuple(published()))
        figures = [published()[name] for name in names]
        lengths = {len(figure.values) for figure in figures}
        if len(names) != 2 or len(lengths) > 1 or (lengths == {1}) != (show == "memory"):
            what = "parameters and ranks" if show == "memory" else "two lists of figures of one length"
            raise InputError(f"{keys.where}.figures", f"must name {what}", list(names))
        return Chart(scenario, show, (), caption, names)
    if show in TIMED and run(scenario).trace.hangs:
        raise InputError(f"{keys.where}.scenario", "must be one that ends, for a chart of time", "it hangs")
    if show == "speedup" or show in TIMED:
        return Chart(scenario, show, (), caption)
    ways = SCHEMES if show == "weight" else (*SCHEMES, "one_device")
    return Chart(scenario, show, keys.several_of("ways", ways, WAYS[:2]), caption)


def _collectives(keys: Keys) -> Collectives:
    return Collectives(keys.scenario(), keys.text("caption", ""))


def _recording(keys: Keys) -> Recording:
    name = keys.one_of("name", recordings())
    trace, show = recording(name), keys.several_of("show", SHOWN, SHOWN)
    ids = tuple(beat.id for beat in beats(trace))
    return Recording(trace.scenario, name, show, keys.one_of("beat", ids, ids[0]), keys.text("caption", ""))


def _break(keys: Keys) -> Break:
    scenario, names = keys.scenario(), keys.several_of("faults", tuple(NAMED), tuple(NAMED))
    for i, name in enumerate(names):
        with placed(f"{keys.where}.faults[{i}]"):
            _check_beats(f"{keys.where}.scenario", broken(scenario, name))
    return Break(scenario, tuple(NAMED[name] for name in names), keys.text("caption", ""))


def _code(keys: Keys) -> Code:
    name = keys.name("file")
    if not re.fullmatch(r"[a-z0-9_]+\.py", name):
        raise InputError(f"{keys.where}.file", "must be the name of a .py file in examples/", name)
    whole = read_text(f"{keys.where}.file", folder() / "examples" / name, MAX_EXAMPLE_BYTES)
    found = dict(re.findall(r"^ *# region: ([\w-]+)\n(.*?)^ *# endregion$", whole, re.DOTALL | re.MULTILINE))
    region = keys.one_of("region", tuple(found))
    return Code(name, textwrap.dedent(found[region]).strip("\n"), whole, keys.text("caption", ""))


READERS: dict[str, Callable[[Keys], Directive]] = {
    "stage": _stage,
    "predict": _predict,
    "exercise": _exercise,
    "compare": _compare,
    "chart": _chart,
    "collectives": _collectives,
    "recording": _recording,
    "code": _code,
    "break": _break,
}
