"""What is known of what the CTAs of a launch do to global memory: races, what a schedule has to order, what is open."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipesim.findings.catalog import MEMORY_ORDER
from pipesim.model.coverage import ON_GLOBAL, Assumed, Assumption, Coverage, Forbidden, NotJudged, NotJudgedKind
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Op, Space
from pipesim.model.program import Program
from pipesim.model.tables import Tile
from pipesim.prove.refutation import Refutation
from pipesim.ptx.coverage import MEMORY_OF_ONE, kind_on_global, place_in, unfenced_maps
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emulate.global_memory.global_accesses import strength_of
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import Extraction, emit
from pipesim.ptx.flow.opcodes import may_touch_global
from pipesim.ptx.prepare import Kernel, on_global_memory


@dataclass(frozen=True)
class GlobalRace:
    """Two clusters access the same bytes: the positions of both accesses, and the numbers of both CTAs in the grid.

    The first one writes, which this ``agent`` of its cluster does; ``what`` are the bytes, in words. ``lost``: it
    stores there what it has made of a load, by accesses that are strong, so that it is not a data race.
    """

    position: int
    other: int
    cta: int
    other_cta: int
    what: str
    both_write: bool
    agent: int
    lost: bool = False


@dataclass(frozen=True)
class MeetingInside:
    """Bytes that several warps of one cluster access, the cluster of this CTA; ``positions`` of what accesses them.

    They are in the memory of this ``name`` at address ``base``. ``everywhere``: in all clusters that do the same it is
    the same. ``told``: the warps may order them by words of global memory.
    """

    cta: int
    name: str
    base: int
    ranges: tuple[tuple[int, int], ...]
    positions: frozenset[int]
    everywhere: bool
    told: bool = False


@dataclass(frozen=True)
class GridMemory:
    """What is known of what the clusters of a launch do to global memory.

    ``left_open``: by position, why it is open. ``equal``: stores of one value by several clusters to the same
    bytes. ``in_step``: accesses of lanes to what others of their warp have accessed. ``apart``: whether several
    memories are accessed, one of them written, which are taken to be different. ``inside``: what a schedule of one
    cluster has to order. ``cut``: why nothing is known that is not in ``races``, "" if it is. ``unfenced``: copies by
    tensor maps that the kernel has changed, as in ``MapFences``.
    """

    ctas: int
    races: tuple[GlobalRace, ...] = ()
    left_open: Mapping[int, str] = field(default_factory=dict)
    equal: frozenset[int] = frozenset()
    in_step: frozenset[int] = frozenset()
    inside: tuple[MeetingInside, ...] = ()
    apart: bool = False
    cut: str = ""
    unfenced: Mapping[int, tuple[int, int, str]] = field(default_factory=dict)


DATA = "data decides where"
OUTSIDE = "its addresses in all CTAs are not in one buffer of the launch"
CHANGED = "the kernel changes tensor maps"
BOX = "its box is not known"
ORDER = "other CTAs may access the same bytes, and what orders it is not followed"
LOST = f"an update that is not atomic: {ORDER}"
MAYBE = "it may not happen"
MANY = "too many places"
CONSTANT = "a load of constant data, of bytes that this launch writes"
SCOPE = "its scope is a CTA, and other CTAs of the cluster access the same bytes"
INSIDE = "other warps, or copies under way, access the same bytes, and what orders it is not followed"


def may_order(found: GridMemory) -> bool:
    """Whether synchronisation of the kernel may order what warps or CTAs do to the same bytes."""
    return bool(found.inside or found.cut or not {ORDER, LOST, SCOPE, INSIDE}.isdisjoint(found.left_open.values()))


def with_accesses(kernel: Kernel, met: MeetingInside) -> Extraction:
    """The kernel in that CTA, as a program that has the accesses to those bytes of global memory as operations."""
    made = on_global_memory(kernel)
    made.code.global_operations, made.code.global_base = met.ranges, met.base
    made = replace(made, launch=replace(made.launch, cta=met.cta)) if met.cta else made
    found = emit(made, emulate(made))
    name = re.sub(r"\W", "_", met.name.rpartition("(")[2].rstrip(")"))
    tile = Tile(name, Space.GLOBAL, 0, 0, met.ranges[-1][1] - met.base, 1)
    return replace(found, program=replace(found.program, tiles=(*found.program.tiles, tile)))


#: What is said of an order that is missing. That a reader may come first shows as a race.
_OF_ORDER = frozenset({FaultKind.RACE, FaultKind.WRONG_ITEM, *MEMORY_ORDER})


def is_on_global_memory(program: Program, found: Refutation) -> bool:
    """Whether a finding is about an access to global memory."""
    fault = found.fault
    if fault is None or fault.kind not in _OF_ORDER or fault.pc >= len(program.code[fault.agent]):
        return False
    accesses = program.accesses_of(program.code[fault.agent][fault.pc])
    return any(program.accesses[each].space is Space.GLOBAL for each in accesses)


def with_global_memory(program: Program, kernel: Kernel, found: GridMemory) -> Program:
    """The program of a kernel of which this is known: its coverage, and for each race an operation at its line."""
    code, lines, sources = list(program.code), list(program.lines), list(program.sources)
    for each in found.races:
        where = source_of(kernel.function.body[each.position], kernel.module)
        sources += [] if where in sources else [where]
        for agent in {min(each.agent, len(code) - 1), *(n for n, ops in enumerate(code) if not ops)}:
            code[agent] = (*code[agent], (int(Op.WORK), 0))
            lines[agent] = (*lines[agent], sources.index(where))
    return replace(
        program,
        code=tuple(code),
        lines=tuple(lines),
        sources=tuple(sources),
        coverage=_coverage(program.coverage, kernel, found),
    )


def _coverage(coverage: Coverage, kernel: Kernel, found: GridMemory) -> Coverage:
    forbidden = [*(_forbidden(kernel, each) for each in found.races), *unfenced_maps(kernel, found.unfenced)]
    forbidden = [each for each in forbidden if each not in coverage.forbidden]
    assumed = [Assumed(Assumption.BUFFERS, MEMORY_OF_ONE)]
    assumed = assumed if found.apart and not found.cut and assumed[0] not in coverage.assumed else []
    for position in sorted(found.equal):
        what = f"warps or lanes that store to the same bytes at {place_in(kernel, position)} store the same"
        assumed.append(Assumed(Assumption.EQUAL_STORES, what))
    for position in sorted(found.in_step):
        what = "a lane accesses what others of its warp have accessed before"
        assumed.append(Assumed(Assumption.LANES, what, (place_in(kernel, position).partition(" ")[0],)))
    judged = any(each.kind in ON_GLOBAL for each in coverage.not_judged) and not found.cut
    return replace(
        coverage,
        forbidden=(*coverage.forbidden, *forbidden),
        assumed=(*coverage.assumed, *assumed),
        not_judged=_not_judged(coverage, kernel, found),
        on_global=(_said(found),) if judged and not found.races else (),
    )


def _said(found: GridMemory) -> str:
    """``disjoint across 4,096 CTAs``."""
    return f"disjoint across {found.ctas:,} CTAs" if found.ctas > 1 else "one CTA alone uses it"


def _forbidden(kernel: Kernel, race: GlobalRace) -> Forbidden:
    each = kernel.function.body[race.position]
    there = "" if race.other == race.position else f" at {place_in(kernel, race.other)}"
    who = f"CTA {race.cta:,} and CTA {race.other_cta:,}{there} both write {race.what}"
    if not race.both_write:
        who = f"CTA {race.cta:,} writes {race.what}, which CTA {race.other_cta:,} reads{there}"
    if race.lost:
        writes = f"what CTA {race.other_cta:,} writes{there} in between may be lost"
        who = f"CTA {race.cta:,} loads {race.what} and stores what it made of them, which is not atomic: {writes}"
    both = [strength_of(kernel.function.body[at]) for at in (race.position, race.other)]
    scope = next((one.scope for one in both if one.is_narrow and all(one.order for one in both)), None)
    who += f", at {scope.name.lower()} scope, which does not include both" if scope is not None else ""
    return Forbidden(FaultKind.GLOBAL_RACE, place_in(kernel, race.position), each.mnemonic, who, agent=race.agent)


def _not_judged(coverage: Coverage, kernel: Kernel, found: GridMemory) -> tuple[NotJudged, ...]:
    """What is left open of global memory, with its places and why."""
    if found.cut:
        return tuple(
            replace(each, names=(found.cut,)) if each.kind in ON_GLOBAL else each for each in coverage.not_judged
        )
    why = dict(found.left_open)
    for each in kernel.function.body:
        if not may_touch_global(each) and kind_on_global(each) in ON_GLOBAL:
            why.setdefault(each.position, "not followed")
    named: dict[NotJudgedKind, dict[str, None]] = defaultdict(dict)
    count: dict[NotJudgedKind, int] = defaultdict(int)
    for position, reason in sorted(why.items()):
        kind = kind_on_global(kernel.function.body[position])
        if kind is not None:
            count[kind] += 1
            named[kind][f"{place_in(kernel, position).partition(' ')[0]}: {reason}"] = None
    others = [each for each in coverage.not_judged if each.kind not in ON_GLOBAL]
    return (*(NotJudged(kind, count[kind], tuple(named[kind])) for kind in ON_GLOBAL if count[kind]), *others)
