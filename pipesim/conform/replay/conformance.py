"""Whether a trace conforms: every recorded CTA aligned with its program, replayed, and what follows for the verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from pipesim.conform.replay.align import EVERY, AgentAlignment, Alignments, Sight
from pipesim.conform.replay.alike import AlikeCtas, alike_ctas
from pipesim.conform.replay.divergence import CtaDivergences, words_beside
from pipesim.conform.replay.follow_records import STRICT, Rules, replay
from pipesim.conform.replay.latency_floor import LatencyFloors, floors_for
from pipesim.conform.replay.releases import Releases, Rows, Stopwatch
from pipesim.conform.replay.replay_log import ReplayLog, ReplayLogWatch
from pipesim.conform.replay.word_values import RecordedWords, early_read
from pipesim.conform.result import Conformance, Divergence, DivergenceKind, LatencyCheck, TraceVerdict
from pipesim.errors import EvidenceError
from pipesim.model.ending import HUNG, Ending
from pipesim.model.groups import MAY_BLOCK
from pipesim.model.machine import State, finished
from pipesim.model.program import Program
from pipesim.trace.arrays import np
from pipesim.trace.recorder import ps_to_cycles
from pipesim.trace.schema import (
    EARLIER_KERNELS,
    READ_FROM,
    AgentInfo,
    BarrierGroup,
    Column,
    CtaInfo,
    Events,
    SiteKey,
    Trace,
)
from pipesim.trace.sites import SiteTable, WordRecords, optional_of, site_table

_SEVERAL = 4  #: CTAs from which on a certificate takes less than their replays


def conform(
    program: Program, trace: Trace, only: frozenset[SiteKey] | None = None, talk: RecordedWords | None = None
) -> Conformance:
    """Compare every recorded CTA (or cluster) with ``program``. EvidenceError if the trace is another kernel's.

    ``only``: the sites that were recorded, of a program that does more; None for all of them. ``talk``: the words of
    global memory by which the program's CTAs talk.
    """
    records = {} if talk is None else talk.records
    also = optional_of(trace.meta) | _waits_for_kernels(program, trace, records)
    table = site_table(program, also, only, None if talk is None else records)
    require_same_kernel(program, table, trace)
    watch = _stopwatch(program, trace)
    trace = as_clusters(program, trace)
    alignments = Alignments(program, table, trace)
    uncertainty = order_uncertainty(trace)
    lost = sum(sum(c.dropped) for c in trace.meta.ctas)
    ctas = recorded_ctas(trace)
    if not ctas:
        return Conformance(TraceVerdict.UNKNOWN, 0, 0, lost, uncertainty)
    first: Divergence | None = None
    hung: Divergence | None = None  # of the first CTA, if the kernel did not finish and each CTA that is here did
    iterations, ended, words = 0, True, 0
    rows, known = dict.fromkeys(ctas, slice(0)) | _rows_of_ctas(trace.events), None
    for cta in ctas:
        found = None if known is None else _like_another(program, trace, cta, rows[cta], known, watch)
        if found is None:
            found = _replay_cta(program, table, trace, cta, rows[cta], alignments, uncertainty, watch, talk)
            if cta == ctas[0] and len(ctas) >= _SEVERAL and talk is None:
                known = _known_from(program, trace, cta, rows[cta], found)
        iterations, ended = max(iterations, found.iterations), ended and found.ended
        hung, words = hung or found.hung, words + found.words
        if found.divergence is not None and not found.divergence.stuck_too:
            first = found.divergence
            break
        first = first or found.divergence  # stuck as the kernel is: a CTA that does something else comes before it
    first = first or hung
    whole = not lost and ended and len(trace.events) > 0  # without an event there was nothing to compare
    verdict = TraceVerdict.DIFFERS if first is not None else TraceVerdict.AGREES if whole else TraceVerdict.UNKNOWN
    return Conformance(
        verdict,
        len(trace.events),
        len(ctas) * program.agent_ctas,  # a cluster's CTAs are seen as one here
        lost,
        uncertainty,
        first,
        trace.meta.window,
        iterations,
        ended=ended,
        words=words,
        latency=_latency_check(watch) if trace.meta.source == "hardware" else None,
    )


def _waits_for_kernels(program: Program, trace: Trace, records: WordRecords) -> frozenset[SiteKey]:
    """The sites of waits for earlier kernels that a trace has to have, which says that it records such waits."""
    roles = trace.meta.extra.get(EARLIER_KERNELS)
    waits = ((program.agents[at].role, said) for (at, _), said in records.items() if said[0] == EARLIER_KERNELS)
    mine = [(role, said) for role, said in waits if isinstance(roles, list) and role in roles]
    return frozenset((role, kind, word) for role, (word, events) in mine for kind, _ in events)


def _floors_of(trace: Trace) -> LatencyFloors | None:
    """The bounds for a trace of hardware.

    A kernel that was recorded by its PTX has less between a timestamp and its instruction than one with the
    recorder in its source (52 cycles instead of 74 from an arrive to the return of its wait, H200), and bounds of its
    own.
    """
    if trace.meta.source != "hardware":
        return None
    return floors_for(trace.meta.device.name, by_ptx=READ_FROM in trace.meta.extra)


def replay_logs(program: Program, trace: Trace) -> Iterator[tuple[int, ReplayLog | None]]:
    """What each phase was made of and who saw it, as far as the trace conforms: for each CTA (or first of a cluster).

    None for a CTA whose events are not those of the program. EvidenceError if the trace is another kernel's.
    """
    table = site_table(program, optional_of(trace.meta))
    require_same_kernel(program, table, trace)
    watch = ReplayLogWatch(own_rows(program, trace))
    trace = as_clusters(program, trace)
    alignments = Alignments(program, table, trace)
    uncertainty = order_uncertainty(trace)
    for cta in recorded_ctas(trace):
        rows = np.flatnonzero(trace.events.cta == cta)
        found = _replay_cta(program, table, trace, cta, rows, alignments, uncertainty, watch)
        log = watch.log
        watch.log = None
        if log is not None:
            log.divergence = found.divergence
        yield cta, log


def _stopwatch(program: Program, trace: Trace) -> Stopwatch | None:
    """The clocks of a trace whose CTAs are not seen as clusters yet, None where nothing bounds its times."""
    floors, khz = _floors_of(trace), trace.meta.device.sm_khz
    if floors is None or khz <= 0:
        return None
    own = trace.events.cycle[own_rows(program, trace)] if _is_clustered(program, trace) else None
    return Stopwatch(own, order_uncertainty(trace), khz, floors)


def _latency_check(watch: Stopwatch | None) -> LatencyCheck:
    """What was compared with the least latencies, of all CTAs."""
    if watch is None:
        return LatencyCheck("")
    return LatencyCheck(watch.floors.device, watch.checked, watch.unchecked)


def order_uncertainty(trace: Trace) -> int:
    """Cycles by which two timestamps of one SM may be in the wrong order: as the capture states, 0 for a simulation."""
    stated = trace.meta.extra.get("order_error_cycles", 0)
    if type(stated) is not int or stated < 0:
        raise EvidenceError(f"the trace states an impossible clock uncertainty: {stated!r} cycles")
    return stated


def require_same_kernel(program: Program, table: SiteTable, trace: Trace) -> None:
    """Raise EvidenceError if the agents or barriers of the trace are not those of the program."""
    clustered = program.ctas > 1 and trace.meta.agents == all_agents(program)  # CTAs that are seen as one already
    for what, mine, theirs in (
        ("agents", trace.meta.agents if clustered else table.agents, trace.meta.agents),
        ("barriers", table.barriers, trace.meta.barriers),
    ):
        if mine != theirs:
            raise EvidenceError(
                f"the trace of {trace.meta.protocol} does not have the {what} of {program.name}",
                cause=f"trace: {_list_members(theirs)}; protocol: {_list_members(mine)}",
                correction="compare it with the protocol and parameters of the recording",
            )


def _list_members(members: Sequence[AgentInfo | BarrierGroup]) -> str:
    """Agents with their warps, or groups with their stages and counts, in the order of their table."""
    return ", ".join(map(_member_text, members)) or "none"


def _member_text(member: AgentInfo | BarrierGroup) -> str:
    if isinstance(member, AgentInfo):
        return f"{member.name} (warp {member.warp})"
    stages = "1 stage" if member.stages == 1 else f"{member.stages} stages"
    return f"{member.name} ({stages}, count {member.count})"


class _CtaResult(NamedTuple):
    """One CTA: its first divergence; ``hung`` if it has none although the kernel did not finish.

    ``iterations`` is the most that an agent of the program has; ``ended``: the records, or the iterations counted by
    the kernel, show that every agent went through all of its own. ``words``: barrier words that agree. ``followed``:
    of a finished CTA without a divergence, where its replay ended.
    """

    divergence: Divergence | None
    hung: Divergence | None
    iterations: int
    ended: bool
    words: int = 0
    followed: "_Followed | None" = None


class _Followed(NamedTuple):
    """How a CTA was replayed to its end: its agents, what released them, and the state of the machine."""

    aligned: list[AgentAlignment]
    releases: Releases | None
    state: State


class _Known(NamedTuple):
    """A CTA that was replayed: its result, and what that says of others."""

    result: _CtaResult
    followed: _Followed
    alike: AlikeCtas


def _rows_of_ctas(events: Events) -> dict[int, Rows]:
    """The rows of each CTA, in their order."""
    column = events.stored("cta")
    begins = [0, *(np.flatnonzero(column[1:] != column[:-1]) + 1).tolist(), len(column)]
    runs: dict[int, list[tuple[int, int]]] = {}
    for begin, end in pairwise(begins):
        if begin < end:
            runs.setdefault(int(column[begin]), []).append((begin, end))
    return {
        cta: slice(*mine[0]) if len(mine) == 1 else np.concatenate([np.arange(*run, dtype=np.int64) for run in mine])
        for cta, mine in runs.items()
    }


def _known_from(program: Program, trace: Trace, cta: int, rows: Rows, found: _CtaResult) -> _Known | None:
    """What the result of a CTA says of others, None if nothing."""
    if found.followed is None or trace.meta.window:
        return None
    info, events = _info(trace, cta), trace.events.select(rows)
    made = alike_ctas(program, info, events, found.followed.aligned, found.followed.releases)
    return None if made is None else _Known(found._replace(followed=None), found.followed, made)


def known_of_first(program: Program, trace: Trace) -> AlikeCtas | None:
    """What the replay of a trace's first CTA says of others, None if nothing."""
    cta = recorded_ctas(trace)[0]
    rows = _rows_of_ctas(trace.events)[cta]
    table, watch = site_table(program, optional_of(trace.meta)), _stopwatch(program, trace)
    alignments = Alignments(program, table, trace)
    found = _replay_cta(program, table, trace, cta, rows, alignments, order_uncertainty(trace), watch)
    known = _known_from(program, trace, cta, rows, found)
    return None if known is None else known.alike


def _like_another(
    program: Program, trace: Trace, cta: int, rows: Rows, known: _Known, watch: Stopwatch | None
) -> _CtaResult | None:
    """The result of a CTA that did the same as one that is known; None if it has to be replayed."""
    events = trace.events.select(rows)
    if not known.alike.agrees(_info(trace, cta), events, events.cycle if watch is None else watch.own_of(events, rows)):
        return None
    beside = words_beside(program, known.followed.state, trace.meta, cta)
    if any(both.read != both.model for both in beside):
        return None
    if watch is not None and known.followed.releases is not None:
        watch.count(known.followed.releases)
    return known.result._replace(words=len(beside))


def recorded_ctas(trace: Trace) -> list[int]:
    """The CTAs that recorded, by their numbers."""
    return sorted(_rows_of_ctas(trace.events).keys() | {c.cta for c in trace.meta.ctas})


def events_of(trace: Trace, cta: int) -> Events:
    """The events of one CTA, in the order of the file."""
    mine = trace.events.cta == cta
    return trace.events if bool(mine.all()) else trace.events.select(mine)


def align_cta(
    program: Program, alignments: Alignments, trace: Trace, events: Events, cta: int
) -> tuple[list[AgentAlignment], list[bool]]:
    """Each agent along its records, and whether all that is wrong is that these end."""
    info = _info(trace, cta)
    aligned = [alignments(events, agent, _sight(trace, info, agent)) for agent in range(len(program.agents))]
    return aligned, [a.mismatch is not None and a.mismatch.kind is DivergenceKind.MISSING_EVENT for a in aligned]


def _info(trace: Trace, cta: int) -> CtaInfo:
    return next((c for c in trace.meta.ctas if c.cta == cta), CtaInfo(cta, 0))


def _replay_cta(
    program: Program, table: SiteTable, trace: Trace, cta: int, rows: Rows, alignments: Alignments, uncertainty: int,
    watch: Stopwatch | ReplayLogWatch | None = None, talk: RecordedWords | None = None,
) -> _CtaResult:  # fmt: skip
    events, info = trace.events.select(rows), _info(trace, cta)
    # where the records of a kernel that was stopped end is not a divergence in itself
    aligned, ending = align_cta(program, alignments, trace, events, cta)
    divergences = CtaDivergences(program, table, trace, events, cta)
    hung = trace.meta.status != Ending.FINISHED
    mismatches = [a.mismatch for a, ends in zip(aligned, ending, strict=True) if a.mismatch and not (hung and ends)]
    iterations = max((a.iterations[1] for a in aligned), default=0)
    ended = all(a.end == len(a.ran) or (info.passes and _fits(a, info.passes)) for a in aligned)
    if mismatches:
        wrong = divergences.mismatch(min(mismatches, key=lambda m: (divergences.time(m.row), m.agent)))
        return _CtaResult(wrong, None, iterations, ended)
    partial = [
        a.cut or (hung and (ends or a.end < len(a.ran) or _waits_unseen(program, a)))
        for a, ends in zip(aligned, ending, strict=True)
    ]
    releases = None if watch is None else watch.start(program, aligned, events, rows)
    followed = replay(program, events, aligned, partial, uncertainty, divergences, STRICT, releases)
    found = followed.divergence
    if isinstance(watch, Stopwatch) and isinstance(releases, Releases):
        watch.count(releases)
    if trace.meta.status in HUNG and found is not None and found.kind is DivergenceKind.FAULT:
        # the hardware may not have noticed it, and hung later
        further = replay(program, events, aligned, partial, uncertainty, divergences, Rules(forgiving=True))
        if further.divergence is None and (stuck := divergences.not_finished(further.state)).stuck_too:
            return _CtaResult(
                replace(stuck, claim=f"{stuck.claim}; before that, {found.claim}"), None, iterations, ended
            )
    early = None if found is not None or talk is None else early_read(events, aligned, talk.words, uncertainty)
    if early is not None:
        found = divergences.word_too_early(early)
    if found is None and not hung and info.passes:
        other = next((a for a in aligned if a.end < len(a.ran) and not _fits(a, info.passes)), None)
        if other is not None:
            found = divergences.other_passes(other.agent, other.iterations, info.passes[other.agent])
    if trace.meta.status == Ending.UNKNOWN:  # a simulation that was cut off: nothing shows how it would have ended
        return _CtaResult(found, None, iterations, ended=False)
    if found is None and not hung and not any(partial):
        beside = words_beside(program, followed.state, trace.meta, cta)
        differ = [both for both in beside if both.read != both.model]
        if differ:
            return _CtaResult(divergences.other_words(differ), None, iterations, ended, len(beside))
        kept = _Followed(aligned, releases if isinstance(releases, Releases) else None, followed.state)
        return _CtaResult(None, None, iterations, ended, len(beside), kept)
    if found is not None or not hung:
        return _CtaResult(found, None, iterations, ended)
    stopped = divergences.not_finished(followed.state)
    stands = any(
        p and not (a.mismatch is None and finished(program, followed.state, a.agent))
        for p, a in zip(partial, aligned, strict=True)
    )
    return _CtaResult(stopped if stands else None, None if stands else stopped, iterations, ended)


def _waits_unseen(program: Program, aligned: AgentAlignment) -> bool:
    """Whether an agent may have stayed after its last record: something that may block and leaves none follows it."""
    code = program.code[aligned.agent]
    for pc, mine in zip(reversed(aligned.ran), reversed(aligned.rows), strict=True):
        if mine:
            return False
        if code[pc][0] in MAY_BLOCK:
            return True
    return False


def _fits(aligned: AgentAlignment, passes: tuple[int, ...]) -> bool:
    """Whether the kernel counted as many iterations of an agent as its program has."""
    return aligned.iterations[0] <= passes[aligned.agent] <= aligned.iterations[1]


def _sight(trace: Trace, info: CtaInfo, agent: int) -> Sight:
    """What the recording kept of one agent of one CTA."""
    first, end = trace.meta.window or (0, EVERY)
    lost = bool(info.dropped and info.dropped[agent])
    stopped = trace.meta.status != Ending.FINISHED and info.passes
    return Sight(first, end, lost, info.passes[agent] if stopped else EVERY)


def all_agents(program: Program) -> tuple[AgentInfo, ...]:
    """The agents of all CTAs of a cluster, in the order of the program."""
    return tuple(AgentInfo(a.role, a.index, a.warp) for a in program.agents)


def _is_clustered(program: Program, trace: Trace) -> bool:
    """Whether clusters of a trace have several CTAs, which are not seen as one yet."""
    return program.agent_ctas > 1 and len(trace.meta.agents) != len(program.agents)


def as_clusters(program: Program, trace: Trace) -> Trace:
    """``trace`` with each cluster as one CTA, which has the number of its first; the trace itself without clusters.

    ``cycle`` becomes cycles of the common time line, and the order of two timestamps uncertain by both their errors.
    EvidenceError if a cluster was not recorded whole.
    """
    size = program.agent_ctas
    if not _is_clustered(program, trace):
        return trace
    headers = {header.cta: header for header in trace.meta.ctas}
    recorded = sorted({int(cta) for cta in np.unique(trace.events.cta)} | headers.keys())
    clusters = sorted({cta // size for cta in recorded})
    missing = [cta for c in clusters for cta in range(c * size, c * size + size) if cta not in recorded]
    if missing and trace.meta.source == "hardware":
        raise EvidenceError(
            f"CTA {missing[0]} was not recorded, but others of its cluster of {size} were",
            cause="its operations on their barriers are unknown",
            correction="record whole clusters (--record-ctas)",
        )
    events, khz = trace.events, trace.meta.device.sm_khz
    cycle = events.cycle if trace.meta.source != "hardware" else ps_to_cycles(events.time_ps, khz)
    merged = replace(_as_cluster_events(program, events), cycle=cycle)
    order = _order(merged)
    infos = tuple(_one(headers, c * size, size) for c in clusters) if headers else ()
    stated = trace.meta.extra.get("order_error_cycles", 0)
    slack = 2 * (int(events.error_ps.max(initial=0)) * khz // 10**9 + 1) if trace.meta.source == "hardware" else 0
    extra = trace.meta.extra | {"order_error_cycles": stated + slack if type(stated) is int else stated}
    meta = replace(trace.meta, agents=all_agents(program), ctas=infos, extra=extra)
    return Trace(meta, merged.select(order))


def own_rows(program: Program, trace: Trace) -> Column:
    """The row of ``trace`` of each event of :func:`as_clusters` of it."""
    if not _is_clustered(program, trace):
        return np.arange(len(trace.events), dtype=np.int64)
    return _order(_as_cluster_events(program, trace.events))


def _as_cluster_events(program: Program, events: Events) -> Events:
    """Each event as one of its cluster: the cluster's first CTA, and the agent's number in the program."""
    size = program.agent_ctas
    each = len(program.agents) // size
    return replace(events, cta=events.cta // size * size, agent=events.agent % each + events.cta % size * each)


def _order(merged: Events) -> Column:
    """The rows CTA by CTA and agent by agent, each agent's in their order."""
    order: Column = np.lexsort((np.arange(len(merged)), merged.agent, merged.cta))
    return order


def _one(headers: dict[int, CtaInfo], first: int, size: int) -> CtaInfo:
    """The headers of a cluster as one, the words of all its CTAs one after another."""
    parts = [headers[cta] for cta in range(first, first + size)]
    passes = tuple(n for part in parts for n in part.passes) if all(part.passes for part in parts) else ()
    words = tuple(n for part in parts for n in part.barrier_words) if all(p.barrier_words for p in parts) else ()
    return replace(
        parts[0],
        written=tuple(n for part in parts for n in part.written),
        dropped=tuple(n for part in parts for n in part.dropped),
        passes=passes,
        barrier_words=words,
    )
