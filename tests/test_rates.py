"""How often something may be done: as often as a class does it behind one address, no oftener by a script.
The counts are held against a list of all that was done, and against a clock that the tests turn."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import RateLimitItemPerMinute
from strategies import law

import dpsim.rates
from dpsim.checks import InputError
from dpsim.rates import CLASS, RATES, TIDIED, Counts, Rate, network, wait_s

MINUTE, HOUR = 60.0, 3600.0
SCHOOL = "203.0.113.7"


class Clock:
    """The time, as the counts and the package read it."""

    def __init__(self) -> None:
        self.now = 1.7e9

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return turned(monkeypatch)


def turned(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    fake = SimpleNamespace(time=clock.time)
    monkeypatch.setattr("limits.storage.memory.time", fake)
    monkeypatch.setattr(dpsim.rates, "time", fake)
    return clock


actions = st.tuples(
    st.integers(0, 150).map(lambda tenths: tenths / 10 + 0.001),  # seconds since the one before
    st.sampled_from("ab"),
    st.sampled_from([None, SCHOOL, SCHOOL, "198.51.100.2"]),
)


@law(150)
@given(st.lists(actions, max_size=40))
def test_an_action_may_be_done_while_fewer_were_in_its_windows_and_else_after_the_time_that_is_said(
    tried: list[tuple[float, str, str | None]],
) -> None:
    done: list[tuple[float, str, str | None]] = []

    def full(now: float, browser: str, address: str | None) -> bool:
        late = [one for one in done if one[0] >= now - MINUTE]
        mine = [one for one in late if one[1] == browser]
        near = [one for one in late if address is not None and one[2] == address]
        return len(mine) >= 3 or len(near) >= 5

    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = turned(monkeypatch)
        rate = Rate(RateLimitItemPerMinute(3), RateLimitItemPerMinute(5))
        monkeypatch.setitem(dpsim.rates.RATES, "answer", rate)
        counts = Counts()
        for after, browser, address in tried:
            clock.now += after
            wait = counts.wait_s("answer", browser, address)
            assert isinstance(wait, int)
            assert (wait > 0) == full(clock.now, browser, address)
            if wait:
                assert not full(clock.now + wait + 1e-3, browser, address)
                assert wait == 1 or full(clock.now + wait - 1 - 1e-3, browser, address)
            else:
                done.append((clock.now, browser, address))


def many(counts: Counts, action: str, browsers: list[str], address: str | None = SCHOOL) -> int:
    """How many of these browsers may do it now."""
    return sum(counts.wait_s(action, browser, address) == 0 for browser in browsers)


@pytest.mark.parametrize(
    ("action", "each_s", "times"), [("answer", 4.0, 150), ("test", 900.0, 4), ("verification", 6.0, 50)]
)
def test_a_class_behind_one_address_is_never_refused(
    clock: Clock, action: str, each_s: float, times: int
) -> None:
    counts, learners = Counts(), [f"learner {n}" for n in range(CLASS)]
    assert CLASS >= 40
    for _ in range(times):  # all in the same second, over and over
        assert many(counts, action, learners) == CLASS
        clock.now += each_s + 0.001


@pytest.mark.parametrize(
    ("action", "window_s"), [("answer", MINUTE), ("test", HOUR), ("verification", MINUTE)]
)
def test_a_script_is_refused_as_one_browser_and_as_many(clock: Clock, action: str, window_s: float) -> None:
    counts = Counts()
    assert many(counts, action, ["one"] * 1000, None) == RATES[action].browser.amount <= 30
    fresh = [f"browser {n}" for n in range(1000)]
    assert many(counts, action, fresh) == RATES[action].address.amount <= 600
    assert many(counts, action, ["another"]) == 0
    assert many(counts, action, ["another"], "198.51.100.2") == 1
    clock.now += window_s + 0.01
    assert many(counts, action, ["one", "another"]) == 2


def test_who_is_refused_is_not_refused_longer_for_trying(clock: Clock) -> None:
    counts, most = Counts(), RATES["answer"].browser.amount
    assert many(counts, "answer", ["a"] * most) == most
    for _ in range(59):
        clock.now += 1
        assert counts.wait_s("answer", "a", SCHOOL) > 0
    clock.now += 1.01
    assert counts.wait_s("answer", "a", SCHOOL) == 0


def test_kinds_of_actions_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for action in RATES:
        monkeypatch.setitem(RATES, action, RATES["test"])
    counts = Counts()
    assert many(counts, "answer", ["a"] * 100) == 6
    assert counts.wait_s("test", "a", SCHOOL) == counts.wait_s("verification", "a", SCHOOL) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("203.0.113.7", "203.0.113.8", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.7", "203.0.113.7", True),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.8", False),
        ("no address", "no address", True),
        ("no address", "", False),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, same: bool) -> None:
    assert (network(one) == network(other)) == same


def test_neighbours_in_one_network_share_its_limit(clock: Clock) -> None:
    counts = Counts()
    waits = [counts.wait_s("test", f"browser {n}", f"2001:db8:1:2::{n:x}") for n in range(1000)]
    assert waits.count(0) == RATES["test"].address.amount


def test_at_once_no_more_are_let_through() -> None:
    counts = Counts()
    with ThreadPoolExecutor(16) as pool:
        waits = list(pool.map(lambda _: counts.wait_s("answer", "a", None), range(400)))
    assert waits.count(0) == RATES["answer"].browser.amount


def test_those_who_are_gone_are_forgotten(clock: Clock) -> None:
    counts = Counts()
    for n in range(2 * TIDIED):
        counts.wait_s("verification", f"browser {n}", None)
    expire: Callable[[], None] = counts._storage._MemoryStorage__expire_events
    clock.now += HOUR
    expire()
    for _ in range(TIDIED):
        counts.wait_s("answer", "one", None)
    assert len(counts._storage.events) == 1


def test_it_can_be_switched_off_and_only_so(monkeypatch: pytest.MonkeyPatch) -> None:
    dpsim.rates._counts.cache_clear()
    monkeypatch.setenv("DPSIM_LIMITS", "off")
    assert [wait_s("test", "a", SCHOOL) for _ in range(100)] == [0] * 100
    for other in ("", "OFF", "on"):
        dpsim.rates._counts.cache_clear()
        monkeypatch.setenv("DPSIM_LIMITS", other)
        assert [wait_s("test", "a", SCHOOL) > 0 for _ in range(7)] == [False] * 6 + [True]
    with pytest.raises(InputError, match="action: must be one of answer, test, "):
        wait_s("breakfast", "a", None)
