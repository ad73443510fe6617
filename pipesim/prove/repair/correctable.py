"""A kernel's program in the form in which corrections are tried on it.

Two things of a program that was read from a wrong kernel are not what its author meant. What a read expects is what the
memory held in the one schedule that was followed: with a wrong wait, what was there too early. Whether all schedules
read the same is asked of the corrected program by its races, so reads expect nothing here. And barriers that no source
names are called by the line that initialises them, often all of a kernel alike: those that different roles signal are
arrays of their own.

Where the mistake leaves stages of a ring unused, the ring still has them: an array does not end where fewer roles
signal, and a tile has a slot for each stage of the barriers on which the copies to it complete.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from pipesim.model.groups import ASKS, ON_BARRIER, PARITY_WAITS, READS_MEMORY
from pipesim.model.ops import Op, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import Tile
from pipesim.prove.repair.sites import families

_BY_LINE = re.compile(r".*:\d+")
_BYTES = 8  #: of a barrier


def correctable(program: Program, *, expects: bool) -> Program:
    """The program with an array of barriers for each part that others signal; its reads expect nothing, or
    (``expects``) what they do.
    """
    code = program.code
    if not expects:
        code = tuple(
            tuple(with_operand(op, "item", -1) if op[0] in READS_MEMORY else op for op in each) for each in code
        )
    arrays, barriers = _arrays(program), []
    for each in program.barriers:
        name, first = arrays.get((each.name, each.stage), (each.name, 0))
        barriers.append(replace(each, name=name, stage=each.stage - first))
    made = replace(program, code=code, barriers=tuple(barriers))
    return replace(made, tiles=tuple(_whole(made)))


def in_rows(program: Program, offsets: Sequence[int]) -> Program:
    """The program with other arrays of barriers that are named by lines, as a library's inits of all pipelines are.

    Where those of a line are several arrays, one lies in a row, has one count, and who waits and who signals.
    """
    alike, uses = families(program), defaultdict[int, set[object]](set)
    for agent, code in enumerate(program.code):
        role = alike.get(program.agents[agent].role, program.agents[agent].role)
        for op in (op for op in code if op[0] in ON_BARRIER and operand(op, "barrier") >= 0):
            use = ("count", operand(op, "count")) if op[0] == Op.INIT else (op[0] in PARITY_WAITS, role)
            uses[offsets[operand(op, "barrier")]].add(use)
    named = {at: each for at, each in zip(offsets, program.barriers, strict=True) if _BY_LINE.fullmatch(each.name)}
    rows: list[list[int]] = []
    for at in sorted(named):
        last = rows[-1][-1] if rows else 0
        if at == last + _BYTES and (uses[at] == uses[last] or _is_part(uses[at], uses[last])):
            rows[-1].append(at)
        else:
            rows.append([at])
    several = [{named[at].name for at in row} for row in rows]
    of_rows = Counter(name for names in several for name in names)
    apart = {name for name, rows_of_it in of_rows.items() if rows_of_it > 1}
    crossed = set[str]().union(*(names for names in several if len(names) > 1 and names & apart))
    made: dict[int, tuple[str, int]] = {}
    for row in (row for row in rows if not crossed.isdisjoint(named[at].name for at in row)):
        first, end = named[row[0]], named[row[-1]]
        rest = f"-{end.stage}" if end.name == first.name else f"] to {end.name}[{end.stage}"
        made |= {at: (f"{first.name}[{first.stage}{rest * (len(row) > 1)}]", place) for place, at in enumerate(row)}
    pairs = zip(offsets, program.barriers, strict=True)
    every = ((each, *made.get(at, (each.name, each.stage))) for at, each in pairs)
    return replace(program, barriers=tuple(replace(each, name=name, stage=place) for each, name, place in every))


def _whole(program: Program) -> Iterator[Tile]:
    """The tiles, each with as many slots as the one array of barriers has stages on which the copies to it complete.

    None of which a slot's copies complete on another stage, and only as far as nothing else lies there.
    """
    stages = Counter((each.name, each.cta) for each in program.barriers)
    on: defaultdict[Tile, set[tuple[str, int, int]]] = defaultdict(set)  # barriers' array, and slot less stage
    for op in (op for op in program.operations if op[0] == Op.TMA_LOAD):
        tile = program.tile_of(program.accesses[operand(op, "access")])
        at = program.barriers[operand(op, "barrier")]
        if tile is not None:
            on[tile].add((at.name, at.cta, program.slot_of(operand(op, "access")) - at.stage))
    for tile in program.tiles:
        arrays = on[tile]
        slots = stages[next(iter(arrays))[:2]] if len(arrays) == 1 and not next(iter(arrays))[2] else tile.slots
        end = tile.offset + tile.nbytes * slots
        others = (t for t in program.tiles if t != tile and (t.cta, t.space) == (tile.cta, tile.space))
        apart = end <= program.smem_bytes and not any(tile.offset < each.offset < end for each in others)
        yield replace(tile, slots=max(slots, tile.slots)) if apart else tile


def _arrays(program: Program) -> dict[tuple[str, int], tuple[str, int]]:
    """For each barrier of an array that has several parts the name of its part, and the stage with which it begins."""
    found: dict[tuple[str, int], tuple[str, int]] = {}
    uses: defaultdict[tuple[str, int], set[object]] = defaultdict(set)  # the count, and the roles that signal
    alike = families(program)  # whose code is one function, each with a stage of its own
    for agent, code in enumerate(program.code):
        for op in code:
            if op[0] in ON_BARRIER - ASKS and operand(op, "barrier") >= 0:
                at = program.barriers[operand(op, "barrier")]
                use = operand(op, "count") if op[0] == Op.INIT else alike.get(role := program.agents[agent].role, role)
                uses[at.name, at.stage].add(use)
    for name in dict.fromkeys(each.name for each in program.barriers):
        stages = sorted({each.stage for each in program.barriers if each.name == name})
        parts: list[list[int]] = []
        for _, same in groupby(stages, key=lambda stage: uses[name, stage]):
            here = list(same)
            if parts and _is_part(uses[name, parts[-1][-1]], uses[name, here[0]]):
                parts[-1] += here
            else:
                parts.append(here)
        if len(parts) > 1 and len({frozenset(uses[name, part[0]]) for part in parts}) == len(parts):
            for first, *rest in parts:
                part = f"{name}[{first}-{rest[-1]}]" if rest else f"{name}[{first}]"
                found |= {(name, stage): (part, first) for stage in (first, *rest)}
    return found


def _is_part(one: set[object], other: set[object]) -> bool:
    """True of two stages of one array of which one is used by fewer roles."""
    return one < other or other < one


def with_places(program: Program, places: Sequence[Sequence[int]], name: str) -> Program:
    """The program whose lines name the line of the PTX as well, ``places`` for each operation: for kernels of which one
    line of the source is many instructions.
    """
    known = dict.fromkeys(program.sources)
    lines = []
    for agent, mine in enumerate(places):
        said = [f"{program.line(agent, pc)}, {name}:{place}" for pc, place in enumerate(mine)]
        known |= dict.fromkeys(said)
        lines.append(said)
    number = {source: n for n, source in enumerate(known)}
    return replace(program, sources=tuple(known), lines=tuple(tuple(map(number.__getitem__, said)) for said in lines))
