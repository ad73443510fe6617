"""What every struct of upstream has that is "register-passable, trivial": it lives in one thread's registers.

Stage and phase are such values: each agent that makes one, or copies one, has counters of its own. Only the barriers
that it points to are shared, and those may be named in two ways, as in Mojo: an array, or a pointer into one
(``b[2]``, upstream's ``ptr + 2``). The flat program keeps the names of the structs that the roles of a protocol make,
but not of a struct that another one contains, as ``EpiLoadPipeline`` contains a ``ProducerConsumerPipeline``.

``PipelineState``: index, phase and count of one side of a ring.

Two libraries have it with the same meaning: Modular's ``layout/tma_async.mojo`` (``step``, ``next``) and CUTLASS's
``include/cutlass/pipeline/sm90_pipeline.hpp`` (``++state``, ``state += n``, ``advance``). Both pass it by value.
Python passes the object itself, so a method that steps a state which it only borrowed takes a copy first.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Self, TypeVar

from pipesim.lang.author import author_error
from pipesim.lang.recorder import Recorder, current_recorder, recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage, Label, SharedMemBarrier

#: The structs of Modular's kernels that pipesim exists for, in the order of every table.
MODULAR_PIPELINES = (
    "ProducerConsumerPipeline",
    "InputTilePipeline",
    "InputProducer",
    "TMAProducerPipeline",
    "EpiLoadPipeline",
)

#: Upstream's ``MBarType``: a pointer to mbarriers. A storage represents a pointer to its first one.
MBarType = BarrierStorage | SharedMemBarrier
_Struct = TypeVar("_Struct", bound=type)


def pipeline_struct(struct: _Struct) -> _Struct:
    """Class decorator: an object made by a role puts the struct's name into ``Program.pipelines``."""
    make = struct.__init__  # type: ignore[misc]  # of this very class: what is wrapped is its own

    @wraps(make)
    def noting(self: object, *args: Any, **kwargs: Any) -> None:
        rec = current_recorder()
        if rec is None:
            make(self, *args, **kwargs)
            return
        with rec.name_pipeline(struct.__name__):
            make(self, *args, **kwargs)

    struct.__init__ = noting  # type: ignore[misc]
    return struct


class RegisterValue:
    """A value of one agent. Used by another agent it is an error; :meth:`copy` forks its counters."""

    _own = "stage and phase belong"  #: why it may not be shared, for the error

    def __init__(self) -> None:
        self._owner: Recorder = recorder()

    def copy(self) -> Self:
        """A copy with counters of its own over the same barriers, as copying the Mojo value makes."""
        self._mine()
        twin = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(twin, name, value.copy() if isinstance(value, RegisterValue) else value)
        return twin

    def _mine(self) -> None:
        if current_recorder() is not self._owner:
            raise author_error(
                f"{recorder().who} uses the {type(self).__name__} that {self._owner.who} made",
                cause=f"{self._own} to the agent that created the object; only the barriers are shared",
                correction=f"create the {type(self).__name__} inside each role",
            )


def mbars_at(mbar: MBarType, count: int, what: str) -> tuple[SharedMemBarrier, ...]:
    """The ``count`` barriers from ``mbar`` on, for ``what``; ProtocolError where the array ends before."""
    if not isinstance(mbar, BarrierStorage | SharedMemBarrier):
        raise author_error(
            f"{what} was given an object of type {type(mbar).__name__} for its mbarriers",
            correction="give what protocol.mbarriers returned, or a barrier in it, such as b[2]",
        )
    storage, first = (mbar, 0) if isinstance(mbar, BarrierStorage) else (mbar.storage, mbar.index)
    left = len(storage) - first
    if count > left:
        raise author_error(
            f"{what} needs {count} mbarriers; {storage.name} has {left}"
            + (f" from {first} on" if storage is not mbar else ""),
            correction=f"ask for {first + count} in protocol.mbarriers({storage.name!r}, ...)",
        )
    if count == 1 and isinstance(mbar, SharedMemBarrier):
        return (mbar,)
    start = mbar[0]
    return tuple(start + i for i in range(count))


def ring_at(mbar: MBarType, num_stages: int) -> tuple[tuple[SharedMemBarrier, ...], tuple[SharedMemBarrier, ...]]:
    """``full[0..S)`` and ``empty[0..S)`` of the ring of ``num_stages`` stages at ``mbar``, named so in reports."""
    full, empty = ring_mbars(mbar, num_stages)
    for group, side in ("full", full), ("empty", empty):
        side[0].storage.label(side[0].index, num_stages, group, ring=full[0].index)
    return full, empty


def ring_mbars(mbar: MBarType, num_stages: int) -> tuple[tuple[SharedMemBarrier, ...], tuple[SharedMemBarrier, ...]]:
    """The two barriers of each of ``num_stages`` stages from ``mbar`` on, one side after the other."""
    if num_stages < 1:
        raise author_error(f"a pipeline of {num_stages} stages", correction="use at least 1 stage")
    mbars = mbars_at(mbar, 2 * num_stages, f"a pipeline of {num_stages} stage{'s' * (num_stages > 1)}")
    return mbars[:num_stages], mbars[num_stages:]


def name_mbars(mbars: tuple[SharedMemBarrier, ...], group: str, first: SharedMemBarrier | None = None) -> None:
    """Name these barriers stages 0, 1, … of ``group`` in reports, but for those that a larger struct named before.

    ``first``: the first barrier of the pipeline that they belong to, unless it is theirs.
    """
    for stage, mbar in enumerate(mbars):
        begin = mbars[0] if first is None or first.storage is not mbar.storage else first
        mbar.storage.labels.setdefault(mbar.index, Label(group, stage, begin.index))


def require_within(what: str, index: int, size: int) -> int:
    """``index``, which must be below ``size``. Upstream computes a pointer and checks nothing."""
    if not 0 <= index < size:
        raise author_error(
            f"{what} {index} of {size}",
            cause="upstream would compute the address of another barrier or tile",
            correction=f"use 0 to {size - 1}",
        )
    return index


def require_barriers(storage: MBarType, num_stages: int) -> None:
    """Raise ProtocolError if ``storage`` is an array, and not the barriers of a pipeline of ``num_stages`` stages."""
    if isinstance(storage, BarrierStorage) and (num_stages < 1 or len(storage) != 2 * num_stages):
        raise author_error(
            f"{num_stages} stages need {2 * max(num_stages, 1)} mbarriers; {storage.name} has {len(storage)}",
            correction="make them with BarrierArray(protocol, name, num_stages) of the pipeline, "
            f"or give a pointer to the first, {storage.name}[0]",
        )


def init_barriers(
    storage: MBarType, producer_arv_count: int, consumer_arv_count: int, num_stages: int | None = None
) -> None:
    """Initialise the barriers of a pipeline: one of each side for each stage. One thread.

    Without ``num_stages`` the pipeline fills ``storage``, which is an array then; with a pointer it must be given.
    """
    if num_stages is None:
        if not isinstance(storage, BarrierStorage):
            raise author_error(
                f"init_barriers was given {storage.storage.name}[{storage.index}] and no number of stages",
                cause="upstream's has the number in its type; a pointer does not say where the barriers end",
                correction="name the number of stages: num_group_stages=... of an input pipeline, else num_stages=...",
            )
        num_stages = max(len(storage) // 2, 1)
        require_barriers(storage, num_stages)
    full, empty = ring_at(storage, num_stages)
    for filled, freed in zip(full, empty, strict=True):
        filled.init(producer_arv_count)
        freed.init(consumer_arv_count)


class PipelineState(RegisterValue):
    """The place of one side in a ring of ``num_stages`` stages. A consumer starts at phase 0, a producer at phase 1.

    With 0 stages no step changes anything; with 1 stage every step toggles the phase.
    """

    def __init__(self, num_stages: int, index: int = 0, phase: int = 0, count: int = 0) -> None:
        super().__init__()
        if num_stages < 0 or not 0 <= index < max(num_stages, 1) or phase not in (0, 1):
            raise author_error(
                f"a state at stage {index}, phase {phase} of a ring of {num_stages} stages",
                correction="give a stage inside the ring, and phase 0 or 1",
            )
        self.num_stages = num_stages
        self._index = index
        self._phase = phase
        self._count = count

    def index(self) -> int:
        """The stage."""
        return self._index

    def phase(self) -> int:
        """The parity to wait for."""
        return self._phase

    def count(self) -> int:
        """Steps made so far."""
        return self._count

    def step(self) -> None:
        """To the next stage (CUTLASS: ``++state``); after the last one back to 0, and the phase toggles."""
        self.advance(1)

    def next(self) -> PipelineState:
        """:meth:`step`, then a copy of the state."""
        self.step()
        return self.copy()

    def advance(self, num_iterations: int) -> PipelineState:
        """Several steps in one call; the state itself, as CUTLASS returns it."""
        self._mine()
        if num_iterations < 0:
            raise author_error(
                f"a pipeline state moves back by {-num_iterations} steps", correction="advance by 0 or more"
            )
        if self.num_stages:
            laps, self._index = divmod(self._index + num_iterations, self.num_stages)
            self._phase ^= laps & 1
            self._count += num_iterations
        return self

    @staticmethod
    def make_pipeline_state(start_state: PipelineState, num_iterations: int) -> PipelineState:
        """A copy of ``start_state``, this many steps further."""
        return start_state.copy().advance(num_iterations)


def make_producer_start_state(num_stages: int) -> PipelineState:
    """Where a producer starts: stage 0, phase 1, because every stage is empty at first."""
    return PipelineState(num_stages, 0, 1, 0)
