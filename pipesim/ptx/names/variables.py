"""Shared variables by name: an array that is declared ``__shared__`` has its name in the PTX, also without lines.

Itanium C++ ABI, "Local names" (``_ZZ`` function ``E`` name, a number after it where several have the name) and
"Unscoped names" (``_ZL`` name); a variable of the global namespace is called as its author wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pipesim.ptx.text.declarations import Variable

_LOCAL = re.compile(r"E(\d{1,3})(?=[A-Za-z_])", re.ASCII)
_UNSCOPED = re.compile(r"_ZL?(\d{1,3})(?=[A-Za-z_])", re.ASCII)
_NAME, _SEVERAL = re.compile(r"[A-Za-z_]\w*", re.ASCII), re.compile(r"(_\d|__\d+_)?", re.ASCII)


def variable_name(symbol: str) -> str:
    """What the author calls the variable; "" where the symbol does not say so.

    >>> variable_name("_ZZ4ringPKfPfiE4full"), variable_name("tile"), variable_name("_ZN2ns1aE")
    ('full', 'tile', '')
    """
    if not symbol.startswith("_Z"):
        return symbol if _NAME.fullmatch(symbol) else ""
    found = _LOCAL.finditer(symbol) if symbol.startswith("_ZZ") else _UNSCOPED.finditer(symbol)
    for each in found:
        end = each.end() + int(each[1])
        name = symbol[each.end() : end]
        if len(name) == int(each[1]) and _NAME.fullmatch(name) and _SEVERAL.fullmatch(symbol, end):
            return name
    return ""


def elements_of_variables(
    variables: Sequence[Variable], offsets: Collection[int], nbytes: int, taken: Collection[str]
) -> Iterator[tuple[Variable, str, list[int]]]:
    """Variables whose first elements of this size begin at these offsets, and nothing else: each with its name.

    ``taken``: names that something else has; a name that two variables have is not used.
    """
    names = [variable_name(each.name) for each in variables]
    for each, name in zip(variables, names, strict=True):
        inside = sorted(offset for offset in offsets if each.offset <= offset < each.offset + each.size)
        is_array = inside == [each.offset + n * nbytes for n in range(len(inside))] and not each.size % nbytes
        if inside and is_array and name and name not in taken and names.count(name) == 1:
            yield each, name, inside


class InitLine(NamedTuple):
    """The lines that a barrier's init is inlined from, else that of the PTX, and the text of the author's line."""

    places: tuple[str, ...]
    text: str


def barriers_named_by_variables(
    variables: Sequence[Variable], named: Mapping[int, tuple[str, int]], inits: Mapping[int, InitLine], nbytes: int
) -> dict[int, tuple[str, int]]:
    """Name and element of the barriers, by offset, that fill an array from its beginning, of those without a name.

    What several lines initialise may be several rings in one array, and where a line has a member of the variable
    (``s.full``) that is a structure: these have no name.
    """
    found: dict[int, tuple[str, int]] = {}
    arrays = elements_of_variables(variables, inits, nbytes, {name for name, _ in named.values()})
    for _, name, inside in arrays:
        lines = {inits[offset] for offset in inside}
        member = re.compile(rf"\b{name}\s*(?:\.|->)")
        if len(lines) == 1 and named.keys().isdisjoint(inside) and not any(member.search(each.text) for each in lines):
            found |= {offset: (name, n) for n, offset in enumerate(inside)}
    return found
