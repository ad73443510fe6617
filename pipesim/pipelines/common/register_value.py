"""What every struct of upstream has that is "register-passable, trivial": it lives in one thread's registers.

Stage and phase are such values: each agent that makes one, or copies one, has counters of its own. Only the barriers
that it points to are shared, and those may be named in two ways, as in Mojo: an array, or a pointer into one.
"""

from __future__ import annotations

from typing import Self

from pipesim.errors import ProtocolError
from pipesim.lang.builder import Recorder, author_line, current_recorder, recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier

#: Upstream's ``MBarType``: a pointer to mbarriers. A storage represents a pointer to its first one.
MBarType = BarrierStorage | SharedMemBarrier


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
            raise ProtocolError(
                f"{recorder().who} uses the {type(self).__name__} that {self._owner.who} made",
                place=author_line(),
                cause=f"{self._own} to the agent that created the object; only the barriers are shared",
                correction=f"create the {type(self).__name__} inside each role",
            )


def mbars_at(mbar: MBarType, count: int, what: str) -> tuple[SharedMemBarrier, ...]:
    """The ``count`` barriers from ``mbar`` on, for ``what``; ProtocolError where the storage has fewer left."""
    first, storage = (0, mbar) if isinstance(mbar, BarrierStorage) else (mbar.index, mbar.storage)
    rank = -1 if isinstance(mbar, BarrierStorage) else mbar.rank
    if first + count > len(storage):
        raise ProtocolError(
            f"{what} needs {count} mbarriers; {storage.name} has {len(storage) - first} from {first} on",
            place=author_line(),
            correction=f"ask for {first + count} in protocol.mbarriers({storage.name!r}, ...)",
        )
    return tuple(SharedMemBarrier(storage, first + i, rank) for i in range(count))


def name_mbars(mbars: tuple[SharedMemBarrier, ...], group: str) -> None:
    """Name these barriers stages 0, 1, … of ``group`` in reports, but for those that a larger struct named before."""
    for stage, mbar in enumerate(mbars):
        mbar.storage.labels.setdefault(mbar.index, (group, stage))


def require_within(what: str, index: int, size: int) -> int:
    """``index``, which must be below ``size``. Upstream computes a pointer and checks nothing."""
    if not 0 <= index < size:
        raise ProtocolError(
            f"{what} {index} of {size}",
            place=author_line(),
            cause="upstream would compute the address of another barrier or tile",
            correction=f"use 0 to {size - 1}",
        )
    return index
