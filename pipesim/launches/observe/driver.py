"""The calls of the CUDA driver that observing needs. All of them only ask; none changes anything of the program.

A handle is the integer value of a CUfunction, CUkernel, CUmodule, CUlibrary or CUgraph. What the driver does not
answer is None: an older driver may lack a function.
"""

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from pipesim.launches.observe.calls import CLUSTER, KernelNode

Shape = tuple[int, int, int]

_REGISTERS, _CLUSTER_WIDTH = 4, 11  #: CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
_MEMORY_TYPE, _RANGE_START, _RANGE_SIZE, _MAPPED = 2, 11, 12, 13  #: CU_POINTER_ATTRIBUTE_*
_GRANULE = 1 << 21  #: bytes; a range of addresses that is mapped in parts has none that is smaller
_ON_DEVICE = 2  #: CU_MEMORYTYPE_DEVICE
_MAJOR, _MINOR = 75, 76  #: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_KERNEL_NODE, _CHILD_GRAPH = 0, 4  #: CU_GRAPH_NODE_TYPE_*
NON_BLOCKING = 1  #: CU_STREAM_NON_BLOCKING
RELAXED = 2  #: CU_STREAM_CAPTURE_MODE_RELAXED
NOT_READY = 600  #: CUDA_ERROR_NOT_READY
_PATIENCE_S = 2.0  #: seconds that a launch is held up for an array which decides about it
_MOST_PARAMETERS = 4096


class CudaDriver:
    """The driver that this process has loaded."""

    def __init__(self) -> None:
        """OSError where there is no libcuda."""
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._streams: dict[int, c_void_p] = {}  #: by context
        self._unfinished: list[Any] = []

    def _call(self, name: str, *arguments: Any) -> int:
        """The status of a call: 0 is success, -1 where the driver has no such function."""
        function = getattr(self._cuda, name, None)
        return -1 if function is None else int(function(*arguments))

    def parameter_sizes(self, function: int) -> tuple[tuple[int, int], ...] | None:
        """Offset and bytes of each parameter, in order.

        Of a CUkernel that is launched as a CUfunction the first call may say anything.
        """
        is_answered = False
        for call in ("cuFuncGetParamInfo", "cuKernelGetParamInfo"):
            offset, size, found = c_size_t(), c_size_t(), []
            for index in range(_MOST_PARAMETERS):
                status = self._call(call, c_void_p(function), c_size_t(index), byref(offset), byref(size))
                if status:
                    break
                found.append((offset.value, size.value))
            if found:
                return tuple(found)
            is_answered |= status == 1  # CUDA_ERROR_INVALID_VALUE: there is no such parameter
        return () if is_answered else None

    def owner(self, function: int) -> tuple[int, ...]:
        """The module or library, or both, from which a function is."""
        made = c_void_p()
        calls = ("cuFuncGetModule", "cuKernelGetLibrary")
        found = (made.value for call in calls if self._call(call, byref(made), c_void_p(function)) == 0)
        return tuple(each for each in found if each)

    def function_of(self, kernel: int) -> int:
        """The function of a CUkernel in the current context, which a captured graph has; 0 of any other handle."""
        found = c_void_p()
        with self._relaxed_capture():
            status = self._call("cuKernelGetLibrary", byref(found), c_void_p(kernel))
            status = status or self._call("cuKernelGetFunction", byref(found), c_void_p(kernel))
        return 0 if status else found.value or 0

    def name(self, function: int) -> str:
        """A function's name in machine code, "" if the driver does not say it."""
        text = c_char_p()
        for call in ("cuFuncGetName", "cuKernelGetName"):
            if self._call(call, byref(text), c_void_p(function)) == 0 and text.value:
                return text.value.decode(errors="replace")
        return ""

    def _attribute(self, function: int, attribute: int) -> int:
        value, device = c_int(), c_int()
        if self._call("cuFuncGetAttribute", byref(value), c_int(attribute), c_void_p(function)) == 0:
            return value.value
        self._call("cuCtxGetDevice", byref(device))
        status = self._call("cuKernelGetAttribute", byref(value), c_int(attribute), c_void_p(function), device)
        return value.value if status == 0 else 0

    def registers(self, function: int) -> int:
        """Registers of a thread, 0 if not known."""
        return self._attribute(function, _REGISTERS)

    def required_cluster(self, function: int) -> Shape | None:
        """The cluster that the kernel itself requires."""
        x, y, z = (self._attribute(function, _CLUSTER_WIDTH + n) for n in range(3))
        return (x, max(y, 1), max(z, 1)) if x > 0 else None

    def memory_from(self, address: int) -> int | None:
        """Bytes of device memory from an address on to the end of its allocation; None for any other address."""
        kind, start, size = c_uint32(), c_uint64(), c_size_t()
        where = c_uint64(address)
        if self._call("cuPointerGetAttribute", byref(kind), c_int(_MEMORY_TYPE), where) or kind.value != _ON_DEVICE:
            return None
        if self._call("cuPointerGetAttribute", byref(start), c_int(_RANGE_START), where):
            return 0
        if self._call("cuPointerGetAttribute", byref(size), c_int(_RANGE_SIZE), where):
            return 0
        return max(0, start.value + size.value - address)

    def allocation(self, address: int) -> tuple[int, int] | None:
        """The first address and the bytes of an allocation of device memory that is mapped as a whole, else None."""
        start, mapped, rest = c_uint64(), c_int(), self.memory_from(address)
        if not rest or self._call("cuPointerGetAttribute", byref(start), c_int(_RANGE_START), c_uint64(address)):
            return None
        last = c_uint64(address + rest - 1)
        if self._call("cuPointerGetAttribute", byref(mapped), c_int(_MAPPED), last) or not mapped.value:
            return None
        return start.value, address + rest - start.value

    def is_capturing(self, stream: int) -> bool | None:
        """Whether the work that is given to a stream becomes part of a graph instead of running; None if not said."""
        status = c_int()
        return None if self._call("cuStreamIsCapturing", c_void_p(stream), byref(status)) else status.value != 0

    def copy(self, address: int, nbytes: int, *, after: int) -> bytes | None:
        """``nbytes`` of device memory once the stream ``after`` has done its work; None if that takes too long.

        Fewer where the memory after them may not be mapped.

        The copy has a stream of its own, so that it waits for nothing else.

        While another thread captures a graph, a call that might be part of it would end its capture; not one in the
        relaxed mode (CUDA driver API, cuThreadExchangeStreamCaptureMode).
        """
        with self._relaxed_capture():
            return self._copy(address, nbytes) if self._settled(c_void_p(after), _PATIENCE_S) else None

    @contextmanager
    def _relaxed_capture(self) -> Iterator[None]:
        """What is called within may happen while another thread captures a graph."""
        mode = c_int(RELAXED)
        exchanged = self._call("cuThreadExchangeStreamCaptureMode", byref(mode)) == 0
        try:
            yield
        finally:
            if exchanged:
                self._call("cuThreadExchangeStreamCaptureMode", byref(mode))

    def _copy(self, address: int, nbytes: int) -> bytes | None:
        mapped = c_int()
        status = self._call("cuPointerGetAttribute", byref(mapped), c_int(_MAPPED), c_uint64(address + nbytes - 1))
        if status or not mapped.value:
            nbytes = min(nbytes, _GRANULE - address % _GRANULE)
        return self._to_host(address, nbytes, _PATIENCE_S)

    def _to_host(self, address: int, nbytes: int, patience_s: float) -> bytes | None:
        """Device memory, copied on a stream of its own, so that it waits for no kernel; None if that takes too long."""
        stream, data = c_void_p(self._own_stream()), ctypes.create_string_buffer(nbytes)
        copy = self._call("cuMemcpyDtoHAsync_v2", data, c_uint64(address), c_size_t(nbytes), stream)
        if copy or not self._settled(stream, patience_s):
            self._unfinished.append(data)  # a copy may still write there
            return None
        return data.raw

    def context(self) -> int:
        """The current context, 0 if there is none."""
        context = c_void_p()
        self._call("cuCtxGetCurrent", byref(context))
        return context.value or 0

    def _own_stream(self) -> int:
        """A stream of the current context that waits for no other one."""
        context = self.context()
        if context not in self._streams:
            self._streams[context] = c_void_p()
            self._call("cuStreamCreate", byref(self._streams[context]), c_uint32(NON_BLOCKING))
        return self._streams[context].value or 0

    def _settled(self, stream: c_void_p, patience_s: float) -> bool:
        """Whether a stream has finished its work, or does so soon."""
        end = time.monotonic() + patience_s
        while (status := self._call("cuStreamQuery", stream)) == NOT_READY and time.monotonic() < end:
            time.sleep(0.0005)
        return status == 0

    def kernel_nodes(self, graph: int) -> list[tuple[KernelNode, Shape | None]] | None:
        """The kernel nodes of a graph and of the graphs in it, each with its cluster where it has one."""
        count = c_size_t()
        if self._call("cuGraphGetNodes", c_void_p(graph), None, byref(count)):
            return None
        nodes = (c_void_p * count.value)()
        if count.value and self._call("cuGraphGetNodes", c_void_p(graph), nodes, byref(count)):
            return None
        found = []
        for node in nodes:
            kind, child, given = c_int(-1), c_void_p(), KernelNode()
            self._call("cuGraphNodeGetType", c_void_p(node), byref(kind))
            if kind.value == _CHILD_GRAPH:
                self._call("cuGraphChildGraphNodeGetGraph", c_void_p(node), byref(child))
                found += (self.kernel_nodes(child.value) if child.value else None) or []
            elif kind.value == _KERNEL_NODE:
                if self._call("cuGraphKernelNodeGetParams_v2", c_void_p(node), byref(given)):
                    return None
                found.append((given, self._cluster_of(node)))
        return found

    def _cluster_of(self, node: Any) -> Shape | None:
        value = (c_uint32 * 16)()
        if self._call("cuGraphKernelNodeGetAttribute", c_void_p(node), c_int(CLUSTER), value) or not value[0]:
            return None
        return value[0], max(value[1], 1), max(value[2], 1)

    def device(self) -> tuple[str, str]:
        """The current device's name and architecture ("sm_90"); "" where there is none.

        A library may be loaded before a device is current: then the architecture that all devices have, and no name.
        """
        number, count, name = c_int(), c_int(), ctypes.create_string_buffer(256)
        if self._call("cuCtxGetDevice", byref(number)) == 0:
            self._call("cuDeviceGetName", name, c_int(256), number)
            return name.value.decode(errors="replace"), self._architecture(number.value)
        self._call("cuDeviceGetCount", byref(count))
        archs = {self._architecture(each) for each in range(count.value)}
        return "", archs.pop() if len(archs) == 1 else ""

    def _architecture(self, number: int) -> str:
        major, minor = self._capability(number)
        return f"sm_{major}{minor}" if major else ""

    def _capability(self, number: int) -> tuple[int, int]:
        return self._device_attribute(_MAJOR, number), self._device_attribute(_MINOR, number)

    def _device_attribute(self, which: int, number: int) -> int:
        """A number of a device, 0 where the driver does not say it."""
        value = c_int()
        status = self._call("cuDeviceGetAttribute", byref(value), c_int(which), c_int(number))
        return 0 if status else value.value


def pointers_at(address: int, count: int) -> list[int]:
    """``count`` pointers from an address of this process on."""
    return [value or 0 for value in (c_void_p * count).from_address(address)] if address and count else []


def word_at(address: int) -> int:
    """The pointer or handle at an address of this process, 0 where the address is null."""
    return int(ctypes.cast(address, POINTER(c_void_p))[0] or 0) if address else 0
