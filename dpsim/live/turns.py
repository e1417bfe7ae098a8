"""One live run at a time on a machine; others wait in a queue and know their place.

A place is one byte of a file, locked while it is held. The kernel lets go of it when its holder dies, however
that happens, so nobody ever waits for a ghost.
"""

from __future__ import annotations

import fcntl
import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsim.live.errors import LiveError

PLACES = 16
POLL_S = 0.05
FULL_S = 1.0  # two that arrive at once may meet at the last place: one of them tries again this long


def lock_path() -> Path:
    """The file that all users of this machine share."""
    return Path(tempfile.gettempdir()) / "dpsim-live.lock"


@contextmanager
def turn(waiting: Callable[[int], None]) -> Iterator[None]:
    """Hold the machine. `waiting` hears its place (1 is next) again and again until then, and may raise."""
    file = _opened(lock_path())
    try:
        place, since = PLACES, time.monotonic()
        while place > 0:
            if _locked(file, place - 1):
                if place < PLACES:
                    _let_go(file, place)
                place -= 1
            elif place == PLACES and time.monotonic() - since > FULL_S:
                rule = f"another run is in progress, and {PLACES - 1} more are waiting: try again later"
                raise LiveError(rule)
            else:
                waiting(place)
                time.sleep(POLL_S)
        yield
    finally:
        os.close(file)


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise LiveError(f"the lock file {path.name} cannot be opened ({error.strerror})") from None
    file = os.open(path, flags | os.O_CREAT, 0o666)
    os.fchmod(file, 0o666)  # whatever the umask: other users of this machine queue here too
    return file


def _locked(file: int, place: int) -> bool:
    """Whether this open file now holds a place. These locks belong to it, not to the process, so that two
    threads of one server exclude each other as well."""
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, place))
    except BlockingIOError:
        return False
    return True


def _let_go(file: int, place: int) -> None:
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, place))


def _flock(kind: int, place: int) -> bytes:
    """struct flock: type, whence, start, length, pid (0 for these locks)."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, place, 1, 0)
