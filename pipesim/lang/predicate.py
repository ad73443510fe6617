"""``elect`` and ``predicated``: instructions that only some lanes of a warp execute."""

from __future__ import annotations

from types import TracebackType

from pipesim.lang.recorder import Narrowed, recorder


def elect() -> int:
    """``elect.sync``: a mask of the one lane that is elected among those that execute, for :func:`predicated`."""
    lanes = recorder().lanes
    return lanes & -lanes


class predicated:  # noqa: N801  # a context, used as a function
    """``@e`` before the instructions inside: only the lanes of the mask ``e`` execute; yields whether there are any.

    Upstream's predicates are one number a lane; a mask of lanes is that number for all of a warp. True is every lane.
    """

    __slots__ = ("_e", "_narrowed")

    def __init__(self, e: int) -> None:
        self._e = e
        self._narrowed: Narrowed | None = None

    def __enter__(self) -> bool:
        rec = recorder()
        lanes = rec.lanes if self._e is True else rec.lanes & self._e
        if not lanes:
            return False
        self._narrowed = rec.narrowed(lanes)
        self._narrowed.__enter__()
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._narrowed is not None:
            self._narrowed.__exit__(kind, error, trace)
