"""Triton and Gluon without a GPU: ``triton(kernel, *args, grid=...)`` compiles a launch and describes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

from pipesim.errors import MissingExtraError, UsageError
from pipesim.launches.files.launch_file import CompiledLaunch
from pipesim.ptx.launch.values import Array, Content, Field, Launch, Number, Parameter, Pointer, TensorMap

_ARCHITECTURES = {"sm_90a": 90, "sm_100a": 100}
_SCALARS = {"i1": "u8", "u1": "u8", "fp16": "f16", "fp32": "f32", "fp64": "f64", "bf16": "bf16"}
INTEGERS = {"torch.int32": "s32", "torch.int64": "s64", "torch.int8": "s8", "torch.uint8": "u8", "torch.int16": "s16"}
_MOST = 1 << 16  #: elements of an integer tensor that a launch file holds
_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32")
_ON_DEVICE = {8: 10, 9: 8, 10: 9}  #: the device's number of an element type and the driver's, where they differ
_SWIZZLES = ("none", "32B", "64B", "128B")


def triton(
    kernel: Any, *args: Any, grid: Sequence[int] | Callable[..., Sequence[int]], arch: str = "sm_90a", **options: Any
) -> CompiledLaunch:
    """Compile ``kernel[grid](*args, **options)`` for ``arch`` and describe its launch. Needs Triton, and no GPU.

    ``kernel`` is a function of ``triton.jit`` or Gluon, also autotuned: the first configuration is taken. A tensor's
    contents are never read, so it can be on PyTorch's device ``meta``; integers of one on the CPU, up to 65,536, are
    written to the launch file, because a kernel's control flow may depend on them. UsageError for an unknown
    architecture or a launch that did not happen; MissingExtraError without Triton; Triton's own errors as they are.
    """
    if arch not in _ARCHITECTURES:
        raise UsageError(f"the architecture {arch!r} is not known", correction=f"use {' or '.join(_ARCHITECTURES)}")
    try:
        import triton as _triton  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Triton is not installed", cause=str(error), correction="pip install triton") from error
    with offline(_ARCHITECTURES[arch]) as driver, _first_configuration(kernel):
        kernel[grid](*args, **options)
    if len(driver.launches) != 1:
        raise UsageError(
            f"the call launched {len(driver.launches)} kernels",
            cause="a hook or a wrapper may launch others" if driver.launches else "it was not a kernel",
            correction="give a function with @triton.jit or @gluon.jit",
        )
    return _describe_launch(driver.launches[0], kernel, arch)


@contextmanager
def _first_configuration(kernel: Any) -> Iterator[None]:
    """Within it, an autotuned kernel has one configuration, which then needs no measurement."""
    tuners = [kernel]
    while hasattr(tuners[-1], "fn"):
        tuners.append(tuners[-1].fn)
    changed = [(each, each.configs) for each in tuners if len(getattr(each, "configs", ())) > 1]
    for tuner, configs in changed:
        tuner.configs = configs[:1]
    try:
        yield
    finally:
        for tuner, configs in changed:
            tuner.configs = configs


def _describe_launch(dry: OfflineLaunch, kernel: Any, arch: str) -> CompiledLaunch:
    metadata, compiled = dry.metadata, _compiled_kernel(kernel, dry)
    ptx = compiled.asm["ptx"]
    clusters, x = metadata.num_ctas, dry.grid[0]
    found = re.search(r"^\.maxnreg\s+(\d+)", ptx, re.MULTILINE)
    launch = Launch(
        metadata.name,
        (x * clusters, dry.grid[1], dry.grid[2]),
        (32 * metadata.num_warps, 1, 1),
        (clusters, 1, 1),
        metadata.shared,
        int(found[1]) if found else 0,
        tuple(_parameters(dry)),
    )
    return CompiledLaunch(metadata.name, arch, ptx, launch)


def _compiled_kernel(kernel: Any, dry: OfflineLaunch) -> Any:
    """The compiled kernel of a launch, in the caches of the function."""
    while not hasattr(kernel, "device_caches"):
        kernel = kernel.fn
    caches = [cache[0] for cache in kernel.device_caches.values()]
    return next(each for cache in caches for each in cache.values() if each.metadata is dry.metadata)


def _parameters(dry: OfflineLaunch) -> Iterator[Parameter]:
    """The kernel's parameters: constants are compiled in, and two scratch buffers come last."""
    descriptors = iter(getattr(dry.metadata, "tensordesc_meta", None) or ())
    names = dry.source.fn.arg_names
    for name, kind, value in zip(names, dry.source.signature.values(), dry.arguments, strict=True):
        for content in contents_of(kind, value, descriptors):
            yield Parameter(name, content)
    yield Parameter("global_scratch", Pointer())
    yield Parameter("profile_scratch", Pointer())


def contents_of(kind: Any, value: Any, descriptors: Iterator[Mapping[str, Any]]) -> Iterator[Content]:
    """The parameters that an argument becomes. ``descriptors``: the metadata of the tensor maps that follow."""
    if isinstance(kind, tuple):
        for each, part in zip(kind, value, strict=True):
            yield from contents_of(each, part, descriptors)
    elif kind == "constexpr":
        return
    elif kind.startswith("tensordesc"):
        yield from _descriptor(value, next(descriptors, None))
    elif kind.startswith("*"):
        yield _pointer(value)
    else:
        yield Number(_SCALARS.get(kind) or kind.replace("i", "s"), value if not isinstance(value, bool) else int(value))


def _descriptor(value: Any, given: Mapping[str, Any] | None) -> Iterator[Content]:
    """A tensor descriptor: its map (or, where the kernel makes the map, pointer, sizes and flags), then its sizes."""
    sizes = [Number("s32", size) for size in value.shape]
    strides = [Number("s64", stride) for stride in value.strides]
    if given is None:
        yield _pointer(value.base)
        yield from (Number("s64", size) for size in value.shape)
        yield from strides
        yield from (Number("u8", int(value.padding == "nan")), Number("u8", int(value.round_f32_to_tf32)))
    else:
        yield tensor_map(given, value.shape, value.strides, tf32=getattr(value, "round_f32_to_tf32", False))
    yield from sizes
    yield from strides


def tensor_map(given: Mapping[str, Any], shape: Sequence[int], strides: Sequence[int], *, tf32: bool) -> TensorMap:
    """The map that Triton's launcher encodes: a block's shape is not the box, which is in the metadata."""
    kind, dims = int(given["elem_type"]), [int(each) for each in shape]
    if given.get("fp4_padded") and dims:
        dims[-1] *= 2
    element = "u4_align16" if given.get("fp4_padded") else _ELEMENTS[11 if tf32 else _ON_DEVICE.get(kind, kind)]
    steps = tuple(int(each) * int(given["elem_size"]) for each in reversed(strides[:-1]))
    box = tuple(int(each) for each in reversed(given["block_size"]))
    swizzle = _SWIZZLES[int(given["swizzle"])]
    if given.get("is_im2col"):
        return TensorMap(element, tuple(reversed(dims)), box[:1], steps, (), swizzle, pixels=box[1])
    return TensorMap(element, tuple(reversed(dims)), box, steps, (), swizzle)


def _pointer(value: Any) -> Pointer:
    kind = INTEGERS.get(str(getattr(value, "dtype", "")))
    on_host = str(getattr(value, "device", "")) == "cpu"
    if kind is None or not on_host or value.numel() > _MOST:
        return Pointer()
    return Pointer(contents=(Field(0, Array(kind, tuple(value.flatten().tolist()))),))


MAX_SHARED = 232_448  #: bytes that a CTA of sm_90 and sm_100 may have
_SMS = {90: 132, 100: 148}


class OfflineLaunch(NamedTuple):
    """A launch that would have run: the compiled kernel's source and metadata, the grid, and the arguments."""

    source: Any
    metadata: Any
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]


def _driver(target: Any) -> Any:
    """In place of ``triton.runtime.driver.active``: everything that a launch requires of it, and no device.

    A kernel remembers its target by the device, which has a number of its own for each architecture. ``launches``: of
    each that was asked for three sizes of the grid, six of the launch, and its arguments come.
    """
    launches: list[OfflineLaunch] = []
    properties = {"max_shared_mem": MAX_SHARED, "multiprocessor_count": _SMS.get(target.arch, 132), "warpSize": 32}
    properties |= {"max_num_regs": 65536, "mem_clock_rate": 1, "mem_bus_width": 1, "sm_clock_rate": 1}
    utils = SimpleNamespace(
        load_binary=lambda *_: (None, None, 0, 0, 1024),
        unload_module=lambda *_: None,
        get_device_properties=lambda _device: properties,
        cuOccupancyMaxActiveClusters=lambda *_: 1,
    )
    return SimpleNamespace(
        launches=launches,
        utils=utils,
        launcher_cls=lambda source, metadata: (
            lambda *given: launches.append(OfflineLaunch(source, metadata, given[:3], given[9:]))
        ),
        get_current_target=lambda: target,
        get_current_device=lambda: int(target.arch),
        set_current_device=lambda _device: None,
        get_current_stream=lambda _device=0: 0,
        get_device_capability=lambda _device=0: divmod(target.arch, 10),
        get_active_torch_device=lambda: import_module("torch").device("meta"),  # whose tensors have no memory
        map_python_to_cpp_type=lambda kind: kind,  # as in the source of a launcher; nothing compiles one
    )


@contextmanager
def offline(arch: int) -> Iterator[Any]:
    """Within it, Triton compiles for an architecture (90, 100) and notes launches; then its own driver is back."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    mine = _driver(GPUTarget("cuda", arch, 32))
    before = driver._active  # noqa: SLF001  # reading the property would look for a GPU
    driver.set_active(mine)
    try:
        yield mine
    finally:
        driver._active = before  # noqa: SLF001
