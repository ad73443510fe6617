"""Whether two traces are of the same configuration: every difference, in words."""

from collections.abc import Sequence

from pipesim.conform.pair.lanes import kept_words
from pipesim.conform.pair.result import Setting
from pipesim.model.ending import Ending
from pipesim.trace.schema import BarrierGroup, Trace, TraceMeta

NONE = "none"


def settings(a: Trace, b: Trace) -> tuple[Setting, ...]:
    """What differs between the two recordings apart from their events: parameters first, then software."""
    names = dict.fromkeys((*a.meta.params, *b.meta.params))
    found = [_setting(name, a.meta.params.get(name), b.meta.params.get(name)) for name in names]
    found.append(_setting("grid", a.meta.grid, b.meta.grid))
    found += _agents(a.meta, b.meta)
    found += _barriers(a.meta, b.meta)
    found += _sites(a.meta, b.meta)
    found.append(_setting("CTAs recorded", _ctas(a), _ctas(b)))
    found += _recording_settings(a.meta, b.meta)
    return tuple(s for s in found if s.a != s.b)


def outcomes(a: TraceMeta, b: TraceMeta) -> tuple[Setting, ...]:
    """How the two runs ended, where that differs: it is behaviour, although no event says it.

    A simulation that ran out of its budget did not end, so its status differs from none.
    """
    ends = (a.status, b.status)
    rows = (
        ("status", *(ends if Ending.UNKNOWN not in ends else ("", ""))),
        ("tiles with wrong data", a.wrong_tiles, b.wrong_tiles),
        ("launches that did not finish", _gave_up(a), _gave_up(b)),
    )
    return tuple(_setting(*row) for row in rows if row[1] != row[2])


def _gave_up(meta: TraceMeta) -> str:
    return "some" if meta.extra.get("gave_up") else NONE


def _setting(what: str, a: object, b: object) -> Setting:
    return Setting(what, "" if a is None else str(a), "" if b is None else str(b))


def _ctas(trace: Trace) -> str:
    found = sorted({header.cta for header in trace.meta.ctas} or set(trace.events.cta.tolist()))
    return ", ".join(map(str, found)) or NONE


def _agents(a: TraceMeta, b: TraceMeta) -> list[Setting]:
    mine, theirs = ([f"{agent.role}/{agent.index}" for agent in meta.agents] for meta in (a, b))
    return _only("agents", mine, theirs)


def _only(what: str, mine: Sequence[str], theirs: Sequence[str]) -> list[Setting]:
    """What only one of the two lists has."""
    gone = [name for name in mine if name not in theirs]
    new = [name for name in theirs if name not in mine]
    return [Setting(f"{what} in one only", ", ".join(gone), ", ".join(new))] if gone or new else []


def _barriers(a: TraceMeta, b: TraceMeta) -> list[Setting]:
    mine, theirs = ({group.name: group for group in meta.barriers} for meta in (a, b))
    return [
        Setting(f"barriers {name}", _group(mine.get(name)), _group(theirs.get(name)))
        for name in dict.fromkeys((*mine, *theirs))
    ]


def _group(group: BarrierGroup | None) -> str:
    return f"{group.stages} of count {group.count}" if group else ""


def _sites(a: TraceMeta, b: TraceMeta) -> list[Setting]:
    """Sites are the same if role, kind and barrier are: a simulation and a kernel name them differently."""
    mine, theirs = (
        [f"{s.role} {s.kind.name.lower().replace('_', ' ')} {s.barrier}".rstrip() for s in meta.sites]
        for meta in (a, b)
    )
    return _only("sites", mine, theirs)


def _recording_settings(a: TraceMeta, b: TraceMeta) -> list[Setting]:
    """Device, software, and how the events were taken."""
    mine, theirs = (_recorded_with(meta) for meta in (a, b))
    found = [Setting(what, mine[what], theirs[what]) for what in mine]
    if clocks_differ(a, b):
        found.append(Setting("SM clock", _megahertz(a.device.sm_khz), _megahertz(b.device.sm_khz)))
    gone = [option for option in a.options if option not in b.options]
    new = [option for option in b.options if option not in a.options]
    return [*found, Setting("compiled with", " ".join(gone), " ".join(new))]


def pays_for_recording(meta: TraceMeta) -> bool:
    """Whether the times of the events contain what recording them costs: on a chip always, simulated if asked for."""
    return meta.source != "simulation" or bool(meta.extra.get("recording"))


def recorders_differ(a: TraceMeta, b: TraceMeta) -> bool:
    """Whether both traces pay for recording, and by different recorders: other memory, clock or size of a record."""
    mine, theirs = ((meta.memory, meta.clock, meta.record_bytes) for meta in (a, b))
    return pays_for_recording(a) and pays_for_recording(b) and mine != theirs


def clocks_differ(a: TraceMeta, b: TraceMeta) -> bool:
    """Whether the two SM clocks are known to differ, so that cycles are not times.

    They have to be further apart than one thousandth and than the anchors can tell, which in a short run is more.
    """
    one, two = a.device.sm_khz, b.device.sm_khz
    ppm = max(1000, _clock_error_ppm(a) + _clock_error_ppm(b))
    return bool(one and two) and abs(one - two) * 1_000_000 > one * ppm


def _clock_error_ppm(meta: TraceMeta) -> int:
    """How far off the clock may be that the anchors of the first CTA give, in millionths; 0 where there are none."""
    anchors = meta.ctas[0].anchors if meta.ctas else ()
    span = anchors[-1].globaltimer_ns - anchors[0].globaltimer_ns if anchors else 0
    return 1000 * (anchors[0].error_ps + anchors[-1].error_ps) // span if span > 0 else 0


def _megahertz(khz: int) -> str:
    return f"{(khz + 500) // 1000} MHz"


def _recorded_with(meta: TraceMeta) -> dict[str, str]:
    return {
        "source": meta.source,
        "device": meta.device.name,
        "SMs": str(meta.device.sms),
        "driver": meta.device.driver,
        "NVRTC": meta.device.nvrtc,
        "kernel hash": meta.kernel_hash[:12],
        "times include the cost of recording": "yes" if pays_for_recording(meta) else "no",
        "timestamp clock": meta.clock,
        "bytes a record": str(meta.record_bytes),
        "records kept in": meta.memory,
        "window": kept_words(*meta.window) if meta.window else "all iterations",
        "injected fault": meta.fault or NONE,
    }
