"""Fit constants of a shipped latency profile to stored recordings: ``python tools/fit_times.py h200 gemm_sm90``.

Of one kernel the constants of its works, and with ``--values`` others of the profile, by least squares
(``scipy.optimize``) of: the steady period and the whole run of launches without recording, and the time between the
events of recorded launches that no wait is part of, by their part of the run; and how long waits take that need not
wait. Times between events count where the records are in shared memory: others cost more. Configurations that are held
out (``traces/split.json``) are not fitted to, and sealed ones not read. Prints the constants and the errors before and
after; ``--write`` changes the profile's file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from pipesim.conform.compare import launched
from pipesim.conform.steady import one_cta, read
from pipesim.conform.timing import median_period
from pipesim.model.program import Program
from pipesim.model.trips import waits_per_trip
from pipesim.model.work import WORK_CLASSES
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import FIELDS, FOLDER, Profile, load_profile
from pipesim.timed.work import OF_DATA
from pipesim.trace.files import read_trace
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder
from pipesim.trace.schema import EventKind, Trace
from pipesim.trace.sites import optional_of
from pipesim.trace.split import FILE, Split, SplitPart, read_split

Gaps = dict[tuple[str, str, str, str, str], tuple[int, int]]  #: of an agent, from a site to the next: cycles, how often

ENCODING = "positional"  #: of the recordings whose events are fitted to, where there are any: other records take longer
MEMORY = "shared"  #: where they store their records first: into the device's memory takes longer
WAITS = (EventKind.WAIT_ENTER, EventKind.TRY)
STEP, LEAST_STEP = 0.05, 8.0  #: of a constant, for the slopes: the simulation counts whole cycles
NEWER = ("took_ms",)  #: what a recording says that is of the kernels as they are now
MOSTLY = 150  #: cycles of amounts that are more than any overhead
LONG = 4_000.0  #: cycles of a run in which its begin and its end are a small part
PASSES = 250  #: cycles of a wait: one that takes so long has waited for something
PULL = 0.003  #: towards the value before


@dataclass(frozen=True)
class Recorded:
    """One configuration as recorded: medians over repetitions of launches without recording, and one with."""

    name: str  #: of the file, with its folder
    program: Program
    text: str
    period: int | None
    cycles: float | None
    traced_cycles: float | None
    gaps: Gaps
    passes: Gaps  #: of waits that take less than PASSES
    end: int
    also: frozenset[tuple[str, EventKind, str]]


def gaps_of(trace: Trace) -> Gaps:
    """The time from each event that is no wait to its agent's next."""
    events, meta = one_cta(trace), trace.meta
    found: Gaps = {}
    follows = np.flatnonzero((events.agent[1:] == events.agent[:-1]) & (events.cta[1:] == events.cta[:-1]))
    sums: dict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for agent, here, there, cycles in zip(
        events.agent[follows].tolist(), events.site[follows].tolist(), events.site[follows + 1].tolist(),
        (events.cycle[follows + 1] - events.cycle[follows]).tolist(), strict=True,
    ):  # fmt: skip
        if meta.sites[here].kind not in WAITS:
            entry = sums[agent, here, there]
            entry[0] += cycles
            entry[1] += 1
    for (agent, here, there), (cycles, count) in sums.items():
        a, b = meta.sites[here], meta.sites[there]
        key = (meta.agent_name(agent).split("@")[0], a.kind.name, a.barrier, b.kind.name, b.barrier)
        found[key] = (cycles, count)
    return found


def passes_of(trace: Trace) -> Gaps:
    """Of each agent's waits at a site the tenth of them that are the shortest: how long the longest of these takes."""
    events, meta = one_cta(trace), trace.meta
    found: Gaps = {}
    follows = np.flatnonzero((events.agent[1:] == events.agent[:-1]) & (events.cta[1:] == events.cta[:-1]))
    took: dict[tuple[int, int], list[int]] = defaultdict(list)
    for agent, here, cycles in zip(
        events.agent[follows].tolist(), events.site[follows].tolist(),
        (events.cycle[follows + 1] - events.cycle[follows]).tolist(), strict=True,
    ):  # fmt: skip
        if meta.sites[here].kind is EventKind.WAIT_ENTER:
            took[agent, here].append(cycles)
    for (agent, here), each in took.items():
        site = meta.sites[here]
        key = (meta.agent_name(agent).split("@")[0], site.kind.name, site.barrier, "", "")
        found[key] = (min(PASSES, sorted(each)[len(each) // 10]) * len(each), len(each))
    return found


def recordings(device: str, kernel: str, *, held: bool, recent: bool = False) -> list[Recorded]:
    """What is stored of a kernel on a device: of configurations that are held out, or of the others.

    ``recent``: no recordings from before launches without recording took their period, if there are later ones.
    """
    found = []
    split = read_split(trace_folder() / FILE)
    metas = [stored.meta for stored in stored_traces(trace_folder() / device) if stored.meta.protocol == kernel]
    first = next((name for name in NEWER if any(name in meta.extra for meta in metas)), "") if recent else ""
    encodings = {meta.extra.get("encoding") for meta in metas}
    encoding = ENCODING if ENCODING in encodings else None
    for stored in stored_traces(trace_folder() / device):
        meta = stored.meta
        if meta.protocol != kernel or meta.clock != "clock" or meta.fault or meta.status.name != "FINISHED":
            continue
        if first and first not in meta.extra:
            continue
        part = split.of_trace(meta)
        if part is SplitPart.SEALED or (part is SplitPart.HELD_OUT) is not held:
            continue
        program = launched(find(meta.protocol).build(meta.params, grid=meta.grid), meta)
        plain = [statistics.median(run.cycles) for run in meta.runs if not run.traced and run.cycles]
        recorded = [statistics.median(run.cycles) for run in meta.runs if run.traced and run.cycles]
        trace = read_trace(stored.path)
        whole = not meta.window and len(trace.events) > 0 and meta.extra.get("encoding") == encoding
        whole = whole and meta.memory == MEMORY
        reading = read(trace) if whole else None
        found.append(
            Recorded(
                f"{device}/{stored.path.stem}",
                program,
                " ".join(f"{k}={v}" for k, v in meta.params.items()) + f" grid={meta.grid}",
                median_period(meta.runs, traced=False),
                statistics.median(plain) if plain else None,
                statistics.median(recorded) if recorded else None,
                gaps_of(trace) if whole else {},
                {k: v for k, v in passes_of(trace).items() if v[0] < PASSES * v[1]} if whole else {},
                (reading.total or 0) if reading is not None else 0,
                optional_of(meta),
            )
        )
    return found


def errors(each: Recorded, profile: Profile) -> tuple[float | None, float | None]:
    """Simulated over measured, less 1: of the steady period and of the whole run, without recording."""
    plain = simulate(each.program, profile)
    reading = read(plain.trace, waits_per_trip(each.program))
    period = reading.period_millicycles if reading is not None and each.period else None
    return (
        period / each.period - 1 if period and each.period else None,
        plain.cycles / each.cycles - 1 if each.cycles else None,
    )


def residuals(each: Recorded, profile: Profile, gap_weight: float) -> list[float]:
    """What least squares make small: the two errors, and each gap's as a part of the run."""
    period, whole = errors(each, profile)
    long = min(1.0, (each.cycles or 0.0) / LONG)
    found = [3 * (period or 0.0), 2 * long * (whole or 0.0)]
    if each.gaps and each.end:
        run = simulate(each.program, profile, traced=True, also=each.also)
        found.append(long * (run.cycles / each.traced_cycles - 1) if each.traced_cycles else 0.0)
        traced = gaps_of(run.trace) | passes_of(run.trace)
        for key, (cycles, count) in sorted((each.gaps | each.passes).items()):
            mine = traced.get(key)
            took = cycles / count
            weight = gap_weight * (cycles / each.end) ** 0.5 / max(took, 100.0)
            found.append((mine[0] / mine[1] - took) * weight if mine else 0.0)
    return found


def works_of(sample: Sequence[Recorded], profile: Profile) -> list[str]:
    """The constants of the works that the programs have, as far as these determine them.

    Overhead and factor of a work that comes in several amounts. Where it comes in one, the factor if its amounts are
    most of it by the profile's rates, else the overhead. The tensor cores are taken at their rate, unless an operand is
    in registers.
    """
    amounts: dict[str, set[tuple[tuple[str, int], ...]]] = defaultdict(set)
    for each in sample:
        for work in each.program.work:
            amounts[work.name].add(tuple(pair for pair in work.amounts if pair[0] != "spin"))
    names = []
    for name, seen in amounts.items():
        rate = {kind: profile.values.get(f"class.{kind}", 0) for kind in WORK_CLASSES.keys() - OF_DATA}
        rated = max(sum(rate.get(kind, 0) * n for kind, n in each) for each in seen) / 1000
        engine = any(kind.startswith("mma") for each in seen for kind, _ in each)
        if engine:  # the tensor cores have a measured rate
            names.append(f"{name}.cycles")
            continue
        several = len(seen) > 1 and rated > 0
        if several or rated < MOSTLY:
            names.append(f"{name}.cycles")
        if several or rated >= MOSTLY:
            names.append(f"{name}.permille")
    kernels = dict.fromkeys(each.program.name for each in sample)  # the profile's own is from producer_consumer
    return names + [f"{kernel}/record.cycles" for kernel in kernels if kernel != "producer_consumer"]


def without_works(profile: Profile, sample: Sequence[Recorded]) -> Profile:
    """The profile without constants of the works of these programs: a fit starts afresh."""
    works = {f"{work.name}." for each in sample for work in each.program.work}
    return replace(profile, values={n: v for n, v in profile.values.items() if f"{n.rpartition('.')[0]}." not in works})


def first_guess(name: str, profile: Profile) -> int:
    """Where a fit begins."""
    if name.endswith("/record.cycles"):
        return profile["record.issue"]
    return profile.values[name] if name in FIELDS else 1000 if name.endswith(".permille") else 40


def fit(
    sample: Sequence[Recorded],
    profile: Profile,
    names: Sequence[str],
    rounds: int,
    gap_weight: float,
    start: Mapping[str, int],
) -> Profile:
    """The profile with these values fitted to the sample: linear least squares within bounds, a few times over.

    ``start``: where it begins, of values that have been fitted before.
    """
    begin = np.array([start.get(name, first_guess(name, profile)) for name in names], dtype=float)
    least = np.array([1.0 if "per_kcycle" in name or name == "wait.poll" else 0.0 for name in names])
    steps = np.maximum(LEAST_STEP, STEP * begin)
    now, best = begin, (np.inf, begin)
    for _ in range(rounds):
        made = valued(profile, names, now)
        here = [residuals(each, made, gap_weight) for each in sample]
        size = float(sum(r * r for each in here for r in each))
        best = min(best, (size, now), key=lambda pair: pair[0])
        columns = [_column(sample, profile, names, now, at, steps[at], gap_weight, here) for at in range(len(names))]
        slopes = np.array(columns).T
        off = np.array([r for each in here for r in each])
        pull = np.diag(PULL / np.maximum(begin, 50.0))  # what the sample does not determine stays where it is
        solved = lsq_linear(
            np.vstack([slopes, pull]),
            np.concatenate([slopes @ now - off, pull @ begin]),
            bounds=(least, np.full(len(names), np.inf)),
        )
        now = solved.x
    made = valued(profile, names, now)
    size = float(sum(r * r for each in sample for r in residuals(each, made, gap_weight)))
    return made if size <= best[0] else valued(profile, names, best[1])


def search(sample: Sequence[Recorded], profile: Profile, names: Sequence[str], rounds: int) -> Profile:
    """The profile with the values of these names at which periods, and runs without one, are least off: one value after
    another is moved while that helps. For a kernel whose times jump, which least squares handle badly.
    """
    now = {name: profile.values[name] for name in names}
    steps = {name: max(15.0, 0.12 * value) for name, value in now.items()}
    least = _squares(sample, profile)
    for _ in range(rounds):
        for name in names:
            for way in (1, -1):
                moved = now | {name: max(0, round(now[name] + way * steps[name]))}
                squares = _squares(sample, replace(profile, values=profile.values | moved))
                if squares < 0.999 * least:
                    least, now = squares, moved
                    steps[name] *= 1.4
                    break
            else:
                steps[name] *= 0.5
    return replace(profile, values=profile.values | now)


def _squares(sample: Sequence[Recorded], profile: Profile) -> float:
    off = [errors(each, profile) for each in sample]
    return sum(period**2 if period is not None else 0.5 * (whole or 0.0) ** 2 for period, whole in off)


def _column(
    sample: Sequence[Recorded],
    profile: Profile,
    names: Sequence[str],
    now: NDArray[np.float64],
    at: int,
    step: float,
    gap_weight: float,
    here: Sequence[Sequence[float]],
) -> list[float]:
    """How the residuals change with one value; those of a program without its work do not."""
    moved = now.copy()
    moved[at] += step
    made = valued(profile, names, moved)
    work = names[at].rsplit(".", 1)[0] if "/" in names[at] else ""
    found: list[float] = []
    for each, old in zip(sample, here, strict=True):
        if work and work.endswith("/record"):
            unchanged = work != f"{each.program.name}/record"
        else:
            unchanged = bool(work) and all(one.name != work for one in each.program.work)
        if unchanged:
            found += [0.0] * len(old)
        else:
            found += [(a - b) / step for a, b in zip(residuals(each, made, gap_weight), old, strict=True)]
    return found


def valued(profile: Profile, names: Sequence[str], x: NDArray[np.float64]) -> Profile:
    """The profile with these values. A work is known by its overhead: it has one if it has a factor."""
    values = {**profile.values, **{name: round(float(value)) for name, value in zip(names, x, strict=True)}}
    for name in names:
        if name.endswith(".permille"):
            values.setdefault(name.removesuffix(".permille") + ".cycles", 0)
    return replace(profile, values=values)


def table(title: str, sample: Sequence[Recorded], profile: Profile, *, rows: bool) -> None:
    """The errors of a sample: a row for each if wanted, median and largest."""
    off = [errors(each, profile) for each in sample]
    for each, both in zip(sample, off, strict=True) if rows else ():
        said = ["     -" if error is None else f"{100 * error:6.1f}" for error in both]
        print(f"  {title} period {said[0]} %  whole {said[1]} %  {each.text}")
    for at, what in enumerate(("period", "whole run")):
        sizes = sorted(100 * abs(error) for both in off if (error := both[at]) is not None)
        if sizes:
            print(f"{title}: {what} median {sizes[len(sizes) // 2]:.1f} % worst {sizes[-1]:.1f} % of {len(sizes)}")


def not_to_be_fitted(inputs: Sequence[str], split: Split, stored: Sequence[StoredTrace]) -> list[str]:
    """Those of a profile's inputs that are no recordings of the part of the split to which a profile may be fitted."""
    known = {f"{each.path.parent.name}/{each.path.stem}": split.of_trace(each.meta) for each in stored}
    return [name for name in inputs if known.get(name) is not SplitPart.FIT]


def write(device: str, profile: Profile, names: Sequence[str], sample: Sequence[Recorded]) -> None:
    """Enter the values in the profile's file, as fitted, and to which recordings."""
    path = Path(FOLDER / f"{device}.json")
    data = json.loads(path.read_text())
    works = {name.rpartition(".")[0] for name in names if "/" in name}
    gone = {name for name in data["values"] if name.rpartition(".")[0] in works and name not in profile.values}
    data["values"] = {name: value for name, value in data["values"].items() if name not in gone}
    for way, of in data["how"].items():
        data["how"][way] = [name for name in of if name not in gone and name not in names]
    data["inputs"] = sorted({*data.get("inputs", ()), *(each.name for each in sample)})
    for name in names:
        data["values"][name] = profile.values[name]
        data["how"]["fitted"].append(name)
    path.write_text(json.dumps(data, indent=1) + "\n")


def main() -> int:
    """Fit one kernel's constants on one device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", help="h100 or h200: the folder of traces and the profile")
    parser.add_argument("kernels", help="one kernel, or several with commas that share works")
    parser.add_argument("--values", default="", help="further values of the profile to fit, with commas")
    parser.add_argument("--no-works", action="store_true", help="only those")
    parser.add_argument("--rounds", type=int, default=6, help="evaluations of least squares with their slopes")
    parser.add_argument("--gaps", type=float, default=0.5, help="weight of the times between recorded events")
    parser.add_argument("--rows", action="store_true", help="print every configuration")
    parser.add_argument("--afresh", action="store_true", help="do not begin with the values that the profile has")
    parser.add_argument("--search", action="store_true", help="move the values of --values one after another instead")
    parser.add_argument("--recent", action="store_true", help="only recordings of the kernel as it is now")
    parser.add_argument("--dry", action="store_true", help="fit nothing: print the errors")
    parser.add_argument("--write", action="store_true", help="change the profile's file")
    options = parser.parse_args()
    profile = load_profile(options.device)
    kernels = options.kernels.split(",")
    sample = [
        each for kernel in kernels for each in recordings(options.device, kernel, held=False, recent=options.recent)
    ]
    rest = [each for kernel in kernels for each in recordings(options.device, kernel, held=True)]
    names = [] if options.no_works else works_of(sample, profile)
    names += [name for name in options.values.split(",") if name]
    if options.search:
        names = [name for name in options.values.split(",") if name]
        profile = search(sample, profile, names, options.rounds)
        for name in names:
            print(f"    {name:<45} {profile.values[name]}")
    elif not options.dry:
        table("fitted to, before", sample, profile, rows=False)
        start = {} if options.afresh else dict(profile.values)
        profile = profile if options.no_works else without_works(profile, sample)
        profile = fit(sample, profile, names, options.rounds, options.gaps, start)
        names += [name.removesuffix("permille") + "cycles" for name in names if name.endswith(".permille")]
        names = list(dict.fromkeys(name for name in names if name in profile.values))
        for name in names:
            print(f"    {name:<45} {profile.values[name]}")
    table("fitted to", sample, profile, rows=options.rows)
    table("held out", rest, profile, rows=options.rows)
    if options.write:
        write(options.device, profile, names, sample)
    return 0


if __name__ == "__main__":
    sys.exit(main())
