"""What recording costs whole kernels, on this machine's GPU: ``python tools/recording_cost.py --json FILE``.

For rings bound by different things, attention and a GEMM: launches without and with the recorder in turn, for each
encoding of a record. All records of the kernel are made, each after other work, as in a capture; the cost of one is
what an iteration takes longer, over the records that the role which bounds it makes of one (``recorder_cost.py`` has
the slope over equal records in a row instead). Of every recorded configuration one launch is decoded and held against
its program, so that what is measured is a recording that serves.

``--dry-run``: compiles everything and counts the instructions of the kernel, which needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.launches import launch_all
from hwkernels.capture.plan import plan
from hwkernels.capture.trace import make_trace
from hwkernels.device.compile import Compiled, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.recorder.measure import run_of
from hwkernels.twins import registered
from pipesim.conform.replay.conformance import conform
from pipesim.errors import HardwareError, PipesimError
from pipesim.targets import find
from pipesim.trace.schema import Run

CONSUMER, PRODUCER = 5, 4  #: records that a role of the ring makes of a tile
AIMS = {"consumer": 8.0, "producer": 20.0, "kernel": 6.0}  #: cycles a record, cycles a record, percent


@dataclass(frozen=True)
class Case:
    """A configuration. ``records``: that its bounding role makes of an iteration, 0 of a kernel judged as a whole."""

    kernel: str
    name: str
    params: Mapping[str, int]
    records: int = 0
    aim: str = "kernel"
    grid: int = 1
    extra: Mapping[str, int] = field(default_factory=dict)  #: macros of all builds

    def request(self, encoding: str, repetitions: int) -> CaptureRequest:
        """Its capture."""
        params = find(self.kernel).defaults | dict(self.params)
        return CaptureRequest(
            TwinSubject(self.kernel, self.grid), params, repetitions=repetitions, record_ctas=1, encoding=encoding
        )


def _ring(name: str, records: int, aim: str, extra: Mapping[str, int] | None = None, **params: int) -> Case:
    usual = {"stages": 4, "tiles": 512, "tile_bytes": 4096, "consumer_warps": 1, "arrive_lanes": 1, "work": 0}
    return Case("producer_consumer", name, usual | params, records, aim, extra=extra or {})


def _attention(**params: int) -> Case:
    said = {"fused": 0, "stages": 2, "kv_blocks": 16, **params}
    return Case("attention_sm90", " ".join(f"{name}={value}" for name, value in params.items()) or "usual", said)


def _gemm(**params: int) -> Case:
    said = {"tiles": 4, "k_iters": 16, **params}
    return Case("gemm_sm90", " ".join(f"{name}={value}" for name, value in params.items()) or "usual", said)


CASES = (
    _ring("4 KB, 200 cycles of work: consumer", CONSUMER, "consumer", work=200),
    _ring("16 KB, 2 warps, 600 cycles of work: consumer", CONSUMER, "consumer", tile_bytes=1 << 14, consumer_warps=2,
          work=600),
    _ring("4 KB, no work: consumer", CONSUMER, "consumer"),
    _ring("32 KB, 8 warps: consumer", CONSUMER, "consumer", tiles=192, tile_bytes=32768, consumer_warps=8),
    _ring("4 KB, nothing read: producer's issue", PRODUCER, "producer", {"PIPESIM_BARE": 1}),
    _attention(),
    _attention(stages=3, block_n=64, kv_blocks=24),
    _attention(depth=64, stages=4),
    _attention(pingpong=0),
    _attention(num_consumer=1, stages=3),
    replace(_attention(kv_blocks=12), grid=132, name="kv_blocks=12, 132 CTAs"),
    _gemm(),
    _gemm(k_iters=64, tiles=2),
    _gemm(stages=3, block_n=256),
    _gemm(num_consumer=1, block_n=64, stages=6),
    _gemm(k_group_size=2),
    replace(_gemm(stages=3, block_n=256, tiles=2, k_iters=24), grid=132, name="block_n=256, 132 CTAs"),
)  # fmt: skip


def builds(case: Case, encoding: str) -> dict[str, Compiled]:
    """The kernel without and with the recorder."""
    request = case.request(encoding, 1)
    subject = request.subject
    assert isinstance(subject, TwinSubject)
    memory = plan(request).memory
    return {
        name: compile_cubin(subject.twin.source, subject.defines(request, where) | dict(case.extra))
        for name, where in (("plain", ""), ("traced", memory))
    }


def measure(gpu: Gpu, info: DeviceInfo, case: Case, encoding: str, repetitions: int) -> dict[str, Any]:
    """One configuration with one encoding, from alternating launches."""
    request = case.request(encoding, repetitions)
    layout = plan(request, info.smem_per_cta, info.smem_per_sm)
    compiled = builds(case, encoding)
    launched = launch_all(gpu, request, layout, compiled)
    if any(run.gave_up for run in launched):
        return {"verdict": "a wait gave up"}
    marks = request.subject.marks(request.params)
    runs = tuple(run_of(run, marks) for run in launched)
    try:
        trace = make_trace(request, layout, compiled["traced"], info, launched, None)
        program = find(case.kernel).build(dict(request.params), grid=request.ctas)
        verdict = conform(program, trace).verdict.value
    except PipesimError as error:
        verdict = f"{type(error).__name__}: {error}"
    units = registered(case.kernel).units(request.params)
    return {"memory": layout.memory, "verdict": str(verdict), **summary(runs, units, case.records)}


def summary(runs: tuple[Run, ...], units: int, records: int) -> dict[str, Any]:
    """Medians over the pairs of launches, with the least and the most: cycles a unit or a record, and percent.

    By the period in the steady state where both launches of a pair have one, else by the cycles of the whole loop.
    """
    plain = {run.repetition: _of_unit(run, units) for run in runs if not run.traced}
    traced = [(plain[run.repetition], _of_unit(run, units)) for run in runs if run.traced and run.repetition in plain]
    which = -1 if all(len(one) == 2 for pair in traced for one in pair) else 0
    taken = [(a[which], b[which]) for a, b in traced]
    added = [b - a for a, b in taken]
    percent = [100 * (b / a - 1) for a, b in taken]
    found = {
        "plain_cycles": statistics.median(a for a, _ in taken),
        "added_cycles": _spread(added),
        "percent": _spread(percent),
    }
    return found | ({"cycles_a_record": _spread([each / records for each in added])} if records else {})


def _of_unit(run: Run, units: int) -> tuple[float, ...]:
    """Cycles of a unit by the whole loop, and by the period if the launch has one; of the median CTA."""
    whole = statistics.median(run.cycles) / max(units, 1)
    periods = run.period_millicycles
    return (whole, statistics.median(periods) / 1000) if periods and all(periods) else (whole,)


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 3), "low": round(min(values), 3), "high": round(max(values), 3)}


def instructions(cubin: bytes) -> int:
    """How many instructions the kernel of a cubin has: the 16-byte words of its code section."""
    header = int.from_bytes(cubin[40:48], "little")
    size, count, names = (int.from_bytes(cubin[at : at + 2], "little") for at in (58, 60, 62))
    sections = [cubin[header + n * size : header + (n + 1) * size] for n in range(count)]
    fields = ((0, 4), (24, 32), (32, 40))  # name, offset and size of a section
    at = [[int.from_bytes(section[a:b], "little") for a, b in fields] for section in sections]
    text = at[names][1]
    return sum(nbytes // 16 for name, _, nbytes in at if cubin[text + name : text + name + 6] == b".text.")


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of a table: a row for each configuration and encoding."""
    kinds = f"{'kernel':18} {'configuration':46} {'encoding':11}"
    yield f"{kinds} {'plain':>9} {'added':>8} {'a record':>22} {'slower by':>24}  memory trace"
    for row in rows:
        names = f"{row['kernel']:18} {row['name']:46} {row['encoding']:11}"
        if "percent" not in row:
            yield f"{names} {row['verdict']}"
            continue
        record = row.get("cycles_a_record")
        each = f"{record['median']:6.1f} ({record['low']:.1f} to {record['high']:.1f})" if record else ""
        slower = f"{row['percent']['median']:6.1f} % ({row['percent']['low']:.1f} to {row['percent']['high']:.1f})"
        cycles = f"{row['plain_cycles']:9.1f} {row['added_cycles']['median']:8.1f}"
        yield f"{names} {cycles} {each:>22} {slower:>24}  {row['memory']:6} {row['verdict'][:80]}"
    judged = [row for row in rows if "percent" in row]
    for kernel in dict.fromkeys(row["kernel"] for row in judged):
        for encoding in dict.fromkeys(row["encoding"] for row in judged):
            own = [row["percent"]["median"] for row in judged if (row["kernel"], row["encoding"]) == (kernel, encoding)]
            if own:
                yield f"{kernel}, {encoding}: slower by {statistics.median(own):.1f} % (median of {len(own)})"


def _compile(job: tuple[int, str]) -> dict[str, int]:
    """Compile a configuration into the cache; the instructions of each build."""
    number, encoding = job
    return {name: instructions(build.cubin) for name, build in builds(CASES[number], encoding).items()}


def main() -> int:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="store the results here")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--encodings", nargs="+", default=["tagged", "full", "positional"])
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    begun = time.monotonic()
    jobs = [(number, encoding) for encoding in options.encodings for number in range(len(CASES))]
    with ProcessPoolExecutor() as pool:
        counted = list(pool.map(_compile, jobs))
    print(f"{len(jobs)} configurations compiled in {time.monotonic() - begun:.0f} s", flush=True)
    if options.dry_run:
        for (number, encoding), count in zip(jobs, counted, strict=True):
            heading = f"{CASES[number].kernel:18} {CASES[number].name:46} {encoding:11}"
            print(f"{heading} {count['plain']:6} {count['traced'] - count['plain']:+6}")
        return 0
    info = require_gpu()
    gpu = Gpu(info)
    rows: list[dict[str, Any]] = []
    try:
        for number, case in enumerate(CASES):
            for encoding in options.encodings:
                names = {"kernel": case.kernel, "name": case.name, "encoding": encoding}
                settings = {"params": dict(case.params), "grid": case.grid, "aim": AIMS[case.aim]}
                rows.append({**names, **settings, "verdict": "it never returned"})
                rows[-1]["instructions"] = counted[jobs.index((number, encoding))]
                rows[-1] |= measure(gpu, info, case, encoding, options.repetitions)
    except HardwareError as error:  # nothing can be launched after a trap: what was measured is kept
        rows[-1]["verdict"] = f"{type(error).__name__}: {error}"
    else:
        gpu.close()
    lines = list(table(rows))
    print("\n".join(lines))
    print(f"{time.monotonic() - begun:.0f} s in all")
    if options.json is not None:
        document = {"device": info.name, "driver": info.driver, "repetitions": options.repetitions, "rows": rows}
        options.json.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
