"""Ordinary loads, stores and atomics (PTX ISA, "Data Movement and Conversion Instructions", "atom", "red").

Known words are followed exactly; shared accesses are recorded as ranges of bytes; what is not known stays unknown.
"""

from collections.abc import Sequence

from pipesim.model.ops import Space
from pipesim.ptx.emulate.accesses import bounds, flush, overlap, read, write
from pipesim.ptx.emulate.arithmetic.integers import extended
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.data_answers import is_data
from pipesim.ptx.emulate.effects.operands import (
    NO_ADDRESS,
    address_of,
    bytes_of,
    check_alignment,
    exchange,
    first_odd,
    may_touch,
    one_of,
    space_of,
    starts_of,
    unknown,
)
from pipesim.ptx.emulate.global_memory.global_words import GlobalWords
from pipesim.ptx.emulate.memory import (
    LOCAL_WINDOW,
    LOCAL_WINDOW_END,
    RANK_SHIFT,
    WINDOW,
    WINDOW_END,
    in_shared,
    place_of,
    runs,
    to_generic,
)
from pipesim.ptx.emulate.values import (
    FULL,
    OpenAnswer,
    PerLane,
    Unknown,
    Value,
    are_known,
    at_most,
    integers,
    join_lanes,
    lanes_in,
    lanes_of,
    leaf_of,
    of_lane,
    same,
)
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.free.varying import identity
from pipesim.ptx.launch.image import PARAMETERS
from pipesim.ptx.text.instruction import Instruction, Operand, Register, Sink, Vector

_OF_ALL = ("global", "")  #: spaces of accesses that may be to global memory, and to shared memory:
_SHARED = ("shared", "shared::cta", "shared::cluster", "")
_WORD = 4


def _size(each: Instruction) -> int:
    """Bytes of one element."""
    return bytes_of(each.modifiers[-1])


def load(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``ld``, ``ldu``."""
    each = step.instruction
    size = _size(each)
    first = each.operands[0]
    parts = first.parts if isinstance(first, Vector) else (first,)
    space = space_of(each)
    address = address_of(cluster, warp, step, 1, space)
    cluster.on_global(warp, each, address, size * len(parts))
    words, at = _as_word(cluster, space, address)
    if words is not None and words.load(cluster, warp, step, at):
        if space in _SHARED and not each.has_any(*_STRONG):  # it is an access to data as well
            _record(cluster, warp, each, address, size * len(parts), space, None, size * _used(cluster, parts))
        return
    shared, asks = space.startswith("shared"), step.valued and each.has_any(*_STRONG)
    waits = asks and not shared and cluster.code.regions.loops.polls(each.position)
    data = cluster.data is not None and isinstance(address, PerLane) and is_data(each) and not shared
    if not step.valued or waits or data or (shared and _nothing_known(cluster, warp, address, size * len(parts))):
        results = [cluster.unknown_load(each)] * len(parts)
    else:
        results = [_load_value(cluster, warp, each, space, address, i * size, size) for i in range(len(parts))]
    if shared or not space:
        _record(cluster, warp, each, address, size * len(parts), space, None, size * _used(cluster, parts))
        elsewhere = not space and isinstance(address, int) and not in_shared(address)
        if asks and not elsewhere:
            cluster.notes.polls.add(each.position)
    if asks:
        cluster.is_asked(warp, each, results[0])
    registers = iter(step.results)
    for part, value in zip(parts, results, strict=True):
        if not isinstance(part, Sink):
            if each.modifiers[-1].startswith("s") and isinstance(part, Register):
                value = extended(value, 8 * size, cluster.code.width(part.name))
            elif size < _WORD:
                value = at_most(value, (1 << 8 * size) - 1)
            warp.write(next(registers), value)


def _used(cluster: Cluster, parts: Sequence[Operand]) -> int:
    """How many elements of a vector are read: not the last ones if nothing uses their registers.

    Compilers load three words that lie side by side as four, and what the fourth holds changes nothing.
    """
    used = [n for n, part in enumerate(parts, 1) if isinstance(part, Register) and part.name in cluster.code.read]
    return max(used, default=len(parts))


def _as_word(cluster: Cluster, space: str, address: Value) -> tuple[GlobalWords | None, Value]:
    """The words that are followed, if an access may be to one, and its generic address."""
    words = cluster.words if space in _OF_ALL or space in _SHARED else None
    return words, to_generic(address) if words is not None and space.startswith("shared") else address


#: Loads that are meant to see what other threads store meanwhile.
_STRONG = ("volatile", "relaxed", "acquire", "release")


def _nothing_known(cluster: Cluster, warp: EmulatedWarp, address: Value, size: int) -> bool:
    """Whether no byte that the lanes load from shared memory is known."""
    if not isinstance(address, PerLane):
        return False
    lanes = address.each
    if not integers(lanes):
        return False
    low, high = min(lanes), max(lanes) + size
    cta = low >> RANK_SHIFT
    if cta != high >> RANK_SHIFT or not 0 <= cta < cluster.ctas:
        return False
    return not cluster.bytes[cta].knows_any(place_of(low)[1], place_of(high)[1])


def _load_value(
    cluster: Cluster, warp: EmulatedWarp, each: Instruction, space: str, address: Value, offset: int, size: int
) -> Value:
    if isinstance(address, Unknown | OpenAnswer):
        nothing = unknown(f"a load from an address that is not known ({each.mnemonic})", each.line)
        alike = _is_alike(cluster, each)
        return cluster.data.computed((each.mnemonic, offset), nothing, address) if cluster.data and alike else nothing
    if isinstance(address, PerLane):
        found: list[Value] = [0] * 32
        active = lanes_in(warp.mask)
        for lane in active:
            one = address.each[lane]
            found[lane] = (
                one.whole if isinstance(one, Unknown) else _word(cluster, warp, each, space, one + offset, size, lane)
            )
        for lane in range(32):
            if not warp.mask >> lane & 1:
                found[lane] = found[active[0]]
        return lanes_of(found)
    return _word(cluster, warp, each, space, address + offset, size, -1)


def _word(
    cluster: Cluster, warp: EmulatedWarp, each: Instruction, space: str, address: int, size: int, lane: int
) -> Value:
    if space.startswith("param") and address < 1 << 16:
        address += PARAMETERS
    if space.startswith("shared") or (not space and WINDOW <= address < WINDOW_END):
        cta, at = place_of(address if space else address - WINDOW)
        if not 0 <= cta < cluster.ctas:
            return unknown("a load outside of the cluster's shared memory", each.line)
        found = cluster.bytes[cta].load(at, size, cluster.unknown_load(each).leaf)
        alike = cluster.data is not None and not each.has_any(*_STRONG)
        return cluster.data.loaded(cluster.bytes[cta], (cta, at, size), found) if cluster.data and alike else found
    if space == "local" or LOCAL_WINDOW <= address < LOCAL_WINDOW_END:
        value = warp.local.load(address if address >= LOCAL_WINDOW else address + LOCAL_WINDOW, size)
        if value is None:
            return unknown("a word of local memory", each.line)
        return of_lane(value, lane) if lane >= 0 else value
    found = cluster.globals.load(warp.agent, address, size, each)
    alike = lane < 0 and _is_alike(cluster, each)
    return cluster.data.given(each, address, found) if cluster.data is not None and alike else found


def _is_alike(cluster: Cluster, each: Instruction) -> bool:
    """Whether all threads load the same of one address of global memory, whenever they do: nothing is stored there.

    Two strong loads may see what another thread, the host or a peer stores between them.
    """
    alike = each.position in cluster.code.only_loaded and not each.has_any(*_STRONG)
    cluster.notes.alike |= alike
    return alike


def store(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``st``; ``st.async`` is a copy."""
    each = step.instruction
    size = _size(each)
    space = space_of(each)
    address = address_of(cluster, warp, step, 0, space)
    given = _stored(cluster, warp, step, space)
    values = given if isinstance(given, list) else [given]
    cluster.on_global(warp, each, address, size * len(values))
    untracked = each.position in cluster.code.untracked
    if space == "global" and untracked:
        return
    words, at = _as_word(cluster, space, address)
    apart = space in _SHARED and words is not None and bool(words.places)  # it may be one by itself
    if apart:
        flush(cluster, warp)
    if space in _SHARED and each.has_any(*_STRONG) and (apart or isinstance(address, int)):
        _change(cluster, warp, each, address, space)
    elif space in _SHARED:
        _record(cluster, warp, each, address, size * len(values), space, values)
        cluster.store_shared(values)
    if words is not None and not untracked:
        words.store(cluster, warp, each, at, values)
    if isinstance(address, Unknown | OpenAnswer) or leaf_of(address) is not None:
        if space == "local":
            warp.local.forget()
        return
    if isinstance(address, int):
        for i, value in enumerate(values):
            store_value(cluster, warp, space, address + i * size, size, value)
        return
    if _forgets_nothing(cluster, warp, space, address, size * len(values), values):
        return
    left: dict[int, Value] = {}  #: of several lanes that store to one place any may be last
    for lane in lanes_in(warp.mask):
        for i, value in enumerate(values):
            seen = Unknown(leaf) if isinstance(value, OpenAnswer) and (leaf := leaf_of(value)) else of_lane(value, lane)
            at = address.each[lane] + i * size
            place = int.__int__(at)  # in this CTA: expressions that differ may lead to one place
            if space != "local" and not same(left.setdefault(place, seen), seen):
                seen = left[place] = unknown("what several lanes store to one place", each.line)
            store_value(cluster, warp, space, at, size, seen, lane)


def _stored(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, space: str) -> Value:
    """What is stored, a list if these are several; what one lane stores for its CTA may be any, if that is asked."""
    given = step.get(1, warp)
    alone = warp.mask.bit_count() == 1 and not (warp.maybe or warp.has_two_ways)
    if cluster.data is None or not alone or space not in _SHARED or not isinstance(given, Unknown):
        return given
    return cluster.data.stored(step.instruction, cluster.code.regions.uses, cluster.code.body, given, warp.agent)


def _forgets_nothing(
    cluster: Cluster, warp: EmulatedWarp, space: str, address: Value, size: int, values: list[Value]
) -> bool:
    """Whether a store of unknown values to shared memory goes where nothing is known anyway."""
    if not space.startswith("shared") or not all(isinstance(value, Unknown) for value in values):
        return False
    return _nothing_known(cluster, warp, address, size)


def store_value(
    cluster: Cluster, warp: EmulatedWarp, space: str, address: int, size: int, value: Value, lane: int = -1
) -> None:
    """What is in these bytes from now on; not known if the store is perhaps not executed."""
    given = value
    if warp.maybe or warp.has_two_ways:
        value = unknown("what may or may not have been stored", 0)
    if space.startswith("shared") or (not space and WINDOW <= address < WINDOW_END):
        cta, at = place_of(address if space else address - WINDOW)
        if 0 <= cta < cluster.ctas:
            if isinstance(value, PerLane) and warp.mask.bit_count() == 1:
                value = value.each[lanes_in(warp.mask)[0]]
            cluster.bytes[cta].store(at, size, value)
    elif space == "local" or LOCAL_WINDOW <= address < LOCAL_WINDOW_END:
        at = address if address >= LOCAL_WINDOW else address + LOCAL_WINDOW
        mask = 1 << lane if lane >= 0 else FULL if warp.mask == warp.lanes else warp.mask
        if value is not given and (held := warp.local.load(at, size)) is not None:
            value = given if same(held, join_lanes(mask, given, held)) else value  # what is there already
        warp.local.store(at, size, value, mask)
    elif space in ("global", ""):
        cluster.globals.store(warp.agent, address, size, value)


def _record(
    cluster: Cluster,
    warp: EmulatedWarp,
    each: Instruction,
    address: Value,
    size: int,
    space: str,
    values: list[Value] | None,
    used: int = 0,
) -> None:
    """A shared access as ranges of bytes, ``used`` of a load; one at an address that is not known is left out."""
    found = starts_of(cluster, warp, address, size, space)
    if found is None:
        may_touch(cluster, warp, each, address, size, writes=values is not None)
        return
    for cta, starts in found.items():
        odd, ranges = first_odd(starts, size), runs(starts, used or size)
        if odd is not None:
            check_alignment(cluster, each.position, odd, size, "a load" if values is None else "a store")
        exchange(cluster, warp, each.position, cta, starts, used or size, writes=values is not None)
        if values is None:
            read(cluster, warp, (Space.SHARED, cta), ranges, each.position)
            continue
        where = Space.SHARED, cta
        if where in warp.pending.copies or overlap(warp.pending.read_bounds.get(where), bounds(ranges)):
            flush(cluster, warp)
        write(cluster, warp, where, ranges, starts, None, each.position)
        known = all(isinstance(v, int | PerLane) for v in values)
        contents = _contents(warp, starts, values) if known else {}
        if not warp.maybe and known:
            warp.pending.values[where].update(contents)
        together = len(starts) > len({*starts}) or (isinstance(address, int) and warp.mask.bit_count() > 1)
        if together and (not known or None in (contents or {0: None}).values()):
            cluster.notes.equal_stores.add(each.position)


def _contents(warp: EmulatedWarp, starts: tuple[int, ...], values: list[Value]) -> dict[int, object]:
    """What is stored from each offset on, None where that is not known or lanes differ."""
    lanes = lanes_in(warp.mask)
    if len(starts) == 1:
        starts = starts * len(lanes)
    found: dict[int, object] = {}
    if len(starts) == len(lanes):  # none of them goes elsewhere
        for start, lane in zip(starts, lanes, strict=True):
            given = [of_lane(value, lane) for value in values]
            stored = tuple(map(identity, given))
            held = found.setdefault(start, stored if are_known(given) else None)
            if held is not None and held != stored:
                found[start] = None
    return found


def fill(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``st.bulk``: this many bytes become 0."""
    each = step.instruction
    space = space_of(each)
    size = one_of(warp, step.get(1, warp), "the bytes of st.bulk")
    found = starts_of(cluster, warp, address_of(cluster, warp, step, 0, space), size, space)
    if found is None:
        cluster.may_touch(warp, each.position, NO_ADDRESS, writes=True)
        return
    flush(cluster, warp)
    for cta, starts in found.items():
        exchange(cluster, warp, each.position, cta, starts, size, writes=True)
        for first, end in runs(starts, size):
            write(cluster, warp, (Space.SHARED, cta), [(first, end)], [first], (0, size), each.position)
            cluster.bytes[cta].forget(first, end)


def atomic(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``atom``, ``red``: on global memory by the launch's policy; on shared memory with a result that is not known."""
    each = step.instruction
    at = 0 if each.opcode == "red" else 1
    space = space_of(each)
    address = address_of(cluster, warp, step, at, space)
    operands = [step.get(i, warp) for i in range(at + 1, len(step.getters)) if step.getters[i] is not None]
    if isinstance(address, PerLane) and warp.mask.bit_count() == 1:
        address = of_lane(address, lanes_in(warp.mask)[0])
    parts = next((int(m[1:]) for m in each.modifiers if m in _VECTORS), 1)
    cluster.on_global(warp, each, address, _size(each) * parts)
    if space in _SHARED:
        _change(cluster, warp, each, address, space)
    words, at_word = _as_word(cluster, space, address)
    if words is not None and words.atomic(cluster, warp, step, at_word, operands):
        return
    if space == "global" and each.position in cluster.code.untracked:
        cluster.forget_results(warp, step, f"the result of an atomic ({each.mnemonic})")
        return
    value = cluster.atomic(warp, each, address, operands)
    warp.write_results(step, value)


_VECTORS = ("v2", "v4", "v8")


def multicast(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``multimem.ld_reduce``, ``st`` and ``red``: accesses to global memory, whatever memories it leads to."""
    each = step.instruction
    address = address_of(cluster, warp, step, 1 if each.has("ld_reduce") else 0, "global")
    parts = next((int(m[1:]) for m in each.modifiers if m in _VECTORS), 1)
    cluster.on_global(warp, each, address, _size(each) * parts)
    cluster.forget_results(warp, step, f"the result of {each.mnemonic}")


def _change(cluster: Cluster, warp: EmulatedWarp, each: Instruction, address: Value, space: str) -> None:
    """Atomics on shared memory, as writes that are alike: they may come in any order, and in order with all else."""
    size = _size(each)
    found = starts_of(cluster, warp, address, size, space)
    if found is None:
        may_touch(cluster, warp, each, address, size, writes=True)
    cluster.recorder.atomics.add(each.position)
    for cta, starts in (found or {}).items():
        exchange(cluster, warp, each.position, cta, starts, size, writes=True, alike=True)
        for start in dict.fromkeys(starts):
            check_alignment(cluster, each.position, start, size, "an atomic")
            flush(cluster, warp)
            write(cluster, warp, (Space.SHARED, cta), [(start, start + size)], [start], ("atomic",), each.position)
            cluster.bytes[cta].forget(start, start + size)
    flush(cluster, warp)
