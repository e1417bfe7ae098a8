"""Any stage as one HTML file that plays from disk: script, data and beats inside, no outside request.

With JavaScript off the page is the list of beats, which is complete without the picture.
"""

from __future__ import annotations

import html

from dpsim.beats import Beat
from dpsim.one_file import hash_source, page
from dpsim.ui.stage.files import read, script
from dpsim.ui.stage.payload import Data
from dpsim.wording import duration

# The component's own theme comes from Streamlit; alone, the page follows the system's.
THEME = """
:root { color-scheme: light dark; --st-font: system-ui, sans-serif; --st-text-color: #1b2130;
  --st-background-color: #ffffff; --st-secondary-background-color: #f4f6fa; }
@media (prefers-color-scheme: dark) { :root { --st-text-color: #f2f4f8; --st-background-color: #0e1117;
  --st-secondary-background-color: #1c222d; } }
body { margin: 0 auto; max-width: 1180px; padding: 16px; background: var(--st-background-color);
  color: var(--st-text-color); font-family: var(--st-font); line-height: 1.4; }
h1 { font-size: 22px; }
code { overflow-wrap: anywhere; }
"""

START = """
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.getElementById("stage");
root.hidden = false;
draw({ data, parentElement: root, setStateValue() {} });
"""


def offline_page(data: Data, told: tuple[Beat, ...]) -> str:
    """The whole page. Its policy lets nothing run but the script inside, and nothing load at all."""
    module = script().replace("export default function (", "function draw(") + START
    policy = (
        f"default-src 'none'; script-src {hash_source(module)}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = html.escape(data["title"])
    body = f"""<h1>{title}</h1>
<div id="stage" hidden>{read("stage.html")}</div>
<h2>The same step as text</h2>
{_beats(told)}"""
    return page(title, policy, THEME + read("stage.css"), body, data, module)


def _beats(told: tuple[Beat, ...]) -> str:
    items = []
    for beat in told:
        lines = "".join(f"<br><code>{html.escape(line)}</code>" for line in beat.arithmetic)
        details = "".join(f"<li>{html.escape(line)}</li>" for line in beat.details)
        more = f"<ul>{details}</ul>" if details else ""
        when = html.escape(duration(beat.moment_s))
        head = f"<b>{html.escape(beat.title)}</b> at {when}<br>{html.escape(beat.sentence)}"
        items.append(f'<li id="{html.escape(beat.id)}">{head}{lines}{more}</li>')
    return f"<ol>{''.join(items)}</ol>"
