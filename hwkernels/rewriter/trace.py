"""From the buffer of a rewritten kernel to its trace: what its warps did, named as the program read from its PTX."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from hwkernels.records.clocks import ANCHOR, CLOCK_SKEW_CYCLES, Line, read_line
from hwkernels.rewriter.emission import EMISSION
from hwkernels.rewriter.instrument import RewrittenPtx
from hwkernels.rewriter.lock_decisions import as_decided, as_handed_out
from hwkernels.rewriter.streams import NOTHING, LaneStream, StepRecord, Walk, lane_stream
from hwkernels.rewriter.word_turns import in_turn
from pipesim.errors import TraceFormatError
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.trace.recorder import EventBuffer, Meaning
from pipesim.trace.schema import (
    EARLIER_KERNELS,
    HANDED_OUT,
    LOCK_FAILURES,
    ON_WORDS,
    ORIGIN,
    READ_FROM,
    TURNS,
    WORDS,
    Anchor,
    Column,
    CtaInfo,
    Device,
    EventKind,
    Events,
    Site,
    SiteKey,
    Trace,
    TraceMeta,
)
from pipesim.trace.sites import Record, SiteTable, WordRecords, optional_sites, site_table, with_roles_of_first_cta
from pipesim.trace.word_records import word_records

_RETURNS = frozenset({EventKind.WAIT_RETURN, EventKind.BAR_RETURN, EventKind.GROUP_RETURN})
_RETURNS |= {EventKind.SPIN_RETURN, EventKind.ATOMIC_RETURN}
_TIMER_STEP_NS = 32  #: of %globaltimer (measured, H100 and H200)
_KHZ = 1_980_000  #: of an SM under load, where nothing better is known (measured, H200)


def decode_records(kernel: RewrittenPtx, buffer: bytes, device: Device) -> Trace:
    """The trace of the launch that left this buffer; ``device``: on which it ran.

    How often another CTA had a lock is read from the records. Raises TraceFormatError if they are not those of the
    kernel: one is missing, of another site or in another order than the program says.
    """
    streams = {
        key: lane_stream(data, f"rank {key.rank}, warp {key.warp}, lane {key.lane}")
        for key, data in zip(kernel.layout.streams, kernel.layout.streams_of(buffer), strict=True)
    }
    kernel = as_decided(as_handed_out(in_turn(kernel, streams), streams), streams)
    walks = []
    for agent, (path, lanes) in enumerate(zip(kernel.streams, kernel.writers.lanes, strict=True)):
        mine = {k.lane: s for k, s in streams.items() if (k.rank, k.warp) == (path.cta, path.warp) and k.lane in lanes}
        walk = Walk(kernel, agent, mine, cut=not mine)
        walk.run()
        walks.append(walk)
    program = with_roles_of_first_cta(kernel.extraction.program)
    table = _table(kernel, program)
    lines = _lines(kernel, list(streams.values()), device)
    events = _events(program, table, walks, lines)
    gave_up = any(done.gave_up for walk in walks for done in walk.done.values())
    meta = _meta(kernel, program, table, lines, streams_sm(kernel, list(streams.values())), device, _words(walks))
    status = Ending.DEADLINE if gave_up or any(walk.cut and walk.lanes for walk in walks) else Ending.FINISHED
    written = tuple(_barrier_words(kernel, cta, events) for cta in range(program.agent_ctas))
    ctas = tuple(replace(cta, written=mine) for cta, mine in zip(meta.ctas, written, strict=True))
    return Trace(replace(meta, status=status, ctas=ctas), events)


def _table(kernel: RewrittenPtx, program: Program) -> SiteTable:
    """The sites of the events that were recorded: those of operations whose instruction is a recorded site."""
    words = _word_records(kernel)
    said = words.items() if words is not None else ()
    of_words = frozenset(
        (program.agents[at].role, kind, word) for (at, _), (word, events) in said for kind, _ in events
    )
    whole = site_table(program, optional_sites(program) | of_words, None, words)
    seen: set[SiteKey] = set()
    for agent, stream in enumerate(kernel.streams):
        if kernel.writers.lanes[agent]:
            for pc, position in enumerate(stream.positions):
                if position in kernel.by_position:
                    seen |= {whole.sites[record.site].key for record in whole.records[agent][pc]}
    keys = frozenset(seen)
    return site_table(program, (optional_sites(program) | of_words) & keys, keys, words)


def _word_records(kernel: RewrittenPtx) -> WordRecords | None:
    read = kernel.extraction
    return word_records(read.words, read.program, read.instruction_at)


# clocks


def _lines(kernel: RewrittenPtx, streams: list[LaneStream], device: Device) -> list[Line]:
    """The clock of each CTA: through the first reading of its warps, and the last."""
    found = []
    khz = device.sm_khz or _KHZ
    for rank in range(kernel.layout.ranks):
        mine = [s for key, s in zip(kernel.layout.streams, streams, strict=True) if key.rank == rank]
        if not mine and kernel.words:  # a CTA of a grid that does nothing of interest: another one's, of no event
            mine = streams
        if not mine:
            raise TraceFormatError(f"no warp of rank {rank} records", cause="the chosen roles have none there")
        if any(int(s.frame["begin_timer"]) == NOTHING << 32 | NOTHING for s in mine):
            raise TraceFormatError(f"a warp of rank {rank} has not begun", cause="the launch was stopped before")
        begin = min(mine, key=lambda s: int(s.frame["begin_clock"])).frame
        ended = [s.frame for s in mine if s.ended]
        last = max(ended, key=lambda frame: int(frame["end_clock"]), default=None)
        anchors = np.zeros(2, dtype=ANCHOR)
        anchors[0] = _anchor(int(begin["begin_clock"]), int(begin["begin_timer"]), khz)
        if last is not None and len(ended) == len(mine):
            anchors[1] = _anchor(int(last["end_clock"]), int(last["end_timer"]), khz)
            if int(anchors[1]["globaltimer"]) - int(anchors[0]["globaltimer"]) < _LEAST_NS:
                anchors[1] = 0  # too short to tell the clock's rate
        found.append(read_line(anchors, f"rank {rank}", khz))
    return found


_LEAST_NS = 100 * _TIMER_STEP_NS


def _anchor(clock: int, timer: int, khz: int) -> tuple[int, int, int, int]:
    """One reading of the clock and then of the timer: the timer went to this value up to a step earlier."""
    step = _TIMER_STEP_NS * khz // 1_000_000 + 1
    return timer - _TIMER_STEP_NS, timer, clock - step, clock + step


def _unwrap_clock(stamp: int, last: int) -> int:
    """The first 64-bit clock from ``last`` on that ends with these 32 bits."""
    return last + (stamp - last & 0xFFFFFFFF)


# events


def _events(program: Program, table: SiteTable, walks: list[Walk], lines: list[Line]) -> Events:
    """The columns, agent by agent in program order."""
    index = _agent_numbers(program)
    rows: list[tuple[Meaning, int, int]] = []  # what, how often its site was passed, the clock since the first anchor
    for walk in walks:
        agent = program.agents[walk.agent]
        line, passes = lines[agent.cta], dict[int, int]()
        last = line.cycles[0]
        stream = walk.kernel.streams[walk.agent]
        for pc, records in enumerate(table.records[walk.agent]):
            if stream.positions[pc] not in walk.kernel.by_position:
                continue
            first, returned = _ends(walk, *stream.steps[pc])
            for record in records:
                stamp = _stamp(table.sites[record.site], first, returned)
                if first is None or stamp < 0:
                    continue
                last = _unwrap_clock(stamp, last)
                meaning = Meaning(agent.cta, index[walk.agent], record.site, *_recorded_values(table, record, first))
                rows.append((meaning, passes.get(record.site, 0), last - line.cycles[0]))
                passes[record.site] = passes.get(record.site, 0) + 1
    return _columns(rows, lines)


def _ends(walk: Walk, first: int, last: int) -> tuple[StepRecord | None, StepRecord | None]:
    """What is recorded of an operation: its first step, and the one with which it returned.

    A wait is the steps of several tries, of which those after the one that succeeded did not happen.
    """
    begun = walk.done.get(first)
    steps = (walk.done.get(step) for step in range(first, last + 1))
    passed = [done for done in steps if done is not None and done.passed and done.after >= 0]
    return begun, passed[-1] if passed else None


def _stamp(site: Site, first: StepRecord | None, returned: StepRecord | None) -> int:
    """The clock of an event of an operation, -1 if it did not happen or was not recorded."""
    if site.kind in _RETURNS:
        return -1 if returned is None else returned.after
    return -1 if first is None else first.before


def _recorded_values(table: SiteTable, record: Record, first: StepRecord) -> tuple[int, int, int]:
    """Stage, parity and value: the program's, but for what the records themselves say."""
    value, parity = record.value, record.parity
    if parity >= 0 and first.parity >= 0:
        parity = first.parity
    if table.sites[record.site].kind is EventKind.TRY:
        value = int(first.passed)
    elif table.sites[record.site].kind in ON_WORDS:
        begins = table.sites[record.site].kind in (EventKind.SPIN_ENTER, EventKind.ATOMIC_ENTER)
        value = 0 if begins else max(first.value, 0)  # of kernels that are waited for nothing
    return record.stage, parity, value


def _columns(rows: list[tuple[Meaning, int, int]], lines: list[Line]) -> Events:
    buffer = EventBuffer()
    for meaning, iteration, cycle in rows:
        buffer.append(
            meaning.cta, meaning.agent, meaning.site, meaning.stage, meaning.parity, iteration, meaning.value, cycle
        )
    events = buffer.events(_KHZ)
    origin = min(line.timers[0] for line in lines)
    times, errors = events.time_ps.copy(), events.error_ps.copy()
    for rank, line in enumerate(lines):
        mine = np.flatnonzero(events.cta == rank)
        times[mine] = line.place(events.cycle[mine], origin)
        errors[mine] = line.error_ps(events.cycle[mine])
    return replace(events, time_ps=times, error_ps=errors)


def _agent_numbers(program: Program) -> list[int]:
    """The number of each agent within its CTA."""
    counts: dict[int, int] = {}
    found = []
    for agent in program.agents:
        found.append(counts.get(agent.cta, 0))
        counts[agent.cta] = found[-1] + 1
    return found


# the description


def _words(walks: list[Walk]) -> dict[str, int]:
    """The address of each word. TraceFormatError where one is at two, or two are at one: as the launch has them."""
    found: dict[str, int] = {}
    apart: dict[str, int] = {}
    for walk in walks:
        cluster = walk.kernel
        for number, event in (cluster.words[walk.agent] if cluster.words else {}).items():
            done = walk.done.get(number)
            if done is not None and done.address >= 0:
                name = cluster.names[event.address]
                moved = apart.setdefault(name.partition("[")[0], done.address - event.address)
                if found.setdefault(name, done.address) != done.address or moved != done.address - event.address:
                    raise TraceFormatError(
                        f"{name} is at {done.address:#x} where {found[name]:#x} was expected",
                        cause="the kernel accesses another word than the program says",
                    )
    return found


def streams_sm(kernel: RewrittenPtx, streams: list[LaneStream]) -> list[int]:
    """The SM of each rank."""
    pairs = list(zip(kernel.layout.streams, streams, strict=True))
    return [next((int(s.frame["sm"]) for k, s in pairs if k.rank == rank), 0) for rank in range(kernel.layout.ranks)]


def _meta(
    kernel: RewrittenPtx, program: Program, table: SiteTable, lines: list[Line], sms: list[int], device: Device,
    words: Mapping[str, int],
) -> TraceMeta:  # fmt: skip
    origin = min(line.timers[0] for line in lines)
    ctas = []
    for rank, line in enumerate(lines):
        anchors = (
            Anchor(line.timers[0] - origin, 0, line.in_ps(line.slack[0])),
            Anchor(line.timers[1] - origin, line.span, line.in_ps(line.slack[1])),
        )
        ctas.append(CtaInfo(rank, sms[rank], anchors[: 1 if line.open_end else 2]))
    khz = int(np.median([line.span * 10**9 // line.ps for line in lines]))
    launch = kernel.kernel.launch
    failures, tiles = launch.policies.lock_failures, list(launch.policies.handed_out)
    return TraceMeta(
        source="hardware",
        protocol=program.name,
        params={},
        grid=program.agent_ctas * program.grid,
        device=replace(device, sm_khz=device.sm_khz or khz, globaltimer_step_ns=_TIMER_STEP_NS),
        agents=table.agents,
        barriers=table.barriers,
        sites=table.sites,
        ctas=tuple(ctas),
        kernel_hash=kernel.digest,
        options=(f"encoding={'full' if kernel.full else 'positional'}", f"level={kernel.options.level.value}"),
        record_bytes=8 if kernel.full else 4,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        memory="device",
        extra={
            READ_FROM: "ptx",
            "entry": kernel.entry,
            "order_error_cycles": CLOCK_SKEW_CYCLES,
            ORIGIN: origin,
            "emission": EMISSION,
            EARLIER_KERNELS: _recorded_roles(kernel, program),
        }
        | ({LOCK_FAILURES: failures} if failures else {})
        | ({HANDED_OUT: tiles} if tiles else {})
        | ({WORDS: dict(words), TURNS: list(launch.turns)} if kernel.words else {}),
    )


def _recorded_roles(kernel: RewrittenPtx, program: Program) -> list[str]:
    """The roles all of whose warps are recorded."""
    lanes = list(zip(program.agents, kernel.writers.lanes, strict=True))
    return sorted({agent.role for agent, _ in lanes} - {agent.role for agent, mine in lanes if not mine})


def _barrier_words(kernel: RewrittenPtx, cta: int, events: Events) -> tuple[int, ...]:
    agents = [n for n, stream in enumerate(kernel.streams) if stream.cta == cta]
    mine: Column = events.agent[events.cta == cta]
    return tuple(int(np.count_nonzero(mine == n)) for n in range(len(agents)))
