"""What can be wrong with a modelled program, as data. Rules return these values; nothing here raises."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class FaultKind(Enum):
    """A rule that one step of a program broke. The value is what reports print; :attr:`traps`: the hardware stops.

    What each does on the hardware was asked in experiments (docs/experiments.md), but for named and cluster barriers.
    What else is known about a kind is in its file in :mod:`pipesim.findings`.
    """

    INIT_COUNT = "the count of an init is outside 1..1,048,575"
    ARRIVE_COUNT = "the count of an arrive is outside 1..1,048,575"
    NOT_INITIALISED = "the barrier is used before its init"
    INVALIDATED = "the barrier is used after its inval"
    REINITIALISED = "the barrier is initialised again without an inval"
    INVAL_PENDING = "the barrier is invalidated in the middle of a phase"
    OVER_ARRIVAL = "more arrivals than the phase has pending"
    TX_RANGE = "the transaction count leaves -1,048,575..1,048,576"
    TX_EDGE = "the transaction count is 1,048,576, one more than PTX allows"
    EXITED_CTA = "an operation on a barrier or the memory of a CTA that has exited"
    NO_COMPLETE = "an arrive.noComplete completes the phase, which PTX leaves undefined"
    STALE_STATE = "a wait by state uses the state of a phase that is neither the current nor the preceding one"
    BARRIER_THREADS = (
        "the agents at a named barrier disagree about its number of threads, or it is not a multiple of 32"
    )
    BARRIER_OVERRUN = "more threads arrive at a named barrier than its thread count"
    CLUSTER_ARRIVE = "a second cluster arrive before the wait for the first, or a wait without an arrive"
    RACE = "two concurrent accesses to the same bytes, at least one of them a write"
    UNINITIALISED_READ = "uninitialised bytes are read"
    WRONG_ITEM = "the bytes read hold a different item than the reader expects"
    # of a whole run: what no single move shows
    STALE_WAIT = "the wait returns with a phase that its agent has been given before, and old data is read again"
    # of all schedules together: what no single one shows
    TWO_OUTCOMES = "two schedules that both finish leave different results"
    # of a kernel's PTX: what its program assumes
    LANES_APART = "lanes of a warp that parted are taken to be together again, which PTX does not promise there"
    # of what is under way when a schedule has ended
    UNDER_WAY_AT_EXIT = "a copy, MMA or commit is still under way when its CTA ends"
    # of the code of the warps, whatever the schedule
    WARP_SHAPE = "not all threads that have to execute an instruction together execute it"
    TOO_MANY_REGISTERS = "more registers than a CTA can have"
    TENSOR_ALLOCATION = "tensor memory is not allocated, used or released as PTX has it"
    WGMMA_FENCE = "no wgmma.fence between an access to registers and the wgmma that uses them"
    TENSOR_MAP_FENCE = "no fence.proxy.tensormap between a change of a tensor map and a copy by it"
    READ_BEFORE_WAIT = "registers are read before the wait for the wgmma that writes them"
    ILLEGAL_OPERAND = "an operand that PTX does not allow"
    # of its order with other kernels
    BEFORE_GRID_WAIT = "global memory is accessed before griddepcontrol.wait"
    GLOBAL_RACE = "CTAs access the same bytes of global memory in any order, and one of them writes"
    # of the memory model: what no machine of one memory shows (docs/memory-order.md)
    MISSING_PROXY_FENCE = "no fence.proxy.async between an ordinary write and the later asynchronous access"
    READ_NOT_FENCED = "no fence.proxy.async between a read and the later write through the other proxy"
    WEAK_ORDER = "two accesses to the same bytes are ordered by a relaxed operation, which orders no data"
    NARROW_SCOPE = "two accesses to the same bytes are ordered across CTAs by an operation of CTA scope"
    TENSOR_FENCE = "no tcgen05.fence between accesses of two threads to the same tensor memory"
    ABSENT_CTA = "a thread accesses the shared memory of a CTA that may not have started, or may have exited"
    UNPUBLISHED_INIT = "a barrier is used before its init is visible to the user"

    @property
    def traps(self) -> bool:
        """True if the hardware ends the launch at this step (measured on H100 and H200, or illegal in PTX)."""
        return self in _TRAPS


_TRAPS = frozenset(
    {
        FaultKind.NOT_INITIALISED,
        FaultKind.OVER_ARRIVAL,
        FaultKind.TX_RANGE,
        FaultKind.EXITED_CTA,
        FaultKind.BARRIER_THREADS,
        FaultKind.BARRIER_OVERRUN,
        FaultKind.CLUSTER_ARRIVE,
    }
)


class Fault(NamedTuple):
    """One broken rule at one step: the agent, its operation's position, and what was found against what was allowed.

    ``barrier`` is the index of the mbarrier (or -1), ``found`` and ``expected`` are the two numbers that disagree.
    Of a race ``other_agent`` and ``other_pc`` are the access that was open already (-1: no race); of a fault of memory
    order the access before, or the init, and ``cause_agent`` and ``cause_pc`` the operation too weak (-1: none). Of
    a warp group these are the warp that does not execute the same, and what it executes instead (-1: nothing).
    """

    kind: FaultKind
    agent: int
    pc: int
    barrier: int = -1
    found: int = 0
    expected: int = 0
    other_agent: int = -1
    other_pc: int = -1
    cause_agent: int = -1
    cause_pc: int = -1


class Verdict(Enum):
    """The three answers. Nothing that hit a limit is ever called safe."""

    PROVED = "proved"  #: for all schedules (or, from one simulation, finished without a finding)
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Supplier:
    """An agent that could still send, or once sent, what a barrier is missing.

    ``next_line`` is the source line of its next operation on the barrier, or "" when none follows; ``last_line`` and
    ``last_iteration`` describe its last one ("" and -1 when it never had one): an iteration counts the operations of
    this kind that the agent had made on this group of barriers before. ``last_trip`` is the iteration of the outermost
    loop that the last one is in, -1 where it is in none, ``last_loop`` the parameter that this loop's iterations come
    from. ``waits_for`` names what blocks it, if anything. ``sure``: False if its next operation is after a branch with
    a condition that is not known. ``last_barrier``: where its last one was, if that is another barrier of the group, or
    if it was counted on this one alone, as in a core dump.
    """

    agent: str
    supplies: str  #: "arrival", "bytes", "expectation", or several of them joined by "and"
    next_line: str
    last_line: str
    last_iteration: int
    waits_for: str
    last_trip: int = -1
    last_loop: str = ""
    sure: bool = True
    last_barrier: str = ""


@dataclass(frozen=True)
class BlockedAgent:
    """One agent that waits indefinitely: on what, which phase it wants, where the barrier is, what is missing.

    ``phase_wanted`` is the index of the phase whose completion would let it pass, ``phase_now`` the index of the phase
    that the barrier is in, both counted from 0. A named barrier counts threads and the cluster barrier agents in
    ``arrivals_missing`` of ``count``; their parity is -1. Negative ``bytes_missing`` are bytes no agent expected.
    ``bytes_in_flight`` are those of the missing that were under way: only where the machine was stopped before all
    had landed.

    Causes, where they are known: ``missed`` is the phase (before ``phase_wanted``) that the agent asks for and that was
    complete before it looked, ``given`` the arrivals that the program gives a phase (threads that ever arrive at a
    named barrier) where they are fewer than ``count``; -1 otherwise. ``count_line`` is where that count is stated.
    ``lapped_by``: who completed the phases that it missed, () if it missed none; ``counted`` is False if no agent waits
    for the agent as long as it waits itself: it arrives nowhere, or only where all meet at the end. ``rivals``: who
    waited for the phase that it missed, and waits for other phases than it does.
    """

    agent: str
    barrier: str
    parity: int
    phase_wanted: int
    phase_now: int
    arrivals_missing: int
    count: int
    bytes_missing: int
    line: str
    suppliers: tuple[Supplier, ...] = ()
    bytes_in_flight: int = 0
    missed: int = -1
    given: int = -1
    count_line: str = ""
    lapped_by: tuple[str, ...] = ()
    counted: bool = True
    rivals: tuple[str, ...] = ()


class OneSided(NamedTuple):
    """Agents of one role that arrive at a barrier unequally often: how often which of them, and the line of one."""

    barrier: str
    tallies: tuple[tuple[int, tuple[str, ...]], ...]
    line: str


class LedPast(NamedTuple):
    """Why an agent of a kernel did not do what is missing at a barrier: a branch led it past that, or out of its loop.

    ``does``: what it did not do, ``arrive``, ``copy`` or ``sync``, and ``past`` its line. ``line``: of the branch,
    which led there the ``nth`` time, from 1, that the agent reached it. ``ends``: the agent cannot come back.
    ``because``: the comparison with its values, "" if not known. ``condition``: as the source has it, with its
    ``outcome``, and the ``values`` of the variables of the loops around it.
    """

    agent: str
    barrier: str
    does: str
    past: str
    line: str
    nth: int
    ends: bool
    because: str
    condition: str = ""
    outcome: bool = False
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Deadlock:
    """The program can go no further and these agents have not finished; ``cycle`` names agents that wait in a ring.

    ``one_sided``: where agents of one role did not all do the same. ``led_past``: of a kernel, the branches by which
    what is missing did not come. ``correction``: what fixes it, if the program leaves no doubt. ``cut``: the program
    was read from a kernel, each warp up to the wait that does not end: nothing is known about what follows these.
    """

    blocked: tuple[BlockedAgent, ...]
    finished: tuple[str, ...]
    cycle: tuple[str, ...] = ()
    correction: str = ""
    cut: bool = False
    one_sided: tuple[OneSided, ...] = ()
    led_past: tuple[LedPast, ...] = ()

    @property
    def kind(self) -> str:
        """Its name among the kinds of findings: ``lapped_waiter`` if those that missed a phase are agents for which no
        other one waits, else ``deadlock``.
        """
        lapped = [each for each in self.blocked if each.lapped_by or each.missed >= 0]
        return "lapped_waiter" if lapped and not any(each.counted for each in lapped) else "deadlock"


@dataclass(frozen=True)
class FaultReport:
    """A fault in words: what, by whom, where in the source, on which barrier or tile; and what fixes it, if known.

    ``other_line``: of the other access, or of what another warp executes instead; "" where there is none.
    """

    kind: FaultKind
    claim: str
    agent: str
    operation: str
    line: str
    correction: str = ""
    other_line: str = ""


@dataclass(frozen=True)
class Advisory:
    """What is not a fault of the schedule that was followed, and still wrong: the role, what it does, and its line.

    ``kind``: the name under which ``pipesim explain`` says more, "" if it has none.
    """

    role: str
    claim: str
    line: str
    kind: str = ""


Finding = Deadlock | FaultReport
