"""Whether memory order can be wrong in a program at all: decided from its operations, without a run.

Nearly every program keeps a discipline under which nothing can: no operation is relaxed or too narrow, every thread
fences what it has written for the other proxy before it lets any agent know, every init is fenced before it is used,
and who issues a copy arrives just before it. Such a program needs no second look; any other gets one.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from pipesim.model.coverage import Assumption
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault
from pipesim.model.groups import (
    ACCESS,
    ACCESSES,
    ASYNC_ACCESS,
    ASYNC_BYTES,
    BARRIER,
    COPY_MASK,
    ENGINE,
    ENGINE_ACCESSES,
    EXPECT,
    FENCE,
    HANDS_ON,
    LEARNS_NOTHING,
    MAY_ACQUIRE,
    MAY_RELEASE,
    PARITY_TRIES,
    SKIP,
    TOUCHES_MEMORY,
    WRITES_MEMORY,
)
from pipesim.model.moves import Move, run_canonically
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, operand, order_of, scope_of
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Refutation, is_unsure

# Whether the warps of a warp group may rely on a wgmma for the order of their own accesses, which it does not give.
#
# A wgmma of four warps cannot end before each has issued it, so whatever a warp does before it occurs before the wait
# of another. But neither the wgmma nor its wait is a release or an acquire (PTX ISA, "Asynchronous warpgroup-level
# matrix instructions"): what a warp has written with ``st`` before is ordered for the others by a barrier alone.


class _Cells(NamedTuple):
    """Cells that an agent touches in some way: those that it writes, and those that it reads."""

    written: set[int]
    read: set[int]

    def conflicts(self, other: "_Cells") -> bool:
        """True if a cell is in both, and one of the two writes it."""
        return not (
            self.written.isdisjoint(other.written)
            and self.written.isdisjoint(other.read)
            and self.read.isdisjoint(other.written)
        )


def may_rely_on_a_wgmma(program: Program) -> bool:
    """True if a warp of such a group makes accesses of its own that conflict with those of another agent."""
    members = sorted({agent for group in program.warp_groups if len(group) > 1 for agent in group})
    if not any(op[0] == Op.WAIT_GROUP and op[ENGINE] == Engine.WGMMA for a in members for op in program.code[a]):
        return False
    every = [_cells(program, agent, own=False) for agent in range(len(program.code))]
    for agent in members:
        mine = _cells(program, agent, own=True)
        if any(mine.conflicts(theirs) for other, theirs in enumerate(every) if other != agent):
            return True
    return False


def _cells(program: Program, agent: int, *, own: bool, space: Space | None = None) -> _Cells:
    """What the agent touches; ``own``: by itself or by ``cp.async``, which is made through the generic proxy."""
    cells = _Cells(set(), set())
    for op in set(program.code[agent]):
        if op[0] not in TOUCHES_MEMORY or (own and not _is_own(op)):
            continue
        found = cells.written if op[0] in WRITES_MEMORY else cells.read
        for access in program.accesses_of(op):
            if space is not None and program.accesses[access].space != space:
                continue
            found.update(range(*program.cells[access]))
    return cells


def _is_own(op: Operation) -> bool:
    return op[0] in ACCESSES or (op[0] in ENGINE_ACCESSES and op[ENGINE] == Engine.CP_ASYNC)


_TOO_WEAK = {
    **dict.fromkeys(MAY_RELEASE, frozenset({Order.RELAXED, Order.ACQUIRE})),
    **dict.fromkeys(MAY_ACQUIRE, frozenset({Order.RELAXED, Order.RELEASE})),
}
_PUBLISHES = frozenset({Fence.MBARRIER_INIT, Fence.PROXY_ASYNC})
_FENCES_PROXY = frozenset({Fence.PROXY_ASYNC})


def order_may_fail(program: Program) -> bool:
    """True if only a run can decide whether its memory order is right."""
    used = frozenset().union(*program.code)
    if program.stored or any(_weak(program, op) for op in used):
        return True
    if Assumption.PROXIES in program.strictness and reads_may_be_unfenced(program):
        return True
    if Assumption.TENSOR_FENCES in program.strictness and tensor_accesses_may_be_unfenced(program):
        return True
    if any(op[0] == Op.CP_ASYNC_ARRIVE for op in used) or not all(map(_arrives_before_each_copy, program.code)):
        return True
    if may_rely_on_a_wgmma(program) or may_reach_early(program):
        return True
    touched = _accesses_by_mode(program, used)
    shared = touched.both(_AccessMode(generic=True, writes=True), _ASYNCHRONOUS)
    if any(op[0] == Op.TRANSFER_WRITE and op[ENGINE] == Engine.CP_ASYNC and op[ASYNC_ACCESS] in shared for op in used):
        return True
    if program.fences_reads and _threads_reads_may_be_unfenced(program, used, touched):
        return True
    writes = frozenset(op for op in used if op[0] == Op.WRITE and op[ACCESS] in shared)
    return inits_may_be_unfenced(program) or not _all_fenced(program, writes, _FENCES_PROXY)


def may_reach_early(program: Program) -> bool:
    """True if a thread of a kernel may access the shared memory of a CTA that has not started."""
    for agent, code in enumerate(program.code) if program.ctas > 1 and program.coverage.extracted else ():
        for op in code:
            if op[0] == Op.CLUSTER_WAIT:
                break
            access = program.accesses[op[ACCESS]] if op[0] in ACCESSES else None
            if access is not None and access.space == Space.SHARED and access.cta != program.agents[agent].cta:
                return True
    return False


def reads_may_be_unfenced(program: Program) -> bool:
    """True if a read may be followed, without a fence, by a write of the same bytes through the other proxy."""
    if program.stored:
        return True
    used = frozenset().union(*program.code)
    touched = _accesses_by_mode(program, used)
    if touched.both(_AccessMode(generic=True, writes=True), (_AccessMode(generic=False, writes=False),)):
        return True
    return _threads_reads_may_be_unfenced(program, used, touched)


def _threads_reads_may_be_unfenced(program: Program, used: frozenset[Operation], touched: "_AccessesByKind") -> bool:
    """The same of what a thread has read, and an engine overwrites."""
    shared = touched.both(_AccessMode(generic=True, writes=False), (_AccessMode(generic=False, writes=True),))
    if any(op[0] == Op.TRANSFER_READ and op[ASYNC_ACCESS] in shared for op in used if op[0] in ENGINE_ACCESSES):
        return True  # of cp.async: it ends after the operation, so no fence after that is enough
    reads = frozenset(op for op in used if op[0] == Op.READ and op[ACCESS] in shared)
    return not _all_fenced(program, reads, _FENCES_PROXY)


def tensor_accesses_may_be_unfenced(program: Program) -> bool:
    """True if two agents access the same tensor memory, one of them with a write."""
    if all(a.space != Space.TENSOR for a in program.accesses):
        return False
    cells = [_cells(program, agent, own=False, space=Space.TENSOR) for agent in range(len(program.code))]
    return any(mine.conflicts(theirs) for n, mine in enumerate(cells) for theirs in cells[:n])


def inits_may_be_unfenced(program: Program) -> bool:
    """True if an agent may learn of an init that no fence has published."""
    inits = frozenset(op for op in program.operations if op[0] == Op.INIT)
    return not _all_fenced(program, inits, _PUBLISHES)


def _arrives_before_each_copy(code: Sequence[Operation]) -> bool:
    """True if all that an agent knows when it issues a copy has just been released by an arrival of its own.

    The bytes themselves release nothing. If every copy on a barrier follows an arrival of its agent there that expects
    its bytes, then in a run with as many bytes in each phase as it expects the copy lands in the phase of that arrival.
    """
    targets = {pc + 1 + op[SKIP] for pc, op in enumerate(code) if op[0] == Op.JUMP_IF}
    idle = LEARNS_NOTHING if targets else LEARNS_NOTHING | PARITY_TRIES  # without a jump the wait after a try shows
    expected: dict[int, int] = {}  # by barrier: the bytes that the arrivals just before expect
    for pc, op in enumerate(code):
        if pc in targets:
            expected.clear()
        if op[0] == Op.ARRIVE:
            expected[op[BARRIER]] = op[EXPECT]
        elif op[0] == Op.TMA_LOAD:
            expected[op[BARRIER]] = expected.get(op[BARRIER], 0) - op[ASYNC_BYTES]
            if op[COPY_MASK] or expected[op[BARRIER]] < 0:
                return False
        elif op[0] not in idle:
            expected.clear()
    return True


def _weak(program: Program, op: Operation) -> bool:
    """True of what orders less than an instruction written without order and scope, as far as it may matter."""
    too_weak = _TOO_WEAK.get(op[0])
    if too_weak is None:
        return op[0] == Op.COMPLETE_TX
    written = operand(op, "semantics")
    if not written:
        return False
    narrow = program.ctas > 1 and scope_of(written) == Scope.CTA
    return narrow or order_of(written) in too_weak


class _AccessMode(NamedTuple):
    """How an access is made: through the generic proxy or the asynchronous one, as a write or a read."""

    generic: bool
    writes: bool


_ASYNCHRONOUS = (_AccessMode(generic=False, writes=True), _AccessMode(generic=False, writes=False))


class _AccessesByKind:
    """The accesses of a program by how they are made."""

    def __init__(self, program: Program, accesses: Mapping[_AccessMode, frozenset[int]]) -> None:
        self._program = program
        self._accesses = accesses

    def both(self, mine: _AccessMode, others: Iterable[_AccessMode]) -> frozenset[int]:
        """Of the accesses made so those that share bytes with one of the others, in memory that has two proxies."""
        cells = self._program.cells
        asked = {a for a in self._accesses[mine] if self._program.accesses[a].space in (Space.SHARED, Space.GLOBAL)}
        if not asked:
            return frozenset()
        theirs = {c for made in others for a in self._accesses[made] for c in range(*cells[a])}
        return frozenset(a for a in asked if not theirs.isdisjoint(range(*cells[a])))


def _accesses_by_mode(program: Program, used: Iterable[Operation]) -> _AccessesByKind:
    found: dict[_AccessMode, set[int]] = {
        _AccessMode(generic, writes): set() for generic in (True, False) for writes in (True, False)
    }
    for op in used:
        if op[0] not in TOUCHES_MEMORY:
            continue
        writes = op[0] in WRITES_MEMORY
        found[_AccessMode(_is_own(op), writes)].update(program.accesses_of(op))
    return _AccessesByKind(program, {made: frozenset(accesses) for made, accesses in found.items()})


def _all_fenced(program: Program, what: frozenset[Operation], by: Set[Fence]) -> bool:
    return all(not what or what.isdisjoint(code) or _fenced(code, what, by) for code in program.code)


def _fenced(code: Sequence[Operation], what: Set[Operation], by: Set[Fence]) -> bool:
    """True if on every way through the code a fence follows each of these operations before anything releases it."""
    pending = False
    jumped: set[int] = set()  # where a way comes in by a jump, something being unfenced
    for pc, op in enumerate(code) if what else ():
        pending = pending or pc in jumped
        if op in what:
            pending = True
        elif pending:
            if op[0] == Op.FENCE and op[FENCE] in by:
                pending = False
            elif op[0] in HANDS_ON:
                return False
            elif op[0] == Op.JUMP_IF:
                jumped.add(pc + 1 + op[SKIP])
    return True


def memory_order(program: Program) -> MemoryOrder | None:
    """An observer for a run of this program, None if nothing in it can be wrong in memory order alone."""
    return MemoryOrder(program) if order_may_fail(program) else None


def memory_refutations(program: Program, order: MemoryOrder | None) -> tuple[Refutation, ...]:
    """A schedule for the first fault of each kind that the observer of a run has seen; certain if one is."""
    return _refutations(program, order, lambda fault: fault.kind)


def memory_refutations_by_line(program: Program, order: MemoryOrder | None, most: int) -> tuple[Refutation, ...]:
    """The same, for at most this number of faults of each kind and pair of lines in a run of its own."""
    if order is not None:
        run_canonically(program, order)

    def lines(fault: Fault) -> Hashable:
        sides = (fault.agent, fault.pc), (fault.other_agent, fault.other_pc)
        return fault.kind, *(program.line(*side) for side in sides if min(side) >= 0)

    return _refutations(program, order, lines, most)


def _refutations(
    program: Program, order: MemoryOrder | None, key: Callable[[Fault], Hashable], most: int | None = None
) -> tuple[Refutation, ...]:
    found: dict[Hashable, tuple[Fault, Sequence[int]]] = {}
    for fault, past in zip(order.faults, order.pasts, strict=True) if order is not None else ():
        known = found.get(key(fault))
        if known is None or (is_unsure(program, known[0]) and not is_unsure(program, fault)):
            found[key(fault)] = fault, past
    return tuple(Refutation(Ending.FAULT, _schedule(program, *each), each[0]) for each in [*found.values()][:most])


def memory_faults_of(program: Program, schedule: Sequence[Move]) -> tuple[Fault, ...]:
    """The faults of memory order that a schedule shows, in the order in which it does."""
    order = MemoryOrder(program)
    Play(program, schedule, [order])
    return order.faults


def _schedule(program: Program, fault: Fault, past: Sequence[int]) -> tuple[Move, ...]:
    """The moves up to the fault: its past alone where that is enough, else the canonical run until then."""
    order = MemoryOrder(program)
    play = Play(program, observers=[order])
    if play.reach(past):
        play.advance(fault.agent)
        if fault in order.faults:
            return tuple(play.moves)
    order = MemoryOrder(program)
    play = Play(program, observers=[order])
    for _ in _canonical_moves(play, len(program.agents)):
        if fault in order.faults:
            break
    return tuple(play.moves)


def _canonical_moves(play: Play, agents: int) -> Iterator[None]:
    """The rounds of the canonical run, move by move: each agent as far as it goes, then each flight lands once."""
    moved = True
    while moved:
        moved = False
        for agent in range(agents):
            while play.advance(agent):
                moved = True
                yield
        for flight in play.state.flights:
            if play.land_one(flight):
                moved = True
                yield
