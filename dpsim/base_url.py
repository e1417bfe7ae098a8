"""Where the app is reached from outside, as the setting `DPSIM_BASE_URL` says, in its one form."""

from __future__ import annotations

import os
import re

from dpsim.checks import InputError

BASE_URL = "DPSIM_BASE_URL"
LONGEST_URL = 200
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_URL = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[0-9]{{1,5}}))?"
    r"(?P<path>(?:/[A-Za-z0-9._-]+)*)/?",
    re.ASCII,
)
_DEFAULT_PORT = {"https": 443, "http": 80}


def base_url() -> str:
    """The address by the setting, "" where none is set; InputError where it is none."""
    given = os.environ.get(BASE_URL, "").strip()
    return address(given) if given else ""


def address(url: str) -> str:
    """`url` in its one form: scheme and host in small letters, no slash at the end, no port that goes without
    saying. The issuer's identifier is made of it, so one address has to give one identifier."""
    head, slash, rest = url.partition("://")
    host, path_slash, path = rest.partition("/")
    found = _URL.fullmatch(f"{head.lower()}{slash}{host.lower()}{path_slash}{path}")
    rule = "must be https://host[:port][/path] with a host name in ASCII, or http://localhost[:port][/path]"
    shown = "an address with @" if "@" in url else url  # what stands before it may be a password
    if found is None or len(url) > LONGEST_URL:
        raise InputError(BASE_URL, rule, shown)
    numeric = found["host"].rpartition(".")[2].isdigit()  # did:web knows no IP addresses
    dots = {".", ".."} & set(found["path"].split("/"))
    if numeric or dots or (found["scheme"] == "http" and found["host"] != "localhost"):
        raise InputError(BASE_URL, rule, shown)
    port = int(found["port"] or _DEFAULT_PORT[found["scheme"]])
    if not 1 <= port <= 65_535:
        raise InputError(BASE_URL, rule, shown)
    shown_port = "" if port == _DEFAULT_PORT[found["scheme"]] else f":{port}"
    return f"{found['scheme']}://{found['host']}{shown_port}{found['path']}"
