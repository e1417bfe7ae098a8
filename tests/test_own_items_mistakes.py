"""Files with own items in which something is wrong: every mistake is named with its file and line, at once,
whatever it is, and takes nothing else with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_files import SMALL, WHOLE, read, refused
from strategies import law

from dpsim.exercises import variant_of
from dpsim.exercises.own import DRAWS, in_texts
from dpsim.own_items import MOST_BYTES, MOST_ITEMS


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


NEEDED = (
    "id",
    "title",
    "numbers",
    "question",
    "answer",
    "tolerance",
    "wrong",
    "feedback",
    "other",
    "solution",
)


@pytest.mark.parametrize("key", NEEDED)
def test_a_key_that_is_missing_is_named(key: str) -> None:
    lines = SMALL.replace("- id", "-\n  id").split("\n")
    (at,) = [i for i, line in enumerate(lines) if line.startswith(f"  {key}:")]
    end = next(i for i in range(at + 1, len(lines)) if not lines[i].startswith("   "))
    text = "\n".join([*lines[:at], *lines[end:]])
    assert refused(text) == f"mine.yaml, line 2: {key}: is needed, got None"


NAMES = "ranks, size"
ALL = "ranks, size, rounds, chunk"
MISTAKES = [
    ("own-ring", "ring", "id: must be own- and small letters and digits with hyphens, got 'ring'"),
    ("own-ring", "own-Ring", "id: must be own- and"),
    ("own-ring", "own-" + "a" * 60, "id: must be own- and"),
    ("What a rank sends", "[a]", "title: must be text; where it begins with a sign, write it on lines below"),
    ("What a rank sends", "", "title: must say something, got ''"),
    ("What a rank sends", "a" * 101, "title: must be one line of at most 100 characters"),
    ("topic: ring", "topic: rings", "topic: must be one of scatter, step, gradients,"),
    ("the-ring-by-hand/bytes", "bytes", "objective: must name a lesson and one of its objectives"),
    (
        "[4, 8, 16]",
        "4",
        "numbers.ranks: must be a list of numbers, or a table with from, to and step, got '4'",
    ),
    ("[4, 8, 16]", "[4]", "numbers.ranks: must have 2 to 100 entries, got 1"),
    ("[4, 8, 16]", "[4, x]", "numbers.ranks[1]: must hold no name, got 'x'"),
    ("[4, 8, 16]", "[4, 1/0]", "numbers.ranks[1]: must not divide by zero at column 2, got '1/0'"),
    ("[4, 8, 16]", "[4, [8]]", "numbers.ranks[1]: must be text"),
    (", step: 20", "", "numbers.size.step: is needed, got None"),
    ("step: 20", "step: 0", "numbers.size: must have 2 to 100000 steps up from `from` to `to`"),
    ("to: 400", "to: 4", "numbers.size: must have 2 to 100000 steps"),
    ("to: 400", "to: 1e9", "numbers.size: must have 2 to 100000 steps"),
    ("step: 20", "step: 20, by: 2", "numbers.size.by: unknown key; known are from, to, step, got '2'"),
    ("ranks: [", "max: [", "numbers.max: must not have a name that is taken: min, max, ceil,"),
    ("ranks: [", "answer: [", "numbers.answer: must not have a name that is taken"),
    ("ranks: [", "1st: [", "numbers.1st: must be named in letters, digits and _, a letter first, got '1st'"),
    ("ranks: [", "ränke: [", "numbers.ränke: must be named in letters, digits and _, a letter first"),
    ("rounds: 2", "ranks: 2", "let.ranks: must have a name of its own, got 'ranks'"),
    ("chunk: size", "chunk: sizes", f"let.chunk: must have one of {NAMES}, rounds at column 1, got 'sizes'"),
    ("(ranks - 1)", "(chunk - 1)", f"let.rounds: must have one of {NAMES} at column 6, got 'chunk'"),
    ("(ranks - 1)", "(ranks - 1", "let.rounds: must have ) or an operator at column 15, got 'the end'"),
    ("answer: rounds", "answer: answer", f"answer: must have one of {ALL} at column 1, got 'answer'"),
    ("answer: rounds", "answer: |\n    rounds +", "answer: must have a number, a name, a function or ("),
    (
        "{size} MB",
        "{sizes} MB",
        f"question: must have one of {ALL} in braces, or = and a formula, got '{{sizes}}'",
    ),
    ("{size} MB", "{answer} MB", "question: must have one of"),
    ("{size} MB", "{= size *} MB", "question: must have a number, a name, a function or ( at column 7"),
    ("{size} MB", "{size MB", "question: must have braces around a name or = and a formula alone"),
    ("{size} MB", "size} MB", "question: must have braces around a name or = and a formula alone"),
    ("{size} MB", "{size} <b>MB</b>", "question: must hold no HTML, got '<b>MB</b>"),
    ("{size} MB", "![x](https://x)", "question: must hold no image"),
    ("{size} MB", "[x](javascript:x)", "question: must link to https://…"),
    ("{size} MB", "{size} $ of MB", "question: must close every $ with another"),
    ("{size} MB", "`{size} MB", "question: must close every ` with another"),
    ("each rank send?", "each <script>rank send?", "question: must hold no HTML, got '<script>rank send?'"),
    ("unit: MB", "unit: 3", "unit: must be a unit that can stand behind a number, such as MB, tokens/s or %"),
    ("unit: MB", "unit: $MB$", "unit: must be a unit"),
    ("unit: MB", "unit: e3", "unit: must be a unit"),
    ("unit: MB", "unit: <b>", "unit: must be a unit"),
    ("unit: MB", "unit: [MB]", "unit: must be text"),
    ("1 %", "0", "tolerance: must be a number above 0, or a percentage of at most 20 %, got '0'"),
    ("1 %", "21%", "tolerance: must be a number above 0, or a percentage of at most 20 %, got '21%'"),
    ("1 %", "a bit", "tolerance: must hold no name, got 'a'"),
    (
        "formula: size",
        "formula: sise",
        f"wrong[0].formula: must have one of {ALL}, answer at column 1, got 'sise'",
    ),
    ("formula: size", "formulas: size", "wrong[0].formula: is needed, got None"),
    ("misconception: M8", "misconception: M99", "wrong[1].misconception: must be one of M1, M2,"),
    ("gradient once", "gradient <i>once", "wrong[0].feedback: must hold no HTML, got '<i>once"),
    ("{chunk} MB each", "{chunks} MB each", f"feedback: must have one of {ALL}, answer in braces, or = and"),
    ("rounds are there?", "rounds <br> are?", "other: must hold no HTML"),
    ("$\\frac", "\\frac", "solution: must close every $ with another"),
    (
        "{= 2 * ranks - 2}",
        "{= 2 * rank - 2}",
        f"solution: must have one of {ALL}, answer at column 5, got 'rank'",
    ),
    ("= {chunk}$", "= {chunks}$", f"solution: must have one of {ALL}, answer in braces, or = and a formula"),
    ("preset=ring-8", "preset=ring-7", "link: preset: must be one of "),
    ("preset=ring-8&", "", "link: preset: must be named, as in preset=first-screen&world_size=4"),
    (
        "world_size={ranks}",
        "world_size={= 10 * ranks}",
        "link: world_size: must be a whole number from 1 to 64",
    ),
    ("world_size={ranks}", "world_sise={ranks}", "link: world_sise: unknown key"),
    ("&beat", "&steps=1000&beat", "link: steps: must be a whole number from 1 to "),
    ("allreduce.b0.r0", "lunch", "link: beat: must be one of start, scatter,"),
    ("world_size={ranks}", "world_size={rank}", "link: must have one of"),
    ("  unit: MB", "  unit: MB\n  units: MB", "units: unknown key; known are id, title, topic, objective,"),
    (
        "  unit: MB",
        "  unit: MB\n  unit: GB",
        "unit: must not stand twice; it stands in line 15 as well, got 'unit'",
    ),
]


def mistaken(old: str, new: str) -> tuple[str, int]:
    """The whole file with one mistake, and the line on which it stands."""
    assert WHOLE.count(old) >= 1
    text = WHOLE.replace(old, new, 1)
    line = line_of(WHOLE, old) + (old + new).count("\n") * ("\n  unit" in new)
    return text, line


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_file_and_line_and_what_was_expected(
    old: str, new: str, message: str
) -> None:
    text, line = mistaken(old, new)
    said = refused(text)
    where = f"mine.yaml, line {line}: "
    if message.startswith(("wrong[0].formula: is", "numbers.size.step: is")):
        where = said[: len(where)]  # what is missing stands on no line; that of what misses it is named
    assert said.startswith(where + message)
    assert said.isprintable()


SYNTAX = [
    ("", 1, "must hold something"),
    ("# nothing\n", 1, "must hold something"),
    ("a: b\n", 1, "must be a list, got 'a table'"),
    ("[]\n", 1, "must have 1 to 100 entries, got 0"),
    ("- 3\n", 1, "must be a table of keys, got '3'"),
    ("- - a\n", 1, "must be a table of keys, got 'a list'"),
    ("-\n", 1, "must be a table of keys, got ''"),
    (SMALL.replace("What is", "What: is"), 5, "must be YAML (mapping values are not allowed here, at column"),
    (SMALL.replace("What is", "\t- \tWhat is"), 5, "must be YAML ("),
    (SMALL.replace("[3, 5", "[3; 5").replace("9]", "9"), 5, "must be YAML (while parsing a flow sequence"),
    (SMALL.replace("0.1", "%"), 7, "must be YAML (while scanning for the next token, found character '%'"),
    (SMALL + "---\n- x\n", 14, "must be YAML (expected a single document in the stream, but found another"),
    (SMALL + "- id: 'x\n", 15, "must be YAML (while scanning a quoted scalar, found unexpected end"),
    (SMALL.replace("0.1", "&t 0.1"), 7, "must have no anchors (&) and no aliases (*), got 't'"),
    (SMALL.replace("0.1", "*t"), 7, "must have no anchors (&) and no aliases (*), got 't'"),
    (SMALL.replace("0.1", "!!float 0.1"), 7, "must have no tags (!), got 'tag:yaml.org,2002:float'"),
    (SMALL.replace("0.1", "! 0.1"), 7, "must have no tags (!), got '!'"),
    (SMALL.replace("- id", "- <<: {id: a}\n  id"), 1, "'<<': unknown key; known are id, title,"),
    (
        SMALL.replace("  title", "  ? [a]\n  : b\n  title"),
        2,
        "must have names as keys, got 'a list or a table'",
    ),
    (SMALL.replace("Twice", "Twi\x00ce"), 2, "must be plain text, got '\\x00'"),
    (SMALL.replace("Twice", "Twi\x85ce"), 2, "must be plain text, got '\\x85'"),
    (SMALL.replace("Twice", "Twi\u2028ce"), 2, "must be plain text, got '\\u2028'"),
    (SMALL.replace("Twice", "Twi\ud800ce"), 2, "must be plain text, got '\\ud800'"),
    (SMALL.replace("Twice", "Twi\uffffce"), 2, "must be plain text, got '\\uffff'"),
]


@pytest.mark.parametrize(("text", "line", "message"), SYNTAX)
def test_what_is_no_list_of_items_is_named_with_its_line(text: str, line: int, message: str) -> None:
    said = refused(text)
    assert said.startswith(f"mine.yaml, line {line}: {message}")
    assert said.isprintable()


LAUGHS = "- &a [ha, ha]\n" + "".join(
    f"- &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "a billion laughs": (LAUGHS, "line 1: must have no anchors"),
    "brackets": ("[" * 199_000, "line 1: must nest at most 8 lists and tables"),
    "dashes": ("- " * 99_000, "line 1: must nest at most 8"),
    "braces": ("- " + "{a: " * 49_000, "line 1: must nest at most 8"),
    "questions": ("? " * 99_000, "line 1: must nest at most 8"),
    "many values": ("- [" + "a," * 99_000, "line 1: must hold at most 20000 values"),
    "many items": ("- a\n" * (MOST_ITEMS + 1), "line 1: must have 1 to 100 entries, got 101"),
    "a tag that runs": ('- !!python/object/apply:os.system ["true"]\n', "line 1: must have no tags"),
    "an anchor alone": ("&" * 199_000, "line 1: must be YAML ("),
    "a long key": ("- " + "a" * 199_000 + ": b\n", "line 1: must be"),
    "a formula of many signs": (SMALL.replace("2 * n", "-" * 190 + "n"), "line 6: answer: must have"),
    "a tower of powers": (SMALL.replace("n ^ 2", "9^9^9^9"), "line 9: wrong[0].formula: must"),
    "a long formula": (SMALL.replace("n ^ 2", "n + " * 99 + "n"), "line 9: wrong[0].formula: must be"),
    "Python": (SMALL.replace("2 * n", "n.__class__"), "line 6: answer: must have a number"),
    "an import": (SMALL.replace("2 * n", "__import__('os')"), "line 6: answer: must have one of"),
    "Python in a text": (SMALL.replace("{n}", "{n.__class__}"), "line 5: question: must have one of n"),
    "digits of another script": (SMALL.replace("2 * n", "٢ * n"), "line 6: answer: must have a number"),
    "a minus sign": (SMALL.replace("2 * n", "2 − n"), "line 6: answer: must have a number"),
    "a long text": (SMALL.replace("Right", "Right " * 700), "line 11: feedback: must be text of"),
    "many lines": (SMALL.replace("It is", "|\n    It is" + "\n\n    a" * 12), "line 13: solution: must"),
    "a large number": (SMALL.replace("[3,", "[1e999999999,"), "line 4: numbers.n[0]: must have a number"),
    "many mistakes": (
        SMALL.replace("  feedback: Right", "    - {formula: n, feedback: a}\n" * 5 + "  feedback: Right"),
        "line 8: wrong: must have 1 to 5 entries, got 6",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_at_once(name: str) -> None:
    text, message = HOSTILE[name]
    assert len(text) <= MOST_BYTES
    assert refused(text).startswith(f"mine.yaml, {message}")


def test_an_item_that_can_hardly_ever_be_asked_says_why() -> None:
    near = refused(SMALL.replace("n ^ 2", "2 * n + 0.2"))
    assert near.startswith(f"mine.yaml, line 1: must have a variant that can be asked at 10 of {DRAWS} draws")
    assert "lie within three tolerances of each other, got 0" in near
    assert "stands in the question" in refused(SMALL.replace("twice {n}?", "twice {n}, {= 2 * n}?"))
    coarse = SMALL.replace("2 * n", "n / 7").replace("0.1", "0.000001")
    assert "is written as" in refused(coarse)
    none = refused(SMALL.replace("2 * n", "2 / (n - n)"))
    assert none.startswith("mine.yaml, line 6: answer: must have a variant")
    assert "often: must not divide by zero at column 3, got 0" in none
    nothing = refused(SMALL.replace("{= n + n}", "{= sqrt(-n)}"))
    assert nothing.startswith("mine.yaml, line 13: solution: must have a variant")
    assert "often: must not take a root of a negative number at column 1" in nothing


def test_the_other_items_of_a_file_and_of_a_folder_work() -> None:
    found = in_texts({"a.yaml": WHOLE.replace("2 * (", "2 * (((") + SMALL, "b.yaml": "- [", "c.yaml": WHOLE})
    assert [item.id for item in found.items] == ["own-small", "own-ring"]
    assert [error.field for error in found.mistakes] == ["a.yaml, line 9: let.rounds", "b.yaml, line 1"]


def test_an_id_is_there_once() -> None:
    found = in_texts({"a.yaml": SMALL + WHOLE + SMALL, "b.yaml": "\n" + WHOLE})
    assert [item.source for item in found.items] == ["a.yaml, line 1", "a.yaml, line 14"]
    twice, again = map(str, found.mistakes)
    assert twice.startswith("a.yaml, line 47: id: must be an id of its own; a.yaml, line 1 has it too")
    assert again.startswith("b.yaml, line 2: id: must be an id of its own; a.yaml, line 14 has it too")


@law(150)
@given(st.data())
def test_whatever_a_file_holds_is_an_item_or_a_mistake_with_its_line(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([SMALL, WHOLE]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 12))
        bits = st.sampled_from(
            ["", "\n", " ", "  - ", ": ", "{", "}", "$", "|", "&a ", "*a", "!", "'", "<", "é", "9"]
        )
        text = text[:at] + data.draw(bits) + text[at + gone :]
    found = read(text)
    assert found.items or found.mistakes
    for mistake in found.mistakes:
        assert mistake.field.startswith("mine.yaml, line ")
        assert str(mistake).isprintable()
    for item in found.items:
        assert variant_of(item, "a").question
