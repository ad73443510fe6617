"""A broken rule in words: which agent, which operation, on what, and the two numbers that disagree."""

from __future__ import annotations

from pipesim.explain.causes import own_barriers
from pipesim.explain.operation_words import operation_in_words
from pipesim.findings.catalog import MEMORY_ORDER, of_fault
from pipesim.findings.words import meanwhile, previous_use
from pipesim.model.finding import Fault, FaultKind, FaultReport
from pipesim.model.program import Program


def report_faults(program: Program, faults: tuple[Fault, ...]) -> tuple[FaultReport, ...]:
    """The faults as reports print them, each (kind, agent, operation) once, in order."""
    return tuple(dict.fromkeys(report_fault(program, fault) for fault in faults))


def report_fault(program: Program, fault: Fault) -> FaultReport:
    """One fault in words."""
    known = of_fault(fault.kind)
    agent = program.agent_name(fault.agent)
    where = f" on {program.barrier_name(fault.barrier)}" if fault.barrier >= 0 else ""
    other = ""
    if fault.other_agent >= 0:
        other = previous_use(program, fault) if fault.kind in MEMORY_ORDER else meanwhile(program, fault)
    return FaultReport(
        fault.kind,
        f"{agent}: {known.title}{where}{known.detail(program, fault)}{other}",
        agent,
        operation_in_words(program, program.code[fault.agent][fault.pc]),
        program.line(fault.agent, fault.pc),
        _correction(program, fault),
    )


def _correction(program: Program, fault: Fault) -> str:
    """What corrects it: for pipelines that overlap barriers of their own, which does not depend on the kind."""
    if program.overlaps and fault.kind is not FaultKind.NOT_INITIALISED:
        return own_barriers(program)
    return of_fault(fault.kind).correction(program, fault)
