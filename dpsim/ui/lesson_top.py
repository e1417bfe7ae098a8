"""The heading of a lesson's screen. When the screen changes it goes to the top and takes the focus, so that
reading starts there: with the eyes, with the keyboard and with a screen reader."""

from __future__ import annotations

import streamlit as st

from dpsim.prose import literal

# Streamlit draws the heading, since a component is there only once its code has been fetched.
JS = """
const places = new WeakMap();

export default function ({ data, parentElement }) {
  const before = places.get(parentElement);
  places.set(parentElement, data.place);
  if (before === undefined || before === data.place) return;
  requestAnimationFrame(() => {
    document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
    const heading = document.querySelector(".st-key-top h1");
    if (!heading) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  });
}
"""

STYLE = """<style>
.stApp .st-key-top h1 {
  padding: 0.25rem 0 0.75rem; font-size: clamp(1.6rem, 4.5vw, 2.1rem); font-weight: 600;
  text-wrap: balance; outline: none;
}
</style>"""

_component = st.components.v2.component("dpsim_lesson_top", html="<span></span>", js=JS)


def top(title: str, place: str) -> None:
    """The heading `title`; `place` changes when another screen is shown."""
    st.html(STYLE)
    with st.container(key="top", gap=None):
        st.title(literal(title), anchor=False)
        _component(key="lesson_top", data={"place": place})
