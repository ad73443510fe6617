"""The driver's calls with which a launch is recorded: the instrumented kernel, its buffer, copies beside it.

In host memory the records outlive a context that a trap has ended, and the word that stops a kernel is a plain store.
In device memory a record costs the kernel less: stores to the host share the bus.
"""

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

from pipesim.launches.observe.driver import CudaDriver

_PORTABLE_MAPPED = 3  #: CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
_SMS = 16  #: CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_POINTER_BYTES = 8
#: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, PREFERRED_SHARED_MEMORY_CARVEOUT,
#: NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CLUSTER_SCHEDULING_POLICY_PREFERENCE
_SET_BEFORE_LAUNCH = (8, 9, 14, 15)
_COPY_S = 10.0  #: that a copy of a buffer may take


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


class CudaMemory(CudaDriver):
    """The driver that this process has loaded, as recording a launch needs it. A status of 0 is success."""

    def __init__(self) -> None:
        """OSError where there is no libcuda."""
        super().__init__()
        self._libraries: dict[int, c_void_p] = {}  #: by the kernels that were loaded

    def _relaxed_call(self, name: str, *arguments: Any) -> int:
        """The status of a call, made so that the capture of a graph in another thread is not ended."""
        with self._relaxed_capture():
            return self._call(name, *arguments)

    def load(self, cubin: bytes, kernel: str, like: int) -> int:
        """A kernel of an image, with the attributes of the function ``like``; its handle, 0 if it cannot be loaded.

        A CUkernel can be launched as a CUfunction, and is of every context.
        """
        library, handle = c_void_p(), c_void_p()
        held = ctypes.create_string_buffer(cubin)
        none = (None, None, c_uint(0)) * 2
        if self._relaxed_call("cuLibraryLoadData", byref(library), held, *none):
            return 0
        if self._relaxed_call("cuLibraryGetKernel", byref(handle), library, c_char_p(kernel.encode())):
            return 0
        self._libraries[handle.value or 0] = library
        self._like(handle, like)
        return handle.value or 0

    def _like(self, handle: c_void_p, like: int) -> None:
        """What a framework sets on a function before its launches, and what is not the driver's default."""
        device, value = c_int(), c_int()
        self._relaxed_call("cuCtxGetDevice", byref(device))
        for attribute in _SET_BEFORE_LAUNCH:
            which = c_int(attribute)
            if self._relaxed_call("cuFuncGetAttribute", byref(value), which, c_void_p(like)) and self._relaxed_call(
                "cuKernelGetAttribute", byref(value), which, c_void_p(like), device
            ):
                continue
            if value.value not in (0, -1):
                self._relaxed_call("cuKernelSetAttribute", which, value, handle, device)

    def symbol(self, function: int, name: str) -> int:
        """The address of a variable of the library of a kernel that was loaded here, 0 if it has none."""
        address, nbytes = c_uint64(), c_size_t()
        library = self._libraries.get(function)
        found = library is not None and not self._relaxed_call(
            "cuLibraryGetGlobal", byref(address), byref(nbytes), library, c_char_p(name.encode())
        )
        return address.value if found and nbytes.value == _POINTER_BYTES else 0

    def allocate(self, nbytes: int, *, host: bool) -> Buffer | None:
        """Memory that the device can write; None if there is none."""
        address, place = c_uint64(), c_void_p()
        if not host:
            status = self._relaxed_call("cuMemAlloc_v2", byref(address), c_size_t(nbytes))
            return Buffer(address.value, 0, nbytes) if status == 0 else None
        if self._relaxed_call("cuMemHostAlloc", byref(place), c_size_t(nbytes), c_uint(_PORTABLE_MAPPED)):
            return None
        if self._relaxed_call("cuMemHostGetDevicePointer_v2", byref(address), place, c_uint(0)):
            self._relaxed_call("cuMemFreeHost", place)
            return None
        return Buffer(address.value, place.value or 0, nbytes)

    def free(self, buffer: Buffer) -> None:
        """Give memory back. Waits for the device where the memory is the device's."""
        if buffer.host:
            self._relaxed_call("cuMemFreeHost", c_void_p(buffer.host))
        else:
            self._relaxed_call("cuMemFree_v2", c_uint64(buffer.address))

    def fill(self, buffer: Buffer, data: bytes, stream: int) -> int:
        """Put bytes into a buffer before what the stream does next; the status.

        The memory is new: no kernel uses it yet.
        """
        if buffer.host:
            ctypes.memmove(buffer.host, data, len(data))
            return 0
        return self._copy_to_device(buffer.address, data, stream)

    def set_symbol(self, symbol: int, address: int, stream: int) -> int:
        """Store an address in a variable of a module before what the stream does next; the status."""
        return self._copy_to_device(symbol, address.to_bytes(8, "little"), stream)

    def _copy_to_device(self, address: int, data: bytes, stream: int) -> int:
        """A copy from memory that is pageable: the driver has taken the bytes when the call returns."""
        return self._relaxed_call(
            "cuMemcpyHtoDAsync_v2", c_uint64(address), c_char_p(data), c_size_t(len(data)), c_void_p(stream)
        )

    def status(self, stream: int) -> int:
        """0 if the stream has done its work, NOT_READY if it has not, else the error that has ended it."""
        return self._relaxed_call("cuStreamQuery", c_void_p(stream))

    def stop(self, buffer: Buffer) -> None:
        """Set the word of a buffer at which its kernel stops, while the kernel runs."""
        if buffer.host:
            ctypes.c_uint32.from_address(buffer.host).value = 1
        else:
            with self._relaxed_capture():
                self._copy_to_device(buffer.address, (1).to_bytes(4, "little"), self._own_stream())

    def contents(self, buffer: Buffer) -> bytes | None:
        """What is in a buffer now, also while a kernel writes there; None if it cannot be read.

        The copy has a stream of its own, so that it waits for no kernel.
        """
        if buffer.host:
            return ctypes.string_at(buffer.host, buffer.nbytes)
        with self._relaxed_capture():
            return self._to_host(buffer.address, buffer.nbytes, _COPY_S)

    def facts(self) -> DeviceFacts:
        """The current device."""
        device, version = c_int(), c_int()
        self._relaxed_call("cuCtxGetDevice", byref(device))
        self._relaxed_call("cuDriverGetVersion", byref(version))
        sms = self._device_attribute(_SMS, device.value)
        return DeviceFacts(self.device()[0], sms, self._capability(device.value), version.value)
