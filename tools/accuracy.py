"""How far simulated times are off measured ones, over the stored traces: ``python tools/accuracy.py``.

For each device and kernel, apart for the configurations that a profile may be fitted to and those that are held out
(``traces/split.json``), without recording: the error of the steady period and of the whole run, median and worst. Of
recorded launches: how many kinds of wait of a run have a median and a 95th percentile within 10 % or 20 cycles, and in
how many runs one rule names the same bottleneck in both. ``--rows`` prints every configuration, ``--sealed`` reads the
sealed ones as well, which is done once, when a model is finished; ``--draw N`` takes only those of one draw, from 2
on drawn when others had been read. Two to three minutes of one core, with ``--sealed`` about five.

``--state`` compares what is held out and sealed as ``verify`` does, writes to the built-in profiles the error of what
lies between the least and the greatest fitted value of every parameter, and prints it beside what lies outside.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.conform.compare import as_launched, times_of
from pipesim.conform.quantities import measured_quantities, simulated_quantities
from pipesim.conform.result import Spread
from pipesim.conform.steady import bottleneck, read
from pipesim.conform.timing import like
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import FOLDER, Profile, StatedError, load_profile, profile_for, profile_names
from pipesim.trace.activity import WAITS_FROM
from pipesim.trace.files import read_trace
from pipesim.trace.library import StoredTrace, device_slug, stored_traces, trace_folder
from pipesim.trace.schema import Trace, TraceMeta
from pipesim.trace.sites import optional_of
from pipesim.trace.split import FILE, Split, SplitPart, read_split

WITHIN_PERMILLE, WITHIN_CYCLES = 100, 20  #: of a wait: either is near enough
SHORTEST = 1000  #: cycles of a run whose relative error says something: one of no tiles takes about 500
ENOUGH = 8  #: recordings from which an error is stated: the worst of fewer says little about the next one
PARTS = {SplitPart.FIT: "fit", SplitPart.HELD_OUT: "held out", SplitPart.SEALED: "sealed"}


@dataclass(frozen=True)
class AccuracyRow:
    """One recording: cycles measured and simulated, None where there are none.

    ``waits``: how many kinds of wait it has, ``near_p50`` and ``near_p95`` of how many a simulation is near enough.
    ``limit``: whether both runs have one bottleneck, None where one of them shows none. ``lost``: a period was
    measured, and the simulation has none.
    """

    device: str
    kernel: str
    part: str
    params: str
    ctas: int
    period: tuple[float, float] | None
    run: tuple[float, float] | None
    waits: int
    near_p50: int
    near_p95: int
    limit: bool | None
    lost: bool


def row(trace: Trace, part: SplitPart, profile: Profile) -> AccuracyRow:
    """Simulate what was recorded, and compare."""
    meta = trace.meta
    program = as_launched(find(meta.protocol).build(meta.params, grid=meta.grid), meta)
    found, made = measured_quantities(trace), simulated_quantities(program, profile, trace)
    simulated = _recorded(program, profile, trace)
    waits = [] if simulated is None else _waits(trace, simulated)
    return AccuracyRow(
        device_slug(meta.device.name),
        meta.protocol,
        PARTS[part],
        " ".join(f"{name}={value}" for name, value in sorted(meta.params.items())),
        meta.grid,
        (found.period, made.period) if found.period and made.period else None,
        (found.run, made.run) if found.run and made.run and found.run >= SHORTEST else None,
        len(waits),
        sum(near(hw.p50, sim.p50) for hw, sim in waits),
        sum(near(hw.p95, sim.p95) for hw, sim in waits),
        None if simulated is None else _same_limit(trace, simulated),
        bool(found.period) and not made.period,
    )


def near(measured_cycles: int, simulated_cycles: int) -> bool:
    """Whether a simulated wait is within a tenth of the measured one, or within 20 cycles."""
    return abs(simulated_cycles - measured_cycles) <= max(WITHIN_CYCLES, WITHIN_PERMILLE * measured_cycles / 1000)


def _recorded(program: Program, profile: Profile, trace: Trace) -> Trace | None:
    """The simulation of a recorded launch, as far as the recording has it; None of a run that has not all events."""
    if trace.meta.status is not Ending.FINISHED or not len(trace.events):
        return None
    return like(simulate(program, profile, traced=True, also=optional_of(trace.meta)).trace, trace)


def _waits(trace: Trace, simulated: Trace) -> list[tuple[Spread, Spread]]:
    """The kinds of wait that both have: measured and simulated."""
    one, two = read(trace), read(simulated)
    if one is None or two is None:
        return []
    return [(one.sites[at], two.sites[at]) for at in one.sites if at[1] in WAITS_FROM and at in two.sites]


def _same_limit(trace: Trace, simulated: Trace) -> bool | None:
    one, two = bottleneck(trace), bottleneck(simulated)
    return None if one is None or two is None else one.name == two.name


def chosen(
    folder: Path, split: Split, *, sealed: bool, draw: int, device: str
) -> Iterator[tuple[StoredTrace, SplitPart]]:
    """The recordings to compare, by the SM clock: whole runs of kernels as they are. Sealed ones only if asked for."""
    for stored in stored_traces(folder):
        meta = stored.meta
        if not _comparable(meta) or device not in device_slug(meta.device.name):
            continue
        part = split.part_of_trace(meta)
        if (part is SplitPart.SEALED and not sealed) or (draw and split.draw_of(meta) != draw):
            continue
        yield stored, part


def _comparable(meta: TraceMeta) -> bool:
    return meta.source == "hardware" and meta.status is Ending.FINISHED and not (meta.fault or meta.window)


@dataclass(frozen=True)
class LaunchClass:
    """Recordings that have one stated error: ``figure`` of ``kernel`` on a device, launches of ``ctas``; ``inside``:
    whether every parameter lies between its least and greatest fitted value, ``params``.
    """

    device: str
    kernel: str
    figure: str
    ctas: tuple[int, int]
    inside: bool
    params: tuple[tuple[str, tuple[int, int]], ...]

    def stated(self, off: Sequence[int]) -> StatedError:
        """What these deviations state, in thousandths."""
        sizes = sorted(map(abs, off))
        middle = sizes[len(sizes) // 2]
        return StatedError(self.kernel, self.figure, self.ctas, dict(self.params), len(sizes), middle, sizes[-1])


def deviations(folder: Path, split: Split, device: str) -> dict[LaunchClass, list[int]]:
    """How far each recording of ``device`` that no profile was fitted to is off, by class."""
    found = list(chosen(folder, split, sealed=True, draw=0, device=device))
    table: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for stored, part in found:
        for name, value in stored.meta.params.items() if part is SplitPart.FIT else ():
            table[stored.meta.protocol][name].add(value)
    classes: defaultdict[LaunchClass, list[int]] = defaultdict(list)
    for stored, part in found:
        meta = stored.meta
        if part is SplitPart.FIT or not table[meta.protocol]:
            continue
        compared = times_of(find(meta.protocol).build(meta.params, grid=meta.grid), read_trace(stored.path))
        if compared.off_permille is not None:
            ranges = {name: (min(values), max(values)) for name, values in sorted(table[meta.protocol].items())}
            sms = profile_for(meta.device.name).sms
            ctas = (1, sms // 2) if meta.grid <= sms // 2 else (sms // 2 + 1, sms)
            inside = all(low <= meta.params[name] <= high for name, (low, high) in ranges.items())
            key = LaunchClass(device, meta.protocol, compared.figure, ctas, inside, tuple(ranges.items()))
            classes[key].append(compared.off_permille)
    return dict(classes)


def state(folder: Path, split: Split) -> Iterator[str]:
    """Write what the recordings show to the built-in profiles; a line for each class."""
    for name in profile_names():
        classes = deviations(folder, split, name)
        for each in sorted(classes, key=lambda one: (one.kernel, one.figure, not one.inside, one.ctas)):
            error = each.stated(classes[each])
            where = f"{error.ctas[0]:>3} to {error.ctas[1]:<3} CTAs {'inside' if each.inside else 'outside':<7}"
            numbers = f"median {error.median_permille / 10:>5.1f} % worst {error.worst_permille / 10:>5.1f} %"
            yield f"{name}  {each.kernel:<22} {each.figure:<17} {where} {error.configurations:>4} {numbers}"
        path = FOLDER / f"{name}.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        document["errors"] = [asdict(each) for each in stated_errors(classes)]
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def stated_errors(classes: Mapping[LaunchClass, Sequence[int]]) -> list[StatedError]:
    """What a profile states: of the classes inside the table of fitted values that have recordings enough."""
    found = [each.stated(off) for each, off in classes.items() if each.inside and len(off) >= ENOUGH]
    return sorted(found, key=lambda each: (each.kernel, each.figure, each.ctas))


def errors(pairs: Iterable[tuple[float, float] | None]) -> list[float]:
    """Relative errors of the pairs that there are, smallest first, without sign."""
    return sorted(abs(made - found) / found for found, made in filter(None, pairs))


def table(rows: Sequence[AccuracyRow]) -> Iterator[str]:
    """A line for each device, kernel and part."""
    yield (
        f"{'':4}  {'kernel':<22} {'part':<9} {'traces':>6}  {'period: n':>9} {'median':>7} {'worst':>7}  "
        f"{'run: n':>6} {'median':>7} {'worst':>7}  {'waits p50':>9} {'p95':>6}  {'bottleneck':>10}"
    )
    for key in sorted({(r.device, r.kernel, list(PARTS.values()).index(r.part)) for r in rows}):
        device, kernel, part = key[0], key[1], list(PARTS.values())[key[2]]
        mine = [r for r in rows if (r.device, r.kernel, r.part) == (device, kernel, part)]
        periods, runs = errors(r.period for r in mine), errors(r.run for r in mine)
        waits, limits = sum(r.waits for r in mine), [r.limit for r in mine if r.limit is not None]
        mark = "*" if part != PARTS[SplitPart.FIT] else " "
        yield (
            f"{device:4}  {kernel:<22} {part + mark:<9} {len(mine):>6}  {len(periods):>9} {_percents(periods)}  "
            f"{len(runs):>6} {_percents(runs)}  {_share(sum(r.near_p50 for r in mine), waits):>9} "
            f"{_share(sum(r.near_p95 for r in mine), waits):>6}  {_share(sum(limits), len(limits)):>10}"
        )
    lost = sum(r.lost for r in rows)
    if lost:
        yield f"{lost} recordings have a steady period, and the simulation of them has none"
    yield "* held out: no profile was fitted to these configurations (traces/split.json)"


def _percents(sizes: Sequence[float]) -> str:
    if not sizes:
        return f"{'–':>7} {'–':>7}"
    return f"{100 * median(sizes):>5.1f} % {100 * sizes[-1]:>5.1f} %"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def row_lines(rows: Sequence[AccuracyRow]) -> Iterator[str]:
    """Every recording in a line."""
    for r in rows:
        both = [
            f"{(pair[1] - pair[0]) / pair[0]:+7.1%} of {pair[0]:>9,.0f}" if pair else f"{'–':>20}"
            for pair in (r.period, r.run)
        ]
        yield f"{r.device} {r.part:<9} period {both[0]}  run {both[1]}  {r.kernel} ctas={r.ctas} {r.params}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=None, help="folder (default: the stored traces)")
    parser.add_argument("--profile", default=None, help="simulate on this one instead of the profile of each device")
    parser.add_argument("--device", default="", help="only this device: h100 or h200")
    parser.add_argument("--sealed", action="store_true", help="read the sealed configurations, too")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="only the configurations of this draw")
    parser.add_argument("--rows", action="store_true", help="print every recording")
    parser.add_argument("--json", type=Path, default=None, help="write the rows to this file")
    parser.add_argument("--state", action="store_true", help="write the stated errors of the built-in profiles")
    options = parser.parse_args(arguments)
    if options.state:
        for line in state(options.traces or trace_folder(), read_split(trace_folder() / FILE)):
            print(line, flush=True)
        return 0
    profile = load_profile(options.profile) if options.profile else None
    split = read_split(trace_folder() / FILE)
    rows = [
        row(read_trace(stored.path), part, profile or profile_for(stored.meta.device.name))
        for stored, part in chosen(
            options.traces or trace_folder(),
            split,
            sealed=options.sealed,
            draw=options.draw,
            device=options.device,
        )
    ]
    if options.rows:
        print("\n".join(row_lines(rows)))
    print("\n".join(table(rows)))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
