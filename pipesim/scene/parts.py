"""The picture model: runs with their tracks, slices, arrows and counters.

Times are picoseconds since the first event of the run.

Every writer (Perfetto, Chrome, HTML, SVG) draws these and nothing else, so that all of them show the same.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pipesim.trace.activity import SliceKind

OPEN = -1  #: the end of a wait that never returned, or of a transfer that never ended


class CounterKind(Enum):
    """What a counter counts. The value is its unit."""

    PHASE = "phases completed"
    BYTES = "bytes pending"
    SLOTS = "slots in use"


class SceneTrack(NamedTuple):
    """A row of slices that never overlap: an agent's, or (``warp`` -1) one of those for what is in flight."""

    cta: int
    sm: int  #: -1 where it is not known
    warp: int
    name: str
    kind: SliceKind | None = None  #: of a track for what is in flight

    @property
    def place(self) -> str:
        """``CTA 3 on SM 17``, in every format."""
        return f"CTA {self.cta} on SM {self.sm}" if self.sm >= 0 else f"CTA {self.cta}"

    @property
    def title(self) -> str:
        """``warp 4: consumer/0``, or what is in flight."""
        return f"warp {self.warp}: {self.name}" if self.warp >= 0 else self.name


class SceneSlice(NamedTuple):
    """What happens on a track from ``begin`` to ``end``; an instant where they are equal.

    ``row``: of its first event in the trace's table, -1 if it has none. ``barrier`` is its name with its stage, "" if
    none; ``phase`` the phase that it is counted in, or that a wait saw complete, None where that is not known.
    ``value`` as the trace's event has it, or bytes. ``at_most``: the end is the latest possible time. ``error`` is
    the uncertainty of the times.
    """

    track: int
    kind: SliceKind
    name: str
    begin: int
    end: int
    row: int = -1
    barrier: str = ""
    parity: int = -1
    iteration: int = -1
    value: int = 0
    phase: int | None = None
    at_most: bool = False
    error: int = 0


def in_phase(each: SceneSlice, phase: int) -> SceneSlice:
    """The slice with its phase: as ``_replace``, at a fifth of its cost."""
    track, kind, name, begin, end, row, barrier, parity, iteration, value, _, late, error = each
    return tuple.__new__(
        SceneSlice, (track, kind, name, begin, end, row, barrier, parity, iteration, value, phase, late, error)
    )


class Arrow(NamedTuple):
    """From an arrive or a landing (``source``, a slice) to the wait that it released (``target``).

    ``at``: when the arrive was issued, or the transfer had landed. ``to``: when the wait returned. ``last``: of all
    that the phase needed it came last.
    """

    source: int
    target: int
    at: int
    to: int
    last: bool


class Counter(NamedTuple):
    """A number that changes: its value from each time on."""

    cta: int
    name: str
    kind: CounterKind
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RunScene:
    """One run: a simulation, or a recording. ``notes`` say what it does not show, and why."""

    label: str
    source: str  #: "simulation" or "hardware"
    tracks: tuple[SceneTrack, ...]
    slices: tuple[SceneSlice, ...]
    arrows: tuple[Arrow, ...]
    counters: tuple[Counter, ...]
    end: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scene:
    """One run, or two on one clock: each begins with its first event."""

    title: str
    runs: tuple[RunScene, ...]
