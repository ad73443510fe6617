"""Words of global memory by which CTAs that are followed together talk to each other, and words of shared memory.

Their values are those of the order in which the CTAs run here. Every access that could be part of a protocol is kept as
an event: loops that wait for a value, stores, atomics. What these order in every schedule is for a program to say
(:mod:`pipesim.ptx.emit.word_barriers`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pipesim.model.words import WordAct
from pipesim.ptx.emulate.arithmetic.integers import extended
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.global_memory.global_memory import changed_by_atomic
from pipesim.ptx.emulate.global_memory.waits_for_words import LoopOfWait, parts_of_value
from pipesim.ptx.emulate.global_memory.word_memory import (
    SIZES,
    STRONG,
    TalkingCluster,
    TalkingWarp,
    WordMemory,
    bits_of,
    lanes_at,
    parts_of_vector,
    size_of,
)
from pipesim.ptx.emulate.values import Unknown, Value, are_known, integers, lanes_in, lanes_of, of_lane, same
from pipesim.ptx.text.instruction import Instruction, Register

_TAKES = ("cas", "exch", "or", "and", "max", "min")  #: atomics that fail while another CTA holds the word


class GlobalWords(WordMemory):
    """What loads, stores and atomics do to the words of one run."""

    def load(self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, address: Value) -> bool:
        """Whether this is a load of such words; then it is done, or the warp waits."""
        each = step.instruction
        size, strong, lanes = size_of(each), each.has_any(*STRONG), dict[int, int]()
        if not self._is_elsewhere(warp, each, address):
            lanes = self._lanes(warp, each, address, asks=strong and step.valued)
        if not lanes or size not in SIZES or not step.valued or (not strong and len(step.results) != 1):
            self._acquire_again(cluster, warp, step, {*lanes.values()})
            return False
        if not strong and {*self.values, *self.decided_by_loads}.isdisjoint(lanes.values()):
            return False
        widened = partial(_widened, cluster, each, size)
        polls = strong and cluster.code.regions.loops.polls(each.position)
        looks = strong and not polls and self._decides_next(cluster, each, lanes)
        alone = strong and not (polls or looks) and self._holds_data_alone(lanes, size)
        if alone or not self._begin(warp, each, lanes, size):
            return False
        if not polls and (now := self._at_once(cluster, warp, each, lanes, looks=looks)) is not None:
            self._give(warp, step, lanes, widened(now))
            return True
        snapshot, loop = list(warp.R), warp.loop_of_wait(step) if polls else None
        ends = _ends_at_once if loop is None else loop.ends
        asks = looks or (self._looks.asks and cluster.code.regions.loops.is_used_after(each.position))

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
            if len(places) > 1 and not self._needs_all(lanes, versions, lambda value: ends(widened(value))):
                self.doubts[each.position] = "the loop may end with some of the words that its lanes load"
            for at, version in versions.items():
                by = _decided_by(cluster, each, snapshot) if not self._any and self._times > 1 else None
                one, known = self._one(at, ends, widened), self._known.get((warp.agent, at), 0)
                mask, value = lanes_at(warp, lanes, at), self._history[at][version]
                number = version if asks else -1
                self._event(
                    cluster, warp, each, at, mask, WordAct.WAIT, value, passes=one, decided_by=by, version=number
                )
                if asks:
                    self._looks.see(self.events[-1], known)
            self._give(warp, step, lanes, now)
            _leave(warp, loop)
            return True

        first = next(iter(lanes.values()))
        wait = each.position, first, self._one(first, ends, widened), self._written(each)
        self._attempt(cluster, warp, attempt, wait)
        return True

    def _at_once(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, lanes: dict[int, int], *, looks: bool
    ) -> Value | None:
        """What a load gives that does not wait, None if it looks for what may be there."""
        before = self._seen_before(cluster, warp, each, lanes)
        if before is None and not looks:
            self._read_alone(cluster, warp, each, lanes)
            before = _lanes_with(lanes, lambda lane: self.values[lanes[lane]])
        return before

    def _one(
        self, at: int, ends: Callable[[Value], bool | None], widened: Callable[[Value], Value]
    ) -> Callable[[int], bool | None]:  # fmt: skip
        return lambda value: ends(widened(self._number(at, value)))

    def _needs_all(self, lanes: dict[int, int], versions: dict[int, int], ends: Callable[[Value], bool | None]) -> bool:
        """Whether a loop in which lanes load several words ends with each of them alone, and with none missing."""
        for at, version in versions.items():
            if ends(self._history[at][version]) is not True:
                return False
            for other in dict.fromkeys(map(bits_of, self._history[at])):
                value = self._number(at, other)
                mixed = {word: value if word == at else self._history[word][n] for word, n in versions.items()}
                of_lanes = {lane: mixed[word] for lane, word in lanes.items()}
                if ends(value) is not True and ends(_lanes_with(lanes, of_lanes.__getitem__)) is not False:
                    return False
        return True

    def _holds_data_alone(self, lanes: dict[int, int], size: int) -> bool:
        """Whether all lanes load something of which a store is not known at all, and that is not a word yet."""
        return all(at not in self.sizes and not self._unknown.isdisjoint(range(at, at + size)) for at in lanes.values())

    def _give(self, warp: TalkingWarp, step: DecodedStep, lanes: dict[int, int], value: Value) -> None:
        """Write the value of each lane, or the elements of a vector."""
        for lane, at in lanes.items() if parts_of_vector(step.instruction) > 1 else ():
            one = of_lane(value, lane)
            self._given[at] = self._given.get(at, 0) | (-1 if isinstance(one, int) else one.known.mask)
        for register, part in zip(step.results, parts_of_value(step, value), strict=True):
            warp.write(register, part)

    def store(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, address: Value, values: list[Value]
    ) -> None:  # fmt: skip
        """A store, which may be one of such words."""
        size, strong = size_of(each), each.has_any(*STRONG)
        if self._is_elsewhere(warp, each, address):
            return
        if len(values) > 1 and strong:
            values = [_joined(values, 8 * size // len(values))]
        each_lane = [of_lane(values[0], n) for n in lanes_in(warp.mask)]
        known = len(values) == 1 and size in SIZES
        known = known and (are_known(each_lane) or (strong and all(map(_has_bits, each_lane))))
        lanes = self._lanes(warp, each, address)
        if known and len(lanes) < len(each_lane):
            known = all(same(each_lane[0], one) for one in each_lane)
        if not lanes and self._is_data(warp, each, address):
            return
        if not lanes:
            self.doubts[each.position] = "it stores at an address that is not known"
        elif not known:
            self._leave_open(each, lanes, size)
        elif self._begin(warp, each, lanes, size):
            stored = {at: of_lane(values[0], lane) for lane, at in lanes.items()}
            full = (1 << 8 * size) - 1
            given = {at: (int(one) if isinstance(one, int) else one) & full for at, one in stored.items()}

            def attempt() -> bool:
                if not self._is_in_turn(warp, len(given)):
                    return False
                for at, value in given.items():
                    self._change(cluster, warp, each, at, lanes_at(warp, lanes, at), WordAct.STORE, value)
                return True

            wait = each.position, next(iter(given)), lambda _: True, self._written(each)
            self._attempt(cluster, warp, attempt, wait)

    def atomic(
        self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, address: Value, operands: list[Value]
    ) -> bool:
        """Whether this is an atomic on such words; then it is done, or the warp waits."""
        each = step.instruction
        size = size_of(each)
        elsewhere = self._is_elsewhere(warp, each, address)
        lanes = {} if elsewhere else self._lanes(warp, each, address, asks=bool(step.results), each_lane=True)
        given = {lane: [of_lane(v, lane) for v in operands] for lane in lanes}
        if not lanes or size not in SIZES:
            self._look_for_lock(cluster, warp, step, address, operands)
            return False
        if not all(map(are_known, given.values())) or each.has_any("f32", "f64", "f16x2", "bf16x2"):
            self._leave_open(each, lanes, size)
            return False
        if not self._begin(warp, each, lanes, size):
            return False
        act = WordAct.ADD if each.has("add") else WordAct.CHANGE
        observed = step.valued and each.position in cluster.code.regions.observations.read
        loop = observed and len(lanes) == 1 and cluster.code.regions.loops.polls(each.position)
        if observed and not loop and self._tries(cluster, warp, step, lanes, given):
            return True
        wait_loop = warp.loop_of_wait(step) if loop else None
        ends = None if wait_loop is None else wait_loop.ends
        first = next(iter(lanes.values()))
        passes = None if ends is None else self._one(first, ends, lambda value: value)

        def attempt() -> bool:
            found: dict[int, int] = {}
            if len(lanes) > 1 and not self._is_in_turn(warp, len(lanes)):
                return False
            for lane, at in lanes.items():
                before = found[lane] = self.values[at]
                after = self._after(each, before, given[lane], size)
                if after == before and (ends is not None or each.has_any("cas", "add")):
                    said = None if ends is None else ends(before)
                    if said is False:
                        return False
                    kind = WordAct.READ if ends is None or said is None else WordAct.WAIT
                    self._event(cluster, warp, each, at, lanes_at(warp, lanes, at), kind, before, passes=passes)
                    continue
                if len(lanes) == 1 and not self._is_in_turn(warp, 1):
                    return False
                if ends is not None and each.has_any(*_TAKES) and ends(after) is None:
                    self.doubts[each.position] = "when the loop ends depends on more than this word"
                self._change(cluster, warp, each, at, lanes_at(warp, lanes, at), act, after, observed=observed)
            warp.write_results(step, _lanes_with(lanes, lambda lane: found[lane]))
            _leave(warp, wait_loop)
            return True

        def succeeds(value: int) -> bool | None:
            now = self._number(first, value)
            after = _changed(each, now, given[next(iter(lanes))], size)
            return None if after is None else not same(after, now) or (ends and ends(now))

        wait = each.position, first, succeeds, self._written(each)
        self._attempt(cluster, warp, attempt, wait)
        return True

    def _after(self, each: Instruction, before: int, operands: list[Value], size: int) -> int:
        """What an atomic leaves in a word."""
        after = _changed(each, before, operands, size)
        if after is None:
            self.doubts[each.position] = f"what {each.mnemonic} leaves is not known"
            after = before
        return self._of_all(each, before, after, size) if each.has("add") else after

    def _acquire_again(self, cluster: TalkingCluster, warp: TalkingWarp, step: DecodedStep, places: set[int]) -> None:
        """A load of which nothing is made may acquire what its warp has observed of a word."""
        each, sure = step.instruction, not (step.valued or warp.maybe or warp.has_two_ways)
        known = all((warp.agent, at) in self._known and self.sizes[at] == size_of(each) for at in places)
        for at in sorted(places) if each.has("acquire") and known and sure else ():
            self._event(cluster, warp, each, at, warp.mask, WordAct.READ, self.values[at], unread=True)

    def _read_alone(self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, lanes: dict[int, int]) -> None:
        """A load that waits for nothing, and decides nothing."""
        for at in dict.fromkeys(lanes.values()):
            self._event(cluster, warp, each, at, warp.mask, WordAct.READ, self.values[at])
            self._observed = cluster.code.regions.observations
            asks = each.has_any(*STRONG) or self._inside or at in self.decided_by_loads
            self._read.setdefault(at, set()).update([each] if asks else ())

    def _seen_before(
        self, cluster: TalkingCluster, warp: TalkingWarp, each: Instruction, lanes: dict[int, int]
    ) -> Value | None:
        """What a load sees of a word before the loop that waits for it, which alone reads the result: as little as may
        be. Who sees more then waits for less, and knows no less. None of any other load.
        """
        voted, at = cluster.code.regions.loops.voted.get(each.position), next(iter(lanes.values()))
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

        def fails(value: Value) -> bool:
            after = _changed(each, value, operands, size_of(each))
            if after is None:
                self.doubts[each.position] = f"what {each.mnemonic} leaves is not known"
            return after is None or same(after, value)

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
            after = _changed(each, before, operands, self.sizes[at])
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
        taken = step.valued and each.has_any("cas", "exch") and cluster.code.regions.loops.polls(each.position)
        here = [of_lane(v, lane) for v in operands for lane in lanes_in(warp.mask)]
        if taken and are_known(here) and "shared" not in each.spaces and not self._places(warp, address):
            self.doubts[each.position] = "it waits for a word at an address that is not known"

    def _of_all(self, each: Instruction, before: int, after: int, size: int) -> int:
        """What as many additions leave as there are CTAs."""
        if not self._any and self._times == 1:
            return after
        found = before + self._times * (after - before & (1 << 8 * size) - 1)
        if found >> 8 * size:
            self.doubts[each.position] = "the word goes beyond its greatest value"
        return found


def _leave(warp: TalkingWarp, loop: LoopOfWait | None) -> None:
    """What the iterations of a wait leave, of which there may be any number."""
    for register, value in loop.left.items() if loop is not None else ():
        warp.write(register, value)


def _widened(cluster: TalkingCluster, each: Instruction, size: int, value: Value) -> Value:
    """What a load writes to its register."""
    into = each.operands[0]
    if not each.modifiers[-1].startswith("s") or not isinstance(into, Register):
        return value
    return extended(value, 8 * size, cluster.code.width(into.name))


def _has_bits(value: Value) -> bool:
    """Whether something is known of it."""
    return isinstance(value, int) or (isinstance(value, Unknown) and value.known.mask & _WORD != 0)


_WORD = (1 << 128) - 1


def _joined(values: Sequence[Value], width: int) -> Value:
    """The elements of a vector as one value, the first one in the lowest bits."""
    found: Value = 0
    for n, value in enumerate(values):
        found = found | (value & (1 << width) - 1) << width * n
    return found


def _changed(each: Instruction, value: Value, operands: list[Value], size: int) -> Value:
    """What an atomic leaves of a value, None where it is not known: what is data in a word."""
    return changed_by_atomic(each, value, operands, size) if isinstance(value, int) else None


def _decided_by(cluster: TalkingCluster, each: Instruction, registers: list[Value]) -> tuple[int, ...] | None:
    """The numbers in the registers that the loop around a load reads besides its result, None if not all are known."""
    code = cluster.code
    loop = code.regions.loops.innermost_loop_around(each.position)
    uses = code.regions.uses
    names = sorted({name for p in loop for name in uses.reads[p]} - set(uses.writes[each.position]))
    values = [registers[code.register(name)] for name in names]
    return tuple(int(each) for each in values if isinstance(each, int)) if integers(values) else None


def _ends_at_once(_: Value) -> bool | None:
    return True


def _lanes_with(lanes: dict[int, int], value: Callable[[int], Value]) -> Value:
    """The value of each lane; one integer where they are equal, as those of one lane are."""
    found = {lane: value(lane) for lane in lanes}
    first = next(iter(found.values()))
    differ = not all(same(first, each) for each in found.values())
    return lanes_of([found.get(lane, first) for lane in range(32)]) if differ else first
