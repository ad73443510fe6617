"""The arguments of the driver's functions that are observed, and their numbers in CUPTI.

The numbers are those of ``cupti_driver_cbid.h``, which only ever grows; the structures are those of
``generated_cuda_meta.h`` and ``cuda.h``.
"""

from ctypes import Structure, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from typing import Any, ClassVar

_Members = list[tuple[str, Any]]


def _pointers(*names: str) -> _Members:
    return [(name, c_void_p) for name in names]


def _ints(*names: str) -> _Members:
    return [(name, c_int) for name in names]


def _words(*names: str) -> _Members:
    return [(name, c_uint32) for name in names]


_SHAPE = _words("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")
#: What the arguments of each ``cuTensorMapEncode*`` begin with.
_TENSOR = [*_pointers("map"), *_ints("element"), *_words("rank"), *_pointers("address", "dims", "strides")]


class CallbackData(Structure):
    """``CUpti_CallbackData``: ``site`` is 0 before the call and 1 after it."""

    _fields_: ClassVar[Any] = [
        *_words("site"),
        ("function_name", c_char_p),
        *_pointers("arguments", "result"),
        ("symbol", c_char_p),
        *_pointers("context"),
    ]


class LaunchKernel(Structure):
    """``cuLaunchKernel_params``; those of ``cuLaunchCooperativeKernel`` end before ``extra``."""

    _fields_: ClassVar[Any] = [*_pointers("function"), *_SHAPE, *_pointers("stream", "parameters", "extra")]


class LaunchConfig(Structure):
    """``CUlaunchConfig``."""

    _fields_: ClassVar[Any] = [*_SHAPE, *_pointers("stream", "attributes"), *_words("count")]


class LaunchKernelEx(Structure):
    """``cuLaunchKernelEx_params``."""

    _fields_: ClassVar[Any] = [*_pointers("config", "function", "parameters", "extra")]


class Attribute(Structure):
    """``CUlaunchAttribute``, of which a cluster's dimensions and a switch are read."""

    _fields_: ClassVar[Any] = [*_words("id", "pad"), ("value", c_uint32 * 16)]


class KernelNode(Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v2``: ``kernel`` is used where there is no ``function``."""

    _fields_: ClassVar[Any] = [*_pointers("function"), *_SHAPE, *_pointers("parameters", "extra", "kernel", "context")]


class EncodeTiled(Structure):
    """``cuTensorMapEncodeTiled_params``."""

    _fields_: ClassVar[Any] = [*_TENSOR, *_pointers("box", "steps"), *_ints("interleave", "swizzle")]


class EncodeIm2col(Structure):
    """``cuTensorMapEncodeIm2col_params``."""

    _fields_: ClassVar[Any] = [
        *_TENSOR,
        *_pointers("lower", "upper"),
        *_words("channels", "pixels"),
        *_pointers("steps"),
        *_ints("interleave", "swizzle"),
    ]


class EncodeIm2colWide(Structure):
    """``cuTensorMapEncodeIm2colWide_params``."""

    _fields_: ClassVar[Any] = [
        *_TENSOR,
        *_ints("lower", "upper"),
        *_words("channels", "pixels"),
        *_pointers("steps"),
        *_ints("interleave", "mode", "swizzle"),
    ]


class LinkAdd(Structure):
    """``cuLinkAddData_v2_params``: ``kind`` 1 is PTX."""

    _fields_: ClassVar[Any] = [*_pointers("state"), *_ints("kind"), *_pointers("data"), ("size", c_size_t)]


class LinkComplete(Structure):
    """``cuLinkComplete_params``."""

    _fields_: ClassVar[Any] = [*_pointers("state", "image", "size")]


class GraphChoice(Structure):
    """``Choice`` of inject/graphs.h: a kernel of a graph that is launched. ``chosen``: what is launched instead.

    ``asks``: whether it is done is all that is asked.
    """

    _fields_: ClassVar[Any] = [
        *_pointers("function", "stream", "context"),
        *_SHAPE,
        ("cluster", c_uint32 * 3),
        *_pointers("parameters", "extra"),
        ("is_graph", c_bool),
        ("symbol", c_char_p),
        ("place", c_char_p),
        ("text", c_char * 80),
        *_pointers("chosen"),
        ("is_done", c_bool),
        ("asks", c_bool),
    ]


class GraphEnd(Structure):
    """``GraphEnd`` of inject/graphs.h: a launch of a graph was made, or refused; its kernels may run again."""

    _fields_: ClassVar[Any] = [("launched", c_bool), ("keeps_buffers", c_bool)]


class FirstTwo(Structure):
    """The first two arguments of many functions, each a pointer or a handle."""

    _fields_: ClassVar[Any] = [*_pointers("first", "second")]


PTX_INPUT = 1  #: CU_JIT_INPUT_PTX
CLUSTER = 4  #: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
PROGRAMMATIC = 6  #: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

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
INSTANTIATE = frozenset({513, 578, 643, 656, 657, 561, 696})  #: or cuGraphExecUpdate: the second argument is the graph
GRAPH_CHOICE, GRAPH_END, GRAPH_NOTE = range(1 << 20, (1 << 20) + 3)  #: no calls of the driver, but of our library
RECORD = frozenset({119, 441, 587, 588})  #: cuEventRecord, cuEventRecordWithFlags: an event, a stream
WAIT = frozenset({295, 436})  #: cuStreamWaitEvent: a stream, an event
HOST = {126: "stream", 440: "stream", 121: "event", 17: "", 800: ""}  #: cuStream-, cuEvent-, cuCtxSynchronize
ORDER = RECORD | WAIT | {*HOST}
ALL = LAUNCH | LAUNCH_EX | LOAD | UNLOAD | {*ENCODE, REPLACE, LINK_COMPLETE} | LINK_ADD | INSTANTIATE
