"""Who issues certificates here: the operator's keys, address and name, from the settings of the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dpsim.base_url import BASE_URL, base_url
from dpsim.checks import InputError, text
from dpsim.credential.did import did_web, document
from dpsim.credential.keys import Keys, load, read

KEY, KEY_PEM, ISSUER = "DPSIM_KEY", "DPSIM_KEY_PEM", "DPSIM_ISSUER"
LONGEST_NAME = 200


@dataclass(frozen=True)
class Links:
    """The addresses that a certificate and its issuer's documents have."""

    base_url: str

    def verify(self, id: UUID) -> str:
        """The page that verifies the certificate `id`."""
        return f"{self.base_url}/verify?id={id}"

    @property
    def status(self) -> str:
        return f"{self.base_url}/status/1"

    @property
    def test(self) -> str:
        return f"{self.base_url}/test"

    @property
    def did_document(self) -> str:
        """Where others look for the issuer's keys: it follows from the identifier."""
        path = "" if self.base_url.count("/") > 2 else "/.well-known"
        return f"{self.base_url}{path}/did.json"


@dataclass(frozen=True)
class Operator:
    """Who issues certificates: keys, the address under which others reach the app, and a name."""

    keys: Keys
    base_url: str
    name: str

    @property
    def did(self) -> str:
        return did_web(self.base_url)

    @property
    def links(self) -> Links:
        return Links(self.base_url)

    def did_document(self) -> dict[str, Any]:
        """All public keys, the former ones too, as the document that belongs at `links.did_document`."""
        return document(self.did, self.keys.public)


def operator() -> Operator | None:
    """The operator by the settings, None where no key or no address is set. InputError where what is set
    cannot be used, so that nothing is ever made up in its place."""
    if missing():
        return None
    path, pem = _setting(KEY), _setting(KEY_PEM)
    if path and pem:
        raise InputError(KEY, f"must be left out where {KEY_PEM} is set", "both")
    keys = load(path, KEY) if path else read(pem, KEY_PEM)
    reached = base_url()
    host = reached.split("/")[2].partition(":")[0]
    return Operator(keys, reached, text(ISSUER, _setting(ISSUER) or f"dpsim at {host}", LONGEST_NAME))


def missing() -> tuple[str, ...]:
    """What keeps certificates from being issued here, a sentence each, with the command that helps."""
    found = []
    if not _setting(KEY) and not _setting(KEY_PEM):
        found.append(
            f"{KEY} is not set. `python -m dpsim keys new dpsim-key.pem` makes a key, once; "
            f"then start the app with {KEY}=dpsim-key.pem."
        )
    if not _setting(BASE_URL):
        found.append(
            f"{BASE_URL} is not set. Start the app with the address that others reach it by, "
            f"such as {BASE_URL}=https://learn.example.org."
        )
    return tuple(found)


def _setting(name: str) -> str:
    return os.environ.get(name, "").strip()
