"""What a launch's own reports say: did it finish, was its result right, how long did it take. No CUDA: numpy only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.recorder.layout import DEADLINE, FINISHED
from hwkernels.recorder.table import Table
from pipesim.trace.schema import EventKind, Events, Run


@dataclass(frozen=True)
class Launched:
    """One launch as it was fetched from the device.

    ``reports``: (grid,) of ``layout.REPORT``. ``headers``: (grid,) of ``layout.HEADER``, empty if untraced.
    ``records``: (recorded CTAs, agents, capacity, words), empty but for the first traced launch.
    ``wrong_tiles``: of all its CTAs. ``trapped``: the hardware ended the launch. ``took_ms``: as the host saw it.
    """

    traced: bool
    repetition: int
    reports: npt.NDArray[Any]
    headers: npt.NDArray[Any]
    records: npt.NDArray[np.uint32]
    wrong_tiles: int
    trapped: bool = False
    took_ms: int = 0

    @property
    def gave_up(self) -> bool:
        """Whether any CTA left its loop before the end, or was ended."""
        return bool((self.reports["status"] != FINISHED).any())

    def describe_end(self, table: Table) -> dict[str, Any]:
        """The first CTA whose wait timed out: CTA, agent, site, iteration, and whether it was traced.

        Of a launch that trapped nothing is known but that.
        """
        if self.trapped:
            return {"traced": self.traced, "trap": True}
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


def share_sums(source: npt.NDArray[np.uint32], warps: int) -> npt.NDArray[np.uint32]:
    """What each consumer warp must find: (tiles, warps) sums modulo 2^32 of the words of (tiles, words).

    Warps share a tile's 16-byte vectors as the kernel does: equal contiguous parts, the last one with the rest.
    """
    share = source.shape[1] // 4 // warps * 4
    bounds = [*range(0, share * warps, share)] if share else [0] * warps
    ends = [*bounds[1:], source.shape[1]]
    parts = [source[:, begin:end].sum(axis=1, dtype=np.uint32) for begin, end in zip(bounds, ends, strict=True)]
    return np.stack(parts, axis=1)


def wrong_tiles(
    sums: npt.NDArray[np.uint32], expected: npt.NDArray[np.uint32], iterations: npt.NDArray[np.uint32]
) -> int:
    """Tiles of which any warp that went through them found another sum than the host.

    ``sums`` and ``expected``: (ctas, tiles, warps). ``iterations``: (ctas, agents), the producer first.
    """
    tiles, warps = sums.shape[1:]
    done = np.arange(tiles)[None, :, None] < iterations[:, None, 1 : 1 + warps]
    return int(((sums != expected) & done).any(axis=2).sum())


def run_of(launched: Launched, marks: tuple[int, int]) -> Run:
    """The schema's summary of a launch: per CTA the loop's cycles, and the period (0 where it was not measured)."""
    reports = launched.reports
    cycles = (reports["loop_end"] - reports["loop_begin"]).astype(np.int64)
    first, last = (reports["marks"][:, which].astype(np.int64) for which in (0, 1))
    laps = max(marks[1] - marks[0], 1)
    period = np.where(last > first, (2000 * (last - first) + laps) // (2 * laps), 0)
    period[(first == 0) | (last == 0)] = 0
    return Run(launched.traced, launched.repetition, tuple(cycles.tolist()), tuple(period.tolist()))


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
