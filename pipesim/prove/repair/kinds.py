"""Corrections as data: what is changed, in which role, at which barriers, at which of the author's lines.

A correction is named by roles, groups of barriers and source lines, not by positions: what corrects the smallest
program that fails can be tried on the one that was asked for.
"""

from dataclasses import dataclass
from enum import Enum

from pipesim.model.groups import COMMITS, MEETINGS, PARITY_WAITS, SIGNALS, TOUCHES_MEMORY
from pipesim.model.ops import Op, Scope
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction


class RepairKind(Enum):
    """What is changed."""

    # one operand
    COUNT = "count"  #: the count of a group's inits
    EXPECT = "expect"  #: the bytes that a role expects
    REGISTERS = "registers"  #: those that a role asks for with setmaxnreg
    LANES = "lanes"  #: how many lanes of a warp arrive: one that is elected, or all of them
    THREADS = "threads"  #: the number of threads at named barriers
    DEPTH = "depth"  #: how many groups of transfers a role leaves under way when it waits for them
    MASK = "mask"  #: the CTAs of a role's multicasts
    PHASES = "phases"  #: the parities of a role's waits: the first, then the other one at every lap
    STAGES = "stages"  #: the same, and its stages, one after the other
    LAPS = "laps"  #: the parities of all waits of all roles: the first as it is, then the other one at every lap
    SHIFT = "shift"  #: the stage, the slot or the named barrier of an operation: some stages further
    PART = "part"  #: each warp of a role, or (``was`` 1) each CTA, uses its own of ``value`` parts of a slot
    CARRY = "carry"  #: a role advances stage by stage: its waits, and all that it does with a stage after one
    OTHER_GROUP = "other group"  #: an instruction is on the barriers of another group, which ``past`` names
    #: an arrive is on the barrier of the CTA of rank ``value``, or (``was`` 1) of that so much further than its own
    OTHER_CTA = "other cta"
    OTHER_PLACE = "other place"  #: what is written lies ``value`` bytes further; ``was``: of this CTA's agents
    TRY = "try"  #: tries are of the phase of the wait that depends on their answer
    SWAP = "swap"  #: two groups, with a comma between: what a role does on the one it does on the other
    STRONGER = "stronger"  #: the order and scope of an operation: ``value`` is one of :data:`SCOPES`
    # of a word by which CTAs talk; see :data:`OF_WORDS`
    VALUE = "value"  #: what is written, or waited for, is ``value`` larger
    AWAITED = "awaited"  #: the word and value that are waited for are those by which the data is handed over
    GIVEN = "given"  #: those that are written are those that the reader of the data waits for
    WORD_MOVE = "word move"  #: a wait comes before the data that ``past`` is about, a write after it
    WORD_ADDED = "word added"  #: a wait for a word before the data, or (``value`` 0) a write to one after it
    MEET_AGAIN = "meet again"  #: a barrier of the grid also after the data that ``past`` is about
    TWO_SETS = "two sets"  #: of the slots of a tile in global memory, used in turn
    # another operation in the same place
    ARRIVES_TOO = "arrives too"  #: what expects bytes arrives as well
    STAY = "stay"  #: a role arrives without dropping out of the barrier
    NOINC = "noinc"  #: cp.async arrives are counted
    ON_END = "on end"  #: an arrive comes when the transfers before it have ended
    SYNCS = "syncs"  #: a bar_arrive waits as well
    # another place
    LATER = "later"  #: an arrive comes after the reads, writes and group waits that follow it
    MOVE = "move"  #: an operation comes after another one that follows it
    # fewer operations
    DROP = "drop"  #: an arrive is left out
    ONCE = "once"  #: an init that several lanes make, one after the other, is made once
    OMIT = "omit"  #: an operation is left out
    INSIDE = "inside"  #: only the elected lane of a warp executes it
    ONE_WARP = "one warp"  #: one warp of a role does what all of them do
    SLIP = "slip"  #: of a kernel's PTX: one instruction, or a line of them, is written otherwise
    NOT_PAST = "not past"  #: of a kernel's PTX: the condition of a branch that leads past an arrive
    LEAVE_OUT = "leave out"  #: agents that do nothing with a stage do not wait for it
    # more operations
    INIT = "init"  #: the barriers of a group that no agent initialises
    ARRIVE = "arrive"  #: a role arrives at the end of its work on a stage
    TAIL = "tail"  #: a role arrives for the stages that are left at its end
    ACQUIRE = "acquire"  #: a role waits before it uses a stage
    FENCE = "fence"  #: a proxy fence; see :data:`FENCED`
    GROUP_WAIT = "group wait"  #: a wait for groups of transfers
    TENSOR_WAIT = "tensor wait"  #: of a kernel's PTX: a wait for its loads of tensor memory, or its stores
    CLOSE = "close"  #: a commit that closes a group of transfers
    EVERY_WARP = "every warp"  #: all warps of a role execute what some of them do
    EVERY_TIME = "every time"  #: an instruction is executed whenever the one beside it is, which ``past`` names
    ONLY_FIRST = "only first"  #: an instruction is executed once on each barrier, as those who serve it do
    AGAIN = "again"  #: a role waits for a group also before ``at``, stage by stage; (``value`` 1) after each try
    DRAIN = "drain"  #: a role waits for every stage of a group once more before it ends
    ITERATION = "iteration"  #: what is executed in the last (``value`` 0: first) iteration alone is in the other one
    TRIPS = "trips"  #: a role's loops over ``group`` have ``value`` iterations more, or fewer
    OUTSIDE = "outside"  #: all lanes of a warp execute it
    COUNT_IN = "count in"  #: all warps of a role arrive, and are counted
    PEERS = "peers"  #: an arrive on the barrier of every CTA
    # meetings
    SYNC = "sync"  #: all warps of a role meet at a named barrier
    WARP_SYNC = "warp sync"  #: the lanes of a warp meet
    PRIME = "prime"  #: a role arrives at named barriers, or on every stage of a group, before it begins; ``at``: in it
    BOTH = "both"  #: a role waits for one of two groups and arrives on the other, which no role does
    NUMBER = "number"  #: each pair of warps has a named barrier of its own
    CLUSTER_END = "cluster end"  #: all warps of the cluster meet before they exit
    AFTER_INIT = "after init"  #: a fence and a meeting of all threads after the inits


class Placement(Enum):
    """Where a wait or an arrive is added: the ``was`` of an ACQUIRE or an ARRIVE."""

    EACH = -1  #: for each piece of work
    VISIT = 5  #: before the first use of the bytes that each signal is about
    ONE_WARP = 4  #: by the first warp of the role alone, or of every ``value`` of them
    LAST = 2  #: after the last use before the same barrier is waited for again, beyond other waits
    PARTLY = 7  #: before some executions of an instruction: the first of as many as there are to a signal of the group
    WRITTEN = 6  #: before what it reads, in the phase that is signalled when that is written


class FencePlace(Enum):
    """Where a proxy fence is added: the number is the ``value`` of the correction."""

    AFTER_READS = 0
    AFTER_WRITES = 2
    BEFORE_TRANSFERS = 3


#: Operations that signal other agents.
SIGNALLING = frozenset(SIGNALS) | MEETINGS | COMMITS | {int(Op.CP_ASYNC_ARRIVE)}
MOVING = SIGNALLING | PARITY_WAITS | {int(Op.FENCE), int(Op.WAIT_GROUP)}  #: may be at another place than is meant
#: Corrections of accesses to words, which a flat program does not have.
OF_WORDS = frozenset({RepairKind.VALUE, RepairKind.AWAITED, RepairKind.GIVEN, RepairKind.WORD_MOVE,
                      RepairKind.WORD_ADDED, RepairKind.MEET_AGAIN, RepairKind.TWO_SETS})  # fmt: skip
_ADDS_ORDER = frozenset({RepairKind.LATER, RepairKind.MOVE, RepairKind.ACQUIRE, RepairKind.GROUP_WAIT, RepairKind.AGAIN,
                         RepairKind.EVERY_TIME, RepairKind.DRAIN, RepairKind.ITERATION, RepairKind.SYNC,
                         RepairKind.BOTH, RepairKind.SYNCS, RepairKind.EVERY_WARP})  # fmt: skip
SCOPES = (Scope.CTA, Scope.CLUSTER, Scope.GPU)
ROWS = 64  #: below it the ``value`` of a MASK: rows with fewer CTAs by that number; from -1 down to it: columns
OF_COPIES = 2  #: the ``value`` of PEERS: every CTA whose copies land in the agent's own
NOWHERE = SourceInstruction(0, "", "")
TO_THE_OTHER = -2  #: the ``was`` of a SHIFT of named barriers at which agents both arrive and wait: to the next one's


@dataclass(frozen=True)
class Repair:
    """One correction: its kind, the role ("" for all), the group of barriers, and a number.

    ``value`` is the count, the bytes, the threads, the lanes or the mask of CTAs, the parity of the first lap, or which
    of several arrives on a barrier in a row (0 the first); ``was`` is what it was, -1 where that is not a number. Named
    barriers are their numbers, with a comma between two; an engine is its number. ``at`` is the instruction that is
    changed, or beside which one is added; ``past`` the one after which (MOVE with ``value`` 1: before which) it is
    moved, or what it should be about.
    """

    kind: RepairKind
    role: str
    group: str
    value: int = 0
    was: int = -1
    at: SourceInstruction = NOWHERE
    past: SourceInstruction = NOWHERE
    also: "tuple[Repair, ...]" = ()  #: the same of other roles and groups of the same family: all of them together

    @property
    def roles(self) -> list[str]:
        """The roles that are changed."""
        return list(dict.fromkeys(role for each in (self, *self.also) for role in each.role.split(",")))

    @property
    def is_on_slot(self) -> bool:
        """True of a change of what is accessed: of a copy it may be of the barrier that is signalled instead."""
        return self.at.op in TOUCHES_MEMORY and (self.at.op != Op.TMA_LOAD or self.group != self.at.about)

    @property
    def serialises(self) -> bool:
        """True if transfers that were under way together are not any more: none is left when the next one begins."""
        return self.kind is RepairKind.DEPTH and (self.value == 0 or (self.value < 0 and self.was < 2))

    @property
    def adds_order(self) -> bool:
        """True if an agent waits for another one, or signals it, where it did not, or later than it did."""
        return self.kind in _ADDS_ORDER

    @property
    def is_after_uses(self) -> bool:
        """True of what comes only after the last use of a tile, which ``past`` names."""
        return self.kind is RepairKind.MOVE and self.value in (2, 3, 4)

    @property
    def meets(self) -> bool:
        """True if agents wait for each other who did not: never a second correction beside another."""
        drains = self.kind is RepairKind.GROUP_WAIT and not self.value
        return self.serialises or drains or self.kind is RepairKind.SYNC


Ranked = tuple[int, Repair]  #: with how unlikely it is: the lower, the likelier


K = RepairKind
_OF_ONE_CLUSTER = frozenset({K.AFTER_INIT, K.CLUSTER_END, K.PEERS, K.MASK, K.OTHER_CTA, K.INIT, K.LAPS, K.STAGES})


def words_of(program: Program) -> frozenset[str]:
    """The names of the barriers that are words."""
    return frozenset(each.name for n, each in enumerate(program.barriers) if program.is_word(n))


def fits_words(repair: Repair, words: frozenset[str]) -> bool:
    """Whether a change makes sense of CTAs that are no cluster: of a word it is of its accesses as they are; and not
    one by which all CTAs write to the same places one after the other.
    """
    about = {name for each in (repair, *repair.also) for name in each.group.split(",")}
    return (repair.kind not in _OF_ONE_CLUSTER or (repair.is_on_slot and bool(repair.at.line))) and (
        repair.kind is K.STRONGER or words.isdisjoint(about)
    )
