"""What a proof without the optional rules rests on, and what it leaves as notes (docs/memory-order.md).

One more run, of the same program under every rule, shows both. It follows one schedule: where the run does not
represent the others, or is not followed to its end, what cannot be excluded is assumed.
"""

from __future__ import annotations

from pipesim.findings.catalog import of_fault
from pipesim.model.finding import Advisory, Fault, FaultKind
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.model.strictness import STRICTEST, Strictness
from pipesim.prove.any_size.skip_laps import LONG, accelerated
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.memory_order.may_fail import inits_may_be_unfenced, reads_may_be_unfenced
from pipesim.prove.memory_order.order import MemoryOrder

MOST = 20_000  #: operations that are followed


def rests_on_reads(program: Program, *, by_search: bool = False) -> bool:
    """True if a write through one proxy may follow a read through the other without a fence, so that it is assumed
    that reads have ended when their agent next arrives anywhere. ``by_search``: no one run represents the others.
    """
    if program.strictness.proxies or not reads_may_be_unfenced(program):
        return False
    if by_search:
        return True
    strict = program.judged(Strictness(proxies=True))
    if sum(map(len, program.code)) >= LONG and accelerated(strict, MemoryOrder(strict)) is not None:
        return False
    order = MemoryOrder(strict)
    run = CanonicalRun(strict, [order])
    while not run.over and sum(run.state.pcs) < MOST:
        run.round()
        if any(fault.kind is FaultKind.READ_NOT_FENCED for fault in order.faults):
            return True
    return not run.finished


def advisories(program: Program) -> tuple[Advisory, ...]:
    """The same in words, each role and line once."""
    found: dict[tuple[str, str], Advisory] = {}
    for fault in faults_under_rules(program):
        agent, pc = (fault.agent, fault.pc) if fault.other_agent < 0 else (fault.other_agent, fault.other_pc)
        op, role, line = program.code[agent][pc], program.agents[agent].role, program.line(agent, pc)
        named = op[0] == Op.INIT
        place = program.barriers[operand(op, "barrier")].name if named else program.access_name(operand(op, "access"))
        claim = of_fault(fault.kind).note.format(role=role, place=place)
        found.setdefault((role, line), Advisory(role, claim, line, fault.kind.name.lower()))
    return tuple(found.values())


def faults_under_rules(program: Program) -> tuple[Fault, ...]:
    """What would be a fault under the rules for inits and for tensor memory, and is not in ``program``."""
    unfenced = inits_may_be_unfenced(program)
    if not unfenced and not program.reads_tensor_memory:
        return ()
    strict = program.judged(STRICTEST)
    order = MemoryOrder(strict)
    run = CanonicalRun(strict, [order] if unfenced else [])
    while not run.over and sum(run.state.pcs) < MOST:
        run.round()
    found = (*run.faults, *order.faults)
    return tuple(fault for fault in dict.fromkeys(found) if of_fault(fault.kind).note)
