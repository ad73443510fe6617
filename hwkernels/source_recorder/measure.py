"""What a launch's own reports say: did it finish, was its result right, how long did it take. No CUDA: numpy only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.source_recorder.layout import DEADLINE, FINISHED
from hwkernels.source_recorder.table import Table
from pipesim.model.ending import Ending
from pipesim.trace.schema import EventKind, Events, Run


@dataclass(frozen=True)
class OutputCheck:
    """An output against what it must be: elements, wrong ones, wrong tiles, the largest error, and the first wrong.

    ``digest``: of the bytes, where these are what a user compares.
    """

    elements: int
    wrong: int
    wrong_tiles: int = 0
    largest_error: float = 0.0
    first_wrong: str = ""
    digest: str = ""


@dataclass(frozen=True)
class LaunchResult:
    """One launch as it was fetched from the device.

    ``headers``: (CTAs,) of ``layout.HEADER``, empty if untraced. ``records``: (recorded CTAs, agents, capacity, words),
    empty where they were not requested. ``reports``: (CTAs,) of ``layout.REPORT``, empty for one that makes none.
    ``status``: FINISHED, or DEADLINE or TRAP if the host or the GPU ended the launch. ``took_ns``: between two
    CUDA events around it, 0 if it did not end; ``took_ms``: as the host saw it. ``outputs``: those that were compared.
    ``words``: (CTAs, MAX_BARRIERS) that a kernel without reports left, all ones where it left none. ``marks``: (CTAs,
    agents, 2) clocks of a launch that was marked, which is neither traced nor a plain launch.
    """

    traced: bool
    repetition: int
    headers: npt.NDArray[Any]
    records: npt.NDArray[np.uint32]
    reports: npt.NDArray[Any]
    status: Ending = Ending.FINISHED
    took_ns: int = 0
    took_ms: int = 0
    outputs: Mapping[str, OutputCheck] = field(default_factory=dict)
    words: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint64))
    marks: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 0, 2), dtype=np.uint64))

    @property
    def gave_up(self) -> bool:
        """Whether any CTA left its loop before the end, or was ended."""
        return self.status != Ending.FINISHED or bool((self.reports["status"] != FINISHED).any())

    @property
    def outcome(self) -> Ending:
        """The status that a trace of it has: that of the launch, or DEADLINE if a wait in it gave up."""
        return Ending.DEADLINE if self.gave_up and self.status == Ending.FINISHED else self.status

    @property
    def wrong_tiles(self) -> int:
        """In all outputs and CTAs."""
        return sum(found.wrong_tiles for found in self.outputs.values())

    def describe_end(self, table: Table) -> dict[str, Any]:
        """The first CTA whose wait timed out: CTA, agent, site, iteration, and whether it was traced.

        Of a launch that was ended nothing is known but how.
        """
        if self.status != Ending.FINISHED:
            return {"traced": self.traced, "trap": self.status == Ending.TRAP}
        late = np.flatnonzero(self.reports["status"] == DEADLINE)
        cta = int(late[0]) if len(late) else int(np.flatnonzero(self.reports["status"] != FINISHED)[0])
        report = self.reports[cta]
        agent = table.agents[int(report["agent"])]
        return {
            "cta": cta,
            "agent": agent.name,
            "site": table.sites[int(report["site"])].name,
            "iteration": int(report["iteration"]),
            "traced": self.traced,
        }


def run_of(launched: LaunchResult, marks: tuple[int, int]) -> Run:
    """The schema's summary of a launch: per CTA its cycles, and its period between ``marks`` (0: not measured).

    Cycles are those of the loop, or, of a kernel that makes no reports, those between the anchors.
    """
    reports = launched.reports
    if not len(reports):
        anchors = launched.headers["anchors"]
        cycles = (anchors[:, 1]["clock_before"] - anchors[:, 0]["clock_after"]).astype(np.int64)
        read = _marks_of_one_agent(launched.marks) if len(launched.marks) else np.zeros((len(cycles), 2), np.int64)
    else:
        cycles = (reports["loop_end"] - reports["loop_begin"]).astype(np.int64)
        read = reports["marks"].astype(np.int64)
    first, last = read[:, 0], read[:, 1]
    laps = max(marks[1] - marks[0], 1)
    period = np.where(last > first, (2000 * (last - first) + laps) // (2 * laps), 0)
    period[(first == 0) | (last == 0)] = 0
    return Run(launched.traced, launched.repetition, tuple(cycles.tolist()), tuple(period.tolist()))


def _marks_of_one_agent(marks: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """(CTAs, 2): for each CTA the marks of the last agent that reached both, zeros if none did."""
    found = np.zeros((len(marks), 2), dtype=np.int64)
    for cta, agents in enumerate(marks.astype(np.int64)):
        both = agents[(agents > 0).all(axis=1)]
        if len(both):
            found[cta] = both[-1]
    return found


def overhead(runs: tuple[Run, ...], tiles: int) -> dict[str, int]:
    """What recording adds to a tile, in 1/1000 of a cycle: median, least and most over the repetitions.

    Compares the median CTA of each pair of launches, by its period, or by its loop where no period was measured.
    """
    plain = {run.repetition: run for run in runs if not run.traced}
    found = []
    for traced in (run for run in runs if run.traced and run.repetition in plain):
        before = plain[traced.repetition]
        if all(traced.period_millicycles) and all(before.period_millicycles):
            found.append(round(median(traced.period_millicycles) - median(before.period_millicycles)))
        elif tiles:
            found.append(round((median(traced.cycles) - median(before.cycles)) * 1000 / tiles))
    return {"median": round(median(found)), "low": min(found), "high": max(found)} if found else {}


def busiest_role(events: Events, table: Table) -> int:
    """Records a tile of the role that waits least, in its share of the time: what bounds the period. 0 if unknown."""
    kinds = np.array([int(site.kind) for site in table.sites], dtype=np.int64)
    least: tuple[float, int] | None = None
    for agent, info in enumerate(table.agents):
        rows = (events.agent == agent) & (events.cta == 0)
        cycles, kind = events.cycle[rows], kinds[events.site[rows]]
        if len(cycles) < 2 or cycles[-1] == cycles[0]:
            continue
        waited = np.diff(cycles)[kind[:-1] == EventKind.WAIT_ENTER].sum() / (cycles[-1] - cycles[0])
        least = min(least or (2.0, 0), (float(waited), sum(1 for site in table.sites if site.role == info.role)))
    return least[1] if least else 0


def cost_of_record(per_tile: Mapping[str, int], records: int) -> dict[str, int]:
    """What one record adds, in 1/1000 of a cycle: that of a tile over the records that the bounding role makes of it.

    ``low`` and ``high`` are the least and the most of n pairs of launches: they enclose the median with a probability
    of 1 - 2 / 2**n, that is 94 % for five pairs.
    """
    return {name: round(value / records) for name, value in per_tile.items()} if records else {}
