"""Below a test that was passed: the certificate, under a name that was typed or none, and its files."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dpsim.checks import InputError
from dpsim.credential.baked import bake
from dpsim.credential.credential import LONGEST_HOLDER, holder
from dpsim.credential.operator import Operator, missing, operator
from dpsim.credential.paper import pdf
from dpsim.credential.picture import png
from dpsim.credential.shown import NAMED, NAMELESS, Shown, proves
from dpsim.database import UnreachableError
from dpsim.issuing import issue, issued
from dpsim.kept_tests import Certificate, Sitting
from dpsim.prose import literal
from dpsim.recovery import learner_id
from dpsim.ui.certificate_words import facts_of, shown
from dpsim.ui.learner import learner, opened
from dpsim.ui.slow_down import slow_down

NAME, SAID = "certificate.name", "certificate.said"


def certificate(test: Sitting) -> None:
    """Draw it."""
    st.header("Your certificate", anchor=False)
    try:
        issuer = operator()
        if issuer is None:
            _none_here()
            return
        kept = opened()
        assert kept is not None  # there is a test in it
        found = issued(kept, learner_id(learner().key), test)
    except InputError as error:
        st.error(literal(f"No certificate can be issued here: {error}."), icon=":material/error:")
        return
    except UnreachableError as error:
        st.error(literal(str(error)), icon=":material/cloud_off:")
        return
    if said := st.session_state.pop(SAID, ""):
        st.error(literal(said), icon=":material/error:")
    if found is None:
        st.markdown(f"**With a name.** {NAMED}\n\n**Without one.** {NAMELESS}")
        _form(test, "Issue my certificate")
        return
    if found.revoked:
        st.warning(
            "Your certificate for this test was revoked by whoever runs this server. It is not issued again; "
            "another test may be taken.",
            icon=":material/gpp_bad:",
        )
        return
    _files(found)
    _profile(found, issuer)
    with st.expander("Issue it again, under another name or none"):
        st.markdown("The new one takes the place of this one, which is revoked: only one stands.")
        _form(test, "Issue it again")
    st.markdown(f"**What it proves.** {proves(facts_of(found.jwt).name)}")


def _none_here() -> None:
    st.info("This server issues no certificates. Whoever runs it can change that:", icon=":material/info:")
    st.markdown("\n".join(f"- {sentence}" for sentence in missing()))


def _form(test: Sitting, label: str) -> None:
    with st.form("certificate.form"):
        st.text_input(
            "Name on the certificate",
            key=NAME,
            max_chars=LONGEST_HOLDER,
            placeholder="You may leave this empty",
        )
        st.caption(
            "It stands in the certificate for everybody who sees it, and is kept on this server with it."
        )
        st.form_submit_button(
            label, type="primary", icon=":material/workspace_premium:", key="certificate.go",
            on_click=_issue, args=(test,),
        )  # fmt: skip


def _issue(test: Sitting) -> None:
    try:
        issuer, kept = operator(), opened()
        name = holder(str(st.session_state.get(NAME, "")))  # a name that is refused is no issue to be counted
        if late := slow_down("certificate"):
            st.session_state[SAID] = late
        elif issuer is not None and kept is not None:
            issue(issuer, kept, learner_id(learner().key), test, name)
    except InputError as error:
        st.session_state[SAID] = f"{error}."
    except UnreachableError as error:
        st.session_state[SAID] = str(error)


def _files(found: Certificate) -> None:
    """What can be taken along. A file is made when its button is pressed."""
    what = shown(facts_of(found.jwt))
    st.markdown(
        f"**{literal(what.title)}**  \n{literal(what.name or 'without a name')} · {literal(what.score)} · "
        f"{literal(what.date)}"
    )
    with st.container(horizontal=True):
        for label, make, ending, mime in (
            ("PDF, to print", partial(pdf, what), ".pdf", "application/pdf"),
            ("Picture, with the credential in it", partial(_picture, what, found.jwt), ".png", "image/png"),
            ("The credential itself", partial(str, found.jwt), ".jwt", "application/jwt"),
        ):
            st.download_button(
                label, make, f"dpsim-certificate{ending}", mime,
                icon=":material/download:", on_click="ignore", key=f"certificate{ending}",
            )  # fmt: skip
    st.page_link(
        "pages/verify.py", label="Verify it", icon=":material/verified:", query_params={"id": found.id}
    )


def _picture(what: Shown, jwt: str) -> bytes:
    return bake(png(what), jwt)


def _profile(found: Certificate, issuer: Operator) -> None:
    """The fields that a profile elsewhere asks for."""
    what = shown(facts_of(found.jwt))
    with st.expander("Copy it into a profile"):
        for label, value in (
            ("Name", what.title),
            ("Issuing organisation", issuer.name),
            ("Issue date", what.date),
            ("Credential ID", what.id),
            ("Credential URL", what.link),
        ):
            st.caption(label)
            st.code(value, language=None)
