"""One number as people type it: decimal commas, minus signs, thousands, fractions, powers of ten, units."""

from __future__ import annotations

import re
import unicodedata

from dpsim.checks import InputError, shown

LONGEST_ANSWER = 40

_PREFIX = {"": 1.0, "k": 1e3, "m": 1e-3, "µ": 1e-6, "u": 1e-6, "n": 1e-9, "M": 1e6, "G": 1e9, "T": 1e12}
# What may stand behind a number, by the unit that is asked for: its factor to the base unit.
_TIMES = {f"{p}s": _PREFIX[p] for p in ("", "m", "µ", "u", "n")} | {"min": 60.0, "h": 3600.0}
_SIZES = {f"{p}B": _PREFIX[p] for p in ("", "k", "M", "G", "T")} | {
    "KB": 1e3, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
}  # fmt: skip
_RATES = {f"{unit}/s": factor for unit, factor in _SIZES.items()}
_SPACES = re.compile(r"\s")  # plain, thin, narrow and hair spaces
_THOUSANDS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:[\s'’_][0-9]{3})+(?![0-9])")
_MIXED = re.compile(r"^\s*([+-]?)\s*([0-9]+)\s+([0-9]+)\s*/\s*([0-9]+)(.*)$")  # 1 3/4
_APART = re.compile(r"[0-9]\s+[0-9]")
_DIGITS = r"(?:[0-9]+(?:[.,][0-9]*)*|[.,][0-9]+)"
_WRITTEN = re.compile(rf"[+-]?{_DIGITS}(?:e[+-]?[0-9]{{1,3}})?", re.IGNORECASE)
_POWER = re.compile(r"(?:[x×·*]10(?:\^|\*\*)?)([+-]?[0-9]{1,3})$")
_VULGAR = re.compile(r"^([+-]?)([0-9]*)([¼½¾⅐-⅞])$")
_SAME = str.maketrans({"−": "-", "–": "-", "⁄": "/", "μ": "µ"})
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
RULE = "must be a number, such as 0.5, −2, 7/4 or 3e6"


def read_number(typed: str, unit: str = "") -> float:
    """A number as people type it, in `unit`: 0.5, 0,5, −2, 1 000, 7/4, 3e6, 2·10⁶, 1½, 250 ms where it is s.

    InputError where it is none, where a comma may be of thousands as well as of decimals, and where a unit
    is another kind of thing than what is asked for.
    """
    if len(typed) > LONGEST_ANSWER:
        raise InputError("answer", RULE, typed)
    plain = typed.translate(_RAISED).translate(_SAME)
    plain = _THOUSANDS.sub(lambda found: re.sub(r"[^0-9]", "", found[0]), plain)
    if mixed := _MIXED.match(plain):
        sign, whole, part, parts_of, behind = mixed.groups()
        plain = f"{sign}{int(whole) * int(parts_of) + int(part)}/{parts_of}{behind}"
    if _APART.search(plain):
        raise InputError("answer", RULE, typed)
    plain = _SPACES.sub("", plain)
    plain, factor = _without_unit(plain, unit, typed)
    plain = _POWER.sub(r"e\1", plain)
    if vulgar := _VULGAR.match(plain):
        sign, whole, part = vulgar.groups()
        value = float(int(whole or 0) + unicodedata.numeric(part))
        return (-value if sign == "-" else value) * factor
    parts = plain.split("/")
    if len(parts) > 2 or not all(map(_WRITTEN.fullmatch, parts)):
        raise InputError("answer", RULE, typed)
    numbers = [_plain_number(part, typed) for part in parts]
    if len(numbers) == 2 and numbers[1] == 0:
        raise InputError("answer", "must not divide by zero", typed)
    value = (numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]) * factor
    if abs(value) == float("inf"):
        raise InputError("answer", RULE, shown(typed))
    return value


def units_for(unit: str) -> dict[str, float]:
    """What may stand behind a number that is asked for in `unit`, itself first, and the factor to `unit`."""
    if not unit:
        return {}
    for known in (_TIMES, _SIZES, _RATES):
        if unit in known:
            return {unit: 1.0} | {name: factor / known[unit] for name, factor in known.items()}
    return {unit: 1.0, unit[:-1]: 1.0} if unit.endswith("s") else {unit: 1.0}  # a singular


def _without_unit(plain: str, unit: str, typed: str) -> tuple[str, float]:
    """The number without the unit behind it, and the factor from that unit to `unit`."""
    found = re.search(r"(?<=[0-9.,¼½¾⅐-⅞])([^\W\d_¼½¾⅐-⅞][\w/]*|%)$", plain.replace("°", ""))
    if found is None or re.search(r"[0-9.,]e[+-]?[0-9]+$", plain, re.IGNORECASE):
        return plain, 1.0
    behind = found[1]
    rest = plain[: -len(behind)]
    units = {_SPACES.sub("", name): factor for name, factor in units_for(unit).items()}
    if behind in units or behind in ("x", "×"):  # times
        return rest, units.get(behind, 1.0)
    rule = f"must be in {unit}" if unit else "must be a number without a unit"
    raise InputError("answer", rule, typed)


def _plain_number(text: str, typed: str) -> float:
    """A number whose commas and points are told apart: of thousands, or of decimals."""
    commas, points = text.count(","), text.count(".")
    if commas and points:
        last = "," if text.rindex(",") > text.rindex(".") else "."
        other = "." if last == "," else ","
        if text.count(last) > 1 or not _grouped(text.split(last)[0], other):
            raise InputError("answer", RULE, typed)
        text = text.replace(other, "").replace(",", ".")
    elif commas > 1 or points > 1:
        mark = "," if commas else "."
        if not _grouped(text, mark):
            raise InputError("answer", RULE, typed)
        text = text.replace(mark, "")
    elif re.fullmatch(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}", text):
        whole, _, rest = text.partition(",")
        raise InputError(
            "answer", f"could be {whole}.{rest} or {whole}{rest}: write it without a comma", typed
        )
    return float(text.replace(",", "."))


def _grouped(text: str, mark: str) -> bool:
    """Whether `mark` parts a number into thousands."""
    return re.fullmatch(rf"[+-]?[0-9]{{1,3}}(?:{re.escape(mark)}[0-9]{{3}})+", text) is not None
