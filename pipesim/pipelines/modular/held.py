"""Which stage of one side of a pipeline is held: at most one, because acquiring does not advance.

A handle steps its side when it is given back. Mojo's compiler sees to it that this happens once; it does not see that
a second acquire returns the same stage, or that a step by hand in between makes the release skip one. Here both are
errors, whoever acquires or steps: the ring itself, the struct around it, or for an acquire a copy of the ring or
another object over the same barriers.
"""

from __future__ import annotations

from pipesim.errors import HandleError
from pipesim.lang.author_line import author_line
from pipesim.lang.linear import Linear
from pipesim.lang.recorder import LiveHandle, recorder
from pipesim.lang.shared_mem_barrier import SharedMemBarrier, barrier_address


class Held:
    """The stage that one side of a pipeline object has acquired and not yet given back, if any."""

    __slots__ = ("_side", "handle")

    def __init__(self, side: str) -> None:
        self._side = side
        self.handle: Linear | None = None

    def hold(self, handle: Linear, mbar: SharedMemBarrier) -> None:
        """``handle`` is held from now on: of the stage whose barrier of this side is ``mbar``."""
        self.handle = handle
        handle.held = self._side, barrier_address(mbar)

    def require_free(self, mbar: SharedMemBarrier) -> None:
        """Raise HandleError if this side holds a stage, or the agent by another object the one of this barrier."""
        held: LiveHandle | None = self.handle
        if held is None:
            live = recorder().live
            if live:
                stage = self._side, barrier_address(mbar)
                held = next((each for each in live if each.held == stage), None)
        if held is not None:
            what, who, where = held.description
            raise HandleError(
                f"{who}: a second acquire while {what} is held",
                place=author_line(),
                cause=f"acquired at {where}; acquire does not advance: it would return the same stage again",
                correction="release the first stage before acquiring the next",
            )

    def require_no_step(self, verb: str) -> None:
        """Raise HandleError if a stage is held while ``verb`` steps by hand: its release would step once more."""
        if self.handle is not None:
            held, who, where = self.handle.description
            raise HandleError(
                f"{who}: {verb} while {held} is held",
                place=author_line(),
                cause=f"acquired at {where}; its release steps as well, so that a stage would be skipped",
                correction="release the stage instead, or wait and step without a handle",
            )

    def require_copyable(self) -> None:
        """Raise HandleError if a stage is held: its release would step one of two copies."""
        if self.handle is not None:
            held, who, where = self.handle.description
            raise HandleError(
                f"{who}: a pipeline was copied while a stage of it is acquired",
                place=author_line(),
                cause=f"{held} was acquired at {where}; its release steps one of the two copies",
                correction="copy the pipeline before the acquire, or after the release",
            )

    def give_back(self) -> None:
        """Nothing is held any more."""
        self.handle = None
