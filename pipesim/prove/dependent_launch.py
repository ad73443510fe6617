"""The order of a kernel's accesses to global memory with ``griddepcontrol``, in every schedule (docs/memory-order.md).

A wait of any thread orders what comes after it: PTX makes what earlier kernels did visible to the grid, not to the
thread. An access of another thread comes after it by whatever orders threads. That is read off the run which represents
all schedules; where none does, an access whose order it would show is not decided, nor is one that comes after the wait
in time alone: a relaxed arrival or wait carries no order of memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from pipesim.findings.memory.before_grid_wait import WHY
from pipesim.model.coverage import Assumed, Assumption
from pipesim.model.dependent_launch import EarlierUse, LaunchAct, LaunchEvent
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import HANDS_ON
from pipesim.model.machine import State, Step
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.certificate.certificate import certified
from pipesim.prove.counterexample.confirm import way_to
from pipesim.prove.happens_before.snapshot import Knowledge
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Refutation

_WRITTEN, _READ, _NO_LOAD_AFTER, _OTHERS_AFTER, _STORED, _STORE = range(len(WHY))


class AfterWait(Enum):
    """Whether an access comes after a wait for earlier kernels."""

    AFTER = 0
    NOT_AFTER = 1
    OPEN = 2  #: other threads' waits may come before it, and no one run shows it, or not in the order of memory


class _Moments(MemoryOrder):
    """Keeps what agents know of the others at some of their operations."""

    def __init__(self, program: Program, wanted: set[tuple[int, int]]) -> None:
        super().__init__(program)
        self._wanted = wanted
        self.clocks: dict[tuple[int, int], Knowledge] = {}

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        self.note(agent, before.pcs[agent])
        super().on_step(before, agent, result)

    def note(self, agent: int, pc: int) -> None:
        """An agent is before this operation."""
        if (agent, pc) in self._wanted:
            self.clocks.setdefault((agent, pc), self._moments[agent])


@dataclass
class EventOrder:
    """The events of a program in relation to its waits and triggers."""

    program: Program
    clocks: dict[tuple[int, int], Knowledge] = field(default_factory=dict)
    certain: bool = True  #: one run represents every schedule

    def after_wait(self, at: int) -> AfterWait:
        """Whether an access comes after a wait in every schedule."""
        event, events = self.program.coverage.dependent[at], self.program.coverage.dependent
        if event.waited:
            return AfterWait.AFTER
        clock = self.clocks.get((event.agent, event.at))
        others = [each for each in events if each.kind is LaunchAct.WAIT and each.agent != event.agent]
        if clock is None or not any(clock.occurs.covers(each.agent, each.at) for each in others):
            return AfterWait.NOT_AFTER
        ordered = any(clock.synced.covers(each.agent, each.at) for each in others)
        return AfterWait.AFTER if self.certain and ordered else AfterWait.OPEN

    def before(self, at: int, other: int) -> bool:
        """Whether an access comes before a trigger of its CTA in every schedule."""
        one, two = (self.program.coverage.dependent[n] for n in (at, other))
        if one.agent == two.agent:
            return at < other
        clock, code = self.clocks.get((two.agent, two.at)), self.program.code[one.agent]
        if clock is None or not self.certain:
            return False
        # of a barrier that comes next the first half is the arrival; what came last may have signalled as much
        arrives = one.at < len(code) and code[one.at][0] == Op.BAR_SYNC
        last = code[one.at - 1][0] if one.at else Op.BAR_SYNC
        only = last == Op.BAR_SYNC or last not in HANDS_ON
        return clock.occurs.seen[one.agent] >= one.at + (not (arrives and only))


def event_order(program: Program, *, triggers: bool = False) -> EventOrder:
    """The order of a program's events, ``triggers`` included. It is run only if some order depends on other agents."""
    events = program.coverage.dependent
    asked = {LaunchAct.WAIT, LaunchAct.TRIGGER} if triggers else {LaunchAct.WAIT}
    open_ = any(each.kind in _ACCESSES and (triggers or not each.waited) for each in events)
    if not open_ or not any(each.kind in asked for each in events):
        return EventOrder(program)
    moments = _Moments(program, {(each.agent, each.at) for each in events})
    run, certificate = certified(program, moments)
    for agent, pc in enumerate(run.state.pcs):
        moments.note(agent, pc)
    return EventOrder(program, moments.clocks, certain=not certificate.doubts)


def early_accesses(order: EventOrder) -> Iterator[tuple[int, int]]:
    """The accesses that no wait precedes, each place once, and why they are taken to meet an earlier kernel.

    -1: it is assumed that they do not. Left out is what no earlier kernel uses, or only reads where this loads it, as
    the launch file says.
    """
    events = order.program.coverage.dependent
    after = [order.after_wait(n) if each.kind in _ACCESSES else AfterWait.AFTER for n, each in enumerate(events)]
    loads = [n for n, each in enumerate(events) if each.kind is LaunchAct.LOAD]
    stored = {each.buffer for each in events if each.kind is LaunchAct.STORE and each.buffer}
    late_load = any(after[n] is not AfterWait.NOT_AFTER for n in loads)
    seen: set[tuple[object, ...]] = set()
    for n, each in enumerate(events):
        place = each.kind, each.agent, each.place, each.buffer
        if after[n] is not AfterWait.NOT_AFTER or place in seen or each.earlier is EarlierUse.NONE:
            continue
        seen.add(place)
        if not each.sure and each.earlier is EarlierUse.UNKNOWN:
            yield n, -1
        elif each.earlier is not EarlierUse.UNKNOWN:
            if each.earlier is EarlierUse.WRITES or each.kind is LaunchAct.STORE:
                yield (n, _WRITTEN if each.earlier is EarlierUse.WRITES else _READ)
        elif each.kind is LaunchAct.STORE:
            yield n, _STORE
        elif each.buffer in stored:
            yield n, _STORED
        elif not late_load and any(other.kind is LaunchAct.STORE for other in events):
            yield n, _NO_LOAD_AFTER
        elif each.buffer and _others_load_after(events, after, n):
            yield n, _OTHERS_AFTER
        else:
            yield n, -1


_ACCESSES = (LaunchAct.LOAD, LaunchAct.STORE)


def _others_load_after(events: tuple[LaunchEvent, ...], after: list[AfterWait], at: int) -> bool:
    """Whether its agent never loads the buffer after a wait, and another one loads it only after one."""
    mine: dict[int, set[AfterWait]] = {}
    for n, each in enumerate(events):
        if each.kind is LaunchAct.LOAD and each.buffer == events[at].buffer:
            mine.setdefault(each.agent, set()).add(after[n])
    return mine.pop(events[at].agent) == {AfterWait.NOT_AFTER} and {AfterWait.AFTER} in mine.values()


def launch_refutations(program: Program) -> tuple[Refutation, ...]:
    """Each role's first access to a buffer that no wait precedes; ``usual`` where the launch says who else uses it."""
    found: dict[tuple[object, ...], Refutation] = {}
    for n, why in early_accesses(event_order(program)):
        event = program.coverage.dependent[n]
        agent, key = event.agent, (program.agents[event.agent].role, event.kind, event.buffer or event.place, why)
        if why >= 0 and key not in found and program.code[agent]:
            pc = min(event.at, len(program.code[agent]) - 1)
            fault = Fault(FaultKind.BEFORE_GRID_WAIT, agent, pc, found=n, expected=why)
            declared = why in (_WRITTEN, _READ)
            found[key] = Refutation(Ending.FAULT, way_to(program, agent, pc), fault, usual=declared)
    return tuple(found.values())


def is_open(program: Program) -> bool:
    """Whether it is not decided of some access that it comes after a wait."""
    events = program.coverage.dependent
    order = event_order(program)
    return any(order.after_wait(n) is AfterWait.OPEN for n, each in enumerate(events) if each.kind in _ACCESSES)


def assumed_of_earlier_kernels(program: Program) -> Iterator[Assumed]:
    """The loads before a wait of what no earlier kernel is assumed to write, each line once."""
    events = program.coverage.dependent
    found = early_accesses(event_order(program))
    for line, what in dict.fromkeys((events[n].line, events[n].buffer) for n, why in found if why < 0):
        yield Assumed(Assumption.EARLIER_KERNELS, f"{what or 'memory'} is accessed before griddepcontrol.wait", (line,))
