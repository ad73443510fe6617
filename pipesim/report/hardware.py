"""One device's block: what was recorded, whether it can be trusted, whether it conforms, and the numbers."""

from __future__ import annotations

from statistics import median

from rich.cells import cell_len

from pipesim.conform.result import Conformance, Divergence, DivergenceKind
from pipesim.model.finding import Verdict
from pipesim.report.console import BAD, GOOD, UNSURE
from pipesim.report.divergence import divergence_lines
from pipesim.report.figures import share_lines, site_lines, steady_lines
from pipesim.report.layout import LABEL, field, middle
from pipesim.report.timeline import Moment, timeline_lines
from pipesim.report.view import HardwareBlock
from pipesim.report.words import count, megahertz, plus_minus, signed_percent, time_bound
from pipesim.trace.schema import TraceMeta


def hardware_lines(block: HardwareBlock, width: int, *, timeline: bool) -> list[str]:
    """The block of one device under a title line; ``timeline`` says whether to draw it."""
    lines = [_title(block, width), "", *_capture(block, width), *_trust(block, width)]
    divergence = block.conformance.divergence
    if divergence is not None:
        lines += ["", *divergence_lines(divergence, width)]
    timing = block.timing
    if timing is not None:
        lines += ["", *steady_lines(timing, width)]
        simulated = {(s.agent, s.what): s.simulated for s in timing.shares}
        measured = {(s.agent, s.what): s.measured for s in timing.shares}
        shares = share_lines([("simulated", simulated), ("measured", measured)], width)
        for table in (shares, site_lines(timing.sites, width)):
            lines += ["", *table] if table else []
    if timeline:
        drawn = timeline_lines(block.simulated, block.measured, width, _moment(divergence))
        lines += ["", *drawn] if drawn else []
    return lines


def _moment(divergence: Divergence | None) -> Moment | None:
    """Where the timeline has to look: a run that did not finish is shown at its end anyway."""
    if divergence is None or divergence.cycle < 0 or divergence.kind is DivergenceKind.NOT_FINISHED:
        return None
    return Moment(divergence.cta, divergence.cycle)


def _title(block: HardwareBlock, width: int) -> str:
    text = middle(block.device, width - 8)
    return f"── {text} " + "─" * (width - cell_len(text) - 4)


def _capture(block: HardwareBlock, width: int) -> list[str]:
    """Where the trace is from, under which driver and clock, and whether it conforms."""
    source = middle(block.source, width - LABEL - 2)
    parts = [source, count(block.runs, "run")]
    parts += [f"driver {block.driver}"] * bool(block.driver)
    parts += [f"SM clock {megahertz(block.sm_khz)}"] * bool(block.sm_khz)
    behaviour = [conformance_words(block.conformance)]
    if block.measured.meta.wrong_tiles:
        behaviour.append(f"{BAD} {count(block.measured.meta.wrong_tiles, 'tile')} held wrong data")
    return [*field("hardware", parts, width), *field("", behaviour, width)]


def conformance_words(found: Conformance) -> str:
    """``✓ 1,792 events of 1 CTA conform``: the behaviour in one phrase."""
    where = f"of {count(found.ctas, 'CTA')}"
    if found.verdict is Verdict.PROVED:
        return f"{GOOD} {count(found.events, 'event')} {where} conform"
    if found.verdict is Verdict.REFUTED:
        return f"{BAD} the {count(found.events, 'event')} {where} do not conform"
    lost = f"; {count(found.lost, 'record')} lost" if found.lost else ""
    if not found.events:
        return f"{UNSURE} unknown: no event was recorded{lost}"
    return f"{UNSURE} unknown: {count(found.events, 'event')} {where} conform{lost}"


def _trust(block: HardwareBlock, width: int) -> list[str]:
    """Drops, bounds of the clocks, what recording costs and how much runs differ."""
    order, overhead, noise = block.order_error_cycles, block.overhead_permille, block.noise_permille
    parts = [
        f"{GOOD if block.dropped == 0 else UNSURE} {count(block.dropped, 'record')} dropped",
        f"times {time_bound(block.clock_error_ps)}",
        f"order within an SM ±{count(order, 'cycle')}" if order else "order within an SM exact",
        _launch_words(block.measured.meta)
        if overhead is None
        else f"recording changes the period by {signed_percent(overhead)}",
        "noise not measured" if noise is None else f"runs differ by {plus_minus(noise)}",
    ]
    return field("trust", parts, width)


def _launch_words(meta: TraceMeta) -> str:
    """What recording adds to a launch, where no period was measured without it."""
    times = meta.extra.get("launch_ns")
    if not isinstance(times, dict) or not times.get("untraced") or not times.get("traced"):
        return "cost of recording not measured"
    plain, traced = (median(times[name]) / 1000 for name in ("untraced", "traced"))
    return f"a launch takes {plain:,.1f} µs, recorded {traced:,.1f} µs (CUDA events)"
