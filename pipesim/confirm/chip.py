"""``python -m pipesim.confirm.chip FOLDER``: the process that launches, which a kernel that traps takes away.

It adds a line of JSON to ``results.jsonl`` of the folder for each launch as it ends. Each begins with the same memory
and its own module; its buffers are compared byte by byte with those of the first launch that ended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hwkernels.device.launch import Gpu, driver_values, require_gpu
from hwkernels.device.tensor_maps import encode
from pipesim.bounds import MAX_CUBIN_BYTES
from pipesim.confirm.rewrite import STOP, WAITS
from pipesim.confirm.table import TABLE
from pipesim.errors import HardwareError, KernelTrapError, PipesimError
from pipesim.inputs import InputKind
from pipesim.process.parent import end_with_parent
from pipesim.ptx.launch.values import TensorMap
from pipesim.trace.arrays import np, npt

REQUEST, RESULTS = "request.json", "results.jsonl"
_POLL_S = 0.0005
_BUSY_BYTES, _BUSY_COPIES = 1 << 27, 16
_LOOK_S, _SOON_S = 0.25, 0.6  #: between looks whether a wait has given up, after which the kernel should end
REQUESTS = InputKind("request of launches", MAX_CUBIN_BYTES, HardwareError, "confirm again")
_SIGN_AND_LOW, _HALF = 0x807F, 0x3F00  #: of 16 bits: as bf16, and as the high half of f32, a number of 0.5 to 1


@dataclass
class LaunchProcess:
    """The launches of one request. ``pristine``: what each buffer holds before a launch, on the device."""

    folder: Path
    request: dict[str, Any]
    gpu: Gpu
    driver: Any
    addresses: list[int] = field(default_factory=list)
    pristine: list[int] = field(default_factory=list)
    reference: list[npt.NDArray[np.uint8]] | None = None
    busy: tuple[int, int] | None = None
    far: list[int] = field(default_factory=list)

    def call(self, name: str, *arguments: Any) -> Any:
        """What a function of the driver returns: a value, or several. HardwareError if it fails."""
        found = driver_values(getattr(self.driver, name)(*arguments), name)
        return found[0] if len(found) == 1 else found

    def variable(self, module: Any, name: str) -> tuple[int, int]:
        """The address and the size of a variable of a module."""
        address, nbytes = self.call("cuModuleGetGlobal", module, name.encode())
        return int(address), int(nbytes)

    def make_buffers(self) -> None:
        """Allocate and fill them."""
        random = np.random.default_rng(self.request["seed"])
        buffers = self.request["memory"]["buffers"]
        self.addresses = [self.gpu.allocate(each["nbytes"]) for each in buffers]
        self.pristine = [self.gpu.allocate(each["nbytes"]) for each in buffers]
        for each, address in zip(buffers, self.pristine, strict=True):
            words = random.integers(0, 1 << 16, each["nbytes"] // 2 if each["filled"] else 0, dtype=np.uint16)
            numbers = ((words & _SIGN_AND_LOW) | _HALF).view(np.uint8)
            numbers = np.fromfile(each["file"], dtype=np.uint8, count=each["nbytes"]) if each["file"] else numbers
            self.gpu.upload(address, self.data(each, numbers))

    def data(self, memory: dict[str, Any], numbers: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Some memory, with what is known of it, addresses and tensor maps."""
        data = numbers if len(numbers) else np.zeros(memory["nbytes"], dtype=np.uint8)
        for offset, text in memory["known"]:
            data[offset : offset + len(text) // 2] = np.frombuffer(bytes.fromhex(text), dtype=np.uint8)
        for offset, number, *after in memory["pointers"]:
            address = self.addresses[number] + sum(after)
            data[offset : offset + 8] = np.array([address], dtype=np.uint64).view(np.uint8)
        for offset, asked, number, *after in memory["maps"]:
            data[offset : offset + 128] = encode(TensorMap(**asked), self.addresses[number] + sum(after))
        return data

    def launch(self, kernel: str, *, busy: bool) -> dict[str, object]:
        """One launch of a kernel of the request: what it left. ``busy``: its buffers are memory of the host, to and
        from which large copies are made meanwhile, so that what it copies from there lands late.
        """
        near = self.addresses
        self.addresses = self.far_memory() if busy else near
        try:
            return self._launched(kernel, busy=busy)
        finally:
            self.addresses = near

    def _launched(self, kernel: str, *, busy: bool) -> dict[str, object]:
        for each, there, here in zip(self.request["memory"]["buffers"], self.pristine, self.addresses, strict=True):
            self.call("cuMemcpyDtoD", here, there, each["nbytes"])
        self.driver.cuCtxSynchronize()
        module, function = self.load(kernel)
        if (table := self.folder / f"{kernel}.table").exists():
            self.gpu.upload(self.variable(module, TABLE)[0], np.frombuffer(REQUESTS.read_bytes(table), dtype=np.uint32))
        stream, beside = self.call("cuStreamCreate", 1), self.call("cuStreamCreate", 1)
        begin = start(self, function, stream)
        other = self.call("cuStreamCreate", 1) if busy else None
        for _ in range(_BUSY_COPIES if busy else 0):
            here, there = self.busy_memory()
            self.call("cuMemcpyAsync", here, there, _BUSY_BYTES, beside)
            self.call("cuMemcpyAsync", there + _BUSY_BYTES, here + _BUSY_BYTES, _BUSY_BYTES, other)
        begin()
        if not self.ends(stream, lambda: bool(self._words(module, STOP, beside)[0])):
            return {"outcome": "stuck", "waits": self._waits(self._words(module, WAITS, beside))}
        found = self._left(module)
        self.driver.cuModuleUnload(module)
        return found

    def busy_memory(self) -> tuple[int, int]:
        """Large buffers on the device and of the host, made when they are first asked for."""
        self.busy = self.busy or (self.gpu.allocate(2 * _BUSY_BYTES), self.gpu.host_mapped(2 * _BUSY_BYTES)[0])
        return self.busy

    def far_memory(self) -> list[int]:
        """The buffers once more, in memory of the host, made when they are first asked for."""
        self.far = self.far or [self.gpu.host_mapped(each["nbytes"])[0] for each in self.request["memory"]["buffers"]]
        return self.far

    def load(self, kernel: str) -> tuple[Any, Any]:
        """A module of the folder and its kernel."""
        request, attributes = self.request, self.driver.CUfunction_attribute
        module = self.call("cuModuleLoadData", REQUESTS.read_bytes(self.folder / kernel))
        function = self.call("cuModuleGetFunction", module, request["entry"].encode())
        for attribute, value in (
            (attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, request["dynamic_shared"]),
            (attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),  # of more than 8 CTAs
        ):
            self.driver.cuFuncSetAttribute(function, attribute, value)
        return module, function

    def ends(self, stream: Any, gives_up: Callable[[], bool] = lambda: False) -> bool:
        """Whether what is in a stream ends within the limit, and soon once it gives up. KernelTrapError if it traps."""
        now = time.monotonic()
        until, look = now + self.request["limit_s"], now + _LOOK_S
        while (result := self.driver.cuStreamQuery(stream))[0] == self.driver.CUresult.CUDA_ERROR_NOT_READY:
            if (now := time.monotonic()) >= until:
                return False
            if now >= look:
                until, look = min(until, now + _SOON_S) if gives_up() else until, now + _LOOK_S
            time.sleep(_POLL_S)
        driver_values(result, "the launch")
        return True

    def _left(self, module: Any) -> dict[str, object]:
        """What a launch left that ended."""
        if self._words(module, STOP)[0]:
            return {"outcome": "hang", "waits": self._waits(self._words(module, WAITS))}
        left = [np.zeros(each["nbytes"], dtype=np.uint8) for each in self.request["memory"]["buffers"]]
        for address, data in zip(self.addresses, left, strict=True):
            self.gpu.download(address, data)
        self.reference = self.reference or left
        differ = [np.flatnonzero(a != b) for a, b in zip(left, self.reference, strict=True)]
        first = next(((n, int(each[0])) for n, each in enumerate(differ) if len(each)), (-1, -1))
        return {"outcome": "differs" if first[0] >= 0 else "same", "differ": sum(map(len, differ)), "first": first}

    def _words(self, module: Any, name: str, stream: Any = 0) -> npt.NDArray[np.uint32]:
        """A variable of a module, also while a kernel of another stream runs; 0 if that takes too long."""
        address, nbytes = self.variable(module, name)
        words = np.zeros(nbytes // 4, dtype=np.uint32)
        self.call("cuMemcpyDtoHAsync", words.ctypes.data, address, nbytes, stream)
        self.ends(stream)
        return words

    def _waits(self, sites: npt.NDArray[np.uint32]) -> list[tuple[int, int, int]]:
        """CTA, warp and site of each thread that waits."""
        threads = int(np.prod(self.request["block"]))
        return sorted({(int(at) // threads, int(at) % threads // 32, int(sites[at])) for at in np.flatnonzero(sites)})


def start(process: LaunchProcess, function: Any, stream: Any) -> Callable[[], None]:
    """What launches the kernel of a request in a stream."""
    driver, request = process.driver, process.request
    values = [process.data(each, np.zeros(each["nbytes"], np.uint8)) for each in request["memory"]["parameters"]]
    pointers = np.array([value.ctypes.data for value in values] or [0], dtype=np.uint64)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = request["grid"]
    config.blockDimX, config.blockDimY, config.blockDimZ = request["block"]
    config.sharedMemBytes = request["dynamic_shared"]
    config.hStream = stream
    if np.prod(request["cluster"]) > 1:
        attribute, value = driver.CUlaunchAttribute(), driver.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = request["cluster"]
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value = value
        config.attrs, config.numAttrs = [attribute], 1

    def launch() -> None:
        assert len(pointers) >= len(values)  # which live as long as this function
        process.call("cuLaunchKernelEx", config, function, int(pointers.ctypes.data), 0)

    return launch


def carry_out(folder: Path, work: Callable[[LaunchProcess, Callable[..., None]], None]) -> int:
    """Carry out the request of a folder; ``work``: the launches, and what says a line."""
    end_with_parent()

    def say(**members: object) -> None:
        with (folder / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(members) + "\n")

    try:
        info = require_gpu()
        from cuda.bindings import driver

        request = REQUESTS.parse_json(REQUESTS.read_text(folder / REQUEST))
        process = LaunchProcess(folder, request, Gpu(info), driver)
        say(name=info.name, driver=info.driver)
        process.make_buffers()
        work(process, say)
    except PipesimError as error:
        say(error={name: getattr(error, name) for name in ("fact", "place", "cause", "correction")})
        return 1
    return 0


def _launch_all(process: LaunchProcess, say: Callable[..., None]) -> None:
    for kernel, busy in ((name, busy) for name, times, busy in process.request["kernels"] for _ in range(times)):
        try:
            found = process.launch(kernel, busy=busy)
        except KernelTrapError as error:
            found = {"outcome": "trap", "error": error.fact.rpartition(" ")[2]}
        say(kernel=kernel, **found)
        if found["outcome"] in ("trap", "stuck"):
            os._exit(1)  # nothing of the context may be touched


if __name__ == "__main__":
    sys.exit(carry_out(Path(sys.argv[1]), _launch_all))
