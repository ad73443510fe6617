"""``SharedMemBarrier``: one mbarrier as roles and pipelines name it (upstream ``layout/tma_async.mojo``; PTX mbarrier).

Every method records one operation; what the operation does is in ``barrier`` and ``machine``. An arrive counts one
for each executing lane: there is no election inside. Parities are 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index as whole_number
from typing import NamedTuple

from pipesim.errors import ProtocolError
from pipesim.lang.author import author_error, whole
from pipesim.lang.recorder import Recorder, current_recorder, recorder
from pipesim.model.ops import Op, Order, Scope, semantics


class TryResult:
    """The result of a try_wait, unknown while recording: the register that will hold it, and what was asked.

    Pass it to a ``*_if_needed`` method. A role cannot branch on it in Python: the program has not run yet.
    """

    def __init__(self, register: int, barrier: int, parity: int) -> None:
        self.register = register
        self.barrier = barrier
        self.parity = parity
        self.owner = recorder()

    def __bool__(self) -> bool:
        raise author_error(
            "a role cannot branch on the result of a try_wait while it is recorded",
            correction="pass the result to wait_producer_if_needed, wait_consumer_if_needed or wait_if_needed",
        )


_WAIT, _ARRIVE = int(Op.WAIT), int(Op.ARRIVE)
_NO_ORDER, _NO_SCOPE, _PLAIN = Order.DEFAULT, Scope.DEFAULT, semantics()


@dataclass(unsafe_hash=True, slots=True)  # not frozen: every arrive makes one, and that takes three times as long
class StateToken:
    """The opaque state that an arrive returns: usable for ``test_wait``, ``wait_state`` and ``pending_count`` only."""

    register: int
    owner: Recorder = field(default_factory=recorder, repr=False, compare=False)


class Label(NamedTuple):
    """What a pipeline calls one of its barriers: a stage of a group. ``ring``: at which index the pipeline begins."""

    group: str
    stage: int
    ring: int


@dataclass(eq=False)
class BarrierStorage:
    """An array of mbarriers in the shared memory of each CTA. ``first`` is its first index among the CTA's barriers.

    A pipeline takes the array, or a pointer into it, which is one of its barriers: ``b[2]`` or ``b.ptr() + 2``.
    """

    name: str
    size: int
    first: int
    per_cta: Sequence[
        int
    ]  #: one growing cell: how many barriers a CTA has in all (known when the protocol is flattened)
    labels: dict[int, Label] = field(default_factory=dict)  #: by index, what a pipeline calls the barrier
    #: by index, the rings that the barrier is of, each with the stage: more than one where pipelines overlap
    places: dict[int, set[tuple[int, int]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[SharedMemBarrier]:
        return (self[index] for index in range(self.size))

    @cached_property
    def _barriers(self) -> dict[int, SharedMemBarrier]:
        """The barriers that were asked for already."""
        return {}

    def __getitem__(self, index: int) -> SharedMemBarrier:
        try:
            return self._barriers[whole_number(index)]
        except (KeyError, TypeError):
            return self._barrier(index)

    def _barrier(self, index: int) -> SharedMemBarrier:
        index = whole(f"the index of {self.name}[...]", index)
        if not 0 <= index < self.size:
            raise author_error(
                f"barrier {index} of {self.name}, which has {self.size}",
                correction=f"use 0 to {self.size - 1}, or ask for more barriers",
            )
        return self._barriers.setdefault(index, SharedMemBarrier(self, index))

    def ptr(self) -> SharedMemBarrier:
        """A pointer to the first barrier, as upstream's storages give one; ``ptr() + 2`` points to the third."""
        return self[0]

    def __add__(self, count: int) -> SharedMemBarrier:
        return self[whole(f"what is added to {self.name}", count)]

    def label(self, first: int, count: int, group: str, *, ring: int | None = None) -> None:
        """Name ``count`` barriers from ``first`` on as stages 0, 1, … of ``group``, as their pipeline does.

        ``ring`` is where the pipeline begins, unless it begins at ``first``.
        """
        begin = first if ring is None else ring
        for stage in range(count):
            self.labels[first + stage] = Label(group, stage, begin)
            self.places.setdefault(first + stage, set()).add((begin, stage))


@dataclass(frozen=True, eq=False)
class SharedMemBarrier:
    """One 8-byte mbarrier of the executing CTA, or of another CTA where a method takes ``cta``.

    It is a pointer as well: ``mbar + 2`` and ``mbar[2]`` are the barrier two further on in the same array.
    """

    storage: BarrierStorage
    index: int
    rank: int = -1  #: the CTA in whose memory it is, -1 for the executing one
    __iter__ = None  # it can be indexed, but where it ends only its array knows

    def __add__(self, count: int) -> SharedMemBarrier:
        there = self.storage[self.index + whole(f"what is added to a barrier of {self.storage.name}", count)]
        return there if self.rank < 0 else there.mapa(self.rank)

    def __getitem__(self, count: int) -> SharedMemBarrier:
        return self + count

    def mapa(self, cta: int) -> SharedMemBarrier:
        """``mapa``: the barrier at the same place in the CTA of this rank. A wait on it is illegal (PTX)."""
        try:
            return self._mapped_barriers[whole_number(cta)]
        except (KeyError, TypeError):
            pass
        made = SharedMemBarrier(self.storage, self.index, cta)
        if type(cta) is int:
            self._mapped_barriers[cta] = made
        return made

    @cached_property
    def _mapped_barriers(self) -> dict[int, SharedMemBarrier]:
        """What :meth:`mapa` made already, by rank."""
        return {}

    def _address(self, cta: int | None = None, rec: Recorder | None = None) -> int:
        rec = rec or recorder()
        if cta is None and self.rank < 0:
            return rec.cta * self.storage.per_cta[0] + self.storage.first + self.index
        rank = cta if cta is not None else self.rank if self.rank >= 0 else rec.cta
        rec.require_rank(rank, "a barrier")
        return rank * self.storage.per_cta[0] + self.storage.first + self.index

    def _own(self, rec: Recorder | None = None) -> int:
        """The address, of an instruction that takes a barrier of the executing CTA only (``.shared::cta``)."""
        rec = rec or recorder()
        if self.rank < 0:
            return rec.cta * self.storage.per_cta[0] + self.storage.first + self.index
        if self.rank != rec.cta:
            raise author_error(
                f"{rec.who} of CTA {rec.cta} waits for, or initialises, a barrier of CTA {self.rank}",
                cause="PTX allows that only for barriers of the executing CTA",
                correction="have the other CTA do it, or arrive on a barrier of this one",
            )
        return self._address()

    def init(self, num_threads: int = 1, *, line: str = "") -> None:
        """``mbarrier.init``: ``num_threads`` arrivals complete each phase. One thread executes it: elect one.

        Every executing lane initialises, and all but the first do it again, which is a fault of the program.
        ``line``: who asked for it, where that is not who calls.
        """
        rec = recorder()
        for _ in range(rec.counted_lanes):
            rec.emit(Op.INIT, self._own(), num_threads, line=line)

    def inval(self) -> None:
        """``mbarrier.inval``: the eight bytes are ordinary memory again."""
        recorder().emit(Op.INVAL, self._own())

    def arrive(self, count: int = 1, *, order: Order = Order.DEFAULT, scope: Scope = Scope.DEFAULT) -> StateToken:
        """``mbarrier.arrive``: each executing lane arrives ``count`` times."""
        return self._arrive(_ARRIVE, count, 0, _semantics(order, scope))

    def arrive_cluster(
        self, cta: int, count: int = 1, *, order: Order = Order.DEFAULT, scope: Scope = Scope.DEFAULT
    ) -> None:
        """``mapa`` and ``mbarrier.arrive.shared::cluster`` on the CTA of this rank; returns no state (PTX)."""
        rec = recorder()
        rec.emit(Op.ARRIVE, self._address(cta), count * rec.counted_lanes, 0, -1, semantics(order, scope))

    def arrive_drop(self, count: int = 1, *, order: Order = Order.DEFAULT, scope: Scope = Scope.DEFAULT) -> StateToken:
        """``mbarrier.arrive_drop``: arrive, and expect ``count`` fewer arrivals a lane from this phase on."""
        return self._arrive(int(Op.ARRIVE_DROP), count, 0, semantics(order, scope))

    def arrive_no_complete(
        self, count: int = 1, *, order: Order = Order.DEFAULT, scope: Scope = Scope.DEFAULT
    ) -> StateToken:
        """``mbarrier.arrive.noComplete``: an arrive that promises not to complete the phase."""
        rec = recorder()
        register = rec.new_register()
        rec.emit(Op.ARRIVE_NO_COMPLETE, self._address(), count * rec.counted_lanes, register, semantics(order, scope))
        return StateToken(register)

    def expect_bytes(self, nbytes: int) -> StateToken:
        """``mbarrier.arrive.expect_tx``: expect ``nbytes`` more **and arrive once**, in each executing lane."""
        return self._arrive(_ARRIVE, 1, nbytes, _PLAIN)

    def expect_bytes_relaxed(self, nbytes: int) -> StateToken:
        """:meth:`expect_bytes` with ``.relaxed``."""
        return self._arrive(_ARRIVE, 1, nbytes, semantics(Order.RELAXED))

    def arrive_and_expect_bytes(self, nbytes: int, cta: int, pred: bool = True) -> None:  # noqa: FBT001, FBT002  # upstream's signature
        """``mapa`` and ``mbarrier.arrive.expect_tx.shared::cluster`` on the CTA of this rank, if ``pred``."""
        if pred:
            rec = recorder()
            nbytes = _bytes(rec, nbytes)
            rec.emit(Op.ARRIVE, self._address(cta), rec.counted_lanes, nbytes * rec.counted_lanes, -1, semantics())

    def expect_tx(self, nbytes: int) -> None:
        """``mbarrier.expect_tx``: expect ``nbytes`` more, without an arrival."""
        rec = recorder()
        nbytes = _bytes(rec, nbytes)
        rec.emit(Op.EXPECT_TX, self._address(), nbytes * rec.counted_lanes, semantics(Order.RELAXED))

    def complete_transaction(self, cta: int, nbytes: int, pred: bool = True) -> None:  # noqa: FBT001, FBT002  # upstream's signature
        """``mbarrier.complete_tx`` on the CTA of this rank, if ``pred``: pays for a copy that was skipped."""
        if pred:
            rec = recorder()
            nbytes = _bytes(rec, nbytes)
            rec.emit(
                Op.COMPLETE_TX, self._address(cta), nbytes * rec.counted_lanes, semantics(Order.RELAXED, Scope.CLUSTER)
            )

    def wait(self, phase: int = 0) -> None:
        """Loop on ``mbarrier.try_wait.parity`` until the phase of this parity has completed."""
        rec = current_recorder() or recorder()
        if type(phase) is int and 0 <= phase <= 1:
            rec.append((_WAIT, self._own(rec), phase, _PLAIN))
        else:
            rec.emit(Op.WAIT, self._own(rec), _parity(phase), _PLAIN)

    def wait_acquire(self, phase: int = 0, scope: Scope = Scope.CTA) -> None:
        """:meth:`wait` with an explicit ``.acquire`` of this scope."""
        recorder().emit(Op.WAIT, self._own(), _parity(phase), semantics(Order.ACQUIRE, scope))

    def wait_relaxed(self, phase: int = 0, scope: Scope = Scope.CTA) -> None:
        """:meth:`wait` with an explicit ``.relaxed`` of this scope: orders no data."""
        recorder().emit(Op.WAIT, self._own(), _parity(phase), semantics(Order.RELAXED, scope))

    def try_wait(self, phase: int = 0) -> TryResult:
        """One ``mbarrier.try_wait.parity``; it may suspend for a time that the hardware chooses."""
        return self._test(Op.TRY_WAIT, phase)

    def test_wait(self, phase: int = 0) -> TryResult:
        """One ``mbarrier.test_wait.parity``, which never suspends."""
        return self._test(Op.TEST_WAIT, phase)

    def wait_if_needed(self, already: TryResult | bool, phase: int = 0) -> None:  # noqa: FBT001  # True is how loops start
        """:meth:`wait` unless ``already`` is true: a try_wait's result, or a plain bool decided while recording."""
        if isinstance(already, TryResult):
            _require_own(already, "try_wait's result")
            recorder().emit(Op.WAIT_UNLESS, self._own(), _parity(phase), already.register, semantics())
        elif not already:
            self.wait(phase)

    def wait_state(self, state: StateToken) -> None:
        """Loop on ``mbarrier.try_wait`` by state until the phase in which ``state`` arrived has completed."""
        _require_own(state, "state")
        recorder().emit(Op.WAIT_STATE, self._own(), state.register, semantics())

    def test_state(self, state: StateToken) -> TryResult:
        """One ``mbarrier.test_wait`` by state."""
        _require_own(state, "state")
        rec = recorder()
        register = rec.new_register()
        rec.emit(Op.TEST_STATE, self._own(), state.register, register, semantics())
        return TryResult(register, self._address(), -1)

    def pending_count(self, state: StateToken) -> None:
        """``mbarrier.pending_count`` of a state. The number exists only when the program runs: nothing is returned."""
        _require_own(state, "state")
        rec = recorder()
        rec.emit(Op.PENDING_COUNT, state.register, rec.new_register())

    def cp_async_arrive(self, *, noinc: bool = False) -> None:
        """``cp.async.mbarrier.arrive``: each lane arrives when its earlier ``cp.async`` have landed.

        Without ``noinc`` pending rises by one a lane first, so the phase is delayed and its count unchanged.
        """
        rec = recorder()
        rec.emit(Op.CP_ASYNC_ARRIVE, self._own(), rec.counted_lanes, int(noinc))

    def _arrive(self, op: int, count: int, nbytes: int, sem: int) -> StateToken:
        if not type(count) is type(nbytes) is type(sem) is int:
            count, nbytes = whole("the count of an arrive", count), whole("the number of bytes", nbytes)
            sem = whole("order and scope", sem)
        rec = current_recorder() or recorder()
        if nbytes < 0:
            raise _negative(rec, nbytes)
        register, executing = rec.new_register(), (rec.lanes & rec.follows).bit_count()
        rec.append((op, self._address(rec=rec), count * executing, nbytes * executing, register, sem))
        return StateToken(register, rec)

    def _test(self, op: Op, phase: int) -> TryResult:
        rec = recorder()
        register = rec.new_register()
        rec.emit(op, self._own(), _parity(phase), register, semantics())
        return TryResult(register, self._address(), _parity(phase))


def barrier_address(mbar: SharedMemBarrier) -> int:
    """The address of an argument that must be a barrier; ProtocolError with the author's line if it is none."""
    if not isinstance(mbar, SharedMemBarrier):
        raise author_error(
            f"{recorder().who}: expected a barrier, not an object of type {type(mbar).__name__}",
            correction="give one, for example stage.mbar() or storage[0]",
        )
    return mbar._address()  # noqa: SLF001  # same module


def _require_own(result: TryResult | StateToken, what: str) -> None:
    if result.owner is not recorder():
        raise author_error(
            f"{recorder().who} uses a {what} that {result.owner.who} holds in a register",
            correction="test in the role that uses the result",
        )


def _bytes(rec: Recorder, nbytes: int) -> int:
    """A number of bytes as an integer; ProtocolError if it is negative or not a whole number."""
    nbytes = whole("the number of bytes", nbytes)
    if nbytes < 0:
        raise _negative(rec, nbytes)
    return nbytes


def _negative(rec: Recorder, nbytes: int) -> ProtocolError:
    return author_error(
        f"{rec.who}: {nbytes:,} bytes are expected or completed on a barrier",
        cause="the transaction count of an instruction is 0 or more; a difference of two sizes may be the wrong way",
        correction="give the number of bytes that the copy brings, for example tile[stage.index()].nbytes",
    )


def _semantics(order: Order, scope: Scope) -> int:
    return _PLAIN if order is _NO_ORDER and scope is _NO_SCOPE else semantics(order, scope)


def _parity(phase: int) -> int:
    if phase not in (0, 1):
        raise author_error(
            f"a wait takes parity 0 or 1, not {phase}",
            cause="a lap counter was passed instead of its lowest bit",
            correction="pass phase & 1",
        )
    return phase
