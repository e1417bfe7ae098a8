"""The heading of a lesson's screen. When the screen changes it goes to the top and takes the focus, so that
reading starts there: with the eyes, with the keyboard and with a screen reader."""

from __future__ import annotations

import streamlit as st

HTML = '<h1 tabindex="-1"></h1>'

CSS = """
h1 {
  margin: 0; font: 600 clamp(1.6rem, 4.5vw, 2.1rem) / 1.2 var(--st-heading-font, inherit); outline: none;
  color: var(--st-heading-color, inherit); text-wrap: balance; overflow-wrap: anywhere;
}
"""

JS = """
const places = new WeakMap();

export default function ({ data, parentElement }) {
  const heading = parentElement.querySelector("h1");
  heading.textContent = data.title;
  const before = places.get(parentElement);
  places.set(parentElement, data.place);
  if (before === undefined || before === data.place) return;
  document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
  heading.focus({ preventScroll: true });
}
"""

_component = st.components.v2.component("dpsim_lesson_top", html=HTML, css=CSS, js=JS)


def top(title: str, place: str) -> None:
    """The heading `title`; `place` changes when another screen is shown."""
    _component(key="lesson_top", data={"title": title, "place": place})
