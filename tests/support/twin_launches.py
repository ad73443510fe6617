"""A twin's PTX and the launch file beside it: what ``pipesim check kernel.ptx`` is given of our own kernels."""

from collections.abc import Mapping
from math import prod

import numpy as np

from hwkernels.device.compile import compile_ptx
from hwkernels.source_recorder.layout import REPORT
from hwkernels.twins import find_twin
from hwkernels.twins.buffers import RUN_PARAMS, Argument, Bytes, Input, MapOf, OfLaunch, Output
from hwkernels.twins.fault import parse_fault
from hwkernels.twins.twin import Twin
from pipesim.errors import UsageError
from pipesim.ptx.launch import values

_DEADLINE_NS = 2_000_000_000
_NUMBERS = {"f": "f", "i": "s", "u": "u"}


def ptx_of(twin: Twin, params: Mapping[str, int], fault: int = 0) -> str:
    """The PTX of a twin without its recorder, for Hopper. Raises CompileError and MissingExtraError."""
    defines = {**twin.defines(params), "PIPESIM_TRACE": 0} | ({"PIPESIM_FAULT": fault} if fault else {})
    return compile_ptx(twin.source, defines)


def launch_of(twin: Twin, params: Mapping[str, int], grid: int = 1, fault_at: int = 0) -> values.Launch:
    """The launch of a twin with these parameters and this many CTAs (or clusters)."""
    shape = twin.shape(params, grid)
    arguments = twin.arguments(params, grid, 0)
    if OfLaunch.REPORTS not in arguments:
        arguments = (*arguments, *RUN_PARAMS)
    ctas = prod(shape.grid)
    return values.Launch(
        twin.name,
        _three(shape.grid),
        _three(shape.block),
        (shape.cluster, 1, 1),
        shape.smem_bytes,
        parameters=parameters_of(arguments, ctas, fault_at),
    )


def recorded_kernel(protocol: str, params: Mapping[str, int], fault: str = "") -> tuple[str, values.Launch]:
    """The PTX of the twin that a trace says it was recorded of, with its injected fault, and a launch of one cluster.

    Raises as :func:`ptx_of`, and UsageError if pipesim has no twin of that name.
    """
    twin, made = find_twin(protocol), parse_fault(fault) if fault else None
    number, at = (made.number, made.iteration) if made is not None else (0, 0)
    return ptx_of(twin, params, number), launch_of(twin, params, fault_at=at)


def _three(sizes: tuple[int, ...]) -> values.Shape:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def cleared_reports(ctas: int) -> values.Pointer:
    """The reports of this many CTAs as a launch finds them: all zero, so that no wait of theirs is marked."""
    words = (0,) * (REPORT.itemsize // 4 * ctas)
    return values.Pointer(contents=(values.Field(0, values.Array("u32", words)),))


def parameters_of(arguments: tuple[Argument, ...], ctas: int = 1, fault_at: int = 0) -> tuple[values.Parameter, ...]:
    """The parameters of a launch file for a kernel's arguments in a launch of this many CTAs, in order."""
    found = []
    for argument in arguments:
        match argument:
            case Input(name=name, given=given) | Output(name=name, given=given) | Bytes(name=name, given=given):
                if given:
                    found.append(values.Parameter(name, values.Pointer()))
            case MapOf(of=of, tensor=tensor):
                found.append(values.Parameter(of, tensor))
            case OfLaunch():
                found.append(values.Parameter(argument.value, _of_launch(argument, ctas, fault_at)))
            case number:
                found.append(values.Parameter("", _number(number)))
    return tuple(found)


def _of_launch(argument: OfLaunch, ctas: int, fault_at: int) -> values.Content:
    match argument:
        case OfLaunch.DEADLINE:
            return values.Number("u32", _DEADLINE_NS)
        case OfLaunch.FAULT_AT:
            return values.Number("u32", fault_at)
        case OfLaunch.REPORTS:
            return cleared_reports(ctas)
        case OfLaunch.STOP:
            return values.Pointer()


def _number(number: np.generic) -> values.Number:
    kind = number.dtype.kind
    if kind not in _NUMBERS:
        raise UsageError(f"an argument of type {number.dtype} cannot be written to a launch file")
    value = number.item()
    return values.Number(f"{_NUMBERS[kind]}{8 * number.dtype.itemsize}", value)
