"""What lanes of a warp do alone, and what others of it do after that as if they were together.

The lanes of a warp are scheduled independently. An operation with ``.aligned``, or with ``.sync`` and a mask that names
all of them, has them wait for each other; of these only barriers (``bar.warp.sync``, ``bar.sync``) also put the
accesses of one lane before those of another (PTX ISA, "bar.warp.sync", "shfl.sync", "Memory Consistency Model").
A warp is followed as one agent, whose operations come one after the other. Where more depends on that order than the
lanes have by an operation of both, it is assumed, and the place is kept.

A fence of acquire or release makes a release of what its own thread signals relaxed after it, and an acquire of what
its own thread has waited for relaxed before it (PTX ISA, "Release and acquire patterns"). For one agent it would do so
for all lanes. Where it may not, it is noted, and the fence counts for nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import or_
from typing import NamedTuple, assert_never

from pipesim.model.ops import Order, Scope
from pipesim.ptx.flow.opcodes import hands_on, is_try, synchronises
from pipesim.ptx.text.instruction import Instruction

ON_MBARRIER = -1  #: in place of the address of a word: an mbarrier, or the barrier of the cluster
_ALL = 2
_REACH = {Scope.CTA: 0, Scope.CLUSTER: 1}  #: of the others all


class LaneAct(Enum):
    """What lanes may do alone that others of their warp then rely on.

    WAIT: for an mbarrier or a group; SET_UP: its init or inval; SIGNAL: whatever others may notice; FENCE: a
    fence between the proxies.
    """

    WAIT = 0
    SET_UP = 1
    SIGNAL = 2
    FENCE = 3


def lane_act(each: Instruction) -> LaneAct | None:
    """What lanes do by it that others of their warp may rely on, None for nothing.

    Not the groups of a lane's own copies, nor a barrier, at which each lane arrives for itself.
    """
    match each.opcode:
        case "mbarrier":
            if is_try(each):
                return LaneAct.WAIT
            return LaneAct.SET_UP if each.has_any("init", "inval") else LaneAct.SIGNAL
        case "cp" if each.has("bulk") and each.has("wait_group"):
            return LaneAct.WAIT
        case "cp" | "st" | "red":
            return LaneAct.SIGNAL if hands_on(each) else None
        case "wgmma":
            return LaneAct.SIGNAL if each.has("mma_async") else None
        case "bar" | "barrier" | "setmaxnreg" | "multimem":
            return None
        case _:
            return LaneAct.SIGNAL if synchronises(each) else None


Met = tuple[int, int]  #: lanes that have accessed or waited, and those that they met since


def relies_on(before: Iterable[Met], lanes: int) -> bool:
    """Whether what these lanes pass on has others among it that none of them has met since."""
    return any(by & ~lanes and not told & lanes for by, told in before)


@dataclass(slots=True)
class _Done:
    """An act of some lanes. ``later``: those that act after it; ``knowing``: also in the order of memory.

    ``join``: where the branch on which they were alone has ended, -1 for not yet. ``told``: the mbarrier that they all
    signal, and its phase.
    """

    later: int
    knowing: int
    join: int = -1
    told: object = None


class LanesApart:
    """What the lanes of a warp have done since all of them last met.

    ``accessed``: lanes that have accessed memory and ``waited``: that have waited, which no other lane has met since.
    ``_sent``: those of them that have signalled since, of which lanes learn that wait. ``places``: of the instructions
    that rely on lanes being together; ``ahead``: by which lanes signal while others of the warp, on another way of a
    branch, wait: these do not hold them up, as the program says. Both are kept by the owner. ``others``: of
    lanes all that were followed with them before these on another way of a branch, where nothing has them run in step;
    ``to_part``: the first of them of which some act before these do, or are relied on.
    """

    __slots__ = ("_done", "_met", "_others", "_parted", "_sent", "accessed", "ahead", "earlier", "places", "to_part",
                 "waited")  # fmt: skip

    def __init__(self, places: set[int], ahead: set[int], others: Callable[[int], int]) -> None:
        self.places, self.ahead, self._others = places, ahead, others
        self.to_part = 0
        self.accessed = self.waited = self._sent = 0
        self.earlier = 0  #: those that had accessed memory before the last access of global memory
        self._done: dict[tuple[LaneAct, int], _Done] = {}
        self._met: list[Met] = []
        self._parted: dict[int, None] = {}  #: the ends of branches at which lanes parted

    def execute(self) -> None:
        """All lanes execute an instruction together."""
        self.waited = 0
        if self._parted:
            self._parted = {}
        if self._done:
            self._done = {key: each for key, each in self._done.items() if key[0] is not LaneAct.SIGNAL}
            for each in self._done.values():
                each.later = -1

    def meet(self) -> None:
        """All lanes meet at a barrier: what each has accessed before comes before what the others do now."""
        self.accessed = self.waited = self._sent = 0
        if self._done or self._met or self._parted:
            self._done, self._met, self._parted = {}, [], {}

    def unmet(self, accessed: int | None = None) -> tuple[Met, ...]:
        """What lanes have done that others pass on."""
        return ((self.accessed if accessed is None else accessed) | self.waited | self._sent, 0), *self._met

    def access_global(self, lanes: int, here: int) -> None:
        """Lanes access global memory: data, or a word by which they tell others of what they have done before."""
        self.earlier = self.accessed
        self.access(lanes, here)

    def fence(self, lanes: int, *, alone: bool) -> None:
        """Lanes execute a fence between the proxies, on which rest copies and signals of others of their warp."""
        if alone:
            self._done[LaneAct.FENCE, lanes] = _Done(lanes, lanes)
        elif self._done:
            self._done = {key: each for key, each in self._done.items() if key[0] is not LaneAct.FENCE}

    def learn_inits(self) -> None:
        """All lanes learn of the mbarriers that some of them have initialised, and of nothing else."""
        self._done = {key: each for key, each in self._done.items() if key[0] is not LaneAct.SET_UP}

    def meet_some(self, lanes: int) -> None:
        """Some lanes meet at a ``bar.warp.sync``."""
        for each in self._done.values():
            each.later |= lanes if each.later & lanes else 0
            each.knowing |= lanes if each.knowing & lanes else 0
        self._met = [(by, told | lanes if told & lanes else told) for by, told in self._met]
        if mine := (self.accessed | self.waited | self._sent) & lanes:
            self._met.append((mine, lanes))
            self.accessed &= ~lanes
            self.waited &= ~lanes
            self._sent &= ~lanes

    def join(self, here: int, *, parted: bool) -> None:
        """Lanes that took different ways reach the same place; ``parted``: others may notice what they did there."""
        if parted:
            self._parted[here] = None
        for each in self._done.values():
            each.join = here if each.join < 0 else each.join

    def access(self, lanes: int, here: int) -> None:
        """Lanes access memory."""
        self.accessed |= lanes
        if self._done:
            self._rely(None, lanes, here)

    def act(self, act: LaneAct, lanes: int, here: int, *, hands_on: bool, alone: bool, told: object = None) -> None:
        """Lanes do this; ``hands_on``: for what they have done before; ``alone``: there are others that do not.

        ``told``: the mbarrier that they signal, and its phase, which others may signal first: it ends after both.
        """
        if self._done:
            others = ((by, each) for (_, by), each in self._done.items() if each.join < 0)
            self._part_from(reduce(or_, (by for by, each in others if told is None or each.told != told), 0))
            self._rely(act if hands_on or act is LaneAct.WAIT else None, lanes, here, fenced=act is LaneAct.SIGNAL)
        if act is LaneAct.WAIT:
            self._learn(lanes)
            self.waited |= lanes
        elif self._parted and lanes & (lanes - 1):  # what several lanes do together is several acts of lanes apart
            self.places.update(self._parted)
            self._parted = {}
        if alone:
            same = self._done.get((act, lanes), _Done(0, 0, told=told)).told == told
            self._done[act, lanes] = _Done(lanes, lanes, told=told if same else None)

    def hand_on(self, lanes: Sequence[int], here: int) -> None:
        """Lanes signal what has been done before, those of each mask to others of their own.

        Also what lanes of other masks have accessed and waited for.
        """
        unmet = self.unmet()
        if any(relies_on(unmet, mask) for mask in lanes):
            self._part_from(self.accessed | self.waited | self._sent)
            self.places.add(here)
            self.accessed = self.waited = self._sent = 0
            self._met = []
        for mask in lanes:
            self._sent |= (self.accessed | self.waited) & mask
            self.accessed &= ~mask
            self.waited &= ~mask
            self._met = [each for each in self._met if not each[1] & mask]

    def _part_from(self, lanes: int) -> None:
        """These lanes have done something before that may come after what is done now, if they are on another way."""
        if lanes and not self.to_part:
            self.to_part = self._others(lanes)

    def learn_alone(self, lanes: int) -> None:
        """Some of the lanes that waited by one instruction have waited for something of their own."""
        self._done[LaneAct.WAIT, lanes] = _Done(-1, lanes)

    def _learn(self, lanes: int) -> None:
        """Lanes wait, and learn so of what others have done before they signalled."""
        if self._sent & ~lanes:
            self._met.append((self._sent, lanes))
            self._sent = 0

    def _rely(self, act: LaneAct | None, lanes: int, here: int, *, fenced: bool = False) -> None:
        """Lanes do what has to come after what others have done before; None: they access memory.

        ``fenced``: a fence between the proxies as well.
        """
        for (before, by), each in list(self._done.items()):
            match before:
                case LaneAct.WAIT:
                    after = each.later if act is LaneAct.WAIT else each.knowing
                case LaneAct.SET_UP:
                    after = -1 if act is None else each.knowing
                case LaneAct.SIGNAL:
                    after = each.later if act is LaneAct.SIGNAL and each.join >= 0 else -1
                case LaneAct.FENCE:
                    after = each.knowing if fenced else -1
                case _:
                    assert_never(before)
            if lanes & ~each.later and each.join < 0 and before is LaneAct.WAIT and fenced:
                self.ahead.add(here)
            if lanes & ~after:
                self._part_from(by if each.join < 0 else 0)
                self.places.add(each.join if each.join >= 0 else here)
                del self._done[before, by]


class _LaneFence(NamedTuple):
    """A fence of some lanes; ``before``: which lanes had accessed memory, and those that these had met since."""

    lanes: int
    reach: int
    before: tuple[Met, ...]


class LaneFences:
    """Those of one warp. ``passed_by``: by position of a fence where lanes that did not execute it signal later."""

    __slots__ = ("_apart", "_made", "_waits", "passed_by")

    def __init__(self, apart: LanesApart, passed_by: dict[int, set[int]]) -> None:
        self._apart, self.passed_by = apart, passed_by
        self._made: dict[tuple[int, int], _LaneFence] = {}  #: by position and lanes
        self._waits: dict[int, int] = {}  #: lanes that have waited relaxed, and how far their fences reach since

    def wait(self, lanes: int) -> None:
        """Lanes wait without an acquire."""
        self._waits[lanes] = -1

    def fence(self, here: int, lanes: int, scope: Scope, live: int, half: Order = Order.ACQ_REL) -> bool:
        """Lanes execute a fence, or a ``half`` of one. False if it does not acquire what they or others have waited
        for; one that does not release is one that the lanes did not execute for what they signal.
        """
        reach = _REACH.get(scope, _ALL)
        missing = lanes if half is not Order.RELEASE else 0
        if any(not by & missing and known < reach for by, known in self._waits.items()):
            return False
        for by in self._waits:
            if (by & lanes) != live:
                self._apart.act(LaneAct.WAIT, by & lanes, here, hands_on=False, alone=True)
        reached = {by: max(known, reach if by & lanes else -1) for by, known in self._waits.items()}
        self._waits = {by: known for by, known in reached.items() if known < _ALL}
        if half is Order.ACQUIRE:
            lanes = 0
        elif lanes == live and reach == _ALL:
            self._made = {}
        self._made.pop((here, lanes), None)
        self._made[here, lanes] = _LaneFence(lanes, reach, self._apart.unmet())
        return True

    def signal(self, lanes: int, where: int) -> None:
        """Lanes signal without a release: it is one by the last fence of each of them."""
        covered = -1
        for (position, by), each in reversed(self._made.items()):
            if covered == _ALL:
                return
            if not lanes & ~by:
                covered = max(covered, each.reach)
                if relies_on(each.before, lanes):
                    self._apart.places.add(position)
            elif each.reach > covered:
                self.passed_by.setdefault(position, set()).add(where)
