"""What a learner's attempts come to: what is mastered, what is due when, which misconceptions are still held.

Spaced repetition, item by item. The first right answer makes an item due again after a day; answered right
when it is due, it comes back after three, seven and twenty-one days more, and then it is mastered. A right
answer before that changes nothing. A wrong one makes it due at once, and its days begin anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from dpsim.checks import InputError, choice, flag, number, text
from dpsim.questions import KINDS

DAY_S = 86_400.0
DAYS = (1, 3, 7, 21)  # from box 1 on: how long an item rests in its box
MASTERED = len(DAYS) + 1
LONGEST_NAME = 200  # of an item and of a misconception
LONGEST_SEED = 40
LONGEST_GIVEN = 4_000  # a ring's transfers are the longest answer there is
LAST_S = 1e11  # some three thousand years from 1970


@dataclass(frozen=True)
class Attempt:
    """One answer: to which item (a bank item's id, or a lesson question's place `lesson/screen/question`),
    drawn from which seed, of which kind of question, what was given, whether it was right, the misconception
    that it showed or nothing, and when: seconds since 1970 in UTC."""

    item: str
    seed: str
    kind: str
    given: str
    right: bool
    misconception: str
    at: float

    def __post_init__(self) -> None:
        name("attempt.item", self.item)
        text("attempt.seed", self.seed, LONGEST_SEED)
        choice("attempt.kind", self.kind, KINDS)
        text("attempt.given", self.given, LONGEST_GIVEN)
        flag("attempt.right", self.right)
        text("attempt.misconception", self.misconception, LONGEST_NAME)
        number("attempt.at", self.at, 0, LAST_S)


@dataclass(frozen=True)
class Standing:
    """Where an item stands. Box 0: not answered right since the last wrong answer; boxes 1 to 4: it rests for
    1, 3, 7 or 21 days; box 5: mastered. `due` is in seconds since 1970, None once the item is mastered."""

    item: str
    box: int
    due: float | None
    attempts: int
    right: int
    last: float


def name(field: str, value: str) -> str:
    """`value`, if it can name an item or a place."""
    if not value:
        raise InputError(field, "must not be empty", value)
    return text(field, value, LONGEST_NAME)


def in_time(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The attempts in the order of their times; those of one time as they came."""
    return sorted(attempts, key=lambda attempt: attempt.at)


def standings(attempts: Iterable[Attempt]) -> dict[str, Standing]:
    """Where every item stands that was ever answered, by item, the first answered first."""
    found: dict[str, Standing] = {}
    for attempt in in_time(attempts):
        before = found.get(attempt.item) or Standing(attempt.item, 0, attempt.at, 0, 0, attempt.at)
        box, due = _moved(before, attempt)
        found[attempt.item] = Standing(
            attempt.item, box, due, before.attempts + 1, before.right + attempt.right, attempt.at
        )
    return found


def _moved(before: Standing, attempt: Attempt) -> tuple[int, float | None]:
    """An item's box and due time after one more answer."""
    if not attempt.right:
        return 0, attempt.at
    if before.due is None or attempt.at < before.due:
        return before.box, before.due
    box = before.box + 1
    return box, None if box == MASTERED else attempt.at + DAY_S * DAYS[box - 1]


def due(attempts: Iterable[Attempt], now: float) -> list[Standing]:
    """The items to be practised at the time `now`, the one that has waited longest first."""
    return [item for item in learning(attempts) if item.due is not None and item.due <= now]


def learning(attempts: Iterable[Attempt]) -> list[Standing]:
    """The items that are not mastered yet, in the order in which they are due."""
    found = [item for item in standings(attempts).values() if item.due is not None]
    return sorted(found, key=lambda item: (item.due, item.item))


def mastered(attempts: Iterable[Attempt]) -> list[Standing]:
    """The items that are mastered, in the order of their names."""
    found = [item for item in standings(attempts).values() if item.due is None]
    return sorted(found, key=lambda item: item.item)


def held(
    attempts: Iterable[Attempt], can_show: Mapping[str, Collection[str]] | None = None
) -> dict[str, str]:
    """The misconceptions still held, and the item whose last answer shows each, the latest first.

    One is held if the last answer to some item shows it, and no item at which it has ever shown was answered
    right since. `can_show` names, by item, misconceptions that would show there if they were held: a right
    answer there ends them as well, although they never did.
    """
    shows = {item: set(names) for item, names in (can_show or {}).items()}
    last: dict[str, tuple[int, str]] = {}  # by item: its last answer's place in time, and what that showed
    ended: dict[str, int] = {}  # by misconception: the place of the last answer that spoke against it
    for place, attempt in enumerate(in_time(attempts)):
        at_item = shows.setdefault(attempt.item, set())
        if attempt.right:
            ended |= dict.fromkeys(at_item, place)
        elif attempt.misconception:
            at_item.add(attempt.misconception)
        last.pop(attempt.item, None)  # the items stay in the order of their last answers
        last[attempt.item] = (place, "" if attempt.right else attempt.misconception)
    found: dict[str, str] = {}
    for item, (place, shown) in reversed(last.items()):
        if shown and place > ended.get(shown, -1):
            found.setdefault(shown, item)
    return found
