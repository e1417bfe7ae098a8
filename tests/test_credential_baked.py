"""Certificates in PNG pictures: what goes in comes out, for other programs too; broken files are refused."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib

import pytest
from certificates import token
from hypothesis import given
from hypothesis import strategies as st
from openbadgeslib import baking
from openbadgeslib.ob3 import OB3Verifier
from PIL import Image
from strategies import law

from dpsim.checks import InputError
from dpsim.credential.baked import bake, token_in, unbake

KEYWORD = b"openbadgecredential"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
TOKEN = token()


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (5, 3), (200, 30, 90)).save(file, "PNG")
    return file.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def text_chunk(text: bytes, flags: bytes = b"\0\0", tags: bytes = b"\0\0", keyword: bytes = KEYWORD) -> bytes:
    return chunk(b"iTXt", keyword + b"\0" + flags + tags + text)


def with_chunks(*chunks: bytes) -> bytes:
    """The picture with these before its last chunk, which is the twelve bytes of IEND."""
    return picture()[:-12] + b"".join(chunks) + picture()[-12:]


def refused(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        unbake(data)
    assert caught.value.field in ("picture", "certificate")
    return str(caught.value)


# There and back.


def test_what_is_baked_comes_out() -> None:
    assert unbake(bake(picture(), TOKEN)) == TOKEN


def test_the_picture_stays_the_same_picture() -> None:
    before, after = (Image.open(io.BytesIO(data)) for data in (picture(), bake(picture(), TOKEN)))
    assert (after.size, after.tobytes()) == (before.size, before.tobytes())
    assert after.text == {KEYWORD.decode(): TOKEN}  # Pillow reads the chunk, too


def test_another_open_badges_library_reads_it_and_bakes_the_same_bytes() -> None:
    baked = bake(picture(), TOKEN)
    assert OB3Verifier.extract_token_from_png(baked) == TOKEN
    assert baked == baking.bake_png(picture(), TOKEN, keyword=baking.ITXT_KEYWORD_OB3)


def test_a_picture_that_another_library_has_baked_is_read() -> None:
    assert unbake(baking.bake_png(picture(), TOKEN, "a comment", keyword=baking.ITXT_KEYWORD_OB3)) == TOKEN


def test_compressed_text_and_tags_are_read() -> None:
    assert unbake(with_chunks(text_chunk(zlib.compress(TOKEN.encode()), b"\1\0"))) == TOKEN
    assert unbake(with_chunks(text_chunk(TOKEN.encode(), tags=b"en\0credential\0"))) == TOKEN


def test_other_text_in_the_picture_is_left_alone() -> None:
    data = with_chunks(
        text_chunk(b"Ada", keyword=b"Author"), text_chunk(TOKEN.encode()), chunk(b"tEXt", b"a\0b")
    )
    assert unbake(data) == TOKEN
    baked = bake(with_chunks(text_chunk(b"Ada", keyword=b"Author")), TOKEN)
    assert Image.open(io.BytesIO(baked)).text == {"Author": "Ada", KEYWORD.decode(): TOKEN}


def test_nothing_is_baked_into_what_is_no_picture() -> None:
    for data in (b"", SIGNATURE, picture()[:-12], b"GIF89a"):
        with pytest.raises(InputError, match=r"^picture"):
            bake(data, TOKEN)


def test_a_credential_is_not_baked_twice() -> None:
    with pytest.raises(InputError, match="must not hold a credential yet"):
        bake(bake(picture(), TOKEN), TOKEN)


@pytest.mark.parametrize(
    "text", ["", "a.b", "a.b.", "a.b.c d", f"{TOKEN}\n", "é.b.c", "a." + "x" * 70_000 + ".c"]
)
def test_what_is_no_token_is_not_baked(text: str) -> None:
    with pytest.raises(InputError, match=r"^certificate"):
        bake(picture(), text)


# Broken files.


def test_no_credential_and_two_of_them_are_refused() -> None:
    assert "one credential, got '0 of them'" in refused(picture())
    assert "one credential, got '2 of them'" in refused(with_chunks(*[text_chunk(TOKEN.encode())] * 2))
    other = text_chunk(zlib.compress(TOKEN.encode()), b"\1\0")
    assert "2 of them" in refused(with_chunks(text_chunk(TOKEN.encode()), other))


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG", SIGNATURE, b"GIF89a", b"\xff\xd8\xff", b"<svg/>", TOKEN.encode()]
)
def test_other_files_are_refused(data: bytes) -> None:
    refused(data)


@pytest.mark.parametrize("lost", [1, 4, 11, 12, 13, 100, 2000])
def test_a_truncated_file_is_refused(lost: int) -> None:
    refused(bake(picture(), TOKEN)[:-lost])


def test_a_wrong_checksum_is_refused_in_any_chunk() -> None:
    data = bake(picture(), TOKEN)
    at = data.index(KEYWORD) + 40
    assert "checksum" in refused(data[:at] + b"~" + data[at + 1 :])
    assert "checksum" in refused(data[:20] + b"\x7f" + data[21:])  # the width
    assert "checksum" in refused(data[:-1] + b"\0")


@given(data=st.data())
@law(100)
def test_no_byte_can_be_changed(data: st.DataObject) -> None:
    baked = bake(picture(), TOKEN)
    at = data.draw(st.integers(0, len(baked) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda other: other != baked[at]))
    refused(baked[:at] + bytes([byte]) + baked[at + 1 :])


@given(st.binary(max_size=80))
@law(60)
def test_any_bytes_are_refused_never_an_error(data: bytes) -> None:
    refused(data)
    refused(SIGNATURE + data)
    refused(picture()[:33] + data)


@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**32 - 1, 10_000])
def test_a_chunk_that_claims_to_be_huge_is_refused_and_not_believed(length: int) -> None:
    data = picture()[:-12] + struct.pack(">I", length) + b"iTXt" + KEYWORD + picture()[-12:]
    tracemalloc.start()
    assert "whole chunks" in refused(data)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1_000_000


def test_chunks_of_length_zero_are_refused_where_they_have_to_hold_something() -> None:
    assert "keyword" in refused(with_chunks(chunk(b"iTXt", b"")))
    assert "keyword" in refused(with_chunks(chunk(b"iTXt", b"\0\0\0\0\0")))
    assert "broken chunk" in refused(with_chunks(chunk(b"iTXt", KEYWORD + b"\0")))
    assert "signed token" in refused(with_chunks(text_chunk(b"")))
    assert unbake(with_chunks(chunk(b"IDAT", b""), text_chunk(TOKEN.encode()))) == TOKEN  # may be empty


@pytest.mark.parametrize(
    "body",
    [
        b"\0\2\0\0\0",  # a flag that there is not
        b"\0\0\1\0\0",  # a method that there is not
        b"\0\0\0\0",  # no translated keyword
        b"\0\0\0",
        b"\0",
    ],
)
def test_a_text_chunk_that_breaks_a_rule_is_refused(body: bytes) -> None:
    text = TOKEN.encode() if body.count(b"\0") + body.count(b"\1") + body.count(b"\2") > 3 else b""
    refused(with_chunks(chunk(b"iTXt", KEYWORD + body + text)))


@pytest.mark.parametrize("keyword", [KEYWORD + b"s", KEYWORD[:-1], KEYWORD.upper(), b"openbadges"])
def test_another_keyword_is_another_text(keyword: bytes) -> None:
    assert "0 of them" in refused(with_chunks(text_chunk(TOKEN.encode(), keyword=keyword)))


def test_a_keyword_beyond_79_bytes_is_refused() -> None:
    assert "keyword" in refused(with_chunks(text_chunk(b"", keyword=b"k" * 80)))


def test_chunks_have_to_stand_in_order() -> None:
    ihdr, end = picture()[8:33], picture()[-12:]
    for data in (
        SIGNATURE + end,
        SIGNATURE + ihdr,
        SIGNATURE + text_chunk(TOKEN.encode()) + ihdr + end,
        SIGNATURE + ihdr + ihdr + text_chunk(TOKEN.encode()) + end,
        bake(picture(), TOKEN) + b"\0",
        bake(picture(), TOKEN) + end,
    ):
        refused(data)


@pytest.mark.parametrize("kind", [b"iTX\0", b"\xff\xff\xff\xff", b"1234", b"    "])
def test_a_chunk_type_is_four_letters(kind: bytes) -> None:
    assert "whole chunks" in refused(with_chunks(chunk(kind, b"")))


def test_compressed_text_is_never_expanded_beyond_a_tokens_length() -> None:
    """Forty megabytes in forty kilobytes: refused, and memory stays where it was."""
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(b"A" * 1_000_000) for _ in range(40)) + packer.flush()
    data = with_chunks(text_chunk(bomb, b"\1\0"))
    tracemalloc.start()
    assert "decompressed" in refused(data)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no zlib",
        zlib.compress(TOKEN.encode())[:-1],
        zlib.compress(TOKEN.encode()) + b"more",
        zlib.compress(b""),
    ],
)
def test_compressed_text_that_is_broken_is_refused(text: bytes) -> None:
    refused(with_chunks(text_chunk(text, b"\1\0")))


@pytest.mark.parametrize(
    "text", [b"{}", b"a.b", TOKEN.encode() + b"\n", b"\xff.b.c", b"a" * 70_000, b"a.b.c\0d"]
)
def test_text_that_is_no_token_is_refused(text: bytes) -> None:
    assert "signed token" in refused(with_chunks(text_chunk(text)))


def test_too_many_chunks_and_too_many_bytes_are_refused() -> None:
    assert "at most 10000 chunks" in refused(with_chunks(*[chunk(b"IDAT", b"")] * 10_001))
    assert "at most 10000000 bytes" in refused(SIGNATURE + bytes(10_000_000))


# Files of either kind.


def test_a_token_is_found_in_a_picture_and_in_a_text_file() -> None:
    assert token_in(bake(picture(), TOKEN)) == TOKEN
    for text in (TOKEN, f"{TOKEN}\n", f"\n  {TOKEN}\r\n"):
        assert token_in(text.encode()) == TOKEN


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"<svg/>", b"%PDF-1.7", b"\xef\xbb\xbfa.b.c", b"a.b.c\0", b" " * 200_000]
)
def test_any_other_file_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="must be a signed token"):
        token_in(data)
