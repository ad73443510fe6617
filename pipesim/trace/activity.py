"""What each agent of a trace does when: what its waits are for, and its events, taken in pairs, as spans to draw.

A site table may say what a wait is for. In older traces it follows from who records what: bytes bring data; who waits
for data brings room back to the one that copied it; a wait that a fresh barrier lets pass is for room.

Windows: the trace that a recorder with less room would have left, made from a whole one.

An event belongs to the iteration that its ``iteration`` column names: how often its agent passed its site before. A
recorder keeps an iteration of an agent whole or not at all.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum

from pipesim.errors import ParameterError
from pipesim.model.ending import HUNG, Ending
from pipesim.model.tables import meeting_name
from pipesim.model.waits import WaitPurpose
from pipesim.trace.arrays import np, npt
from pipesim.trace.schema import Column, CtaInfo, EventKind, Events, Site, Trace, TraceMeta

_ASKS = (EventKind.WAIT_ENTER, EventKind.TRY)
_OF_OTHERS = {EventKind.BAR_ENTER, EventKind.GROUP_ENTER, EventKind.SPIN_ENTER, EventKind.ATOMIC_ENTER}
#: From an event of such a kind to its agent's next one the agent waits.
WAITS_FROM = frozenset({EventKind.WAIT_ENTER} | _OF_OTHERS)


class SliceKind(Enum):
    """What a slice shows. The value is a phrase for a legend."""

    DATA = "waits for data"
    ROOM = "waits for room"
    OTHER = "waits for other warps or its own transfers"
    WORK = "works"
    ISSUE = "issues"
    COPY = "copy in flight"
    MMA = "MMA in flight"

    @property
    def waits(self) -> bool:
        """True of the waits of an agent."""
        return self in (SliceKind.DATA, SliceKind.ROOM, SliceKind.OTHER)

    @property
    def in_flight(self) -> bool:
        """True of what is under way beside the agents."""
        return self in (SliceKind.COPY, SliceKind.MMA)


def waited_for(site: Site) -> str:
    """What an agent waits for from an event of this site on: ``full``, ``named barrier 1``, ``its bulk groups``."""
    return waited_words(site.kind, site.barrier)


def waited_words(kind: EventKind, barrier: str) -> str:
    """The same by the kind of the site and what it is on."""
    if kind is EventKind.BAR_ENTER:
        return meeting_name(int(barrier))
    return f"its {barrier.replace('_', '.')} groups" if kind is EventKind.GROUP_ENTER else barrier


def awaited_by_site(trace: Trace) -> tuple[WaitPurpose | None, ...]:
    """What the wait or try of each site is for, None for a site of another kind."""
    sites = trace.meta.sites
    of: defaultdict[EventKind, set[tuple[str, str]]] = defaultdict(set)
    for site in sites:
        of[site.kind].add((site.role, site.barrier))
    asks = of[EventKind.WAIT_ENTER] | of[EventKind.TRY]
    brings = of[EventKind.COPY] | of[EventKind.EXPECT] | of[EventKind.CP_ASYNC_ARRIVE]
    with_bytes = {barrier for _, barrier in brings}

    def derive_purpose(site: Site) -> WaitPurpose:
        if site.barrier in with_bytes:
            return WaitPurpose.DATA
        arriving = {role for role, barrier in of[EventKind.ARRIVE] if barrier == site.barrier}
        mine = {barrier for role, barrier in brings if role == site.role}
        if any((role, barrier) in asks for role in arriving for barrier in mine):
            return WaitPurpose.ROOM
        return WaitPurpose.ROOM if _first_parity(trace, site) == 1 else WaitPurpose.DATA

    return tuple((site.awaited or derive_purpose(site)) if site.kind in _ASKS else None for site in sites)


def known_from(trace: Trace, other: Trace) -> Trace:
    """The trace with what the site table of another trace of this protocol says where its own says nothing."""
    known = {site.key: site.awaited for site in other.meta.sites}
    sites = tuple(
        site if site.awaited is not None else replace(site, awaited=known.get(site.key)) for site in trace.meta.sites
    )
    return Trace(replace(trace.meta, sites=sites), trace.events)


def waited_groups(trace: Trace) -> tuple[tuple[str, WaitPurpose], ...]:
    """The groups of barriers that the trace's agents wait for, and what for, in the order of its sites.

    A group is there twice where one role waits for data on it and another for room.
    """
    pairs = zip(trace.meta.sites, awaited_by_site(trace), strict=True)
    found = ((s.barrier, what) for s, what in pairs if s.kind is EventKind.WAIT_ENTER and what is not None)
    return tuple(dict.fromkeys(found))


def _first_parity(trace: Trace, site: Site) -> int:
    """The parity of the first wait or try of a role on a group, -1 where the beginning was not recorded."""
    if trace.meta.window and trace.meta.window[0] > 0:
        return -1
    alike = [n for n, each in enumerate(trace.meta.sites) if (each.role, each.barrier) == (site.role, site.barrier)]
    rows = np.flatnonzero(np.isin(trace.events.site, alike) & (trace.events.parity >= 0))
    return int(trace.events.parity[rows[0]]) if len(rows) else -1


FOREVER = 1 << 62  #: end of a wait that never returned


@dataclass(frozen=True)
class Track:
    """One agent's spans (begin, end, what it does), in order, in cycles since the first event of its CTA."""

    name: str
    spans: tuple[tuple[int, int, SliceKind], ...]


@dataclass(frozen=True)
class Picture:
    """One CTA's tracks, in the order of the trace's agents.

    ``end`` is its last event, ``origin`` its first event by the trace's own clock.
    ``lap`` is the cycles from one pass of the busiest place to the next, on the average: it only chooses the scale.
    ``stuck`` says that a wait is open: it never returned. ``part`` says that only a window of the run was recorded.
    ``unit`` is what the times count; of a schedule, whose ``cta`` is -1, they are its moves.
    """

    source: str
    cta: int
    tracks: tuple[Track, ...]
    origin: int
    end: int
    lap: int
    stuck: bool
    part: bool
    unit: str = "cycle"


_LONG, _NEAR = 1 << 18, 64  #: events of a run of which a part is enough for a text, and its laps to either side


def picture(trace: Trace, cta: int | None = None, around: int | None = None, *, whole: bool = True) -> Picture:
    """The tracks of a recorded CTA (None: the lowest number), shifted so that its first event is at 0.

    Not ``whole``: of a very long run that is not stuck what is near the cycle ``around``, or near its first.
    """
    column = trace.events.stored
    if cta is None or not np.any(column("cta") == cta):
        cta = int(column("cta").min()) if len(trace.events) else 0
    mine = np.flatnonzero(column("cta") == cta)
    cycle, iteration = column("cycle")[mine], column("iteration")[mine]
    origin = int(cycle.min()) if len(mine) else 0
    end = int(cycle.max()) - origin if len(mine) else 0
    lap = -(-end // (int(iteration.max()) - int(iteration.min()) + 1)) if len(mine) else 0
    of_site, near = kinds_by_site(trace), origin if around is None else around
    is_part = not whole and len(mine) > _LONG and trace.meta.status not in HUNG
    part = (near - _NEAR * lap, near + _NEAR * lap) if is_part else None
    agents = column("agent")[mine]
    tracks = tuple(
        _track(trace, mine[agents == agent], agent, origin, of_site, part) for agent in range(len(trace.meta.agents))
    )
    stuck = any(track.spans and track.spans[-1][1] == FOREVER for track in tracks)
    return Picture(trace.meta.source, cta, tracks, origin, end, lap, stuck, bool(trace.meta.window))


def _track(
    trace: Trace, rows: Column, agent: int, origin: int, of_site: list[SliceKind], part: tuple[int, int] | None
) -> Track:
    cycle, site = trace.events.stored("cycle"), trace.events.stored("site")
    if part is not None:  # with the events before it and after it
        first, last = (int(at) for at in np.searchsorted(cycle[rows], part))
        rows = rows[max(first - 1, 0) : last + 1]
    times = [int(t) - origin for t in cycle[rows]]
    kinds = [of_site[int(number)] for number in site[rows]]
    spans = list(zip(times[:-1], times[1:], kinds[:-1], strict=True))
    if (
        times
        and trace.meta.status in HUNG  # its open waits never return; other traces may just stop there
        and trace.meta.sites[int(site[rows[-1]])].kind in WAITS_FROM
    ):
        spans.append((times[-1], FOREVER, kinds[-1]))
    return Track(trace.meta.agent_name(agent), tuple(spans))


def kinds_by_site(trace: Trace) -> list[SliceKind]:
    """What an agent does from an event of each site on: to its next event, or to the one that ends it."""
    found = []
    for site, awaited in zip(trace.meta.sites, awaited_by_site(trace), strict=True):
        if site.kind is EventKind.WAIT_ENTER:
            found.append(wait_kind(awaited))
        elif site.kind in WAITS_FROM:
            found.append(SliceKind.OTHER)
        else:
            found.append(SliceKind.WORK if site.kind is EventKind.WORK_BEGIN else SliceKind.ISSUE)
    return found


def wait_kind(awaited: WaitPurpose | None) -> SliceKind:
    """A wait for this; one that nothing is known about is taken for a wait for data."""
    return SliceKind.ROOM if awaited is WaitPurpose.ROOM else SliceKind.DATA


def other_waits(trace: Trace) -> tuple[str, ...]:
    """What the agents of a trace wait for besides mbarriers, in the order of its sites."""
    found = (waited_for(s) for s in trace.meta.sites if s.kind in WAITS_FROM and s.kind is not EventKind.WAIT_ENTER)
    return tuple(dict.fromkeys(found))


_OPEN = (*WAITS_FROM, EventKind.WORK_BEGIN)  # an event of the same agent ends what they begin


def cut(trace: Trace, first: int, end: int) -> Trace:
    """The iterations ``first`` to ``end - 1`` of every agent of a whole trace; headers say how far each agent came.

    Raises ParameterError for a window that keeps nothing, and for a trace of which something is missing already.
    """
    if not 0 <= first < end:
        raise ParameterError(
            f"the window {first}..{end} keeps no iteration", correction="for example 10..42, which keeps 10 to 41"
        )
    meta, events = trace.meta, trace.events
    if meta.window or any(sum(header.dropped) for header in meta.ctas):
        raise ParameterError(
            f"the trace of {meta.protocol} is not complete",
            cause="it was recorded with a window, or lost records",
            correction="cut a complete trace",
        )
    kept = events.select((events.iteration >= first) & (events.iteration < end))
    numbers = np.unique(events.cta).tolist()
    headers = meta.ctas or tuple(CtaInfo(number, 0) for number in numbers)
    ctas = tuple(
        replace(
            header,
            written=_count(kept, header.cta, len(meta.agents)),
            passes=header.passes or _passes(header.cta, events, meta),
        )
        for header in headers
    )
    return Trace(replace(meta, window=(first, end), ctas=ctas), kept)


def _count(events: Events, cta: int, agents: int) -> tuple[int, ...]:
    return tuple(np.bincount(events.agent[events.cta == cta], minlength=agents).tolist())


def _passes(cta: int, events: Events, meta: TraceMeta) -> tuple[int, ...]:
    """How many iterations each agent of a whole trace went through, less the one that it was stopped in."""
    found = []
    for agent in range(len(meta.agents)):
        mine = np.flatnonzero((events.cta == cta) & (events.agent == agent))
        passes = _most(events.iteration[mine])
        if len(mine) and meta.status != Ending.FINISHED and meta.sites[int(events.site[mine[-1]])].kind in _OPEN:
            passes -= 1
        found.append(passes)
    return tuple(found)


def _most(iterations: "npt.NDArray[np.int64]") -> int:
    return int(iterations.max()) + 1 if len(iterations) else 0
