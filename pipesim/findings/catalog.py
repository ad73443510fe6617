"""Every kind of finding and warning, in the order in which they are listed: a new one is a line here.

A broken rule in words says which agent, which operation, on what, and the two numbers that disagree.
"""

from importlib import import_module

from pipesim.explain.causes import own_barriers
from pipesim.explain.operation_words import operation_in_words
from pipesim.findings.kind import Evidence, FindingKind, said
from pipesim.findings.words import meanwhile, previous_use, what_is_forbidden
from pipesim.model.finding import Fault, FaultKind, FaultReport
from pipesim.model.program import Program

_FILES = (
    "barriers.deadlock",
    "barriers.lapped_waiter",
    "barriers.over_arrival",
    "barriers.not_initialised",
    "barriers.reinitialised",
    "barriers.invalidated",
    "barriers.inval_pending",
    "barriers.init_count",
    "barriers.arrive_count",
    "barriers.no_complete",
    "barriers.stale_state",
    "barriers.stale_wait",
    "counts.tx_range",
    "counts.tx_edge",
    "counts.exited_cta",
    "counts.cluster_arrive",
    "counts.barrier_threads",
    "counts.barrier_overrun",
    "memory.race",
    "memory.uninitialised_read",
    "memory.wrong_item",
    "memory.two_outcomes",
    "memory.lanes_apart",
    "counts.under_way_at_exit",
    "counts.warp_shape",
    "memory.tensor_allocation",
    "memory.read_before_wait",
    "counts.illegal_operand",
    "memory.wgmma_fence",
    "memory.tensor_map_fence",
    "memory.before_grid_wait",
    "memory.global_race",
    "counts.too_many_registers",
    "memory.missing_proxy_fence",
    "memory.read_not_fenced",
    "memory.tensor_fence",
    "memory.weak_order",
    "memory.narrow_scope",
    "memory.absent_cta",
    "memory.unpublished_init",
    "warnings.unread_data",
    "warnings.unscoped_arrive",
    "warnings.register_requests",
    "warnings.cp_async_count",
)
KINDS: tuple[FindingKind, ...] = tuple(
    getattr(import_module(f"pipesim.findings.{file}"), file.partition(".")[2].upper()) for file in _FILES
)
BY_NAME = {kind.name: kind for kind in KINDS}
_BY_FAULT = {kind.kind: kind for kind in KINDS if isinstance(kind.kind, FaultKind)}


def of_fault(kind: FaultKind) -> FindingKind:
    """What is known about a kind of fault."""
    return _BY_FAULT[kind]


def seen_in(*places: Evidence) -> frozenset[FaultKind]:
    """The kinds of fault that are seen in one of these places."""
    return frozenset(fault for fault, known in _BY_FAULT.items() if known.evidence in places)


CAUSES_THEMSELVES = frozenset(fault for fault, known in _BY_FAULT.items() if known.causes_itself)
CONCERN_INITS = frozenset(fault for fault, known in _BY_FAULT.items() if known.concerns_init)
MEMORY_ORDER = seen_in(Evidence.MEMORY_MODEL)
_SEEN_IN_NO_MOVE = Evidence.RUN, Evidence.ALL_SCHEDULES, Evidence.LANES, Evidence.CODE
NO_MOVE_SHOWS = MEMORY_ORDER | seen_in(*_SEEN_IN_NO_MOVE)


def report_faults(program: Program, faults: tuple[Fault, ...]) -> tuple[FaultReport, ...]:
    """The faults as reports print them, each (kind, agent, operation) once, in order."""
    return tuple(dict.fromkeys(report_fault(program, fault) for fault in faults))


def report_fault(program: Program, fault: Fault) -> FaultReport:
    """One fault in words."""
    known = of_fault(fault.kind)
    agent = program.agent_name(fault.agent)
    where = f" on {program.barrier_name(fault.barrier)}" if fault.barrier >= 0 else ""
    other = ""
    if fault.other_agent >= 0 and known.evidence is not Evidence.RUN:
        other = previous_use(program, fault) if fault.kind in MEMORY_ORDER else meanwhile(program, fault)
    operation = operation_in_words(program, program.code[fault.agent][fault.pc])
    line = program.line(fault.agent, fault.pc)
    if known.detail is what_is_forbidden:
        forbidden = program.coverage.forbidden[fault.found]
        operation, line = forbidden.instruction, forbidden.line
    if fault.kind is FaultKind.BEFORE_GRID_WAIT:
        access = program.coverage.dependent[fault.found]
        operation, line = access.instruction, access.line
    claim = f"{agent}: {known.title}{where}{said(known.detail, program, fault)}{other}"
    other_line = program.line(fault.other_agent, fault.other_pc) if fault.other_agent >= 0 <= fault.other_pc else ""
    return FaultReport(fault.kind, claim, agent, operation, line, _correction(program, fault), other_line)


def _correction(program: Program, fault: Fault) -> str:
    """What corrects it: for pipelines that overlap barriers of their own, which does not depend on the kind."""
    if program.overlaps and fault.kind is not FaultKind.NOT_INITIALISED:
        return own_barriers(program)
    return said(of_fault(fault.kind).correction, program, fault)
