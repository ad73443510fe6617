"""Asynchronous copies (PTX ISA, "Data Movement: Asynchronous copy", "cp.async.bulk", "cp.async.bulk.tensor").

A copy into shared memory is recorded with the mbarrier that counts its bytes; it lands when no other warp can continue.
Its bytes are an operand, or those of the tensor map's box; for a map of which the launch does not give it see
:mod:`pipesim.ptx.emulate.boxless`.
"""

from collections.abc import Sequence
from functools import lru_cache

from pipesim.errors import LaunchFileError
from pipesim.model.ops import Engine, Op, Space
from pipesim.model.tables import LEAST_COPY, OPEN_VALUE, OPEN_WORD, SIZE_INFERRED, SIZE_UNKNOWN
from pipesim.ptx.emit.record import Place
from pipesim.ptx.emulate.accesses import copy, flush, read, record, transfer
from pipesim.ptx.emulate.boxless import LandedCopy, map_key
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects.loads import store_value
from pipesim.ptx.emulate.effects.operands import barrier_place, by_lane, bytes_of, check_alignment, one_of, shared_place
from pipesim.ptx.emulate.effects.tensor_maps import PARAMETER_SPACE, use_map, written_bytes
from pipesim.ptx.emulate.lanes.exchanges import lanes_at, note_exchange
from pipesim.ptx.emulate.map_fences import place_of_map
from pipesim.ptx.emulate.memory import merge_ranges
from pipesim.ptx.emulate.stop import EmulationStop, IllegalOperand
from pipesim.ptx.emulate.values import Value, lanes_in, leaf_of, of_lane
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.flow.opcodes import RANKS
from pipesim.ptx.free.varying import identity
from pipesim.ptx.launch.image import PARAMETERS
from pipesim.ptx.launch.values import TensorMap
from pipesim.ptx.text.instruction import Instruction, TensorAddress, Vector

_BULK_BYTES = 16  #: addresses and bytes of bulk copies are multiples of it (PTX ISA, "cp.async.bulk")
_BOX_BYTES = 128  #: those of a tensor copy in shared memory (PTX ISA, "cp.async.bulk.tensor")


def copy_instruction(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``cp``: a copy, a group of copies, or a wait for groups."""
    each = step.instruction
    if each.position in cluster.misaligned:
        raise IllegalOperand(cluster.misaligned[each.position], _ALIGN)
    bulk = each.has("bulk")
    engine = Engine.BULK if bulk else Engine.CP_ASYNC
    if each.has_any("commit_group"):
        _commit(cluster, warp, step, engine)
    elif each.has_any("wait_group", "wait_all"):
        groups = one_of(warp, step.get(0, warp), "the number of groups") if each.operands else 0
        if each.has("wait_all"):
            _commit(cluster, warp, step, engine)
        if not bulk:
            warp.exchanges.copied(warp.mask, groups, warp.way)
        if each.has("read") and cluster.code.global_operations:
            return  # which leaves what they write incomplete
        if warp.groups[engine].wait(warp.mask, groups):
            record(cluster, warp, each.position, Op.WAIT_GROUP, engine, groups)
    elif each.has("prefetch"):
        return
    elif not bulk:
        _cp_async(cluster, warp, step)
    elif each.has("tensor"):
        _tensor(cluster, warp, step)
    else:
        _bulk(cluster, warp, step)


_ALIGN = "copy from and to aligned addresses; align of a launch file's pointer says what it is a multiple of (256)"


def _commit(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, engine: Engine) -> None:
    """A group of the copies of the lanes that commit."""
    if engine is Engine.CP_ASYNC:
        warp.exchanges.commit(warp.mask)
    if warp.groups[engine].commit(warp.mask):
        record(cluster, warp, step.instruction.position, Op.COMMIT, engine, -1)


_SIZES = (4, 8, 16)  #: of cp.async


def _cp_async(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``cp.async``: this many bytes at each lane's address, by a copy engine of its own."""
    each = step.instruction
    size = one_of(warp, step.get(2, warp), "the bytes of a copy")
    if size not in _SIZES:
        raise IllegalOperand(f"a copy of {size:,} bytes by one lane", "cp.async copies 4, 8 or 16 bytes")
    address = step.get(0, warp)
    if cluster.global_accesses is not None:
        cluster.on_global(warp, each, step.get(1, warp), size)
    if leaf_of(address) is not None:
        cluster.may_touch(warp, each.position, "an address that is not known", writes=True)
        return
    found: dict[int, list[tuple[int, int]]] = {}
    lanes: dict[int, int] = {}
    for lane, one in by_lane(warp, address, "the address of a copy").items():
        cta, at = shared_place(one, cluster.ctas)
        check_alignment(cluster, each.position, at, size, "a copy")
        found.setdefault(cta, []).append((at, at + size))
        lanes[cta] = lanes.get(cta, 0) | 1 << lane
    warp.groups[Engine.CP_ASYNC].issue(warp.mask)
    for cta, ranges in found.items():
        at_lanes = lanes_at(lanes[cta], (first for first, _ in ranges))
        if len({*ranges}) < len(ranges):
            cluster.notes.equal_stores.add(each.position)
        note_exchange(cluster.notes, each.position, warp.exchanges.copy(cta, at_lanes, size, warp.way))
        copy(cluster, warp, (Space.SHARED, cta), ranges, each.position)
        for first, end in ranges:
            cluster.bytes[cta].forget(first, end)


@lru_cache(maxsize=256)
def _writes_shared(modifiers: tuple[str, ...]) -> bool:
    spaces = [m for m in modifiers if m.startswith("shared") or m == "global"]
    return bool(spaces) and spaces[0].startswith("shared")


def _bulk(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk`` of a number of bytes."""
    each = step.instruction
    nbytes = step.get(2, warp)
    if _writes_shared(each.modifiers):
        mask = _multicast(cluster, warp, step, 4) if each.has("multicast::cluster") else 0
        for lane in lanes_in(warp.mask):
            size = one_of_lane(nbytes, lane, "the bytes of a copy")
            source = of_lane(step.get(1, warp), lane)
            _check_bytes(cluster, warp, step, size, source)
            if not size:
                continue
            cluster.on_global(warp, each, source, size)
            value = ("bulk", identity(source), size) if isinstance(source, int) else None
            land(cluster, warp, step, lane, 0, 3, size, mask, value)
        return
    for lane in lanes_in(warp.mask):
        size = one_of_lane(nbytes, lane, "the bytes of a copy")
        _check_bytes(cluster, warp, step, size, None)
        if size:
            if cluster.global_accesses is not None:
                cluster.on_global(warp, each, of_lane(step.get(0, warp), lane), size)
            _read_shared(cluster, warp, step, 1, lane, size)


def _check_bytes(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, size: int, source: Value) -> None:
    """The bytes of a bulk copy are a multiple of 16. ``source``: the address it reads from.

    A source in shared memory is read from the issue on until the mbarrier of the other CTA counts the bytes, which is
    not followed: what is written there later may come after it.
    """
    each = step.instruction
    if size % _BULK_BYTES:
        said = f"a bulk copy of {size:,} bytes, not a multiple of {_BULK_BYTES}"
        raise IllegalOperand(said, f"copy a multiple of {_BULK_BYTES} bytes")
    if sum(m.startswith("shared") for m in each.modifiers) > 1 and isinstance(source, int):
        cta, at = shared_place(source, cluster.ctas)
        read(cluster, warp, (Space.SHARED, cta), [(at, at + size)], each.position)
        flush(cluster, warp)
        for low, high, item in cluster.items[cta].inside(at, at + size):
            access = cluster.recorder.access(Space.SHARED, cta, low, high - low)
            transfer(cluster, warp, each.position, Op.TRANSFER_READ, Engine.BULK, access, high - low, item)
            cluster.recorder.may_not_be(warp.agent, OPEN_VALUE)
        cluster.notes.left_out.setdefault(each.position, _HOW_LONG)
        cluster.recorder.sources[(cta, at, at + size)] = each.position


_HOW_LONG = "how long it reads its source in shared memory"


def one_of_lane(value: Value, lane: int, what: str) -> int:
    """A known integer of one lane."""
    one = of_lane(value, lane)
    if not isinstance(one, int):
        raise EmulationStop(f"{what} is not known", leaf_of(one))
    return int(one)


def _multicast(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, index: int) -> int:
    return within(cluster, one_of(warp, step.get(index, warp), "the mask of a multicast") & 0xFFFF)


def within(cluster: Cluster, mask: int) -> int:
    """A mask of CTAs. EmulationStop if it names one that the cluster does not have."""
    if mask >> cluster.ctas:
        said = f"a multicast to the CTAs {mask:#b} of a cluster of {cluster.ctas}"
        raise IllegalOperand(said, f"a mask has only the lowest {cluster.ctas} bits")
    return mask


def _tensor(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``cp.async.bulk.tensor`` in both directions, and ``cp.reduce.async.bulk.tensor``."""
    each = step.instruction
    at = next(i for i, operand in enumerate(each.operands) if isinstance(operand, TensorAddress))
    map_address, coordinates = step.tensor(at, warp)
    if cluster.code.changes_maps:
        use_map(cluster, warp, each, map_address)
    sources: set[tuple[object, object]] = set()  #: that another lane reads for a copy by the same map: they count once
    for lane in lanes_in(warp.mask):
        where = of_lane(map_address, lane)
        if isinstance(where, int) and where < PARAMETER_SPACE:
            where += PARAMETERS  # an address in the parameters' own space
        size = _box_bytes(cluster, where, each)
        key = None if size else map_key(each, where)
        rows = 4 if each.has("tile::gather4") else 1  # four rows of the box where rows are gathered one by one
        load = _writes_shared(each.modifiers)
        if key is not None:
            cluster.boxless.use(each, key, 2 if rows > 1 or each.has("im2col") else len(coordinates), load=load)
            size = cluster.boxless.sizes.get(key, 0)
        corner = tuple(of_lane(c, lane) for c in coordinates)
        known = isinstance(where, int) and all(isinstance(c, int) for c in corner)
        if cluster.global_accesses is not None:
            _note_box(cluster, warp, each, where, corner)
        if load:
            value = (where, tuple(map(identity, corner)), each.modifiers) if known else None
            extra = _cta_mask(cluster, warp, step)
            boxless = None if key is None else LandedCopy(key, each.position, rows)
            land(cluster, warp, step, lane, 0, 2, rows * (size or LEAST_COPY), extra, value, boxless)
            continue
        source = of_lane(step.get(1 - at, warp), lane)
        if isinstance(where, int) and isinstance(source, int):
            if (identity(where), identity(source)) in sources:
                continue
            sources.add((identity(where), identity(source)))
        found = cluster.image.tensor_map(where) if isinstance(where, int) and not each.has_any(*_NOT_TILED) else None
        if found is not None and place_of_map(where) in cluster.maps.changes:
            found = TensorMap("u8", box=(size,))  # of which the kernel may have changed the rest
        box = None if found is None or key is not None else (found, corner)
        _read_shared(cluster, warp, step, 1 - at, lane, rows * size, box, boxless=key is not None)


def _note_box(
    cluster: Cluster, warp: EmulatedWarp, each: Instruction, where: Value, corner: tuple[Value, ...]
) -> None:  # fmt: skip
    """What a tensor copy does to global memory: a box of the map's tensor, where it is a plain one of a known map."""
    accesses = cluster.global_accesses
    assert accesses is not None
    if cluster.launch_events is not None:
        cluster.launch_events.access(warp, each, where, sure=not warp.maybe and not warp.has_two_ways)
    given = cluster.image.tensor_map(int.__int__(where)) if isinstance(where, int) else None
    plain = given is not None and not given.pixels and not each.has_any(*_NOT_TILED) and given.element_strides == ()
    box = given.box if given is not None and plain and len(given.box) == len(corner) else ()
    accesses.add_box(warp.agent, each, where, corner, box, sure=not warp.maybe and not warp.has_two_ways)


#: Copies of other bytes than those of one box.
_NOT_TILED = ("im2col", "im2col::w", "im2col::w::128", "im2col_no_offs", "tile::gather4", "tile::scatter4")


def _box_bytes(cluster: Cluster, where: Value, each: Instruction) -> int:
    """The bytes of a box of the map at this address, as the launch gives them or the kernel writes them; else 0.

    LaunchFileError if the box has not as many dimensions as the instruction.
    """
    if not isinstance(where, int):
        return 0
    found = cluster.image.tensor_map(where)
    written = written_bytes(cluster, where, found)
    if found is None or written >= 0:
        return max(written, 0)
    rank = next((int(m[0]) for m in each.modifiers if m in RANKS), len(found.box))
    if found.box_bytes and not found.pixels and len(found.box) != rank:
        raise LaunchFileError(
            f"the box of the tensor map at {cluster.image.place_of_map(where)[0] or hex(where)} has "
            f"{len(found.box)} dimension{'s' if len(found.box) > 1 else ''}, and {each.mnemonic} copies {rank}",
            place=f"line {each.line} of the PTX",
            correction="give the box a size for each dimension, the innermost one first"
            + ', or the launch file the map\'s "pixels", with its channels as "box"' * each.has("im2col"),
        )
    return found.box_bytes


def _cta_mask(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> int:
    """The mask of a multicast: the operand after the mbarrier, or after the offsets of im2col; 0 without one."""
    each = step.instruction
    if not each.has("multicast::cluster"):
        return 0
    rest = range(3, len(each.operands))
    at = next(i for i in rest if step.getters[i] is not None and not isinstance(each.operands[i], Vector))
    return _multicast(cluster, warp, step, at)


def land(
    cluster: Cluster,
    warp: EmulatedWarp,
    step: DecodedStep,
    lane: int,
    to: int,
    counted: int,
    nbytes: int,
    mask: int,
    value: object,
    boxless: LandedCopy | None = None,
) -> None:
    """A copy into shared memory, counted by an mbarrier. ``boxless``: by a map whose box is not known."""
    each = step.instruction
    cta, offset = shared_place(one_of_lane(step.get(to, warp), lane, "the address of a copy"), cluster.ctas)
    _check_place(cluster, step, offset)
    if boxless is None:
        _check_end(cluster, offset, nbytes)
    bar = barrier_place(cluster, each.position, one_of_lane(step.get(counted, warp), lane, "the mbarrier of a copy"))
    if bar[0] != cta and each.has("tensor") and not each.has("cta_group::2"):
        # PTX wants it in the CTA where the copy lands; Mojo clears the rank's lowest bit also here
        bar = (cta, bar[1])
        cluster.notes.policies[each.position] = (
            "a copy signals the mbarrier at the same place in the CTA where it lands"
        )
    _order_lanes(cluster, warp, step, lane, (cta, offset), nbytes, writes=True)
    ranks = [r for r in range(cluster.ctas) if mask >> r & 1] if mask else [cta]
    item = cluster.item(None if value is None else ("copy", value))
    where = [(rank, _signalled_barrier(bar, cta, rank)) for rank in ranks]
    flush(cluster, warp)
    for rank, place in where:
        cluster.recorder.barrier(place)
        cluster.recorder.access(Space.SHARED, rank, offset, nbytes)
        if each.has("reduce"):
            _reduce(cluster, each, (rank, offset), nbytes, item)
        cluster.items[rank].store(offset, offset + nbytes, item)
        cluster.bytes[rank].forget(offset, offset + nbytes)
    access = cluster.recorder.access(Space.SHARED, cta, offset, nbytes)
    operands = (cluster.recorder.barrier(bar), access, nbytes, item, mask)
    record(cluster, warp, each.position, Op.TMA_LOAD, *operands)
    if boxless is not None:
        cluster.boxless.issued.setdefault(warp.agent, []).append(boxless)
        cluster.boxless.counted |= {place for _, place in where}
        cluster.recorder.may_not_be(warp.agent, _note_size(cluster, each, boxless.key, nbytes))
    cluster.boxless.begins(offset, None if boxless is None else boxless.key)
    for _, place in where:
        cluster.land_on(warp.agent, each.position, place, nbytes, boxless)


def _order_lanes(
    cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, lane: int, place: Place, nbytes: int, *, writes: bool
) -> None:  # fmt: skip
    """Of several lanes that copy by one instruction each has met those that have accessed the bytes of its copy."""
    if warp.mask & (warp.mask - 1):
        lanes = lanes_at(1 << lane, [place[1]])
        found = warp.exchanges.order(place[0], lanes, nbytes, warp.way, writes=writes)
        note_exchange(cluster.notes, step.instruction.position, found)


def _check_place(cluster: Cluster, step: DecodedStep, offset: int) -> None:
    """Where a copy reads or writes shared memory (PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor")."""
    multiple = _BOX_BYTES if step.instruction.has("tensor") else _BULK_BYTES
    if offset % multiple:
        what = "a tensor copy" if multiple == _BOX_BYTES else "a bulk copy"
        check_alignment(cluster, step.instruction.position, offset, multiple, what)


def _check_end(cluster: Cluster, offset: int, nbytes: int) -> None:
    """IllegalOperand if a copy goes beyond the CTA's shared memory, of which the launch says how much there is."""
    shared, dynamic = cluster.code.function.shared, cluster.launch.dynamic_shared
    last = cluster.code.function.shared_bytes(dynamic)
    if offset + nbytes > last and (dynamic or not any(each.external for each in shared)):
        said = f"a copy of bytes {offset:,} to {offset + nbytes:,} of shared memory, of which a CTA has {last:,}"
        raise IllegalOperand(said, "correct its place or size, or the dynamic_shared_bytes of the launch file")


def _note_size(cluster: Cluster, each: Instruction, key: object, nbytes: int) -> int:
    """Say where the bytes of a copy come from; how far they are known."""
    if key in cluster.boxless.open or key not in cluster.boxless.sizes:
        return SIZE_UNKNOWN
    phases = (
        "first phases of its mbarriers; no box fits all" if cluster.boxless.none_fits else "phases of its mbarriers"
    )
    cluster.notes.inferred[each.position] = f"{nbytes:,} bytes of a copy, from the {phases}"
    return SIZE_INFERRED


def _signalled_barrier(bar: Place, issued: int, rank: int) -> Place:
    """The mbarrier that counts what lands in the CTA of this rank: as ``Program.at_rank`` says."""
    return (rank if bar[0] == issued else rank & ~1 | bar[0] & 1, bar[1])


def _read_shared(
    cluster: Cluster,
    warp: EmulatedWarp,
    step: DecodedStep,
    at: int,
    lane: int,
    nbytes: int,
    box: tuple[TensorMap, tuple[Value, ...]] | None = None,
    *,
    boxless: bool = False,
) -> None:
    """A copy that reads shared memory until its group is complete.

    ``box``: the map and the corner of what it stores; bytes that lie outside of the tensor need not have been written.
    ``boxless``: by a map whose box is not known: it reads the first bytes, and perhaps all that was written there.
    """
    each = step.instruction
    address = one_of_lane(step.get(at, warp), lane, "the address of a copy")
    cta, offset = shared_place(address, cluster.ctas)
    _check_place(cluster, step, offset)
    if not boxless:
        _check_end(cluster, offset, nbytes)
    flush(cluster, warp)
    if not nbytes:
        around = cluster.items[cta].around(offset)
        nbytes = max(around[1] - offset, LEAST_COPY) if around is not None else LEAST_COPY
    _order_lanes(cluster, warp, step, lane, (cta, offset), nbytes, writes=False)
    warp.groups[Engine.BULK].issue(1 << lane)
    if cluster.code.global_operations:
        return  # when the source may be used again is checked without them
    inside: Sequence[tuple[int, int]] = [(0, nbytes)]
    sure = True
    for low, high, item in cluster.items[cta].inside(offset, offset + nbytes):
        if item < 0 and box is not None:
            (inside, sure), box = box[0].bytes_inside(box[1]), None
        for first, end in inside if item < 0 else [(0, nbytes)]:
            first, end = max(low, offset + first), min(high, offset + end)
            if first >= end:
                continue
            access = cluster.recorder.access(Space.SHARED, cta, first, end - first)
            new = transfer(cluster, warp, each.position, Op.TRANSFER_READ, Engine.BULK, access, end - first, item)
            if new and (boxless or (item < 0 and not sure)):
                cluster.recorder.may_not_be(warp.agent, SIZE_INFERRED if boxless and low == offset else OPEN_WORD)
                cluster.notes.left_out |= {} if boxless else {each.position: _OUTSIDE}


_OUTSIDE = "bytes of its box that nothing has written, of which it is not known whether they lie outside of its tensor"


def store_async(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``st.async`` and ``red.async``: each lane's bytes are counted by an mbarrier of the CTA where they land.

    Bytes of several lanes that lie one after the other are one copy. PTX does not name these stores among the
    operations of the asynchronous proxy (PTX ISA, "st.async", "red.async", "Async proxy").
    """
    each = step.instruction
    values, part = step.get(1, warp), bytes_of(each.modifiers[-1])
    values = values if isinstance(values, list) else [values]
    size = part * len(values)
    found: dict[tuple[Place, int], list[int]] = {}
    stored: list[tuple[int, int]] = []
    for lane in lanes_in(warp.mask):
        to, counted = (one_of_lane(step.get(i, warp), lane, what) for i, what in _STORED)
        cta, offset = shared_place(to, cluster.ctas)
        check_alignment(cluster, each.position, offset, size, "a store")
        found.setdefault((barrier_place(cluster, each.position, counted), cta), []).append(offset)
        stored.append((to, lane))
    for (bar, cta), offsets in found.items():
        together = merge_ranges([(first, first + size) for first in offsets])
        apart = sum(end - first for first, end in together) == size * len(offsets)
        for first, end in together if apart else [(first, first + size) for first in offsets]:
            _put(cluster, warp, step, (cta, first), bar, end - first)
        if not apart or each.opcode == "red":
            stored.clear()
    for at, lane in stored:
        for i, value in enumerate(values):
            store_value(cluster, warp, "shared", at + i * part, part, of_lane(value, lane))


_STORED = ((0, "the address of a store"), (2, "the mbarrier of a store"))


def _put(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, place: Place, bar: Place, size: int) -> None:
    """Bytes of lanes that land at a place and that an mbarrier counts."""
    each, (cta, offset) = step.instruction, place
    flush(cluster, warp)
    item = cluster.item()
    if each.opcode == "red":
        _reduce(cluster, each, place, size, item)
    cluster.items[cta].store(offset, offset + size, item)
    cluster.bytes[cta].forget(offset, offset + size)
    access = cluster.recorder.access(Space.SHARED, cta, offset, size)
    record(cluster, warp, each.position, Op.TMA_LOAD, cluster.recorder.barrier(bar), access, size, item, 0)
    cluster.land_on(warp.agent, each.position, bar, size)


def _reduce(cluster: Cluster, each: Instruction, place: Place, size: int, item: int) -> None:
    """A reduction into these bytes: several come in any order, each as a whole, which the program does not have."""
    cta, offset = place
    held = {held for _, _, held in cluster.items[cta].inside(offset, offset + size)}
    if not held.isdisjoint(cluster.reductions):
        cluster.notes.reductions.add(each.position)
    cluster.reductions.add(item)
