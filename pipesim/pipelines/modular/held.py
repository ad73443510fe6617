"""Which stage of one side of a pipeline is held: at most one, because acquiring does not advance."""

from __future__ import annotations

from pipesim.errors import HandleError
from pipesim.lang.builder import Linear, author_line


class Held:
    """The stage that one side of a pipeline object has acquired and not yet given back, if any."""

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

    def require_copyable(self) -> None:
        """Raise HandleError if a stage is held: its release would step one of two copies."""
        if self.handle is not None:
            raise HandleError("a pipeline was copied while a stage of it is acquired", place=author_line())

    def give_back(self) -> None:
        """Nothing is held any more."""
        self.handle = None
