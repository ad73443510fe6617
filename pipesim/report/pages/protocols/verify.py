"""``pipesim verify``: what was run, the simulations, a block for each device, the verdict in one line.

The block of a device: what was recorded, whether it can be trusted, whether it conforms, and the numbers.
"""

from collections.abc import Sequence
from statistics import median

from rich.cells import cell_len

from pipesim.answers.views.trace import CompareReport, TraceComparison, VerifyReport
from pipesim.conform.agreement import Agreement
from pipesim.conform.result import Conformance, DivergenceKind, Figure, LatencyCheck, SiteTiming, Timing, TraceVerdict
from pipesim.report.findings.divergence import divergence_lines
from pipesim.report.findings.examination import examination_lines
from pipesim.report.findings.finding import advisory_lines, finding_lines
from pipesim.report.pages.checks.check import beside_lines, proof_lines, wrong_lines
from pipesim.report.pages.protocols.run import share_lines
from pipesim.report.pictures.timeline import Moment, timeline_lines
from pipesim.report.sentences.check import scope_lines
from pipesim.report.sentences.times import NOT_MEASURED, time_parts
from pipesim.report.sentences.trace import (
    compare_sentence,
    device_words,
    is_simulated,
    side_words,
    source_words,
    verify_sentence,
)
from pipesim.report.text.console import BAD, GOOD, UNSURE, mark
from pipesim.report.text.layout import LABEL, columns, field, heading_lines, middle, simulation_lines, wrap, wrap_parts
from pipesim.report.text.words import (
    count,
    cycles,
    iterations,
    megahertz,
    number,
    plus_minus,
    signed_percent,
    time_bound,
)
from pipesim.timed.profile import PERIOD
from pipesim.trace.schema import TraceMeta

BOTH_TIMELINES = 120  #: cells from which on every device gets its timeline
MOST_LOSERS = 3  #: agents whose dropped records are counted one by one


def compare_lines(report: CompareReport, width: int) -> list[str]:
    """The report on one trace in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *hardware_lines(report.comparison, width, timeline=True)]
    return [*lines, "", *wrap(compare_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def verify_lines(report: VerifyReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *proof_lines(report.proof, width)]
    for simulation in report.simulations:
        lines += simulation_lines(simulation, width)
    lines += advisory_lines(report.advisories, width)
    of_simulations = [finding for finding in report.findings if finding not in report.proof.findings]
    if of_simulations:
        lines += ["", *finding_lines(of_simulations, width)]
    lines += beside_lines(report.proof, width)
    for n, block in enumerate(report.hardware):
        lines += ["", *hardware_lines(block, width, timeline=n == 0 or width >= BOTH_TIMELINES)]
    verdict = scope_lines(verify_sentence(report), "; ", report.proof, width, f"{mark(report.conclusion.ok)} ")
    return [*lines, *wrong_lines(report.proof, width, verdict)]


def hardware_lines(block: TraceComparison, width: int, *, timeline: bool) -> list[str]:
    """The block of one device under a title line; ``timeline`` says whether to draw it."""
    lines = [_title(block, width), "", *_capture(block, width), *_trust(block, width)]
    lines += field("times", time_parts(block.time, side_words(block)), width)
    divergence, hangs_too = block.conformance.divergence, block.agreement is Agreement.HANGS_TOO
    if divergence is not None:
        lines += [
            "",
            *divergence_lines(divergence, width, "trace" if is_simulated(block) else "hardware", agrees=hangs_too),
        ]
    if block.examination is not None:
        lines += examination_lines(block.examination, divergence.stuck if divergence else None, width)
    timing = block.timing
    if timing is not None:
        side = "trace" if is_simulated(block) else "measured"
        lines += ["", *_steady_lines(timing, width, side)]
        model = {(s.agent, s.what): s.simulated for s in timing.shares}
        trace = {(s.agent, s.what): s.measured for s in timing.shares}
        shares = share_lines([("simulated", model), (side, trace)], width)
        for table in (shares, _site_lines(timing.sites, width, side)):
            lines += ["", *table] if table else []
    if timeline:
        drawn = timeline_lines(block.simulated, block.measured, width, moment_of(block), trace_labels(block))
        lines += ["", *drawn] if drawn else []
    return lines


def trace_labels(block: TraceComparison) -> tuple[str, str]:
    """What tells the rows of the timeline apart."""
    return "sim", "trace" if is_simulated(block) else "hw"


def moment_of(block: TraceComparison) -> Moment | None:
    """Where the timeline has to look: a run that did not finish is shown at its end anyway."""
    divergence = block.conformance.divergence
    if divergence is None or divergence.cycle < 0 or divergence.kind is DivergenceKind.NOT_FINISHED:
        return None
    return Moment(divergence.cta, divergence.cycle)


def _title(block: TraceComparison, width: int) -> str:
    text = middle(device_words(block), width - 8)
    return f"── {text} " + "─" * (width - cell_len(text) - 4)


def _capture(block: TraceComparison, width: int) -> list[str]:
    """Where the trace is from, under which driver and clock, and whether it conforms."""
    source = middle(source_words(block), width - LABEL - 2)
    parts = [source, count(block.runs, "run")]
    parts += [f"driver {block.driver}"] * bool(block.driver)
    parts += [f"SM clock {megahertz(block.sm_khz)}"] * bool(block.sm_khz)
    found = block.conformance
    behaviour = [conformance_words(found, block.agreement), *_unseen(found)]
    behaviour += [f"{count(found.words, 'barrier word')} {'agrees' if found.words == 1 else 'agree'}"] * bool(
        found.words
    )
    if block.measured.meta.wrong_tiles:
        behaviour.append(f"{BAD} {count(block.measured.meta.wrong_tiles, 'tile')} with wrong data")
    return [*field("trace" if is_simulated(block) else "hardware", parts, width), *field("", behaviour, width)]


def conformance_words(found: Conformance, agreement: Agreement | None) -> str:
    """``✓ 1,792 events of 1 CTA conform``: the behaviour in one phrase, with the iterations where not all were kept."""
    where = f"of {count(found.ctas, 'CTA')}"
    part = ""
    if found.hides:
        part = f" ({iterations(_within(found))} of {number(found.iterations)})"
    if found.verdict is TraceVerdict.AGREES:
        return f"{GOOD} {count(found.events, 'event')} {where} conform{part}"
    if found.verdict is TraceVerdict.DIFFERS:
        if agreement is Agreement.HANGS_TOO:
            events = f"the {count(found.events, 'event')} {where} conform{part}"
            return f"{GOOD} {events} up to the hang, and the model hangs in the same state"
        return f"{BAD} the {count(found.events, 'event')} {where} do not conform{part}"
    lost = f"; {count(found.lost, 'record')} lost" if found.lost else ""
    if not found.events:
        return f"{UNSURE} unknown: no event was recorded{lost}"
    return f"{UNSURE} unknown: {count(found.events, 'event')} {where} conform{part}{lost}"


def _within(found: Conformance) -> tuple[int, int]:
    """The window as far as the protocol goes; one that begins later is left as it is."""
    first, end = found.window
    return first, min(end, found.iterations) if first < found.iterations else end


def _unseen(found: Conformance) -> list[str]:
    """What a window left out, and what is known about it nevertheless."""
    if not found.hides or found.verdict is TraceVerdict.DIFFERS:
        return []
    first, end = found.window
    spans = [span for span in ((0, min(first, found.iterations)), (end, found.iterations)) if span[0] < span[1]]
    parts = [iterations(span).partition(" ")[2] for span in spans]
    several = sum(span[1] - span[0] for span in spans) > 1
    left_out = f"{'iterations' if several else 'iteration'} {' and '.join(parts)} {'were' if several else 'was'}"
    known = "every agent completed all of them" if found.ended else "the records do not show that every agent finished"
    return [f"{left_out} not recorded", known]


def _trust(block: TraceComparison, width: int) -> list[str]:
    """Drops, bounds of the clocks, what recording costs and how much runs differ."""
    order, overhead, noise = block.order_error_cycles, block.overhead_permille, block.noise_permille
    meta = block.measured.meta
    parts = [f"{iterations(meta.window)} kept"] if meta.window else []
    parts += [
        f"{GOOD if block.dropped == 0 else UNSURE} {count(block.dropped, 'record')} dropped{_by_agent(meta)}",
        f"times {time_bound(block.clock_error_ps)}",
        f"order within an SM ±{count(order, 'cycle')}" if order else "order within an SM exact",
        _launch_words(block.measured.meta)
        if overhead is None
        else f"recording changes the period by {signed_percent(overhead)}",
        *_record_words(meta),
        *([f"records in {meta.memory} memory"] if meta.memory else []),
        "noise not measured" if noise is None else f"runs differ by {plus_minus(noise)}",
        *_latency_words(block.conformance.latency),
    ]
    return field("trust", parts, width)


def _latency_words(latency: LatencyCheck | None) -> list[str]:
    """What of the returns was not compared with the least latencies of the device."""
    if latency is None:
        return []
    if not latency.device:
        return ["how soon waits return is not checked: the latencies of this device were not measured"]
    if not latency.unchecked:
        return []
    returns = latency.checked + latency.unchecked
    return [f"{number(latency.unchecked)} of {count(returns, 'return')} not compared with the least latencies"]


def _by_agent(meta: TraceMeta) -> str:
    """Who lost how many records, most first: `` (consumer/0 92, producer 3)``; "" if no agent did."""
    lost: dict[str, int] = {}
    for header in meta.ctas:
        for agent, dropped in enumerate(header.dropped):
            if dropped:
                name = meta.agent_name(agent)
                lost[name] = lost.get(name, 0) + dropped
    most = sorted(lost.items(), key=lambda entry: -entry[1])
    shown = [f"{name} {number(dropped)}" for name, dropped in most[:MOST_LOSERS]]
    if len(most) > MOST_LOSERS:
        shown.append(f"{count(len(most) - MOST_LOSERS, 'other')} {number(sum(n for _, n in most[MOST_LOSERS:]))}")
    return f" ({', '.join(shown)})" if shown else ""


def _record_words(meta: TraceMeta) -> list[str]:
    """What one record costs, from the least to the most of the pairs of launches, if it was measured."""
    cost = meta.extra.get("cost_millicycles_per_record")
    if not isinstance(cost, dict) or not all(type(cost.get(name)) is int for name in ("low", "high")):
        return []
    return [f"{cost['low'] / 1000:.1f} to {cost['high'] / 1000:.1f} cycles a record"]


def _launch_words(meta: TraceMeta) -> str:
    """What recording adds to a launch, where no period was measured without it."""
    times = meta.extra.get("launch_ns")
    if not isinstance(times, dict) or not times.get("untraced") or not times.get("traced"):
        return "cost of recording not measured"
    plain, traced = (median(times[name]) / 1000 for name in ("untraced", "traced"))
    return f"a launch takes {plain:,.1f} µs, recorded {traced:,.1f} µs (CUDA events)"


def _steady_lines(timing: Timing, width: int, side: str = "measured") -> list[str]:
    """Bound, simulated and measured figures with error and noise, then how well single events agree.

    ``side`` is what the trace's figures are called: measured, if it is not simulated itself.
    """
    head = ("steady state, cycles", "bound", "simulated", side, "error", "noise")
    lines = columns([head, *(_figure(f) for f in timing.figures)], 1, width)
    if timing.matched:
        bias = ("+" if timing.bias_cycles > 0 else "") + count(timing.bias_cycles, "cycle")
        parts = [
            f"{count(timing.matched, 'event')} found in both",
            f"{side} − simulated: median {bias}",
            f"95 % within {count(timing.spread_cycles, 'cycle')} of it",
        ]
        lines += wrap_parts(parts, width, "  ")
    return lines


def _figure(f: Figure) -> tuple[str, ...]:
    noise = round(1000 * f.noise / f.measured) if f.noise is not None and f.measured else None
    unmeasured = f.measured is None and f.name.startswith(PERIOD)
    values = (cycles(f.bound), cycles(f.simulated), NOT_MEASURED if unmeasured else cycles(f.measured))
    return (f.name, *values, signed_percent(f.error_permille), plus_minus(noise))


def _site_lines(sites: Sequence[SiteTiming], width: int, side: str = "measured") -> list[str]:
    """Median and 95th percentile of the cycles from each site to the agent's next event, simulated and of the trace."""
    if not sites:
        return []
    head = ("from an event to the next, cycles", "simulated p50", "p95", f"{side} p50", "p95")
    return columns([head, *(_site(s) for s in sites)], 1, width)


def _site(s: SiteTiming) -> tuple[str, ...]:
    numbers = (s.simulated.p50, s.simulated.p95, s.measured.p50, s.measured.p95)
    return (f"{s.role} {s.kind.replace('_', ' ')} {s.barrier}".rstrip(), *map(number, numbers))
