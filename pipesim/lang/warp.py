"""``Warp``: what a role is given. Its methods record operations of no one barrier: copies, reads, work, fences."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from operator import index

from pipesim.bounds import MAX_CYCLES
from pipesim.lang import legality
from pipesim.lang.author import author_error, author_place, name_of, whole
from pipesim.lang.global_words import WordAccess
from pipesim.lang.intrinsics import mma_arrive
from pipesim.lang.recorder import AtomicAnswer, Recorder, current_recorder, recorder
from pipesim.lang.shared_mem_barrier import SharedMemBarrier, barrier_address
from pipesim.lang.tiles import Slot, TileArray
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, operand, semantics
from pipesim.model.tables import NAMED_BARRIERS, WORK_CLASSES
from pipesim.model.words import WordAct

ANY_ITEM = -1
CP_ASYNC_BYTES = 4  #: that one cp.async copies at least
_READ, _WRITE, _WORK = int(Op.READ), int(Op.WRITE), int(Op.WORK)
_TRANSFER_READ, _TRANSFER_WRITE = int(Op.TRANSFER_READ), int(Op.TRANSFER_WRITE)
_COMMIT, _WAIT_GROUP = int(Op.COMMIT), int(Op.WAIT_GROUP)
_TCGEN05 = Engine.TCGEN05


class Warp:
    """One warp of a role. All methods act for the lanes that execute where they are called."""

    def __init__(self, rec: Recorder, index: int, warp: int, cta_threads: int) -> None:
        self._recorder = rec
        self.index = index  #: number of this warp within its role
        self.warp = warp  #: number of this warp within its CTA
        self.cta = rec.cta  #: rank of the CTA in the cluster
        self._cta_threads = cta_threads
        #: operations but for their item, which is all that is new when a loop comes round again
        self._heads: dict[tuple[object, ...], Operation] = {}
        self._loads: dict[tuple[object, ...], tuple[Operation, int]] = {}

    # lanes

    def elect_one(self) -> AbstractContextManager[None]:
        """Inside, one lane executes (``elect.sync``)."""
        lanes = self._recorder.lanes
        return self._recorder.narrow_to(lanes & -lanes)

    def lanes(self, count: int) -> AbstractContextManager[None]:
        """Inside, lanes 0 .. count-1 execute (as far as they execute outside)."""
        count = whole("the number of lanes", count)
        if not 1 <= count <= 32:
            raise author_error(f"{count} lanes of a warp", correction="a warp has lanes 1 to 32")
        return self._recorder.narrow_to((1 << count) - 1)

    # memory

    def tma_load(
        self, destination: Slot, mbar: SharedMemBarrier, item: int, nbytes: int | None = None, cta_mask: int = 0
    ) -> None:
        """A bulk copy into ``destination``: its bytes land later, in pieces, and are counted on ``mbar`` as they land.

        ``nbytes``: only this many, from the slot's begin; ``destination`` may also be a part of a slot.
        ``item`` names what the bytes then hold. Each executing lane issues one copy, so one lane must be elected.
        ``cta_mask`` has a bit for each CTA of a multicast, which lands at the same offset in each and is counted on its
        own copy of ``mbar``; 0 is an ordinary copy. An odd CTA that names the barrier of its pair's leader
        (``mbar.mapa(rank & ~1)``; PTX: ``.cta_group::2``) has every landing counted by the leader of its own pair.
        """
        rec = self._mine()
        try:
            head, mask = self._loads[destination, mbar, nbytes, type(nbytes), cta_mask]
            named = index(item)
        except (KeyError, TypeError):
            self._first_load(rec, destination, mbar, item, nbytes, cta_mask)
            if rec.lanes & rec.follows:  # then it was recorded
                self._loads[destination, mbar, nbytes, type(nbytes), cta_mask] = (
                    rec.code[-1][:4],
                    operand(rec.code[-1], "cta_mask"),
                )
        else:
            legality.require_one_copy(rec, destination.name)
            rec.append((*head, named, mask))

    def _first_load(
        self, rec: Recorder, destination: Slot, mbar: SharedMemBarrier, item: int, nbytes: int | None, cta_mask: int
    ) -> None:
        self._require_slot(destination)
        legality.require_one_copy(rec, destination.name)
        legality.require_multicast(rec, cta_mask)
        if nbytes is not None:
            destination = destination.part(0, nbytes)
        for rank in range(rec.tables.ctas):
            if cta_mask >> rank & 1:
                rec.tables.access(destination.space, rank, destination.offset, destination.nbytes)
        bar = barrier_address(mbar)
        counted = mbar.rank if mbar.rank >= 0 else rec.cta
        legality.require_load(rec, destination.name, destination.space, self._rank(destination), counted)
        rec.emit(Op.TMA_LOAD, bar, self._access(destination), destination.nbytes, item, cta_mask)

    def read(self, source: Slot, item: int = ANY_ITEM) -> None:
        """Ordinary loads of all of ``source``, which should hold ``item`` (ANY_ITEM: whatever was written)."""
        self._ordinary(_READ, source, item)

    def write(self, destination: Slot, item: int) -> None:
        """Ordinary stores: ``destination`` then holds ``item``."""
        self._ordinary(_WRITE, destination, item)

    def async_read(self, engine: Engine, source: Slot, item: int = ANY_ITEM) -> None:
        """A transfer that reads ``source`` until it completes: a bulk store, or the operand of an MMA."""
        self._mine().append_item(self._transfer(_TRANSFER_READ, engine, source), item)

    def async_write(self, engine: Engine, destination: Slot, item: int) -> None:
        """A transfer that writes ``destination`` until it completes: ``cp.async``, or the result of an MMA."""
        self._mine().append_item(self._transfer(_TRANSFER_WRITE, engine, destination), item)

    def mma(
        self,
        engine: Engine,
        *,
        reads: Sequence[tuple[Slot, int]] = (),
        writes: Sequence[tuple[Slot, int]] = (),
        cycles: int = 0,
    ) -> None:
        """Issue a matrix multiplication: it reads and writes these (slot, item) pairs until it finishes.

        It finishes no sooner than the engine has worked ``cycles`` on it, after what it was given before. Engine.WGMMA
        is issued by whole warps, each its part of what the warp group does, Engine.TCGEN05 by one elected lane.
        """
        rec = self._mine()
        legality.require_mma(rec, engine)
        block = [rec.operation(Op.ENGINE_WORK, engine, cycles)] if cycles else []
        for op, operands in (_TRANSFER_READ, reads), (_TRANSFER_WRITE, writes):
            for slot, item in operands:
                try:
                    head = self._heads[op, engine, slot]
                except (KeyError, TypeError):
                    head = self._transfer(op, engine, slot)
                block.append((*head, item) if type(item) is int else rec.operation(*head, item))
        if engine == _TCGEN05 and (reads or writes):
            legality.note_tcgen05(rec)
        rec.extend(block)

    def commit(self, engine: Engine, mbar: SharedMemBarrier | None = None) -> None:
        """Close a group of transfers, or (tcgen05) let their completion arrive once on ``mbar``."""
        rec = self._mine()
        legality.require_commit(rec, engine, on_barrier=mbar is not None)
        if mbar is None:
            rec.append(self._again(_COMMIT, engine, -1))
        else:
            mma_arrive(mbar)

    def wait_group(self, engine: Engine, groups: int = 0) -> None:
        """Wait until at most ``groups`` closed groups of this engine are unfinished.

        The groups of WGMMA are those of the warp group: the warp waits until they are finished in all of its warps.
        """
        rec = self._mine()
        legality.require_groups(rec, engine)
        rec.append(self._again(_WAIT_GROUP, engine, groups))

    def _again(self, op: int, engine: Engine, operand: int) -> Operation:
        """An operation of which a loop records the same again and again."""
        try:
            return self._heads[op, engine, operand, type(operand)]
        except (KeyError, TypeError):
            made = self._recorder.operation(op, engine, operand)
        return self._heads.setdefault((op, engine, operand, type(operand)), made)

    def _ordinary(self, op: int, slot: Slot, item: int) -> None:
        rec = self._mine()
        try:
            head = self._heads[op, slot]
        except (KeyError, TypeError):
            access = self._access(slot)
            legality.require_ordinary(rec, slot.name, slot.space, self._rank(slot))
            head = self._heads[op, slot] = op, access
        rec.append_item(head, item)

    def _transfer(self, op: int, engine: Engine, slot: Slot) -> Operation:
        """The operation but for its item, of a transfer that is allowed here."""
        rec = self._recorder
        if rec.is_part and op == _TRANSFER_WRITE and rec.executing_lanes != 1:
            slot = self._part_of_lanes(engine, slot)
        try:
            head = self._heads[op, engine, slot]
        except (KeyError, TypeError):
            access = self._access(slot)
            legality.require_transfer(rec, engine, slot.name, slot.space, self._rank(slot))
            head = self._heads[op, engine, slot] = rec.operation(op, engine, access, slot.nbytes, ANY_ITEM)[:-1]
        if slot.space == Space.GLOBAL:
            raise author_error(
                f"{rec.who}: a transfer of {slot.name}, which is global memory",
                correction="name the shared memory that it reads or writes; what it does to global memory is, when its "
                "group has been waited for, w.gload or w.gstore",
            )
        if engine == _TCGEN05:
            legality.require_one_lane(rec, "a tcgen05 operation")
            legality.note_tcgen05(rec)
        return head

    def _part_of_lanes(self, engine: Engine, slot: Slot) -> Slot:
        """What the lanes of this agent copy of a slot, of which each lane copies an equal part, in their order."""
        rec = self._recorder
        if engine != Engine.CP_ASYNC:
            rec.require_whole("a copy that each lane makes a part of")
        self._require_slot(slot)
        share = slot.nbytes // legality.WARP
        if slot.nbytes % (legality.WARP * CP_ASYNC_BYTES):
            raise author_error(
                f"{rec.who}: {slot.nbytes} bytes are copied by {legality.WARP} lanes that are apart",
                cause=f"each lane copies as many, and one cp.async {CP_ASYNC_BYTES}, 8 or 16 (PTX ISA, cp.async)",
                correction=f"use tiles of a multiple of {legality.WARP * CP_ASYNC_BYTES} bytes, or let one lane copy",
            )
        mine = rec.lanes & rec.follows
        first = (mine & -mine).bit_length() - 1
        return slot.part(first * share, mine.bit_count() * share) if mine else slot

    def _rank(self, slot: Slot) -> int:
        """The CTA in whose memory a slot is."""
        own = 0 if slot.space == Space.GLOBAL else self.cta  # global memory is of no CTA
        return own if slot.rank < 0 else slot.rank

    def _mine(self) -> Recorder:
        """The recorder of the role that runs now, which must be the one that this warp was given to."""
        if current_recorder() is not self._recorder:
            raise author_error(
                f"{recorder().who} uses the warp object of {self._recorder.who}",
                correction="use the argument of the role's own function",
            )
        return self._recorder

    def _require_slot(self, slot: object) -> None:
        if isinstance(slot, TileArray):
            raise author_error(
                f"{self._recorder.who}: {slot.name} has {slot.slots} slots, but one is expected",
                correction=f"name one, for example {slot.name}[stage.index()]",
            )
        if not isinstance(slot, Slot):
            raise author_error(
                f"{self._recorder.who}: expected a slot of a tile, not an object of type {type(slot).__name__}",
                correction="name one, for example tile[stage.index()]",
            )

    def _access(self, slot: Slot) -> int:
        self._require_slot(slot)
        rank = self._rank(slot)
        if slot.space != Space.GLOBAL:
            self._recorder.require_rank(rank, slot.name)
        return self._recorder.tables.access(slot.space, rank, slot.offset, slot.nbytes)

    # global memory

    def gload(self, source: Slot, item: int = ANY_ITEM) -> None:
        """Weak loads (``ld.global``) of all of ``source``, which should hold ``item``."""
        legality.require_global(source, word=False)
        self._ordinary(_READ, source, item)

    def gstore(
        self,
        destination: Slot,
        item: int | None = None,
        *,
        value: int | None = None,
        order: Order = Order.RELAXED,
        scope: Scope = Scope.GPU,
    ) -> None:
        """Weak stores (``st.global``), after which ``destination`` holds ``item``; or with ``value`` a store to a word
        (``st.relaxed``, or with ``order`` ``st.release``), made by one lane.
        """
        if (item is None) == (value is None):
            raise author_error(
                f"a store to {getattr(destination, 'name', destination)} of {'both' if value is not None else 'no'} "
                "item and value",
                correction="data holds an item, a word a value: give one of them",
            )
        if value is None:
            legality.require_global(destination, word=False)
            self._ordinary(_WRITE, destination, item if item is not None else ANY_ITEM)
        else:
            self._word(WordAct.STORE, destination, value, (order, scope))

    def atomic(
        self,
        word: Slot,
        *,
        add: int | None = None,
        exch: int | None = None,
        cas: tuple[int, int] | None = None,
        order: Order = Order.RELAXED,
        scope: Scope = Scope.GPU,
    ) -> AtomicAnswer:
        """``atom``, or ``red`` where nothing asks for the answer: add, exchange, or compare with the first of ``cas``
        and swap with the second. Made by one lane; ``.old`` of what is returned is the value that the word had.
        """
        if sum(each is not None for each in (add, exch, cas)) != 1:
            raise author_error("an atomic does one thing", correction="give add, exch or cas")
        act, value = (WordAct.ADD, add) if add is not None else (WordAct.CHANGE, exch)
        compare, value = cas if cas is not None else (None, value)
        return self._word(act, word, value, (order, scope), compare=compare)

    def spin_until(
        self,
        word: Slot,
        *,
        at_least: int | None = None,
        equals: int | None = None,
        cas: tuple[int, int] | None = None,
        order: Order = Order.RELAXED,
        scope: Scope = Scope.GPU,
    ) -> None:
        """Loop on a load of the word (``ld.relaxed``, or with ``order`` ``ld.acquire``) until its value is as large, or
        this one; or on a compare-and-swap until it succeeds, as for a lock.
        """
        if sum(each is not None for each in (at_least, equals, cas)) != 1:
            raise author_error("a wait is for one thing", correction="give at_least, equals or cas")
        if cas is not None:
            self._word(WordAct.CHANGE, word, cas[1], (order, scope), compare=cas[0], spins=True)
        else:
            value = at_least if at_least is not None else equals
            self._word(WordAct.WAIT, word, value, (order, scope), exactly=equals is not None)

    def answer(self, word: Slot, nth: int = 0) -> int:
        """What an atomic of this CTA on the word returned, its first one or the ``nth`` after it, which the warp that
        made it has passed on through shared memory; with the synchronisation of the CTA around it, which is the role's.
        """
        legality.require_global(word, word=True)
        return self._mine().answer_of((self.cta, word.offset, whole("the number of an atomic", nth)))

    def times_raised(self, word: Slot) -> int:
        """How often this warp has added to a word."""
        adds = (each for each in self._mine().words.values() if each.act is WordAct.ADD)
        return sum(each.offset == word.offset for each in adds)

    def _word(
        self,
        act: WordAct,
        word: Slot,
        value: int | None,
        how: tuple[Order, Scope],
        *,
        exactly: bool = False,
        compare: int | None = None,
        spins: bool = False,
    ) -> AtomicAnswer:
        """Record an access to a word, at the place of an operation that does nothing."""
        rec = self._mine()
        legality.require_global(word, word=True)
        if act.writes:
            legality.require_one_lane(rec, f"a store to {word.name}, or an atomic on it,")
        most = (1 << 8 * word.nbytes) - 1
        value = whole(f"the value of {word.name}", value) & most
        compare = None if compare is None else whole(f"the value of {word.name}", compare) & most
        place = word.name, word.offset, word.nbytes
        access = WordAccess(*place, act, value, semantics(*how), exactly=exactly, compare=compare, spins=spins)
        pc = len(rec.code)
        rec.emit(Op.WORK, rec.tables.words.setdefault(access, len(rec.tables.words)))
        if len(rec.code) > pc:
            rec.words[pc] = access
        return AtomicAnswer(rec, pc)

    # time and control

    def work(self, cycles: int) -> None:
        """Occupy the warp for ``cycles`` SM cycles."""
        cycles = whole("the number of cycles", cycles)
        if not 0 <= cycles <= MAX_CYCLES:
            raise author_error(
                f"work of {cycles} cycles",
                cause=f"one operation takes at most {MAX_CYCLES:,} cycles, which are minutes",
                correction="give 0 or more" if cycles < 0 else f"give at most {MAX_CYCLES:,}",
            )
        self._mine().append((_WORK, cycles))

    def compute(self, name: str, **amounts: int) -> None:
        """Say what the warp computes in the operation before this call, or, if that takes no time of its own, after it.

        ``name`` is ``kernel/work``: a latency profile may have constants for it, fitted to recordings. ``amounts`` are
        of the classes of ``pipesim.model.tables.WORK_CLASSES``, and may be any function of the kernel's parameters;
        none: the instructions there have no class, and their time is a constant. Of a read, a write, a work and an
        MMA this is the whole time; of a wait on an mbarrier what it takes where its phase is complete already. It adds
        no operation: nothing is recorded, and no proof asks for it. ProtocolError after another wait or a try.
        """
        for kind, amount in amounts.items():
            if kind not in WORK_CLASSES:
                raise author_error(
                    f"an amount of {kind}", correction=f"work has these classes: {', '.join(WORK_CLASSES)}"
                )
            if not 0 <= whole(f"the amount of {kind}", amount) <= MAX_CYCLES:
                raise author_error(f"{amount} of {kind}", correction=f"0 to {MAX_CYCLES:,}")
        rec = self._mine()
        done = tuple(sorted((kind, int(amount)) for kind, amount in amounts.items() if amount))
        if rec.lanes & rec.follows and not rec.works(name_of("work", name), done):
            raise author_error(
                f"{rec.who} computes {name} after a wait, or before its first operation",
                correction="say it after the read, write or arrive that follows the wait",
            )

    def loop(self, trips: int, parameter: str = "") -> Iterator[int]:
        """``range(trips)`` that leaves loop marks, so that a proof can cover any value of ``parameter``."""
        rec = self._mine()
        trips = whole("the trip count", trips)
        if type(parameter) is not str or parameter:
            parameter = name_of("loop", parameter)
        if trips < 0:
            raise author_error(f"{rec.who}: a loop with trip count {trips}", correction="give 0 or more")
        mark = rec.tables.loop(parameter)
        following = (int(Op.LOOP_NEXT), mark)
        rec.emit(Op.LOOP_BEGIN, mark, trips)
        rec.open_loops.append(author_place(1))
        for trip in range(trips):
            if trip:
                rec.append(following)
            yield trip
        rec.emit(Op.LOOP_END, mark)
        rec.open_loops.pop()

    # other barriers and fences

    def bar_sync(self, number: int, threads: int) -> None:
        """``barrier.sync``: wait until ``threads`` threads have arrived. A warp counts as 32, and all of it executes
        it (PTX): ProtocolError where only some lanes do.
        """
        self._at_named_barrier(Op.BAR_SYNC, number, threads)

    def bar_arrive(self, number: int, threads: int) -> None:
        """``barrier.arrive``: arrive without waiting; all lanes of the warp do, as for :meth:`bar_sync`."""
        self._at_named_barrier(Op.BAR_ARRIVE, number, threads)

    def sync_threads(self) -> None:
        """``__syncthreads``: named barrier 0 with every thread of the CTA."""
        self._at_named_barrier(Op.BAR_SYNC, 0, self._cta_threads)

    def sync_warp(self) -> None:
        """``bar.warp.sync`` with all lanes (``__syncwarp``): they meet, and what each has read and written before is
        ordered before what the others do after (PTX ISA, ``bar.warp.sync``). ProtocolError where only some lanes
        execute.

        Recorded in a role with ``lanes_apart=True``; in any other the lanes are taken to be together, and it records
        nothing. There it says to ``--strict-lanes`` that they are.
        """
        rec = self._mine()
        legality.require_whole_warp(rec, "bar.warp.sync")
        if rec.is_part:
            number = NAMED_BARRIERS + self.warp
            rec.emit(Op.BAR_SYNC, rec.tables.named_barrier(rec.cta, number), legality.WARP, rec.counted_lanes)
        else:
            rec.meets.append(len(rec.code))

    def _at_named_barrier(self, op: Op, number: int, threads: int) -> None:
        if not 0 <= number < 16:
            raise author_error(f"named barrier {number}", cause="a CTA has 16, numbered 0 to 15")
        rec = self._mine()
        legality.require_whole_warp(rec, "bar.sync" if op == Op.BAR_SYNC else "bar.arrive")
        if op == Op.BAR_ARRIVE:  # a warp arrives when its last lane does: no lane alone
            rec.require_whole("bar.arrive")
        rec.emit(op, rec.tables.named_barrier(rec.cta, number), threads, rec.counted_lanes)

    def cluster_arrive(self, order: Order = Order.DEFAULT) -> None:
        """``barrier.cluster.arrive``."""
        legality.require_cluster(self._mine(), "barrier.cluster.arrive")
        self._mine().emit(Op.CLUSTER_ARRIVE, semantics(order, Scope.CLUSTER))

    def cluster_wait(self, order: Order = Order.DEFAULT) -> None:
        """``barrier.cluster.wait``."""
        legality.require_cluster(self._mine(), "barrier.cluster.wait")
        self._mine().emit(Op.CLUSTER_WAIT, semantics(order, Scope.CLUSTER))

    def cluster_sync(self) -> None:
        """Arrive at the cluster barrier and wait for it."""
        self.cluster_arrive()
        self.cluster_wait()

    def fence(self, kind: Fence, scope: Scope = Scope.DEFAULT) -> None:
        """A fence: ``fence.proxy.async``, ``fence.mbarrier_init``, ``fence.acq_rel`` …"""
        rec = self._mine()
        if rec.tables.alone and kind in (Fence.ACQ_REL, Fence.SC) and scope == Scope.DEFAULT:
            raise author_error(
                f"{rec.who}: a fence without a scope",
                cause="PTX has none, and between CTAs the scope decides",
                correction="name it: w.fence(Fence.ACQ_REL, Scope.GPU), which is __threadfence()",
            )
        rec.emit(Op.FENCE, kind, semantics(scope=scope))

    def setmaxnreg(self, registers: int) -> None:
        """``setmaxnreg``: the registers of each of the warp's threads from here on; a request for more may wait."""
        rec = self._mine()
        legality.require_register_request(rec)
        rec.emit(Op.SETMAXNREG, registers)
