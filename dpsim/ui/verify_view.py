"""The page that verifies a certificate, and says exactly what was checked and what could not be."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from dpsim.checks import InputError
from dpsim.credential.baked import token_in
from dpsim.credential.did import read_document
from dpsim.credential.operator import Operator, operator
from dpsim.credential.shown import proves
from dpsim.credential.status import status_list
from dpsim.credential.verify import Verification, verify
from dpsim.credential.verify_page import html
from dpsim.database import UnreachableError
from dpsim.prose import literal
from dpsim.ui.certificate_words import table
from dpsim.ui.frame import frame
from dpsim.ui.learner import opened
from dpsim.ui.lesson_blocks import TEXT_WIDTH
from dpsim.ui.lesson_top import top
from dpsim.ui.slow_down import slow_down

ASKED, FOUND, WRONG = "verify.asked", "verify.found", "verify.wrong"
TEXT, FILE, KEYS, ID = "verify.text", "verify.file", "verify.keys", "verify.id"
MOST_TEXT = 70_000  # characters: a certificate has some 3,000
MOST_MB = 1
MARKS = {
    "passed": ":green[:material/check_circle:]",
    "failed": ":red[:material/cancel:]",
    "not checked": ":orange[:material/help:]",
}
SAID = {
    "valid": (st.success, ":material/verified:", "**Valid.** All that can be checked is as it should be."),
    "not valid": (st.error, ":material/gpp_bad:", "**Not valid.** Do not rely on this certificate."),
    "not verified": (
        st.warning,
        ":material/help:",
        "**Not verified.** Nothing speaks against this certificate, but its signature could not be checked.",
    ),
}


def verify_page() -> None:
    """Draw the page. The address may name a certificate's id."""
    frame()
    with st.container(key="verify", width=TEXT_WIDTH):
        top("Verify a certificate", "verify")
        asked = st.query_params.get("id")
        if asked is not None and st.session_state.get(ASKED) != asked:
            st.session_state[ASKED] = asked
            _take(lambda: _kept(asked))
        if wrong := st.session_state.get(WRONG):
            st.error(literal(wrong), icon=":material/error:")
        if found := st.session_state.get(FOUND):
            _result(found)
        _ways()
        _elsewhere()


def _result(found: Verification) -> None:
    """The verdict, each check, and what the certificate says where its signature holds."""
    box, icon, said = SAID[found.outcome]
    unchecked = [check.name for check in found.checks if check.outcome == "not checked"]
    if found.outcome == "valid" and unchecked:
        said = f"**Valid.** But not checked: {', '.join(unchecked)}."
    box(said, icon=icon)
    checks = [f"{MARKS[c.outcome]} **{c.name}** · {c.outcome}  \n{literal(c.said)}" for c in found.checks]
    st.markdown("\n\n".join(checks))
    if found.facts is not None:
        with st.container(border=True, key="verify-says"):
            st.markdown(f"**What it says**\n\n{table(found.facts)}")
            st.caption(proves(found.facts.name))


def _ways() -> None:
    """A file, a text or an id, and another issuer's keys."""
    by_file, by_text, by_id = st.tabs(["A file", "Its text", "Its id"])
    with by_file, st.form("verify.by-file", border=False):
        st.file_uploader(
            "The certificate: its picture (.png) or its .jwt file",
            type=["png", "jwt"], key=FILE, max_upload_size=MOST_MB,
        )  # fmt: skip
        _button("file", _from_file)
    with by_text, st.form("verify.by-text", border=False):
        st.text_area("The text of the .jwt file", key=TEXT, max_chars=MOST_TEXT, placeholder="eyJ…")
        _button("text", lambda: _checked(str(st.session_state.get(TEXT, "")).strip()))
    with by_id, st.form("verify.by-id", border=False):
        st.text_input(
            "The id on the certificate", key=ID, max_chars=60, placeholder="urn:uuid:… or the id alone"
        )
        _button("id", lambda: _kept(str(st.session_state.get(ID, ""))))
    with st.expander("It was issued elsewhere"):
        st.file_uploader(
            "The issuer's DID document (did.json), from a source that you trust",
            type=["json"], key=KEYS, max_upload_size=MOST_MB,
        )  # fmt: skip
        st.caption(
            "Certificates of this server are checked with its own keys. For any other issuer's, choose its "
            "did.json here before you verify. Nothing is fetched from elsewhere."
        )


def _button(name: str, work: Callable[[], Verification]) -> None:
    st.form_submit_button(
        "Verify",
        type="primary",
        icon=":material/verified:",
        key=f"verify.go-{name}",
        on_click=_take,
        args=(work,),
    )


def _take(work: Callable[[], Verification]) -> None:
    """Verify, and keep what came of it for the page."""
    st.session_state[FOUND], st.session_state[WRONG] = None, ""
    try:
        if late := slow_down("verification"):
            st.session_state[WRONG] = late
        else:
            st.session_state[FOUND] = work()
    except InputError as error:
        st.session_state[WRONG] = error.rule if error.value is None else f"{error}."
    except UnreachableError as error:
        st.session_state[WRONG] = str(error)


def _kept(id: str) -> Verification:
    """The certificate that is kept under an id."""
    kept, plain = opened(), id.strip().lower().removeprefix("urn:uuid:")
    if not plain:
        raise InputError("id", "Type the id first.", None)
    found = kept.certificate(plain) if kept is not None else None
    if found is None:
        said = (
            "No certificate with this id is known here. If whoever earned it had everything deleted that was "
            "kept about them, its file can still be verified."
        )
        raise InputError("id", said, None)
    return _checked(found.jwt)


def _from_file() -> Verification:
    given = st.session_state.get(FILE)
    if given is None:
        raise InputError("file", "Choose a file first.", None)
    return _checked(token_in(given.getvalue()))


def _checked(text: str) -> Verification:
    """The verdict by the keys that were chosen, else by this server's own."""
    if not text:
        raise InputError("text", "Paste the text first.", None)
    issuer, given = operator(), st.session_state.get(KEYS)
    if given is not None:  # another issuer's revocations stand in no list of ours
        return verify(text, read_document("did.json", given.getvalue()), None, time.time())
    return verify(text, issuer.did_document() if issuer else None, _status(issuer), time.time())


def _status(issuer: Operator | None) -> str | None:
    """This server's own status list, as of now."""
    kept = opened()
    if issuer is None or kept is None:
        return None
    try:
        return status_list(issuer, kept.revoked_indices(), time.time())
    except UnreachableError:
        return None


def _elsewhere() -> None:
    """The ways to verify without this server."""
    with st.container(border=True, key="verify-elsewhere"):
        st.markdown(
            "**Without this server.** A certificate's file can be verified anywhere with "
            "`python -m dpsim verify FILE --keys did.json`."
        )
        if (issuer := _issuer()) is not None:
            st.markdown("Or with a page that works in any browser offline, and knows this server's keys:")
            st.download_button(
                "Download that page", lambda: html(issuer.did_document()), "verify-certificate.html",
                "text/html", icon=":material/download:", on_click="ignore", key="verify.page",
            )  # fmt: skip
            st.caption(f"The keys are published at {issuer.links.did_document}")


def _issuer() -> Operator | None:
    """This server's operator; None also where the settings cannot be used, which verifying says."""
    try:
        return operator()
    except InputError:
        return None
