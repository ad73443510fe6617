"""mbarrier instructions (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").

What they do to a barrier is ``model/barrier.py``'s; here is which barrier, with which count, and what is recorded.
"""

from collections.abc import Callable

from pipesim.model import barrier as mbarrier
from pipesim.model.ops import Op, Order, Space, order_of, semantics
from pipesim.ptx.emit.record import BARRIER_BYTES, Place
from pipesim.ptx.emulate.accesses import flush, record
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects.operands import barrier_place, by_lane, one_of, semantics_of, unknown_form
from pipesim.ptx.emulate.lanes.apart import ON_MBARRIER
from pipesim.ptx.emulate.lanes.exchanges import LaneEvent, lanes_at
from pipesim.ptx.emulate.stop import EmulationStop, IllegalOperand, Status
from pipesim.ptx.emulate.values import Leaf, OpenAnswer, Unknown, lanes_in
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.text.instruction import Address, Instruction, Sink

_WHAT = "the address of an mbarrier"


def mbarrier_effect(each: Instruction) -> Callable[[Cluster, EmulatedWarp, DecodedStep], None]:
    """What carries out an ``mbarrier`` instruction, by its modifiers."""
    return next((effect for names, effect in _EFFECTS.items() if each.has_any(*names)), unknown_form)


def _pending_count(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    warp.write_results(step, Unknown(Leaf("mbarrier.pending_count", step.instruction.line, orders=True)))


def places(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, index: int) -> dict[Place, int]:
    """The mbarriers of the lanes that execute, and which lanes name each."""
    given = step.get(index, warp)
    if given.__class__ is int:
        return {barrier_place(cluster, step.instruction.position, given): warp.mask}
    found: dict[Place, int] = {}
    for lane, address in by_lane(warp, given, _WHAT).items():
        place = barrier_place(cluster, step.instruction.position, address)
        found[place] = found.get(place, 0) | 1 << lane
    return found


def _told(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, index: int) -> dict[Place, int]:
    """The mbarriers on which lanes arrive, and which on each, for what these have done before."""
    found = places(cluster, warp, step, index)
    warp.apart.hand_on([*found.values()], step.instruction.position)
    relaxed = order_of(semantics_of(step.instruction)) is Order.RELAXED
    for place, lanes in found.items():
        warp.exchanges.happens(LaneEvent.ARRIVE, lanes, place, cluster.barrier(place).done, relaxed=relaxed)
    return found


def _init(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """Each lane may initialise another mbarrier, with another count."""
    addresses = by_lane(warp, step.get(0, warp), _WHAT)
    counts = by_lane(warp, step.get(1, warp), "the count of an mbarrier's init")
    position = step.instruction.position
    found = {barrier_place(cluster, position, addresses[lane]): counts[lane] & 0xFFFFFFFF for lane in addresses}
    if len(found) < len(addresses):
        cluster.notes.undefined[position] = "several lanes initialise one mbarrier"
    warp.exchanges.inits |= warp.mask
    for lane, address in addresses.items():
        cta, offset = barrier_place(cluster, position, address)
        warp.exchanges.write(cta, lanes_at(1 << lane, [offset]), BARRIER_BYTES, warp.way)
    for place, count in found.items():
        _check_place(cluster, step, place)
        cluster.effect(place, mbarrier.init(cluster.barrier(place), count))
        cta, offset = place
        cluster.bytes[cta].forget(offset, offset + 8)
        _own_bytes(cluster, warp, position, place)
        cluster.recorder.live.add(place)
        record(cluster, warp, position, Op.INIT, cluster.recorder.barrier(place), count)
        cluster.initialised.setdefault(place, position)


def _check_place(cluster: Cluster, step: DecodedStep, place: Place) -> None:
    """An mbarrier has 8 bytes of its own (PTX ISA, "Size and alignment of mbarrier object")."""
    cta, offset = place
    for other, at in cluster.recorder.live:
        if other == cta and 0 < abs(at - offset) < BARRIER_BYTES:
            cluster.notes.undefined[step.instruction.position] = "an mbarrier that shares bytes with another one"


def _inval(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    for place in places(cluster, warp, step, 0):
        cluster.effect(place, mbarrier.inval(cluster.barrier(place)))
        record(cluster, warp, step.instruction.position, Op.INVAL, cluster.recorder.barrier(place))
        cluster.recorder.live.discard(place)
        _own_bytes(cluster, warp, step.instruction.position, place)


def _own_bytes(cluster: Cluster, warp: EmulatedWarp, position: int, place: Place) -> None:
    """Where something else uses the bytes of a barrier as well: its life begins and ends with a write of them.

    Its other operations lie between the two; so whatever writes there is ordered with each life, or it is a race.
    """
    if place in cluster.reused:
        cta, offset = place
        item = cluster.item()
        cluster.items[cta].store(offset, offset + BARRIER_BYTES, item)
        access = cluster.recorder.access(Space.SHARED, cta, offset, BARRIER_BYTES)
        record(cluster, warp, position, Op.WRITE, access, item)


def _address_at(step: DecodedStep) -> int:
    """Which operand is the barrier's address: the first, or the second after a result."""
    return 0 if isinstance(step.instruction.operands[0], Address) else 1


def _arrive(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    each, at = step.instruction, _address_at(step)
    extra = len(each.operands) > at + 1
    number = one_of(warp, step.get(at + 1, warp), "the count or bytes of an arrive") if extra else 0
    expects = each.has("expect_tx")
    drop = each.has("arrive_drop")
    for place, by in _told(cluster, warp, step, at).items():
        lanes = by.bit_count()
        count = lanes if expects or not extra else lanes * number
        expect = lanes * number if expects else 0
        before = cluster.barrier(place)
        bar = cluster.recorder.barrier(place)
        meaning = semantics_of(each)
        if order_of(meaning) is Order.RELAXED:
            warp.fences.signal(by, ON_MBARRIER)
        if each.has("noComplete"):
            effect = mbarrier.arrive_no_complete(before, count)
            record(cluster, warp, each.position, Op.ARRIVE_NO_COMPLETE, bar, count, -1, meaning)
        elif drop:
            effect = mbarrier.arrive_drop(before, count, expect)
            record(cluster, warp, each.position, Op.ARRIVE_DROP, bar, count, expect, -1, meaning)
        else:
            effect = mbarrier.arrive(before, count, expect)
            record(cluster, warp, each.position, Op.ARRIVE, bar, count, expect, -1, meaning)
        cluster.effect(place, effect)
        warp.write_results(step, cluster.token(place, before))


def _transactions(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    each = step.instruction
    nbytes = one_of(warp, step.get(1, warp), "the bytes of an mbarrier instruction")
    expects = each.has("expect_tx")
    for place, by in places(cluster, warp, step, 0).items():
        total = nbytes * by.bit_count()
        bar = cluster.recorder.barrier(place)
        op = Op.EXPECT_TX if expects else Op.COMPLETE_TX
        warp.fences.signal(by, ON_MBARRIER)
        record(cluster, warp, each.position, op, bar, total, semantics_of(each))
        cluster.effect(place, mbarrier.add_tx(cluster.barrier(place), total if expects else -total))


# waiting


def _ask(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """A try: inside a loop that only spins it is a wait, else its answer is left open."""
    each = step.instruction
    found = places(cluster, warp, step, 1)
    if len(found) != 1:
        _wait_for_each(cluster, warp, step, found)
        return
    place = next(iter(found))
    if place[0] != warp.cta:
        cluster.notes.undefined[each.position] = "a wait for an mbarrier of another CTA"
    if not each.has("parity"):
        _ask_by_state(cluster, warp, step, place)
        return
    parity = one_of(warp, step.get(2, warp), "the parity of a wait")
    if parity > 1:
        cluster.notes.undefined[each.position] = "a parity is 0 or 1"
    _ask_for(cluster, warp, step, place, parity & 1)


def _ask_for(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, place: Place, parity: int) -> None:
    """A try that decides alone whether its loop is repeated is a wait; so is one again where it said no.

    So is each try of a loop that only the answer yes of every one of them ends: the last iteration asks them in order,
    as waits in this order do. Where the loop touches memory, it runs once before the wait.

    A loop that goes back on yes waits until the phase under way is that of the parity: for the end of the one before.
    It orders nothing, as only yes does (PTX ISA, "mbarrier.test_wait, mbarrier.try_wait").
    """
    position, loops = step.instruction.position, cluster.code.regions.loops
    question = (position, *place, parity)
    if position in loops.waits:
        on_no = warp.ends_on_no(step)
        if position in loops.with_accesses and warp.asked != question:
            warp.asked = question
            warp.write_results(step, int(on_no))
            return
        _wait(cluster, warp, step, place, parity ^ on_no, answer=not on_no)
    elif position in loops.spins and position not in loops.with_accesses and _is_one_of_several_waits(warp, step):
        _wait(cluster, warp, step, place, parity, sure=True)
    elif warp.was_answered_no(question):
        _wait(cluster, warp, step, place, parity)
    elif step.results and not isinstance(step.instruction.operands[0], Sink):
        _try(cluster, warp, step, place, parity)


def _wait_for_each(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, found: dict[Place, int]) -> None:
    """Lanes wait for different mbarriers in one loop: a wait for each, after which they are taken to be together.

    They leave the loop when each has seen its phase end. A lane may look last at any of them, as waits in a row do; if
    none of these can come too late, none does where a lane has looked earlier.
    """
    each, loops = step.instruction, cluster.code.regions.loops
    alone = each.position in loops.waits and each.position not in loops.with_accesses and each.has("parity")
    if not alone or warp.ends_on_no(step):
        raise EmulationStop("the lanes of a warp ask different mbarriers in one instruction")
    parities = by_lane(warp, step.get(2, warp), "the parity of a wait")
    asked = {(at, parities[lane] & 1) for at, lanes in found.items() for lane in lanes_in(lanes)}
    if len(asked) != len(found):
        raise EmulationStop("the parity of a wait differs between the lanes")
    cluster.notes.apart.add(each.position)
    blocked: list[Callable[[], bool]] = []
    for place, parity in sorted(asked):
        _wait(cluster, warp, step, place, parity)
        if warp.status is Status.BLOCKED and warp.ready is not None:
            blocked.append(warp.ready)
            warp.status = Status.READY
    if blocked:
        warp.block(lambda: all(ready() for ready in blocked))


def _is_one_of_several_waits(warp: EmulatedWarp, step: DecodedStep) -> bool:
    """Whether no end of its loop is reached before it says yes, and it is asked in each iteration or under a guard.

    Under a guard it may have said yes before the others do: as a wait after them it has to be yes still.
    """
    if not warp.asks_again(step, 0, may_end=False):
        return False
    return step.guard >= 0 or warp.asks_again(step, 1, may_end=True)


def _wait(
    cluster: Cluster,
    warp: EmulatedWarp,
    step: DecodedStep,
    place: Place,
    parity: int,
    *,
    answer: bool = True,
    sure: bool = False,
) -> None:
    """A wait, and the answer that ends its loop; ``sure``: it has no other end."""
    bar = cluster.recorder.barrier(place)
    position = step.instruction.position
    parity = cluster.parity_in_turn(warp.agent, place, parity, waits=True)
    cluster.recorder.execute(warp.agent, position, warp.mask)
    meaning = semantics_of(step.instruction) if answer else semantics(Order.RELAXED)
    _has_waited(cluster, warp, place, parity, meaning)
    record(cluster, warp, position, Op.WAIT, bar, parity, meaning)
    warp.write_results(step, int(answer))
    warp.asked = ()
    if not sure and cluster.code.regions.loops.ends_otherwise(position):
        cluster.notes.time_outs.add(position)

    def ready() -> bool:
        return mbarrier.passes(cluster.barrier(place), parity)

    if cluster.barrier(place).life == mbarrier.ABSENT:
        cluster.too_early.add(place)
    if cluster.barrier(place).life != mbarrier.LIVE or ready():
        return
    warp.block(ready)


def _try(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, place: Place, parity: int) -> None:
    each = step.instruction
    cluster.is_asked(warp, each, 2 * place[1] + parity)
    asked = cluster.recorder.answer()
    parity = cluster.parity_in_turn(warp.agent, place, parity, waits=False)
    bar = cluster.recorder.barrier(place)
    op = Op.TRY_WAIT if each.has("try_wait") else Op.TEST_WAIT
    cluster.recorder.execute(warp.agent, each.position, warp.mask, asked)
    record(cluster, warp, each.position, op, bar, parity, asked, semantics_of(each))
    if order_of(semantics_of(each)) is Order.RELAXED:
        warp.fences.wait(warp.mask)
    warp.tries[asked] = (each.position, *place, parity)
    warp.write_results(step, OpenAnswer(asked, 0, 1))


def _has_waited(cluster: Cluster, warp: EmulatedWarp, place: Place, parity: int, meaning: int) -> None:
    done, relaxed = cluster.barrier(place).done, order_of(meaning) is Order.RELAXED
    if relaxed:
        warp.fences.wait(warp.mask)
    warp.exchanges.happens(LaneEvent.WAIT, warp.mask, place, done - (done & 1 != parity), relaxed=relaxed)


def _ask_by_state(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep, place: Place) -> None:
    """A wait by the state that an arrive returned: by the parity of its phase, which is the same question."""
    token = cluster.of_token(one_of(warp, step.get(2, warp), "the state that a wait asks for"))
    if token is None:
        raise EmulationStop("a wait asks for a state that no arrive on this mbarrier returned")
    if token[0] != place:
        raise IllegalOperand("a wait for a state of another mbarrier", "ask for one that an arrive on this returned")
    if token[1] < cluster.barrier(place).done - 1:  # PTX ISA, "mbarrier.test_wait, mbarrier.try_wait"
        cluster.notes.undefined[step.instruction.position] = "a wait for a state of a phase before the last one"
    _ask_for(cluster, warp, step, place, token[1] & 1)


def cp_async_arrive(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``cp.async.mbarrier.arrive``: arrives when the warp's earlier cp.async have landed."""
    each = step.instruction
    flush(cluster, warp)
    warp.exchanges.commit(warp.mask)
    warp.exchanges.copied(warp.mask, 0, warp.way)
    noinc = each.has("noinc")
    for place, by in _told(cluster, warp, step, 0).items():
        bar, lanes = cluster.recorder.barrier(place), by.bit_count()
        record(cluster, warp, each.position, Op.CP_ASYNC_ARRIVE, bar, lanes, int(noinc))
        if not noinc:
            cluster.effect(place, mbarrier.raise_pending(cluster.barrier(place), lanes))

        def land(place: Place = place, lanes: int = lanes) -> None:
            cluster.effect(place, mbarrier.arrive(cluster.barrier(place), lanes))

        cluster.fly(warp.agent, each.position, land)


_EFFECTS = {
    ("try_wait", "test_wait"): _ask,
    ("arrive", "arrive_drop"): _arrive,
    ("init",): _init,
    ("inval",): _inval,
    ("expect_tx", "complete_tx"): _transactions,
    ("pending_count",): _pending_count,
}
