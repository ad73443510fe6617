"""Whether simulated and measured times agree: an answer of its own, whatever the order of events says.

A time is compared by the steady period of launches without recording where both sides have one, else by the whole run
with recording. The profile states how far off it may be for kernels that it was measured with, between the sizes that
were measured. For any other launch the difference is given as it is, with what lies outside and what the simulation
assumes: constants that are estimates, work of a given length.
Only what an iteration does counts there: what happens once at the beginning or the end is a small part of a run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from pipesim.conform.result import Figure
from pipesim.conform.steady import gaps_from
from pipesim.model.ending import Ending
from pipesim.model.groups import ENGINE_ACCESSES, LOOP_MARKS, MEETING_WAITS, MEETINGS, ON_ENGINE, SIGNALS
from pipesim.model.ops import AT, IN_ORDER, Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices
from pipesim.timed.profile import PERIOD, WHOLE_RUN, Profile, StatedError
from pipesim.trace.arrays import np
from pipesim.trace.schema import INTERPRETED, EventKind, Trace

#: Cycles beside a tenth of itself by which a recorded work may differ from the given one: its two records.
WORK_MARGIN = 50


class AssumedKind(Enum):
    """Which part of a time is assumed. The value is what a report says."""

    DEVICE = "the device {name} (no profile)"  #: the profile is of another device than ``name``
    TCGEN05 = "tcgen05 operations and tensor memory"  #: operations that no profile has constants for
    MATRIX = "matrix multiplications"  #: how long the tensor cores work, which the protocol gives
    MULTICAST = "multicast copies"  #: one copy to several CTAs
    REMOTE = "arrivals at another CTA"
    VALUE = "the profile's {name}"  #: which is an estimate
    INSTRUCTIONS = "work that is estimated from the kernel's instructions"  #: of its PTX
    WORK = "the work of {name}"  #: a role: ``given`` cycles, ``recorded`` in the trace (None: not recorded)


@dataclass(frozen=True)
class TimeAssumption:
    """One thing that a simulated time assumes."""

    kind: AssumedKind
    name: str = ""
    given: int | None = None
    recorded: int | None = None


def assumed_of(program: Program, profile: Profile, measured: Trace) -> tuple[TimeAssumption, ...]:
    """What a simulation of ``program`` on ``profile`` assumes of the run that ``measured`` shows.

    A given work whose records show that it took as long as given is not assumed.
    """
    repeated = tuple(_loop_operations(program))
    ops = dict.fromkeys(op for _, op, _ in repeated)
    found = []
    if profile.device != measured.meta.device.name:
        found.append(TimeAssumption(AssumedKind.DEVICE, measured.meta.device.name))
    if any(op[0] in ON_ENGINE and operand(op, "engine") == Engine.TCGEN05 for op in ops):
        found.append(TimeAssumption(AssumedKind.TCGEN05))
    worked = {line for line, work in program.work_of_line.items() if profile.knows(work.name)}
    if any(op[0] == Op.ENGINE_WORK and operand(op, "cycles") and line not in worked for _, op, line in repeated):
        found.append(TimeAssumption(AssumedKind.MATRIX))
    if any(op[0] in AT["cta_mask"] and operand(op, "cta_mask").bit_count() > 1 for op in ops):
        found.append(TimeAssumption(AssumedKind.MULTICAST))
    if any(_remote(program, agent, op) for agent, op, _ in repeated):
        found.append(TimeAssumption(AssumedKind.REMOTE))
    used = _values_used(program, profile, {(op, line): None for _, op, line in repeated})
    found += [TimeAssumption(AssumedKind.VALUE, name) for name in profile.assumed if name in used]
    if program.counts_instructions:
        return (*found, TimeAssumption(AssumedKind.INSTRUCTIONS))
    return (*found, *_works(program, profile, repeated, measured))


def _loop_operations(program: Program) -> Iterator[tuple[int, Operation, int]]:
    """The agents' operations between the first and the last mark of their loops, each with its line; all operations of
    an agent without a loop.
    """
    for agent, (code, lines) in enumerate(zip(program.code, program.lines, strict=True)):
        marks = [pc for pc, op in enumerate(code) if op[0] in LOOP_MARKS]
        part = slice(marks[0], marks[-1]) if marks else slice(None)
        for op, line in zip(code[part], lines[part], strict=True):
            yield agent, op, line


def _remote(program: Program, agent: int, op: Operation) -> bool:
    if op[0] not in SIGNALS:
        return False
    return program.barriers[operand(op, "barrier")].cta != program.agents[agent].cta


@dataclass(frozen=True)
class _ProbedProfile(Profile):
    """A profile that notes which of its values are asked for, and of which some are ``changed``."""

    used: set[str] = field(default_factory=set)
    changed: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        self.used.add(name)
        return self.changed[name] if name in self.changed else super().__getitem__(name)


_Ops = dict[tuple[Operation, int], None]  #: distinct operations, each with its line


def _values_used(program: Program, profile: Profile, ops: _Ops) -> set[str]:
    """The assumed values that decide what these operations cost: with half of one, or twice, they cost something else.

    To be asked for is not enough: of two rates the lower counts.
    """
    fields = {name: getattr(profile, name) for name in Profile.__dataclass_fields__}
    as_it_is = _ProbedProfile(**fields)
    costs = _costs(program, as_it_is, ops)
    return {
        name
        for name in profile.assumed
        if name in as_it_is.used
        and any(
            _costs(program, _ProbedProfile(**fields, changed={name: other}), ops) != costs
            for other in (max(1, profile[name] // 2), 2 * profile[name] + 1)
        )
    }


def _costs(program: Program, profile: Profile, ops: _Ops) -> list[Cost]:
    """What operations cost, without what no agent waits for."""
    price = Prices(program, profile, traced=False)
    return [_agent_cost(ops, op, price(op, line)) for op, line in ops]


def _agent_cost(ops: _Ops, op: Operation, cost: Cost) -> Cost:
    """The cost of an operation, without parts that delay no agent in an iteration: of a store that no agent waits for
    only the time that it takes the copy engine delays others, those that load.
    """
    if op[0] in MEETINGS - MEETING_WAITS:
        return replace(cost, visible=0)  # only who waits there takes the latency
    if op[0] not in ENGINE_ACCESSES or operand(op, "engine") in IN_ORDER or _awaited(ops, op):
        return cost
    loads = any(other[0] == Op.TMA_LOAD for other, _ in ops)
    return replace(cost, flight=-1, engine=cost.engine if loads else 0)


def _awaited(ops: _Ops, transfer: Operation) -> bool:
    """Whether anything in an iteration waits for the transfers of its engine."""
    engine = operand(transfer, "engine")
    return any(op[0] == Op.WAIT_GROUP and operand(op, "engine") == engine for op, _ in ops)


def _works(
    program: Program, profile: Profile, repeated: tuple[tuple[int, Operation, int], ...], measured: Trace
) -> Iterator[TimeAssumption]:
    """The works of a given length of each role, unless the trace shows that they took as long, or they are fitted."""
    given: dict[str, set[int]] = {}
    for agent, op, line in repeated:
        work = program.work_of_line.get(line)
        if op[0] == Op.WORK and not (work is not None and profile.knows(work.name)):
            given.setdefault(program.agents[agent].role, set()).add(operand(op, "cycles"))
    recorded = {
        role: int(np.percentile(gaps, 50, method="nearest"))
        for role in given
        if len(gaps := gaps_from(measured, role, EventKind.WORK_BEGIN))
    }
    for role, lengths in given.items():
        longest = max(lengths)
        took = recorded.get(role)
        expected = longest + profile["work.issue"] if longest else 0
        close = took is not None and abs(took - expected) <= expected // 10 + WORK_MARGIN
        if len(lengths) > 1 or not close:
            yield TimeAssumption(AssumedKind.WORK, role, longest, took)


class TimeVerdict(Enum):
    """How simulated times compare with those of one recorded run."""

    WITHIN_STATED_ERROR = "within the profile's stated error"
    OFF = "off"  #: by ``off_permille``, more than the profile states
    OUTSIDE = "outside what was measured"  #: no error is stated of such launches; a difference is given as well
    NOT_COMPARED = "not compared"  #: ``why`` says why


class NoTime(Enum):
    """Why there is no time to compare. The value is what a report says."""

    UNFINISHED = "the recorded run did not finish"
    FAULT = "the recorded kernel has an injected fault"
    NOT_SIMULATED = "the simulation did not finish"
    LONG = "the run is too long to be simulated"
    LIMIT = "a limit of time or memory ended the simulation"
    KERNEL = "the kernel was not followed to its end, or its run did not finish"
    CLOCK = "the kernel reads a clock: how long it waits for a time to pass is not known"
    WORDS = "the CTAs wait for each other by words of global memory"
    INTERPRETED = "an interpreter ran the program, which takes its own time for each operation"
    NOT_RECORDED = "too few iterations for a period, and not recorded from end to end"


@dataclass(frozen=True)
class TimeComparison:
    """The answer on the times of one recorded run.

    ``figure`` is that by which they were compared ("" if none): PERIOD or WHOLE_RUN; ``simulated`` and ``measured`` are
    in 1/1000 cycle, ``off_permille`` is their signed difference in thousandths of the measured one. ``stated`` is what
    the profile ``profile`` states of such launches, None if nothing; then ``beyond`` has what of this launch lies
    outside the nearest launches that it states an error of: a parameter's name, or "CTAs", with the least and the most.
    """

    verdict: TimeVerdict
    profile: str
    figure: str = ""
    simulated: int | None = None
    measured: int | None = None
    off_permille: int | None = None
    stated: StatedError | None = None
    beyond: dict[str, tuple[int, int]] = field(default_factory=dict)
    assumed: tuple[TimeAssumption, ...] = ()
    why: NoTime | None = None


def no_time(profile: Profile, why: NoTime) -> TimeComparison:
    """There is nothing to compare."""
    return TimeComparison(TimeVerdict.NOT_COMPARED, profile.name, why=why)


def why_no_time(measured: Trace) -> NoTime | None:
    """Why the times of this run say nothing about the program's, None if they do."""
    if measured.meta.status != Ending.FINISHED:
        return NoTime.UNFINISHED
    if measured.meta.extra.get(INTERPRETED):
        return NoTime.INTERPRETED
    return NoTime.FAULT if measured.meta.fault else None


def deciding_figure(figures: Sequence[Figure]) -> Figure | None:
    """The figure by which times are compared: the first of the two that both sides have."""
    both = {figure.name: figure for figure in figures if figure.error_permille is not None}
    return both.get(PERIOD) or both.get(WHOLE_RUN)


def compare_times(program: Program, profile: Profile, measured: Trace, figure: Figure | None) -> TimeComparison:
    """The answer on ``measured``, of a launch of ``program``, by the ``figure`` that decides; None: there is none."""
    why = why_no_time(measured)
    if why is not None:
        return no_time(profile, why)
    assumed = assumed_of(program, profile, measured)
    if figure is None:
        if assumed:
            return TimeComparison(TimeVerdict.OUTSIDE, profile.name, assumed=assumed)
        return no_time(profile, NoTime.NOT_RECORDED)
    stated, beyond = None, dict[str, tuple[int, int]]()
    if profile.device == measured.meta.device.name:
        stated, beyond = _nearest(profile.stated_errors(program.name, figure.name), measured)
    verdict = _verdict(figure, stated)
    return TimeComparison(
        verdict, profile.name, figure.name, figure.simulated, figure.measured, figure.error_permille, stated, beyond,
        () if stated is not None else assumed,
    )  # fmt: skip


def _nearest(errors: Sequence[StatedError], measured: Trace) -> tuple[StatedError | None, dict[str, tuple[int, int]]]:
    """The stated error of this launch; or None, and what of it lies outside the launches of the nearest one."""
    found = [(each, each.beyond(measured.meta.grid, measured.meta.params)) for each in errors]
    stated, beyond = min(found, key=lambda pair: len(pair[1]), default=(None, {}))
    return (None, beyond) if beyond else (stated, {})


def _verdict(figure: Figure, stated: StatedError | None) -> TimeVerdict:
    off = figure.error_permille
    assert off is not None
    if stated is None:
        return TimeVerdict.OUTSIDE
    return TimeVerdict.WITHIN_STATED_ERROR if abs(off) <= stated.worst_permille else TimeVerdict.OFF
