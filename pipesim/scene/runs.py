"""A run as a picture: from a trace alone, or from a trace and the program that it is of."""

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

from pipesim.conform.replay.conformance import replay_logs
from pipesim.conform.result import DivergenceKind
from pipesim.model.ending import HUNG, Ending
from pipesim.model.program import Program
from pipesim.scene.parts import OPEN, RunScene, SceneSlice, SceneTrack
from pipesim.scene.phases import Landings, PhasePictures
from pipesim.timed.profile import Profile
from pipesim.trace.activity import WAITS_FROM, kinds_by_site, waited_for
from pipesim.trace.arrays import np
from pipesim.trace.recorder import cycles_to_ps
from pipesim.trace.schema import Column, EventKind, Site, SiteKey, Trace, numbers
from pipesim.trace.sites import NO_SITES

_WORDS = {
    EventKind.ARRIVE: "arrive",
    EventKind.EXPECT: "arrive, expects bytes",
    EventKind.COPY: "issue copy",
    EventKind.TRY: "try",
    EventKind.CP_ASYNC_ARRIVE: "cp.async arrive",
    EventKind.BAR_ARRIVE: "arrive",
    EventKind.COMMIT: "commit",
    EventKind.GROUP_COMMIT: "commit group",
}


class AgentSlices(NamedTuple):
    """Tracks, slices, and the slice of each event by its row (-1: none)."""

    tracks: tuple[SceneTrack, ...]
    slices: list[SceneSlice]
    of_row: Sequence[int]


def agent_slices(trace: Trace, when: Column) -> AgentSlices:
    """The slices of all agents; ``when`` is the time of each event."""
    events, meta = trace.events, trace.meta
    sms = {header.cta: header.sm for header in meta.ctas}
    ctas = sorted({int(cta) for cta in np.unique(events.cta)} | sms.keys())
    tracks = [
        SceneTrack(cta, sms.get(cta, -1), info.warp, meta.agent_name(agent))
        for cta in ctas
        for agent, info in enumerate(meta.agents)
    ]
    begins, ends, error, of_row = _pair_rows(trace, when)
    site, stage = events.site[begins], events.stage[begins]
    lowest, stages = int(stage.min(initial=0)), int(stage.max(initial=0)) - int(stage.min(initial=0)) + 1
    named, of_slice = np.unique(site * stages + stage - lowest, return_inverse=True)  # few texts, of many slices
    texts = [_name(meta.sites[n // stages], n % stages + lowest) for n in named.tolist()]
    text = numbers(of_slice)
    kinds = kinds_by_site(trace)
    members = (
        numbers(np.searchsorted(ctas, events.cta[begins]) * len(meta.agents) + events.agent[begins]),
        map(kinds.__getitem__, numbers(site)),
        map([name for name, _ in texts].__getitem__, text),
        numbers(when[begins]),
        numbers(ends),
        numbers(begins),
        map([barrier for _, barrier in texts].__getitem__, text),
        *(numbers(column[begins]) for column in (events.parity, events.iteration, events.value)),
        repeat(None, len(begins)),
        repeat(False, len(begins)),
        numbers(error),
    )
    return AgentSlices(tuple(tracks), list(map(_slice, zip(*members, strict=True))), numbers(of_row))


_slice = partial(tuple.__new__, SceneSlice)  # a tenth of its constructor's time


def _pair_rows(trace: Trace, when: Column) -> tuple[Column, Column, Column, Column]:
    """For each slice the row at which it begins, its end and the uncertainty of that; and the slice of each row.

    A wait, or work, ends with its agent's next event, which is its return: a slice has both. One that has no return
    ends with whatever its agent did next; in a run that hung a wait with no next event never ends.
    """
    events, sites = trace.events, trace.meta.sites
    kinds = np.array([site.kind for site in sites], dtype=np.int64)[events.site]
    waits = np.array([site.kind in WAITS_FROM for site in sites], dtype=bool)[events.site]
    lasts = waits | (kinds == EventKind.WORK_BEGIN)
    follows = np.zeros(len(events), dtype=bool)
    follows[:-1] = (events.cta[1:] == events.cta[:-1]) & (events.agent[1:] == events.agent[:-1])
    paired = lasts & follows
    paired[:-1] &= kinds[1:] == kinds[:-1] + 1
    begins = np.ones(len(events), dtype=bool)
    begins[1:] = ~paired[:-1]
    following = np.append(when[1:], 0)
    alone = np.where(waits & (trace.meta.status in HUNG), OPEN, when)
    ends = np.where(lasts & follows, following, alone)
    error = np.where(paired, np.append(events.error_ps[1:], 0), events.error_ps)
    return np.flatnonzero(begins), ends[begins], error[begins], np.cumsum(begins) - 1


def _name(site: Site, stage: int) -> tuple[str, str]:
    barrier = f"{site.group}[{stage}]" if site.group and stage >= 0 else site.group
    match site.kind:
        case EventKind.WAIT_ENTER:
            return f"wait {barrier}", barrier
        case EventKind.BAR_ENTER | EventKind.GROUP_ENTER | EventKind.SPIN_ENTER | EventKind.ATOMIC_ENTER:
            return f"wait for {waited_for(site)}", ""
        case EventKind.WORK_BEGIN:
            return "work", ""
        case EventKind.WAIT_RETURN | EventKind.WORK_END | EventKind.BAR_RETURN | EventKind.GROUP_RETURN:
            return "return", barrier  # of what began before the records did
        case EventKind.SPIN_RETURN | EventKind.ATOMIC_RETURN:
            return "return", ""
        case EventKind.WORD_WRITE:
            return f"write {site.barrier}", ""
        case EventKind.BAR_ARRIVE:
            return f"arrive named barrier {site.barrier}", ""
        case EventKind.GROUP_COMMIT:
            return f"commit {site.barrier} group", ""
        case kind:
            return f"{_WORDS[kind]} {barrier}".rstrip(), barrier


NO_PROTOCOL = "without its protocol: no arrows, transfers in flight or counters"
LANDINGS_UNKNOWN = "a recording does not show when a transfer ended: it is drawn to end with the wait that needed it"


_END = attrgetter("end")
_BEYOND = 12  #: of a run in which something never ended, the part that is drawn after its last event
MOST_OPERATIONS = 1_000_000  #: that a simulation is drawn of


def simulated_scene(
    program: Program,
    profile: Profile,
    *,
    traced: bool = False,
    max_steps: int = MOST_OPERATIONS,
    also: frozenset[SiteKey] = NO_SITES,
) -> tuple[RunScene, Trace]:
    """The picture of one simulated run, with the exact ends of its transfers, and its trace.

    ``traced`` adds what each record costs on the GPU; ``also``: optional sites at which records are made.
    """
    from pipesim.timed.engine import simulate  # with SimPy, which the picture of a recording does not need

    result = simulate(
        program, profile, traced=traced, max_steps=max_steps, also=also, until_time_limit=True, landings=True
    )
    trace = result.trace
    ends = cycles_to_ps(
        np.array([cycle for *_, cycle in result.landings], dtype=np.int64), trace.meta.device.sm_khz
    ).tolist()
    landings = {(0, a, pc, barrier): at for (a, pc, barrier, _), at in zip(result.landings, ends, strict=True)}
    return trace_scene(trace, program, f"simulation ({profile.name})", landings), trace


def trace_scene(trace: Trace, program: Program | None, label: str, landings: Landings | None = None) -> RunScene:
    """The picture of a trace. ``program``: the one that it was recorded of, None where that is not known.

    ``landings``: when transfers ended, in picoseconds of the trace's time line, where a simulation knows it; the others
    are drawn to end with the wait that needed them. EvidenceError if the trace is of another kernel.
    """
    origin = int(trace.events.time_ps.min()) if len(trace.events) else 0
    times: Column = trace.events.time_ps - origin
    mine, when = agent_slices(trace, times), numbers(times)
    notes = []
    lost = sum(sum(header.dropped) for header in trace.meta.ctas)
    if lost:
        notes.append(f"{lost:,} records were lost")
    if trace.meta.window:
        notes.append(f"recorded: iterations {trace.meta.window[0]} to {trace.meta.window[1] - 1}")
    if trace.meta.status in HUNG:
        notes.append("it did not finish: waits without an end never returned")
    elif trace.meta.status is Ending.UNKNOWN:
        notes.append("it was cut off before its end")
    if program is None:
        return _scene(trace, label, mine, when, None, [NO_PROTOCOL, *notes])
    shifted = {key: at - origin for key, at in (landings or {}).items()}
    sms = {header.cta: header.sm for header in trace.meta.ctas}
    pictured = PhasePictures(program, mine.slices, mine.of_row, when, sms, shifted, list(mine.tracks))
    for cta, log in replay_logs(program, trace):
        if log is not None:
            pictured.add(cta, log)
        if log is None or (log.divergence is not None and log.divergence.kind is not DivergenceKind.NOT_FINISHED):
            notes.append(f"CTA {cta} does not follow the protocol: arrows and counters end there")
    if pictured.unseen:
        notes.append(f"{pictured.unseen:,} arrivals left no record of their own: no arrow starts from them")
    if landings is None and any(each.at_most for each in pictured.slices):
        notes.append(LANDINGS_UNKNOWN)
    return _scene(trace, label, mine, when, pictured, notes)


def _scene(
    trace: Trace, label: str, mine: AgentSlices, when: Sequence[int], pictured: PhasePictures | None, notes: list[str]
) -> RunScene:
    tracks = tuple(pictured.tracks) if pictured is not None else mine.tracks
    arrows = tuple(pictured.arrows) if pictured is not None else ()
    counters = tuple(pictured.counters) if pictured is not None else ()
    ends = list(map(_END, mine.slices))
    end = max(max(when, default=0), max(ends, default=0))
    if OPEN in ends:
        end += end // _BEYOND  # else nothing would be seen of what began last and never ended
    return RunScene(label, trace.meta.source, tracks, tuple(mine.slices), arrows, counters, end, tuple(notes))
