"""Matrices of shared and global memory that a warp loads or stores together (PTX ISA, "ldmatrix", "wmma.load")."""

import re

from pipesim.model.ops import Space
from pipesim.ptx.emulate.accesses import flush, read, write
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects.operands import NO_ADDRESS, address_of, check_alignment, may_touch, space_of, starts_of
from pipesim.ptx.emulate.lanes.exchanges import lanes_at, note_exchange
from pipesim.ptx.emulate.memory import runs
from pipesim.ptx.emulate.values import WARP, PerLane, lanes_in, lanes_of, leaf_of, of_lane
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.text.instruction import Instruction

_ROWS = {"x1": 8, "x2": 16, "x4": 32}
_ROW = 16  #: bytes of a row of a matrix


def load_matrix(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``ldmatrix``: rows of 16 bytes, each at one lane's address."""
    _matrix(cluster, warp, step, 1, stores=False)
    cluster.forget_results(warp, step, "a matrix loaded from shared memory")


def store_matrix(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``stmatrix``."""
    _matrix(cluster, warp, step, 0, stores=True)


def fragment(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``wmma.load`` and ``wmma.store``: a matrix of which each row, or column, begins a stride after the one before."""
    each = step.instruction
    stores, space = each.has("store"), space_of(each)
    at = 0 if stores else 1
    m, n, k = next(tuple(map(int, found.groups())) for found in map(_SHAPE.fullmatch, each.modifiers) if found)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(each.modifiers[1], (m, n))
    lines, length = (columns, rows) if each.has("col") else (rows, columns)
    bits = int(each.modifiers[-1].lstrip("abcdefghijklmnopqrstuvwxyz"))
    stride = step.get(at + 1 + stores, warp) if len(each.operands) > at + 1 + stores else length
    address = of_lane(address_of(cluster, warp, step, at, space), lanes_in(warp.mask)[0])
    if isinstance(stride, int):
        for line in range(lines):
            cluster.on_global(warp, each, address + line * stride * bits // 8, length * bits // 8)
    else:
        cluster.leave_open((each.position,), leaf_of(stride))
    if space == "global":
        cluster.forget_results(warp, step, "a matrix loaded from global memory")
        return
    starts = starts_of(cluster, warp, address, 1, space)
    if starts is None or not isinstance(stride, int):
        if space or not cluster.generic_is_global:
            cluster.may_touch(warp, each.position, NO_ADDRESS, writes=stores)
        starts, stride = {}, 0
    for cta, (start, *_) in starts.items():
        firsts = tuple(int(start + line * stride * bits // 8) for line in range(lines))
        _access(cluster, warp, each, cta, firsts, length * bits // 8, stores=stores)
    cluster.forget_results(warp, step, "a matrix loaded from shared memory")


_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)", re.ASCII)


def _matrix(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, at: int, *, stores: bool) -> None:
    each = step.instruction
    rows = next((_ROWS[m] for m in each.modifiers if m in _ROWS), 32)
    space = space_of(each)
    address = address_of(cluster, warp, step, at, space)
    if isinstance(address, PerLane) and rows < WARP:
        address = lanes_of(address.each[:rows] + address.each[:1] * (32 - rows))
    found = starts_of(cluster, warp, address, _ROW, space)
    if found is None:
        may_touch(cluster, warp, each, address, _ROW, writes=stores)
        return
    for cta, starts in found.items():
        for start in starts if any(start % _ROW for start in starts) else ():
            check_alignment(cluster, each.position, start, _ROW, "a row of a matrix")
        _access(cluster, warp, each, cta, starts, _ROW, stores=stores)


def _access(
    cluster: Cluster,
    warp: EmulatedWarp,
    each: Instruction,
    cta: int,
    starts: tuple[int, ...],
    size: int,
    *,
    stores: bool,
) -> None:
    """``size`` bytes from each of the starts on are read, or written with what is not known."""
    ranges = runs(starts, size)
    if not stores:
        read(cluster, warp, (Space.SHARED, cta), ranges, each.position)
        order = warp.exchanges.read(cta, lanes_at(warp.mask, starts, together=True), size, warp.way)
        note_exchange(cluster.notes, each.position, order)
        return
    if (Space.SHARED, cta) in warp.pending.copies:
        flush(cluster, warp)
    write(cluster, warp, (Space.SHARED, cta), ranges, starts, None, each.position)
    warp.exchanges.write_together(cta, starts, size, warp.way)
    for first, end in ranges:
        cluster.bytes[cta].forget(first, end)
