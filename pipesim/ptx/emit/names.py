"""The flat program of what the warps of a cluster did, with the user's names: lines, barriers, roles and tiles."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import prod

from pipesim.model.coverage import Coverage
from pipesim.model.groups import (
    ACCESS,
    ASYNC_ACCESS,
    ASYNC_ITEM,
    BARRIER,
    COPY_MASK,
    DELAYED_ARRIVALS,
    ENGINE_ACCESSES,
    ITEM,
    MEETINGS,
    READS_MEMORY,
    READS_REGISTER,
    SIGNALS,
    TOUCHES_MEMORY,
    WAITS_FOR_OTHERS,
    WRITES_REGISTER,
)
from pipesim.model.ops import AT, IN_ORDER, Engine, Op, Operation, Space, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import WARP, RegisterPools, register_bound
from pipesim.model.tables import Agent, Barrier, Tile
from pipesim.ptx.emit.record import BARRIER_BYTES, Place, Stream, StreamRecorder
from pipesim.ptx.launch.values import GivenNames, Launch
from pipesim.ptx.names.barriers import (
    InitLine,
    barriers_named_by_source,
    barriers_named_by_variables,
    elements_of_variables,
)
from pipesim.ptx.names.resolve import resolver_of
from pipesim.ptx.names.tiles import CopyInto, tiles_named_by_source
from pipesim.ptx.source_files import last_name
from pipesim.ptx.text.declarations import Function, Module
from pipesim.ptx.text.instruction import Instruction


def source_of(each: Instruction, module: Module) -> str:
    """``file:line`` of the author's line, else of the PTX."""
    if each.source is not None and each.source.line:
        return f"{short_file(each.source.file)}:{each.source.line}"
    return f"{module.name}:{each.line}"


def short_file(file: str) -> str:
    """The last name of a file, which is what reports have of it; a compiler on Windows writes backslashes."""
    return last_name(file) or file


# barriers


def barrier_names(
    recorder: StreamRecorder, initialised: dict[Place, int], function: Function, module: Module, given: GivenNames
) -> dict[Place, tuple[str, int]]:
    """Group and stage of each mbarrier: what the launch file, else the source calls it (:mod:`pipesim.ptx.names`).

    Those that have no name are named by line.
    """
    if recorder.source_names is None:
        sources = module.sources
        found = barriers_named_by_source(recorder, initialised, function.body, resolver_of(sources)) if sources else {}
        lines = {offset: _init_line(function.body[at], module) for (_, offset), at in initialised.items()}
        recorder.source_names = found | barriers_named_by_variables(function.shared, found, lines, BARRIER_BYTES)
    taken = {each.name for each in given.barriers}
    named = {offset: each for offset, each in recorder.source_names.items() if each[0] not in taken}
    for _, offset in recorder.barriers:
        for name, begin, stages, step in given.barriers:
            if offset in range(begin, begin + stages * step, step):
                named[offset] = (name, (offset - begin) // step)
    return names_by_line(recorder, initialised, function, module, named)


def _init_line(each: Instruction, module: Module) -> InitLine:
    source, text = each.source, ""
    if source is not None and source.line and module.sources is not None:
        text = "".join((module.sources.lines(source.file) or ())[source.line - 1 : source.line])
    return InitLine(tuple(line for line, _ in _chain(each, module)), text)


def names_by_line(
    recorder: StreamRecorder,
    initialised: dict[Place, int],
    function: Function,
    module: Module,
    named: Mapping[int, tuple[str, int]],
) -> dict[Place, tuple[str, int]]:
    """Those that have no name, by offset, are grouped by the call that initialises them, and numbered by address."""
    groups: dict[str, list[int]] = {}
    by_offset: dict[int, str] = {}
    chains = {p[1]: _chain(function.body[at], module) for p, at in initialised.items() if p[1] not in named}
    depth = _depth(chains)
    of_calls = {offset: chain[min(depth, len(chain) - 1)] for offset, chain in chains.items()}
    columns = Counter(line for line, _ in set(of_calls.values()))
    for offset in sorted({place[1] for place in recorder.barriers} - named.keys()):
        line, column = of_calls.get(offset, ("barrier", 0))
        name = f"{line}:{column}" if columns[line] > 1 else line
        by_offset[offset] = name
        groups.setdefault(name, []).append(offset)
    found = {offset: (name, groups[name].index(offset)) for offset, name in by_offset.items()} | dict(named)
    return {place: found[place[1]] for place in recorder.barriers}


def _chain(each: Instruction, module: Module) -> list[tuple[str, int]]:
    """The places of a line from the outermost on, each with its column."""
    if each.source is None or not each.source.line:
        return [(f"{module.name}:{each.line}", 0)]
    return [(f"{short_file(frame.file)}:{frame.line}", frame.column) for frame in each.source.frames]


def _depth(chains: dict[int, list[tuple[str, int]]]) -> int:
    """How many levels of inlining are needed until no more groups come apart."""
    deepest = max((len(chain) for chain in chains.values()), default=1)
    counts = [len({tuple(chain[: d + 1]) for chain in chains.values()}) for d in range(deepest)]
    return next((d for d, count in enumerate(counts) if count == counts[-1]), 0)


# roles


def role_names(recorder: StreamRecorder, *, together: bool) -> list[str]:
    """A name for each agent: agents that run the same instructions share one.

    ``together``: they begin with the start of a launch of several clusters.
    """
    copied = {op[ASYNC_ITEM] for stream in recorder.streams for op in stream.code if op[0] == Op.TMA_LOAD}
    words = {number for number, each in enumerate(recorder.accesses) if each.space is Space.SHARED and each.nbytes <= 8}
    shapes: dict[tuple[tuple[int, ...], ...], str] = {}
    used: Counter[str] = Counter()
    found = []
    for stream in recorder.streams:
        begins = next((at for at, op in enumerate(stream.code) if op[0] == Op.CLUSTER_WAIT), -1) + 1 if together else 0
        shape = tuple(sorted(set(zip((op[0] for op in stream.code[begins:]), stream.positions[begins:], strict=True))))
        if shape not in shapes:
            code = [op for op in stream.code if op[0] != Op.READ or op[ACCESS] not in words or op[ITEM] in copied]
            name = _role(code)
            used[name] += 1
            shapes[shape] = name if used[name] == 1 else f"{name}_{used[name]}"
        found.append(shapes[shape])
    return found


def _with_given(roles: Sequence[str], streams: Sequence[Stream], given: GivenNames) -> list[str]:
    """The roles as the launch file calls them; warps that run other instructions still have another role."""
    called = {warp: each.name for each in given.roles for warp in each.warps}
    wanted = [(called.get(stream.warp, ""), role) for stream, role in zip(streams, roles, strict=True)]
    used: set[str] = set()
    names: dict[tuple[str, str], str] = {}
    for each in sorted(set(wanted), key=lambda each: (not each[0], wanted.index(each))):
        name = each[0] or each[1]
        number = next(n for n in count(1) if (name if n == 1 else f"{name}_{n}") not in used)
        names[each] = name if number == 1 else f"{name}_{number}"
        used.add(names[each])
    return [names[each] for each in wanted]


def _role(code: Sequence[Operation]) -> str:
    """What the agents of a role do: they load, multiply, store, or compute (arrive or access memory), or only wait.

    ``code``: without reads of a word that no copy wrote, as of the number of a warp's partition or of a tensor address.
    """
    kinds = {op[0] for op in code}
    engines = {operand(op, "engine") for op in code if op[0] in ENGINE_ACCESSES & READS_MEMORY}
    found = ["load"] if Op.TMA_LOAD in kinds else []
    found += ["mma"] if engines & IN_ORDER else []
    found += ["store"] if Engine.BULK in engines else []
    if found:
        return "_".join(found)
    if kinds & (SIGNALS | DELAYED_ARRIVALS | TOUCHES_MEMORY) - MEETINGS:
        return "compute"
    return "waiting" if kinds & WAITS_FOR_OTHERS - MEETINGS else "idle"


# tiles

TILE_FROM = "tile from "  #: what the name of a tile begins with that only the line of a copy tells apart


def tiles_of(recorder: StreamRecorder, function: Function, module: Module, given: GivenNames) -> tuple[Tile, ...]:
    """Ranges that copies write: what the launch file, else the source calls them, else by the first copy's line.

    Of a line, equal ranges are slots of one tile.
    """
    copies: dict[tuple[int, int, int], dict[CopyInto, None]] = {}
    accesses, places = list(recorder.accesses), list(recorder.barriers)
    for stream in recorder.streams:
        turns: Counter[tuple[int, int]] = Counter()
        for op, at in zip(stream.code, stream.positions, strict=True):
            if op[0] == Op.TMA_LOAD:
                access = accesses[operand(op, "access")]
                _, barrier = places[op[BARRIER]]
                turns[at, barrier] += 1
                copy = CopyInto(at, barrier, turns[at, barrier])
                copies.setdefault((access.cta, access.offset, access.nbytes), {})[copy] = None
    first = {each: next(iter(copied)).position for each, copied in copies.items()}
    found = [
        Tile(name, Space.SHARED, cta, *where) for name, *where in given.tiles for cta in {cta for cta, _, _ in first}
    ]
    _leave_out(first, found)
    if module.sources is not None:
        rest = {each: copies[each] for each in first}
        of_source = recorder.source_names or {}
        said = list(tiles_named_by_source(rest, function.body, resolver_of(module.sources), of_source))
        found += [tile for tile in said if tile.name not in {each.name for each in given.tiles}]
        _leave_out(first, found)
    found += [tile for cta in {cta for cta, _, _ in first} for tile in _of_variables(cta, first, function, found)]
    _leave_out(first, found)
    names: Counter[str] = Counter()
    taken: dict[tuple[int, int, int], None] = dict.fromkeys(sorted(first))
    while taken:
        cta, offset, nbytes = next(iter(taken))
        at = first[cta, offset, nbytes]
        slots = 0
        while (cta, offset + slots * nbytes, nbytes) in taken and first[cta, offset + slots * nbytes, nbytes] == at:
            del taken[cta, offset + slots * nbytes, nbytes]
            slots += 1
        base = f"{TILE_FROM}{source_of(function.body[at], module)}"
        names[f"{cta} {base}"] += 1
        number = names[f"{cta} {base}"]
        name = base if number == 1 else f"{base} ({number})"
        found.append(Tile(name, Space.SHARED, cta, offset, nbytes, slots))
    return tuple(sorted(found, key=lambda each: (each.cta, each.offset, each.nbytes)))


def _of_variables(
    cta: int, ranges: Mapping[tuple[int, int, int], int], function: Function, found: Sequence[Tile]
) -> Iterator[Tile]:
    """Arrays that copies of one size, and no others, fill from their beginning, by the name of the variable."""
    sizes: dict[int, set[int]] = {}
    for of, offset, nbytes in ranges:
        if of == cta:
            sizes.setdefault(nbytes, set()).add(offset)
    taken = {each.name for each in found}
    for nbytes, offsets in sorted(sizes.items()):
        others = {offset for size, each in sizes.items() if size != nbytes for offset in each}
        for each, name, inside in elements_of_variables(function.shared, offsets, nbytes, taken):
            if not any(each.offset <= offset < each.offset + each.size for offset in others):
                yield Tile(name, Space.SHARED, cta, each.offset, nbytes, len(inside))


def _leave_out(ranges: dict[tuple[int, int, int], int], tiles: Sequence[Tile]) -> None:
    """Without the ranges that begin in a tile."""
    for tile in tiles:
        end = tile.offset + tile.slots * tile.nbytes
        for each in [each for each in ranges if tile.cta == each[0] and tile.offset <= each[1] < end]:
            del ranges[each]


_REGISTER = AT["register"]


def program_of(
    name: str,
    recorder: StreamRecorder,
    initialised: dict[Place, int],
    function: Function,
    module: Module,
    launch: Launch,
    coverage: Coverage,
    cut: tuple[int, ...],
    silent: tuple[int, ...],
    words: Mapping[Place, tuple[str, int]],
) -> Program:
    """The flat program; every CTA of the cluster has the same barriers and ranges, as a multicast needs.

    ``words``: the names of barriers that are words of global memory, in one CTA more, which has no agents.
    """
    ctas = launch.together or launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
    _complete(recorder, ctas)
    packed = [_pack_registers(stream.code) for stream in recorder.streams]
    sources: dict[str, int] = {}
    lines = [
        tuple(sources.setdefault(source_of(function.body[at], module), len(sources)) for at in stream.positions)
        for stream in recorder.streams
    ]
    names = {**barrier_names(recorder, initialised, function, module, launch.names), **words}
    roles = _with_given(role_names(recorder, together=bool(words)), recorder.streams, launch.names)
    grid = launch.grid[0] * launch.grid[1] * launch.grid[2]
    agents = []
    seen: dict[tuple[int, str], int] = {}
    for stream, role in zip(recorder.streams, roles, strict=True):
        index = seen.get((stream.cta, role), 0)
        seen[stream.cta, role] = index + 1
        agents.append(Agent(stream.cta, stream.warp, stream.lanes, role, index))
    return Program(
        name=name,
        params={},
        agents=tuple(agents),
        barriers=tuple(Barrier(place[0], *names[place]) for place in recorder.barriers),
        accesses=tuple(recorder.accesses),
        tiles=tiles_of(recorder, function, module, launch.names),
        code=tuple(tuple(code) for code, _ in packed),
        lines=tuple(lines),
        sources=tuple(sources) or ("",),
        named_barriers=tuple(recorder.named),
        registers=max((width for _, width in packed), default=0),
        ctas=ctas + bool(words),
        grid=max(grid // ctas, 1),
        smem_bytes=function.shared_bytes(launch.dynamic_shared),
        notes=(),
        launch_registers=_launch_registers(agents, [code for code, _ in packed], function, launch),
        architecture=_architecture(module),
        coverage=coverage,
        cut=cut,
        silent=silent,
    )


def _architecture(module: Module) -> int:
    """100 of ``.target sm_100a``."""
    found = re.match(r"sm_(\d{1,3})", next(iter(module.target), ""))
    return int(found[1]) if found else 0


def _launch_registers(
    agents: Sequence[Agent], code: Sequence[Sequence[Operation]], function: Function, launch: Launch
) -> int:
    """Registers of a thread at the launch, 0 if not known: as the launch file or ``.maxnreg`` says.

    Else they are bounded by ``.maxntid`` and ``.minnctapersm`` (PTX ISA, "Performance-Tuning Directives"): if the
    requests of ``setmaxnreg`` need more than this bound, the bound is what they do not get.
    """
    if launch.registers:
        return launch.registers
    said = function.directives
    threads = prod(said.get("maxntid") or said.get("reqntid") or launch.block)
    bound = register_bound(-(-threads // WARP), *said.get("minnctapersm", ())[:1])
    if "maxnreg" in said:
        return min(said["maxnreg"][0], bound)
    needed = RegisterPools(agents, code, 0)
    return bound if any(needed.requests) and needed.launched > bound else 0


def _complete(recorder: StreamRecorder, ctas: int) -> None:
    """Add the barriers and ranges of the other CTAs at the same places, which names and multicasts refer to."""
    if ctas == 1:
        return
    for cta, offset in list(recorder.barriers):
        for rank in range(ctas if cta < ctas else 0):
            recorder.barrier((rank, offset))
    copies = [op for stream in recorder.streams for op in stream.code if op[0] == Op.TMA_LOAD]
    loads = {op[ASYNC_ACCESS] for op in copies if op[COPY_MASK]}
    for number, access in enumerate(list(recorder.accesses)):
        if number in loads:
            for rank in range(ctas):
                recorder.access(Space(access.space), rank, access.offset, access.nbytes)


def _pack_registers(code: Sequence[Operation]) -> tuple[list[Operation], int]:
    """The results of try_waits in as few registers as are live concurrently; -1 for those that nothing waits on."""
    last = {op[_REGISTER[op[0]]]: pc for pc, op in enumerate(code) if op[0] in READS_REGISTER}
    free: list[int] = []
    held: dict[int, int] = {}
    width = 0
    made: list[Operation] = []
    for pc, op in enumerate(code):
        at = _REGISTER.get(op[0])
        if at is None or op[at] < 0:
            made.append(op)
            continue
        asked = op[at]
        if op[0] in WRITES_REGISTER:
            if asked not in last:
                made.append(with_operand(op, "register", -1))
                continue
            if not free:
                free.append(width)
                width += 1
            held[asked] = free.pop(0)
            made.append(with_operand(op, "register", held[asked]))
            continue
        made.append(with_operand(op, "register", held.get(asked, -1)))
        if last.get(asked) == pc and asked in held:
            free.append(held.pop(asked))
            free.sort()
    return made, width
