"""Words of global memory by which CTAs that are followed together talk to each other, and words of shared memory.

Their values are those of the order in which the CTAs run here. Every access that could be part of a protocol is kept as
an event: loops that wait for a value, stores, atomics. What these order in every schedule is for a program to say
(:mod:`pipesim.ptx.emit.word_barriers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from pipesim.model.ops import Op, Order, Scope, order_of, scope_of, semantics
from pipesim.model.words import Look, WordAct, WordEvent
from pipesim.ptx.emulate.accesses import AccessingWarp, RecordingCluster, record
from pipesim.ptx.emulate.code import Code, DecodedStep
from pipesim.ptx.emulate.global_memory.global_accesses import LOCAL_WINDOW, LOCAL_WINDOW_END, in_shared
from pipesim.ptx.emulate.global_memory.global_memory import changed_by_atomic
from pipesim.ptx.emulate.integers import extended
from pipesim.ptx.emulate.lanes.apart import LaneAct, LaneFences, relies_on
from pipesim.ptx.emulate.values import Value, are_known, integers, lanes_in, lanes_of, of_lane, same
from pipesim.ptx.emulate.word_looks import WordLooks
from pipesim.ptx.flow.observations import Observations
from pipesim.ptx.free.varying import Varying
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.instruction import Instruction, Register

STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")
_TAKES = ("cas", "exch", "or", "and", "max", "min")  #: atomics that fail while another CTA holds the word
_SIZES = (4, 8)
_ORDERS = {"acquire": Order.ACQUIRE, "release": Order.RELEASE, "acq_rel": Order.ACQ_REL}
_SCOPES = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "sys": Scope.SYS}
MOST_EVENTS = 4_096


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

    def write_results(self, step: DecodedStep, value: Value) -> None:
        """The same for every result of an instruction."""

    def end_of_wait(self, step: DecodedStep, registers: list[Value]) -> Callable[[Value], bool | None]:
        """Whether the loop around a load or an atomic is left with a result."""


class GlobalWords:
    """The words of one run. ``times``: how often an addition counts. ``places``: addresses of words that runs before
    have ``met``: in shared memory, and inside of a cluster, what is stored elsewhere is data.
    """

    def __init__(self, image: Image, launch: Launch, times: int, places: frozenset[int]) -> None:
        self._image, self._turns, self._inside, self._times = image, launch.turns, launch.inside, times
        self.places = places
        self._any = times.__class__ is not int  # it is a number that is not known
        self.values: dict[int, int] = {}
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
        self._history: dict[int, list[int]] = {}  # the values of each word
        self._known: dict[tuple[int, int], int] = {}  # by agent and word: how many writes it knows of
        self._looks = WordLooks(launch.sees, all_alike=self._any or times != 1)

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

    # what instructions do

    def load(self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, address: Value) -> bool:
        """Whether this is a load of such words; then it is done, or the warp waits."""
        each = step.instruction
        size, strong, lanes = _size(each), each.has_any(*STRONG), dict[int, int]()
        if not self._is_elsewhere(warp, each, address):
            lanes = self._lanes(warp, each, address, asks=strong and step.valued)
        if not lanes or size not in _SIZES or not step.valued or len(step.results) != 1:
            return False
        if not strong and self.values.keys().isdisjoint(lanes.values()):
            return False
        if not self._begin(warp, each, lanes, size):
            return False

        def widened(value: Value) -> Value:
            signed = each.modifiers[-1].startswith("s") and isinstance(each.operands[0], Register)
            return extended(value, 8 * size, cluster.code.width(each.operands[0].name)) if signed else value  # type: ignore[union-attr]

        found = _lanes_with(lanes, lambda lane: self.values[lanes[lane]])
        polls = strong and cluster.code.regions.polls(each.position)
        looks = strong and not polls and self._decides_next(cluster, each, lanes)
        if not polls and (before := self._seen_before(cluster, warp, each, lanes)) is not None:
            warp.write_results(step, widened(before))
            return True
        if not polls and not looks:
            self._read_alone(cluster, warp, each, lanes)
            warp.write_results(step, widened(found))
            return True
        snapshot = list(warp.R)
        ends = warp.end_of_wait(step, snapshot) if polls else _ends_at_once
        asks = looks or (self._looks.asks and cluster.code.regions.is_used_after(each.position))

        def attempt() -> bool:
            places = dict.fromkeys(lanes.values())
            codes = self._looks.wanted(warp.agent, len(places)) if asks else ()
            wanted = dict(zip(places, codes, strict=False))
            if any(version >= len(self._history[at]) for at, version in wanted.items()):
                return False
            versions = {at: wanted.get(at, len(self._history[at]) - 1) for at in places}
            now = widened(_lanes_with(lanes, lambda lane: self._history[lanes[lane]][versions[lanes[lane]]]))
            said = ends(now)
            if said is None:
                self.doubts[each.position] = "when the loop ends depends on more than this word"
            if said is False:
                return False
            for at, version in versions.items():
                by = _decided_by(cluster, each, snapshot) if not self._any and self._times > 1 else None
                one, known = self._one(ends, widened), self._known.get((warp.agent, at), 0)
                mask, value = _at(warp, lanes, at), self._history[at][version]
                number = version if asks else -1
                self._event(
                    cluster, warp, each, at, mask, WordAct.WAIT, value, passes=one, decided_by=by, version=number
                )
                if asks:
                    self._looks.see(self.events[-1], known)
            warp.write_results(step, now)
            return True

        first = next(iter(lanes.values()))
        self._attempt(cluster, warp, attempt, (each.position, first, self._one(ends, widened), self._written(each)))
        return True

    @staticmethod
    def _one(ends: Callable[[Value], bool | None], widened: Callable[[Value], Value]) -> Callable[[int], bool | None]:
        return lambda value: ends(widened(value))

    def store(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, address: Value, values: list[Value]
    ) -> None:  # fmt: skip
        """A store, which may be one of such words."""
        size = _size(each)
        if self._is_elsewhere(warp, each, address):
            return
        each_lane = [of_lane(values[0], n) for n in lanes_in(warp.mask)]
        known = len(values) == 1 and size in _SIZES and are_known(each_lane)
        lanes = self._lanes(warp, each, address)
        if known and len(lanes) < len(each_lane):
            known = all(same(each_lane[0], one) for one in each_lane)
        if not lanes and self._is_data(warp, each, address):
            return
        if not lanes:
            self.doubts[each.position] = "it stores at an address that is not known"
        elif not known:
            self._leave_open(each, lanes, size * len(values))
        elif self._begin(warp, each, lanes, size):
            given = {at: int(of_lane(values[0], lane)) & (1 << 8 * size) - 1 for lane, at in lanes.items()}

            def attempt() -> bool:
                if not self._is_in_turn(warp, len(given)):
                    return False
                for at, value in given.items():
                    self._change(cluster, warp, each, at, _at(warp, lanes, at), WordAct.STORE, value)
                return True

            wait = each.position, next(iter(given)), lambda _: True, self._written(each)
            self._attempt(cluster, warp, attempt, wait)

    def atomic(
        self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, address: Value, operands: list[Value]
    ) -> bool:
        """Whether this is an atomic on such words; then it is done, or the warp waits."""
        each = step.instruction
        size = _size(each)
        elsewhere = self._is_elsewhere(warp, each, address)
        lanes = {} if elsewhere else self._lanes(warp, each, address, asks=bool(step.results), each_lane=True)
        given = {lane: [of_lane(v, lane) for v in operands] for lane in lanes}
        if not lanes or size not in _SIZES:
            self._look_for_lock(cluster, warp, step, address, operands)
            return False
        if not all(map(are_known, given.values())) or each.has_any("f32", "f64", "f16x2", "bf16x2"):
            self._leave_open(each, lanes, size)
            return False
        if not self._begin(warp, each, lanes, size):
            return False
        act = WordAct.ADD if each.has("add") else WordAct.CHANGE
        observed = step.valued and each.position in cluster.code.regions.observations.read
        loop = observed and len(lanes) == 1 and cluster.code.regions.polls(each.position)
        if observed and not loop and self._tries(cluster, warp, step, lanes, given):
            return True
        ends = warp.end_of_wait(step, list(warp.R)) if loop else None

        def attempt() -> bool:
            found: dict[int, int] = {}
            if len(lanes) > 1 and not self._is_in_turn(warp, len(lanes)):
                return False
            for lane, at in lanes.items():
                before = found[lane] = self.values[at]
                after = changed_by_atomic(each, before, given[lane], size)
                if after is None:
                    self.doubts[each.position] = f"what {each.mnemonic} leaves is not known"
                    after = before
                after = self._of_all(each, before, after, size) if act is WordAct.ADD else after
                if after == before and (ends is not None or each.has_any("cas", "add")):
                    said = None if ends is None else ends(before)
                    if said is False:
                        return False
                    kind = WordAct.READ if ends is None or said is None else WordAct.WAIT
                    self._event(cluster, warp, each, at, _at(warp, lanes, at), kind, before, passes=ends)
                    continue
                if len(lanes) == 1 and not self._is_in_turn(warp, 1):
                    return False
                if ends is not None and each.has_any(*_TAKES) and ends(after) is None:
                    self.doubts[each.position] = "when the loop ends depends on more than this word"
                self._change(cluster, warp, each, at, _at(warp, lanes, at), act, after, observed=observed)
            warp.write_results(step, _lanes_with(lanes, lambda lane: found[lane]))
            return True

        def succeeds(value: int) -> bool | None:
            return changed_by_atomic(each, value, given[next(iter(lanes))], size) != value or (ends and ends(value))

        wait = each.position, next(iter(lanes.values())), succeeds, self._written(each)
        self._attempt(cluster, warp, attempt, wait)
        return True

    def _read_alone(self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, lanes: dict[int, int]) -> None:
        """A load that waits for nothing, and decides nothing."""
        for at in dict.fromkeys(lanes.values()):
            self._event(cluster, warp, each, at, warp.mask, WordAct.READ, self.values[at])
            self._observed = cluster.code.regions.observations
            self._read.setdefault(at, set()).update([each] if each.has_any(*STRONG) or self._inside else ())

    def _seen_before(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, lanes: dict[int, int]
    ) -> Value | None:
        """What a load sees of a word before the loop that waits for it, which alone reads the result: as little as may
        be. Who sees more then waits for less, and knows no less. None of any other load.
        """
        voted, at = cluster.code.regions.voted.get(each.position), next(iter(lanes.values()))
        if voted is None or each.position not in voted.before:
            return None
        return self._history[at][self._known.get((warp.agent, at), 0)]

    def _decides_next(self, cluster: TalkingCluster, each: Instruction, lanes: dict[int, int]) -> bool:
        """Whether what is seen of a word decides what is done next, so that each value is another run."""
        return self._looks.asks and len({*lanes.values()}) == 1 and cluster.code.regions.observations.decides(each)

    def _tries(
        self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, lanes: dict[int, int],
        given: dict[int, list[Value]],
    ) -> bool:  # fmt: skip
        """Whether an atomic that is carried out once may fail, and what is done next depends on that."""
        each, at, operands = step.instruction, next(iter(lanes.values())), next(iter(given.values()))
        decides = each.has("cas") and cluster.code.regions.observations.decides(each)
        if len(lanes) > 1 and decides:
            self.doubts[each.position] = "several lanes try to change words"
        if len(lanes) > 1 or not (decides and self._looks.asks):
            return False

        def fails(value: int) -> bool:
            return changed_by_atomic(each, value, operands, _size(each)) == value

        attempt = partial(self._try, cluster, warp, step, at, operands, fails)
        self._attempt(cluster, warp, attempt, (each.position, at, lambda _: True, self._written(each)))
        return True

    def _try(
        self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, at: int, operands: list[Value],
        fails: Callable[[int], bool],
    ) -> bool:  # fmt: skip
        """Carry out an atomic that may fail, if it may do now what it is to do."""
        each, history, known = step.instruction, self._history[at], self._known.get((warp.agent, at), 0)
        version = self._looks.tried(warp.agent, history, fails)
        if version is None or (version < 0 and not self._is_in_turn(warp, 1)):
            return False
        before = history[version]
        if version >= 0:
            self._event(cluster, warp, each, at, warp.mask, WordAct.WAIT, before, passes=fails, version=version)
            self._looks.see(self.events[-1], known, fails)
        else:
            after = changed_by_atomic(each, before, operands, self.sizes[at])
            assert after is not None
            self._change(cluster, warp, each, at, warp.mask, WordAct.CHANGE, after, observed=True)
            self._looks.see(replace(self.events[-1], version=len(history) - 2), known, fails)
        warp.write_results(step, before)
        return True

    def _look_for_lock(
        self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, address: Value, operands: list[Value]
    ) -> None:
        """Doubt a loop that tries to take what is at an address that is not known; not one that tries to change data:
        what that stores is made of what it has loaded.
        """
        each = step.instruction
        taken = step.valued and each.has_any("cas", "exch") and cluster.code.regions.polls(each.position)
        here = [of_lane(v, lane) for v in operands for lane in lanes_in(warp.mask)]
        if taken and are_known(here) and "shared" not in each.spaces and not self._places(warp, address):
            self.doubts[each.position] = "it waits for a word at an address that is not known"

    # how they do it

    def _of_all(self, each: Instruction, before: int, after: int, size: int) -> int:
        """What as many additions leave as there are CTAs."""
        if not self._any and self._times == 1:
            return after
        found = before + self._times * (after - before & (1 << 8 * size) - 1)
        if found >> 8 * size:
            self.doubts[each.position] = "the word goes beyond its greatest value"
        return found

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
        width = _size(each) * int(next((m[1:] for m in each.modifiers if m in ("v2", "v4", "v8")), 1))
        if any(at + i in self._word_of for at in places for i in range(width)):
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
            return False
        for at in lanes.values():
            mine = range(at, at + size)
            parts = self.sizes.setdefault(at, size) != size or any(self._word_of.setdefault(b, at) != at for b in mine)
            if parts or not self._unknown.isdisjoint(mine) or len(self.events) > MOST_EVENTS:
                self.doubts[each.position] = "parts of the word are accessed alone, or its value is not known"
                return False
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
        after: int, *, observed: bool = False,
    ) -> None:  # fmt: skip
        self.sequence.append((warp.agent, at))
        before, self.values[at] = self.values[at], after
        self._history[at].append(after)
        self._version += 1
        self._event(cluster, warp, each, at, lanes, act, before, after, observed=observed)

    def _event(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, at: int, lanes: int, act: WordAct,
        before: int, after: int | None = None, *, observed: bool = False,
        passes: Callable[[int], bool | None] | None = None, decided_by: tuple[int, ...] | None = None,
        version: int = -1,
    ) -> None:  # fmt: skip
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
        number = len(self.events)
        self.events.append(
            WordEvent(number, warp.agent, here, at, act, before, before if after is None else after, written,
                      observed, passes, decided_by, version)
        )  # fmt: skip
        record(cluster, warp, here, Op.WORK, number + 1)

    def _written(self, each: Instruction) -> int:
        """Order and scope: without one it is relaxed, and reaches all (PTX ISA, "ld", "st", "atom")."""
        order = next((_ORDERS[m] for m in each.modifiers if m in _ORDERS), Order.RELAXED)
        scope = next((_SCOPES[m] for m in each.modifiers if m in _SCOPES), Scope.GPU)
        alone = scope is Scope.CLUSTER and not self._inside  # CTAs that are followed together are clusters
        return semantics(order, Scope.CTA if alone else scope)


def _decided_by(cluster: TalkingCluster, each: Instruction, registers: list[Value]) -> tuple[int, ...] | None:
    """The numbers in the registers that the loop around a load reads besides its result, None if not all are known."""
    code = cluster.code
    loop = code.regions.innermost_loop_around(each.position)
    uses = code.regions.uses
    names = sorted({name for p in loop for name in uses.reads[p]} - set(uses.writes[each.position]))
    values = [registers[code.register(name)] for name in names]
    return tuple(int(each) for each in values if isinstance(each, int)) if integers(values) else None


def _ends_at_once(_: Value) -> bool | None:
    return True


def _at(warp: TalkingWarp, lanes: dict[int, int], at: int) -> int:
    """The lanes that access the word at this address; of all that execute one may be named for all."""
    return warp.mask if len(lanes) == 1 else sum(1 << lane for lane, word in lanes.items() if word == at)


def _size(each: Instruction) -> int:
    digits = each.modifiers[-1].lstrip("busf")
    return int(digits) // 8 if digits.isdecimal() else 0


def _lanes_with(lanes: dict[int, int], value: Callable[[int], int]) -> Value:
    """The value of each lane; one integer where they are equal, as those of one lane are."""
    found = {lane: value(lane) for lane in lanes}
    first, differ = next(iter(found.values())), len(found) > 1 and len(set(found.values())) > 1
    return lanes_of([found.get(lane, first) for lane in range(32)]) if differ else first
