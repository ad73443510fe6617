"""How a divergence is written down: what happened, what the model has instead, and the events around it."""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from pipesim.conform.replay.align import Mismatch
from pipesim.conform.replay.latency_floor import ReleasePath
from pipesim.conform.replay.releases import Release, TooSoon
from pipesim.conform.replay.word_values import EarlyRead
from pipesim.conform.result import ComparedEvent, Divergence, DivergenceKind, EarlyReturn
from pipesim.explain.blocked_agents import explain
from pipesim.model.barrier import LIVE, BarrierState, BarrierWord, decode_word, phase_wanted
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault
from pipesim.model.groups import PARITY_WAITS, TRIES
from pipesim.model.machine import State
from pipesim.model.moves import held_up
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.trace.arrays import np
from pipesim.trace.schema import EventKind, Events, Trace, TraceMeta
from pipesim.trace.sites import Record, SiteTable


class WordPair(NamedTuple):
    """One barrier: its name, the word that was read, and what the machine leaves."""

    name: str
    read: BarrierWord
    model: BarrierWord


def words_read(meta: TraceMeta, cta: int) -> dict[tuple[str, int], BarrierWord]:
    """What the words of a CTA's barriers said, by name and stage; {} if they were not read."""
    return {key[1:]: word for key, word in _all_words(meta, cta).items() if not key[0]}


def _all_words(meta: TraceMeta, cta: int) -> dict[tuple[int, str, int], BarrierWord]:
    """The same of all CTAs of the cluster that has this number, by rank, name and stage."""
    words = next((header.barrier_words for header in meta.ctas if header.cta == cta), ())
    order = [(group.name, stage) for group in meta.barriers for stage in range(group.stages)]
    ranks = -(-len(words) // len(order)) if order else 0
    keys = ((rank, *key) for rank in range(ranks) for key in order)
    return dict(zip(keys, map(decode_word, words), strict=False))


def word_left(barrier: BarrierState) -> BarrierWord:
    """What the word says that the hardware leaves of this barrier."""
    return BarrierWord(barrier.expected, barrier.pending, barrier.tx, barrier.done & 1)


def words_beside(program: Program, state: State, meta: TraceMeta, cta: int) -> list[WordPair]:
    """The barriers of a CTA, or of all CTAs of a cluster, that were read and are live in ``state``."""
    read = _all_words(meta, cta)
    return [
        WordPair(program.barrier_name(n), read[key], word_left(state.barriers[n]))
        for n, barrier in enumerate(program.barriers)
        if (key := (barrier.cta, barrier.name, barrier.stage)) in read and state.barriers[n].life == LIVE
    ]


def word_words(word: BarrierWord) -> str:
    """A word's fields: ``parity 0, 2 of 2 arrivals pending, 0 bytes missing``."""
    return f"parity {word.parity}, {word.pending:,} of {word.expected:,} arrivals pending, {word.tx:,} bytes missing"


_CONTEXT = 4  #: events shown before a divergence

_OPERATIONS = {
    ReleasePath.ARRIVE: "an arrive",
    ReleasePath.REMOTE_ARRIVE: "an arrive from another CTA",
    ReleasePath.CP_ASYNC_ARRIVE: "a cp.async arrive",
    ReleasePath.COPY: "a copy of {bytes} bytes",
    ReleasePath.COPIES: "the first of several copies of {bytes} bytes in all",
    ReleasePath.MULTICAST: "a multicast of {bytes} bytes",
    ReleasePath.MULTICAST_AWAY: "a multicast of {bytes} bytes from another CTA",
}

_ENDED = {Ending.DEADLINE: "timed out", Ending.TRAP: "trapped"}


class CtaDivergences:
    """The events of one CTA in order of time, and the divergences that are found among them."""

    def __init__(self, program: Program, table: SiteTable, trace: Trace, events: Events, cta: int) -> None:
        self._program = program
        self._table = table
        self._trace = trace
        self._events = events
        self._cta = cta

    @cached_property
    def _order(self) -> list[int]:
        """The rows in order of time: most replays have no divergence, and never ask."""
        order: list[int] = np.lexsort((np.arange(len(self._events)), self._events.cycle)).tolist()
        return order

    @cached_property
    def _rank(self) -> dict[int, int]:
        return {row: n for n, row in enumerate(self._order)}

    def time(self, row: int) -> int:
        """When the event of this row was timestamped, -1 for row -1."""
        return int(self._events.cycle[row]) if row >= 0 else -1

    def last_row(self, agent: int) -> int:
        """The row of the agent's last event, -1 if it has none."""
        rows = np.flatnonzero(self._events.agent == agent)
        return int(rows[-1]) if len(rows) else -1

    def mismatch(self, found: Mismatch) -> Divergence:
        """An event that is not the one the protocol has there."""
        expected = "nothing: it has finished"
        if found.expected is not None:
            expected = describe_record(self._table, found.expected)
        actual = describe_event(self._trace, found.row, self._events) if found.row >= 0 else "nothing"
        name = self._program.agent_name(found.agent)
        match found.kind:
            case DivergenceKind.MISSING_EVENT:
                claim = f"the records of {name} end where the protocol continues with: {expected}"
                actual = "no more records"
            case DivergenceKind.BACKWARDS:
                claim = f"{name}: “{actual}” has an earlier timestamp than the event that precedes it"
            case DivergenceKind.EXTRA_EVENT:
                ended = "window" if self._trace.meta.window else "protocol"
                claim = f"{name} continues with “{actual}” where the {ended} has ended"
            case _:
                claim = f"{name}: “{actual}” where the protocol has “{expected}”"
                if actual == expected:
                    claim = f"{name}: “{actual}” is of iteration {int(self._events.iteration[found.row])}, out of order"
        return self._divergence(found.kind, claim, found.agent, found.pc, found.row, actual, expected)

    def other_passes(self, agent: int, expected: tuple[int, int], found: int) -> Divergence:
        """The kernel counted other iterations of an agent than the protocol has, at least and at most."""
        kind = DivergenceKind.MISSING_EVENT if found < expected[0] else DivergenceKind.EXTRA_EVENT
        name = self._program.agent_name(agent)
        wanted = f"{expected[0]:,}" + (f" to {expected[1]:,}" if expected[1] > expected[0] else "")
        claim = f"{name} completed {found:,} iterations where the protocol has {wanted}"
        pc = len(self._program.code[agent])
        return self._divergence(kind, claim, agent, pc, -1, f"{found:,} iterations", f"{wanted} iterations")

    def too_early(self, state: State, agent: int, pc: int, row: int, gap: int, *, outside: bool = False) -> Divergence:
        """An agent continued before what it waited for can have happened; ``gap`` cycles were missing (0: unknown).

        ``outside``: its wait has no record, being outside the window; ``row`` is what followed it, or its last.
        """
        op = self._program.code[agent][pc]
        name = self._program.agent_name(agent)
        if op[0] == Op.BAR_SYNC:
            bar = operand(op, "named_barrier")
            number, threads = self._program.named_barriers[bar][1], operand(op, "threads")
            late = f"; the next operation that could bring them came {gap} cycles later" if gap else ""
            if gap and self._trace.meta.source == "hardware":
                late += ", or its return was recorded before the barrier opened (PIPESIM_RECORD_WARP)"
            claim = (
                f"{name} returns from named barrier {number} before all can have come: "
                f"{threads - state.named[bar][0]} of {threads} threads missing{late}"
            )
            shown = describe_event(self._trace, row, self._events) if row >= 0 else ""
            model = f"blocked until {threads} threads have come"
            return self._divergence(DivergenceKind.TOO_EARLY, claim, agent, pc, row, shown, model, gap=gap)
        if op[0] not in PARITY_WAITS | TRIES:
            claim = f"{name} continues, although no recorded operation allows it"
            return self._divergence(DivergenceKind.TOO_EARLY, claim, agent, pc, row, "continues", "blocked", gap=gap)
        word = state.barriers[operand(op, "barrier")]
        barrier = self._program.barrier_name(operand(op, "barrier"))
        by_state = op[0] == Op.TEST_STATE
        wanted = word.done if by_state else phase_wanted(word, operand(op, "parity"))
        missing = []
        if word.pending:
            missing.append(f"{word.pending} of {word.expected} arrivals")
        if word.tx:
            missing.append(f"{word.tx:,} bytes")
        what = f"{barrier} by state" if by_state else f"{barrier} parity {operand(op, 'parity')}"
        does = f"returns from its wait for {what}" if op[0] in PARITY_WAITS else f"gets true from try_wait of {what}"
        if outside:
            does = f"has passed a wait for {what}, outside the window,"
        claim = f"{name} {does} before phase {wanted} can have completed: {' and '.join(missing)} missing"
        if gap:
            claim += f"; the next operation that could supply it came {gap} cycles later"
        model = (
            f"blocked until phase {wanted} completes"
            if op[0] in PARITY_WAITS
            else f"false until phase {wanted} completes"
        )
        shown = describe_event(self._trace, row, self._events) if row >= 0 else ""
        return self._divergence(
            DivergenceKind.TOO_EARLY, claim, agent, pc, row, shown, model,
            barrier=barrier, wanted=wanted, now=word.done, gap=gap,
        )  # fmt: skip

    def word_too_early(self, read: EarlyRead) -> Divergence:
        """A value of a word of global memory was read before it can have been written."""
        name = self._program.agent_name(read.agent)
        late = f": the first write that makes it came {read.gap:,} cycles later" if read.gap else ", which it never has"
        claim = f"{name} reads {read.value:,} from {read.word}{late}"
        shown, model = describe_event(self._trace, read.row, self._events), "another value"
        kind = DivergenceKind.TOO_EARLY
        return self._divergence(
            kind, claim, read.agent, read.pc, read.row, shown, model, barrier=read.word, gap=read.gap
        )

    def too_soon(self, found: TooSoon) -> Divergence:
        """A wait that returned sooner after an operation that released it than was ever measured."""
        time, least = found.time, found.least
        release, barrier = time.release, self._program.barrier_name(found.barrier)
        op = self._program.code[time.agent][time.pc]
        name, other = self._program.agent_name(time.agent), self._program.agent_name(release.agent)
        does = "returns from its wait for" if op[0] in PARITY_WAITS else "gets true from try_wait of"
        what = _operation(release)
        ago = f"{time.after:,} cycles after" if time.after >= 0 else f"{-time.after:,} cycles before"
        claim = (
            f"{name} {does} {barrier} {ago} {other} issued {what}, which phase {found.phase} needs; this takes "
            f"{least.cycles:,} cycles or more in {least.samples:,} measurements"
        )
        if time.uncertainty:
            claim += f" (timestamps ±{time.uncertainty:,})"
        line = self._program.line(release.agent, release.pc)
        early = EarlyReturn(what, other, line, time.after, least.cycles, least.samples, found.source)
        expected = f"no return within {least.cycles:,} cycles of {what}"
        shown = describe_event(self._trace, time.row, self._events)
        found_there = self._divergence(
            DivergenceKind.TOO_SOON, claim, time.agent, time.pc, time.row, shown, expected,
            barrier=barrier, gap=found.missing_cycles,
        )  # fmt: skip
        return replace(found_there, early=early)

    def fault(self, found: Fault, row: int) -> Divergence:
        """The model breaks a rule when it follows the events."""
        name = self._program.agent_name(found.agent)
        barrier = self._program.barrier_name(found.barrier) if found.barrier >= 0 else ""
        claim = f"{name}: {found.kind.value}" + (f" ({barrier})" if barrier else "")
        rule = found.kind.value
        return self._divergence(DivergenceKind.FAULT, claim, found.agent, found.pc, row, "", rule, barrier=barrier)

    def not_finished(self, state: State) -> Divergence:
        """The kernel did not finish; the machine is in the state at the end of its records."""
        agents = range(len(self._program.agents))
        left = [a for a in agents if state.pcs[a] < len(self._program.code[a])]
        open_ = [a for a in left if held_up(self._program, state, a) is None]
        status = self._trace.meta.status
        ended = _ENDED.get(status, f"ended as “{status}”")
        claim = f"the kernel {ended}: {len(left) - len(open_)} of {len(agents)} agents blocked"
        if not left:
            claim = f"the kernel {ended}, although every agent of this CTA finished"
            if self._trace.meta.grid > len(self._trace.meta.ctas):
                claim += f": another of its {self._trace.meta.grid:,} CTAs did not, which --cta N records"
        elif open_:
            claim += "".join(f"; {self._last_operation(state, a)}" for a in open_)
        agent = (open_ or left or [0])[0]
        row = self._order[-1] if self._order else -1
        kind = DivergenceKind.NOT_FINISHED
        return replace(
            self._divergence(kind, claim, agent, state.pcs[agent], row, "", ""), stuck=explain(self._program, state)
        )

    def other_words(self, wrong: list[WordPair]) -> Divergence:
        """Barriers whose words, read when the run had finished, are not what the machine leaves."""
        first = wrong[0]
        claim = f"{first.name} was left with {word_words(first.read)}; the protocol leaves {word_words(first.model)}"
        others = ", ".join(both.name for both in wrong[1:])
        claim += f"; {others} {'differs' if len(wrong) == 2 else 'differ'} too" if others else ""
        events = len(self._order)
        kind = DivergenceKind.BARRIER_WORD
        return Divergence(kind, claim, self._cta, "", -1, events, events, -1, first.name)

    def _last_operation(self, state: State, agent: int) -> str:
        """What an agent did last, where the model allows it to continue."""
        name = self._program.agent_name(agent)
        op = self._program.code[agent][state.pcs[agent]]
        if op[0] not in PARITY_WAITS:
            return f"{name} was stopped between two events"
        phase = phase_wanted(state.barriers[operand(op, "barrier")], operand(op, "parity"))
        wait = f"its wait for {self._program.barrier_name(operand(op, 'barrier'))}, whose phase {phase} is complete"
        return f"{name} stayed in {wait}" if self._waits(agent) else f"{name} has no record of entering {wait}"

    def _waits(self, agent: int) -> bool:
        """Whether the agent's last record is the beginning of a wait."""
        row = self.last_row(agent)
        return row >= 0 and self._trace.meta.sites[int(self._events.site[row])].kind is EventKind.WAIT_ENTER

    def _divergence(
        self, kind: DivergenceKind, claim: str, agent: int, pc: int, row: int, actual: str, expected: str,
        *, barrier: str = "", wanted: int = -1, now: int = -1, gap: int = 0,
    ) -> Divergence:  # fmt: skip
        at = self._rank.get(row, len(self._order))
        moments = [self._moment(n, "same") for n in range(max(0, at - _CONTEXT), min(at, len(self._order)))]
        cycle = self.time(row)
        moments.append(ComparedEvent(at, self._program.agent_name(agent), cycle, actual, expected))
        moments += [self._moment(n, "") for n in range(at + 1, min(at + 2, len(self._order)))]
        if not barrier and row >= 0:
            site = self._trace.meta.sites[int(self._events.site[row])]
            barrier = f"{site.group}[{int(self._events.stage[row])}]" if site.group else ""
        return Divergence(
            kind, claim, self._cta, self._program.agent_name(agent),
            int(self._events.iteration[row]) if row >= 0 else 0,
            at, len(self._order), cycle, barrier, wanted, now, gap, self._program.line(agent, pc), tuple(moments),
        )  # fmt: skip

    def _moment(self, n: int, model: str) -> ComparedEvent:
        row = self._order[n]
        name = self._program.agent_name(int(self._events.agent[row]))
        return ComparedEvent(n, name, self.time(row), describe_event(self._trace, row, self._events), model)


def _operation(release: Release) -> str:
    """A release in words: ``the copy of 16,384 bytes``."""
    words = _OPERATIONS[release.path] if release.path is not None else "the operation"
    return words.format(bytes=f"{release.nbytes:,}")


def describe_event(trace: Trace, row: int, events: Events) -> str:
    """An event in words: ``wait full[1] parity 0 return``."""
    site = trace.meta.sites[int(events.site[row])]
    return _words(site.kind, site.barrier, int(events.stage[row]), int(events.parity[row]), int(events.value[row]))


def describe_record(table: SiteTable, record: Record) -> str:
    """What the model expects, in the same words."""
    site = table.sites[record.site]
    return _words(site.kind, site.barrier, record.stage, record.parity, record.value)


#: What an event says. ``place``: its barrier with the stage; ``times``: " ×2", of one arrival nothing.
_EVENTS = {
    EventKind.WAIT_ENTER: "wait {place} parity {parity}",
    EventKind.WAIT_RETURN: "wait {place} parity {parity} returns",
    EventKind.ARRIVE: "arrive {place}{times}",
    EventKind.EXPECT: "expect {place} {value:,} bytes",
    EventKind.COPY: "copy {value:,} bytes → {place}",
    EventKind.TRY: "try {place} {phase}{answer}",
    EventKind.WORK_BEGIN: "work begins",
    EventKind.WORK_END: "work ends",
    EventKind.CP_ASYNC_ARRIVE: "cp.async arrive {place}{times}",
    EventKind.BAR_ARRIVE: "arrive named barrier {barrier}, {value:,} threads",
    EventKind.BAR_ENTER: "sync named barrier {barrier}, {value:,} threads",
    EventKind.BAR_RETURN: "sync named barrier {barrier}, {value:,} threads, returns",
    EventKind.COMMIT: "commit to {place}",
    EventKind.GROUP_COMMIT: "commit {barrier} group",
    EventKind.GROUP_ENTER: "wait for {barrier} groups, {value} may be open",
    EventKind.GROUP_RETURN: "wait for {barrier} groups, {value} may be open, returns",
    EventKind.SPIN_ENTER: "wait for {barrier}",
    EventKind.SPIN_RETURN: "wait for {barrier} ends, it is {value:,}",
    EventKind.WORD_WRITE: "write {barrier}, {value:,}",
    EventKind.ATOMIC_ENTER: "atomic on {barrier}",
    EventKind.ATOMIC_RETURN: "atomic on {barrier} returns {value:,}",
}


def _words(kind: EventKind, barrier: str, stage: int, parity: int, value: int) -> str:
    return _EVENTS[kind].format(
        place=f"{barrier}[{stage}]",
        barrier=barrier,
        parity=parity,
        value=value,
        times=f" ×{value}" if value != 1 else "",
        phase=f"parity {parity}" if parity >= 0 else "by state",
        answer="" if value < 0 else ": true" if value else ": false",
    )
