"""A run as a picture: from a trace alone, or from a trace and the program that it is of."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from pipesim.conform.replay.conformance import replay_logs
from pipesim.conform.result import DivergenceKind
from pipesim.model.ending import HUNG, Ending
from pipesim.model.program import Program
from pipesim.scene.agents import AgentSlices, agent_slices
from pipesim.scene.parts import OPEN, RunScene
from pipesim.scene.phases import Landings, PhasePictures
from pipesim.timed.profile import Profile
from pipesim.trace.recorder import cycles_to_ps
from pipesim.trace.schema import Column, SiteKey, Trace, numbers
from pipesim.trace.sites import NO_SITES

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
