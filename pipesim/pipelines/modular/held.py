"""Which stage of one side of a pipeline is held: at most one, because acquiring does not advance.

A handle steps its side when it is given back. Mojo's compiler sees to it that this happens once; it does not see that
a second acquire returns the same stage, or that a step by hand in between makes the release skip one. Here both are
errors, whoever acquires or steps: the ring itself, or the struct around it.
"""

from __future__ import annotations

from pipesim.errors import HandleError
from pipesim.lang.builder import Linear, author_line


class Held:
    """The stage that one side of a pipeline object has acquired and not yet given back, if any."""

    __slots__ = ("handle",)

    def __init__(self) -> None:
        self.handle: Linear | None = None

    def require_none(self) -> None:
        """Raise HandleError if a stage is held: a second acquire would return the same stage again."""
        if self.handle is not None:
            held, who, where = self.handle.description
            raise HandleError(
                f"{who}: a second acquire while {held} is held",
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
