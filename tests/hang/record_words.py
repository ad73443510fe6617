"""Records grids that talk by words on a Hopper GPU: ``python -m tests.hang.record_words FOLDER [TIMES]``.

The right twins of ``kernels`` as they are, and the wrong ones with waits that a word in the buffer ends after a second.
Needs nvcc and the driver's library, and of Python NumPy alone: ``FOLDER/NAME.records`` with the PTX and the launch file
beside it are read by ``pipesim decode``. What each launch shows is compared with its program here already.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwkernels.rewriter import RewrittenPtx, assemble, instrument
from pipesim.launches.record.buffer_file import LaunchEnd, RecordedBuffer
from pipesim.launches.record.gather import compare_with_program, trace_of
from pipesim.launches.record.preparation import rewrite_options
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Parameter, Pointer, Shape
from pipesim.ptx.text.read import read_module

KERNELS = Path(__file__).with_name("kernels")
HEADERS = Path(__file__).parents[2] / "hwkernels" / "ptx_headers"
WORDS = 64
ZEROS = Pointer(contents=(Field(0, Array("u32", (0,) * WORDS)),))
#: Of each kernel its grid, threads, and parameters: "x", "y", a word of "words", or a number.
LAUNCHES: dict[str, tuple[Shape, int, tuple[str | int | tuple[str, int], ...]]] = {
    "split_k": ((2, 3, 1), 64, ("y", ("turn", 8), 128)),
    "grid_laps": ((4, 1, 1), 64, ("y", ("arrived", 4), 18)),
    "last_block": ((8, 1, 1), 64, ("x", "y", ("count", 0), ("sum_of", 16))),
    "grid_barrier": ((4, 1, 1), 64, ("y", ("arrived", 2), 7)),
}
#: Launches that hang, each with another grid or parameters of a wrong twin.
HANGS: dict[str, tuple[Shape, int, tuple[str | int | tuple[str, int], ...]]] = {
    "split_k": ((2, 3, 1), 64, ("y", ("turn", 8), 60)),
    "grid_laps": ((4, 1, 1), 64, ("y", ("arrived", 4), 18)),
    "grid_barrier": ((8, 1, 1), 64, ("y", ("arrived", 2), 7)),
}
_LIMIT_S, _STOP_S = 8.0, 1.0


def ptx_of(name: str, *, right: bool) -> str:
    """The PTX that nvcc makes of a kernel."""
    return compiled(KERNELS / f"{name}.cu", *["-DRIGHT_TWIN"] * right)


def compiled(source: Path, *options: str) -> str:
    """The PTX that nvcc makes of a file."""
    words = ["nvcc", "-O3", "-std=c++17", "-lineinfo", "-arch=sm_90a", f"-I{HEADERS}", "-ptx", "-o", "-", source.name]
    return subprocess.run([*words, *options], cwd=source.parent, check=True, capture_output=True, text=True).stdout


def launch_of(ptx: str, name: str, *, right: bool) -> Launch:
    """The launch, with what is known of the words."""
    grid, threads, given = (LAUNCHES if right else HANGS)[name]
    parameters = []
    for each in given:
        if isinstance(each, int):
            parameters.append(Parameter("", Number("s32", each)))
        elif isinstance(each, tuple):
            parameters.append(Parameter(each[0], ZEROS))
        else:
            parameters.append(Parameter(each, Pointer()))
    return Launch(read_module(ptx, name).entries[0].name, grid, (threads, 1, 1), parameters=tuple(parameters))


class Gpu:
    """The driver, with one context."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name: str, *given: Any) -> int:
        """A function of the driver; RuntimeError if it fails."""
        status: int = getattr(self._cuda, name)(*given)
        if status and name != "cuStreamQuery":
            raise RuntimeError(f"{name}: {status}")
        return status

    def memory(self, nbytes: int, data: bytes = b"") -> tuple[int, ctypes.c_void_p]:
        """Memory of the host that the GPU sees at this address, with zeros or these bytes."""
        host, there = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(nbytes), 2)
        self.call("cuMemHostGetDevicePointer_v2", ctypes.byref(there), host, 0)
        ctypes.memset(host, 0, nbytes)
        ctypes.memmove(host, data, len(data))
        return there.value, host

    def on_device(self, nbytes: int, data: bytes = b"") -> int:
        """Memory of the GPU, with zeros or these bytes."""
        there = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(there), ctypes.c_size_t(nbytes))
        self.call("cuMemsetD8_v2", there, 0, ctypes.c_size_t(nbytes))
        if data:
            self.call("cuMemcpyHtoD_v2", there, data, ctypes.c_size_t(len(data)))
        return there.value

    def record(self, made: RewrittenPtx, cubin: bytes, launch: Launch, given: tuple[Any, ...]) -> RecordedBuffer:
        """One launch of an instrumented kernel; the process ends if it does not."""
        return self.finish(self.launch(self.load(made, cubin), launch, given, self.places()))

    def places(self) -> dict[str, int]:
        """Memory of a launch, with zeros."""
        return {"x": self.on_device(4 << 20), "y": self.on_device(1 << 20), "words": self.on_device(4 * WORDS)}

    def load(self, made: RewrittenPtx, cubin: bytes) -> LoadedKernel:
        """The kernel with a buffer of its own."""
        module, function, symbol, size = (ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t())
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, made.entry.encode())
        self.call("cuModuleGetGlobal_v2", ctypes.byref(symbol), ctypes.byref(size), module, made.symbol.encode())
        host = ctypes.c_void_p()
        if made.options.stop_flag:
            buffer, host = self.memory(made.nbytes, made.initial())
        else:
            buffer = self.on_device(made.nbytes, made.initial())
        self.call("cuMemcpyHtoD_v2", symbol, buffer.to_bytes(8, "little"), ctypes.c_size_t(8))
        return LoadedKernel(made, function, buffer, host)

    def launch(
        self,
        kernel: LoadedKernel,
        launch: Launch,
        given: tuple[Any, ...],
        places: dict[str, int],
        *,
        early: bool = False,
    ) -> LoadedKernel:
        """``early``: it may begin while the kernel before it runs."""
        values: list[Any] = []
        for each in given:
            place = places["words"] + 4 * each[1] if isinstance(each, tuple) else places.get(each)
            values.append(ctypes.c_int(each) if place is None else ctypes.c_uint64(place))
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values))
        attribute = struct.pack("<II64s", 6, 0, struct.pack("<I", 1))  # programmatic stream serialisation
        held = ctypes.create_string_buffer(attribute, len(attribute))
        config = struct.pack("<7IIQQII", *launch.grid, *launch.block, 0, 0, self.stream.value or 0,
                             ctypes.addressof(held), int(early), 0)  # fmt: skip
        kernel.began = time.monotonic()
        self.call("cuLaunchKernelEx", config, kernel.function, pointers, None)
        return kernel

    def finish(self, kernel: LoadedKernel) -> RecordedBuffer:
        """What a launch has left; the process ends if the stream does not."""
        made, host, stopped = kernel.made, kernel.host, False
        stops = made.options.stop_flag
        while self.call("cuStreamQuery", self.stream):
            took = time.monotonic() - kernel.began
            if stops and not stopped and took > _STOP_S:
                ctypes.memset(host, 1, 1)
                stopped = True
            if took > _LIMIT_S:
                print(f"{made.entry} does not end", flush=True)
                os._exit(3)
        data = ctypes.create_string_buffer(made.nbytes)
        if stops:
            ctypes.memmove(data, host, made.nbytes)
        else:
            self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(kernel.buffer), ctypes.c_size_t(made.nbytes))
        end = LaunchEnd.STOPPED if stopped else LaunchEnd.FINISHED
        took = round((time.monotonic() - kernel.began) * 1e9)
        return RecordedBuffer(end, self.name, 132, (9, 0), 13000, took, data.raw, stops)


@dataclass
class LoadedKernel:
    """An instrumented kernel with its buffer; ``began``: its launch."""

    made: RewrittenPtx
    function: ctypes.c_void_p
    buffer: int
    host: ctypes.c_void_p
    began: float = 0.0


def main() -> int:
    """1 if a launch shows something else than its program."""
    folder, times = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    folder.mkdir(parents=True, exist_ok=True)
    gpu, wrong = Gpu(), 0
    for right, launches in ((True, LAUNCHES), (False, HANGS)):
        for name, (_, _, given) in launches.items():
            ptx = ptx_of(name, right=right)
            launch = launch_of(ptx, name, right=right)
            made = instrument(ptx, name, launch, rewrite_options(stop_flag=not right, waits_only=False))
            cubin = assemble(made.ptx, launch.entry).cubin
            seen: Counter[str] = Counter()
            stem = name if right else f"{name}_hangs"
            (folder / f"{stem}.ptx").write_text(ptx)
            (folder / f"{stem}.json").write_text(launch_json(launch))
            for number in range(times if right else 1):
                found = gpu.record(made, cubin, launch, given)
                (folder / f"{stem}.{number}.records").write_bytes(found.encode())
                try:
                    trace = trace_of(ptx, launch, found)
                    compared = compare_with_program(ptx, launch, trace, stem)
                    said = f"{compared.agreement.name} {trace.meta.extra.get('turns')}"
                    wrong += not compared.agreement.agrees
                    if not compared.agreement.agrees and not seen[said]:
                        print(*compared.page, sep="\n")
                except Exception as error:  # noqa: BLE001  # the other launches are wanted, too
                    said, wrong = repr(error), wrong + 1
                seen[said] += 1
            print(stem, f"words {bool(made.words)}", dict(seen), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
