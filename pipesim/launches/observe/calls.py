"""The arguments of the driver's functions that are observed, and their numbers in CUPTI.

The numbers are those of ``cupti_driver_cbid.h``, which only ever grows; the structures are those of
``generated_cuda_meta.h`` and ``cuda.h``.
"""

from __future__ import annotations

from ctypes import Structure, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from typing import Any, ClassVar

_SHAPE: list[tuple[str, Any]] = [
    (name, c_uint32) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")
]
#: What the arguments of each ``cuTensorMapEncode*`` begin with.
_TENSOR: list[tuple[str, Any]] = [
    ("map", c_void_p),
    ("element", c_int),
    ("rank", c_uint32),
    ("address", c_void_p),
    ("dims", c_void_p),
    ("strides", c_void_p),
]


class CallbackData(Structure):
    """``CUpti_CallbackData``: ``site`` is 0 before the call and 1 after it."""

    _fields_: ClassVar[Any] = [
        ("site", c_uint32),
        ("function_name", c_char_p),
        ("arguments", c_void_p),
        ("result", c_void_p),
        ("symbol", c_char_p),
        ("context", c_void_p),
    ]


class LaunchKernel(Structure):
    """``cuLaunchKernel_params``; those of ``cuLaunchCooperativeKernel`` end before ``extra``."""

    _fields_: ClassVar[Any] = [
        ("function", c_void_p),
        *_SHAPE,
        ("stream", c_void_p),
        ("parameters", c_void_p),
        ("extra", c_void_p),
    ]


class LaunchConfig(Structure):
    """``CUlaunchConfig``."""

    _fields_: ClassVar[Any] = [*_SHAPE, ("stream", c_void_p), ("attributes", c_void_p), ("count", c_uint32)]


class LaunchKernelEx(Structure):
    """``cuLaunchKernelEx_params``."""

    _fields_: ClassVar[Any] = [
        ("config", c_void_p),
        ("function", c_void_p),
        ("parameters", c_void_p),
        ("extra", c_void_p),
    ]


class Attribute(Structure):
    """``CUlaunchAttribute``, of which only a cluster's dimensions are read."""

    _fields_: ClassVar[Any] = [("id", c_uint32), ("pad", c_uint32), ("value", c_uint32 * 16)]


class KernelNode(Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v2``: ``kernel`` is used where there is no ``function``."""

    _fields_: ClassVar[Any] = [
        ("function", c_void_p),
        *_SHAPE,
        ("parameters", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    ]


class EncodeTiled(Structure):
    """``cuTensorMapEncodeTiled_params``."""

    _fields_: ClassVar[Any] = [
        *_TENSOR,
        ("box", c_void_p),
        ("steps", c_void_p),
        ("interleave", c_int),
        ("swizzle", c_int),
    ]


class EncodeIm2col(Structure):
    """``cuTensorMapEncodeIm2col_params``."""

    _fields_: ClassVar[Any] = [
        *_TENSOR,
        ("lower", c_void_p),
        ("upper", c_void_p),
        ("channels", c_uint32),
        ("pixels", c_uint32),
        ("steps", c_void_p),
        ("interleave", c_int),
        ("swizzle", c_int),
    ]


class EncodeIm2colWide(Structure):
    """``cuTensorMapEncodeIm2colWide_params``."""

    _fields_: ClassVar[Any] = [
        *_TENSOR,
        ("lower", c_int),
        ("upper", c_int),
        ("channels", c_uint32),
        ("pixels", c_uint32),
        ("steps", c_void_p),
        ("interleave", c_int),
        ("mode", c_int),
        ("swizzle", c_int),
    ]


class LinkAdd(Structure):
    """``cuLinkAddData_v2_params``: ``kind`` 1 is PTX."""

    _fields_: ClassVar[Any] = [("state", c_void_p), ("kind", c_int), ("data", c_void_p), ("size", c_size_t)]


class LinkComplete(Structure):
    """``cuLinkComplete_params``."""

    _fields_: ClassVar[Any] = [("state", c_void_p), ("image", c_void_p), ("size", c_void_p)]


class FirstTwo(Structure):
    """The first two arguments of many functions, each a pointer or a handle."""

    _fields_: ClassVar[Any] = [("first", c_void_p), ("second", c_void_p)]


PTX_INPUT = 1  #: CU_JIT_INPUT_PTX
CLUSTER = 4  #: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION

LAUNCH = frozenset({307, 442, 477, 478})  #: cuLaunchKernel, cuLaunchCooperativeKernel, and those of a thread's stream
COOPERATIVE = frozenset({477, 478})  #: which have no ``extra``
LAUNCH_EX = frozenset({652, 653})
PER_THREAD = frozenset({442, 478, 653})  #: whose stream 0 is that of the thread
PER_THREAD_STREAM = 2  #: CU_STREAM_PER_THREAD
LOAD = frozenset({18, 19, 20, 21, 678, 679})  #: cuModuleLoad, LoadData, LoadDataEx, LoadFatBinary, cuLibraryLoad*
LOAD_FILE = frozenset({18, 679})  #: whose second argument is a path
UNLOAD = frozenset({22, 680})
ENCODE = {697: EncodeTiled, 698: EncodeIm2col, 781: EncodeIm2colWide}
REPLACE = 699  #: cuTensorMapReplaceAddress
LINK_ADD = frozenset({363, 382})  #: cuLinkAddData, cuLinkAddData_v2
LINK_COMPLETE = 365
INSTANTIATE = frozenset({513, 578, 643, 656, 657})  #: cuGraphInstantiate*: the second argument is the graph
ALL = frozenset(
    {
        *LAUNCH,
        *LAUNCH_EX,
        *LOAD,
        *UNLOAD,
        *ENCODE,
        REPLACE,
        *LINK_ADD,
        LINK_COMPLETE,
        *INSTANTIATE,
    }
)
