"""Write the least latencies that `conform` goes by, from the stored experiments and half of the stored recordings.

``python tools/latency_floors.py [--check]``. Of each device: the least of the experiment ``latency`` for each path and
size (of a device that has not run it, those of one that has). Half of the device's recordings, by a checksum of their
names, gives the margin: all numbers of the experiment are lowered by the largest share by which a recorded wait was
sooner than they say, and none is above what was recorded. The other recordings are held out: they are compared with the
result, and a return that would be refused is an error. Recordings of kernels by their PTX give bounds of their own, by
the same rule. With ``--check`` nothing is written, and the exit code is 1 if a
document is not what this gives.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hwkernels.experiments.latency import Path as Measured
from hwkernels.experiments.latency import latency_cases
from hwkernels.experiments.results import Outcome, stored_results
from pipesim.conform.recorded_kernel import recorded_kernel
from pipesim.conform.replay.conformance import release_times
from pipesim.conform.replay.latency_floor import FOLDER, PTX_FOLDER, LatencyFloors, Least, ReleasePath, floors_text
from pipesim.conform.replay.releases import ReleaseTime
from pipesim.model.ending import Ending
from pipesim.ptx.kernel import read_kernel
from pipesim.targets import find
from pipesim.trace.files import read_trace
from pipesim.trace.library import device_slug, stored_traces

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT / "traces"

_OWN = {
    Measured.ARRIVE: ReleasePath.ARRIVE,
    Measured.ARRIVE_EXPECT_TX: ReleasePath.ARRIVE,
    Measured.ARRIVE_OWN_CLUSTER: ReleasePath.ARRIVE,
    Measured.CP_ASYNC_NOINC: ReleasePath.CP_ASYNC_ARRIVE,
    Measured.CP_ASYNC_16_NOINC: ReleasePath.CP_ASYNC_ARRIVE,
    Measured.MULTICAST: ReleasePath.MULTICAST,
}
#: Between two SMs: recorded times have errors that say nothing of the experiment.
FAR = {ReleasePath.REMOTE_ARRIVE, ReleasePath.MULTICAST_AWAY}
Tables = dict[ReleasePath, dict[int, tuple[int, int]]]  # path → bytes → least cycles, measurements


class Seen(NamedTuple):
    """Of one path and size in the recordings: cycles from stamp to stamp, their uncertainty, and the SM clock."""

    path: ReleasePath
    nbytes: int
    after: int
    uncertainty: int
    sm_khz: int
    place: str


class Result(NamedTuple):
    """The bounds of a device; of the recordings held out, how many returns were compared, and the nearest or worst."""

    folder: Path
    floors: LatencyFloors
    chosen_from: int
    held_out: int
    returns: int
    least_margin: Mapping[ReleasePath, int]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a document is stale")
    options = parser.parse_args(arguments)
    wrong = 0
    for result in results():
        path = path_of(result)
        text = floors_text(result.floors)
        margins = ", ".join(f"{name} {margin}" for name, margin in sorted(result.least_margin.items()))
        kind = " by PTX" if result.folder == PTX_FOLDER else ""
        name = f"{result.floors.device}{kind}"
        print(f"{name}: bounds from {result.chosen_from} recordings and the experiments;", end=" ")
        print(f"{result.returns:,} times in {result.held_out} others exceed them by at least (cycles): {margins}")
        wrong += any(margin < 0 for margin in result.least_margin.values())
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif is_stale(result):
            print(f"{path} is stale: run python tools/latency_floors.py", file=sys.stderr)
            wrong += 1
    return int(wrong > 0)


def path_of(result: Result) -> Path:
    """Where a device's document is stored."""
    return result.folder / f"{device_slug(result.floors.device)}.json"


def is_stale(result: Result) -> bool:
    """True if the stored document is not this one."""
    path = path_of(result)
    return not path.is_file() or path.read_text(encoding="utf-8") != floors_text(result.floors)


def results(*, held_out: bool = True) -> list[Result]:
    """The bounds of every device with recordings; without ``held_out`` the other recordings are not compared."""
    halves = (0, 1) if held_out else (0,)
    return [*_results(FOLDER, _seen(halves)), *_results(PTX_FOLDER, _seen_by_ptx(halves))]


def _results(folder: Path, seen: Mapping[str, Mapping[str, list[Seen]]]) -> list[Result]:
    measured = {one.device: one.cases["latency"] for one in stored_results(TRACES) if "latency" in one.cases}
    found = []
    for device, recordings in seen.items():
        other = device if device in measured else next(iter(measured), "")
        tables, khz = (
            _measured(measured[other]) if other else ({}, max(s.sm_khz for r in recordings.values() for s in r))
        )
        halves: tuple[list[list[Seen]], ...] = ([], [])
        for name, times in recordings.items():
            halves[_half(name)].append(times)
        chosen, others = halves
        permille = _lower(tables, khz, [s for recording in chosen for s in recording])
        source = _source(device, other, len(chosen), permille, " by PTX" if folder == PTX_FOLDER else "")
        floors = LatencyFloors(device, khz, source, _rising(tables))
        compared = [s for recording in others for s in recording]
        found.append(Result(folder, floors, len(chosen), len(others), len(compared), _margins(floors, compared)))
    return found


def _source(device: str, measured: str, recordings: int, permille: int, how: str) -> str:
    half = f"{recordings} recordings{how} of the {device}"
    if not measured:
        return f"the least seen in {half}"
    share = f"{(1000 - permille) / 10:.1f} %"
    return f"the experiment `latency` on the {measured}, less {share}, the most by which {half} were below it"


def _half(name: str) -> int:
    """0: a recording of this name gives the margin; 1: it is held out."""
    return zlib.crc32(name.encode()) % 2


def _seen(halves: Collection[int]) -> dict[str, dict[str, list[Seen]]]:
    """By device, of each good recording of these halves by its name, all times from a release to the return."""
    found: defaultdict[str, dict[str, list[Seen]]] = defaultdict(dict)
    for stored in stored_traces(TRACES):
        meta = stored.meta
        if meta.source != "hardware" or meta.fault or _half(stored.path.name) not in halves:
            continue
        program = find(meta.protocol).build(meta.params, twice=False)
        times = release_times(program, read_trace(stored.path))
        found[meta.device.name][stored.path.name] = _known(times, meta.device.sm_khz, stored.path.name)
    return dict(found)


def _seen_by_ptx(halves: Collection[int]) -> dict[str, dict[str, list[Seen]]]:
    """The same of the kernels that are known by their PTX, beside which their recordings lie."""
    found: defaultdict[str, dict[str, list[Seen]]] = defaultdict(dict)
    for path in sorted(TRACES.glob("*/ptx/*.parquet")):
        trace = read_trace(path)
        meta = trace.meta
        if meta.status is not Ending.FINISHED or _half(path.name) not in halves:
            continue
        read = read_kernel(path.with_suffix(".ptx"))
        kernel = recorded_kernel(read.program, read.places, trace)
        times = release_times(kernel.program, kernel.trace, kernel.sites)
        found[meta.device.name][path.name] = _known(times, meta.device.sm_khz, path.name)
    return dict(found)


def _known(times: Mapping[int, Sequence[ReleaseTime]], sm_khz: int, place: str) -> list[Seen]:
    return [
        Seen(t.release.path, t.release.nbytes, t.after, t.uncertainty, sm_khz, place)
        for of_cta in times.values() for t in of_cta if t.release.path is not None
    ]  # fmt: skip


def _measured(cases: Mapping[str, Outcome]) -> tuple[Tables, int]:
    """The tables of one device's experiment, and the SM clock at which it ran."""
    tables: Tables = defaultdict(dict)
    back: dict[int, tuple[int, int]] = {}  # multicast there and back, by bytes
    clocks = []
    for name, arguments in latency_cases():
        outcome = cases[name]
        least, samples = outcome.data["least"][0], outcome.outcomes["returned"]
        clocks.append(outcome.data["sm_khz"][0])
        path, nbytes, count = Measured(arguments["path"]), arguments["bytes"], arguments["count"]
        match path:
            case Measured.COPY | Measured.COPIES_APART:
                if count == 1:
                    _keep(tables[ReleasePath.COPY], nbytes, least, samples)
                _keep(tables[ReleasePath.COPIES], nbytes * count, least, samples)
            case Measured.MULTICAST_THERE_AND_BACK:
                back[nbytes] = (least, samples)
            case Measured.REMOTE_THERE_AND_BACK:  # both ways are taken to be equally long
                _keep(tables[ReleasePath.REMOTE_ARRIVE], 0, least // 2, samples)
            case _:
                _keep(tables[_OWN[path]], 0 if path is not Measured.MULTICAST else nbytes, least, samples)
    home = tables[ReleasePath.REMOTE_ARRIVE][0][0]
    for nbytes, (least, samples) in back.items():
        _keep(tables[ReleasePath.MULTICAST_AWAY], nbytes, least - home, samples)
    return dict(tables), max(clocks)


def _keep(table: dict[int, tuple[int, int]], nbytes: int, cycles: int, samples: int) -> None:
    """Add measurements to a row."""
    least, before = table.get(nbytes, (cycles, 0))
    table[nbytes] = (min(least, cycles), before + samples)


def _lower(tables: Tables, khz: int, seen: Sequence[Seen]) -> int:
    """Lower all rows by one share and to what recordings show; the permille that is left of the experiment's numbers.

    A path that was not measured gets a row for each size that the recordings have.
    """
    recorded: Tables = defaultdict(dict)
    left = 1000
    for one in seen:
        sizes = [size for size in tables.get(one.path, {one.nbytes: 0}) if size <= one.nbytes]
        if sizes:
            cycles = max(0, one.after) * max(khz, one.sm_khz) // one.sm_khz  # at the clock of the experiment
            _keep(recorded[one.path], max(sizes), cycles, 1)
            if one.path in tables and one.path not in FAR:
                left = min(left, 1000 * cycles // tables[one.path][max(sizes)][0])
    for path, table in tables.items():
        tables[path] = {nbytes: (cycles * left // 1000, samples) for nbytes, (cycles, samples) in table.items()}
    for path, table in recorded.items():
        for nbytes, (cycles, samples) in table.items():
            _keep(tables.setdefault(path, {}), nbytes, cycles, samples)
    return left


def _rising(tables: Tables) -> dict[ReleasePath, tuple[Least, ...]]:
    """The tables; no row is above one for more bytes, which contain as many."""
    found = {}
    for path, table in tables.items():
        rows: list[Least] = []
        for nbytes in sorted(table, reverse=True):
            cycles, samples = table[nbytes]
            rows.append(Least(nbytes, min([cycles, *(row.cycles for row in rows[-1:])]), samples))
        found[path] = tuple(rows[::-1])
    return found


def _margins(floors: LatencyFloors, times: Iterable[Seen]) -> dict[ReleasePath, int]:
    """By path the least cycles by which a time exceeds its bound, as `conform` compares them; below 0: refused."""
    margins: dict[ReleasePath, int] = {}
    for one in times:
        least = floors.least(one.path, one.nbytes, one.sm_khz)
        if least is not None:
            margin = one.after + one.uncertainty - least.cycles
            margins[one.path] = min(margins.get(one.path, margin), margin)
    return margins


if __name__ == "__main__":
    sys.exit(main())
