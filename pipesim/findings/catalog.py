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
    "pipesim.findings.barriers.deadlock",
    "pipesim.findings.barriers.lapped_waiter",
    "pipesim.findings.barriers.over_arrival",
    "pipesim.findings.barriers.not_initialised",
    "pipesim.findings.barriers.reinitialised",
    "pipesim.findings.barriers.invalidated",
    "pipesim.findings.barriers.inval_pending",
    "pipesim.findings.barriers.init_count",
    "pipesim.findings.barriers.arrive_count",
    "pipesim.findings.barriers.no_complete",
    "pipesim.findings.barriers.stale_state",
    "pipesim.findings.barriers.stale_wait",
    "pipesim.findings.counts.tx_range",
    "pipesim.findings.counts.tx_edge",
    "pipesim.findings.counts.exited_cta",
    "pipesim.findings.counts.cluster_arrive",
    "pipesim.findings.counts.barrier_threads",
    "pipesim.findings.counts.barrier_overrun",
    "pipesim.findings.memory.race",
    "pipesim.findings.memory.uninitialised_read",
    "pipesim.findings.memory.wrong_item",
    "pipesim.findings.memory.two_outcomes",
    "pipesim.findings.memory.lanes_apart",
    "pipesim.findings.counts.under_way_at_exit",
    "pipesim.findings.counts.warp_shape",
    "pipesim.findings.memory.tensor_allocation",
    "pipesim.findings.memory.read_before_wait",
    "pipesim.findings.counts.illegal_operand",
    "pipesim.findings.memory.wgmma_fence",
    "pipesim.findings.memory.tensor_map_fence",
    "pipesim.findings.memory.before_grid_wait",
    "pipesim.findings.memory.global_race",
    "pipesim.findings.counts.too_many_registers",
    "pipesim.findings.memory.missing_proxy_fence",
    "pipesim.findings.memory.read_not_fenced",
    "pipesim.findings.memory.tensor_fence",
    "pipesim.findings.memory.weak_order",
    "pipesim.findings.memory.narrow_scope",
    "pipesim.findings.memory.absent_cta",
    "pipesim.findings.memory.unpublished_init",
    "pipesim.findings.warnings.unread_data",
    "pipesim.findings.warnings.unscoped_arrive",
    "pipesim.findings.warnings.register_requests",
    "pipesim.findings.warnings.cp_async_count",
)
KINDS: tuple[FindingKind, ...] = tuple(getattr(import_module(file), file.rpartition(".")[2].upper()) for file in _FILES)
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
