"""What is known of global memory as part of a program's coverage: findings, what is known, and what is left open."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from pipesim.answers.global_memory.grid_memory import GlobalRace, GridMemory
from pipesim.model.coverage import ON_GLOBAL, Assumed, Assumption, Coverage, Forbidden, NotJudged, NotJudgedKind
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.ptx.coverage import kind_on_global, place_in
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emulate.global_accesses import strength_of
from pipesim.ptx.emulation import Kernel
from pipesim.ptx.flow.opcodes import may_touch_global


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
    forbidden = [_forbidden(kernel, each) for each in found.races]
    assumed = [Assumed(Assumption.BUFFERS, "what the kernel writes is the memory of one pointer or tensor map alone")]
    assumed = assumed if found.apart and not found.cut else []
    for position in sorted(found.equal):
        what = f"warps or lanes that store to the same bytes at {place_in(kernel, position)} store the same"
        assumed.append(Assumed(Assumption.EQUAL_STORES, what))
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
