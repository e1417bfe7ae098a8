"""Verifying without a network: one HTML file that holds an issuer's public keys, and makes in a browser the
checks of `verify`, in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsim.credential.baked import MOST_BYTES, MOST_CHUNKS
from dpsim.credential.content import LONGEST
from dpsim.credential.credential import CONTEXTS, ENTRIES, TYPES
from dpsim.credential.encoding import DEEPEST, MOST_TOKEN
from dpsim.credential.jws import LONGEST_KID
from dpsim.credential.shown import NAMED, NAMELESS
from dpsim.credential.status import TYPES as LIST_TYPES
from dpsim.credential.verify import SKEW_S
from dpsim.one_file import hash_source, page

HERE = Path(__file__).parent / "offline"
SCRIPTS = ("encoding.js", "baked.js", "token.js", "content.js", "checks.js", "page.js")
START = 'const { did: DID, rules: RULES } = JSON.parse(document.getElementById("data").textContent);\n'
# What the checks have in common with those made here.
RULES = {
    "contexts": CONTEXTS,
    "types": TYPES,
    "listTypes": LIST_TYPES,
    "entries": ENTRIES,
    "mostToken": MOST_TOKEN,
    "mostBytes": MOST_BYTES,
    "mostChunks": MOST_CHUNKS,
    "deepest": DEEPEST,
    "longest": LONGEST,
    "longestKid": LONGEST_KID,
    "skew": SKEW_S,
    "named": NAMED,
    "nameless": NAMELESS,
}


def html(did_document: Mapping[str, Any]) -> str:
    """The whole page. Its policy lets nothing run but the script inside, and nothing load or leave; the page
    can make elements of no text either."""
    script = START + "\n".join(map(_read, SCRIPTS))
    style = _read("verify.css")
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src {hash_source(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    data = {"did": did_document, "rules": RULES}
    return page("Verify a certificate", policy, style, _read("verify.html"), data, script)


def _read(name: str) -> str:
    return (HERE / name).read_text("utf-8")
