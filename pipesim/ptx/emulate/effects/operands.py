"""Operands of instructions that do more than compute: addresses by lane, and modifiers that many of them share."""

from __future__ import annotations

from functools import lru_cache

from pipesim.model.ops import Order, Scope, semantics
from pipesim.ptx.emit.record import Place
from pipesim.ptx.emulate.addresses import from_generic, in_shared, place_of
from pipesim.ptx.emulate.stop import EmulationStop
from pipesim.ptx.emulate.values import Leaf, PerLane, Unknown, Value, lanes_in, leaf_of
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.text.instruction import Instruction

_ORDERS = {"relaxed": Order.RELAXED, "release": Order.RELEASE, "acquire": Order.ACQUIRE, "acq_rel": Order.ACQ_REL}
_SCOPES = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "sys": Scope.SYS, "gl": Scope.GPU}


def semantics_of(each: Instruction) -> int:
    """Order and scope as written."""
    order = next((_ORDERS[m] for m in each.modifiers if m in _ORDERS), Order.DEFAULT)
    scope = next((_SCOPES[m] for m in each.modifiers if m in _SCOPES), Scope.DEFAULT)
    return semantics(order, scope)


@lru_cache(maxsize=256)
def bytes_of(kind: str) -> int:
    """Bytes of an element of a type: 4 of ``b32``."""
    return max(int("".join(c for c in kind if c.isdigit()) or 8) // 8, 1)


def by_lane(warp: EmulatedWarp, value: Value, what: str) -> dict[int, int]:
    """The known integer of each lane that executes. EmulationStop if one is not known."""
    if isinstance(value, int):
        return dict.fromkeys(lanes_in(warp.mask), int(value))
    if isinstance(value, PerLane):
        found = {}
        for lane in lanes_in(warp.mask):
            one = value.each[lane]
            if not isinstance(one, int):
                raise EmulationStop(f"{what} is not known", leaf_of(one))
            found[lane] = int(one)
        return found
    raise EmulationStop(f"{what} is not known", leaf_of(value))


def lanes_by_value(warp: EmulatedWarp, value: Value, what: str) -> dict[int, int]:
    """How many of the lanes that execute have each value, in the order of the lanes."""
    if isinstance(value, int):
        return {int(value): warp.mask.bit_count()}
    found: dict[int, int] = {}
    for one in by_lane(warp, value, what).values():
        found[one] = found.get(one, 0) + 1
    return found


def one_of(warp: EmulatedWarp, value: Value, what: str) -> int:
    """The integer on which the lanes that execute agree. EmulationStop if it is not known, or they do not."""
    if isinstance(value, int):
        return int(value)
    found = lanes_by_value(warp, value, what)
    if len(found) != 1:
        raise EmulationStop(f"{what} differs between the lanes")
    return next(iter(found))


def shared_place(address: int, ctas: int) -> Place:
    """CTA and offset of a shared address, which may be generic. EmulationStop if it is outside of the cluster's."""
    if in_shared(address):
        address = from_generic(address)
    cta, offset = place_of(address)
    if not 0 <= cta < ctas or offset < 0:
        raise EmulationStop(f"the shared address {address:#x} is outside of the cluster's memory")
    return cta, offset


def unknown(what: str, line: int) -> Unknown:
    """A value that is not known, with where it comes from."""
    return Unknown(Leaf(what, line))
