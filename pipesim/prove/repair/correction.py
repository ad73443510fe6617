"""A likely correction: the single change of the protocol with which it is proved. Where none is, nothing is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from pipesim.explain.no_supplier import is_unserved
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.groups import CORRECTABLE, ON_NAMED_BARRIER
from pipesim.model.ops import operand
from pipesim.model.program import Program
from pipesim.prove.any_size.forks import holds
from pipesim.prove.check import check
from pipesim.prove.counterexample.past import core
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.applicable import fences, repairs
from pipesim.prove.repair.edits import Repair, RepairKind, place_of, repaired

MOST = 2  #: corrections of one finding
MOST_TRIED = 20_000  #: operations of all small programs that are tried for one finding
MOST_ASKED = 60_000  #: operations of the program that was asked for


@dataclass(frozen=True)
class Correction:
    """What to change, in a sentence, and the author's line of it ("" where there is none)."""

    repair: Repair
    said: str
    line: str


def corrections(
    program: Program, refuted: Refutation, asked: Program, unit: Callable[[int, int], None] | None = None
) -> tuple[Correction, ...]:
    """Single changes with which both the program that shows the fault and the one that was asked for are proved.

    At most :data:`MOST`, the plainest first; () if there is none, or if the programs are too large to try. ``unit`` is
    called before each change that is tried, with how many were, and 0: it is not known how many there will be.
    """
    if sum(map(len, asked.code)) > MOST_ASKED:
        return ()
    left = MOST_TRIED
    found: list[Correction] = []
    tried: set[object] = set()
    for repair in _candidates(program, refuted, asked):
        small = repaired(program, repair)
        if small is None or small.code in tried:
            continue
        if unit is not None:
            unit(len(tried), 0)
        tried.add(small.code)
        left -= sum(map(len, small.code))
        if left < 0:
            break
        if not holds(small):
            continue
        large = repaired(asked, repair)
        if large is None or check(large, max_states=1).verdict is not Verdict.PROVED:
            continue
        found.append(Correction(repair, _said(repair), place_of(program, repair)))
        if len(found) == MOST:
            break
    return tuple(found)


def _candidates(program: Program, refuted: Refutation, asked: Program) -> Iterator[Repair]:
    """What may correct it: of a fault that only a fence corrects, fences; nothing that ends a wait that no operation
    serves by asking for another phase, and nothing of pipelines that overlap, whose barriers are the wrong ones.
    """
    fault = refuted.fault
    if program.overlaps:
        return iter(())
    if fault is not None and fault.kind is FaultKind.READ_NOT_FENCED:
        return fences(program.agents[fault.other_agent].role, program.agents[fault.agent].role)
    blocked = refuted.deadlock.blocked if refuted.deadlock is not None else ()
    unserved = any(is_unserved(program, each, asked) for each in blocked)
    candidates = repairs(program, groups_of(program, refuted))
    return (each for each in candidates if each.kind not in _OTHER_PHASE or not unserved)


_OTHER_PHASE = frozenset({RepairKind.PHASES, RepairKind.STAGES, RepairKind.LAPS})


def groups_of(program: Program, refuted: Refutation) -> frozenset[str]:
    """The groups of barriers that a failure is about: those waited for, or which guard the bytes that are used."""
    fault, found = refuted.fault, refuted.deadlock
    if found is not None:
        causes = core(found) if any(b.missed >= 0 for b in found.blocked) else {b.agent for b in found.blocked}
        named = {b.barrier.partition("[")[0] for b in found.blocked if b.agent in causes}
        return frozenset(name.removeprefix("named barrier ") for name in named)
    if fault is None:
        return frozenset()
    groups = {program.barriers[fault.barrier].name} if fault.barrier >= 0 else set()
    op = program.code[fault.agent][fault.pc]
    if op[0] in ON_NAMED_BARRIER:
        return frozenset({str(program.named_barriers[operand(op, "named_barrier")][1])})
    agents = {agent for agent in (fault.agent, fault.other_agent) if agent >= 0}
    groups |= {
        program.barriers[operand(op, "barrier")].name
        for agent in agents
        for op in program.code[agent]
        if op[0] in CORRECTABLE
    }
    return frozenset(groups)


def _said(repair: Repair) -> str:
    """The change in one sentence."""
    role, group, value, was = repair.role, repair.group, repair.value, repair.was
    match repair.kind:
        case RepairKind.COUNT | RepairKind.EXPECT | RepairKind.MASK | RepairKind.THREADS:
            return _said_of_number(repair)
        case RepairKind.PHASES:
            return f"{role} waits for {group} with parity {value} in the first lap, alternating in each later lap"
        case RepairKind.STAGES:
            return f"{role} waits for {group} stage by stage, with parity {value} in the first lap"
        case RepairKind.ARRIVE:
            return f"{role} arrives on {group} whenever it has finished with a stage"
        case RepairKind.STAY:
            return f"{role} arrives on {group} without dropping out of it"
        case RepairKind.FENCE:
            when = "waits, before it writes" if value else "reads, before it signals any other agent"
            return f"{role or 'every role'} executes fence.proxy.async after its {when}"
        case RepairKind.LAPS:
            return "every role flips the parity of its waits exactly once in each lap of the stages"
        case RepairKind.DEPTH:
            left = f"no more than {value:,}" if value else "none"
            return f"{role} leaves {left} of its groups pending when it waits for them, instead of {was:,}"
        case RepairKind.DROP:
            which = "its second arrive" if value else "its arrive"
            return f"{role} omits {which} on {group}"
        case RepairKind.LATER:
            return f"{role} arrives on {group} only after its reads and writes of the stage"
        case RepairKind.ACQUIRE:
            return f"{role} waits for {group}, with parity {value} in the first lap, before it uses a stage"
        case _:
            assert_never(repair.kind)


def _said_of_number(repair: Repair) -> str:
    """A change of one number in a sentence."""
    role, group, value, was = repair.role, repair.group, repair.value, repair.was
    if repair.kind is RepairKind.COUNT:
        return f"initialise {group} with a count of {value:,} instead of {was:,}"
    if repair.kind is RepairKind.EXPECT:
        return f"{role} expects {value:,} bytes on {group} instead of {was:,}, the number that it copies"
    if repair.kind is RepairKind.MASK:
        return f"{role} multicasts on {group} to the CTAs of mask {value:#b} instead of {was:#b}"
    return f"{value:,} threads at named barrier {group} instead of {was:,}"
