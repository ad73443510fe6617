"""Our own kernels read from their PTX, and the order of their operations beside that of the hand-written protocol."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from hwkernels.twins import registered
from hwkernels.twins.launch_file import launch_of, ptx_of
from pipesim.model.groups import ON_BARRIER
from pipesim.model.ops import OPERANDS, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.text.read import read_module
from pipesim.targets import find

Group = tuple[int, str, int]  #: CTA, group, stage
Order = dict[Group, dict[tuple[int, int], list[tuple[object, ...]]]]  #: of each barrier, for each (CTA, warp)

_SAID = frozenset({"count", "expect", "parity", "bytes", "lanes", "noinc", "cta_mask", "engine"})


@cache
def twin_ptx(name: str, changes: tuple[tuple[str, int], ...]) -> str:
    """The PTX of a twin with parameters that differ from the defaults."""
    return ptx_of(registered(name), {**find(name).defaults, **dict(changes)})


def extracted(name: str, changes: Mapping[str, int], text: str = "") -> Extraction:
    """What a twin's PTX, or ``text`` in its place, does in a launch of the protocol's parameters."""
    twin, params = registered(name), {**find(name).defaults, **changes}
    launch = launch_of(twin, params)
    return extract(read_module(text or twin_ptx(name, tuple(changes.items())), f"{name}.ptx"), launch)


def order_of_kernel(name: str, changes: Mapping[str, int], found: Extraction) -> Order:
    """Its operations barrier by barrier; barriers are named by their place, as the table of the kernel orders them."""
    twin = registered(name)
    table = twin.table({**find(name).defaults, **changes})
    names = [(group.name, stage) for group in table.barriers for stage in range(group.stages)]
    offsets = sorted({offset for _, offset in found.places})
    named = {place: (place[0], *names[offsets.index(place[1])]) for place in found.places}
    return _order(found.program, list(named.values()))


def order_of_protocol(name: str, changes: Mapping[str, int]) -> Order:
    """The same of the protocol that the twin is of."""
    program = find(name).build(dict(changes))
    return _order(program, [(b.cta, b.name, b.stage) for b in program.barriers])


def _order(program: Program, names: list[Group]) -> Order:
    found: Order = defaultdict(lambda: defaultdict(list))
    for agent, code in zip(program.agents, program.code, strict=True):
        for op in code:
            if op[0] in ON_BARRIER and op[0] != Op.INVAL and operand(op, "barrier") >= 0:
                found[names[operand(op, "barrier")]][agent.cta, agent.warp].append(_said(op))
    return {group: {warp: _joined(said) for warp, said in warps.items()} for group, warps in found.items()}


def _joined(said: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """A try and, as the next operation on its barrier, the wait that depends on it are a wait."""
    found: list[tuple[object, ...]] = []
    for each in said:
        if each[0] == "WAIT_UNLESS" and found and found[-1] == ("TRY_WAIT", *each[1:]):
            found.pop()
            found.append(("WAIT", *each[1:]))
        else:
            found.append(each)
    return found


def _said(op: Operation) -> tuple[object, ...]:
    kind = Op(op[0])
    return (kind.name, *(v for n, v in zip(OPERANDS[kind], op[1:], strict=True) if n in _SAID))
