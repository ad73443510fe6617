"""Matrix instructions with asynchronous operands: wgmma and tcgen05 (PTX ISA, "Asynchronous Warpgroup Level Matrix
Instructions", "TensorCore 5th Generation Family Instructions").

A shared descriptor reads the ranges that copies or stores have written and that contain its groups of rows. Tensor
memory has 128 lanes in parts of 32, or of 16 in a kernel with accesses of 16 lanes; a part's columns lie one after the
other.
"""

from pipesim.model import barrier as mbarrier
from pipesim.model.ops import Engine, Fence, Op, Space
from pipesim.model.tables import WARP_GROUP
from pipesim.ptx.emit.record import wgmma_groups
from pipesim.ptx.emulate.accesses import flush, overlap, read, record, transfer, write
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects.copies import within
from pipesim.ptx.emulate.effects.mbarriers import places
from pipesim.ptx.emulate.effects.operands import (
    OperandShape,
    groups,
    of_tcgen05,
    of_wgmma,
    one_of,
    shared_place,
    takes,
    unknown_form,
)
from pipesim.ptx.emulate.lanes.exchanges import LaneEvent
from pipesim.ptx.emulate.memory import SHARED_BASE
from pipesim.ptx.emulate.stop import EmulationStop, IllegalOperand, Status, around
from pipesim.ptx.emulate.tensor_allocations import COLUMNS
from pipesim.ptx.emulate.values import PerLane, lanes_in, leaf_of
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.text.instruction import Address, Immediate, Vector

_COLUMNS_OF_A = 8  #: of the operand A in tensor memory: one step of K is 32 bytes a row; as many are shifted
_HALVED = ("16x64b", "16x128b", "16x256b", "16x32bx2")  #: shapes of which a warp's access touches 16 lanes of its 32
_MOST_OF_GROUP = 1_024  #: bytes from the first to the last of a group of an operand
_LEADING = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 1}
_COPIED = {"128x256b": 8, "4x256b": 8, "128x128b": 4, "64x128b": 4, "32x128b": 4}


def wgmma(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``wgmma``: a product, a group of products, or a wait for groups."""
    each = step.instruction
    if each.has("commit_group"):
        record(cluster, warp, each.position, Op.COMMIT, Engine.WGMMA, -1)
        cluster.closed[warp.agent] += 1
    elif each.has("wait_group"):
        groups = one_of(warp, step.get(0, warp), "the number of groups")
        record(cluster, warp, each.position, Op.WAIT_GROUP, Engine.WGMMA, groups)
        _wait_for_group(cluster, warp, cluster.closed[warp.agent] - groups)
    elif each.has("mma_async"):
        if each.position in cluster.code.read_early and not warp.maybe:
            stream = cluster.recorder.streams[warp.agent]
            stream.products[each.position] = len(wgmma_groups(stream))
        for index in (1, 2):
            if not isinstance(each.operands[index], Vector):
                _read_described(cluster, warp, step, index, Engine.WGMMA, (warp.cta,), of_wgmma(each, index))
        if step.valued:
            cluster.forget_results(warp, step, f"the result of {each.mnemonic}")


def _wait_for_group(cluster: Cluster, warp: EmulatedWarp, closed: int) -> None:
    """Products are those of a whole warp group: each of its warps that runs must have closed as many groups."""
    group = warp.cta, warp.number // WARP_GROUP
    others = [each for each in cluster.warps if (each.cta, each.number // WARP_GROUP) == group]

    def done() -> bool:
        running = (each.agent for each in others if each.status in (Status.READY, Status.BLOCKED))
        return all(cluster.closed[agent] >= closed for agent in running)

    if not done():
        warp.block(done)


def _read_described(
    cluster: Cluster,
    warp: EmulatedWarp,
    step: DecodedStep,
    index: int,
    engine: Engine,
    ctas: tuple[int, ...],
    shape: OperandShape | None,
) -> None:
    """The shared memory that a descriptor describes is read: without a ``shape`` only what holds its address."""
    each = step.instruction
    value = step.get(index, warp)
    if leaf_of(value) is not None:
        cluster.may_touch(warp, each.position, "a descriptor that is not known", writes=False)
        return
    descriptor = one_of(warp, value, "a descriptor")
    offset = ((descriptor & 0x3FFF) << 4) - SHARED_BASE
    starts = (0,) if shape is None else groups(descriptor, shape, tcgen05=engine == Engine.TCGEN05)
    flush(cluster, warp)
    for cta in ctas:
        there = cluster.items[cta].around(offset)
        if there is None:
            why = "a descriptor of memory that nothing has written"
            reach = around(cluster.code.function.shared, max(offset, 0))
            cluster.may_touch(warp, each.position, why, writes=False, reach=reach)
            continue
        found = [there]
        for at in starts:
            if not found[-1][0] <= offset + at < found[-1][1] and (more := cluster.items[cta].around(offset + at)):
                found.append(more)
        if shape is not None:  # also what was written between these by itself
            hull, tcgen05_ = (offset + starts[0], offset + starts[-1] + _MOST_OF_GROUP), engine == Engine.TCGEN05
            for part in cluster.items[cta].inside(*hull):
                low, high = part[0] + SHARED_BASE, part[1] + SHARED_BASE
                known = part[2] < 0 or any(first <= part[0] < end for first, end, _ in found)
                if not known and takes(descriptor, shape, low, high, tcgen05=tcgen05_):
                    found.append((*part[:2], -1))
        for first, end, item in dict.fromkeys(found):
            access = cluster.recorder.access(Space.SHARED, cta, first, end - first)
            transfer(cluster, warp, each.position, Op.TRANSFER_READ, engine, access, end - first, item)


def tcgen05(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """Any ``tcgen05`` instruction, by its first modifier."""
    each, kind = step.instruction, step.instruction.modifiers[0]
    allocations = cluster.columns[warp.cta]
    if (group := next((m for m in each.modifiers if m.startswith("cta_group::")), "")) and not warp.maybe:
        allocations.have_group(group, each.position)
    if kind == "relinquish_alloc_permit":
        allocations.relinquish()
    elif kind in _FENCES:
        record(cluster, warp, each.position, Op.FENCE, _FENCES[kind], 0)
    elif kind in _SETTLES:
        settle(cluster, warp, loads=_SETTLES[kind])
    else:
        _TCGEN05.get(kind, unknown_form)(cluster, warp, step)


def _pair(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> tuple[int, ...]:
    """The CTAs whose memory an instruction works on: both of the pair with ``.cta_group::2``."""
    if step.instruction.has("cta_group::2") and cluster.ctas > 1:
        return (warp.cta & ~1, warp.cta | 1)
    return (warp.cta,)


def _mma(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    each = step.instruction
    warp.uncommitted |= warp.mask
    ctas = _pair(cluster, warp, step)
    described = 4 if each.has("sp") else 3  # after the metadata of a sparse matrix
    a_in_tensor = isinstance(each.operands[1], Address)
    target = one_of(warp, step.get(0, warp), "the tensor memory of a product")
    instruction = step.get(described, warp)
    columns = COLUMNS - (target & 0xFFFF) % COLUMNS
    rows = 128
    if isinstance(instruction, int):
        columns = max((instruction >> 17 & 0x3F) << 3, 8)
        rows = (instruction >> 24 & 0x1F) << 4
        if each.has("ws") and 0 < rows < 128:  # the rows are in each part of the lanes, with a part of the columns
            columns, rows = columns * rows // 128, 128
    else:
        columns = cluster.columns_around(warp.cta, target & 0xFFFF, columns)
        cluster.notes.inferred[each.position] = "the columns of a product whose descriptor is not known"
    for index in (1, 2):
        shape = of_tcgen05(each, index, instruction) if isinstance(instruction, int) else None
        if index == 1 and a_in_tensor:
            source = one_of(warp, step.get(1, warp), "the tensor memory of a product")
            for cta in ctas:
                _tensor_transfer(cluster, warp, step, Op.TRANSFER_READ, cta, source, _COLUMNS_OF_A)
        else:
            _read_described(cluster, warp, step, index, Engine.TCGEN05, ctas, shape)
    for index in range(3, len(each.operands)):
        if isinstance(each.operands[index], Address):  # metadata of a sparse matrix, and scales: a column at least
            source = one_of(warp, step.get(index, warp), "the tensor memory of scales")
            for cta in ctas:
                _tensor_transfer(cluster, warp, step, Op.TRANSFER_READ, cta, source, 1)
    for cta in ctas:
        _tensor_transfer(cluster, warp, step, Op.TRANSFER_WRITE, cta, target, columns, rows)


def _tensor_transfer(
    cluster: Cluster,
    warp: EmulatedWarp,
    step: DecodedStep,
    op: Op,
    cta: int,
    address: int,
    columns: int,
    rows: int = 128,
) -> None:
    """A product reads or writes this many columns in all four quarters."""
    column = address & 0xFFFF
    flush(cluster, warp)
    if not step.instruction.has("dealloc") and not warp.maybe:
        known = op == Op.TRANSFER_WRITE and step.instruction.position not in cluster.notes.inferred
        cluster.columns[cta].use(column, columns if known else 1, step.instruction.position)
    item = -1
    if op == Op.TRANSFER_WRITE:
        key = (warp.agent, cta, column, columns)
        item = cluster.item() if step.instruction.has("cp") else cluster.product_item(warp, key)
    lanes = part_lanes(cluster)
    halves = rows == 64 and lanes == 16  # one half of each warp's lanes
    upper = address >> 20 & 1
    for part in range(128 // lanes):
        if halves and part % 2 != upper:
            continue
        first, end = _columns(part, lanes, column, columns)
        if op == Op.TRANSFER_WRITE:
            cluster.tensor[cta].store(first, end, item)
            access = cluster.recorder.access(Space.TENSOR, cta, first, end - first)
            transfer(cluster, warp, step.instruction.position, op, Engine.TCGEN05, access, end - first, item)
            continue
        for low, high, held in cluster.tensor[cta].inside(first, end):
            access = cluster.recorder.access(Space.TENSOR, cta, low, high - low)
            transfer(cluster, warp, step.instruction.position, op, Engine.TCGEN05, access, high - low, held)


def _commit(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    each = step.instruction
    (place, lanes), *others = places(cluster, warp, step, 0).items()
    if others or lanes & (lanes - 1):
        raise EmulationStop("several lanes commit in one instruction")
    if warp.uncommitted & ~warp.mask:
        cluster.notes.undefined[each.position] = "it commits nothing of what another lane has issued"
    warp.uncommitted &= ~warp.mask
    mask = one_of(warp, step.get(1, warp), "the mask of a multicast") if len(each.operands) > 1 else 0
    within(cluster, mask)
    ranks = [r for r in range(cluster.ctas) if mask >> r & 1] if mask else [place[0]]
    bars = [(rank, place[1]) for rank in ranks]
    for bar in bars:
        cluster.recorder.barrier(bar)
        warp.exchanges.happens(LaneEvent.ARRIVE, warp.mask, bar, cluster.barrier(bar).done)
    number = cluster.recorder.barrier(place)
    if mask:
        record(cluster, warp, each.position, Op.COMMIT_MULTICAST, Engine.TCGEN05, number, mask)
    else:
        record(cluster, warp, each.position, Op.COMMIT, Engine.TCGEN05, number)
    for bar in bars:

        def land(bar: tuple[int, int] = bar) -> None:
            cluster.effect(bar, mbarrier.arrive(cluster.barrier(bar), 1))

        cluster.fly(warp.agent, each.position, land)


def part_lanes(cluster: Cluster) -> int:
    """Lanes of tensor memory in a part: what every access covers whole."""
    if not cluster.tensor_lanes:
        body = cluster.code.body
        halved = any(each.opcode == "tcgen05" and each.has_any(*_HALVED) for each in body)
        cluster.tensor_lanes = 16 if halved else 32
    return cluster.tensor_lanes


def _columns(part: int, lanes: int, column: int, columns: int) -> tuple[int, int]:
    """The bytes of this many columns of a part, 4 for each lane and column."""
    first = (part * COLUMNS + column) * lanes * 4
    return first, first + columns * lanes * 4


_LANE = "add 32 times the warp's number modulo 4 to the lane, the upper half of the address"


def _ranges(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, address: int) -> list[tuple[int, int]]:
    """The bytes of tensor memory that a load or store of a warp touches."""
    each = step.instruction
    lanes = part_lanes(cluster)
    shape = next((m for m in each.modifiers if m in _LEADING), "")
    times = next((int(m[1:]) for m in each.modifiers if m[:1] == "x" and m[1:].isdigit()), 1)
    columns = _LEADING.get(shape, 1) * times
    column = address & 0xFFFF
    if not warp.maybe:
        cluster.columns[warp.cta].use(column, 1 if each.has_any("pack::16b", "unpack::16b") else columns, each.position)
    lane, own = address >> 16, warp.number % 4 * 32
    if not own <= lane < own + 32:
        said = f"warp {warp.number} accesses lane {lane} of tensor memory, and reaches only {own} to {own + 31}"
        if lane // 32 and not own <= lane % 128 < own + 32:
            raise IllegalOperand(said, _LANE)
        cluster.notes.own_lanes.setdefault(each.position, (warp.agent, said, _LANE))
        lane = own + lane % 32
    if shape == "16x32bx2":
        split = next(o.value for o in reversed(each.operands) if isinstance(o, Immediate))
        part = lane // lanes
        return [_columns(part, lanes, column, columns), _columns(part, lanes, column + split, columns)]
    if shape in _HALVED:
        return [_columns(lane // lanes, lanes, column, columns)]
    parts = range(lane // 32 * 32 // lanes, (lane // 32 + 1) * 32 // lanes)
    return [_columns(part, lanes, column, columns) for part in parts]


def _load(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``tcgen05.ld``: it reads from here on until ``tcgen05.wait::ld``, so that a read is recorded at both.

    Where its registers are used without that wait it has ended then, which the report states as an assumption.
    """
    each = step.instruction
    address = one_of(warp, step.get(1, warp), "an address of tensor memory")
    ranges = _ranges(cluster, warp, step, address)
    stored = [one for maybe, _, written in warp.tensor_writes if not maybe for one in written]
    if not warp.maybe and any(overlap(one, other) for one in stored for other in ranges):
        cluster.notes.undefined[each.position] = "it loads what tcgen05.st stores before tcgen05.wait::st"
    read(cluster, warp, (Space.TENSOR, warp.cta), ranges, each.position)
    if each.position not in cluster.code.loaded_at_once:
        warp.tensor_reads.append((warp.maybe, each.position, ranges))
    if step.valued:
        cluster.forget_results(warp, step, "a word of tensor memory")


def _store(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    address = one_of(warp, step.get(0, warp), "an address of tensor memory")
    ranges = _ranges(cluster, warp, step, address)
    warp.tensor_writes.append((warp.maybe, step.instruction.position, ranges))


def settle(cluster: Cluster, warp: EmulatedWarp, *, loads: bool) -> None:
    """``tcgen05.wait``: what the warp has loaded, or stored, in tensor memory is done."""
    where = Space.TENSOR, warp.cta
    issued = warp.tensor_reads if loads else warp.tensor_writes
    waited = [each for each in issued if each[0] >= warp.maybe]  # a wait that may not run is none for what is sure to
    issued[:] = [each for each in issued if each[0] < warp.maybe]
    for _, position, ranges in waited:
        if loads:
            read(cluster, warp, where, ranges, position)
        else:
            write(cluster, warp, where, ranges, [first for first, _ in ranges], None, position)


def _copy(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``tcgen05.cp``: shared memory into columns of tensor memory, until a commit arrives, as of a product."""
    each = step.instruction
    warp.uncommitted |= warp.mask
    ctas = _pair(cluster, warp, step)
    target = one_of(warp, step.get(0, warp), "the tensor memory of a copy")
    columns = next((_COPIED[m] for m in each.modifiers if m in _COPIED), 8)
    _read_described(cluster, warp, step, 1, Engine.TCGEN05, ctas, None)
    for cta in ctas:
        _tensor_transfer(cluster, warp, step, Op.TRANSFER_WRITE, cta, target, columns)


def _shift(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``tcgen05.shift``: 32 bytes of each lane go to the lane before, until a commit arrives."""
    warp.uncommitted |= warp.mask
    target = one_of(warp, step.get(0, warp), "the tensor memory that is shifted")
    for cta in _pair(cluster, warp, step):
        _tensor_transfer(cluster, warp, step, Op.TRANSFER_READ, cta, target, _COLUMNS_OF_A)
        _tensor_transfer(cluster, warp, step, Op.TRANSFER_WRITE, cta, target, _COLUMNS_OF_A)


def _dealloc(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``tcgen05.dealloc``: the columns may be another's now, so that no warp may use them: a write of all."""
    each = step.instruction
    address = one_of(warp, step.get(0, warp), "the tensor memory that is released")
    columns = one_of(warp, step.get(1, warp), "the columns that are released")
    first, size = address & 0xFFFF, part_lanes(cluster) * 4
    issued = [one for maybe, _, ranges in (*warp.tensor_reads, *warp.tensor_writes) if not maybe for one in ranges]
    if any(first <= start // size % COLUMNS < first + columns for start, _ in issued):
        cluster.notes.undefined[each.position] = "it releases columns that are loaded or stored before tcgen05.wait"
    cluster.columns[warp.cta].release(address & 0xFFFF, columns, each.position, warp.number)
    _tensor_transfer(cluster, warp, step, Op.TRANSFER_WRITE, warp.cta, address, columns)
    record(cluster, warp, each.position, Op.COMMIT, Engine.TCGEN05, -1)
    record(cluster, warp, each.position, Op.WAIT_GROUP, Engine.TCGEN05, 0)


def _alloc(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``tcgen05.alloc``: the address of the columns is stored in shared memory."""
    each = step.instruction
    columns = one_of(warp, step.get(1, warp), "the columns of an allocation")
    where = step.get(0, warp)
    if isinstance(where, PerLane):
        where = where.each[lanes_in(warp.mask)[0]]
    cta, offset = shared_place(one_of(warp, where, "where an allocation is published"), cluster.ctas)
    address = cluster.columns[warp.cta].allocate(columns, each.position, warp.number)
    cluster.bytes[cta].store(offset, 4, address)
    # A write of the tensor unit, done when the instruction is: a thread's store would need a proxy fence.
    item = cluster.item(("allocated", address))
    cluster.items[cta].store(offset, offset + 4, item)
    access = cluster.recorder.access(Space.SHARED, cta, offset, 4)
    record(cluster, warp, each.position, Op.TRANSFER_WRITE, Engine.TCGEN05, access, 4, item)
    record(cluster, warp, each.position, Op.COMMIT, Engine.TCGEN05, -1)
    record(cluster, warp, each.position, Op.WAIT_GROUP, Engine.TCGEN05, 0)


_FENCES = {"fence::before_thread_sync": Fence.TCGEN05_BEFORE, "fence::after_thread_sync": Fence.TCGEN05_AFTER}
_SETTLES = {"wait::ld": True, "wait::st": False}
_TCGEN05 = {
    "mma": _mma, "commit": _commit, "ld": _load, "st": _store, "cp": _copy, "shift": _shift, "alloc": _alloc,
    "dealloc": _dealloc,
}  # fmt: skip
