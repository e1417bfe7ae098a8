"""What tells the lines and bars of a chart apart: inks, textures and dashes, the same everywhere."""

from __future__ import annotations

# Colour means rank elsewhere, so ways of reducing also differ by texture and dashes. Every ink has a contrast
# of 3:1 or more on the light and on the dark background.
INKS = ("#3f83d8", "#7d8694", "#b0763b", "#6f8f5f", "#9a6fb0", "#5f8f8f")
TEXTURES = ("", "/", ".", "x", "-", "+")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def marker(i: int) -> dict[str, object]:
    """How the i-th kind of bars is filled."""
    pattern = {"shape": TEXTURES[i], "bgcolor": INKS[i], "fgcolor": "#ffffff", "size": 8, "solidity": 0.25}
    return {"color": INKS[i], "pattern": pattern}
