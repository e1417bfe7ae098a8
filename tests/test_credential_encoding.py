"""How things are written down: each has one spelling, held against Python's own and against other ways."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.credential.encoding import LAST_S, base64url, from_base64url, from_json, from_time, time


@given(st.binary(max_size=70))
@law(60)
def test_bytes_come_back_from_base64url(data: bytes) -> None:
    text = base64url(data)
    assert text == base64.b64encode(data, b"-_").decode().rstrip("=")
    assert from_base64url("field", text) == data


@given(st.text("ABQgwz059-_", max_size=9))
@law(200)
def test_what_reads_is_what_would_be_written_and_all_else_is_refused(text: str) -> None:
    """RFC 4648: no length of 4 n + 1, and the bits beyond the last byte are zero."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    bits = "".join(f"{letters.index(letter):06b}" for letter in text)
    whole = len(bits) // 8 * 8
    if len(text) % 4 == 1 or "1" in bits[whole:]:
        with pytest.raises(InputError, match=r"^field: must be base64url"):
            from_base64url("field", text)
    else:
        assert from_base64url("field", text) == bytes(int(bits[i : i + 8], 2) for i in range(0, whole, 8))


@pytest.mark.parametrize(
    "text", ["A", "AB", "AAAAA", "AA==", "AA=", " AAAA", "AAAA\n", "AA AA", "AA+A", "AA/A", "éAAA"]
)
def test_a_second_spelling_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        from_base64url("field", text)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=3))
@law(60)
def test_json_comes_back(value: dict[str, Any]) -> None:
    assert from_json("field", json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "NaN", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": 1, "a": 1}']
)
def test_json_that_not_everybody_reads_alike_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        from_json("field", text.encode())


@pytest.mark.parametrize(("levels", "good"), [(12, True), (13, False), (100_000, False)])
def test_json_has_at_most_twelve_levels(levels: int, good: bool) -> None:
    text = '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)
    if good:
        assert json.dumps(from_json("field", text.encode()), separators=(",", ":")) == text
    else:
        with pytest.raises(InputError, match="12 levels"):
            from_json("field", text.encode())


@given(st.floats(0, LAST_S))
@law(60)
def test_times_come_back_to_the_whole_second(at: float) -> None:
    text = time(at)
    assert from_time("field", text) == int(at)
    assert datetime.fromisoformat(text) == datetime.fromtimestamp(int(at), UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00+00:00",
        "2026-01-31T12:00:00.5Z",
        "2026-02-30T12:00:00Z",
    ],
)
def test_another_spelling_of_a_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be a time such as"):
        from_time("field", text)
