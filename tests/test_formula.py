"""Formulas that somebody typed: worked out as fractions are, with the precedence of Python's own operators,
and whatever else is typed is refused with its column."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import law

from dpsim.checks import InputError
from dpsim.formula import FUNCTIONS, LONGEST, MOST_DEPTH, formula

VALUES = {"a": Fraction(3), "b_2": Fraction(-7, 4), "R": Fraction(0)}


def value(text: str, **values: Fraction) -> Any:
    return formula("f", text, list(values)).value(values)


def value_or_error(text: str, **values: Fraction) -> Any:
    try:
        return value(text, **values)
    except InputError as error:
        return error


def refused(text: str, **values: Fraction) -> str:
    with pytest.raises(InputError) as caught:
        value(text, **values)
    return str(caught.value)


# A tree is a number, a name, or an operator or function with its operands.
literals = st.sampled_from(["0", "1", "2", "10", "0.5", "1.25", "3e2", "2E-3", "12e+1"])
names = st.sampled_from(sorted(VALUES))


def branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.sampled_from("+-*/"), inner, inner),
        st.tuples(st.just("^"), inner, st.sampled_from(["0", "1", "2", "3"])),
        st.tuples(st.sampled_from(["neg", "ceil", "floor", "abs"]), inner),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner, inner),
    )


trees = st.recursive(literals | names, branches, max_leaves=6)


def printed(tree: Any) -> str:
    """The tree with every operator in parentheses of its own."""
    if isinstance(tree, str):
        return tree
    does, *parts = tree
    written = [printed(part) for part in parts]
    if does in "+-*/^":
        return f"({written[0]} {does} {written[1]})"
    return f"(-{written[0]})" if does == "neg" else f"{does}({', '.join(written)})"


def by_hand(tree: Any) -> Fraction:
    if isinstance(tree, str):
        return VALUES[tree] if tree in VALUES else Fraction(Decimal(tree))
    does, *parts = tree
    x, *more = map(by_hand, parts)
    ways = {
        "+": lambda: x + more[0],
        "-": lambda: x - more[0],
        "*": lambda: x * more[0],
        "/": lambda: Fraction(x.numerator * more[0].denominator, x.denominator * more[0].numerator),
        "^": lambda: math.prod([x] * int(more[0]), start=Fraction(1)),
        "neg": lambda: 0 - x,
        "ceil": lambda: Fraction(-(-x.numerator // x.denominator)),
        "floor": lambda: Fraction(x.numerator // x.denominator),
        "abs": lambda: x if x > 0 else 0 - x,
        "min": lambda: sorted([x, *more])[0],
        "max": lambda: sorted([x, *more])[-1],
    }
    return ways[does]()


@law(400)
@given(trees)
def test_a_formula_is_worked_out_as_its_tree_is_by_hand(tree: Any) -> None:
    text = printed(tree)
    assume(len(text) <= LONGEST)
    try:
        expected = by_hand(tree)
    except ZeroDivisionError:
        assert "must not divide by zero at column" in refused(text, **VALUES)
        return
    assume(abs(expected) < 10**50)
    found = value(text, **VALUES)
    assert isinstance(found, Fraction)
    assert found == expected


@law(400)
@given(st.lists(st.sampled_from(["+", "-", "*", "/", "^"]), min_size=1, max_size=5), st.data())
@example(["^", "^"], None)
def test_operators_bind_as_those_of_python(operators: list[str], data: Any) -> None:
    operands = ["2", "-3", "2"]
    if data is not None:
        operand = st.sampled_from(["1", "2", "3", "-2", "- -1", "(2-3)", "-(1+1)"])
        operands = [data.draw(operand) for _ in [*operators, ""]]
    text = operands[0] + "".join(f"{o}{x}" for o, x in zip(operators, operands[1:], strict=False))
    found = value_or_error(text)
    if isinstance(found, InputError):  # what is too large for us may take Python years
        assert re.search("an exponent of at most|divide by zero|below 1e100|negative number", str(found))
        return
    assume(isinstance(found, Fraction))
    fractions = re.sub(r"([0-9]+)", r"F(\1)", text).replace("^", "**")
    assert found == eval(fractions, {"F": Fraction})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2^2", -4),
        ("2^-1", Fraction(1, 2)),
        ("2^3^2", 512),
        ("8/4/2", 1),
        ("8-4-2", 2),
        ("0.1+0.2", Fraction(3, 10)),
        ("1/3*3", 1),
        ("sqrt(9/4)", Fraction(3, 2)),
        ("log2(1/8)", -3),
        ("log2(1)", 0),
        ("ceil(log2(2^60 + 1))", 60),  # a float by then
        ("min(3, 1/2, 2)", Fraction(1, 2)),
        ("  max( 1 ,2 )\n", 2),
        ("0^0", 1),
        ("(-8)^3", -512),
    ],
)
def test_what_is_a_fraction_stays_exact(text: str, expected: Fraction) -> None:
    found = value(text)
    assert isinstance(found, Fraction)
    assert found == expected


@law(100)
@given(st.fractions(min_value=0, max_value=10**6, max_denominator=1000))
def test_roots_and_logarithms_are_those_of_decimals(x: Fraction) -> None:
    exact = Decimal(x.numerator) / Decimal(x.denominator)
    assert float(value("sqrt(x)", x=x)) == pytest.approx(float(exact.sqrt()), rel=1e-14)
    assert float(value("x^0.5", x=x)) == pytest.approx(float(exact.sqrt()), rel=1e-14)
    assert value("sqrt(x^2)", x=x) == x
    if x:
        assert float(value("log2(x)", x=x)) == pytest.approx(
            float(exact.ln() / Decimal(2).ln()), rel=1e-13, abs=1e-14
        )


@law(100)
@given(st.integers(-(10**6), 10**6))
def test_rounding_takes_halves_away_from_zero(quarters: int) -> None:
    expected = (Decimal(quarters) / 4).quantize(Decimal(1), ROUND_HALF_UP)
    assert value("round(n/4)", n=Fraction(quarters)) == int(expected)


def test_what_grows_too_long_for_a_fraction_goes_on_as_a_float() -> None:
    found = value("1.001^900 + 1/7")
    assert isinstance(found, float)
    assert found == pytest.approx(1.001**900 + 1 / 7, rel=1e-12)


OPERAND = "must have a number, a name, a function or ( at column"
MORE = "must have an operator or the end at column"
MISTAKES = [
    ("", f"{OPERAND} 1, got 'the end'"),
    ("2 *", f"{OPERAND} 4, got 'the end'"),
    ("* 2", f"{OPERAND} 1, got '*'"),
    ("2 * * 2", f"{OPERAND} 5, got '*'"),
    ("+2", f"{OPERAND} 1, got '+'"),
    ("()", f"{OPERAND} 2, got ')'"),
    ("min(1,)", f"{OPERAND} 7, got ')'"),
    ("2 2", f"{MORE} 3, got '2'"),
    ("2a", f"{MORE} 2, got 'a'"),
    ("2e", f"{MORE} 2, got 'e'"),
    ("1,5", f"{MORE} 2, got ','"),
    ("a)", f"{MORE} 2, got ')'"),
    ("(a", "must have ) or an operator at column 3, got 'the end'"),
    ("min(1, 2", "must have ), a comma or an operator at column 9, got 'the end'"),
    ("2 ** 3", f"{OPERAND} 4, got '*'"),
    ("n + 1", "must have one of a at column 1, got 'n'"),
    ("2 + sum(1)", "must have one of min, max, ceil, floor, round, abs, sqrt, log2 at column 5, got 'sum'"),
    ("min(1)", "must give min two numbers or more at column 1, got 1"),
    ("1 + sqrt(1, 2)", "must give sqrt one number at column 5, got 2"),
    ("sqrt", "must have one of a at column 1, got 'sqrt'"),
    ("1 / (a - a)", "must not divide by zero at column 3, got '1 / (a - a)'"),
    ("0^-1", "must not divide by zero at column 2, got '0^-1'"),
    ("sqrt(-1)", "must not take a root of a negative number at column 1, got 'sqrt(-1)'"),
    ("(-2)^0.5", "must not take a root of a negative number at column 5, got '(-2)^0.5'"),
    ("log2(0)", "must take the logarithm of a number above zero at column 1, got 'log2(0)'"),
    ("10^60 * 10^60", "must stay below 1e100 at column 7, got '10^60 * 10^60'"),
    ("1e101", "must have a number of at most 1e100 at column 1, got '1e101'"),
    ("a; a", "must have a number, a name or one of + - * / ^ ( ) , at column 2, got ';'"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_named_with_its_column_and_what_belongs_there(text: str, said: str) -> None:
    assert refused(text, a=Fraction(3)) == f"f: {said}"


def test_without_names_none_may_stand() -> None:
    assert refused("a") == "f: must hold no name, got 'a'"


SIGN = "must have a number, a name or one of + - * / ^ ( ) ,"
HOSTILE = [
    ("9^9^9^9", "must have an exponent of at most 1000"),
    ("9^" * 99 + "9", "parentheses, signs and powers inside each other"),
    ("9^999", "must stay below 1e100"),
    ("1.5^(10^50)", "must have an exponent of at most 1000"),
    ("(" * 100 + "1" + ")" * 99, "parentheses, signs and powers inside each other"),
    ("-" * 199 + "1", "parentheses, signs and powers inside each other"),
    ("abs(" * 39 + "1" + ")" * 39, "parentheses, signs and powers inside each other"),
    ("1" + "+1" * 100, "must be a formula of at most 200 characters"),
    ("9" * 150, "must have a number of at most 1e100"),
    ("1e99999999", "must have a number of at most 1e100"),
    ("1e-99999999", "must have a number of at most 1e100"),
    ("__class__", "must have one of a"),
    ("a.__class__", f"{SIGN} at column 2"),
    ("__import__('os')", "must have one of min"),
    ("a[0]", f"{SIGN} at column 2"),
    ("lambda", "must have one of a"),
    ("٣ + 1", f"{SIGN} at column 1, got '٣'"),
    ("1 + ²", f"{SIGN} at column 5, got '²'"),
    ("1 − 1", f"{SIGN} at column 3, got '−'"),
    ("ａ", f"{SIGN} at column 1"),
    ("1\x00", f"{SIGN} at column 2"),
    ("1\u00a0+ 1", f"{SIGN} at column 2"),
    ("\ud800", f"{SIGN} at column 1"),
]


@pytest.mark.parametrize(("text", "said"), HOSTILE)
def test_hostile_formulas_are_refused_at_once(text: str, said: str) -> None:
    assert said in refused(text, a=Fraction(3))


def test_the_bounds_are_reached_before_they_are_passed() -> None:
    depth = MOST_DEPTH - 1
    assert value("(" * depth + "1" + ")" * depth) == 1
    assert value("1" + "+1" * ((LONGEST - 1) // 2)) == LONGEST // 2
    assert value("10^100") == 10**100


@law(300)
@given(st.text(st.sampled_from("0123456789abs()+-*/^., \n_eminsqrtlog٣−"), max_size=40))
def test_whatever_is_typed_is_a_number_or_an_input_error(text: str) -> None:
    found = value_or_error(text, a=Fraction(3))
    if isinstance(found, InputError):
        assert found.field == "f"
        assert str(found).isprintable()
    else:
        assert math.isfinite(found)


def test_names_may_be_called_like_functions_and_operations() -> None:
    values = {name: Fraction(i + 2) for i, name in enumerate([*FUNCTIONS, "negative", "number"])}
    for name, known in values.items():
        assert value(f"{name} * 10", **values) == 10 * known
