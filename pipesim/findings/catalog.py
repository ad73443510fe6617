"""Every kind of finding and warning, in the order in which they are listed: a new one is a line here.

A broken rule in words says which agent, which operation, on what, and the two numbers that disagree.
"""

from pipesim.explain.causes import own_barriers
from pipesim.explain.operation_words import operation_in_words
from pipesim.findings.barriers.arrive_count import ARRIVE_COUNT
from pipesim.findings.barriers.deadlock import DEADLOCK
from pipesim.findings.barriers.init_count import INIT_COUNT
from pipesim.findings.barriers.inval_pending import INVAL_PENDING
from pipesim.findings.barriers.invalidated import INVALIDATED
from pipesim.findings.barriers.lapped_waiter import LAPPED_WAITER
from pipesim.findings.barriers.no_complete import NO_COMPLETE
from pipesim.findings.barriers.not_initialised import NOT_INITIALISED
from pipesim.findings.barriers.over_arrival import OVER_ARRIVAL
from pipesim.findings.barriers.reinitialised import REINITIALISED
from pipesim.findings.barriers.stale_state import STALE_STATE
from pipesim.findings.barriers.stale_wait import STALE_WAIT
from pipesim.findings.counts.barrier_overrun import BARRIER_OVERRUN
from pipesim.findings.counts.barrier_threads import BARRIER_THREADS
from pipesim.findings.counts.cluster_arrive import CLUSTER_ARRIVE
from pipesim.findings.counts.exited_cta import EXITED_CTA
from pipesim.findings.counts.illegal_operand import ILLEGAL_OPERAND
from pipesim.findings.counts.too_many_registers import TOO_MANY_REGISTERS
from pipesim.findings.counts.tx_edge import TX_EDGE
from pipesim.findings.counts.tx_range import TX_RANGE
from pipesim.findings.counts.under_way_at_exit import UNDER_WAY_AT_EXIT
from pipesim.findings.counts.warp_shape import WARP_SHAPE
from pipesim.findings.kind import Evidence, FindingKind, said
from pipesim.findings.memory.absent_cta import ABSENT_CTA
from pipesim.findings.memory.before_grid_wait import BEFORE_GRID_WAIT
from pipesim.findings.memory.global_race import GLOBAL_RACE
from pipesim.findings.memory.lanes_apart import LANES_APART
from pipesim.findings.memory.missing_proxy_fence import MISSING_PROXY_FENCE
from pipesim.findings.memory.narrow_scope import NARROW_SCOPE
from pipesim.findings.memory.race import RACE
from pipesim.findings.memory.read_before_wait import READ_BEFORE_WAIT
from pipesim.findings.memory.read_not_fenced import READ_NOT_FENCED
from pipesim.findings.memory.tensor_allocation import TENSOR_ALLOCATION
from pipesim.findings.memory.tensor_fence import TENSOR_FENCE
from pipesim.findings.memory.tensor_map_fence import TENSOR_MAP_FENCE
from pipesim.findings.memory.two_outcomes import TWO_OUTCOMES
from pipesim.findings.memory.uninitialised_read import UNINITIALISED_READ
from pipesim.findings.memory.unpublished_init import UNPUBLISHED_INIT
from pipesim.findings.memory.weak_order import WEAK_ORDER
from pipesim.findings.memory.wgmma_fence import WGMMA_FENCE
from pipesim.findings.memory.wrong_item import WRONG_ITEM
from pipesim.findings.warnings.cp_async_count import CP_ASYNC_COUNT
from pipesim.findings.warnings.register_requests import REGISTER_REQUESTS
from pipesim.findings.warnings.unread_data import UNREAD_DATA
from pipesim.findings.warnings.unscoped_arrive import UNSCOPED_ARRIVE
from pipesim.findings.words import meanwhile, previous_use, what_is_forbidden
from pipesim.model.finding import Fault, FaultKind, FaultReport
from pipesim.model.program import Program

KINDS: tuple[FindingKind, ...] = (
    DEADLOCK,
    LAPPED_WAITER,
    OVER_ARRIVAL,
    NOT_INITIALISED,
    REINITIALISED,
    INVALIDATED,
    INVAL_PENDING,
    INIT_COUNT,
    ARRIVE_COUNT,
    NO_COMPLETE,
    STALE_STATE,
    STALE_WAIT,
    TX_RANGE,
    TX_EDGE,
    EXITED_CTA,
    CLUSTER_ARRIVE,
    BARRIER_THREADS,
    BARRIER_OVERRUN,
    RACE,
    UNINITIALISED_READ,
    WRONG_ITEM,
    TWO_OUTCOMES,
    LANES_APART,
    UNDER_WAY_AT_EXIT,
    WARP_SHAPE,
    TENSOR_ALLOCATION,
    READ_BEFORE_WAIT,
    ILLEGAL_OPERAND,
    WGMMA_FENCE,
    TENSOR_MAP_FENCE,
    BEFORE_GRID_WAIT,
    GLOBAL_RACE,
    TOO_MANY_REGISTERS,
    MISSING_PROXY_FENCE,
    READ_NOT_FENCED,
    TENSOR_FENCE,
    WEAK_ORDER,
    NARROW_SCOPE,
    ABSENT_CTA,
    UNPUBLISHED_INIT,
    UNREAD_DATA,
    UNSCOPED_ARRIVE,
    REGISTER_REQUESTS,
    CP_ASYNC_COUNT,
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
