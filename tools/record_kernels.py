"""Kernels recorded on this machine's GPU from unmodified PTX: ``tools/record_kernels.py [--jobs N] OUT FILE ...``.

``python tools/record_kernels.py --prepare FILE.ptx ...`` assembles them on another machine, beside the files.

Each file needs its launch file beside it (``.json``). A kernel is launched as it is and with the recorder in it, with
the same memory: everything that it left must be the same, bit for bit. The trace is held against the program that is
read from the same PTX, and damaged records must be refused. Files whose name has ``hang`` are launched with a flag
that ends their waits after a second. Each kernel runs in a process of its own: N of them at a time read and judge
(all cores without ``--jobs``), and one at a time uses the GPU. Writes traces and ``results.json``, and prints a table.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

import numpy as np

from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.rewriter import Assembled, RewriteOptions, assemble, decode_records, instrument
from hwkernels.rewriter.instrument import Instrumented
from hwkernels.rewriter.launching import RecordedKernel, Subject
from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.errors import PipesimError
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch
from pipesim.report.pages.verify import compare_lines
from pipesim.trace.files import write_trace
from pipesim.trace.schema import Device, Trace

_PAIRS = 9  #: launches as it is and recorded, in turn
_BATCH = 50
_LIMIT_S = 60  #: with the GPU
_WHOLE_S = 210  #: in all, others' use of the GPU included
_STOP_S = 1.0
_WIDTH = 110  #: cells of the page of a hang


def main() -> int:
    """Record them all; 1 if one differs."""
    jobs = os.cpu_count() or 1
    if sys.argv[1:2] == ["--jobs"]:
        jobs = int(sys.argv[2])
        del sys.argv[1:3]
    out, *files = sys.argv[1:]
    if out == "--prepare":
        for name in files:
            prepare(Path(name))
        return 0
    if files[:1] == ["--one"]:
        print(json.dumps(one(Path(out), Path(files[1]))), flush=True)
        os._exit(0)  # a kernel that still hangs would keep the process
    results = []
    Path(out).mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        for said in pool.map(lambda file: in_process(out, file), files):
            results.append(said)
            print(_row(said), flush=True)
            (Path(out) / "results.json").write_text(json.dumps(results, indent=1))
    return int(any("error" in said or said.get("agreement") == "differs" for said in results))


def in_process(out: str, file: str) -> dict[str, Any]:
    """What there is to say of a kernel, by a process of its own."""
    command = [sys.executable, __file__, out, "--one", file]
    begun = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WHOLE_S, check=False)
        said = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr[-600:]}
    except subprocess.TimeoutExpired:
        said = {"error": f"not done after {_WHOLE_S} s"}
    names = {"file": Path(file).stem, "family": Path(file).parent.name}
    return said | names | {"took_s": round(time.monotonic() - begun, 1)}


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Within, no other process of this recording uses the GPU, and this one not for longer than it may."""

    def end() -> None:
        print(f"not done after {_LIMIT_S} s with the GPU", file=sys.stderr, flush=True)
        os._exit(1)

    with (out / ".gpu").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        timer = threading.Timer(_LIMIT_S, end)
        timer.daemon = True
        timer.start()
        yield
        timer.cancel()


def prepare(file: Path) -> None:
    """Assemble a kernel as it is and with the recorder, beside its file."""
    try:
        text, launch, options = given(file)
        kernel = instrument(text, file.name, launch, options)
        both = assemble(text, launch.entry), assemble(kernel.ptx, launch.entry)
    except PipesimError as error:
        print(file, error)
        return
    for which, each in zip(("plain", "recorded"), both, strict=True):
        file.with_suffix(f".{which}.cubin").write_bytes(each.cubin)
    told = [[each.registers, each.spills, each.stack, each.warnings] for each in both]
    file.with_suffix(".assembled").write_text(json.dumps([kernel.digest, *told]))


def assembled(file: Path, kernel: Instrumented) -> tuple[Assembled, Assembled]:
    """The two cubins: those beside the file if they are of this rewriting, else assembled here."""
    beside = file.with_suffix(".assembled")
    if beside.is_file():
        digest, *told = json.loads(beside.read_text())
        if digest == kernel.digest:
            cubins = [file.with_suffix(f".{which}.cubin").read_bytes() for which in ("plain", "recorded")]
            plain, recorded = (
                Assembled(cubin, registers, spills, stack, tuple(warnings))
                for cubin, (registers, spills, stack, warnings) in zip(cubins, told, strict=True)
            )
            return plain, recorded
    return assemble(file.read_text(), kernel.entry), assemble(kernel.ptx, kernel.entry)


def given(file: Path) -> tuple[str, Launch, RewriteOptions]:
    """A kernel's PTX, its launch, and how it is recorded."""
    hangs = "hang" in file.stem
    options = RewriteOptions(stop_flag=hangs, eager=hangs)
    return file.read_text(), read_launch(file.with_suffix(".json").read_text(), str(file)), options


def one(out: Path, file: Path) -> dict[str, Any]:
    """Record one kernel; what there is to say of it."""
    text, launch, options = given(file)
    hangs = options.stop_flag
    kernel = instrument(text, file.name, launch, options)
    plain, recorded = assembled(file, kernel)
    found: dict[str, Any] = {
        "encoding": "full" if kernel.full else "positional",
        "sites": sum(len(run.sites) for run in kernel.runs),
        "registers": [plain.registers, recorded.registers],
        "spills": [plain.spills, recorded.spills],
        "warnings": [w for w in recorded.warnings if w not in plain.warnings],
    }
    with alone(out):
        info = require_gpu()
        subject = Subject.of(Gpu(info), launch)
        made = RecordedKernel.of(subject, kernel, recorded, host=hangs)
        if hangs:
            return found | _hang(out, file, made, info)
        loaded = subject.load(plain)
        subject.run(loaded)
        before = subject.digest()
        subject.run(loaded)
        found["repeatable"] = subject.digest() == before
        made.prepare()
        subject.run(made.loaded)
        found["identical"] = subject.digest() == before if found["repeatable"] else None
        buffer = made.records()
        found |= _times(subject, loaded, made)
    return found | _judged(out, file, kernel, buffer, info)


def _judged(out: Path, file: Path, kernel: Instrumented, buffer: bytes, info: DeviceInfo) -> dict[str, Any]:
    device = Device(info.name, info.sms, info.capability, info.driver)
    try:
        trace = decode_records(kernel, buffer, device)
    except PipesimError as error:
        return {"agreement": "refused", "why": f"{error.fact} ({error.place}; {error.cause})"}
    write_trace(trace, out / f"{file.parent.name}-{file.stem}.parquet")
    found = _compared(kernel, trace)
    busiest = max(max(cta.written, default=0) for cta in trace.meta.ctas)
    return {"events": len(trace.events), "busiest": busiest} | found | {"damage": _damaged(kernel, buffer, device)}


def _compared(kernel: Instrumented, trace: Trace) -> dict[str, Any]:
    stands = compare_kernel(kernel.extraction, trace, "recorded").comparison
    divergence = stands.conformance.divergence
    said = divergence.claim if divergence is not None else stands.reason.kind.value if stands.reason else ""
    return {"agreement": stands.agreement.value, "why": said, "status": str(trace.meta.status)}


def _damaged(kernel: Instrumented, buffer: bytes, device: Device) -> dict[str, bool]:
    """Whether each kind of damage to the records is noticed."""
    lay = kernel.layout
    first = int.from_bytes(buffer[8:16], "little")
    words = np.frombuffer(buffer, dtype="<u4").copy()
    begin, step = first // 4, 2 if kernel.full else 1
    noticed: dict[str, bool] = {}
    size = lay.size // 4
    stream = words[begin : begin + size]
    used = int(np.argmax(stream == 0xFFFFFFFF)) if (stream == 0xFFFFFFFF).any() else size
    for name in ("lost", "swapped", "parity"):
        changed = words.copy()
        mine = changed[begin : begin + size]
        at = used // step // 2 * step
        if name == "lost":
            mine[at : used - step] = mine[at + step : used].copy()
            mine[used - step : used] = 0xFFFFFFFF
        elif name == "swapped" and kernel.full:
            tags = mine[1:used:2].copy()
            sites = tags & 0xFFF
            other = next((n for n in range(1, len(sites)) if sites[n] != sites[n - 1]), 0)
            mine[2 * other - 1], mine[2 * other + 1] = (
                int(tags[other]) & 0xFFFF | int(tags[other - 1]) & 0xFFFF0000,
                int(tags[other - 1]) & 0xFFFF | int(tags[other]) & 0xFFFF0000,
            )
        elif name == "parity" and kernel.full:
            tags = mine[1:used:2]
            waits = [n for n, tag in enumerate(tags) if tag >> 12 & 1]
            if not waits:
                continue
            mine[2 * waits[len(waits) // 2] + 1] ^= 0x8000
        else:
            if name != "swapped":
                continue  # the parity of a wait is in the hash of the lap
            other = used // 2
            mine[other], mine[other + 1] = int(mine[other + 1]), int(mine[other])
        try:
            trace = decode_records(kernel, changed.tobytes(), device)
            noticed[name] = _compared(kernel, trace)["agreement"] != Agreement.CONFORMS.value
        except PipesimError:
            noticed[name] = True
    return noticed


def _times(subject: Subject, loaded: Any, made: RecordedKernel) -> dict[str, Any]:
    """A launch of each, as part of _BATCH launches one after the other, in turn; memory as the last one left it.

    ``queued``: the device did not wait for the host between the launches.
    """
    plain, recorded = [], []
    made.prepare()
    for _ in range(_PAIRS):
        plain.append(subject.run(loaded, times=_BATCH) / _BATCH)
        recorded.append(subject.run(made.loaded, times=_BATCH) / _BATCH)
    return {"plain_ns": round(median(plain[1:])), "recorded_ns": round(median(recorded[1:])), "queued": True}


def _hang(out: Path, file: Path, made: RecordedKernel, info: DeviceInfo) -> dict[str, Any]:
    """A kernel that hangs: ended by the flag, its records read, and who waits for what."""
    made.prepare()

    def stop() -> None:
        made.view[:4] = 1

    timer = threading.Timer(_STOP_S, stop)
    timer.start()
    begun = time.monotonic()
    ended = True
    try:
        made.subject.run(made.loaded, limit_s=5.0)
    except PipesimError as error:
        ended = False
        print(error, file=sys.stderr)
    took = time.monotonic() - begun
    trace = decode_records(made.kernel, made.records(), Device(info.name, info.sms, info.capability, info.driver))
    write_trace(trace, out / f"{file.stem}.parquet")
    page = compare_lines(compare_kernel(made.kernel.extraction, trace, file.stem), _WIDTH)
    (out / f"{file.stem}.txt").write_text("\n".join(page) + "\n")
    return {"ended": ended, "took_ms": round(1000 * took), "events": len(trace.events)} | _compared(made.kernel, trace)


def _row(said: dict[str, Any]) -> str:
    if "error" in said:
        return f"{said['file'][:40]:40s} ERROR {' '.join(said['error'].split())[-300:]}"
    times = ""
    if "plain_ns" in said:
        times = (
            f"{said['plain_ns']:9,d} -> {said['recorded_ns']:9,d} ns {said['recorded_ns'] / said['plain_ns'] - 1:+.1%}"
        )
    registers, spills = (f"{a}->{b}" for a, b in (said["registers"], said["spills"]))
    return (
        f"{said['file'][:40]:40s} {said['encoding']:10s} {said['sites']:4d} sites {registers:>9s} {spills:>9s} "
        f"same {said.get('identical')} {said.get('events', 0):6,d} events {said['agreement']} {said['why'][:160]} "
        f"{said.get('damage', '')} {times} {said['took_s']} s"
    )


if __name__ == "__main__":
    sys.exit(main())
