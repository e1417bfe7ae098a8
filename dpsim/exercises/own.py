"""Items of one's own: the YAML files in the folder that DPSIM_ITEMS names, read anew when one has changed.

A mistake takes away the item that it is in, or the file where that is no YAML, and nothing else.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from dpsim.beats import beats, count_beats
from dpsim.checks import InputError, choice, name_shown, read_text
from dpsim.edits import on_preset
from dpsim.exercises.items import NUMBER, TOPICS, Drawn, Item, unfit
from dpsim.exercises.scenes import link
from dpsim.run_figures import run
from dpsim.scenario import check_app_bounds

if TYPE_CHECKING:
    from dpsim.own_items import OwnItem

TOPIC, TITLE = "own", "From your teacher"  # of items that stand under no other topic
MOST_FILES = 20
MOST_BEATS = 1000  # of a scenario in which a link names a beat
DRAWS = 40  # to see whether an item's numbers can be asked
FEWEST = 10  # of them: then 200 draws never go by without one
LINKS = 10  # of them that are followed
MOST_TRIES = 200


@dataclass(frozen=True, eq=False)
class Found:
    """The items that were read, and what is wrong with the others."""

    items: tuple[Item, ...] = ()
    mistakes: tuple[InputError, ...] = ()


_NOTHING = Found()


def found() -> Found:
    """What is in the folder that DPSIM_ITEMS names: the same value as long as its files are the same."""
    named = os.environ.get("DPSIM_ITEMS")
    if not named:
        return _NOTHING
    try:
        names = sorted(path.name for path in Path(named).iterdir())
    except OSError:
        return _no_folder(named)
    files = [name for name in names if name.endswith((".yaml", ".yml")) and not name.startswith(".")]
    return _in_folder(named, tuple((name, *_state(Path(named) / name)) for name in files))


def _state(path: Path) -> tuple[int, int, int]:
    """What changes when a file does: its time of change, its size, and which file it is."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _is_none(path: Path) -> bool:
    """Whether what is there is no file."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


@lru_cache(maxsize=2)
def _no_folder(named: str) -> Found:
    return Found(mistakes=(InputError("DPSIM_ITEMS", "must name a folder", named),))


@lru_cache(maxsize=2)
def _in_folder(named: str, files: tuple[tuple[str, int, int, int], ...]) -> Found:
    """What is in these files, each named with its state."""
    from dpsim.own_items import MOST_BYTES

    if len(files) > MOST_FILES:
        rule = f"must hold at most {MOST_FILES} files"
        return Found(mistakes=(InputError("DPSIM_ITEMS", rule, len(files)),))
    texts: dict[str, str | InputError] = {}
    for file, *_ in files:
        name, path = name_shown(file), Path(named) / file
        try:
            if _is_none(path):  # a pipe would be waited for
                raise InputError(name, "must be a file", file)
            texts[name] = read_text(name, path, MOST_BYTES)
        except InputError as error:
            texts[name] = error
    return in_texts(texts)


def in_texts(texts: Mapping[str, str | InputError]) -> Found:
    """What is in the texts of files by their names; an error in the place of a text that could not be read."""
    items: dict[str, Item] = {}
    mistakes: list[InputError] = []
    for file, text in texts.items():
        for read in (text,) if isinstance(text, InputError) else _read(file, text):
            if isinstance(read, InputError):
                mistakes.append(read)
            elif read.id in items:
                rule = f"must be an id of its own; {items[read.id].source} has it too"
                mistakes.append(InputError(f"{read.source}: id", rule, read.id))
            else:
                items[read.id] = read
    return Found(tuple(items.values()), tuple(mistakes))


@lru_cache(maxsize=2 * MOST_FILES)
def _read(file: str, text: str) -> tuple[Item | InputError, ...]:
    """The items of a file, an error in the place of one that cannot be asked."""
    from dpsim.own_items import read_items  # only who has items of their own waits for YAML

    try:
        found = read_items(file, text, (*TOPICS, TOPIC))
    except InputError as error:
        return (error,)
    return tuple(own if isinstance(own, InputError) else _checked(own) for own in found)


def _checked(own: OwnItem) -> Item | InputError:
    try:
        _check_draws(own)
    except InputError as error:
        return error
    kinds = NUMBER if len(own.wrong) >= 2 else NUMBER[:1]  # else there is little to choose from
    return Item(own.id, own.title, own.topic, kinds, partial(_draw, own), own.objective, own.source)


def _draw(own: OwnItem, draw: Random) -> Drawn:
    """A variant; numbers with which a formula has no value are drawn again."""
    for _ in range(MOST_TRIES):
        try:
            asked = own.asked(draw)
            return Drawn(replace(asked, link=_opens(own, asked.link)))
        except InputError:
            continue
    raise AssertionError(f"{own.id}: no numbers with a value in {MOST_TRIES} draws")


def _check_draws(own: OwnItem) -> None:
    """Enough of an item's draws can be asked, and their links lead somewhere."""
    draw = Random(f"{own.id}/check")
    reasons: Counter[tuple[str, str]] = Counter()
    links: dict[str, None] = {}
    for _ in range(DRAWS):
        try:
            asked = own.asked(draw)
        except InputError as error:
            reasons[error.field, error.rule] += 1
            continue
        if reason := unfit(asked):
            reasons[own.source, reason] += 1
        links[asked.link] = None
    fit = DRAWS - reasons.total()
    if fit < FEWEST:
        (field, reason), _ = reasons.most_common(1)[0]
        rule = f"must have a variant that can be asked at {FEWEST} of {DRAWS} draws or more; often: {reason}"
        raise InputError(field, rule, fit)
    for n, query in enumerate(list(links)[:LINKS]):
        _opens(own, query, beat_too=n == 0)


def _opens(own: OwnItem, query: str, *, beat_too: bool = False) -> str:
    """The query that opens the whole scenario to which `query` leads, as the lab reads it."""
    if not query:
        return ""
    keys = dict(parse_qsl(query, keep_blank_values=True))
    name, beat = keys.pop("preset", None), keys.pop("beat", "")
    try:
        if name is None and "name" not in keys:
            raise InputError("preset", "must be named, as in preset=first-screen&world_size=4", query)
        scenario = check_app_bounds(on_preset(name, keys))
        if beat and beat_too and count_beats(scenario) <= MOST_BEATS:
            choice("beat", beat, [told.id for told in beats(run(scenario).trace)])
    except InputError as error:
        raise InputError(f"{own.link_field}: {error.field}", error.rule, error.value) from None
    return link(scenario, beat)
