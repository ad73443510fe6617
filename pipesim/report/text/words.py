"""Numbers in words: every number that a report prints gets its unit, its sign and its separators here.

And text at the edge: what a name from a file, a program or a compiler may do to a terminal or a CI system is nothing.
Every line that pipesim prints for a person goes through :func:`inert`. Files for other tools are quoted by their
exporters, and JSON by its own rules.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

NONE = "–"  #: where a number does not exist
MINUS = "−"
ARROW = "→"
KIB = 1024
_PACKAGE = Path(__file__).parents[2]

_PHRASES = {
    "work": "work {} cycles a tile",
    "grid": "grid {} CTAs",
    "arrive_lanes": "{} arriving lanes a warp",
}


def number(value: int | None) -> str:
    """``1,792``; a dash for None."""
    if value is None:
        return NONE
    return f"{value:,}".replace("-", MINUS)


def cycles(millicycles: int | None) -> str:
    """1/1000 cycles, rounded half up to whole cycles: ``1,204``; a dash for None."""
    return number(None if millicycles is None else (millicycles + 500) // 1000)


def tenths(thousandths: int | None) -> str:
    """1/1000 of a unit, rounded half up to tenths: ``1,085.7``; a dash for None."""
    return NONE if thousandths is None else _tenths((abs(thousandths) + 50) // 100, negative=thousandths <= -50)


def difference(thousandths: int | None) -> str:
    """The same with its sign: ``+36.0``, ``−0.2``, ``0.0``; a dash for None."""
    return ("+" if thousandths is not None and thousandths >= 50 else "") + tenths(thousandths)


def signed_number(value: int) -> str:
    """``+1,792``, ``−3``, ``0``."""
    return ("+" if value > 0 else "") + number(value)


def nanoseconds(millicycles: int | None, khz: int) -> int | None:
    """1/1000 of a nanosecond that 1/1000 cycles of a clock of ``khz`` last; None where there is no number."""
    return None if millicycles is None else round(millicycles * 1_000_000 / khz)


def percent(permille: int | None) -> str:
    """Thousandths as ``93.1 %``; a dash for None."""
    return NONE if permille is None else f"{_tenths(abs(permille), permille < 0)} %"


def signed_percent(permille: int | None) -> str:
    """Thousandths with their sign: ``+0.3 %``, ``−2.2 %``, ``0.0 %``; a dash for None."""
    return ("+" if permille is not None and permille > 0 else "") + percent(permille)


def plus_minus(permille: int | None) -> str:
    """Thousandths to either side: ``±0.4 %``; a dash for None."""
    return NONE if permille is None else f"±{_tenths(abs(permille), negative=False)} %"


def _tenths(permille: int, negative: bool) -> str:  # noqa: FBT001  # private, named at its calls
    return f"{MINUS if negative else ''}{permille // 10:,}.{permille % 10}"


def size(nbytes: int | None) -> str:
    """``16 KiB`` where it comes out even, else ``1,000 bytes``; a dash for None."""
    if nbytes is None:
        return NONE
    if nbytes and nbytes % (KIB * KIB) == 0:
        return f"{nbytes // (KIB * KIB):,} MiB"
    return f"{nbytes // KIB:,} KiB" if nbytes and nbytes % KIB == 0 else count(nbytes, "byte")


def count(value: int, noun: str) -> str:
    """``1 warp``, ``2 warps``; the noun is regular."""
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")


def ordinal(value: int) -> str:
    """``1st``, ``2nd``, ``13th``."""
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{number(value)}{ending}"


def iterations(window: tuple[int, ...]) -> str:
    """The iterations of a window (first, end), of which there is one at least: ``iterations 10 to 41``."""
    first, last = window[0], window[1] - 1
    return f"iteration {number(first)}" if first == last else f"iterations {number(first)} to {number(last)}"


def time_bound(picoseconds: int) -> str:
    """An uncertainty to either side, rounded up: ``±6 ns``; below one nanosecond ``±740 ps``."""
    ns = -(-picoseconds // 1000)
    return f"±{number(ns)} ns" if picoseconds >= 1000 else f"±{number(picoseconds)} ps"


def microseconds(picoseconds: int) -> str:
    """Picoseconds as ``18.2 µs``, rounded down to tenths."""
    tenths = picoseconds // 100_000
    return f"{tenths // 10:,}.{tenths % 10} µs"


def megahertz(khz: int) -> str:
    """KHz as whole ``1,980 MHz``."""
    return f"{number((khz + 500) // 1000)} MHz"


def seconds(value: float) -> str:
    """Seconds of computing: ``0.02 s``."""
    return f"{value:,.2f} s"


def parameter(name: str, value: int) -> str:
    """One parameter in words: ``stages 4``, ``16 KiB a tile``, ``work 600 cycles a tile``."""
    if name == "tile_bytes":
        return f"{size(value)} a tile"
    if name in _PHRASES:
        phrase = _PHRASES[name].format(number(value))
        return phrase if value != 1 else phrase.replace("CTAs", "CTA").replace("lanes", "lane")
    if name.endswith("_bytes"):
        return f"{name.removesuffix('_bytes').replace('_', ' ')} {size(value)}"
    return f"{name.replace('_', ' ')} {number(value)}"


def parameters(params: Mapping[str, int], roles: tuple[tuple[str, int], ...]) -> list[str]:
    """Parameters in words, in their order. ``<role>_warps`` is left out where the role's own phrase says the same."""
    said = {f"{name}_warps": warps for name, warps in roles}
    return [parameter(name, value) for name, value in params.items() if said.get(name) != value]


def listed(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


_LINE = re.compile(r"(?<=[\w)]:)(\d+)(?![\w.\[])")  # of a place: ``k.ptx:7``, not of ``k.ptx:7[0]``, a barrier's name


def with_lines_together(said: Sequence[str], left_out: int = 0) -> list[str]:
    """Sentences that differ in the line of one place alone as one sentence: ``at k.cu:5 (k.ptx:71, 80 and 92)``.

    ``left_out``: how many more there are, said with the lines if all are one sentence, else last.
    """
    more = [f"{number(left_out)} more"] if left_out else []
    alike: dict[tuple[str, ...], list[list[str]]] = {}
    for each in said:
        parts = _LINE.split(each)
        alike.setdefault(tuple(parts[::2]), []).append(parts[1::2])
    found: list[str] = []
    for words, rows in alike.items():
        columns = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
        if len(alike) == 1 and sum(len(column) > 1 for column in columns) == 1:
            columns, more = [[*column, *more] if column[1:] else column for column in columns], []
        one = sum(len(column) > 1 for column in columns) <= 1
        lines = [list(map(listed, columns))] if one else rows
        found += ["".join(a + b for a, b in zip(words, [*row, ""], strict=True)) for row in lines]
    return [*found, *more]


def warps(roles: tuple[tuple[str, int], ...]) -> list[str]:
    """``1 load warp → 2 mma warps``; of more than two roles it is unknown who passes what to whom: one part each."""
    said = [count(n, f"{name} warp") for name, n in roles]
    return [f" {ARROW} ".join(said)] if len(said) == 2 else said


def place(line: str) -> str:
    """A source line (``file:number``) as a person would type it: relative where it lies below the current folder.

    A line of pipesim's own is ``pipesim/protocols/...``, wherever it is installed.
    """
    path, colon, at = line.rpartition(":")
    if not colon:
        return line
    if Path(path).is_relative_to(_PACKAGE):
        return f"{Path(path).relative_to(_PACKAGE.parent).as_posix()}:{at}"
    try:
        return f"{Path(path).relative_to(Path.cwd()).as_posix()}:{at}"
    except ValueError:
        return line


_BEGINS_COMMAND = re.compile(r"^(\s*)::")  # GitHub: a line whose first word begins with two colons
_HOLDS_COMMAND = re.compile(r"##(?=\w*\[)")  # GitHub's earlier form, Azure (##vso[), TeamCity (##teamcity[): anywhere


def printable(line: str) -> str:
    """One line without characters that move the cursor, colour, reorder or end it: each becomes a question mark.

    These are all that Unicode calls control, format, surrogate, private, unassigned, or white space but for the space.
    """
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def inert(line: str) -> str:
    """One line that is printable and that no CI system takes for a command, such as ``::error::`` of GitHub."""
    line = printable(line)
    if "::" in line:
        line = _BEGINS_COMMAND.sub(r"\1: :", line)
    return _HOLDS_COMMAND.sub("# #", line) if "##" in line else line


def inert_text(text: str) -> str:
    """The same for each line of a text; tabs become spaces."""
    return "\n".join(inert(line.expandtabs(4)) for line in text.split("\n"))
