"""Whether a program in which words of global memory are barriers has the schedules of its kernel, and no others.

A wait for a word is taken to be one for certain writes (:mod:`pipesim.model.word_barriers`). That is what the kernel
does if the word has no value with which the wait ends before all of these are done, and has only such values after that
until the wait is over. Which writes can come when is what occurs before what in the one run that represents every
schedule: what holds of it holds of them. The argument is by the first wait of a schedule that ends otherwise: up to
there the schedule is one of the program.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pipesim.findings.catalog import MEMORY_ORDER
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.machine import State, Step, initial_state
from pipesim.model.moves import Kind, canonical, make
from pipesim.model.program import Program
from pipesim.model.words import GlobalWord, WeakLoad, WordAct, WordsOfRun, WordWait, WordWrite
from pipesim.prove.certificate.certificate import certified
from pipesim.prove.check import check as prove
from pipesim.prove.happens_before.snapshot import Clock, Knowledge
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Refutation, Why
from pipesim.prove.word_circles import MISSED, may_miss_each_other

NO_ORDER = "what is seen of words goes together in no order of all accesses, of which memory has some"
_RACES = "an access without .relaxed, .acquire or .volatile to a word that another CTA may write meanwhile"
_REPLACES = (WordAct.STORE, WordAct.CHANGE)  #: what leaves a value that the one before does not decide
_MOST_VALUES = 1 << 12  #: of one word, that are looked at for one wait


class Faithful(NamedTuple):
    """``sound``: each schedule of the program is one of the kernel. ``exact``: the kernel has no others. ``position``:
    of a wait, or a load that waits for nothing, that may see something else; -1 if it is not known.
    """

    sound: bool
    exact: bool
    position: int = -1


class OccursBefore(MemoryOrder):
    """What occurs before operations of one run."""

    def __init__(self, program: Program, places: Iterable[tuple[int, int]]) -> None:
        super().__init__(program)
        self._wanted = frozenset(places)
        self.before: dict[tuple[int, int], Clock] = {}
        self.moments: dict[tuple[int, int], Knowledge] = {}  #: the same under each relation of memory
        self.fenced: dict[tuple[int, int], Clock] = {}  #: and what its agent's last wide fence has before it

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """As of every observer."""
        pc = before.pcs[agent]
        if (agent, pc) in self._wanted and result.state.pcs[agent] != pc:
            now = self.moments[agent, pc] = self._now(agent, pc)
            self.before[agent, pc] = now.occurs
            fences = self._released.get(agent)
            self.fenced[agent, pc] = self._nothing if fences is None else fences.wide.ordered
        super().on_step(before, agent, result)


def faithful(program: Program, found: WordsOfRun) -> Faithful:
    """Whether the schedules of a program are those of the kernel that it was read from."""
    clocks = _of_words(program, found)
    _, certificate = certified(program, clocks)
    alike = all(doubt.why is Why.RACE for doubt in certificate.doubts)  # every schedule has the order of this run
    synced = {place: moment.synced for place, moment in clocks.moments.items()}
    of_words = [_Order(word, clocks.before, synced).faithful() for word in found.words]
    exact, open_ = all(each.exact for each in of_words), max((each.position for each in of_words), default=-1)
    return Faithful(alike and all(each.sound for each in of_words), alike and exact, open_)


def _of_words(program: Program, found: WordsOfRun) -> OccursBefore:
    return OccursBefore(program, places_of(found))


def places_of(found: WordsOfRun) -> set[tuple[int, int]]:
    """The agents and operations of all that is done to words."""
    return {(each.agent, pc) for word in found.words for each in word.acts for pc in (each.pc, each.last)}


def more_than_orders(program: Program, found: WordsOfRun) -> str:
    """Why the kernel may do more than orders of all accesses show, "" if it does not."""
    weak = [(load, word, k) for word in found.words for load in word.weak for k in load.writes]
    circles = bool(found.observed) and len(found.words) > 1
    if found.narrow or not (weak or circles):
        return found.narrow
    clocks = OccursBefore(program, places_of(found) | {(load.agent, load.pc) for load, *_ in weak})
    certified(program, clocks)
    if any(_may_race(*each, clocks.moments) for each in weak):
        return _RACES
    return MISSED if circles and may_miss_each_other(program.code, found.words, clocks) else ""


def _may_race(load: WeakLoad, word: GlobalWord, k: int, moments: Mapping[tuple[int, int], Knowledge]) -> bool:
    """Whether release and acquire order a weak access in neither way with a write, or an atomic that observed it."""
    write = word.writes[k]
    at, other = moments.get((load.agent, load.pc)), moments.get((write.agent, write.last))
    later = enumerate(word.writes[k + 1 :] if write.act is not WordAct.STORE else (), k + 1)
    told = [write, *(each for n, each in later if each.observed and word.since(n) <= k)]
    before = at is not None and any(at.synced.covers(each.agent, each.last) for each in told)
    return not before and (other is None or not other.synced.covers(load.agent, load.pc))


def cannot_be_seen(program: Program, found: WordsOfRun) -> bool:
    """Whether a wait sees a value that the order of memory excludes: a later write comes before it."""
    asking = [(word, wait) for word in found.words for wait in word.waits if wait.asks]
    clocks = _of_words(program, found)
    certified(program, clocks) if asking else None
    return any(
        (wait.agent, wait.pc) in clocks.moments
        and any(clocks.moments[wait.agent, wait.pc].synced.covers(w.agent, w.last) for w in word.writes[wait.writes :])
        for word, wait in asking
    )


def may_be_excluded(program: Program, found: WordsOfRun) -> bool:
    """Whether a refuted program may have no execution, as what is seen in it goes together in no order of all accesses.

    PTX allows each such order. Of others ``fence.sc`` may exclude some, or that an agent has seen a later write before.
    """
    asking = [(word, wait) for word in found.words for wait in word.waits if wait.asks]
    if not asking or prove(program).verdict is not Verdict.REFUTED:
        return False
    clocks = _of_words(program, found)
    certified(program, clocks)
    reached: list[set[int]] = []  # the looks that come after the first write that a look has not seen
    for word, wait in asking:
        later = word.writes[wait.writes : wait.writes + 1]
        places = [clocks.before.get((other.agent, other.pc)) for _, other in asking]
        is_after = (clock is not None and clock.covers(w.agent, w.last) for w in later for clock in places)
        reached.append({n for n, after in enumerate(is_after) if after})
    for _ in asking:
        for them in reached:
            them |= {k for each in tuple(them) for k in reached[each]}
    return any(n in them for n, them in enumerate(reached))


@dataclass(frozen=True)
class _Order:
    """What is known of one word. ``before``: what occurs before operations, without those that were never made;
    ``synced``: what of it release and acquire order.

    Every schedule is an execution in which memory has writes in the order in which they come. But memory may have two
    writes in the other order, and a load may see the older one, unless *causality order* says more than that one comes
    first (PTX ISA, "Coherence Order", "Causality order"): ``surely``.
    """

    word: GlobalWord
    before: dict[tuple[int, int], Clock]
    synced: dict[tuple[int, int], Clock]

    def faithful(self) -> Faithful:
        word = self.word
        made = [write for write in word.writes if (write.agent, write.last) in self.before]
        others = [self.before.get((each.agent, each.pc)) for each in word.acts[1:]]
        if word.unset and not all(clock is None or self._wrote_before(0, clock) for clock in others):
            return Faithful(sound=False, exact=False)
        if len(made) < len(word.writes):  # it hangs: nothing is proved of it
            return Faithful(sound=True, exact=False)
        if not (self._in_order() if word.chained else self._stores_in_order()):
            return Faithful(sound=False, exact=False)
        surely = word.chained or self._stores_in_order(surely=True)
        surely &= not word.unset or all(self._is_surely_before(0, each) for each in word.acts[1:])
        each = [self._wait(wait) for wait in word.waits]
        open_ = (wait.position for wait, one in zip(word.waits, each, strict=True) if not (surely and one.exact))
        return Faithful(all(one.sound for one in each), surely and all(one.exact for one in each), next(open_, -1))

    def _is_before(self, agent: int, pc: int, clock: Clock | None) -> bool:
        return clock is not None and clock.covers(agent, pc)

    def _wrote_before(self, k: int, clock: Clock | None) -> bool:
        write = self.word.writes[k]
        return self._is_before(write.agent, write.last, clock)

    def _at_write(self, k: int) -> Clock | None:
        write = self.word.writes[k]
        return self.before.get((write.agent, write.last))

    def _is_surely_before(self, k: int, act: WordWrite | WordWait) -> bool:
        """Whether memory has a write before another one, or before what a wait may see, in every execution."""
        write = self.word.writes[k]
        if write.agent == act.agent:
            return write.pc < act.pc
        known = self._synced_before(act)
        return self._is_before(write.agent, write.last, known) or k < self._observed_before(act)

    def _synced_before(self, act: WordWrite | WordWait) -> Clock | None:
        return self.synced.get((act.agent, act.last if isinstance(act, WordWrite) else act.pc))

    def _observed_before(self, act: WordWrite | WordWait) -> int:
        """How many of the writes accesses have observed that release and acquire, or its agent, order before this one.

        A write comes before what its observer does later, without an acquire (PTX ISA, "Causality order").
        """
        if (act.agent, act.pc) in self._counted:
            return self._counted[act.agent, act.pc]
        known, most = self._synced_before(act), 0
        for agent, (starts, ends, counts) in self._observed.items():
            mine, its = bisect_left(starts, act.pc), 0 if known is None else bisect_left(ends, known.seen[agent])
            n = mine if agent == act.agent else its
            most = max(most, counts[n - 1] if n else 0)
        self._counted[act.agent, act.pc] = most
        return most

    @cached_property
    def _counted(self) -> dict[tuple[int, int], int]:
        return {}  # what was counted before

    @cached_property
    def _observed(self) -> dict[int, tuple[list[int], list[int], list[int]]]:
        """Of each agent's accesses, in its order, the first operation, the last, and how many writes it has observed.

        What replaces a value, or is in the order of the program, comes after all writes before it.
        """
        found: dict[int, tuple[list[int], list[int], list[int]]] = {}
        acts = [(wait.agent, wait.pc, wait.last, wait.writes) for wait in self.word.waits]
        for k, write in enumerate(self.word.writes):
            acts += [(write.agent, write.pc, write.last, (k + 1) * (self.word.chained or write.act in _REPLACES))]
        for agent, pc, last, count in sorted(acts):
            starts, ends, counts = found.setdefault(agent, ([], [], []))
            starts.append(pc)
            ends.append(last)
            counts.append(max(count, counts[-1] if counts else 0))
        return found

    def _comes_after(self, j: int, k: int, *, surely: bool) -> bool:
        return self._is_surely_before(j, self.word.writes[k]) if surely else self._wrote_before(j, self._at_write(k))

    def _in_order(self, *, surely: bool = False) -> bool:
        """``surely``: in every execution; of a chained word others are other programs."""
        surely = surely and not self.word.chained
        return all(self._comes_after(k - 1, k, surely=surely) for k in range(1, len(self.word.writes)))

    def _stores_in_order(self, *, surely: bool = False) -> bool:
        """Whether what replaces the value comes after all writes before it, and before all after it."""
        writes = self.word.writes
        return all(
            all(self._comes_after(j, k, surely=surely) for j in range(k))
            and all(self._comes_after(k, j, surely=surely) for j in range(k + 1, len(writes)))
            for k, write in enumerate(writes)
            if write.act in _REPLACES
        )

    def _wait(self, wait: WordWait) -> Faithful:
        """A wait, or a read, whose value has to be the same in every schedule."""
        word, clock = self.word, self.before.get((wait.agent, wait.pc))
        if clock is None:
            return Faithful(sound=True, exact=False)
        after = {
            k for k in range(wait.writes, len(word.writes)) if self._is_before(wait.agent, wait.last, self._at_write(k))
        }
        open_ = [k for k in range(wait.writes, len(word.writes)) if k not in after]
        missing = [k for k in range(wait.writes) if not self._is_surely_before(k, wait)]
        if wait.passes is None or wait.asks:
            same = not open_ and all(self._wrote_before(k, clock) for k in missing)
            asks = wait.asks and self._in_order()  # other values are other programs
            return Faithful(same or asks, (same and not missing) or (asks and self._in_order(surely=True)))
        if word.chained or any(word.writes[k].act in _REPLACES for k in open_):
            return self._in_turn(wait, open_, missing)
        return self._in_any_order(wait, open_, missing)

    def _in_turn(self, wait: WordWait, open_: list[int], missing: list[int]) -> Faithful:
        word, passes = self.word, wait.passes
        assert passes is not None
        if not self._in_order():
            return Faithful(sound=False, exact=False)
        values = [word.first, *(write.after for write in word.writes)]
        stays = all(passes(values[k + 1]) for k in open_)
        early = any(passes(values[k]) is not False for k in missing)
        return Faithful(stays, stays and not early and self._in_order(surely=True))

    def _in_any_order(self, wait: WordWait, open_: list[int], missing: list[int]) -> Faithful:
        """Of atomics that add in any order every sum is a value that the word may have."""
        word, passes = self.word, wait.passes
        first = next((k for k in range(wait.writes - 1, -1, -1) if word.writes[k].act in _REPLACES), 0)
        assert passes is not None
        full = (1 << 8 * word.size) - 1
        values = [word.first, *(write.after for write in word.writes)]
        later = _sums([word.writes[k].added for k in open_])
        if later is None:
            return Faithful(sound=False, exact=False)
        whole = values[wait.writes]
        stays = all(passes(whole + each & full) for each in later)
        if not stays:
            return Faithful(sound=False, exact=False)
        before_store = [k for k in missing if k < first]
        store_open = first in missing and word.writes[first].act in _REPLACES
        if any(passes(values[k]) is not False for k in before_store) or (
            store_open and passes(values[first]) is not False
        ):
            return Faithful(sound=True, exact=False)
        if before_store and any(word.writes[k].act is WordAct.ADD for k in before_store):
            return Faithful(sound=True, exact=False)
        rest = [k for k in missing if k >= first and word.writes[k].act is WordAct.ADD]
        without = {}  # the sum of all but one, with later ones that may come without it: of equal ones once
        for left in rest:
            beside = tuple(word.writes[k].added for k in open_ if not self._comes_after(left, k, surely=True))
            without[word.writes[left].added, beside] = left
        for (added, beside), left in without.items():
            less = _sums([-word.writes[k].added for k in rest if k != left])
            more = _sums([*beside])
            if less is None or more is None:
                return Faithful(sound=True, exact=False)
            if any(passes(whole - added + a + b & full) is not False for a in less for b in more):
                return Faithful(sound=True, exact=False)
        return Faithful(sound=True, exact=True)


def _sums(added: list[int]) -> set[int] | None:
    """The sums of all subsets; None if they are too many."""
    found = {0}
    for each in added:
        found |= {each + one for one in found}
        if len(found) > _MOST_VALUES:
            return None
    return found


def is_decided(program: Program, found: WordsOfRun, *, hangs: bool) -> bool:
    """Whether a proof of the program, or what refutes it, holds for the kernel. ``hangs``: the kernel hangs as well."""
    true = faithful(program, found)
    if true.exact and not found.stuck:
        return True
    shown = prove(program)
    deadlocks = [each.kind is Ending.DEADLOCK for each in shown.refutations]
    real = true.sound or all(
        each.usual or hung or _is_of_kernel(program, found.words, each)
        for each, hung in zip(shown.refutations, deadlocks, strict=True)
    )
    return shown.verdict is Verdict.REFUTED and (hangs or not any(deadlocks)) and real


def _is_of_kernel(program: Program, words: Sequence[GlobalWord], refuted: Refutation) -> bool:
    """Whether the moves that lead to a fault are an execution of the kernel, in which memory has one order.

    Who waits for a word sees a value that ends the wait; whose next operations a value decides sees that of the run.
    """
    waits = [
        at for word in words for at in {(each.agent, each.position) for each in word.waits if each.passes is not None}
    ]
    several = len({*waits}) < len(waits) or any(word.unset for word in words)
    acts = {(each.agent, each.last): (n, each) for n, word in enumerate(words) for each in word.acts}
    several |= len(acts) < sum(len(word.acts) for word in words)  # one operation waits and writes
    if refuted.fault is None or refuted.fault.kind in MEMORY_ORDER or several:
        return False
    values, state = [word.first for word in words], canonical(initial_state(program))
    for move in refuted.schedule:
        who, pc = (move.who, state.pcs[move.who]) if move.kind is Kind.STEP else (-1, -1)
        state = make(program, state, move).state
        if (who, pc) not in acts or state.pcs[who] == pc:
            continue
        n, each = acts[who, pc]
        word, now, full = words[n], values[n], (1 << 8 * words[n].size) - 1
        if isinstance(each, WordWait):
            as_seen = now == [word.first, *(write.after for write in word.writes)][each.writes]
            if not (as_seen if each.passes is None or each.asks else each.passes(now)):
                return False
        elif (each.observed or each.act is WordAct.CHANGE) and now != each.after - each.added & full:
            return False
        else:
            values[n] = now + each.added & full if each.act is WordAct.ADD else each.after
    return True
