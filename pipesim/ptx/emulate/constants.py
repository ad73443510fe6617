"""What does not change while a warp runs: special registers, and addresses of variables and parameters (PTX ISA,
"Special Registers").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipesim.ptx.emulate.memory import LOCAL_WINDOW, MODULE_VARIABLES, RANK_SHIFT, SHARED_BASE
from pipesim.ptx.emulate.values import FULL, WARP, Leaf, Unknown, Value, lanes_of
from pipesim.ptx.launch.image import GRID_WORKSPACE
from pipesim.ptx.text.declarations import Function, Module, Variable
from pipesim.ptx.text.instruction import Address, Special, Symbol

if TYPE_CHECKING:
    from pipesim.ptx.emulate.cluster import Cluster


_WORKSPACE = {"envreg1": GRID_WORKSPACE >> 32, "envreg2": GRID_WORKSPACE & 0xFFFFFFFF}
_PARAMETERS_OF_CALLS = 1 << 20  #: between the variables that calls pass, which have no places of their own


class Constants:
    """The values of the constants of a kernel's code, for each warp."""

    def __init__(self, module: Module) -> None:
        self._globals: dict[str, int] = {}
        self._own: dict[str, tuple[bool, int]] = {}  #: of the kernel
        self.tables: dict[int, Variable] = {}  #: in constant memory, by their addresses
        at = MODULE_VARIABLES
        for variable in module.globals:
            if variable.space in ("global", "const"):
                at = -(-at // max(variable.align, 256)) * max(variable.align, 256)
                self._globals[variable.name] = at
                self.tables |= {at: variable} if variable.space == "const" else {}
                at += variable.size
        self.module = module

    def __call__(self, cluster: Cluster, cta: int, number: int) -> list[Value]:
        """``K`` of a warp."""
        return [self._one(cluster, cta, number, each) for each in cluster.code.constants]

    def _one(self, cluster: Cluster, cta: int, number: int, of: Special | Symbol | Address) -> Value:
        match of:
            case Special(name):
                return special_register(cluster, cta, number, name.removeprefix("%"))
            case Symbol(name):
                return self._symbol(cluster, cta, name)
            case Address(Symbol(name), offset):
                return self._symbol(cluster, cta, name) + offset
        raise AssertionError(of)

    def _symbol(self, cluster: Cluster, cta: int, name: str) -> Value:
        if not self._own:
            self._own = _places(cluster.code.function)
        if name in self._own:
            shared, address = self._own[name]
            return address + (cta << RANK_SHIFT) if shared else address
        if name in self._globals:
            return self._globals[name]
        return Unknown(Leaf(f"the address of {name[:40]}", 0))


def _places(function: Function) -> dict[str, tuple[bool, int]]:
    """The address of each parameter and variable of a function, and whether it is one in a CTA's shared memory."""
    found: dict[str, tuple[bool, int]] = {}
    for param in function.params:
        found.setdefault(param.name, (False, param.offset))  # in the parameters' own space, which may have 32 bits
    for variable in function.shared:
        found.setdefault(variable.name, (True, SHARED_BASE + variable.offset))
    for number, variable in enumerate(function.local):
        apart = (number + 1) * _PARAMETERS_OF_CALLS if variable.space == "param" else 0
        found.setdefault(variable.name, (False, LOCAL_WINDOW + apart + variable.offset))
    return found


def special_register(cluster: Cluster, cta: int, number: int, name: str) -> Value:
    """A special register, unknown where the launch does not decide it: what a warp or an SM is called in the machine,
    times, counters, sizes that the driver rounds up. ``%warpid`` may change while the warp runs.
    """
    launch = cluster.launch
    base, _, part = name.partition(".")
    axis = "xyz".find(part) if part else 0
    if base == "tid" and 0 <= axis < 3:
        return _thread(launch.block, number, axis)
    shapes = {"ntid": launch.block, "cluster_nctaid": launch.cluster}
    if 0 <= axis < 3 and (base == "nctaid" or (base == "nclusterid" and launch.any_ctas)):
        return cluster.length_of_grid(axis)
    shapes["nclusterid"] = tuple(g // c for g, c in zip(launch.grid, launch.cluster, strict=True))  # type: ignore[assignment]
    if base in shapes and 0 <= axis < 3:
        return shapes[base][axis]
    x, y, _ = launch.cluster
    if cluster.together and not launch.any_ctas:
        if base in ("ctaid", "clusterid") and 0 <= axis < 3:
            return cluster.together[cta][axis]
        cta = 0
    inside = (cta % x, cta // x % y, cta // (x * y))
    if base == "cluster_ctaid" and 0 <= axis < 3:
        return inside[axis]
    if base == "ctaid" and 0 <= axis < 3:
        return cluster.number_in_grid(axis) * launch.cluster[axis] + inside[axis]
    if base == "clusterid" and 0 <= axis < 3:
        return cluster.number_in_grid(axis)
    values: dict[str, Value] = {
        **_WORKSPACE,
        "cluster_ctarank": cta,
        "cluster_nctarank": x * y * launch.cluster[2],
        "laneid": lanes_of(list(range(WARP))),
        "lanemask_eq": lanes_of([1 << i for i in range(WARP)]),
        "lanemask_lt": lanes_of([(1 << i) - 1 for i in range(WARP)]),
        "lanemask_le": lanes_of([(2 << i) - 1 for i in range(WARP)]),
        "lanemask_gt": lanes_of([FULL & ~((2 << i) - 1) for i in range(WARP)]),
        "lanemask_ge": lanes_of([FULL & ~((1 << i) - 1) for i in range(WARP)]),
        "dynamic_smem_size": launch.dynamic_shared,
    }
    if cluster.ctas > 1 and not cluster.together:  # of one CTA it may be explicit, or not
        values["is_explicit_cluster"] = 1
    return values.get(base, Unknown(Leaf(f"the special register %{name}", 0)))


def _thread(block: tuple[int, int, int], number: int, axis: int) -> Value:
    x, y, _ = block
    threads = range(WARP * number, WARP * (number + 1))
    return lanes_of([(t % x, t // x % y, t // (x * y))[axis] for t in threads])
