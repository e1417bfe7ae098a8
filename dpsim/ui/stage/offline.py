"""Any stage as one HTML file that plays from disk: script, data and beats inside, no outside request.

With JavaScript off the page is the list of beats, which is complete without the picture.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json

from dpsim.beats import Beat
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
    digest = base64.b64encode(hashlib.sha256(module.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = html.escape(data["title"])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · dpsim</title>
<style>{THEME}{read("stage.css")}</style>
</head>
<body>
<h1>{title}</h1>
<div id="stage" hidden>{read("stage.html")}</div>
<h2>The same step as text</h2>
{_beats(told)}
<script type="application/json" id="data">{escaped_json(data)}</script>
<script type="module">{module}</script>
</body>
</html>
"""


def escaped_json(data: Data) -> str:
    """JSON that cannot end the element it stands in."""
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


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
