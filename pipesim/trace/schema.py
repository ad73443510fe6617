"""What a trace is: one schema for simulated and for recorded events. This file owns it.

A trace is a table of events (numpy columns, one row an event) and a description of everything needed to read it.
Within one (CTA, agent) the rows stand in program order. Times are integers:

``cycle``
    The clock of the event's SM, in cycles since the CTA's first anchor (hardware) or since time 0 (simulation).
``time_ps``
    The common time line, in picoseconds since the trace's origin; ``error_ps`` is the uncertainty to either side.
``globaltimer_ns``
    A direct reading of ``%globaltimer`` for the same event, since the same origin, or -1 where none was taken.

What a timestamp means: WAIT_RETURN, WORK_END, BAR_RETURN, GROUP_RETURN, SPIN_RETURN and ATOMIC_RETURN are timestamped
after what they say (an upper bound); an event of any other kind is timestamped before the operation is issued (a lower
bound on its effect).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from importlib import import_module
from typing import Any, TypeAlias

from pipesim.errors import UsageError
from pipesim.model.ending import Ending
from pipesim.model.waits import WaitPurpose
from pipesim.trace.arrays import np, npt

#: 3 added ``awaited`` to each site; 4 the kinds in OPTIONAL; 5 those in ON_WORDS. An older file is read with defaults.
SCHEMA_VERSION, OLDEST_VERSION = 5, 2

#: In ``extra`` of a trace whose names are those of a program that was read from a file: the kind of that file.
READ_FROM = "read_from"
#: Under this key there, how many compare-and-swaps on a lock found it taken, if any did.
LOCK_FAILURES = "lock_failures"
#: The tiles that the recorded CTA was given: what its atomics on a tile counter returned, in their order.
HANDED_OUT = "handed_out"
#: Of a trace whose CTAs talk by words of global memory: the CTAs in the order of their writes, [] where none is needed.
TURNS = "turns"
#: Of such a trace the address of each word, by its name.
WORDS = "words"
#: Instead of a word what ``griddepcontrol.wait`` waits for: SPIN_ENTER and SPIN_RETURN, both with the value 0. In
#: ``extra`` the roles each of whose waits is recorded, if they have one.
EARLIER_KERNELS = "earlier kernels"
#: True of a recording in which an interpreter ran the program: its times are no kernel's.
INTERPRETED = "interpreted"
#: Of a recording the reading of ``%globaltimer`` at the trace's origin, by which launches of one device are compared.
ORIGIN = "globaltimer_origin"

Column: TypeAlias = "npt.NDArray[np.int64]"


def numbers(column: Column) -> array[int]:
    """The values of a column, each a whole number of Python once it is looked at.

    As quick to read as a list of them, which takes four times the memory.
    """
    return array("q", column.tobytes())


class EventKind(IntEnum):
    """What an event says happened. ``value`` below is the meaning of the event's ``value`` column."""

    WAIT_ENTER = 0  #: an agent begins to wait for (barrier, stage, parity); value 0
    WAIT_RETURN = 1  #: that wait returned; value 0
    ARRIVE = 2  #: an arrive; value = executing lanes times count, that is the arrivals it makes
    EXPECT = 3  #: arrive.expect_tx; value = bytes
    COPY = 4  #: a bulk copy is issued; value = bytes
    WORK_BEGIN = 5  #: work on a tile begins; value 0
    WORK_END = 6  #: work on a tile ended; value 0
    TRY = 7  #: one try of (barrier, stage, parity); value = 1 if it succeeded
    CP_ASYNC_ARRIVE = 8  #: cp.async.mbarrier.arrive, with or without .noinc; value = executing lanes
    BAR_ARRIVE = 9  #: bar.arrive; value = the threads that complete the named barrier
    BAR_ENTER = 10  #: an agent begins bar.sync; value as of BAR_ARRIVE
    BAR_RETURN = 11  #: that bar.sync returned; value as of BAR_ARRIVE
    COMMIT = 12  #: tcgen05.commit on an mbarrier; value 0
    GROUP_COMMIT = 13  #: a group of an engine's transfers is closed; value 0
    GROUP_ENTER = 14  #: an agent begins to wait for an engine's groups; value = groups that may be unfinished
    GROUP_RETURN = 15  #: that wait returned; value as of GROUP_ENTER
    # of a word of global memory a value is the low 32 bits
    SPIN_ENTER = 16  #: an agent begins to read a word of global memory until it has some value; value 0
    SPIN_RETURN = 17  #: that ended; value = what it read
    WORD_WRITE = 18  #: a store to such a word, or a reduction of it; value = what is stored, or added
    ATOMIC_ENTER = 19  #: an atomic on such a word whose answer is used; value 0
    ATOMIC_RETURN = 20  #: it returned; value = what the word held before


#: Kinds on a named barrier: their site's ``barrier`` is its number.
ON_NAMED_BARRIER = frozenset({EventKind.BAR_ARRIVE, EventKind.BAR_ENTER, EventKind.BAR_RETURN})
#: Kinds on an engine's groups: their site's ``barrier`` is the engine, in small letters.
ON_GROUPS = frozenset({EventKind.GROUP_COMMIT, EventKind.GROUP_ENTER, EventKind.GROUP_RETURN})
#: Kinds on a word of global memory: their site's ``barrier`` is its name, as that of a pointer with an index.
ON_WORDS = frozenset(EventKind(number) for number in range(EventKind.SPIN_ENTER, EventKind.ATOMIC_RETURN + 1))
#: Kinds that a kernel records only if its table has a site for them; operations without records happen unseen.
OPTIONAL = frozenset({EventKind.CP_ASYNC_ARRIVE, EventKind.COMMIT}) | ON_NAMED_BARRIER | ON_GROUPS | ON_WORDS

#: Kinds of what a program estimates from a kernel's instructions: no kernel records them, a simulation may show them.
OF_WORK = frozenset({EventKind.WORK_BEGIN, EventKind.WORK_END})
#: In ``extra`` of a simulated trace whose events of work are such estimates.
ESTIMATED_WORK = "estimated_work"

SiteKey = tuple[str, EventKind, str]  #: role, kind and ``barrier``: which site it is, whatever it is called


#: What can be given an injected fault in the kernel of a recording, in the order of the kernel's enum ``Fault``.
FAULTS = (
    "missing_arrive",
    "extra_arrive",
    "wrong_parity",
    "expect_more",
    "expect_less",
    "release_early",
    "no_acquire",
    "leaves_early",
    "swapped_stages",
    "phase_not_toggled",
)


@dataclass(frozen=True)
class Site:
    """One place in a role's code that records: its role, kind and barrier group ("" where it touches none).

    Of a kind in ON_NAMED_BARRIER or ON_GROUPS ``barrier`` is the number of the named barrier, or the engine; of one in
    ON_WORDS the word's name.
    ``awaited`` is what a wait or a try is for, None where that is not known (:mod:`pipesim.trace.activity` derives it):
    a remark about the site, which says nothing about which site it is.
    """

    name: str
    role: str
    kind: EventKind
    barrier: str = ""
    awaited: WaitPurpose | None = field(default=None, compare=False)

    @property
    def key(self) -> SiteKey:
        """Which site it is."""
        return self.role, self.kind, self.barrier

    @property
    def group(self) -> str:
        """The group of mbarriers that it touches, "" if none."""
        return "" if self.kind in ON_NAMED_BARRIER | ON_GROUPS | ON_WORDS else self.barrier


@dataclass(frozen=True)
class AgentInfo:
    """One recording agent of a CTA: its role and its number within the role."""

    role: str
    index: int
    warp: int

    @property
    def name(self) -> str:
        """``role`` if it is alone, as reports print it, else ``role/index`` (see :meth:`TraceMeta.agent_names`)."""
        return f"{self.role}/{self.index}"


@dataclass(frozen=True)
class BarrierGroup:
    """A named array of mbarriers: one a stage, all of the same expected count."""

    name: str
    stages: int
    count: int


@dataclass(frozen=True)
class Anchor:
    """One simultaneous reading of both clocks: ns since the trace's origin, SM cycles, and how far off it may be."""

    globaltimer_ns: int
    cycle: int
    error_ps: int


@dataclass(frozen=True)
class CtaInfo:
    """Header of one recorded CTA: its SM, its anchors, and what each agent wrote and dropped.

    ``dropped`` counts records inside the window that did not fit. ``passes`` counts the iterations that each agent went
    through, recorded or not (() where unknown). ``barrier_words`` are the 64-bit words of the barriers, in the order of
    the groups, read after ``mbarrier.inval`` when the CTA ended (() where not read).
    """

    cta: int
    sm: int
    anchors: tuple[Anchor, ...] = ()
    written: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    passes: tuple[int, ...] = ()
    barrier_words: tuple[int, ...] = ()


@dataclass(frozen=True)
class Run:
    """One launch: per CTA, the cycles of its loop and its steady-state period in 1/1000 of a cycle."""

    traced: bool
    repetition: int
    cycles: tuple[int, ...]
    period_millicycles: tuple[int, ...]


@dataclass(frozen=True)
class Device:
    """The hardware and the software that recorded; for a simulation the name of its latency profile."""

    name: str
    sms: int = 0
    capability: str = ""
    driver: str = ""
    nvrtc: str = ""
    sm_khz: int = 0  #: SM clock under this load, from the anchors (hardware) or the profile (simulation)
    globaltimer_step_ns: int = 0


@dataclass(frozen=True)
class TraceMeta:
    """Everything about a trace that is not an event."""

    source: str  #: "hardware" or "simulation"
    protocol: str
    params: dict[str, int]
    grid: int  #: CTAs in the launch
    device: Device
    agents: tuple[AgentInfo, ...]
    barriers: tuple[BarrierGroup, ...]
    sites: tuple[Site, ...]
    ctas: tuple[CtaInfo, ...] = ()
    runs: tuple[Run, ...] = ()
    clock: str = "clock"  #: which clock the timestamps are of: "clock", "globaltimer" or "both"
    status: Ending = Ending.FINISHED
    wrong_tiles: int = 0  #: tiles whose checksum differed from the host's
    kernel_hash: str = ""  #: of source, options and NVRTC version
    options: tuple[str, ...] = ()
    record_bytes: int = 0
    recorded_at: str = ""
    window: tuple[int, ...] = ()  #: (first, end) of the iterations that were kept, the same for all agents; (): all
    fault: str = ""  #: the injected fault, as ``kind@iteration``
    memory: str = ""  #: where records were stored first: "shared", "device" or "host"; "" of a simulation
    schema: int = SCHEMA_VERSION
    extra: dict[str, Any] = field(default_factory=dict)

    def agent_name(self, agent: int) -> str:
        """What reports call an agent: its role, with its number where the role has several agents."""
        info = self.agents[agent]
        alone = sum(1 for other in self.agents if other.role == info.role) == 1
        return info.role if alone else f"{info.role}/{info.index}"


@dataclass(frozen=True)
class Events:
    """The event table: int64 columns of one length. ``agent`` and ``site`` index the tables of the metadata."""

    cta: Column
    agent: Column
    site: Column
    stage: Column  #: stage of the barrier or slot of the tile, -1 where there is none
    parity: Column  #: parity waited for or tried, -1 where there is none
    iteration: Column  #: how often this agent passed this site before (0, 1, ...)
    value: Column
    cycle: Column
    time_ps: Column
    error_ps: Column
    globaltimer_ns: Column

    def __len__(self) -> int:
        return len(self.cta)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Events):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]  # columns are mutable arrays

    def select(self, rows: npt.NDArray[Any] | slice) -> Events:
        """The table of these rows (indices, a mask or a slice), in their order."""
        return Events(*(getattr(self, f.name)[rows] for f in fields(self)))

    def stored(self, name: str) -> npt.NDArray[Any]:
        """A column to be compared or converted, not to be computed with: its integers may be narrow."""
        column: Column = getattr(self, name)
        return column


# What makes tables and pictures of a trace imports this file, the latter from layers above: a trace finds them by name.
_TABLES, _PAGE = "pipesim.trace.schema", "pipesim.api.timelines"

COLUMNS: tuple[str, ...] = tuple(f.name for f in fields(Events))


class PackedEvents(Events):
    """A long table, of which each column is as narrow as in its file; to ask for one makes 64 bits of its numbers."""

    packed: dict[str, npt.NDArray[Any]]

    def __init__(self, **columns: npt.NDArray[Any]) -> None:
        object.__setattr__(self, "packed", columns)

    def __getattr__(self, name: str) -> Column:
        if name not in COLUMNS:
            raise AttributeError(name)
        column: Column = self.packed[name].astype(np.int64)
        return column

    def __len__(self) -> int:
        return len(self.packed["cta"])

    def stored(self, name: str) -> npt.NDArray[Any]:
        """The column as it is here."""
        return self.packed[name]

    def select(self, rows: npt.NDArray[Any] | slice) -> Events:
        """The table of these rows, its columns as they are used."""
        return Events(*(self.packed[name][rows].astype(np.int64) for name in COLUMNS))


@dataclass(frozen=True)
class Trace:
    """A trace: its description and its events."""

    meta: TraceMeta
    events: Events

    def __repr__(self) -> str:
        """One line: a trace in full is as long as its events."""
        return f"<Trace of {self.meta.protocol}, {self.meta.source}, {len(self.events):,} events>"

    def without(self, kinds: Collection[EventKind]) -> Trace:
        """The trace without the sites of these kinds, and their events: of such as a recorder need not have."""
        kept = [number for number, site in enumerate(self.meta.sites) if site.kind not in kinds]
        if len(kept) == len(self.meta.sites):
            return self
        events = self.events.select(np.isin(self.events.site, kept))
        renumbered = np.zeros(len(self.meta.sites), dtype=np.int64)
        renumbered[kept] = np.arange(len(kept))
        meta = replace(self.meta, sites=tuple(self.meta.sites[number] for number in kept))
        return Trace(meta, replace(events, site=renumbered[events.site]))

    def to_arrow(self) -> Any:
        """The events as a ``pyarrow.Table``: agents, kinds and barriers by name, times and values in numbers."""
        return import_module(_TABLES).trace_table(self)

    def to_pandas(self) -> Any:
        """The same as a ``pandas.DataFrame``. UsageError where pandas is not installed."""
        return import_module(_TABLES).as_pandas(self.to_arrow())

    def _repr_html_(self) -> str:
        """What a notebook shows: what the trace is of, and its timeline."""
        shown: str = import_module(_PAGE).trace_html(self)
        return shown


#: Columns with their types (str, int, or list of texts), and rows that have them.
Rows = tuple[Mapping[str, type], Sequence[Mapping[str, object]]]
#: Columns of a trace's table that are as in :class:`pipesim.trace.schema.Events`.
_AS_THEY_ARE = ("stage", "parity", "iteration", "value", "cycle", "time_ps", "error_ps", "globaltimer_ns")


def trace_table(trace: Trace) -> Any:
    """The events as a ``pyarrow.Table``, a row each: agent, role, kind, barrier and site by name, the rest in numbers.

    The names of the sites and agents are stored once (dictionary columns).
    """
    import pyarrow as pa

    meta, events = trace.meta, trace.events
    agents = [meta.agent_name(n) for n in range(len(meta.agents))]
    columns = {
        "cta": pa.array(events.cta),
        "agent": _dictionary_column(events.agent, agents),
        "role": _dictionary_column(events.agent, [agent.role for agent in meta.agents]),
        "warp": pa.array([agent.warp for agent in meta.agents]).take(pa.array(events.agent)),
        "kind": _dictionary_column(events.site, [site.kind.name.lower() for site in meta.sites]),
        "barrier": _dictionary_column(events.site, [site.barrier for site in meta.sites]),
        "site": _dictionary_column(events.site, [site.name for site in meta.sites]),
    }
    columns |= {name: pa.array(getattr(events, name)) for name in _AS_THEY_ARE}
    return pa.table(columns)


def rows_table(columns: Mapping[str, type], rows: Sequence[Mapping[str, object]]) -> Any:
    """Rows as a ``pyarrow.Table`` with these columns, which are there even without rows."""
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), list: pa.list_(pa.string())}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def as_pandas(table: Any) -> Any:
    """A ``pyarrow.Table`` as a ``pandas.DataFrame``; UsageError where pandas is not installed."""
    try:
        import pandas as pd  # noqa: F401  # pyarrow's own error does not say how to install it
    except ImportError as error:
        raise UsageError(
            "pandas is not installed",
            correction="pip install pandas, or use .to_arrow(), which Polars and DuckDB read, too",
        ) from error
    return table.to_pandas()


def _dictionary_column(numbers: Any, names: Sequence[str]) -> Any:
    """A dictionary column: the names by these numbers. Names that are alike are one entry."""
    import pyarrow as pa

    known = list(dict.fromkeys(names))
    place = {name: n for n, name in enumerate(known)}
    of = pa.array([place[name] for name in names], type=pa.int32())
    return pa.DictionaryArray.from_arrays(of.take(pa.array(numbers)), pa.array(known, type=pa.string()))
