"""Runs a kernel on the CPU, for one that no GPU at hand can run, or before a GPU does: its own source, with every
function that contains assembly replaced by what its instruction does (``instructions.h``, on ``machine.h``, beside
this file).

It knows values, barriers and the order of an agent's operations. It does not know memory order, nor whether the chip
does what its documentation says.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hwkernels.device.sources import source_file

HERE = Path(__file__).parent
SLOW = 400  #: a ``delay`` with which deadlines of some microseconds pass while copies are under way
#: A twin of every kernel whose CTA, when a wait gave up, does not let land what is under way.
LEAVES_AT_ONCE = ("- begun < LANDING_NS)", "- begun < TWIN(LANDING_NS, 0u))")
_FUNCTION = re.compile(r"(?:template <[^>]*>\n)?static __device__ [^;{}()]*\([^;{}]*\) \{")
_MOST_RECORDS = 1 << 16
_WORDS = 6  #: of a record
_MAIN = """
#include "instructions.h"
#include "{name}.cu"
unsigned char memory[1];
extern "C" int run(const Tensor *tensors, int count, const int64_t *n, const float *f, const void *device,
                   unsigned grid, unsigned together, unsigned seed, unsigned twin, unsigned delay,
                   unsigned deadline_ns, machine::Record *records,
                   unsigned long long *marks, char *fault) {{
    machine::Machine machine;
    machine.twin = twin;
    machine.delay = delay;
    machine.state = 0x9e3779b97f4a7c15 * (seed + 1);
    machine.threads = 32 * WARPS;
    machine.grid = grid;
    std::vector<TensorMap> maps(count);
    for (int i = 0; i < count; ++i) maps[i].opaque[0] = (unsigned long long)&tensors[i];
    std::vector<CtaReport> reports(grid);
    for (unsigned cta = 0; cta < grid; ++cta) memcpy(reports[cta].marks, marks + 2 * cta, sizeof reports[cta].marks);
    machine.kernel = [&] {{ {name}({call}, deadline_ns, reports.data(), &machine.stop); }};
    std::string what = machine::run(machine, together);
    for (const machine::Block &block : machine.blocks)
        if (const CtaReport &report = reports[block.index]; what.empty() && report.status != STATUS_FINISHED)
            what = "gave up: CTA " + std::to_string(block.index) + ", status " + std::to_string(report.status) +
                   ", warp " + std::to_string(report.agent) + ", site " + std::to_string(report.site);
    strncpy(fault, what.c_str(), 199);
    for (unsigned cta = 0; cta < grid; ++cta) memcpy(marks + 2 * cta, reports[cta].marks, sizeof reports[cta].marks);
    const size_t kept = machine.records.size() < {most} ? machine.records.size() : {most};
    memcpy(records, machine.records.data(), kept * sizeof *records);
    return kept;
}}
"""


class Tensor(ctypes.Structure):
    """What ``instructions.h`` knows of a tensor map; strides in bytes, everything from the innermost dimension on."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("element", ctypes.c_int64), ("swizzle", ctypes.c_int64),
        ("im2col", ctypes.c_int64), ("shape", ctypes.c_int64 * 5), ("strides", ctypes.c_int64 * 5),
        ("box", ctypes.c_int64 * 5), ("lower", ctypes.c_int64 * 2), ("upper", ctypes.c_int64 * 2),
        ("step", ctypes.c_int64),
    )  # fmt: skip


def tensor(
    array: npt.NDArray[Any], box: Sequence[int], swizzle: int, corners: Sequence[Sequence[int]] = (), step: int = 1
) -> Tensor:
    """The map of an array, whose last dimension is the innermost; ``corners``: lower and upper (x, y), of im2col."""
    lower, upper = corners or ((0, 0), (0, 0))
    return Tensor(
        array.ctypes.data, array.ndim, array.itemsize, swizzle, int(bool(corners)),
        array.shape[::-1] + (1,) * (5 - array.ndim), array.strides[::-1] + (0,) * (5 - array.ndim),
        tuple(box) + (1,) * (5 - len(box)), tuple(lower), tuple(upper), step,
    )  # fmt: skip


class Record(NamedTuple):
    """An event of a warp's first lane. ``value``: of an EXPECT or COPY what the kernel's BYTES mean."""

    site: int
    stage: int
    parity: int
    value: int


@dataclass(frozen=True)
class Run:
    """How a run ended, and what each warp of each CTA recorded, in order, and what the reports' marks hold.

    ``fault``: "" if it ended well, ``gave up: ...`` if a wait met its deadline and every CTA ended in order.
    """

    fault: str
    records: Mapping[tuple[int, int], list[Record]]
    marks: npt.NDArray[np.uint64]


class Emulated:
    """A kernel's source, built for the CPU in ``folder``.

    ``call``: its arguments in C++, of ``maps``, ``n``, ``f`` and ``device``. ``twins``: wrong twins, numbered from 1:
    text that is there once in the sources, and what stands in its place, in which ``TWIN(right, wrong)`` is either.
    """

    def __init__(
        self,
        name: str,
        defines: Mapping[str, int | str],
        call: str,
        folder: Path,
        twins: Sequence[tuple[str, str]] = (),
    ) -> None:
        sources = _sources(f"{name}.cu")
        for number, (before, after) in enumerate(twins, start=1):
            assert sum(text.count(before) for text in sources.values()) == 1, before
            numbered = after.replace("TWIN(", f"TWIN({number}, ")
            sources = {file: text.replace(before, numbered) for file, text in sources.items()}
        for file, text in sources.items():
            text = text.replace("__device__ constexpr", "__device__")  # a twin's text is no constant
            (folder / file).write_text(without_instructions(text), encoding="utf-8")
        for path in HERE.glob("*.*h"):
            if path.name in sources:  # it stands for a header, and may use what is left of that
                (folder / path.name).rename(folder / f"chip_{path.name}")
            (folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        (folder / "main.cc").write_text(_MAIN.format(name=name, call=call, most=_MOST_RECORDS), encoding="utf-8")
        options = [
            "-std=c++20",
            "-O1",
            "-U_FORTIFY_SOURCE",  # whose longjmp does not go from one stack to another
            "-shared",
            "-fPIC",
            "-w",
            "-Wno-psabi",
            *(f"-D{key}={value}" for key, value in defines.items()),
        ]
        subprocess.run(["g++", *options, "main.cc", "-o", "kernel.so"], cwd=folder, check=True)
        self._run = ctypes.CDLL(str(folder / "kernel.so")).run

    def run(
        self, tensors: Sequence[Tensor], grid: int, seed: int, n: Sequence[int], f: Sequence[float] = (),
        device: npt.NDArray[Any] | None = None, together: int = 2, twin: int = 0, delay: int = 0,
        deadline_ns: int = 1_000_000, marks: Sequence[int] = (0, 0),
    ) -> Run:  # fmt: skip
        """Run a grid, ``together`` CTAs of it at a time; launch control hands out the others' tiles. Twin 0: right.

        A round of the machine, in which each warp may do one thing, takes 10 ns; a copy takes ``delay`` rounds or more.
        ``marks``: what each CTA finds in its report.
        """
        left = np.tile(np.array(marks, dtype=np.uint64), (grid, 1))
        records = np.zeros((_MOST_RECORDS, _WORDS), dtype=np.uint32)
        fault = ctypes.create_string_buffer(200)
        kept = self._run(
            (Tensor * len(tensors))(*tensors), len(tensors), (ctypes.c_int64 * len(n))(*n),
            (ctypes.c_float * max(len(f), 1))(*f), ctypes.c_void_p(device.ctypes.data if device is not None else None),
            grid, together, seed, twin, delay, deadline_ns, records.ctypes.data_as(ctypes.c_void_p),
            left.ctypes.data_as(ctypes.c_void_p), fault,
        )  # fmt: skip
        assert kept < _MOST_RECORDS
        by_warp: dict[tuple[int, int], list[Record]] = {}
        for cta, warp, *said in records[:kept].tolist():
            by_warp.setdefault((cta, warp), []).append(Record(*said))
        return Run(fault.value.decode(), by_warp, left)


def _sources(file: str) -> dict[str, str]:
    """A source and what it includes, by name."""
    found, named = {}, [file]
    while named:
        if (name := named.pop()) not in found:
            found[name] = (source_file(name)).read_text(encoding="utf-8")
            named += re.findall(r'^#\s*(?:include|define PIPESIM_TABLE) "([\w.]+)"', found[name], re.MULTILINE)
    return found


def without_instructions(source: str) -> str:
    """A source without its functions that contain assembly."""
    kept, at = [], 0
    for match in _FUNCTION.finditer(source):
        if match.start() < at:
            continue
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(source[end], 0)
            end += 1
        if re.search(r"\basm\b", source[match.end() : end]):
            kept.append(source[at : match.start()])
            at = end
    return "".join((*kept, source[at:]))
