"""The one place that talks to the CUDA driver: which GPU there is, its memory, and launches whose results are checked.

Every failing call is a HardwareError that says which call and why. A kernel that traps loses the CUDA context of the
whole process, so that nothing can be launched after it: a case that may trap belongs in a process of its own.
"""

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel
from hwkernels.device.presence import module_version
from pipesim.errors import HardwareError, KernelHangError, KernelTrapError, MissingExtraError
from pipesim.process.watch import current

HOPPER = 9  #: compute capability 9.x: the kernels are built for sm_90a, which runs on nothing else
_LOST = {"CUDA_ERROR_ASSERT", "CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_ILLEGAL_ADDRESS",
         "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_INVALID_ADDRESS_SPACE", "CUDA_ERROR_INVALID_PC",
         "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_MISALIGNED_ADDRESS"}  # fmt: skip


_POLL_S = 0.0005  # between two looks at a launch that may hang
_WARM_UP_S = 0.1


@dataclass(frozen=True)
class DeviceInfo:
    """A usable GPU: its number, name, SMs, compute capability, driver, and the largest shared memory of a CTA."""

    ordinal: int
    name: str
    sms: int
    capability: str
    driver: str
    smem_per_cta: int
    smem_per_sm: int


@dataclass(frozen=True)
class Shape:
    """The size of a launch: CTAs and threads in up to three dimensions, dynamic shared memory, CTAs of a cluster."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    smem_bytes: int
    cluster: int = 1


def require_gpu(ordinal: int = 0, others: tuple[str, ...] = ()) -> DeviceInfo:
    """The GPU of this number. Raises HardwareError if there is no driver, no such GPU, or none that runs sm_90a.

    ``others``: further generations that are taken.
    """
    driver = _driver()
    current().allow_reserving()  # the driver reserves more addresses than there is memory
    try:
        driver_values(driver.cuInit(0), "cuInit")
    except RuntimeError as error:  # the bindings found no libcuda
        raise HardwareError(
            "no usable GPU was found", cause=f"no NVIDIA driver: {str(error).splitlines()[0]}"
        ) from error
    (count,) = driver_values(driver.cuDeviceGetCount(), "cuDeviceGetCount")
    if not 0 <= ordinal < count:
        raise HardwareError(f"there is no GPU number {ordinal}", cause=f"the driver sees {count}")
    (device,) = driver_values(driver.cuDeviceGet(ordinal), "cuDeviceGet")
    (name,) = driver_values(driver.cuDeviceGetName(256, device), "cuDeviceGetName")
    text = name.split(b"\0")[0].decode(errors="replace")
    major = _attribute(driver, device, "COMPUTE_CAPABILITY_MAJOR")
    minor = _attribute(driver, device, "COMPUTE_CAPABILITY_MINOR")
    if major != HOPPER and str(major) not in others:
        raise HardwareError(
            f"{text} has compute capability {major}.{minor}",
            cause=f"the kernels are built for sm_90a, which runs on {HOPPER}.0 only (H100, H200)",
        )
    return DeviceInfo(
        ordinal,
        text,
        _attribute(driver, device, "MULTIPROCESSOR_COUNT"),
        f"{major}.{minor}",
        _driver_version(driver),
        _attribute(driver, device, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        _attribute(driver, device, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
    )


def driver_values(result: Sequence[Any], call: str) -> tuple[Any, ...]:
    """The values of a driver call's result. Raises HardwareError if the call failed."""
    status, *values = result
    if int(status) == 0:
        return tuple(values)
    name = str(getattr(status, "name", status))
    if name in _LOST:
        raise KernelTrapError(
            f"the kernel trapped: {call} returned {name}",
            cause="an illegal mbarrier operation or memory access; the CUDA context of this process is lost",
            correction="start a new process; this one cannot launch again",
        )
    raise HardwareError(f"{call} failed: {name}")


class Gpu:
    """A GPU ready for launches: its context, one stream, and memory that :meth:`close` frees. All work is in order.

    Arrays of :meth:`host_mapped` must not be touched after it.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self._driver = _driver()
        self._core = _core()
        self._allocated: list[Any] = []
        self._mapped: list[Any] = []
        self._loaded: list[Any] = []  # code stays loaded as long as this object lives
        with self._translate_errors("creating the context"):
            device = self._core.Device(info.ordinal)
            device.set_current()
            self._stream = device.create_stream()
        (self._device,) = driver_values(self._driver.cuDeviceGet(info.ordinal), "cuDeviceGet")

    def load(self, compiled: CompiledKernel, smem_bytes: int) -> Any:
        """The kernel, allowed ``smem_bytes`` of dynamic shared memory."""
        with self._translate_errors(f"loading {compiled.entry}"):
            code = self._core.ObjectCode.from_cubin(compiled.cubin, name=compiled.entry)
            kernel = code.get_kernel(compiled.entry)
        self._loaded.append(code)
        # `kernel.handle` is a CUkernel, and `kernel.attributes` is read-only: the limit is raised through the driver.
        attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        result = self._driver.cuKernelSetAttribute(attribute, smem_bytes, kernel.handle, self._device)
        driver_values(result, "cuKernelSetAttribute")
        return kernel

    def allocate(self, nbytes: int) -> int:
        """The address of so much device memory (at least 256 bytes, so that nothing has address 0)."""
        (pointer,) = driver_values(self._driver.cuMemAlloc(max(nbytes, 256)), "cuMemAlloc")
        self._allocated.append(pointer)
        return int(pointer)

    def host_mapped(self, nbytes: int) -> tuple[int, npt.NDArray[np.uint8]]:
        """The address of so much host memory that kernels can write, and the same bytes as an array.

        What a kernel stored there is readable while it runs, and stays after a trap has taken the context.
        """
        size = max(nbytes, 256)
        flags = self._driver.CU_MEMHOSTALLOC_DEVICEMAP | self._driver.CU_MEMHOSTALLOC_PORTABLE
        (pointer,) = driver_values(self._driver.cuMemHostAlloc(size, flags), "cuMemHostAlloc")
        (device,) = driver_values(self._driver.cuMemHostGetDevicePointer(pointer, 0), "cuMemHostGetDevicePointer")
        self._mapped.append(pointer)
        view = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(pointer)))
        return int(device), view[:nbytes]

    def upload(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy a contiguous array to the device; done when this returns."""
        if array.nbytes:
            copy = self._driver.cuMemcpyHtoDAsync(address, array.ctypes.data, array.nbytes, self._stream.handle)
            driver_values(copy, "cuMemcpyHtoDAsync")
        self.synchronize()

    def download(self, address: int, array: npt.NDArray[Any]) -> None:
        """Fill a contiguous array from the device."""
        if array.nbytes:
            copy = self._driver.cuMemcpyDtoHAsync(array.ctypes.data, address, array.nbytes, self._stream.handle)
            driver_values(copy, "cuMemcpyDtoHAsync")
        self.synchronize()

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set device memory to one byte."""
        if nbytes:
            driver_values(self._driver.cuMemsetD8Async(address, byte, nbytes, self._stream.handle), "cuMemsetD8Async")

    def launch(
        self,
        kernel: Any,
        shape: tuple[int, int, int],
        arguments: Sequence[int | np.generic | npt.NDArray[np.uint8]],
    ) -> None:
        """Run a kernel to its end. ``shape``: CTAs, threads a CTA, bytes of dynamic shared memory.

        Arguments are addresses as ints, numbers as NumPy scalars, such as ``np.uint32``, and descriptors of tensors as
        arrays. Raises HardwareError if it traps.
        """
        grid, threads, smem_bytes = shape
        self._start(kernel, Shape((grid,), (threads,), smem_bytes), arguments)
        self.synchronize()

    def launch_within(
        self,
        kernel: Any,
        shape: Shape,
        arguments: Sequence[int | np.generic | npt.NDArray[np.uint8]],
        limit_s: float,
    ) -> int:
        """Run a kernel to its end, and give the nanoseconds between two CUDA events around it.

        An array among the arguments is given by value, as a descriptor of a tensor.

        KernelHangError if it has not ended after ``limit_s``: nothing but memory of :meth:`host_mapped` may be touched
        then, and the process must end. KernelTrapError if it traps.
        """
        driver, stream = self._driver, self._stream.handle
        events = [driver_values(driver.cuEventCreate(0), "cuEventCreate")[0] for _ in range(2)]
        driver_values(driver.cuEventRecord(events[0], stream), "cuEventRecord")
        self._start(kernel, shape, arguments)
        driver_values(driver.cuEventRecord(events[1], stream), "cuEventRecord")
        until = time.monotonic() + limit_s
        while (result := driver.cuStreamQuery(stream))[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
            if time.monotonic() >= until:
                raise KernelHangError(f"the kernel did not end within {limit_s:g} s")
            time.sleep(_POLL_S)
        driver_values(result, "cuStreamQuery")
        (milliseconds,) = driver_values(driver.cuEventElapsedTime(*events), "cuEventElapsedTime")
        for event in events:
            driver.cuEventDestroy(event)
        return round(1_000_000 * float(milliseconds))

    def parameter_sizes(self, kernel: Any) -> tuple[int, ...]:
        """The bytes of each parameter that the kernel takes."""
        with self._translate_errors("asking for the kernel's parameters"):
            return tuple(int(parameter.size) for parameter in kernel.arguments_info)

    def _start(self, kernel: Any, shape: Shape, arguments: Sequence[int | np.generic | npt.NDArray[np.uint8]]) -> None:
        """Put a launch into the stream."""
        if any(isinstance(argument, np.ndarray) for argument in arguments):
            self._start_packed(kernel, shape, arguments)
            return
        first, *rest = shape.grid
        options: dict[str, Any] = {"block": shape.block, "shmem_size": shape.smem_bytes}
        if shape.cluster > 1:  # then cuda.core counts clusters
            options |= {"grid": (first // shape.cluster, *rest), "cluster": shape.cluster}
        else:
            options["grid"] = shape.grid
        with self._translate_errors("the launch"):
            self._core.launch(self._stream, self._core.LaunchConfig(**options), kernel, *arguments)

    def _start_packed(
        self, kernel: Any, shape: Shape, arguments: Sequence[int | np.generic | npt.NDArray[np.uint8]]
    ) -> None:
        """The same through the driver, which takes arguments of any size: cuda.core takes no structures."""
        driver = self._driver
        values = [np.asarray(np.uint64(a) if isinstance(a, int) else a) for a in arguments]
        pointers = np.array([value.ctypes.data for value in values], dtype=np.uint64)
        config = launch_config(driver, shape, self._stream.handle)
        function = driver.CUfunction(int(kernel.handle))  # the driver also takes a CUkernel here
        driver_values(driver.cuLaunchKernelEx(config, function, int(pointers.ctypes.data), 0), "cuLaunchKernelEx")

    def synchronize(self) -> None:
        """Wait until all that was asked for is done. Raises HardwareError if any of it failed."""
        driver_values(self._driver.cuStreamSynchronize(self._stream.handle), "cuStreamSynchronize")

    def close(self) -> None:
        """Free all memory. After a lost context there is nothing left to free, so results are not looked at."""
        for pointer in self._allocated:
            self._driver.cuMemFree(pointer)
        self._allocated.clear()
        for pointer in self._mapped:
            self._driver.cuMemFreeHost(pointer)
        self._mapped.clear()

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        """Turn an error of cuda.core into a HardwareError."""
        try:
            yield
        except HardwareError:
            raise
        except Exception as error:
            if type(error).__module__.startswith("cuda."):
                raise HardwareError(f"{what} failed", cause=str(error)) from error
            raise


def launch_config(driver: Any, shape: Shape, stream: Any) -> Any:
    """The driver's structure for a launch of this shape."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = (*shape.grid, 1, 1)[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ = (*shape.block, 1, 1)[:3]
    config.sharedMemBytes = shape.smem_bytes
    config.hStream = stream
    if shape.cluster > 1:
        attribute, value = driver.CUlaunchAttribute(), driver.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = shape.cluster, 1, 1
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value = value
        config.attrs, config.numAttrs = [attribute], 1
    return config


def warm_up(launch: Callable[[], object]) -> None:
    """Launch, once at least, until code and data are in the caches and the clocks have risen."""
    until = time.monotonic() + _WARM_UP_S
    while True:
        launch()
        if time.monotonic() >= until:
            return


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise _missing_extra(error) from error
    return driver


def _core() -> Any:
    try:
        import cuda.core as core
    except ImportError as error:
        raise _missing_extra(error) from error
    return core


def _missing_extra(error: ImportError) -> MissingExtraError:
    return MissingExtraError(
        "the CUDA packages are not installed", cause=str(error), correction="pip install 'pipesim[gpu]'"
    )


def _attribute(driver: Any, device: Any, name: str) -> int:
    attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    (value,) = driver_values(driver.cuDeviceGetAttribute(attribute, device), f"cuDeviceGetAttribute({name})")
    return int(value)


def _driver_version(driver: Any) -> str:
    """The kernel driver's version where Linux tells it, and the CUDA version that it supports."""
    (number,) = driver_values(driver.cuDriverGetVersion(), "cuDriverGetVersion")
    cuda = f"CUDA {number // 1000}.{number % 1000 // 10}"
    module = module_version()
    return f"{module} ({cuda})" if module else cuda
