"""The driver's calls with which a launch is recorded: the instrumented kernel, its buffer, copies beside it, a dry run.

In host memory the records outlive a context that a trap has ended, and the word that stops a kernel is a plain store.
In device memory a record costs the kernel less: stores to the host share the bus.
"""

from __future__ import annotations

import ctypes
import time
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Protocol

from pipesim.launches.observe.driver import CudaDriver

NOT_READY = 600  #: CUDA_ERROR_NOT_READY
_PORTABLE_MAPPED = 3  #: CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
_NON_BLOCKING = 1  #: CU_STREAM_NON_BLOCKING
_RELAXED = 2  #: CU_STREAM_CAPTURE_MODE_RELAXED
_SMS, _MAJOR, _MINOR = 16, 75, 76  #: CUdevice_attribute
_POINTER_BYTES = 8
#: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, PREFERRED_SHARED_MEMORY_CARVEOUT,
#: NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CLUSTER_SCHEDULING_POLICY_PREFERENCE
_SET_BEFORE_LAUNCH = (8, 9, 14, 15)
_PATIENCE_S = 10.0  #: of a copy on a stream of its own


@dataclass(frozen=True)
class Buffer:
    """Memory of one launch; ``host`` is its address on the host, 0 if it has none there."""

    address: int
    host: int
    nbytes: int


@dataclass(frozen=True)
class DeviceFacts:
    """The current device; ``driver`` is the CUDA version of the driver, as 13000 for 13.0."""

    name: str
    sms: int
    capability: tuple[int, int]
    driver: int


class RecordingDriver(Protocol):
    """What recording a launch asks of the driver. A status is the driver's: 0 is success."""

    def is_capturing(self, stream: int) -> bool:
        """Whether work that is given to a stream becomes part of a graph."""

    def begin_dry_run(self) -> int:
        """A stream of its own, in which a launch is only noted; 0 if there is none."""

    def end_dry_run(self, stream: int) -> None:
        """Forget what was launched there."""

    def load(self, cubin: bytes, kernel: str, like: int) -> int:
        """A kernel of an image, with the attributes of the function ``like``; its handle, 0 if it cannot be loaded."""

    def symbol(self, function: int, name: str) -> int:
        """The address of a variable of the library of a kernel that was loaded here, 0 if it has none."""

    def allocate(self, nbytes: int, *, host: bool) -> Buffer | None:
        """Memory that the device can write; None if there is none."""

    def free(self, buffer: Buffer) -> None:
        """Give memory back. Waits for the device where the memory is the device's."""

    def fill(self, buffer: Buffer, data: bytes, stream: int) -> int:
        """Put bytes into a buffer before what the stream does next; the status."""

    def set_symbol(self, symbol: int, address: int, stream: int) -> int:
        """Store an address in a variable of a module before what the stream does next; the status."""

    def status(self, stream: int) -> int:
        """0 if the stream has done its work, NOT_READY if it has not, else the error that has ended it."""

    def stop(self, buffer: Buffer) -> None:
        """Set the word of a buffer at which its kernel stops, while the kernel runs."""

    def contents(self, buffer: Buffer) -> bytes | None:
        """What is in a buffer now, also while a kernel writes there; None if it cannot be read."""

    def facts(self) -> DeviceFacts:
        """The current device."""


class CudaMemory:
    """See :class:`RecordingDriver`: the driver that this process has loaded."""

    def __init__(self) -> None:
        """OSError where there is no libcuda."""
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._asked = CudaDriver()
        self._stream: dict[int | None, c_void_p] = {}  #: by context
        self._libraries: dict[int, c_void_p] = {}  #: by the kernels that were loaded
        self._kept: list[Any] = []  #: memory that a copy may still use

    def _call(self, name: str, *arguments: Any) -> int:
        """The status of a call, made so that the capture of a graph in another thread is not ended."""
        mode = c_int(_RELAXED)
        exchanged = self._cuda.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
        try:
            return int(getattr(self._cuda, name)(*arguments))
        finally:
            if exchanged:
                self._cuda.cuThreadExchangeStreamCaptureMode(byref(mode))

    def is_capturing(self, stream: int) -> bool:
        """See :class:`RecordingDriver`."""
        return self._asked.is_capturing(stream)

    def begin_dry_run(self) -> int:
        """See :class:`RecordingDriver`. What the thread does meanwhile in other streams is allowed (relaxed)."""
        stream = c_void_p()
        if self._call("cuStreamCreate", byref(stream), c_uint(_NON_BLOCKING)):
            return 0
        if self._cuda.cuStreamBeginCapture_v2(stream, c_int(_RELAXED)):
            self._call("cuStreamDestroy_v2", stream)
            return 0
        return stream.value or 0

    def end_dry_run(self, stream: int) -> None:
        """See :class:`RecordingDriver`."""
        graph = c_void_p()
        if self._cuda.cuStreamEndCapture(c_void_p(stream), byref(graph)) == 0 and graph.value:
            self._call("cuGraphDestroy", graph)
        self._call("cuStreamDestroy_v2", c_void_p(stream))

    def load(self, cubin: bytes, kernel: str, like: int) -> int:
        """See :class:`RecordingDriver`. A CUkernel can be launched as a CUfunction, and is of every context."""
        library, handle = c_void_p(), c_void_p()
        held = ctypes.create_string_buffer(cubin)
        none = (None, None, c_uint(0)) * 2
        if self._call("cuLibraryLoadData", byref(library), held, *none):
            return 0
        if self._call("cuLibraryGetKernel", byref(handle), library, c_char_p(kernel.encode())):
            return 0
        self._libraries[handle.value or 0] = library
        self._like(handle, like)
        return handle.value or 0

    def _like(self, handle: c_void_p, like: int) -> None:
        """What a framework sets on a function before its launches, and what is not the driver's default."""
        device, value = c_int(), c_int()
        self._call("cuCtxGetDevice", byref(device))
        for attribute in _SET_BEFORE_LAUNCH:
            which = c_int(attribute)
            if self._call("cuFuncGetAttribute", byref(value), which, c_void_p(like)) and self._call(
                "cuKernelGetAttribute", byref(value), which, c_void_p(like), device
            ):
                continue
            if value.value not in (0, -1):
                self._call("cuKernelSetAttribute", which, value, handle, device)

    def symbol(self, function: int, name: str) -> int:
        """See :class:`RecordingDriver`."""
        address, nbytes = c_uint64(), c_size_t()
        library = self._libraries.get(function)
        found = library is not None and not self._call(
            "cuLibraryGetGlobal", byref(address), byref(nbytes), library, c_char_p(name.encode())
        )
        return address.value if found and nbytes.value == _POINTER_BYTES else 0

    def allocate(self, nbytes: int, *, host: bool) -> Buffer | None:
        """See :class:`RecordingDriver`."""
        address, place = c_uint64(), c_void_p()
        if not host:
            return (
                None
                if self._call("cuMemAlloc_v2", byref(address), c_size_t(nbytes))
                else Buffer(address.value, 0, nbytes)
            )
        if self._call("cuMemHostAlloc", byref(place), c_size_t(nbytes), c_uint(_PORTABLE_MAPPED)):
            return None
        if self._call("cuMemHostGetDevicePointer_v2", byref(address), place, c_uint(0)):
            self._call("cuMemFreeHost", place)
            return None
        return Buffer(address.value, place.value or 0, nbytes)

    def free(self, buffer: Buffer) -> None:
        """See :class:`RecordingDriver`."""
        if buffer.host:
            self._call("cuMemFreeHost", c_void_p(buffer.host))
        else:
            self._call("cuMemFree_v2", c_uint64(buffer.address))

    def fill(self, buffer: Buffer, data: bytes, stream: int) -> int:
        """See :class:`RecordingDriver`. The memory is new: no kernel uses it yet."""
        if buffer.host:
            ctypes.memmove(buffer.host, data, len(data))
            return 0
        return self._put(buffer.address, data, stream)

    def set_symbol(self, symbol: int, address: int, stream: int) -> int:
        """See :class:`RecordingDriver`."""
        return self._put(symbol, address.to_bytes(8, "little"), stream)

    def _put(self, address: int, data: bytes, stream: int) -> int:
        """A copy from memory that is pageable: the driver has taken the bytes when the call returns."""
        return self._call(
            "cuMemcpyHtoDAsync_v2", c_uint64(address), c_char_p(data), c_size_t(len(data)), c_void_p(stream)
        )

    def status(self, stream: int) -> int:
        """See :class:`RecordingDriver`."""
        return self._call("cuStreamQuery", c_void_p(stream))

    def stop(self, buffer: Buffer) -> None:
        """See :class:`RecordingDriver`."""
        if buffer.host:
            ctypes.c_uint32.from_address(buffer.host).value = 1
        else:
            self._put(buffer.address, (1).to_bytes(4, "little"), self._own_stream())

    def contents(self, buffer: Buffer) -> bytes | None:
        """See :class:`RecordingDriver`. The copy has a stream of its own, so that it waits for no kernel."""
        if buffer.host:
            return ctypes.string_at(buffer.host, buffer.nbytes)
        stream, data = self._own_stream(), ctypes.create_string_buffer(buffer.nbytes)
        copied = self._call(
            "cuMemcpyDtoHAsync_v2", data, c_uint64(buffer.address), c_size_t(buffer.nbytes), c_void_p(stream)
        )
        end = time.monotonic() + _PATIENCE_S
        while not copied and (status := self.status(stream)) == NOT_READY and time.monotonic() < end:
            time.sleep(0.0005)
        if copied or status:
            self._kept.append(data)
            return None
        return data.raw

    def _own_stream(self) -> int:
        """A stream of the current context that waits for no other one."""
        context = c_void_p()
        self._call("cuCtxGetCurrent", byref(context))
        if context.value not in self._stream:
            made = c_void_p()
            self._call("cuStreamCreate", byref(made), c_uint(_NON_BLOCKING))
            self._stream[context.value] = made
        return self._stream[context.value].value or 0

    def facts(self) -> DeviceFacts:
        """See :class:`RecordingDriver`."""
        device, version = c_int(), c_int()
        self._call("cuCtxGetDevice", byref(device))
        self._call("cuDriverGetVersion", byref(version))
        sms, major, minor = (self._attribute(which, device) for which in (_SMS, _MAJOR, _MINOR))
        return DeviceFacts(self._asked.device()[0], sms, (major, minor), version.value)

    def _attribute(self, which: int, device: c_int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), c_int(which), device)
        return value.value
