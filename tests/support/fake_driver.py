"""A driver for tests of the observer: functions, memory and graphs are what a test says they are."""

import ctypes
from ctypes import c_void_p
from dataclasses import dataclass, field
from typing import Any

from pipesim.launches.observe import calls
from pipesim.launches.observe.driver import CudaDriver, Shape
from pipesim.launches.observe.observer import LaunchObserver


@dataclass
class FakeDriver(CudaDriver):
    """``memory`` gives the bytes at each address of device memory; ``layouts`` the sizes of a function's parameters."""

    layouts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    owners: dict[int, tuple[int, ...]] = field(default_factory=dict)
    memory: dict[int, bytes] = field(default_factory=dict)
    clusters: dict[int, Shape] = field(default_factory=dict)
    graphs: dict[int, list[tuple[Any, Shape | None]]] = field(default_factory=dict)
    capturing: bool = False
    busy: bool = False

    def parameter_sizes(self, function: int) -> tuple[tuple[int, int], ...] | None:
        """Offsets as the driver reports them, which are not PTX's: here each parameter begins at a multiple of 8."""
        sizes = self.layouts.get(function)
        if sizes is None:
            return None
        found, at = [], 0
        for size in sizes:
            found.append((at, size))
            at += (size + 7) & ~7
        return tuple(found)

    def function_of(self, kernel: int) -> int:
        """None: the handles are of functions."""
        return 0

    def owner(self, function: int) -> tuple[int, ...]:
        """The modules that a test has given."""
        return self.owners.get(function, ())

    def name(self, function: int) -> str:
        """A name that says which function it is."""
        return f"function_{function}"

    def registers(self, function: int) -> int:
        """The same for all."""
        return 64

    def required_cluster(self, function: int) -> Shape | None:
        """The cluster that a test has given."""
        return self.clusters.get(function)

    def memory_from(self, address: int) -> int | None:
        """Bytes to the end of the memory in which an address is."""
        for base, data in self.memory.items():
            if base <= address < base + len(data):
                return base + len(data) - address
        return None

    def allocation(self, address: int) -> tuple[int, int] | None:
        """The memory in which an address is."""
        found = [(base, len(data)) for base, data in self.memory.items() if base <= address < base + len(data)]
        return found[0] if found else None

    def is_capturing(self, stream: int) -> bool:
        """Whether the test says so."""
        return self.capturing

    def copy(self, address: int, nbytes: int, *, after: int) -> bytes | None:
        """The bytes that are there, unless the stream is busy."""
        if self.busy:
            return None
        base = max(each for each in self.memory if each <= address)
        return self.memory[base][address - base : address - base + nbytes]

    def kernel_nodes(self, graph: int) -> list[tuple[Any, Shape | None]] | None:
        """The nodes that a test has given."""
        return self.graphs.get(graph)

    def device(self) -> tuple[str, str]:
        """An H200."""
        return "NVIDIA H200", "sm_90"


class Calls:
    """Calls of the driver as CUPTI reports them. What they point to lives as long as this object."""

    def __init__(self, observer: LaunchObserver) -> None:
        self._observer = observer
        self._kept: list[Any] = []

    def keep(self, data: Any) -> int:
        """The address of bytes or of a structure."""
        held = ctypes.create_string_buffer(data, len(data)) if isinstance(data, bytes) else data
        self._kept.append(held)
        return ctypes.addressof(held)

    def call(self, number: int, arguments: Any, symbol: str | None = None, status: int = 0) -> None:
        """A call: before it and after it."""
        result = ctypes.c_int(status)
        name = symbol.encode() if symbol else None
        for site in (0, 1):
            data = calls.CallbackData(site, b"", self.keep(arguments), self.keep(result), name, None)
            self._observer.on_call(number, ctypes.addressof(data))

    def array(self, parameters: tuple[bytes, ...]) -> int:
        """The array of pointers that a launch is given."""
        return self.keep((c_void_p * max(1, len(parameters)))(*(self.keep(each) for each in parameters)))

    def launch(self, function: int, *parameters: bytes, grid: int = 1, symbol: str | None = None) -> None:
        """``cuLaunchKernel`` of CTAs of 128 threads."""
        given = calls.LaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, None, self.array(parameters), None)
        self.call(307, given, symbol)

    def launch_ex(self, function: int, *parameters: bytes, programmatic: bool = False) -> None:
        """``cuLaunchKernelEx`` with a cluster among its attributes, after the programmatic one or another."""
        attributes = (calls.Attribute * 2)()
        attributes[0].id, attributes[0].value[0] = calls.PROGRAMMATIC if programmatic else 1, 7
        attributes[1].id, attributes[1].value[0] = calls.CLUSTER, 1
        config = calls.LaunchConfig(8, 1, 1, 128, 1, 1, 0, None, self.keep(attributes), 2)
        self.call(652, calls.LaunchKernelEx(self.keep(config), function, self.array(parameters), None))

    def load(self, handle: int, image: bytes, status: int = 0) -> None:
        """``cuModuleLoadData`` of an image, which gives a module."""
        module = c_void_p(handle)
        held = image + bytes(8192)  # the text is read by pages
        self.call(19, calls.FirstTwo(self.keep(module), self.keep(held)), status=status)
