r"""Texts in exports: formulas for MathJax, GIFT's own characters, XML's, whatever a text holds.

GIFT is undone here as Moodle undoes it: its importer reads `\\` first, then the other escapes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from platforms import gift, moodle, seen
from strategies import law

from dpsim.exercises import items
from dpsim.exports.frozen import Frozen
from dpsim.exports.gift import escaped
from dpsim.exports.gift import gift as gift_text
from dpsim.exports.mathjax import with_mathjax
from dpsim.exports.moodle import moodle_xml
from dpsim.exports.put import decimal, put
from dpsim.questions import Asked, Option, Slip

NASTY = [*"~=#{}:\\[]%*_`<>&\"'->/n1 a−", "->", "::", "//", "####", "[html]", "%50%", "\\n", "]]>", "&lt;"]
nasty = st.lists(st.sampled_from(NASTY), min_size=1, max_size=8).map("".join)
words = nasty.map(lambda text: f"a{text}b")  # no space at its ends, and more than Markdown's own signs


def undone(text: str) -> str:
    """GIFT's escapes taken away as Moodle does, which holds the places of all before it looks at the text."""
    for sign, place in [("\\\\", "\0"), *((f"\\{c}", f"\1{ord(c)};") for c in ":#={}~n")]:
        text = text.replace(sign, place)
    assert not re.search(r"[#={}~\n]", text)
    text = re.sub("\1([0-9]+);", lambda found: chr(int(found[1])).replace("n", "\n"), text)
    return text.replace("\0", "\\")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("$R = 8$ ranks", r"<p>\(R = 8\) ranks</p>"),
        (r"$\frac{1}{2} \, b_0 \cdot a_1$", r"<p>\(\frac{1}{2} \, b_0 \cdot a_1\)</p>"),
        ("$a*b*c$ and $[a](b)$", r"<p>\(a*b*c\) and \([a](b)\)</p>"),
        ("$_1 x_$ and $__2 y__$", r"<p>\(_1 x_\) and \(__2 y__\)</p>"),
        ("$a<b$ or $c > d$", r"<p>\(a\lt b\) or \(c \gt  d\)</p>"),
        ("$$x\n= 1$$", r"<p>\[x = 1\]</p>"),
        ("`$HOME` is no formula", "<p><code>$HOME</code> is no formula</p>"),
        ("costs $5", "<p>costs $5</p>"),
        (r"$\{0, \dots\}$", r"<p>\(\{0, \dots\}\)</p>"),
    ],
)
def test_a_formula_is_found_by_mathjax_in_the_html(text: str, html: str) -> None:
    assert seen(with_mathjax(text)) == html


@law(500)
@given(nasty)
@example("\\n")
@example("\\\\n:\n")
@example("{=}")
def test_what_is_escaped_for_gift_is_read_as_it_was(text: str) -> None:
    assert undone(escaped(text)) == text


def questions(text: str) -> list[Asked]:
    """A question of each kind whose every text is `text`, told apart by a letter behind it."""
    options = tuple(Option(f"{text}{c}", f"{text}{c}f", c in "xy") for c in "xyz")
    one = (replace(options[0]), *(replace(o, right=False) for o in options[1:]))
    cells = (Option("0.1", f"{text}x", right=True), Option("1.1", f"{text}y"))
    common = {"question": f"{text}q", "solution": f"{text}s"}
    slips = (Slip(-2.5, f"{text}w"),)
    return [
        Asked(
            "number", **common, answer=-0.5, tolerance=0.1, wrong=slips, feedback=f"{text}r", other=f"{text}o"
        ),
        Asked("choose-one", **common, options=one),
        Asked("choose-several", **common, options=options, feedback=f"{text}r"),
        Asked("order", **common, options=options, feedback=f"{text}r"),
        Asked("cell", **common, options=cells, answer=4, other=f"{text}o"),
    ]


def written(text: str, title: str) -> tuple[list[tuple[Frozen, Asked]], str, str]:
    item = replace(items()["x-R1"], title=title)
    pairs = [(Frozen(item, n, asked), asked) for n, asked in enumerate(questions(text))]
    puts = [(frozen, put(frozen, "")) for frozen, _ in pairs]
    topics = {item.topic: title}
    return pairs, moodle_xml(puts, topics, ()), gift_text(puts, topics, ())


@law(200)
@given(words)
@example("a\x00\x0b\ud800\ufffe b")
@example("a]]><b>&amp;")
def test_moodle_xml_holds_any_text(text: str) -> None:
    pairs, xml, _ = written(text, f"{text}t")
    kept = re.sub("[\x00\x0b\ud800\ufffe]", "", text)
    for question, (frozen, asked) in zip(moodle(xml), pairs, strict=True):
        assert question.text == with_mathjax(f"{kept}q")
        assert question.name == " ".join(f"x-R1 seed {frozen.seed} ({kept}t)".split())
        assert question.category.removeprefix("$course$/top/dpsim/") == " ".join(f"{kept}t".split()).replace(
            "/", "//"
        )
        if asked.kind == "cell":  # one neighbour of the right cell is among the known ones already
            assert [a.text for a in question.answers] == [f"rank {rank}, chunk 1" for rank in (0, 1, 3)]
        if asked.kind in ("choose-one", "choose-several"):
            assert [a.text for a in question.answers] == [with_mathjax(f"{kept}{c}") for c in "xyz"]
            assert [a.feedback for a in question.answers] == [with_mathjax(f"{kept}{c}f") for c in "xyz"]


@law(200)
@given(words)
@example("[html] a")
@example("%50% a")
@example("// a")
@example("a\n// b")
@example("a\n\nb")
def test_a_gift_file_keeps_its_form_whatever_its_texts_hold(text: str) -> None:
    """As Moodle parts a question: by its first unescaped signs, line by line."""
    pairs, _, whole = written(text, f"{text}t")
    blocks = [block for block in re.split(r"\n\s*\n", whole) if "\n::" in block]
    assert len(blocks) == len(pairs)
    for block, (frozen, asked) in zip(blocks, pairs, strict=True):
        remark, head, *answers, general, end = block.rstrip("\n").split("\n")
        assert remark == f"// [id:dpsim-x-R1-{frozen.seed}] [tag:dpsim] [tag:x-R1]"
        parts = re.fullmatch(r"::((?:[^:\\]|\\.)*)::\[markdown\]((?:[^{\\]|\\.)*) \{#?", head)
        assert parts
        name, question = parts.groups()
        assert undone(name) == " ".join(f"x-R1 seed {frozen.seed} ({text}t)".split())
        assert undone(question) == with_mathjax(f"{text}q")
        assert end == "}"
        body = re.fullmatch(r"\t####(?:\[markdown\])?((?:[^#{}~=\\]|\\.)*)", general)
        assert body
        assert undone(body[1]).endswith(with_mathjax(f"{text}s")) or asked.kind == "order"
        for answer in answers:
            answer_form(answer, text)
            assert answer.count("->") == 1 or asked.kind != "order"  # Moodle parts a pair at the first


def answer_form(line: str, text: str) -> None:
    """That a line is one answer, whose weight and format are the writer's and whose texts are the bank's."""
    body = r"(?:\[markdown\])?((?:[^#{}~=\\]|\\.)*)"
    weight = r"(?:=%[0-9]+%-[0-9.]+:[0-9.]+|~%-?[0-9.]+%|[=~])"
    found = re.fullmatch(rf"\t{weight}(?:{body} -> [0-9][a-z]+|{body}#{body}|#{body})", line)
    assert found, line
    for said in filter(None, found.groups()):
        bare = undone(said)
        assert not bare.startswith(("[", "%")) or f"[markdown]{said}" in line
        assert with_mathjax(text).replace("->", "→") in bare.replace("->", "→") or bare.startswith("rank ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (31, "31"),
        (-0.0, "0"),
        (-0.75, "-0.75"),
        (1e-7, "0.0000001"),
        (2**70, "1180591620717410000000"),
    ],
)
def test_numbers_are_decimal_and_have_no_noise(value: float, text: str) -> None:
    assert decimal(value) == text


def test_pygiftparser_agrees_on_every_kind() -> None:
    pairs, xml, whole = written("1 − 2 is not 3, [x] %5 of_it", "Title: with = and #")
    for one, other in zip(moodle(xml), gift(whole), strict=True):
        assert (one.kind, one.text, one.name) == (other.kind, other.text, other.name)
        assert [(a.percent, a.feedback, a.tolerance) for a in one.answers] == [
            (a.percent, a.feedback, a.tolerance) for a in other.answers
        ]
    assert len(pairs) == 5


def test_the_file_says_its_encoding() -> None:
    xml = written("−", "−")[1]
    assert xml.startswith("<?xml version='1.0' encoding='utf-8'?>\n<quiz>")
    assert ElementTree.fromstring(xml.encode()).tag == "quiz"
