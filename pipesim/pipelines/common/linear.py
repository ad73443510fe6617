"""Handles that a role must give back exactly once, such as a stage of a ring, and the side of a ring that holds one.

A side holds at most one stage, because acquiring does not advance. A handle steps its side when it is given back.
Mojo's compiler sees to it that this happens once; it does not see that a second acquire returns the same stage, or that
a step by hand in between makes the release skip one. Here both are errors, whoever acquires or steps: the ring itself,
the struct around it, or for an acquire a copy of the ring or another object over the same barriers.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from pipesim.errors import HandleError
from pipesim.lang.author import Place, author_line, author_place, line_of
from pipesim.lang.recorder import LiveHandle, current_recorder, recorder
from pipesim.lang.shared_mem_barrier import SharedMemBarrier, TryResult, barrier_address


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


_Held = TypeVar("_Held")


class StageContext(Generic[_Held]):
    """A stage that is held from entering, which acquires it, to leaving without an error, which gives it back."""

    def __init__(self, acquire: Callable[[], _Held], give_back: Callable[[_Held], None]) -> None:
        self._acquire, self._give_back = acquire, give_back
        self._stage: _Held | None = None

    def __enter__(self) -> _Held:
        stage = self._stage = self._acquire()
        return stage

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._stage is not None:
            self._give_back(self._stage)


class RingSide:
    """The producer's or the consumer's place in a ring, as one agent has it: stage, phase, and the handle it holds.

    A side waits for the other's barriers, ``waits_for``, and ``signals`` its own: a producer waits for ``empty``.
    """

    __slots__ = ("handle", "name", "phase", "signals", "stage", "waits_for")

    def __init__(
        self, name: str, waits_for: tuple[SharedMemBarrier, ...], signals: tuple[SharedMemBarrier, ...], phase: int
    ) -> None:
        self.name = name
        self.waits_for = waits_for
        self.signals = signals
        self.stage = 0
        self.phase = phase
        self.handle: Linear | None = None

    def fork(self) -> "RingSide":
        """A copy with counters of its own, which holds nothing, whatever this side holds."""
        twin = RingSide(self.name, self.waits_for, self.signals, self.phase)
        twin.stage = self.stage
        return twin

    def wait(self) -> None:
        """Wait until the other side has done its part of the current stage."""
        self.waits_for[self.stage].wait(self.phase)

    def try_wait(self) -> TryResult:
        """One try whether it has."""
        return self.waits_for[self.stage].try_wait(self.phase)

    def wait_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """:meth:`wait` unless an earlier try already said so."""
        self.waits_for[self.stage].wait_if_needed(already_ready, self.phase)

    def step(self) -> None:
        """To the next stage; at the end of the ring back to 0, and the phase toggles."""
        self.stage += 1
        if self.stage == len(self.signals):
            self.stage = 0
            self.phase ^= 1

    def hold(self, handle: Linear) -> None:
        """``handle`` holds the current stage from now on."""
        self.handle = handle
        handle.held = self.name, barrier_address(self.signals[self.stage])

    def release(self) -> None:
        """The handle was given back: nothing is held any more, and the side steps."""
        self.handle = None
        self.step()

    def require_free(self) -> None:
        """Raise HandleError if this side holds a stage, or the agent by another object the current one."""
        held: LiveHandle | None = self.handle
        if held is None:
            live = recorder().live
            if live:
                stage = self.name, barrier_address(self.signals[self.stage])
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
