"""Certificates inside PNG pictures: the credential in an iTXt chunk, as Open Badges 3.0 has it."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

from dpsim.checks import InputError
from dpsim.credential.encoding import MOST_TOKEN

KEYWORD = b"openbadgecredential"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_BYTES = 10_000_000  # of a picture
MOST_CHUNKS = 10_000
_TOKEN = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPE = re.compile(rb"[A-Za-z]{4}")


def bake(png: bytes, token: str) -> bytes:
    """The picture with the signed credential in it, uncompressed, before its last chunk."""
    _check_token(token.encode("utf-8"))
    chunks = list(_chunks(png))
    if any(_keyword(type, data) == KEYWORD for type, data in chunks):
        raise InputError("picture", "must not hold a credential yet", f"{len(png)} bytes")
    text = KEYWORD + b"\0\0\0\0\0" + token.encode("ascii")  # flag, method, language and translation: none
    return SIGNATURE + b"".join(_chunk(*each) for each in [*chunks[:-1], (b"iTXt", text), chunks[-1]])


def unbake(data: bytes) -> str:
    """The token inside a picture; InputError where it is no sound PNG or holds not exactly one."""
    found = [body for type, body in _chunks(data) if _keyword(type, body) == KEYWORD]
    if len(found) != 1:
        raise InputError("picture", "must hold one credential", f"{len(found)} of them")
    flags, rest = found[0][len(KEYWORD) + 1 :][:2], found[0][len(KEYWORD) + 3 :]
    parts = rest.split(b"\0", 2)  # language tag, translated keyword, text
    if flags not in (b"\0\0", b"\1\0") or len(parts) != 3:
        raise InputError("picture", "must hold its credential as an iTXt chunk", "a broken chunk")
    text = _expanded(parts[2]) if flags[0] else parts[2]
    _check_token(text)
    return text.decode("ascii")


def token_in(data: bytes, field: str = "certificate") -> str:
    """The token in a file: a PNG picture, or a text file that holds nothing else but spaces and line ends
    around it. InputError, which names `field`, for any other file."""
    if data[: len(SIGNATURE)] == SIGNATURE:
        return unbake(data)
    text = data.strip(b" \t\r\n") if len(data) <= 2 * MOST_TOKEN else data
    _check_token(text, field)
    return text.decode("ascii")


def _check_token(text: bytes, field: str = "certificate") -> None:
    if len(text) > MOST_TOKEN or not _TOKEN.fullmatch(text):
        rule = f"must be a signed token of at most {MOST_TOKEN} characters, or a PNG with one in it"
        raise InputError(field, rule, f"{len(text)} bytes")


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Type and content of every chunk. What a file claims about lengths is never believed beyond its end."""
    if len(data) > MOST_BYTES:
        raise InputError("picture", f"must have at most {MOST_BYTES} bytes", f"{len(data)} bytes")
    if data[: len(SIGNATURE)] != SIGNATURE:
        raise InputError("picture", "must be a PNG", f"{len(data)} bytes")
    at, count = len(SIGNATURE), 0
    while at < len(data):
        length, type = struct.unpack_from(">I4s", data, at) if at + 12 <= len(data) else (0, b"")
        end = at + 12 + length
        body = data[at + 8 : end - 4]
        if not _TYPE.fullmatch(type) or end > len(data):
            raise InputError("picture", "must have whole chunks", f"a broken one at byte {at}")
        if zlib.crc32(body, zlib.crc32(type)) != struct.unpack_from(">I", data, end - 4)[0]:
            raise InputError(
                "picture", "must have chunks with the right checksum", f"a wrong one at byte {at}"
            )
        if (type == b"IHDR") != (count == 0) or (type == b"IEND") != (end == len(data)):
            raise InputError("picture", "must begin with IHDR and end with IEND", f"{type!r} at byte {at}")
        yield type, body
        at, count = end, count + 1
        if count > MOST_CHUNKS:
            raise InputError("picture", f"must have at most {MOST_CHUNKS} chunks", count)
    if not count:
        raise InputError("picture", "must begin with IHDR and end with IEND", "nothing")


def _chunk(type: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + type + body + struct.pack(">I", zlib.crc32(body, zlib.crc32(type)))


def _keyword(type: bytes, body: bytes) -> bytes:
    """The keyword of a text chunk, b"" for other chunks; InputError where a text chunk has none."""
    if type != b"iTXt":
        return b""
    keyword, null, _ = body.partition(b"\0")
    if not null or not 1 <= len(keyword) <= 79:
        raise InputError("picture", "must have text chunks with a keyword", f"one of {len(body)} bytes")
    return keyword


def _expanded(text: bytes) -> bytes:
    """Decompressed text. Never more is decompressed than a token may have."""
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(text, MOST_TOKEN + 1)
    except zlib.error:
        raise InputError("picture", "must hold text that can be decompressed", f"{len(text)} bytes") from None
    if not reader.eof or reader.unused_data or len(found) > MOST_TOKEN:
        rule = f"must hold text that comes to at most {MOST_TOKEN} bytes, decompressed"
        raise InputError("picture", rule, f"{len(text)} bytes")
    return found
