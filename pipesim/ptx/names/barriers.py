"""Barriers by what the source calls them: the array, and the index of the element, in the order of addresses.

A name is given only where it is certain. What ``.loc`` says of the init comes first; what it says of the waits, arrives
and copies decides where that is not one array, and takes a name away that it contradicts. An array that is declared
``__shared__`` has its name in the PTX, also without lines: Itanium C++ ABI, "Local names" (``_ZZ`` function ``E`` name,
a number after it where several have the name) and "Unscoped names" (``_ZL`` name).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from operator import sub
from typing import NamedTuple

from pipesim.model.groups import BARRIER, COMMITS, LIFE, ON_BARRIER
from pipesim.ptx.emit.record import BARRIER_BYTES, Place, StreamRecorder
from pipesim.ptx.names.guarded import barriers_of_values
from pipesim.ptx.names.paths import group_of, short_names
from pipesim.ptx.names.resolve import Resolver
from pipesim.ptx.text.declarations import Variable
from pipesim.ptx.text.instruction import Frame, Instruction

_SHIFTED = re.compile(r"\[[^\[\]]*(?:[-+*/%] ?\d|\d ?[-+*/%])[^\[\]]*\]")  #: an element that may not be the first
_NAMES_BARRIER = ON_BARRIER - LIFE - COMMITS
_LOCAL = re.compile(r"E(\d{1,3})(?=[A-Za-z_])", re.ASCII)
_UNSCOPED = re.compile(r"_ZL?(\d{1,3})(?=[A-Za-z_])", re.ASCII)
_NAME, _SEVERAL = re.compile(r"[A-Za-z_]\w*", re.ASCII), re.compile(r"(_\d|__\d+_)?", re.ASCII)


def barriers_named_by_source(
    recorder: StreamRecorder, initialised: Mapping[Place, int], body: Sequence[Instruction], resolver: Resolver
) -> dict[int, tuple[str, int]]:
    """Array and element of the barriers, by offset in shared memory, of which the source says it with certainty."""
    paths, others = _by_inits({offset: at for (_, offset), at in initialised.items()}, body, resolver)
    by_inits = set(paths)
    unsure = {offset for offset, path in paths.items() if others[offset] or _has_number(path)}
    wanted = {offset for _, offset in recorder.barriers} - (paths.keys() - unsure)
    uses = _by_uses(_touched(recorder, wanted) if wanted else {}, body, resolver)
    for offset, used in uses.items():
        found = {group_of(path)[0]: path for path in sorted(used)}
        if found.keys() & others.get(offset, set()):
            rivals = {group_of(paths[offset])[0], *others[offset]} if offset in paths else set()
            for each in [each for each, path in paths.items() if group_of(path)[0] in rivals]:
                del paths[each]
        elif len(found) == 1 and offset not in paths:
            paths[offset] = next(iter(found.values()))
    _call_as_used(paths, uses)
    everything = {offset for _, offset in recorder.barriers}
    rest = {offset: init for (_, offset), init in initialised.items() if offset not in paths.keys() | uses.keys()}
    made = {offset: init for offset, init in rest.items() if _is_made_by_compiler(body[init], resolver)}
    guards = barriers_of_values(recorder, body, resolver, made) if made else {}
    names = {group_of(path)[0] for path in paths.values()}
    paths |= {offset: path for offset, path in guards.items() if path not in names}
    return _elements(paths, everything - paths.keys(), paths.keys() - by_inits)


def barriers_named_by_uses(
    touched: Mapping[int, Set[int]], every: Set[int], body: Mapping[int, Instruction], resolver: Resolver
) -> dict[int, tuple[str, int]]:
    """The same of code without lines that can be relied on for each init: by waits, arrives and copies alone.

    ``touched``: the barriers of each of them, by its position; ``every``: all that are known.
    """
    found = {offset: (group_of(min(used))[0], used) for offset, used in _by_uses(touched, body, resolver).items()}
    paths = {at: min(used) for at, (name, used) in found.items() if all(group_of(each)[0] == name for each in used)}
    return _elements(paths, every - paths.keys(), paths.keys())


def _call_as_used(paths: dict[int, str], uses: Mapping[int, Set[str]]) -> None:
    """Call arrays of a tuple what the functions that use them call them, if it is one name that no other array has.

    Where it is several, what another array is always called is not it: that use is of the wrong barrier.
    """
    arrays: dict[str, list[int]] = defaultdict(list)
    for offset, path in paths.items():
        arrays[group_of(path)[0] if _has_number(path) else ""].append(offset)
    arrays.pop("", None)
    called = {
        name: {group_of(path)[0] for offset in array for path in uses.get(offset, ())} for name, array in arrays.items()
    }
    sure = {each for names in called.values() if len(names) == 1 for each in names}
    left = {name: names if len(names) == 1 else names - sure for name, names in called.items()}
    count = Counter(each for names in left.values() for each in names)
    for name, names in left.items():
        if len(names) == 1 and count[(only := next(iter(names)))] == 1:
            paths |= dict.fromkeys(arrays[name], only)


def _is_made_by_compiler(init: Instruction, resolver: Resolver) -> bool:
    """Whether the author's line has no barrier: so Triton inits those of its loads, products and partitions."""
    return init.source is not None and init.source.file.endswith(".py") and not resolver.paths(init)


def _has_number(path: str) -> bool:
    """Whether it may be an array of a Python tuple of them, for which the functions that use them have names."""
    name, number = group_of(path)
    return number >= 0 or name.endswith("]")


def _by_inits(
    inits: Mapping[int, int], body: Sequence[Instruction], resolver: Resolver
) -> tuple[dict[int, str], dict[int, set[str]]]:
    """The path of each barrier as its init has it, and the arrays that it may be of instead.

    One place can be that of several inits: a statement calls init for several arrays, or nvcc does not repeat into
    which places it inlined the inits of a loop that it unrolled. They take turns then.
    """
    paths: dict[int, str] = {}
    others: dict[int, set[str]] = {}
    at_position: dict[int, list[int]] = defaultdict(list)
    for offset, at in inits.items():
        at_position[at].append(offset)
    turns = list(_turns(at_position, body, resolver))
    said = Counter(group_of(each)[0] for paths_, _ in turns for each in paths_ if group_of(each)[1] < 0)
    for alternatives, positions in turns:
        if any(said[group_of(each)[0]] > 1 or _SHIFTED.search(each) for each in alternatives):
            continue  # two places would be one array, or its first element is not known
        arrays = {group_of(each)[0] for each in alternatives}
        for n, at in enumerate(positions):
            for offset in at_position[at]:
                paths[offset] = path = alternatives[n % len(alternatives)]
                others[offset] = arrays - {group_of(path)[0]}
    return paths, others


def _turns(
    inits: Mapping[int, list[int]], body: Sequence[Instruction], resolver: Resolver
) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    """Paths that take turns, and the positions of the inits that they are of, in the order of the code.

    An array whose first init has no sure place is known by another instruction of the function that the init is in.
    """
    leaves: dict[str, set[Frame]] = defaultdict(set)
    for at in inits:
        if (source := body[at].source) is not None:
            leaves[source.frames[-1].function].add(source.frames[-1])
    stated: dict[tuple[Frame, ...], list[int]] = {}  #: the positions by their places, since the last that is not sure
    unsure: list[int] = []
    for at in range(min(inits, default=0), max(inits, default=-1) + 1):
        source = body[at].source
        if source is None or (at not in inits and (not source.sure or len(leaves[source.frames[-1].function]) != 1)):
            continue
        if unsure and at in inits and source.sure:
            yield from _with_unsure(stated, unsure, inits, body, resolver)
            stated, unsure = {}, []
        if at not in inits and not unsure and len(source.frames) > 1:
            stated.setdefault((*source.frames[:-1], *leaves[source.frames[-1].function]), [])
        elif at in inits:
            (stated.setdefault(source.frames, []) if source.sure else unsure).append(at)
    yield from _with_unsure(stated, unsure, inits, body, resolver)


def _with_unsure(
    stated: Mapping[tuple[Frame, ...], list[int]],
    unsure: list[int],
    inits: Mapping[int, list[int]],
    body: Sequence[Instruction],
    resolver: Resolver,
) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    """The inits of each place, and those without a sure one as further turns of the last places before them."""
    turns = _fitting(list(stated.values()), unsure, inits) if unsure else []
    asm = {source.frames[-1] for at in unsure if (source := body[at].source) is not None}
    for n, (frames, positions) in enumerate(stated.items(), len(turns) - len(stated)):
        if unsure and not turns and frames[-1] in asm:
            continue  # which of the others belong to its array is not known
        paths = resolver.paths_at(frames)
        of_array = turns[n] if n >= 0 else positions
        if paths and of_array and len(of_array) % len(paths) == 0:
            yield paths, of_array


def _fitting(stated: Sequence[list[int]], unsure: list[int], inits: Mapping[int, list[int]]) -> list[list[int]]:
    """Arrays whose elements take turns, those of the last places that are stated; [] where it is not certain.

    How many places are stated and how many arrays there are is tried: all elements must be at equal distances in one
    way only. Where every array has a place, other inits may follow the last turn.
    """
    fitting = []
    for sure in range(1, len(stated) + 1):
        last = stated[-sure:]
        order = [at for each in last for at in each] + unsure
        first = [len(each) for each in last]
        if max(first) > 1 or any(len(inits[at]) != 1 for at in order):
            break
        if first != sorted(first, reverse=True):
            continue  # the others' elements are not in the order of the places
        offsets = [inits[at][0] for at in order]
        for arrays in range(sure, len(order) // 2 + 1) if first[-1] else [sure]:
            steps = list(map(sub, offsets[arrays:], offsets))
            turns = next((n for n, step in enumerate(steps) if step != steps[0]), len(steps)) // arrays + 1
            whole = turns * arrays == len(order)
            if turns > 1 and whole and arrays == 1:
                return []  # one array, or several that lie one after the other
            if turns > 1 and (whole or 1 < arrays == sure):
                fitting.append((sure == arrays, [order[n : turns * arrays : arrays] for n in range(sure)]))
    best = [each for is_best, each in fitting if is_best] or [each for _, each in fitting]
    return best[0] if len(best) == 1 else []


def _touched(recorder: StreamRecorder, wanted: Set[int]) -> dict[int, set[int]]:
    """The barriers of these on which there are waits, arrives and copies at each position."""
    places = [offset for _, offset in recorder.barriers]
    touched: dict[int, set[int]] = defaultdict(set)
    for stream in recorder.streams:
        for op, at in zip(stream.code, stream.positions, strict=True):
            if op[0] in _NAMES_BARRIER and places[op[BARRIER]] in wanted:
                touched[at].add(places[op[BARRIER]])
    return touched


def _by_uses(
    touched: Mapping[int, Set[int]], body: Sequence[Instruction] | Mapping[int, Instruction], resolver: Resolver
) -> dict[int, set[str]]:
    """The paths that the waits, arrives and copies on barriers have."""
    found: dict[int, set[str]] = defaultdict(set)
    for at, offsets in touched.items():
        source = body[at].source
        paths = resolver.paths(body[at]) if source is not None and source.sure else ()
        if len(paths) == 1:
            for offset in offsets:
                found[offset].add(paths[0])
    return found


def _elements(paths: Mapping[int, str], nameless: Set[int], by_uses: Set[int]) -> dict[int, tuple[str, int]]:
    """Each array's elements numbered by address; no array whose elements are not at equal distances.

    ``by_uses``: those of which no init says the name; such an array does not lie beside one that has none.
    """
    arrays: dict[str, dict[int, int]] = defaultdict(dict)
    for offset, path in sorted(paths.items()):
        name, number = group_of(path)
        arrays[name][offset] = number
    found: dict[int, tuple[str, int]] = {}
    shown = short_names({group_of(path)[0]: path for path in paths.values()})
    for name, elements in arrays.items():
        offsets, numbers = list(elements), list(elements.values())
        steps = {after - before for before, after in pairwise(offsets)}
        beside = {offset + sign * step for offset in offsets for step in steps or {BARRIER_BYTES} for sign in (-1, 1)}
        if len(steps) > 1 or (by_uses & elements.keys() and beside & nameless):
            continue
        first = numbers[0] if min(numbers) >= 0 else 0
        if all(number in (-1, first + n) for n, number in enumerate(numbers)):
            found |= {offset: (shown[name], first + n) for n, offset in enumerate(offsets)}
    return found


# by shared variables


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
