"""Where the operator says that the app is reached from outside: the setting `DPSIM_BASE_URL`."""

from __future__ import annotations

import os
import re

from dpsim.checks import InputError

_HOST = r"https://[A-Za-z0-9.-]+|http://(?:localhost|127\.0\.0\.1|\[::1\])"
_URL = re.compile(rf"(?:{_HOST})(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._~/-]*)?")


def base_url() -> str:
    """The address without a slash at its end; "" where none is set. InputError where it is no address."""
    given = os.environ.get("DPSIM_BASE_URL", "")
    if given and (len(given) > 200 or not _URL.fullmatch(given)):
        raise InputError(
            "DPSIM_BASE_URL", "must be https://host[:port][/path], or http:// for localhost", given
        )
    return given.rstrip("/")
