"""What a certificate says, in words: for its page, for the page that verifies, and for its files."""

from __future__ import annotations

from dpsim.credential.content import Facts, facts
from dpsim.credential.jws import read
from dpsim.credential.operator import Links
from dpsim.credential.shown import Shown
from dpsim.prose import literal
from dpsim.wording import day


def facts_of(jwt: str) -> Facts:
    """The facts of a certificate that is kept here."""
    return facts(read(jwt).payload)


def score(found: Facts) -> str:
    return f"{found.right} of {found.of} right"


def shown(found: Facts) -> Shown:
    """What stands on the PDF and the picture."""
    return Shown(
        id=found.id.urn,
        name=found.name,
        title=found.title,
        score=score(found),
        date=day(found.awarded),
        issuer=found.issuer,
        link=Links(found.issuer_url).verify(found.id),
    )


def table(found: Facts) -> str:
    """The facts as Markdown: a line each."""
    rows = (
        ("Certificate", found.title),
        ("Name", found.name or "none: it is bound to nobody"),
        ("Score", f"{score(found)}; {found.required} were required"),
        ("Passed on", day(found.awarded)),
        ("Issued on", day(found.issued)),
        ("Issuer", f"{found.issuer} ({found.issuer_did})"),
        ("Id", found.id.urn),
    )
    return "\n".join(f"- {label}: **{literal(value)}**" for label, value in rows)
