"""Runs one case of an experiment on a GPU and counts its outcomes. One function a bench; all results are integers.

A result has ``outcomes``, how often each thing happened, and ``data``, lists of integers by name. What a kernel writes
to host memory stays there when it traps, so a trap is an outcome too, with what was written before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu
from hwkernels.experiments.catalogue import Case, Experiment
from hwkernels.experiments.latency import Path
from hwkernels.experiments.results import TRAP
from hwkernels.experiments.sequences import parse
from hwkernels.recorder.layout import ANCHOR, HEADER
from pipesim.errors import HardwareError

Result = dict[str, dict[str, Any]]
Array = npt.NDArray[Any]


COPY_DEADLINE_NS = 20_000  # a copy lands within five microseconds
WAIT_DEADLINE_NS = 50_000
_TOKEN_DEADLINE_NS = 20_000_000
_SOURCE_TILES = 16
_SEED = 7


@dataclass
class Bench:
    """A GPU with an experiment's kernel loaded, allowed ``smem`` bytes of dynamic shared memory."""

    gpu: Gpu
    kernel: Any
    kernel_hash: str
    sms: int

    def launch(self, grid: int, threads: int, arguments: tuple[Any, ...], smem: int = 0, cluster: int = 1) -> str:
        """Run to the end. The outcome ``trap: NAME OF THE ERROR`` if the launch failed, else ""."""
        try:
            self.gpu.launch(self.kernel, (grid, threads, smem), arguments, cluster=cluster)
        except HardwareError as error:
            name = re.search(r"cuStreamSynchronize.*?(CUDA_ERROR_\w+)", error.fact)
            if name is None:
                raise
            return f"{TRAP}: {name[1]}"
        return ""

    def words(self, count: int, dtype: type[np.unsignedinteger[Any]]) -> tuple[int, Array]:
        """Zeroed words of host memory that outlive a trap: their address and the array."""
        address, view = self.gpu.host_mapped(count * np.dtype(dtype).itemsize)
        view[:] = 0
        return address, view.view(dtype)

    def fetch(self, address: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """Device memory as an array."""
        array = np.zeros(shape, dtype=dtype)
        self.gpu.download(address, array)
        return array

    def zeroed(self, nbytes: int) -> int:
        """The address of so much zeroed device memory."""
        address = self.gpu.allocate(nbytes)
        self.gpu.fill(address, 0, nbytes)
        return address


SMEM_LIMIT = 1 << 17  # of any experiment's kernel; more than half an SM's, so that two CTAs never share one


def run_case(info: DeviceInfo, experiment: Experiment, case: Case) -> Result:
    """The result of one case, on a context of its own making. Raises HardwareError if a launch cannot be made."""
    compiled = compile_cubin(experiment.source, experiment.defines)
    gpu = Gpu(info)
    try:
        bench = Bench(gpu, gpu.load(compiled, SMEM_LIMIT), compiled.kernel_hash, info.sms)
        result = BENCHES[experiment.bench](bench, case)
        return {
            "outcomes": {str(name): int(n) for name, n in sorted(result["outcomes"].items())},
            "data": {name: _integers(values) for name, values in result["data"].items()},
        }
    finally:
        gpu.close()


def _integers(values: Any) -> list[Any]:
    return [_integers(v) if isinstance(v, list | tuple | np.ndarray) else int(v) for v in values]


def _u32(*numbers: int) -> tuple[np.uint32, ...]:
    return tuple(np.uint32(n) for n in numbers)


def _result(outcomes: Mapping[str, int], **data: Any) -> Result:
    return {"outcomes": dict(outcomes), "data": data}


def _sequence(bench: Bench, case: Case) -> Result:
    """answers: the kernel's, one an operation; words: before and after inval ([] where it trapped)."""
    operations = np.array([(int(code), operand) for code, operand in parse(case.text)], dtype=np.uint32)
    count = len(operations)
    address, out = bench.words(count + 3, np.uint64)
    ops = bench.gpu.allocate(operations.nbytes)
    bench.gpu.upload(ops, operations)
    trapped = bench.launch(1, 1, (ops, *_u32(count), address))
    ended = not trapped and int(out[count + 2]) == 1
    outcome = trapped or ("finished" if ended else "unfinished")
    return _result({outcome: 1}, answers=out[:count], words=out[count : count + 2] if ended else [])


def _lanes(bench: Bench, case: Case) -> Result:
    """words: those that were found after inval, and counts: how often each."""
    a = case.arguments
    address, out = bench.words(a["runs"], np.uint64)
    trapped = bench.launch(1, 32, (*_u32(a["n"], a["m"], a["apart"], a["runs"]), address))
    words = Counter(int(word) for word in out)
    missing = words.pop(0, 0)
    outcomes = {"finished": sum(words.values())} if words else {}
    if missing:
        outcomes[trapped or "unfinished"] = missing
    return _result(outcomes, words=sorted(words), counts=[words[word] for word in sorted(words)])


def _copy_runs(bench: Bench, size: int, expected: int, runs: int) -> tuple[Array, Array, Array]:
    """Status and word of each run, and the 64 bins of what had not landed."""
    random = np.random.default_rng(_SEED)
    source = random.integers(0, 1 << 32, size=(_SOURCE_TILES, size // 4), dtype=np.uint32)
    # so that no 16-byte word is the kernel's POISON
    source[:, ::4] &= np.uint32(0x7FFFFFFF)
    tiles, out, bins = bench.gpu.allocate(source.nbytes), bench.zeroed(16 * runs), bench.zeroed(256)
    bench.gpu.upload(tiles, source)
    numbers = _u32(_SOURCE_TILES, size, expected, runs, COPY_DEADLINE_NS)
    if trapped := bench.launch(1, 256, (tiles, *numbers, out, bins), smem=size):
        raise HardwareError(trapped, cause=f"a bulk copy of {size} bytes, {expected} expected")
    pairs = bench.fetch(out, (runs, 2), np.uint64)
    return pairs[:, 0], pairs[:, 1], bench.fetch(bins, (64,), np.uint32)


def _copy(bench: Bench, case: Case) -> Result:
    """missing_bins: in 64ths of the tile, how often a 16-byte word had not landed when the phase completed."""
    a = case.arguments
    status, words, bins = _copy_runs(bench, a["bytes"], a["expected"], a["runs"])
    done, wrong, missing = (status & 1).astype(bool), (status & 2).astype(bool), status >> 8
    late = done & (missing > 0)
    name = "completed" if a["expected"] == a["bytes"] else "completed early"
    outcomes = {
        f"{name}, all landed": int((done & (missing == 0)).sum()),
        f"{name}, words missing": int(late.sum()),
        "hung": int((~done).sum()),
        "tile wrong in the end": int(wrong.sum()),
    }
    found = Counter(int(word) for word in words)
    return _result(
        {k: n for k, n in outcomes.items() if n},
        missing_bins=bins if late.any() else [],
        most_missing=[int(missing[late].max())] if late.any() else [],
        words=sorted(found),
        counts=[found[word] for word in sorted(found)],
    )


def _pieces(bench: Bench, case: Case) -> Result:
    """expected: the numbers of bytes that completed early at least once; early: how often; missing: with words missing.

    ``at_once``: how often the phase completed when all the bytes were expected, which every run should.
    """
    a = case.arguments
    rows = []
    whole = 0
    for expected in range(a["step"], a["bytes"] + 1, a["step"]):
        status, _, _ = _copy_runs(bench, a["bytes"], expected, a["runs"])
        done = (status & 1).astype(bool)
        if expected == a["bytes"]:
            whole = int(done.sum())
        elif done.any():
            rows.append((expected, int(done.sum()), int((done & (status >> 8 > 0)).sum())))
    tried = a["bytes"] // a["step"] - 1
    return _result(
        {"completed early at least once": len(rows), "never completed early": tried - len(rows)},
        expected=[row[0] for row in rows],
        early=[row[1] for row in rows],
        missing=[row[2] for row in rows],
        at_once=[whole],
    )


def _laps(bench: Bench, case: Case) -> Result:
    a = case.arguments
    flag, out = bench.zeroed(4), bench.zeroed(4 * a["runs"])
    numbers = _u32(a["phases"], a["parity"], a["gap"], a["held"], a["runs"], WAIT_DEADLINE_NS)
    trapped = bench.launch(1, 64, (*numbers, flag, out))
    if trapped:
        return _result({trapped: 1})
    names = {0: "unfinished", 1: "returned", 2: "still waiting at the deadline"}
    return _result(Counter(names[int(x)] for x in bench.fetch(out, (a["runs"],), np.uint32)))


def _remote(bench: Bench, case: Case) -> Result:
    """said: what the two CTAs wrote in the last launch."""
    a = case.arguments
    outcomes: Counter[str] = Counter()
    address, out = bench.words(2, np.uint32)
    for _ in range(a["launches"]):
        out[:] = 0
        trapped = bench.launch(2, 1, (*_u32(a["exited"], _TOKEN_DEADLINE_NS), address), cluster=2)
        if trapped:
            outcomes[trapped] += 1
            break
        sender, waiter = int(out[0]), int(out[1])
        if a["exited"]:
            outcomes["the sender continues" if sender == 4 else "unfinished"] += 1
        else:
            outcomes["the wait returned" if (sender, waiter) == (4, 5) else "the wait did not return"] += 1
    return _result(outcomes, said=out.copy())


FINISHED_SOURCES, FINISHED_TILE, FINISHED_SMEM = 16, 32768, 40960  #: SOURCES, TILE_BYTES, A_BYTES + B_BYTES
FINISHED_UNITS = {"word": 128 * 64, "sum": 128 * 128}  #: compared in a lap: words of the slot, sums of a product


def _finished(bench: Bench, case: Case) -> Result:
    """laps: of all CTAs; cycles_after_arrive: least and mean of a lap until all loaded values were used."""
    a = case.arguments
    cluster = 2 if a["whose"] else 1
    grid = bench.sms // cluster * cluster
    tiles = np.repeat(np.arange(1, FINISHED_SOURCES + 1, dtype=np.uint32), FINISHED_TILE // 4)
    source, out = bench.gpu.allocate(tiles.nbytes), bench.zeroed(32 * grid)
    bench.gpu.upload(source, tiles)
    numbers = _u32(a["kind"], a["control"], a["whose"], a["laps"], 4, _TOKEN_DEADLINE_NS)
    if trapped := bench.launch(grid, 160, (*numbers, source, out), smem=FINISHED_SMEM, cluster=cluster):
        return _result({trapped: 1})
    laps, torn, cycles, least = bench.fetch(out, (grid, 4), np.uint64).T
    unit = "word" if a["kind"] < 4 else "sum"
    compared, wrong = int(laps.sum()) * FINISHED_UNITS[unit], int(torn.sum())
    short = int((laps != a["laps"]).sum())
    outcomes = {f"{unit}s whole": max(0, compared - wrong), f"{unit}s torn": wrong, "CTAs at the deadline": short}
    timed = a["kind"] < 3 and bool(laps.all())
    return _result(
        {name: count for name, count in outcomes.items() if count},
        laps=[laps.sum()],
        cycles_after_arrive=[least.min(), cycles.sum() // laps.sum()] if timed else [],
    )


def _look(bench: Bench, shape: tuple[int, int], mode: int, count: int, out: int) -> None:
    """One launch of the clocks' kernel, a CTA an SM."""
    if trapped := bench.launch(*shape, (*_u32(mode, count), out, bench.zeroed(256)), smem=SMEM_LIMIT):
        raise HardwareError(trapped, cause=f"mode {mode} of clock_reads")


def _timer_step(bench: Bench, case: Case) -> Result:
    count = case.arguments["count"]
    out = bench.zeroed(4 * count)
    _look(bench, (1, 1), 0, count, out)
    found = Counter(int(step) for step in bench.fetch(out, (count,), np.uint32))
    return _result({f"{step} ns": n for step, n in found.items()})


READINGS = ("nothing", "%clock", "%clock64", "%globaltimer", "%globaltimer_lo")
READS = 32  #: READS of clock_reads.cu


def _reading_cost(bench: Bench, case: Case) -> Result:
    """Of one reading, in the order of READINGS, least and median 1/1000 cycles; the loop's own cost is taken off."""
    count = case.arguments["count"]
    out = bench.zeroed(4 * count * len(READINGS))
    _look(bench, (1, 1), 1, count, out)
    cycles = bench.fetch(out, (len(READINGS), count), np.uint32).astype(np.int64)
    low, middle = cycles.min(axis=1), np.sort(cycles, axis=1)[:, count // 2]
    return _result(
        {"groups of readings": cycles.size},
        low_millicycles=(low - low[0]) * 1000 // READS,
        median_millicycles=(middle - middle[0]) * 1000 // READS,
    )


def _quarters(bench: Bench, case: Case) -> Result:
    """Behind a barrier, of each warp: by how many cycles its stamp is behind the first of the 8, least and most.

    To and fro, of each warp 1 .. 7: its clock minus warp 0's lies from ``low`` to ``high`` cycles.
    """
    count, mode = case.arguments["count"], case.arguments["mode"]
    shape = (count, 8) if mode == 2 else (7, count, 4)
    out = bench.zeroed(4 * int(np.prod(shape)))
    _look(bench, (1, 256), mode, count, out)
    stamps = bench.fetch(out, shape, np.uint32)
    if mode == 2:
        behind = (stamps - stamps[:, :1]).astype(np.int32).astype(np.int64)
        behind -= behind.min(axis=1, keepdims=True)
        spread = np.sort(behind.max(axis=1))
        return _result(
            {"barriers": count},
            least_behind=behind.min(axis=0),
            most_behind=behind.max(axis=0),
            spread=[spread[0], spread[count // 2], spread[-1]],
        )
    forth = (stamps[..., 1] - stamps[..., 0]).astype(np.int32).astype(np.int64)
    back = (stamps[..., 3] - stamps[..., 2]).astype(np.int32).astype(np.int64)
    return _result({"round trips": 7 * count}, low=-back.min(axis=1), high=forth.min(axis=1))


def _timer_agreement(bench: Bench, case: Case) -> Result:
    """Of each CTA but the first, ``low`` and ``high`` nanoseconds, between which its timer minus CTA 0's lies.

    spread: least, median and most nanoseconds between the first and the last CTA that saw one release.
    """
    count, grid = case.arguments["count"], bench.sms
    out = bench.zeroed(16 * count * grid)
    _look(bench, (grid, 1), 4, count, out)
    stamps = bench.fetch(out, (count, grid, 2), np.uint64).astype(np.int64)
    if (stamps == 0).any():
        return _result({"unfinished": 1})
    seen = stamps[:, 1:, 1]
    spread = np.sort(seen.max(axis=1) - seen.min(axis=1))
    return _result(
        {"releases": count},
        low=(stamps[:, 1:, 0] - stamps[:, :1, 0]).max(axis=0),
        high=(seen - stamps[:, :1, 1]).min(axis=0),
        spread=[spread[0], spread[count // 2], spread[-1]],
    )


def _pingpong(bench: Bench, case: Case) -> Result:
    """Of each CTA: sm; anchors, 8 numbers in the order of ``layout.ANCHOR``; sent and received.

    Cycles count from the CTA's first reading of its clock, nanoseconds from the first reading of all.
    """
    a = case.arguments
    ctas, rounds = a["ctas"], a["rounds"]
    stamps_at, headers_at = bench.zeroed(16 * ctas * rounds), bench.zeroed(ctas * HEADER.itemsize)
    arguments = (*_u32(rounds, _TOKEN_DEADLINE_NS), stamps_at, headers_at)
    for _ in range(2):  # the second time the code is in the caches
        if trapped := bench.launch(ctas, 1, arguments, smem=SMEM_LIMIT, cluster=a["cluster"]):
            return _result({trapped: 1})
    stamps = bench.fetch(stamps_at, (ctas, rounds, 2), np.uint64)
    headers = bench.fetch(headers_at, (ctas,), HEADER)
    short = int((stamps == 0).any(axis=(1, 2)).sum())
    outcomes = {"CTAs finished": ctas - short} | ({"CTAs at the deadline": short} if short else {})
    if short:
        return _result(outcomes)
    first_ns = int(headers["anchors"]["globaltimer_before"].min())
    first_cycle = headers["anchors"]["clock_before"][:, 0]
    anchors = [
        [int(anchor[name]) - (first_ns if name.startswith("globaltimer") else int(base))
         for anchor in header["anchors"] for name in ANCHOR.names or ()]
        for header, base in zip(headers, first_cycle, strict=True)
    ]  # fmt: skip
    stamps -= first_cycle[:, None, None]
    return _result(outcomes, sm=headers["smid"], anchors=anchors, sent=stamps[:, :, 0], received=stamps[:, :, 1])


_LATENCY_TILES = 32
_LATENCY_DEADLINE_NS = 1_000_000  # an expired one would leave a phase open, and the next arrive would trap


def _latency(bench: Bench, case: Case) -> Result:
    """least, first_permille, median: cycles from the stamp before the operation to the one after the wait; sm_khz."""
    a = case.arguments
    cluster, runs = a["cluster"], a["runs"]
    grid = bench.sms // cluster * cluster
    total = a["bytes"] * (a["count"] if a["path"] in (Path.COPY, Path.COPIES_APART) else 1)
    source, turn = bench.zeroed(max(16, total) * _LATENCY_TILES), bench.zeroed(4)
    out, clocks = bench.zeroed(4 * grid * runs), bench.zeroed(16 * grid)
    numbers = _u32(a["path"], a["bytes"], a["count"], runs, _LATENCY_DEADLINE_NS)
    for _ in range(2):  # the second time the code and the source are in the caches
        bench.gpu.fill(turn, 0, 4)
        arguments = (*numbers, source, *_u32(_LATENCY_TILES), turn, out, clocks)
        if trapped := bench.launch(grid, 256, arguments, smem=SMEM_LIMIT - 1024, cluster=cluster):
            return _result({trapped: 1})
    cycles = bench.fetch(out, (grid, runs), np.uint32)[::cluster].reshape(-1).astype(np.int64)
    nanoseconds, cycles_taken = (sum(map(int, column)) for column in bench.fetch(clocks, (grid, 2), np.uint64).T)
    found = np.sort(cycles[cycles > 0])
    outcomes = {"returned": len(found)} | ({"deadline": missing} if (missing := len(cycles) - len(found)) else {})
    if not len(found):
        return _result(outcomes)
    return _result(
        outcomes,
        least=[found[0]],
        first_permille=[found[len(found) // 1000]],
        median=[found[len(found) // 2]],
        sm_khz=[cycles_taken * 1_000_000 // max(1, nanoseconds)],
    )


BENCHES: dict[str, Callable[[Bench, Case], Result]] = {
    "sequence": _sequence,
    "lanes": _lanes,
    "copy": _copy,
    "pieces": _pieces,
    "laps": _laps,
    "remote": _remote,
    "finished": _finished,
    "timer_step": _timer_step,
    "reading_cost": _reading_cost,
    "quarters": _quarters,
    "timer_agreement": _timer_agreement,
    "pingpong": _pingpong,
    "latency": _latency,
}
