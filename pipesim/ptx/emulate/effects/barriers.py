"""Barriers of a CTA and of the cluster, fences, and requests for registers (PTX ISA, "bar", "barrier.cluster",
"membar", "setmaxnreg").
"""

from pipesim.model.dependent_launch import LaunchAct
from pipesim.model.ops import Fence, Op, Order, Scope, order_of
from pipesim.model.tables import MAX_THREAD_REGISTERS, NAMED_BARRIERS
from pipesim.ptx.emulate.accesses import record
from pipesim.ptx.emulate.cluster import Cluster, NamedBarrier
from pipesim.ptx.emulate.code import DecodedStep
from pipesim.ptx.emulate.effects.operands import one_of, semantics_of, unknown
from pipesim.ptx.emulate.effects.tensor_maps import fence_maps
from pipesim.ptx.emulate.lanes.apart import ON_MBARRIER
from pipesim.ptx.emulate.lanes.exchanges import LaneEvent
from pipesim.ptx.emulate.stop import EmulationStop, IllegalOperand, TouchedBytes, UnreadAccess
from pipesim.ptx.emulate.values import WARP, OpenAnswer, PerLane, Value, lanes_in, leaf_of, of_lane
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.flow.opcodes import on_tensor_maps
from pipesim.ptx.flow.voted_waits import VotedWait
from pipesim.ptx.text.instruction import Instruction


def cta_barrier(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``bar`` and ``barrier``: sync, arrive and red on a named barrier, ``bar.warp.sync``, ``barrier.cluster``."""
    each = step.instruction
    if each.has("warp"):
        _warp_barrier(cluster, warp, step)
        return
    if each.has("cluster"):
        _cluster_barrier(cluster, warp, step)
        return
    first = 1 if each.has("red") else 0
    number = one_of(warp, step.get(first, warp), "the number of a named barrier")
    if number >= NAMED_BARRIERS:
        said = f"a CTA has no named barrier {number:,}"
        raise IllegalOperand(said, f"use one of 0 to {NAMED_BARRIERS - 1}")
    if warp.ended_lanes:
        cluster.notes.ended.add(each.position)
    rest = len(each.operands) - first - 1 - (1 if each.has("red") else 0)
    count = one_of(warp, step.get(first + 1, warp), "the thread count of a named barrier") if rest > 0 else 0
    if rest > 0 and not count:
        said = f"named barrier {number} with no threads"
        raise IllegalOperand(said, "give the threads that take part, in whole warps")
    threads = count or WARP * cluster.warps_of_cta
    named = cluster.named.setdefault((warp.cta, number), NamedBarrier())
    operation = Op.BAR_ARRIVE if each.has("arrive") else Op.BAR_SYNC
    barrier, lanes = cluster.recorder.named_barrier(warp.cta, number), warp.threads
    record(cluster, warp, each.position, operation, barrier, threads, lanes)
    vote = _vote(warp, step, len(each.operands) - 1) if each.has("red") else None
    generation = named.generation
    if vote is not None:
        named.asking[generation] = named.asking.get(generation, 0) + 1
    if not count:
        named.all_of_cta = each.position
    _meet_in_a_wait(cluster, named, each.position)
    _arrive(named, threads, lanes, vote)
    cluster.count_ended(warp.cta, number)
    if operation == Op.BAR_ARRIVE:
        return
    mask, whole = warp.mask, warp.whole

    def done() -> bool:
        if named.generation == generation:
            return False
        if vote is not None:
            inside, warp.mask, warp.whole = (warp.mask, warp.whole), mask, whole
            warp.write_results(step, _result(cluster, each, (warp.cta, number), generation))
            warp.mask, warp.whole = inside
            named.answered(generation)
        return True

    if not done():
        warp.block(done)


def _warp_barrier(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """The lanes that a mask names meet; each lane may name others."""
    members = step.get(0, warp)
    warp.name_themselves(step.instruction.position, members, warp.mask)
    for named in {of_lane(members, lane) for lane in lanes_in(warp.mask)}:
        if not isinstance(named, int):  # it is not known who meets: what relies on it is assumed
            warp.exchanges.execute()
            continue
        meeting = named & warp.all_lanes
        if warp.mask == warp.live and not warp.live & ~meeting:
            warp.execute_together(orders=True)
        else:
            warp.exchanges.happens(LaneEvent.MEET, meeting)
        warp.apart.meet_some(meeting)
        warp.waited |= meeting if warp.waited & meeting else 0
        if meeting & warp.ended_lanes:
            cluster.notes.ended.add(step.instruction.position)


def _vote(warp: EmulatedWarp, step: DecodedStep, index: int) -> list[Value]:
    p = step.get(index, warp)
    if isinstance(p, OpenAnswer):
        raise EmulationStop("a vote of the CTA depends on the result of a try_wait", leaf_of(p))
    return [p.each[lane] for lane in lanes_in(warp.mask)] if isinstance(p, PerLane) else [p] * warp.mask.bit_count()


def _arrive(named: NamedBarrier, threads: int, lanes: int, vote: list[Value] | None) -> None:
    named.arrived += lanes
    named.votes += vote or []
    if named.arrived >= threads:
        named.complete()


def _result(cluster: Cluster, each: Instruction, place: tuple[int, int], generation: int) -> Value:
    """Of a generation's votes, the same for all warps; where these are not known it may be any, if that is asked."""
    named = cluster.named[place]
    if generation not in named.reduced:
        votes = named.results[generation]
        found = _of_wait(cluster, each, votes, _reduce(each.modifiers, votes, each.line))
        if cluster.data is not None and not isinstance(found, int):
            known = [v for v in votes if isinstance(v, int)]
            most = len(votes) - len(known) if each.has("popc") else 1
            free = cluster.data.answer(each.position, most, place)
            found = 1 - free if each.has("and") else sum(map(bool, known)) * each.has("popc") + free
        named.reduced[generation] = found
    return named.reduced[generation]


def _reduce(modifiers: tuple[str, ...], votes: list[Value], line: int) -> Value:
    if "popc" not in modifiers and any(isinstance(v, int) and bool(v) is ("or" in modifiers) for v in votes):
        return int("or" in modifiers)
    if any(not isinstance(v, int) for v in votes):
        return unknown("a reduction over the threads of a CTA", line)
    if "and" in modifiers:
        return int(all(votes))
    if "or" in modifiers:
        return int(any(votes))
    return sum(bool(v) for v in votes)


def _of_wait(cluster: Cluster, each: Instruction, votes: list[Value], result: Value) -> Value:
    """The result of a vote; of one on the end of a wait for global memory of which it is not known, that it ends.

    Where the word is followed the wait ends as its own thread votes, if no other one votes so.
    """
    voted = cluster.code.regions.loops.voted.get(each.position)
    if not isinstance(voted, VotedWait):
        return result
    if not isinstance(result, int):
        cluster.notes.passed_over.add(voted.exit)
        return int(voted.ends)
    alone = each.has("and") is not voted.ends  # one vote is enough
    if cluster.words is not None and bool(result) is voted.ends and alone:
        mine = sum(bool(vote) is voted.ends for vote in votes)
        if mine > 1:
            cluster.words.doubts[each.position] = "other threads vote for the end of the wait"
    return result


def _meet_in_a_wait(cluster: Cluster, named: NamedBarrier, position: int) -> None:
    """Doubt a loop that is taken for one wait if threads arrive at its barrier that are not in it: they are not part of
    a round that is not the last one.
    """
    named.places.add(position)
    if cluster.words is not None and len(named.places) > 1:
        for place in named.places & cluster.code.regions.loops.barriers_of_waits:
            cluster.words.doubts[place] = "threads that are not in its loop arrive at the same barrier"


def _cluster_barrier(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    each = step.instruction
    meaning = semantics_of(each)
    meaning = meaning // 8 * 8 + Scope.CLUSTER
    if each.has("arrive"):
        lanes = warp.lanes if each.has("aligned") else warp.mask
        if order_of(meaning) is Order.RELAXED:
            warp.fences.signal(lanes & warp.live, ON_MBARRIER)
        cluster.cluster_barrier.arrive(cluster, warp, lanes, each.position, meaning)
        return
    record(cluster, warp, each.position, Op.CLUSTER_WAIT, meaning)
    if warp.mask == warp.live and warp.agent not in cluster.cluster_barrier.relaxed:
        warp.execute_together(orders=True)
    elif warp.mask == warp.live and not warp.exchanges.inits:  # fence.mbarrier_init and a relaxed arrive release inits
        warp.apart.learn_inits()
    if not cluster.cluster_barrier.passes(warp, cluster.warps):
        warp.block(lambda: cluster.cluster_barrier.passes(warp, cluster.warps))


def fence(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``fence`` and ``membar``; those that order nothing a proof knows of are left out."""
    each = step.instruction
    meaning = semantics_of(each) % 8
    kind: Fence | None = None
    if each.has("mbarrier_init"):
        kind = Fence.MBARRIER_INIT
    elif each.has("proxy"):
        is_map = on_tensor_maps(each)
        if is_map:
            fence_maps(cluster, warp, step)
        kind = Fence.PROXY_TENSORMAP if is_map else Fence.PROXY_ASYNC if _is_async(each.modifiers) else None
        if not (kind or each.has_any("alias", "async")):
            raise EmulationStop(f"{each.mnemonic} is not known")
    elif each.opcode == "membar" or each.has("sc"):
        kind = Fence.SC
    elif each.has_any("acq_rel", "acquire", "release"):
        kind = Fence.ACQ_REL
    if kind is not None and warp.maybe:
        cluster.notes.fences.add(each.position)
    elif kind is not None and _orders_all(cluster, warp, each, kind, Scope(meaning)):
        record(cluster, warp, each.position, Op.FENCE, kind, meaning)


def _orders_all(cluster: Cluster, warp: EmulatedWarp, each: Instruction, kind: Fence, scope: Scope) -> bool:
    """Whether a fence that some lanes execute counts for the warp: what others have stored comes before it.

    ``fence.mbarrier_init`` orders the inits of its own thread (PTX ISA, "fence"), and a proxy fence what is before it:
    what other lanes have stored since they met these is not. Whether copies use that shows when the run has ended.
    """
    exchanges, position = warp.exchanges, each.position
    if kind in (Fence.ACQ_REL, Fence.SC):
        half = Order.ACQUIRE if each.has("acquire") else Order.RELEASE if each.has("release") else Order.ACQ_REL
        counts = position not in cluster.fences_apart and warp.fences.fence(position, warp.mask, scope, warp.live, half)
        if not counts:
            cluster.notes.fences_apart.add(position)
        return counts
    if kind is Fence.PROXY_TENSORMAP:
        return True
    if kind is Fence.MBARRIER_INIT:
        exchanges.inits &= ~warp.mask
        return not exchanges.inits
    exchanges.inits = 0
    warp.apart.fence(warp.mask, alone=warp.mask != warp.live)
    unordered, in_step = exchanges.stored_by_others(warp.mask)
    if in_step:
        cluster.notes.apart.add(position)
    for first, end in unordered:
        cluster.notes.fences_of_some[UnreadAccess(position, warp.agent, True, TouchedBytes(first, end))] = None
    exchanges.happens(LaneEvent.FENCE, warp.mask)
    return position not in cluster.void_fences


def _is_async(modifiers: tuple[str, ...]) -> bool:
    """Whether it is a fence of the asynchronous proxy that orders accesses to shared memory."""
    return "global" not in modifiers and any(m == "async" or m.startswith("async::") for m in modifiers)


def grid_dependency(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``griddepcontrol``: the kernel waits for earlier ones, or lets dependent ones begin."""
    each = step.instruction
    events, surely = cluster.launch_events, not warp.unsure and not warp.has_two_ways
    if surely:
        record(cluster, warp, each.position, Op.WORK, 0)
    if events is not None and surely:
        events.control(warp, each.position, LaunchAct.WAIT if each.has("wait") else LaunchAct.TRIGGER)
    elif events is not None:
        events.unsure.add(each.position)


_LEAST_REGISTERS = 24  #: that a thread can ask for


def setmaxnreg(cluster: Cluster, warp: EmulatedWarp, step: DecodedStep) -> None:
    """``setmaxnreg``: the registers of a thread from here on."""
    registers = one_of(warp, step.get(0, warp), "the registers that are asked for")
    if registers % 8 or not _LEAST_REGISTERS <= registers <= MAX_THREAD_REGISTERS:
        said = f"setmaxnreg for {registers} registers"
        raise IllegalOperand(said, f"ask for a multiple of 8 from {_LEAST_REGISTERS} to {MAX_THREAD_REGISTERS}")
    record(cluster, warp, step.instruction.position, Op.SETMAXNREG, registers)
