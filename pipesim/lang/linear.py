"""``Linear``: a handle that a role must give back exactly once, such as a stage of a ring."""

from __future__ import annotations

from pipesim.errors import HandleError
from pipesim.lang.author_line import Place, author_line, author_place, line_of
from pipesim.lang.recorder import current_recorder, recorder


class Linear:
    """Something that must be given back exactly once, as Mojo's linear types enforce at compile time.

    It remembers the role and the line of its birth; :meth:`consume` gives it back, :meth:`require_live` guards its use.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._recorder = recorder()
        self._acquired = author_place(3)
        self._released: Place | None = None
        self.held: tuple[str, int] | None = None  #: of a stage of a ring: its side, and the barrier of that side
        self._recorder.live[self] = None

    @property
    def description(self) -> tuple[str, str, str]:
        """What it is, which role holds it, and the line where it was acquired."""
        return self._what, self._recorder.who, line_of(*self._acquired)

    @property
    def live(self) -> bool:
        """True until the handle is given back."""
        return self._released is None

    def consume(self, verb: str) -> None:
        """Give the handle back; a second time is an error."""
        if self._released is not None or current_recorder() is not self._recorder:
            self.require_live(verb)
        self._released = author_place(2)
        del self._recorder.live[self]

    def require_live(self, verb: str) -> None:
        """Raise HandleError if the handle was given back before, or another role uses it."""
        if current_recorder() is not self._recorder:
            raise HandleError(
                f"{recorder().who}: {verb} of {self._what}, which {self._recorder.who} holds",
                place=author_line(),
                cause=f"acquired at {line_of(*self._acquired)}",
                correction="acquire a stage in each role",
            )
        if self._released is not None:
            raise HandleError(
                f"{self._recorder.who}: {verb} of {self._what} after its release",
                place=author_line(),
                cause=f"acquired at {line_of(*self._acquired)}, released at {line_of(*self._released)}",
                correction="acquire the next stage before using it",
            )

    def require_consumed(self) -> None:
        """Raise HandleError if the role ended while the handle was live."""
        if self.live:
            raise HandleError(
                f"{self._recorder.who}: {self._what} was never released",
                place=line_of(*self._acquired),
                correction="release it on every path, or acquire it in a with statement",
            )
