"""Reads a kernel's table of roles, barriers and sites: the same file that ``table.cuh`` makes the kernel's enums of."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as brief

from hwkernels.source_recorder.record_format import MAX_SITES
from pipesim.bounds import (
    MAX_AGENTS,
    MAX_BARRIERS,
    MAX_COUNT_OPERAND,
    MAX_EXPRESSION,
    MAX_INCLUDES,
    MAX_SMALL_BYTES,
    MAX_TABLE_LINES,
)
from pipesim.errors import UsageError
from pipesim.inputs import InputKind, quoted_name, wrong_identifier
from pipesim.model.tables import NAMED_BARRIERS
from pipesim.trace.schema import ON_GROUPS, ON_NAMED_BARRIER, AgentInfo, BarrierGroup, EventKind, Site
from pipesim.trace.sites import ENGINE_NAMES

_ENDS = ((EventKind.BAR_ENTER, EventKind.BAR_RETURN), (EventKind.GROUP_ENTER, EventKind.GROUP_RETURN))
_OTHER_END = {a: b for begin, end in _ENDS for a, b in ((begin, end), (end, begin))}
NONE = "none"  #: how the file spells that a site touches no barrier
_ARGUMENTS = {"ROLE": 2, "BARRIER": 3, "SITE": 4}
_ENTRY = re.compile(r"PIPESIM_(ROLE|BARRIER|SITE)\((.*)\)")
_INCLUDE = re.compile(r'#\s*include\s+"([^"/]+)"')
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_EXPRESSION = re.compile(r"(?:0[xX][0-9a-fA-F]+(?!\w)|\d+(?!\w)|[A-Za-z_]\w*|[-+*()\s])*+", re.ASCII)
_SUPPORTED = "only numbers, names, + - * and parentheses are supported"
_EXAMPLE = "write PIPESIM_ROLE(...), PIPESIM_BARRIER(...) or PIPESIM_SITE(...), one a line"
_TABLE = InputKind("table", MAX_SMALL_BYTES, UsageError, _EXAMPLE)


@dataclass(frozen=True)
class Table:
    """A kernel's table for one set of parameters. Order is the file's, and so the kernel's numbering."""

    roles: tuple[tuple[str, int], ...]  #: name and number of warps
    barriers: tuple[BarrierGroup, ...]
    sites: tuple[Site, ...]

    @property
    def agents(self) -> tuple[AgentInfo, ...]:
        """One agent a warp: agent number, warp number and position are the same."""
        pairs = [(role, index) for role, warps in self.roles for index in range(warps)]
        return tuple(AgentInfo(role, index, warp) for warp, (role, index) in enumerate(pairs))


def read_table(path: Path, values: Mapping[str, int]) -> Table:
    """The table in ``path``, its expressions evaluated with ``values``. Raises UsageError with the line at fault."""
    try:
        return _table(path, values)
    except UsageError as error:
        raise error.completed(
            place=str(path), cause="the table was edited by hand, or is of another kernel", correction=_EXAMPLE
        ) from None


def _table(path: Path, values: Mapping[str, int]) -> Table:
    roles: dict[str, int] = {}
    barriers: dict[str, BarrierGroup] = {}
    sites: dict[str, Site] = {}
    for place, kind, (name, *rest) in _entries(path):
        if name in {"ROLE": roles.keys(), "BARRIER": barriers.keys(), "SITE": sites.keys()}[kind]:
            raise UsageError(f"{kind.lower()} {name} is defined twice", place=place)
        if kind == "ROLE":
            roles[name] = _within(1, MAX_AGENTS - sum(roles.values()), rest[0], values, place)
        elif kind == "BARRIER":
            left = MAX_BARRIERS - sum(group.stages for group in barriers.values())
            stages = _within(1, left, rest[0], values, place)
            barriers[name] = BarrierGroup(name, stages, _within(0, MAX_COUNT_OPERAND, rest[1], values, place))
        else:
            sites[name] = _site(name, rest, (roles, barriers), place)
    _require_pairs(sites.values(), path)
    if len(sites) > MAX_SITES:
        raise UsageError(f"{len(sites)} sites; a record can name {MAX_SITES}", place=str(path))
    return Table(tuple(roles.items()), tuple(barriers.values()), tuple(sites.values()))


def _require_pairs(sites: Iterable[Site], path: Path) -> None:
    """UsageError for a wait of which the table has the beginning or the end alone."""
    keys = {site.key for site in sites}
    for site in sites:
        other = _OTHER_END.get(site.kind)
        if other is not None and (site.role, other, site.barrier) not in keys:
            raise UsageError(
                f"site {site.name} is of kind {site.kind.name}, and {site.role} has no {other.name} of {site.barrier}",
                place=str(path),
                correction=f"add PIPESIM_SITE(NAME, {site.role}, {other.name}, {site.barrier})",
            )


def names_in(path: Path) -> frozenset[str]:
    """The names of parameters that the expressions of a table use. Raises UsageError with the line at fault."""
    names: set[str] = set()
    for _, kind, (_, *rest) in _entries(path):
        names |= set(_NAME.findall(" ".join(rest))) if kind != "SITE" else set()
    return frozenset(names)


def _entries(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Place, kind and arguments of each entry, those of an included file, beside this one, where its line is.

    UsageError beyond a number of lines and characters: a file that is included twice by each of many would have no end.
    """
    lines, characters = 0, 0
    including = [(path, iter(_lines(path)))]  # the files that are being read, the innermost last
    while including:
        file, rest = including[-1]
        number, line = next(rest, (0, ""))
        if not number:
            including.pop()
            continue
        lines, characters = lines + 1, characters + len(line)
        text, place = line.split("//")[0].strip(), f"{file}:{number}"
        if lines > MAX_TABLE_LINES or characters > MAX_SMALL_BYTES:
            raise UsageError(
                f"the table has more than {MAX_TABLE_LINES:,} lines with all that it includes",
                place=place,
                cause="a file is included again and again",
                correction="include each file once",
            )
        if line.rstrip().endswith("\\"):
            raise UsageError(
                "this line ends in a backslash",
                place=place,
                cause="a CUDA compiler joins it with the next line, also where it is a comment",
                correction="remove the backslash",
            )
        if include := _INCLUDE.fullmatch(text):
            other = file.parent / include[1]
            _require_included(other, [each for each, _ in including], place)
            including.append((other, iter(_lines(other))))
        elif text:
            yield place, *_entry(text, place)


def _lines(path: Path) -> list[tuple[int, str]]:
    return list(enumerate(_TABLE.read_text(path).split("\n"), start=1))  # as C reads them


def _require_included(other: Path, including: list[Path], place: str) -> None:
    """UsageError unless a file can be included where these are being read."""
    cause = ""
    if other in including:
        cause = "it includes this one"
    elif not other.is_file():
        cause = "there is no such file"
    elif len(including) >= MAX_INCLUDES:
        cause = f"files include each other more than {MAX_INCLUDES} deep"
    if cause:
        raise UsageError(f"cannot include {other.name}", place=place, cause=cause, correction="leave the line out")


def _entry(text: str, place: str) -> tuple[str, list[str]]:
    """Kind and arguments of one line, the first of them a name."""
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise UsageError(f"this is not a table entry: {_short(text)}", place=place, correction=_EXAMPLE)
    kind = match[1]
    arguments = [part.strip() for part in match[2].split(",")]
    if len(arguments) != _ARGUMENTS[kind]:
        raise UsageError(f"PIPESIM_{kind} takes {_ARGUMENTS[kind]} arguments, not {len(arguments)}", place=place)
    wrong = wrong_identifier(arguments[0])
    if wrong or not _NAME.fullmatch(arguments[0]):
        raise UsageError(f"{quoted_name(arguments[0])} is not a name", place=place, cause=wrong)
    return kind, arguments


def _short(text: str) -> str:
    """A line that may be of any length and have any character, for an error."""
    return text if text.isprintable() and len(text) <= MAX_EXPRESSION else f"{text[:MAX_EXPRESSION]!r}"


def _site(name: str, rest: list[str], known: tuple[Mapping[str, int], Mapping[str, BarrierGroup]], place: str) -> Site:
    role, kind, barrier = rest
    kinds = [k.name for k in EventKind]
    if role not in known[0]:
        raise UsageError(f"site {name}: no role {_short(role)} above this line", place=place)
    if kind not in kinds:
        raise UsageError(
            f"site {name}: no kind {_short(kind)}", place=place, correction=f"use one of {', '.join(kinds)}"
        )
    on = _allowed_barriers(EventKind[kind], known[1])
    if barrier not in on:
        what = f"no barrier {_short(barrier)} above this line (or {NONE})"
        if EventKind[kind] in ON_NAMED_BARRIER | ON_GROUPS:
            where = "a named barrier" if EventKind[kind] in ON_NAMED_BARRIER else "an engine"
            what = f"{kind} is on {where}, not {_short(barrier)}"
        raise UsageError(f"site {name}: {what}", place=place, correction=f"write one of {', '.join(on)}")
    return Site(name, role, EventKind[kind], "" if barrier == NONE else barrier)


def _allowed_barriers(kind: EventKind, barriers: Mapping[str, BarrierGroup]) -> tuple[str, ...]:
    """What a site of this kind may be on."""
    if kind in ON_NAMED_BARRIER:
        return tuple(map(str, range(NAMED_BARRIERS)))
    return tuple(ENGINE_NAMES.values()) if kind in ON_GROUPS else (*barriers, NONE)


def _within(least: int, most: int, expression: str, values: Mapping[str, int], place: str) -> int:
    """The value of an expression of numbers, names, + - * and parentheses, which must be ``least`` to ``most``.

    A count of 0 is of barriers that no init touches.
    """
    try:
        if len(expression) > MAX_EXPRESSION:
            raise ValueError(f"it has {len(expression):,} characters; at most {MAX_EXPRESSION} are read")
        if not _EXPRESSION.fullmatch(expression):
            raise ValueError(_SUPPORTED)
        value = _evaluate(ast.parse(expression, mode="eval").body, values)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"cannot evaluate {_short(expression)!r}: {error}", place=place) from error
    if value < least:
        what = "the number here" if expression.strip() == str(value) else expression
        raise UsageError(f"{what} is {value}; it must be at least {least}", place=place)
    if value > most:
        raise UsageError(
            f"{expression} is {brief(value)}",
            place=place,
            cause=f"at most {most:,} are possible here, after the lines above it",
            correction="give a smaller number",
        )
    return value


def _evaluate(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            if name not in values:
                raise ValueError(f"no parameter {name}")
            return values[name]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _evaluate(left, values) + _evaluate(right, values)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _evaluate(left, values) - _evaluate(right, values)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _evaluate(left, values) * _evaluate(right, values)
        case _:
            raise ValueError(_SUPPORTED)
