"""A certificate on paper and as a picture, read back by other libraries than those that made them."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import zxingcpp
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageDraw, ImageFont
from pypdf import PdfReader
from pypdf.generic import ContentStream

from dpsim.checks import InputError
from dpsim.credential.looks import REGULAR, SEMIBOLD, can_be_set
from dpsim.credential.paper import pdf
from dpsim.credential.picture import png
from dpsim.credential.shown import Shown

ID = "3f2b8c1e-6a54-4f0e-9d3b-7a1c2e5d8f90"
LINK = f"https://learn.example.org/verify?id={ID}"
SHOWN = Shown(
    ID, "", "Data-parallel training: the test", "17 of 20 (85 %)", "12 March 2026", "A school", LINK
)
WIDEST = replace(
    SHOWN,
    id="W" * 60,
    name="W" * 100,
    title="W" * 100,
    score="W" * 40,
    date="W" * 40,
    issuer="W" * 200,
    link="https://" + "w" * 292,
)
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=100)
# Names as they are written in many languages, each of which the page has letters for.
EUROPEAN = (
    "Zażółć Gęślą Jaźń", "Příliš Žluťoučký Kůň", "Çağrı İpek Şükrü", "Nguyễn Thị Ánh Tuyết", "Ștefan Țuțea",
    "Þórunn Æsa Ðóra", "Ελένη Παπαδοπούλου", "Щербаков Їжак Ґалаґан", "Ђорђевић Ќосев", "Қасым Өмір Ұлы",
    "Őry Ünal", "O’Neill–Šķēle",
)  # fmt: skip
EAST_ASIAN = ("王小明", "山田 はなこ", "김민준", "欧阳娜娜 Nana")
OTHERS = (
    "محمد علي", "דוד לוי", "नरेन्द्र", "สมชาย", "👩🏽‍🚀🚀", "Z\u0351\u0322a\u0334\u0315lgo", "\u202eevil\u202c",
    "𠮷野家", "\ufdfd", "x\u200by",
)  # fmt: skip


def page(shown: Shown) -> str:
    """The page's text, its lines and its spaces of all kinds as spaces."""
    (only,) = PdfReader(io.BytesIO(pdf(shown))).pages
    return " ".join(only.extract_text().split())


def picture(shown: Shown) -> Image.Image:
    return Image.open(io.BytesIO(png(shown)))


def code_of(made: bytes) -> Image.Image:
    """The QR code: the one path of many squares, drawn again from the file's own numbers."""
    reader = PdfReader(io.BytesIO(made))
    squares: list[list[float]] = []
    for operands, operator in ContentStream(reader.pages[0].get_contents(), reader).operations:
        if operator == b"n" or operator.lower() in (b"f", b"f*", b"s", b"b"):
            if len(squares) > 100:
                break
            squares = []
        elif operator == b"re":
            squares.append([float(each) for each in operands])
    zoom = 8
    left, low = (min(square[i] for square in squares) for i in (0, 1))
    side = max(square[0] + square[2] for square in squares) - left
    image = Image.new("L", (round((side + 20) * zoom),) * 2, 255)
    draw = ImageDraw.Draw(image)
    for x, y, width, height in squares:
        box = [x - left, side - (y - low) - height, x - left + width, side - (y - low)]
        draw.rectangle([(each + 10) * zoom for each in box], 0)
    return image


def test_the_page_says_what_was_passed_by_whom_when_and_where_to_verify_it() -> None:
    said = page(replace(SHOWN, name="Ada Lovelace"))
    for part in ("Ada Lovelace", SHOWN.title, "17 of 20 (85 %)", SHOWN.date, SHOWN.issuer, ID, LINK):
        assert part in said
    assert "typed by the learner and checked by nobody" in said


@pytest.mark.parametrize("name", ["", " ", "\u3000"])
def test_without_a_name_it_says_what_it_proves_and_what_not(name: str) -> None:
    said = page(replace(SHOWN, name=name))
    assert "This certifies that the holder of one browser’s key has passed" in said
    assert (
        "It carries no name. It proves that whoever holds the browser’s key passed; not who that was." in said
    )


def test_it_is_one_a4_page_in_landscape_that_says_in_its_metadata_what_it_is() -> None:
    reader = PdfReader(io.BytesIO(pdf(replace(SHOWN, name="محمد علي"))))
    (only,) = reader.pages
    assert [round(float(each) / 72 * 25.4) for each in only.mediabox[2:]] == [297, 210]
    about = reader.metadata
    assert about is not None
    assert about.title == "Certificate: Data-parallel training: the test"
    assert (about.author, about.keywords) == ("A school", ID)
    assert about.subject == f"محمد علي · 17 of 20 (85 %) · 12 March 2026 · {LINK}"
    assert reader.root_object["/Lang"] == "en"
    (link,) = only["/Annots"]
    assert link.get_object()["/A"]["/URI"] == LINK


@pytest.mark.parametrize("link", [LINK, "http://localhost:8501/verify?id=" + ID, WIDEST.link], ids=len)
def test_its_code_leads_exactly_to_the_link(link: str) -> None:
    (code,) = zxingcpp.read_barcodes(code_of(pdf(replace(SHOWN, link=link))))
    assert (str(code.format), code.text) == ("QR Code", link)


@pytest.mark.parametrize("name", EUROPEAN)
def test_names_in_latin_greek_and_cyrillic_letters_stand_on_the_page(name: str) -> None:
    assert f"This certifies that {name} has passed" in page(replace(SHOWN, name=name))


@pytest.mark.parametrize("name", EAST_ASIAN)
def test_chinese_japanese_and_korean_names_stand_below_a_sentence_that_is_whole_without_them(
    name: str,
) -> None:
    said = page(replace(SHOWN, name=name))
    assert f"This certifies that the learner whom the credential names {name} has passed" in said
    assert "The name stands in the credential" in said


@pytest.mark.parametrize("name", OTHERS)
def test_a_name_that_cannot_be_set_rightly_is_left_to_the_credential(name: str) -> None:
    said = page(replace(SHOWN, name=name))
    assert "This certifies that the learner whom the credential names has passed" in said
    assert "The name stands in the credential" in said


def test_a_letter_and_its_mark_are_set_as_the_one_letter_they_are() -> None:
    assert "Zoe\u0308" != "Zoë"
    assert "This certifies that Zoë has passed" in page(replace(SHOWN, name="Zoe\u0308"))


@settings(max_examples=15, deadline=None)
@given(NAMES, NAMES.filter(bool))
def test_no_name_of_learner_or_issuer_breaks_page_or_picture(name: str, issuer: str) -> None:
    shown = replace(SHOWN, name=name, issuer=issuer)
    said = page(shown)
    assert SHOWN.title in said
    assert ("learn.example.org Verify" in said) == (not can_be_set(issuer))  # the host in the issuer's place
    assert picture(shown).size == (800, 800)


def boxes(shown: Shown) -> list[tuple[float, float, float, float]]:
    """Where each line of the page stands: left, bottom, right, top in points, by Pillow's measure."""
    found = []

    def look(text: str, _: object, place: list[float], font: dict[str, str], size: float) -> None:
        if text.strip():
            file = SEMIBOLD if "Semibold" in font["/BaseFont"] else REGULAR
            width = ImageFont.truetype(file, 1000, layout_engine=ImageFont.Layout.BASIC).getlength(
                text.strip()
            )
            x, y = place[4:6]
            found.append((x, y - 0.2 * size, x + width * size / 1000, y + 0.7 * size))

    PdfReader(io.BytesIO(pdf(shown))).pages[0].extract_text(visitor_text=look)
    return found


@pytest.mark.parametrize(
    "shown", [SHOWN, WIDEST, replace(WIDEST, name="مح" * 50)], ids=["usual", "wide", "no letters"]
)
def test_nothing_runs_off_the_page_or_into_something_else(shown: Shown) -> None:
    lines = boxes(shown)
    assert len(lines) >= 11
    for i, (left, bottom, right, top) in enumerate(lines):
        assert left > 50
        assert right < 842 - 50
        assert bottom > 10
        for other in lines[:i]:
            apart = right <= other[0] or other[2] <= left or top <= other[1] or other[3] <= bottom
            assert apart, (lines[i], other)


def test_the_same_certificate_gives_the_same_bytes_elsewhere_too() -> None:
    shown = replace(SHOWN, name="Zoë 王小明")
    code = (
        "import sys; from dpsim.credential.shown import Shown; from dpsim.credential.paper import pdf; "
        "from dpsim.credential.picture import png; shown = eval(sys.stdin.read()); "
        "sys.stdout.buffer.write(pdf(shown) + png(shown))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], input=repr(shown).encode(), capture_output=True, check=True
    )
    assert made.stdout == pdf(shown) + png(shown)


def test_page_and_picture_take_less_than_a_second_of_work() -> None:
    def once() -> float:
        start = time.process_time()
        pdf(WIDEST)
        png(WIDEST)
        return time.process_time() - start

    assert min(once() for _ in range(3)) < 1


def test_the_picture_is_an_opaque_disc_in_a_ring_of_four_colours_and_bears_no_name() -> None:
    image = picture(SHOWN)
    assert (image.size, image.mode, image.info) == ((800, 800), "RGBA", {})
    assert [image.getpixel(at)[3] for at in ((0, 0), (799, 799), (400, 400), (400, 12))] == [0, 0, 255, 255]
    middle_of_band = [image.getpixel(at)[:3] for at in ((750, 400), (400, 750), (50, 400), (400, 50))]
    assert middle_of_band == [(0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167)]
    assert png(replace(SHOWN, name="Ada Lovelace")) == png(SHOWN)


@pytest.mark.parametrize("field", ["title", "score", "date", "issuer"])
def test_each_part_of_the_picture_shows_inside_the_ring(field: str) -> None:
    little, much = (picture(replace(SHOWN, **{field: text})).convert("RGB") for text in ("·", "W" * 40))
    left, top, right, bottom = ImageChops.difference(little, much).getbbox() or (0, 0, 0, 0)
    assert right - left > 100
    for x, y in ((left, top), (left, bottom), (right, top), (right, bottom)):
        assert (x - 400) ** 2 + (y - 400) ** 2 < 328**2  # the ring's inner edge


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "x" * 101), ("name", "two\nlines"), ("name", "half \ud83d"), ("name", None), ("title", ""),
        ("title", "测试"), ("score", "9" * 41), ("date", ""), ("issuer", ""), ("issuer", "x" * 201),
        ("id", "محمد"), ("link", "javascript:alert(1)"), ("link", "https://example.org/ä"),
        ("link", "https://example.org/a b"), ("link", "https://" + "w" * 293),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused_by_field(field: str, value: object) -> None:
    with pytest.raises(InputError) as refused:
        replace(SHOWN, **{field: value})
    assert refused.value.field == field
