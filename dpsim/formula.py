"""Formulas that somebody typed: a small language of numbers, read and worked out by hand.

    ceil(tokens / ranks) * ranks - tokens
    2 * (R - 1) / R * bytes

Numbers, names, + - * / ^, parentheses and a few functions. ^ binds tightest and to the right, and a minus
sign in front of a power belongs to all of it, as on paper: -2^2 is -4. A formula is kept as steps for a
stack, so that working it out needs no recursion. Numbers are exact fractions; a root or a logarithm that is
no fraction, and a fraction of very many digits, goes on as a float.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpsim.checks import InputError

Number = Fraction | float

LONGEST = 200  # characters
MOST_DEPTH = 30  # of parentheses, signs and powers inside each other
LARGEST = 10**100
LARGEST_EXPONENT = 1000
MOST_BITS = 1024  # of a denominator; longer ones go on as floats
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

_TOKEN = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[-+*/^(),])"
)
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 4}
_MINUS = 3  # binds tighter than * and looser than ^
_OPERAND = "a number, a name, a function or ("


@dataclass(frozen=True)
class Step:
    """What is done next with the stack: put a number or the value of a name on it, or take as many numbers as
    an operator or a function takes and put one."""

    does: str  # nothing where a number is put
    column: int
    number: Fraction = Fraction(0)
    takes: int = 0


@dataclass(frozen=True)
class Formula:
    """A formula that was read. `field` says where it stands, `text` is what was typed."""

    field: str
    text: str
    steps: tuple[Step, ...]

    def value(self, values: Mapping[str, Number]) -> Number:
        """What it comes to with these values. InputError where that is no number, or one too large."""
        stack: list[Number] = []
        for step in self.steps:
            if step.takes == 0:
                stack.append(values[step.does] if step.does else step.number)
            else:
                taken = [stack.pop() for _ in range(step.takes)][::-1]
                try:
                    stack.append(_kept(_WORKS[step.does](*taken)))
                except _UndefinedError as error:
                    raise InputError(self.field, f"{error} at column {step.column}", self.text) from None
        return stack[0]


class _UndefinedError(Exception):
    """A number that does not exist, or is too large."""


def formula(field: str, text: str, names: Collection[str] = ()) -> Formula:
    """The formula in `text`, in which these names may stand; InputError names the column and what belongs
    there."""
    if len(text) > LONGEST:
        raise InputError(field, f"must be a formula of at most {LONGEST} characters", text)
    reader = _Reader(field, text, names)
    reader.expression(0)
    reader.expect("", "an operator or the end")
    return Formula(field, text, tuple(reader.steps))


class _Reader:
    """Reads a formula by precedence climbing, from one token to the next."""

    def __init__(self, field: str, text: str, names: Collection[str]) -> None:
        self.field, self.text, self.names = field, text, names
        self.steps: list[Step] = []
        self.depth = 0
        self.end = 0
        self.next()

    def next(self) -> None:
        """The next token: `kind` number, name, sign or end, what is `written`, its `column` from 1."""
        start = len(self.text) - len(self.text[self.end :].lstrip(" \t\n"))
        found = _TOKEN.match(self.text, start)
        self.column = start + 1
        if found is None and start < len(self.text):
            raise self.wrong("a number, a name or one of + - * / ^ ( ) ,", self.text[start])
        self.kind = str(found.lastgroup) if found else "end"
        self.written = found[0] if found else ""
        self.end = found.end() if found else start

    def wrong(self, expected: str, got: str | None = None) -> InputError:
        """The error that something else is expected here."""
        rule = f"must have {expected} at column {self.column}"
        return InputError(self.field, rule, (self.written or "the end") if got is None else got)

    def expect(self, written: str, expected: str) -> None:
        """This token stands here, or the end for none; it is passed."""
        if self.written != written:
            raise self.wrong(expected)
        if written:
            self.next()

    def expression(self, least: int) -> None:
        """An operand, and operators behind it that bind at least so tightly with theirs."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self.wrong(f"at most {MOST_DEPTH} parentheses, signs and powers inside each other")
        self.operand()
        while (sign := self.written) in _BINDS and _BINDS[sign] >= least:
            column = self.column
            self.next()
            self.expression(_BINDS[sign] + (sign != "^"))  # ^ alone takes its like on the right
            self.steps.append(Step(sign, column, takes=2))
        self.depth -= 1

    def operand(self) -> None:
        """A number, a name, a function of some operands, something in parentheses, or a minus sign."""
        kind, written, column = self.kind, self.written, self.column
        if kind == "number":
            self.steps.append(Step("", column, self.number()))
            self.next()
        elif kind == "name":
            self.next()
            if self.written == "(":
                self.call(written, column)
            elif written in self.names:
                self.steps.append(Step(written, column))
            else:
                raise self.unknown("name", self.names, written, column)
        elif written == "(":
            self.next()
            self.expression(0)
            self.expect(")", ") or an operator")
        elif written == "-":
            self.next()
            self.expression(_MINUS)
            self.steps.append(Step("negative", column, takes=1))
        else:
            raise self.wrong(_OPERAND)

    def call(self, name: str, column: int) -> None:
        """A function, whose name has been passed."""
        if name not in FUNCTIONS:
            raise self.unknown("function", FUNCTIONS, name, column)
        takes = 0
        while takes == 0 or self.written == ",":
            self.next()
            self.expression(0)
            takes += 1
        self.expect(")", "), a comma or an operator")
        if name in _OF_MANY and takes < 2:
            raise InputError(self.field, f"must give {name} two numbers or more at column {column}", takes)
        if name not in _OF_MANY and takes != 1:
            raise InputError(self.field, f"must give {name} one number at column {column}", takes)
        self.steps.append(Step(name, column, takes=takes))

    def number(self) -> Fraction:
        """The number that stands here; a long exponent is refused before it is worked out."""
        _, _, exponent = self.written.lower().partition("e")
        if len(exponent.lstrip("+-")) > 3 or abs(value := Fraction(self.written)) > LARGEST:
            raise self.wrong("a number of at most 1e100")
        return value

    def unknown(self, what: str, known: Collection[str], name: str, column: int) -> InputError:
        """The error that nothing has this name."""
        rule = f"must have one of {', '.join(known)} at column {column}" if known else f"must hold no {what}"
        return InputError(self.field, rule, name)


def _kept(value: Number) -> Number:
    """`value`, exact as long as it can be kept so."""
    if not -LARGEST <= value <= LARGEST:  # nor is NaN
        raise _UndefinedError("must stay below 1e100")
    long = isinstance(value, Fraction) and value.denominator.bit_length() > MOST_BITS
    return float(value) if long else value


def _divided(a: Number, b: Number) -> Number:
    if b == 0:
        raise _UndefinedError("must not divide by zero")
    return a / b


def _power(base: Number, exponent: Number) -> Number:
    if not -LARGEST_EXPONENT <= exponent <= LARGEST_EXPONENT:
        raise _UndefinedError(f"must have an exponent of at most {LARGEST_EXPONENT}")
    if base == 0 and exponent < 0:
        raise _UndefinedError("must not divide by zero")
    whole = exponent == math.floor(exponent)
    if base < 0 and not whole:
        raise _UndefinedError("must not take a root of a negative number")
    if isinstance(base, Fraction) and whole:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(int(exponent)) <= 2 * MOST_BITS:
            return Fraction(base ** int(exponent))
    try:
        return float(float(base) ** float(exponent))
    except OverflowError:
        raise _UndefinedError("must stay below 1e100") from None


def _root(value: Number) -> Number:
    if value < 0:
        raise _UndefinedError("must not take a root of a negative number")
    if isinstance(value, Fraction):
        above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if (above**2, below**2) == (value.numerator, value.denominator):
            return Fraction(above, below)
    return math.sqrt(value)


def _logarithm(value: Number) -> Number:
    if value <= 0:
        raise _UndefinedError("must take the logarithm of a number above zero")
    if isinstance(value, Fraction) and 1 in (value.numerator, value.denominator):
        size = max(value.numerator, value.denominator)
        if size & (size - 1) == 0:  # a power of two
            power = size.bit_length() - 1
            return Fraction(power if value >= 1 else -power)
    return math.log2(value)


def _rounded(value: Number) -> Fraction:
    """To the nearest whole number, halves away from zero."""
    size = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return Fraction(size if value > 0 else -size)


_OF_MANY: dict[str, Callable[..., Number]] = {"min": min, "max": max}
FUNCTIONS: dict[str, Callable[..., Number]] = {
    **_OF_MANY,
    "ceil": lambda value: Fraction(math.ceil(value)),
    "floor": lambda value: Fraction(math.floor(value)),
    "round": _rounded,
    "abs": abs,
    "sqrt": _root,
    "log2": _logarithm,
}
_WORKS: dict[str, Callable[..., Number]] = {
    **FUNCTIONS,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "^": _power,
    "negative": operator.neg,
}
