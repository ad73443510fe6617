"""What the warps of a recorded kernel took between two events, in place of what their instructions are estimated at.

From an event to the next one an agent carries out the operations between them. What a segment takes longer than these
cost is the time of the works in it, shared among them as they are estimated. Segments with a wait do not count, nor
those with products of a warp group, since their queue may be full.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from pipesim.model.groups import RETURNS_LATE
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.tables import kernel_in_names
from pipesim.timed.costs import Prices
from pipesim.timed.profile import Profile
from pipesim.timed.work import OVERHEAD, SCALE
from pipesim.trace.arrays import np
from pipesim.trace.schema import EventKind, Trace
from pipesim.trace.sites import optional_of, site_table

RECORD = "record"  #: in place of the name of a work: what a record costs in this kernel
_RETURNS = frozenset({EventKind.WAIT_RETURN, EventKind.BAR_RETURN, EventKind.GROUP_RETURN, EventKind.TRY})
_LEAST_PART = 10  #: percentile of what segments leave, which a record costs: the others do more beside it


@dataclass(frozen=True)
class MeasuredWork:
    """A work: its name, what it was estimated at, and of all times that it was recorded the median and half the
    interval of the middle 95 %, in cycles.
    """

    name: str
    estimated: int
    cycles: int
    half_width: float
    times: int


class _Segment(NamedTuple):
    """The works between two events, each with its estimate, and the cycles that the operations there do not cost."""

    works: tuple[tuple[str, int], ...]
    left: int


def measured_works(program: Program, trace: Trace, profile: Profile) -> tuple[MeasuredWork, ...]:
    """What a record costs in a kernel, then the works whose length its recording says, in the order of their names.

    ``program``: that of its PTX with its works, in the naming of the trace, which conforms to it.
    """
    segments = list(_segments(program, trace, profile))
    if not segments:
        return ()
    record = max(0, round(float(np.percentile([each.left for each in segments], _LEAST_PART))))
    found: dict[str, list[int]] = {}
    estimates: dict[str, int] = {}
    for works, left in segments:
        together = sum(cost for _, cost in works)
        for name, cost in works:
            estimates[name] = cost
            share = cost * max(0, left - record) // together if together else 0
            found.setdefault(name, []).append(share)
    recorded = MeasuredWork(
        f"{kernel_in_names(program.name)}/{RECORD}", profile["ptx.record"], record, 0.0, len(segments)
    )
    return (recorded, *(_measured_work(name, estimates[name], times) for name, times in sorted(found.items())))


def with_measured(profile: Profile, works: Sequence[MeasuredWork]) -> Profile:
    """The profile with a constant for each of these works, and nothing for their instructions."""
    values = dict(profile.values)
    for each in works:
        values[each.name + OVERHEAD] = each.cycles
        if not each.name.endswith(f"/{RECORD}"):
            values[each.name + SCALE] = 0
    return replace(profile, values=values)


def _measured_work(name: str, estimated: int, times: Sequence[int]) -> MeasuredWork:
    low, high = np.percentile(times, [2.5, 97.5])
    return MeasuredWork(name, estimated, round(median(times)), float(high - low) / 2, len(times))


def _segments(program: Program, trace: Trace, profile: Profile) -> Iterator[_Segment]:
    price = Prices(program, profile, traced=False)
    for agent, begin, end, cycles in _between_events(program, trace):
        ops = list(zip(program.code[agent][begin:end], program.lines[agent][begin:end], strict=True))
        if any(op[0] in RETURNS_LATE or op[0] == Op.ENGINE_WORK for op, _ in ops):
            continue
        costs = [(program.work_of_line.get(line), price(op, line).busy) for op, line in ops]
        if any(work is not None and work.amount("proxy_fences") for work, _ in costs):
            continue
        works = tuple((work.name, cost) for work, cost in costs if work is not None and cost)
        yield _Segment(works, cycles - sum(cost for work, cost in costs if work is None))


def _between_events(program: Program, trace: Trace) -> Iterator[tuple[int, int, int, int]]:
    """Agent, operations from and to, and their cycles, from each event of the first CTA to the agent's next one.

    Those that end with the return from a wait are left out, and the wait itself is in none.
    """
    table = site_table(program, optional_of(trace.meta))
    events, sites = trace.events, trace.meta.sites
    first_cta = [agent for agent, of in enumerate(program.agents) if of.cta == 0]
    cta = int(events.cta.min()) if len(events) else 0
    for number, agent in enumerate(first_cta):
        rows = np.flatnonzero((events.agent == number) & (events.cta == cta))
        records = enumerate(table.records[agent])
        places = [(pc, table.sites[each.site].kind) for pc, mine in records for each in mine]
        kinds = [sites[site].kind for site in events.site[rows].tolist()]
        if kinds != [kind for _, kind in places[: len(kinds)]]:
            continue
        cycles = np.diff(events.cycle[rows]).tolist()
        for at, took in enumerate(cycles):
            if kinds[at + 1] not in _RETURNS:
                yield agent, places[at][0] + (kinds[at] in _RETURNS), places[at + 1][0], took
