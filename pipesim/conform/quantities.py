"""The times of a run as a few numbers that a simulation can be compared with: what a fit reads and is checked by.

Of launches without recording the steady period and the whole run; of a recorded launch the time from each kind of event
of a role to the same agent's next: waits by what they wait for, and the segments between barrier operations. The same
numbers are taken from a recording and from simulations of its program.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pipesim.conform.compare import period_pair
from pipesim.conform.steady import gaps_of, one_cta
from pipesim.conform.timing import like, median_period, noise_millicycles
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.activity import WAITS_FROM
from pipesim.trace.schema import EventKind, Trace
from pipesim.trace.sites import optional_of


class QuantityKind(Enum):
    """What a number is of."""

    PERIOD = "steady period"  #: of launches without recording, cycles
    RUN = "whole run"  #: of launches without recording, cycles of a CTA
    WAIT = "wait"  #: of a recorded launch: mean cycles of the waits of a role on a group
    SEGMENT = "segment"  #: of a recorded launch: mean cycles from the events of a site of a role to the next event


@dataclass(frozen=True)
class QuantityName:
    """Which number: ``role``, ``site`` (its kind) and ``barrier`` are "" for the period and the whole run."""

    kind: QuantityKind
    role: str = ""
    site: str = ""
    barrier: str = ""


@dataclass(frozen=True)
class Quantities:
    """The numbers of one run. ``period``, ``run``: cycles, None where there are none; ``noise`` of the period.

    ``spent``: of the traced launch, mean cycles.
    """

    period: float | None
    run: float | None
    spent: Mapping[QuantityName, float]
    noise: float = 0.0

    def values(self) -> dict[QuantityName, float]:
        """All of them in cycles, by name."""
        found = dict(self.spent)
        if self.period is not None:
            found[QuantityName(QuantityKind.PERIOD)] = self.period
        if self.run is not None:
            found[QuantityName(QuantityKind.RUN)] = self.run
        return found


def measured_quantities(trace: Trace) -> Quantities:
    """The numbers of a recording: medians over repetitions and CTAs."""
    meta = trace.meta
    runs = [statistics.median(run.cycles) for run in meta.runs if not run.traced and run.cycles]
    period = median_period(meta.runs, traced=False)
    noise = noise_millicycles(meta.runs, traced=False)
    return Quantities(
        period / 1000 if period else None,
        statistics.median(runs) if runs and meta.status is Ending.FINISHED else None,
        cycles_by_site(trace) if meta.status is Ending.FINISHED else {},
        noise / 1000 if noise else 0.0,
    )


def simulated_quantities(program: Program, profile: Profile, trace: Trace) -> Quantities:
    """The same numbers of simulations of ``program`` (:func:`launched` as ``trace``); those alone that the trace has.

    Without numbers if a simulation did not finish.
    """
    plain = simulate(program, profile)
    if plain.outcome is not Ending.FINISHED:
        return Quantities(None, None, {})
    has = measured_kinds(trace)
    pair = period_pair(program, profile, plain.trace, traced=False) if has[QuantityKind.PERIOD] else None
    period = pair.simulated / 1000 if pair is not None and pair.simulated is not None else None
    waits: Mapping[QuantityName, float] = {}
    if has[QuantityKind.SEGMENT]:
        recorded = like(simulate(program, profile, traced=True, also=optional_of(trace.meta)).trace, trace)
        waits = cycles_by_site(recorded)
    return Quantities(period, float(plain.cycles) if has[QuantityKind.RUN] else None, waits)


def measured_kinds(trace: Trace) -> dict[QuantityKind, bool]:
    """Which kinds of numbers a recording has."""
    finished = trace.meta.status is Ending.FINISHED
    events = finished and len(trace.events) > 0
    return {
        QuantityKind.PERIOD: bool(median_period(trace.meta.runs, traced=False)),
        QuantityKind.RUN: finished and any(run.cycles and not run.traced for run in trace.meta.runs),
        QuantityKind.WAIT: events,
        QuantityKind.SEGMENT: events,
    }


def cycles_by_site(trace: Trace) -> dict[QuantityName, float]:
    """What the agents of each role spend from the events of each site to their next, in the CTA that is read."""
    gaps, at = gaps_of(one_cta(trace))
    found = {}
    for number, site in enumerate(trace.meta.sites):
        mine = gaps[at == number]
        if len(mine):
            kind = QuantityKind.WAIT if site.kind in WAITS_FROM else QuantityKind.SEGMENT
            found[QuantityName(kind, site.role, EventKind(site.kind).name.lower(), site.barrier)] = float(mine.mean())
    return found
