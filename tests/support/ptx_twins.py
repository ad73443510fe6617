"""Our own kernels read from the PTX that NVRTC makes of their untraced builds, and compared with their protocols."""

from collections.abc import Mapping
from functools import cache

from hwkernels.twins import find_twin
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.text.read import read_module
from pipesim.targets import find
from tests.support.twin_launches import launch_of, ptx_of
from tools.corpus.operation_order import Comparison, compared, names_by_address


@cache
def twin_ptx(name: str, changes: tuple[tuple[str, int], ...]) -> str:
    """The PTX of a twin with parameters that differ from the defaults."""
    return ptx_of(find_twin(name), {**find(name).defaults, **dict(changes)})


def extracted(name: str, changes: Mapping[str, int], text: str = "") -> Extraction:
    """What a twin's PTX, or ``text`` in its place, does in a launch of the protocol's parameters."""
    twin, params = find_twin(name), {**find(name).defaults, **changes}
    launch = launch_of(twin, params)
    return extract(read_module(text or twin_ptx(name, tuple(changes.items())), f"{name}.ptx"), launch)


def beside_protocol(
    name: str, changes: Mapping[str, int], found: Extraction, other: Mapping[str, int] | None = None
) -> Comparison:
    """Each warp's operations on each mbarrier, in order: those of the PTX and those of the protocol.

    The kernel's table names its barriers by their place in shared memory. ``other``: parameters of the protocol, where
    these are not the kernel's.
    """
    table = find_twin(name).table({**find(name).defaults, **changes})
    names = names_by_address(found.places, [(group.name, group.stages) for group in table.barriers])
    return compared(found.program, names, find(name).build(dict(changes if other is None else other)))
