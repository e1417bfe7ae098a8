"""Pages that are one HTML file: how data stand in them, and how a policy names the script that may run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any


def escaped_json(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def page(title: str, policy: str, style: str, body: str, data: Mapping[str, Any], script: str) -> str:
    """The document; `title` and `body` are HTML, and the script finds the data in the element `data`."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title} · dpsim</title>
<style>{style}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{escaped_json(data)}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def hash_source(text: str) -> str:
    """A script or style sheet as a source in a Content Security Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
