"""Numbers, times and lists as people read them. Beats, the command line and the screens share these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
MINUS = "\u2212"


def number(value: float) -> str:
    """`value` with at most four significant digits and a real minus sign: 0.625, -2 as −2, 1.2e-9."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        digits = f"{size:.3e}"
        mantissa, _, exponent = digits.partition("e")
        power = int(exponent)
        mantissa = mantissa.rstrip("0").rstrip(".")
        written = f"{mantissa}e{MINUS if power < 0 else ''}{abs(power)}"
    else:
        written = f"{size:.4g}" if size < 1000 else f"{size:.0f}"
    return (MINUS if value < 0 else "") + written


def signed(value: float) -> str:
    """`value` as a term that follows another: "+ 3" or "− 3"."""
    return f"{MINUS} {number(-value)}" if value < 0 else f"+ {number(value)}"


def short(value: float) -> str:
    """`value` for a small cell: three digits, at most three decimals."""
    size = abs(value)
    if size < 0.001 or size >= 1e5:
        mantissa, _, exponent = f"{size:.0e}".partition("e")
        power = int(exponent)
        written = "0" if value == 0 else f"{mantissa}e{MINUS if power < 0 else ''}{abs(power)}"
    elif size >= 100:
        written = f"{size:.0f}"
    else:
        written = f"{size:.{1 if size >= 10 else 2 if size >= 1 else 3}f}".rstrip("0").rstrip(".")
    return (MINUS if value < 0 else "") + written


def tiny(value: float) -> str:
    """`value` for a very small cell: two decimals at most, and no zero before the point."""
    size = abs(value)
    if size < 0.01 or size >= 1e5:
        return short(value)
    written = f"{size:.{0 if size >= 10 else 1 if size >= 1 else 2}f}"
    written = written.rstrip("0").rstrip(".") if "." in written else written
    return (MINUS if value < 0 else "") + written.removeprefix("0")


def bracketed(value: float) -> str:
    """`value` as a factor behind a sign: 3, or (−3)."""
    return f"({number(value)})" if value < 0 else number(value)


def added(values: Iterable[float]) -> str:
    """The values as a written sum: "3 + 5 − 2"."""
    terms = list(values)
    return " ".join([number(terms[0]), *map(signed, terms[1:])]) if terms else "0"


def vector(values: Sequence[float], most: int = 4) -> str:
    """A vector's first entries: "[0.625, 0.125, …]", or the bare number where there is one."""
    if len(values) == 1:
        return number(values[0])
    shown = [number(v) for v in values[:most]]
    return f"[{', '.join(shown)}{', …' if len(values) > most else ''}]"


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """`value` with three digits in the largest unit that leaves at least 1 before the point."""
    if value == 0:
        return "0"
    for scale, name in units:
        count = float(f"{value / scale:.3g}")  # rounding may lift it into the next unit
        if count >= 1:
            return f"{count:.3g} {name}" if count < 1000 else f"{number(count)} {name}"
    return f"{number(float(f'{value / units[-1][0]:.3g}'))} {units[-1][1]}"


def duration(seconds: float) -> str:
    """Seconds as text: 15.6 ms."""
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")))


def lasting(seconds: float | None) -> str:
    """Seconds as text; "for ever" for what has no end."""
    return "for ever" if seconds is None else duration(seconds)


def size(count: float) -> str:
    """Bytes as text, powers of ten: 40 MB."""
    return _scaled(count, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")))


def listed(words: Sequence[object]) -> str:
    """ "0", "0 and 1", "0, 1 and 2"."""
    parts = [str(w) for w in words]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def ranks(numbers: Sequence[int]) -> str:
    """ "rank 0", "ranks 0 and 1", or how many they are where a list would be long."""
    if len(numbers) > 8:
        run = list(range(numbers[0], numbers[0] + len(numbers)))
        if list(numbers) == run:
            return f"ranks {numbers[0]} to {numbers[-1]}"
        return f"{len(numbers)} ranks"
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {listed(numbers)}"


def at_start(text: str) -> str:
    """`text` at the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def plural(count: int, word: str) -> str:
    """ "1 token", "2 tokens"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def spans(numbers: Sequence[int]) -> str:
    """Ascending numbers, long runs of them short: "3, 7 and 9 to 36"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    short = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(n) for n in run] for run in runs]
    return listed([text for texts in short for text in texts])


def day(seconds: float) -> str:
    """The day of a time in seconds since 1970, in UTC: 3 May 2026."""
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"
