"""How often something may be done, by one browser and from one address: enough for a class, not for a script.

Counted in moving windows, in the memory of this process. `DPSIM_LIMITS=off` switches it off.
"""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address, ip_address, ip_network

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from dpsim.checks import choice

CLASS = 40  # learners that may share an address
TIDIED = 1_000  # calls after which those who have not been seen for a while are forgotten


@dataclass(frozen=True)
class Rate:
    """How many times in a window for one browser, and for all browsers of one address."""

    browser: RateLimitItem
    address: RateLimitItem


RATES = {
    # Nobody thinks about a question for less than two seconds, and no class for less than four on average.
    "answer": Rate(RateLimitItemPerMinute(30), RateLimitItemPerMinute(15 * CLASS)),
    # A test takes most of an hour.
    "test": Rate(RateLimitItemPerHour(6), RateLimitItemPerHour(6 * CLASS)),
    # Each takes one of the status list's entries for good.
    "certificate": Rate(RateLimitItemPerHour(6), RateLimitItemPerHour(6 * CLASS)),
    # A file of many exercises takes seconds to make.
    "file": Rate(RateLimitItemPerMinute(6), RateLimitItemPerMinute(20)),
    # Each is a signature to be checked and perhaps a picture to be read.
    "verification": Rate(RateLimitItemPerMinute(20), RateLimitItemPerMinute(10 * CLASS)),
}


def wait_s(action: str, browser: str, address: str | None) -> int:
    """0 if an action may be done now, and then it is counted; else the whole seconds until it may.

    `browser` is any text that stays the same for one browser; an address that is not known has no limit.
    """
    choice("action", action, RATES)
    if os.environ.get("DPSIM_LIMITS") == "off":
        return 0
    return _counts().wait_s(action, browser, address)


@cache
def _counts() -> Counts:
    return Counts()


class Counts:
    """What was done by whom of late."""

    def __init__(self) -> None:
        self._storage = MemoryStorage()
        self._limiter = MovingWindowRateLimiter(self._storage)
        self._lock = threading.Lock()
        self._calls = 0

    def wait_s(self, action: str, browser: str, address: str | None) -> int:
        """As the function of the module. What is refused counts for nothing."""
        rate = RATES[action]
        asked = [(rate.browser, (action, "browser", browser))]
        if address is not None:
            asked.append((rate.address, (action, "address", network(address))))
        with self._lock:
            self._tidy()
            full = [(item, who) for item, who in asked if not self._limiter.test(item, *who)]
            if not full:
                for item, who in asked:
                    self._limiter.hit(item, *who)
                return 0
            ends = max(self._limiter.get_window_stats(item, *who).reset_time for item, who in full)
        return max(1, math.ceil(ends - time.time()))

    def _tidy(self) -> None:
        """The storage keeps an empty list for whoever was ever here; a script would fill the memory so."""
        self._calls += 1
        if self._calls % TIDIED == 0:
            for key in [key for key, events in list(self._storage.events.items()) if not events]:
                self._storage.clear(key)


def network(address: str) -> str:
    """What counts as one address: an IPv4 address, or the 64 bits of an IPv6 address that a household or a
    school is given."""
    try:
        read = ip_address(address)
    except ValueError:
        return address
    if isinstance(read, IPv6Address):
        return str(read.ipv4_mapped or ip_network((int(read) >> 64 << 64, 64)))
    return str(read)
