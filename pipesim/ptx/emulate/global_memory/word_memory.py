"""Words of global and shared memory in one run: what they hold, who accesses them in which turn, and these events.

What an instruction does to them is in :mod:`pipesim.ptx.emulate.global_memory.global_words`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from pipesim.model.ops import Op, Order, Scope, order_of, scope_of, semantics
from pipesim.model.words import Look, WordAct, WordEvent
from pipesim.ptx.emulate.accesses import AccessingWarp, RecordingCluster, record
from pipesim.ptx.emulate.arithmetic.known_bits import Bits
from pipesim.ptx.emulate.code import Code, DecodedStep
from pipesim.ptx.emulate.global_memory.waits_for_words import LoopOfWait
from pipesim.ptx.emulate.lanes.apart import LaneAct, LaneFences, relies_on
from pipesim.ptx.emulate.memory import LOCAL_WINDOW, LOCAL_WINDOW_END, in_shared
from pipesim.ptx.emulate.values import Leaf, Unknown, Value, are_known, lanes_in, of_lane, partly_known
from pipesim.ptx.emulate.word_looks import WordLooks
from pipesim.ptx.flow.observations import Observations
from pipesim.ptx.flow.opcodes import as_written
from pipesim.ptx.flow.voted_waits import HandedWait
from pipesim.ptx.free.varying import Varying
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.instruction import Instruction

STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")
SIZES = (4, 8, 16)
MOST_EVENTS = 4_096
_DATA = Unknown(Leaf("data in a word of global memory by which CTAs talk", 0))


class TalkingCluster(RecordingCluster, Protocol):
    """What words need of the CTAs that are followed together."""

    code: Code


class TalkingWarp(AccessingWarp, Protocol):
    """What they need of a warp."""

    cta: int
    whole: int
    maybe: int
    R: list[Value]
    fences: LaneFences

    @property
    def live(self) -> int:
        """The lanes that have not ended."""

    @property
    def has_two_ways(self) -> bool:
        """Whether it runs what happens by one result of a try_wait, and not by the other."""

    def block(self, ready: Callable[[], bool]) -> None:
        """Stand here until ``ready``."""

    def write(self, register: int, value: Value) -> None:
        """To a register, in the lanes that execute."""

    def write_results(self, step: DecodedStep, value: Value) -> None:
        """The same for every result of an instruction."""

    def loop_of_wait(self, step: DecodedStep) -> LoopOfWait:
        """The loop around a load or an atomic."""


class WordMemory:
    """The words of one run. ``times``: how often an addition counts. ``places``: addresses of words that runs before
    have ``met``: in shared memory, and inside of a cluster, what is stored elsewhere is data; others are words that may
    or may not have been written, as weak loads decide.
    """

    def __init__(self, image: Image, launch: Launch, times: int, places: frozenset[int]) -> None:
        self._image, self._turns, self._inside, self._times = image, launch.turns, launch.inside, times
        self.places = frozenset(at for at in places if self._inside or in_shared(at))
        self.decided_by_loads = places - self.places
        self._any = times.__class__ is not int  # it is a number that is not known
        self.values: dict[int, Value] = {}  # of which some bits may be data that is not known
        self.sizes: dict[int, int] = {}
        self.events: list[WordEvent] = []
        self.sequence: list[tuple[int, int]] = []  #: agent and word of each write
        self._by_warp = self._inside or launch.turns[:1] >= (launch.together,)  #: a turn is that of one
        self._first_warp = 0 if self._inside else launch.together  # the number of the first one
        self.taken_for_zero: dict[int, None] = {}  #: words of which the launch does not say what they hold at first
        self.doubts: dict[int, str] = {}  #: by position: why what is done there is not understood
        self.waiting: dict[int, tuple[int, int, Callable[[int], bool | None], int]] = {}  #: by agent: position, word,
        #: what it waits for, and order and scope
        self._word_of: dict[int, int] = {}  #: by byte
        self._unknown: set[int] = set()  #: bytes of which a store is not known
        self.met: set[int] = set()
        self.at_data: set[int] = set()  #: positions at which something else is accessed
        self._read: dict[int, set[Instruction]] = {}  #: words that are not waited for there: the loads of each
        self._told_by: dict[int, set[int]] = {}  #: by word, where lanes write it that pass on what others have done
        self._observed: Observations | None = None
        self._version = 0
        self._history: dict[int, list[Value]] = {}  # the values of each word
        self._data: dict[int, int] = {}  # by word: the bits that are data in one of them
        self._parts: dict[int, set[int]] = {}  # by word: the bits of the elements as which it is accessed
        self._given: dict[int, int] = {}  # and the bits that loads of vectors were given
        self._known: dict[tuple[int, int], int] = {}  # by agent and word: how many writes it knows of
        self._handing: dict[tuple[int, int], int] = {}  # by CTA and position: the agent that gives what it sees to all
        self._looks = WordLooks(launch.sees, all_alike=self._any or times != 1)

    def _look_who_hands_on(self, cluster: TalkingCluster, warp: TalkingWarp, position: int) -> None:
        """Doubt a wait whose answer is given to all threads of a CTA, where several threads give it."""
        wait = cluster.code.regions.loops.voted.get(position)
        if isinstance(wait, HandedWait):
            agent = self._handing.setdefault((warp.cta, position), warp.agent)
            if agent != warp.agent or warp.mask.bit_count() > 1:
                self.doubts[position] = "several threads give what they see of it to others"

    @property
    def off_turn(self) -> bool:
        """Whether a write that was to come next never came, or one that was to be seen."""
        return len(self.sequence) < len(self._turns) or self._looks.left

    def turns(self, ctas: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Who writes, and the word of each write: a CTA, or one of its warps, from the number of CTAs on, if several
        warps of a CTA execute atomics whose answers decide. ``ctas``: of each agent.
        """
        asked = {e.address for e in self.events if e.observed}
        by_word = ({e.agent for e in self.events if e.act.writes and e.address == at} for at in asked)
        several = any(len({ctas[agent] for agent in agents}) < len(agents) for agents in by_word)
        if self._by_warp or several:
            return tuple((self._first_warp + agent, word) for agent, word in self.sequence)
        return tuple((ctas[agent], word) for agent, word in self.sequence)

    @property
    def looks(self) -> tuple[Look, ...]:
        """What was seen where that decides what is done next, and what may be seen besides."""
        return self._looks.all_seen(self._history)

    @property
    def asked(self) -> set[int]:
        """The words for whose values some agent waits, or on which what it does depends."""
        asks = (event for event in self.events if event.act is WordAct.WAIT or event.observed)
        asked = {event.address for event in asks} | {wait[1] for wait in self.waiting.values()}
        before = -1
        while self._observed is not None and len(asked) > before:
            before, decides = len(asked), self._observed.decides
            written = {event.position for event in self.events if event.address in asked and event.act.writes}
            asked |= {at for at, loads in self._read.items() if any(decides(each, written) for each in loads)}
        return asked

    @property
    def in_step(self) -> set[int]:
        """Where lanes write words that others ask for, and so pass on what lanes have done that these have not met."""
        return {position for at in self.asked for position in self._told_by.get(at, ())}

    # what accesses have in common

    def _lanes(
        self, warp: TalkingWarp, each: Instruction, address: Value, *, asks: bool = False, each_lane: bool = False
    ) -> dict[int, int]:  # fmt: skip
        """The address of each lane that executes, where words are; none where one is not known or elsewhere.

        Of lanes that all have the same address the first represents all, or each is there. ``asks``: what is there is
        a word.
        """
        lanes = lanes_in(warp.mask)[: None if each_lane or not isinstance(address, int) else 1]
        of_lanes = {lane: of_lane(address, lane) for lane in lanes}
        places = self._places(warp, address)
        shared = {in_shared(at) for at in places}
        if len(shared) != 1 or any(LOCAL_WINDOW <= at < LOCAL_WINDOW_END for at in places):
            return {}
        if not (self._inside or True in shared):
            return {lane: int(at) for lane, at in of_lanes.items()}
        self.met |= places if asks else set()
        if self.places.issuperset(places):
            return {lane: int(at) for lane, at in of_lanes.items()}
        if any(at + i in self._word_of for at in places for i in range(size_of(each))):
            self.doubts[each.position] = "parts of the word are accessed alone"
        self.at_data.add(each.position)
        return {}

    def _is_data(self, warp: TalkingWarp, each: Instruction, address: Value) -> bool:
        """Whether a store is at addresses that are known, where only what has been met is a word; or there is none."""
        places = self._places(warp, address)
        if not places or self._inside:
            return bool(places) or (not self.places and (self._inside or "shared" in each.spaces))
        return any(in_shared(at) or LOCAL_WINDOW <= at < LOCAL_WINDOW_END for at in places)

    @staticmethod
    def _places(warp: TalkingWarp, address: Value) -> set[int]:
        """The addresses of the lanes that execute, in this CTA; none where one is not known."""
        of_lanes = [of_lane(address, lane) for lane in lanes_in(warp.mask)]
        return {int.__int__(at) for at in of_lanes} if are_known(of_lanes) else set()

    def _is_elsewhere(self, warp: TalkingWarp, each: Instruction, address: Value) -> bool:
        """Whether it depends on the CTA, in a run of any: whether it is a word, the reader of the run sees."""
        lanes = {isinstance(of_lane(address, lane), Varying) for lane in lanes_in(warp.mask)} if self._any else ()
        if len(lanes) > 1:
            self.doubts[each.position] = "some lanes access what depends on the CTA, and others do not"
        return True in lanes

    def _number(self, at: int, value: Value) -> Value:
        """A value of a word that an event has as an integer: what is data in one of its values is not known."""
        data = self._data.get(at, 0)
        if not data or not isinstance(value, int):
            return value
        return partly_known(_DATA, Bits(~data, value & ~data))

    @property
    def why_torn(self) -> dict[int, str]:
        """The words that are loaded as vectors whose elements decide: a load may see them at different times; and those
        whose accesses overlap in part.

        PTX ISA, "Vector Data-types" and "Conflict and Data-races" of the memory consistency model: accesses to elements
        are in no order, and those that do not overlap completely are not morally strong.
        """
        found: dict[int, str] = {}
        for at, widths in self._parts.items():
            if len(widths) > 1:
                found[at] = "it is accessed as one word and by elements of a vector"
            values, data, width = self._history.get(at, ()), self._data.get(at, 0), min(widths)
            elements = [(1 << width) - 1 << n for n in range(0, 8 * self.sizes[at], width)]
            vary = [e for e in elements if len({bits_of(value) & e & ~data for value in values}) > 1]
            if len(vary) > 1 or self._given.get(at, 0) & data:
                found[at] = "several elements of a vector decide what is done, and may be seen at different times"
        return found

    def _leave_open(self, each: Instruction, lanes: dict[int, int], size: int) -> None:
        """What is stored there is not known."""
        for at in lanes.values():
            self._unknown.update(range(at, at + size))
            if any(at + i in self._word_of for i in range(size)):
                self.doubts[each.position] = "what it stores to the word is not known"

    def _begin(self, warp: TalkingWarp, each: Instruction, lanes: dict[int, int], size: int) -> bool:
        """Give words that are new their first values. False where something else is done there than with one word."""
        if warp.maybe or warp.has_two_ways:
            self.doubts[each.position] = "whether it runs depends on a value that is not known"
            here = lanes.values() if each.opcode in ("atom", "red") and not self._inside else ()
            self.met |= {at for at in here if not in_shared(at)}
            return False
        for at in lanes.values():
            mine = range(at, at + size)
            parts = self.sizes.setdefault(at, size) != size or any(self._word_of.setdefault(b, at) != at for b in mine)
            if parts or not self._unknown.isdisjoint(mine) or len(self.events) > MOST_EVENTS:
                self.doubts[each.position] = "parts of the word are accessed alone, or its value is not known"
                return False
            self._parts.setdefault(at, set()).add(8 * size // parts_of_vector(each))
            if at not in self.values:
                known = None if in_shared(at) else self._image.load(at, size)
                if in_shared(at) and each.opcode != "st":
                    self.doubts[each.position] = "nothing is known to be stored to the word before"
                    return False
                if known is None and not in_shared(at):
                    self.taken_for_zero[at] = None
                self.values[at] = 0 if known is None else int(known)
                self._history[at] = [self.values[at]]
        return True

    def _attempt(
        self, cluster: TalkingCluster, warp: TalkingWarp, attempt: Callable[[], bool],
        wait: tuple[int, int, Callable[[int], bool | None], int],
    ) -> None:  # fmt: skip
        """Do it now, or let the warp wait until it can be done: a step on its path."""
        cluster.recorder.execute(warp.agent, wait[0], warp.mask)
        self._look_who_hands_on(cluster, warp, wait[0])
        if attempt():
            return
        mask, whole, seen = warp.mask, warp.whole, self._version
        self.waiting[warp.agent] = wait

        def ready() -> bool:
            nonlocal seen
            if seen == self._version:
                return False
            seen = self._version
            inside, warp.mask, warp.whole = (warp.mask, warp.whole), mask, whole
            done = attempt()
            warp.mask, warp.whole = inside
            if done:
                del self.waiting[warp.agent]
            return done

        warp.block(ready)

    def _is_in_turn(self, warp: TalkingWarp, writes: int) -> bool:
        at, who = len(self.sequence), self._first_warp + warp.agent if self._by_warp else warp.cta
        return all(turn == who for turn in self._turns[at : at + writes])

    def _change(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, at: int, lanes: int, act: WordAct,
        after: Value, *, observed: bool = False,
    ) -> None:  # fmt: skip
        self.sequence.append((warp.agent, at))
        before, self.values[at] = self.values[at], after
        self._history[at].append(after)
        if not isinstance(after, int):
            self._data[at] = self._data.get(at, 0) | ~after.known.mask & (1 << 8 * self.sizes[at]) - 1
        self._version += 1
        self._event(cluster, warp, each, at, lanes, act, before, after, observed=observed)

    def _event(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, at: int, lanes: int, act: WordAct,
        before: Value, after: Value = None, *, observed: bool = False,
        passes: Callable[[int], bool | None] | None = None, decided_by: tuple[int, ...] | None = None,
        version: int = -1, unread: bool = False,
    ) -> None:  # fmt: skip
        if not unread:
            self._known[warp.agent, at] = len(self._history[at]) - 1 if version < 0 else version
        here, alone, written = each.position, warp.mask != warp.live, self._written(each)
        order = order_of(written)
        if act in (WordAct.WAIT, WordAct.CHANGE, WordAct.ADD) and (observed or act is WordAct.WAIT):
            warp.apart.act(LaneAct.WAIT, warp.mask, here, hands_on=False, alone=alone)
            if lanes != warp.mask:
                warp.apart.learn_alone(lanes)
            if order not in (Order.ACQUIRE, Order.ACQ_REL):
                warp.fences.wait(warp.mask)
        if act not in (WordAct.WAIT, WordAct.READ):
            earlier = None if in_shared(at) else warp.apart.earlier
            if (each.opcode != "st" or each.has_any(*STRONG)) and relies_on(warp.apart.unmet(earlier), lanes):
                self._told_by.setdefault(at, set()).add(here)
            warp.apart.act(LaneAct.SIGNAL, warp.mask, here, hands_on=True, alone=alone)
            if order not in (Order.RELEASE, Order.ACQ_REL) or scope_of(written) is Scope.CTA:
                warp.fences.signal(lanes, at)
        number, before = len(self.events), bits_of(before)
        self.events.append(
            WordEvent(number, warp.agent, here, at, act, before, before if after is None else bits_of(after), written,
                      observed, passes, decided_by, version, unread)
        )  # fmt: skip
        record(cluster, warp, here, Op.WORK, number + 1)

    def _written(self, each: Instruction) -> int:
        """Order and scope: without one it is relaxed, and reaches all (PTX ISA, "ld", "st", "atom")."""
        order, scope = as_written(each.modifiers, Order.RELAXED, Scope.GPU)
        alone = scope is Scope.CLUSTER and not self._inside  # CTAs that are followed together are clusters
        return semantics(order, Scope.CTA if alone else scope)


def lanes_at(warp: TalkingWarp, lanes: dict[int, int], at: int) -> int:
    """The lanes that access the word at this address; of all that execute one may be named for all."""
    return warp.mask if len(lanes) == 1 else sum(1 << lane for lane, word in lanes.items() if word == at)


def size_of(each: Instruction) -> int:
    """The bytes that each lane accesses, by the type that the instruction names; 0 where it is none of these."""
    digits = each.modifiers[-1].lstrip("busf")
    return int(digits) // 8 * parts_of_vector(each) if digits.isdecimal() else 0


def parts_of_vector(each: Instruction) -> int:
    """Of how many elements an access is."""
    return int(next((m[1:] for m in each.modifiers if m in ("v2", "v4", "v8")), 1))


def bits_of(value: Value) -> int:
    """The number of a value of a word, of which what is data is taken to be 0."""
    return value.known.bits if isinstance(value, Unknown) else value
