"""Operands of instructions that do more than compute: addresses by lane, where an access goes that has them, and
modifiers that many of them share.

Where an operand of a matrix instruction lies in shared memory is said by its descriptor (PTX ISA, "Matrix Descriptor"
and "Strides" of wgmma and of tcgen05): groups of 8 rows, and of the bytes of a swizzle where the rows lie in a row.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from operator import and_
from typing import NamedTuple

from pipesim.model.ops import Order, Scope, semantics
from pipesim.ptx.emit.record import BARRIER_BYTES, Place
from pipesim.ptx.emulate.arithmetic.known_bits import Bits
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.lanes.exchanges import lanes_at, note_exchange
from pipesim.ptx.emulate.memory import (
    OFFSET,
    RANK_SHIFT,
    SHARED_BASE,
    WINDOW,
    WINDOW_END,
    from_generic,
    in_shared,
    of_shared,
    place_of,
)
from pipesim.ptx.emulate.stop import EVERYWHERE, EmulationStop, IllegalOperand, TouchedBytes
from pipesim.ptx.emulate.values import (
    FULL,
    Leaf,
    PerLane,
    Unknown,
    Value,
    are_known,
    bits_of,
    integers,
    interval,
    lanes_in,
    leaf_of,
    of_lane,
)
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.flow.opcodes import as_written
from pipesim.ptx.text.declarations import Variable
from pipesim.ptx.text.instruction import Immediate, Instruction


def unknown_form(_cluster: Cluster, _warp: EmulatedWarp, step: DecodedStep) -> None:
    """The effect of an instruction in a form that is not known."""
    raise EmulationStop(f"{step.instruction.mnemonic} is not known")


def semantics_of(each: Instruction) -> int:
    """Order and scope as written."""
    return _semantics(each.modifiers)


@lru_cache(maxsize=256)
def _semantics(modifiers: tuple[str, ...]) -> int:
    return semantics(*as_written(modifiers, Order.DEFAULT, Scope.DEFAULT))


@lru_cache(maxsize=256)
def bytes_of(kind: str) -> int:
    """Bytes of an element of a type: 4 of ``b32``, and of ``f16x2``."""
    element, _, count = kind.partition("x")
    return max(int("".join(c for c in element if c.isdigit()) or 8) * int(count if count.isdecimal() else 1) // 8, 1)


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


MOST_RANKS = 256  #: that a shared address of 32 bits can have


def shared_place(address: int, ctas: int) -> Place:
    """CTA and offset of a shared address, which may be generic. EmulationStop if it is outside of the cluster's."""
    if in_shared(address):
        address = from_generic(address)
    cta, offset = place_of(address)
    if ctas <= cta < MOST_RANKS and offset >= 0:
        raise no_such_cta(cta, ctas)
    if not 0 <= cta < ctas or offset < 0:
        raise EmulationStop(f"the shared address {address:#x} is outside of the cluster's memory")
    return cta, offset


def no_such_cta(cta: int, ctas: int) -> IllegalOperand:
    """What is wrong with an address in a CTA that the cluster does not have (PTX ISA, "mapa")."""
    return IllegalOperand(
        f"the address is in CTA {cta} of a cluster of {ctas}", f"a rank is 0 to {ctas - 1}, as %cluster_nctarank says"
    )


def barrier_place(cluster: Cluster, position: int, address: int) -> Place:
    """CTA and offset of an mbarrier, which is at a multiple of 8 (PTX ISA, "Size and alignment of mbarrier object")."""
    place = shared_place(address, cluster.ctas)
    check_alignment(cluster, position, place[1], BARRIER_BYTES, "an mbarrier")
    return place


def check_alignment(cluster: Cluster, position: int, offset: int, multiple: int, what: str) -> None:
    """IllegalOperand if it is not at a multiple of this; where the layout of the CTA is not known, only a note."""
    if offset % multiple:
        said = f"{what} at byte {offset:,} of shared memory, not at a multiple of {multiple}"
        if offset % min(multiple, known_alignment(cluster.code.function.shared, offset)):
            raise IllegalOperand(said, f"align the variable, or round the address up, to a multiple of {multiple}")
        cluster.notes.undefined[position] = said


_BASE = 1024  #: the first variable of a CTA is at a multiple of it


def known_alignment(variables: Sequence[Variable], offset: int) -> int:
    """Of what an offset in shared memory is a multiple as surely as here: of several variables the order is ptxas's."""
    if sum(not each.external for each in variables) < 2:
        return _BASE
    before = [each for each in variables if each.offset <= offset]
    return max(before, key=lambda each: each.offset).align if before else 1


def unknown(what: str, line: int) -> Unknown:
    """A value that is not known, with where it comes from."""
    return Unknown(Leaf(what, line))


_BRICK = 16  #: bytes
_STEP = 32  #: bytes of a row that one instruction takes: its K
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
_KINDS = {"kind::f16": 16, "kind::tf32": 32, "kind::f8f6f4": 8, "kind::i8": 8}
_WGMMA = {0: 0, 1: 128, 2: 64, 3: 32}  #: bytes of a swizzle, by the two highest bits
_TCGEN05 = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}  #: by the three highest bits


class OperandShape(NamedTuple):
    """``rows``: M or N of the operand; ``bits`` of an element; ``by_rows``: M or N, not K, is the inner dimension."""

    rows: int
    bits: int
    by_rows: bool


def of_wgmma(each: Instruction, index: int) -> OperandShape | None:
    """Of operand 1 (A) or 2 (B); None for a type whose layout is not known."""
    size = next((m for m in each.modifiers if m.startswith("m64n")), "")
    bits = _BITS.get(each.modifiers[index - 3])
    if not size or bits is None:
        return None
    rows = 64 if index == 1 else int(size[4:].partition("k")[0])
    order = each.operands[index - 3]  # of A and B the last two operands, where a type has them
    return OperandShape(rows, bits, bits == 16 and isinstance(order, Immediate) and bool(order.value))


def of_tcgen05(each: Instruction, index: int, instruction: int) -> OperandShape | None:
    """Of operand 1 (A) or 2 (B) in one CTA, by the instruction descriptor."""
    bits = next((_KINDS[m] for m in each.modifiers if m in _KINDS), None)
    if bits is None or any(m.startswith("block") for m in each.modifiers):
        return None
    rows = (instruction >> 24 & 0x1F) << 4 if index == 1 else (instruction >> 17 & 0x3F) << 3
    return OperandShape(rows // 2 if each.has("cta_group::2") else rows, bits, bool(instruction >> 14 + index & 1))


def groups(descriptor: int, shape: OperandShape, *, tcgen05: bool) -> tuple[int, ...]:
    """The bytes from the descriptor's address to each group, the first (0) included, in order."""
    swizzle = _swizzle(descriptor, tcgen05=tcgen05)
    if swizzle is None or (tcgen05 and descriptor >> 52 & 1):  # an address in place of the leading offset
        return (0,)
    leading, stride = (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4
    if not shape.by_rows:
        across = (0,) if swizzle else (0, leading)
        return tuple(sorted({g * stride + at for g in range(-(-shape.rows // 8)) for at in across}))
    deep = -(-_STEP * 8 // shape.bits // 8)
    blocks = -(-shape.rows * shape.bits // 8 // (swizzle or _BRICK))
    outer, inner = (leading, stride) if swizzle else (stride, leading)
    return tuple(sorted({block * outer + k * inner for block in range(blocks) for k in range(deep)}))


def _swizzle(descriptor: int, *, tcgen05: bool) -> int | None:
    return _TCGEN05.get(descriptor >> 61) if tcgen05 else _WGMMA[descriptor >> 62 & 3]


def takes(descriptor: int, shape: OperandShape, first: int, end: int, *, tcgen05: bool) -> bool:
    """Whether some of these bytes of shared memory, by address, are of the operand: of the rows of one of its groups.

    A swizzle exchanges the bricks of a row (PTX ISA, "Swizzling modes").
    """
    swizzle, starts = _swizzle(descriptor, tcgen05=tcgen05) or 0, groups(descriptor, shape, tcgen05=tcgen05)
    row = swizzle or _BRICK
    for brick in range(first // _BRICK * _BRICK, end, _BRICK):
        at = (brick ^ brick >> 3 & row - _BRICK) - ((descriptor & 0x3FFF) << 4)
        if any(0 <= at - start < 8 * row and (shape.by_rows or (at - start) % row < _STEP) for start in starts):
            return True
    return False


_SPACES = (
    "param",
    "param::entry",
    "param::func",
    "const",
    "global",
    "local",
    "shared",
    "shared::cta",
    "shared::cluster",
)
Starts = Mapping[int, tuple[int, ...]]  #: by CTA, the offset in its shared memory of each lane's address
#: Why an access is left out.
NO_ADDRESS = "an address that is not known, or outside of the cluster's shared memory"


def space_of(each: Instruction) -> str:
    """The state space that an access names, "" for a generic one."""
    return next(filter(_SPACES.__contains__, each.modifiers), "")


def address_of(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, at: int, space: str) -> Value:
    """The address of an access: of one to shared memory the shared one."""
    address = step.get(at, warp)
    if not space.startswith("shared"):
        return address
    meant = of_shared(address)
    if meant is not address and isinstance(meant, int | PerLane):
        cluster.notes.generic.add(step.instruction.position)
    return meant


def may_touch(
    cluster: Cluster, warp: EmulatedWarp, each: Instruction, address: Value, size: int, *, writes: bool
) -> None:
    """An access at an address that is not known is left out: of shared memory it may touch what lies in its bounds."""
    space = space_of(each)
    if not space and cluster.generic_is_global:
        return
    lanes = [of_lane(address, lane) for lane in lanes_in(warp.mask)]
    found = [bounds for each in lanes if (bounds := interval(each)) is not None]
    reach = EVERYWHERE
    if found and len(found) == len(lanes):
        base = 0 if space else WINDOW
        low, high = min(low for low, _ in found) - base, max(high for _, high in found) - base
        (cta, first), (last_cta, last) = place_of(low), place_of(high)
        if 0 <= cta == last_cta < cluster.ctas and 0 <= first <= last:
            reach = TouchedBytes(first, last + size, cta, *_lows([bits_of(each) for each in lanes], size))
    leaf = leaf_of(address)
    why = f"{NO_ADDRESS}: it depends on {leaf.what}" if leaf is not None and leaf.option else NO_ADDRESS
    cluster.may_touch(warp, each.position, why, writes=writes, reach=reach)


def _lows(known: Sequence[Bits], size: int) -> tuple[int, int, frozenset[int]]:
    """Which blocks, of which size, lanes touch modulo what, at addresses of which these bits are known.

    Data may decide the row of a table, and the byte in a word of it: the column is in the bits between.
    """
    runs_ = _ONES.finditer(format(reduce(and_, (each.mask for each in known), OFFSET), f"0{RANK_SHIFT}b")[::-1])
    low, high = max(((each.start(), each.end()) for each in runs_), key=lambda run: run[1] - run[0], default=(0, 0))
    block, modulus = max(size, 1 << low), 1 << high
    if size & (size - 1) or not block < modulus or block > SHARED_BASE:
        return 1, 1, frozenset()
    return block, modulus, frozenset((each.bits % modulus >> low << low) - SHARED_BASE & modulus - 1 for each in known)


_ONES = re.compile("1+(?=0)")  #: those at the top are in the bounds of the address


def exchange(
    cluster: Cluster,
    warp: EmulatedWarp,
    position: int,
    cta: int,
    starts: tuple[int, ...],
    size: int,
    *,
    writes: bool,
    alike: bool = False,
) -> None:
    """Note where lanes access what others of their warp have accessed, and PTX does not order it."""
    lanes, way = lanes_at(warp.mask, starts), warp.way
    if writes:
        order = warp.exchanges.write(cta, lanes, size, way, alike=alike)
    else:
        order = warp.exchanges.read(cta, lanes, size, way)
    note_exchange(cluster.notes, position, order)


def starts_of(cluster: Cluster, warp: EmulatedWarp, address: Value, size: int, space: str) -> Starts | None:
    """The offset in shared memory of each lane's address, by CTA; None if one is not known or is outside of it."""
    if isinstance(address, int):
        lanes = [address]
    elif isinstance(address, PerLane):
        lanes = address.each if warp.mask == FULL else [address.each[lane] for lane in lanes_in(warp.mask)]
    else:
        return None
    if integers(lanes):
        return _places(tuple(lanes), cluster.ctas, generic=not space)
    return _places.__wrapped__(tuple(lanes), cluster.ctas, generic=not space) if are_known(lanes) else None


@lru_cache(maxsize=1 << 12)
def _places(lanes: tuple[int, ...], ctas: int, *, generic: bool) -> Starts | None:
    """The same of known addresses: each lap of a loop has those of others."""
    if not generic and lanes:
        low, cta = min(lanes), min(lanes) >> RANK_SHIFT
        base = (cta << RANK_SHIFT) + SHARED_BASE
        if 0 <= cta < ctas and low >= base and max(lanes) >> RANK_SHIFT == cta:
            return {int(cta): tuple(int(one - base) for one in lanes)}
    found: dict[int, tuple[int, ...]] = {}
    for one in lanes:
        if generic:
            if not WINDOW <= one < WINDOW_END:
                continue
            one -= WINDOW
        cta, at = place_of(one)
        if ctas <= cta < MOST_RANKS and at >= 0:
            raise no_such_cta(cta, ctas)
        if not 0 <= cta < ctas or at < 0:
            return None
        found[int(cta)] = (*found.get(int(cta), ()), int(at))
    return found


@lru_cache(maxsize=1 << 12)
def first_odd(starts: tuple[int, ...], size: int) -> int | None:
    """The first that is not a multiple of the size."""
    return next((start for start in starts if start % size), None)
