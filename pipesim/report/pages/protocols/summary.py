"""``pipesim verify`` on several protocols: a table, what is not right with the command that shows it, the verdict."""

import shlex
from collections.abc import Iterable, Sequence

from pipesim.answers.views.conclusion import worst
from pipesim.answers.views.summary import Hardware, ProtocolReport, SummaryReport, TraceLine, compared_traces
from pipesim.conform.agreement import Agreement
from pipesim.conform.times import AssumedKind, TimeAssumption, TimeComparison, TimeVerdict
from pipesim.findings.assumptions import ASSUMPTIONS
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, Finding, Verdict
from pipesim.report.findings.finding import who_waits
from pipesim.report.sentences.check import check_sentence
from pipesim.report.sentences.stage import failure_words
from pipesim.report.sentences.times import OUTSIDE, WITHIN, assumed_words
from pipesim.report.sentences.trace import trace_line_reason
from pipesim.report.text.console import BAD, GOOD, UNSURE, mark
from pipesim.report.text.layout import columns, field, wrap, wrap_parts
from pipesim.report.text.source import command_lines
from pipesim.report.text.words import NONE, count, cycles, listed, number, place, signed_percent
from pipesim.timed.profile import PERIOD

WIDE = 100  #: cells from which on the table also has the periods
MOST_TRACES = 3  #: of one protocol that are listed, the others only counted


def summary_lines(report: SummaryReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells; of a command a single word may be longer."""
    title = f"{count(len(report.protocols), 'protocol')}   "
    parts = ["checked for every schedule", f"simulated on the profile {report.profile}, in cycles"]
    parts += ["compared with every recorded trace"] * any(each.traces for each in report.protocols)
    lines = [*wrap_parts(parts, width, title), "", *_table(report.protocols, width)]
    lines += _assumed_lines(report.protocols, width)
    lines += _traces([line for each in report.protocols for line in each.traces], width)
    lines += _times_lines(report.protocols, width)
    lines += _pipelines(report, width)
    for each in report.protocols:
        if each.conclusion.ok is not True:
            lines += ["", *_not_right(each, report.profile, width)]
    return [*lines, "", *wrap(_verdict(report), width, f"{mark(report.conclusion.ok)} ")]


def _assumed_lines(protocols: tuple[ProtocolReport, ...], width: int) -> list[str]:
    """Each assumption that a proof makes, with the protocols whose proofs make it; and what is not judged."""
    proofs = {each.name: each.proof.scope for each in protocols if each.proof is not None}
    lines: list[str] = []
    for kind, text in ASSUMPTIONS.items():
        names = [name for name, scope in proofs.items() if kind in scope.kinds]
        if names:
            who = "all" if len(names) == len(proofs) > 1 else listed(names)
            lines += field("assuming", [f"that {text.clause} ({kind.switch}): {who}"], width)
    kinds = dict.fromkeys(each.kind.value for scope in proofs.values() for each in scope.not_judged)
    lines += field("not judged", [", ".join(kinds)], width) if kinds else []
    return ["", *lines] if lines else []


# the table


def _table(protocols: tuple[ProtocolReport, ...], width: int) -> list[str]:
    devices = _devices(protocols)
    wide = width >= WIDE
    head = ["protocol", "proof", "simulation", *(["period"] if wide else []), *(devices or ["hardware"])]
    rows = [head]
    for each in protocols:
        row = [each.name, _proof(each, wide=wide), _simulation(each)]
        if wide:
            row.append(cycles(each.simulation.period_millicycles if each.simulation is not None else None))
        rows.append(row + _hardware(each, devices))
    return columns(rows, 2, width)


def _pipelines(report: SummaryReport, width: int) -> list[str]:
    """A row for each of Modular's structs: its protocols, how many are proved, how many of their traces agree."""
    if not report.pipelines:
        return []
    devices = _devices(report.protocols)
    rows = [["pipeline", "protocols", "proved", *devices]]
    for line in report.pipelines:
        some = len(line.protocols)
        proved = f"{mark(line.all_proved)} {line.proved}/{some}"
        rows.append([line.pipeline, number(some), proved, *(_agreement(line.traces, device) for device in devices)])
    return ["", *columns(rows, 2, width)]


def _proof(each: ProtocolReport, *, wide: bool) -> str:
    """``✓ any tiles, k_iters``: the trip counts for all of whose values it is proved."""
    if each.proof is None:
        return f"{UNSURE} {_why_none(each)}"
    match each.proof.verdict:
        case Verdict.REFUTED:
            return f"{BAD} refuted"
        case Verdict.UNKNOWN:
            return f"{UNSURE} unknown"
        case Verdict.PROVED:
            free = [shown.parameter for shown in each.proof.ranges if shown.is_every]
            if not free:
                return f"{GOOD} at these parameters" if wide else f"{GOOD} these parameters"
            together = each.proof.together
            if together is not None and together.fails:
                return f"{GOOD} these parameters"
            return f"{GOOD} any number of {' or '.join(free)}" if wide else f"{GOOD} any {', '.join(free)}"


#: By how a simulation ends: what its cell says, and its sentence.
_ENDS = {
    Ending.UNKNOWN: (f"{UNSURE} cut off", "the simulation ran out of its budget"),
    Ending.DEADLOCK: (f"{BAD} deadlock", "the simulation ends in a deadlock"),
}
_FAULT = (f"{BAD} fault", "the simulation breaks a rule")


def _simulation(each: ProtocolReport) -> str:
    """``✓ 71,489``: its length in cycles, or how it ends otherwise."""
    if each.simulation is None:
        return f"{UNSURE} {_why_none(each)}"
    if each.simulation.outcome is Ending.FINISHED and not _faulty(each):
        return f"{GOOD} {number(each.cycles)}"
    return _ENDS.get(each.simulation.outcome, _FAULT)[0]


def _why_none(each: ProtocolReport) -> str:
    """Why there is no proof or no simulation."""
    return "interrupted" if any(failed.interrupted for failed in each.failures) else "failed"


def _faulty(each: ProtocolReport) -> bool:
    """True if the simulation broke a rule and continued."""
    proved_wrong = {shown.finding for shown in each.proof.refutations} if each.proof is not None else set()
    return any(finding not in proved_wrong for finding in each.findings)


def _hardware(each: ProtocolReport, devices: list[str]) -> list[str]:
    """A cell for every device: how many of its traces agree."""
    cells = [_agreement(each.traces, device) for device in devices or [""]]
    if not each.traces:
        cells[0] = each.hardware.value
    return cells


def _devices(protocols: tuple[ProtocolReport, ...]) -> list[str]:
    return sorted({line.device for each in protocols for line in each.traces})


def _agreement(traces: tuple[TraceLine, ...], device: str) -> str:
    """``✓ 88/88``: how many of the traces of a device agree, of those that were compared."""
    mine = compared_traces(line for line in traces if line.device == device)
    agree = sum(line.agreement.agrees for line in mine)
    return f"{mark(worst(line.conclusion for line in mine).ok)} {agree}/{len(mine)}" if mine else NONE


# below the table


def _traces(lines: list[TraceLine], width: int) -> list[str]:
    """How many of all traces agree, how many of these show a kernel that hung or has a fault; who has no event."""
    if not lines:
        return []
    agree = sum(line.agreement.agrees for line in lines)
    empty = sum(line.without_event for line in lines)
    verb = "agrees" if agree == 1 else "agree"
    parts = [f"{number(agree)} of {count(len(lines) - empty, 'recorded trace')} {verb} in the order of events"]
    for kind, said in (
        (Agreement.HANGS_TOO, "hung where the model also blocks"),
        (Agreement.FAULT_NAMED, "with an injected fault, which is named"),
    ):
        some = sum(line.agreement is kind for line in lines)
        parts += [f"{number(some)} {said}"] * bool(some)
    parts += [f"{count(empty, 'more trace')} without an event: nothing to compare"] * bool(empty)
    return ["", *field("hardware", parts, width)]


def _not_right(each: ProtocolReport, profile: str, width: int) -> list[str]:
    """One protocol: what it is, and each thing that is wrong or not known, with the command that shows it in full."""
    lines = wrap(": ".join(filter(None, [each.name, each.summary])), width, f"{mark(each.conclusion.ok)} ")
    for said, command in [*_of_proof(each), *_of_simulation(each, profile), *_of_hardware(each), *_of_failures(each)]:
        lines += wrap(said, width, "  ")
        lines += command_lines("    ", command, width, whole=True) if command else []
    return lines


def _of_proof(each: ProtocolReport) -> Iterable[tuple[str, list[str]]]:
    if each.proof is None or each.proof.verdict is Verdict.PROVED:
        return
    command = _command("check", each)
    if each.proof.verdict is Verdict.UNKNOWN:
        yield check_sentence(each.proof), command
        return
    shown = [_brief(one.finding) for one in each.proof.refutations]
    yield f"refuted: {'; '.join(shown) if shown else check_sentence(each.proof)}", command


def _of_simulation(each: ProtocolReport, profile: str) -> Iterable[tuple[str, list[str]]]:
    if each.simulation is None or (each.simulation.outcome is Ending.FINISHED and not _faulty(each)):
        return
    said = _ENDS.get(each.simulation.outcome, _FAULT)[1]
    yield said, [*_command("run", each), "--profile", shlex.quote(profile)]


def _of_hardware(each: ProtocolReport) -> Iterable[tuple[str, list[str]]]:
    match each.hardware:
        case Hardware.NOT_RECORDED:
            yield "not recorded: it has a kernel, but no trace", _command("capture", each)
        case Hardware.UNUSABLE:
            yield "the recorded traces cannot be used", []
        case _:
            pass
    wrong = [line for line in compared_traces(each.traces) if not line.agreement.agrees]
    for line in sorted(wrong, key=lambda line: line.agreement is Agreement.UNKNOWN)[:MOST_TRACES]:
        yield f"{line.source}: {trace_line_reason(line)}", _diff(each, line)
    if len(wrong) > MOST_TRACES:
        yield f"and {count(len(wrong) - MOST_TRACES, 'more trace')} of it", []


def _of_failures(each: ProtocolReport) -> Iterable[tuple[str, list[str]]]:
    undone = [failure_words(failed) for failed in each.failures if failed.interrupted]
    if undone:
        more = f" and {count(len(undone) - MOST_TRACES, 'more part')}" if len(undone) > MOST_TRACES else ""
        yield f"interrupted before the end of {', '.join(undone[:MOST_TRACES])}{more}", _command("verify", each)
    for failed in (failed for failed in each.failures if not failed.interrupted):
        at = f" ({place(failed.place)})" if failed.place else ""
        yield f"{failure_words(failed)} failed: {failed.said}{at}", _command("verify", each)


def _brief(finding: Finding) -> str:
    return f"deadlock, {who_waits(finding)[0]}" if isinstance(finding, Deadlock) else finding.claim


def _command(command: str, each: ProtocolReport) -> list[str]:
    return ["pipesim", command, *map(shlex.quote, each.arguments)]


def _diff(each: ProtocolReport, line: TraceLine) -> list[str]:
    """A trace names its protocol, so that only one of a user's file has to be named."""
    path = place(f"{line.path}:").removesuffix(":")
    named = ["--protocol", each.name] if ":" in each.name or each.name.endswith(".json") else []
    return ["pipesim", "diff", *map(shlex.quote, [path, *named])]


def _verdict(report: SummaryReport) -> str:
    """``12 of 13 protocols passed; failed: conv_epilogue``."""
    right = sum(each.conclusion.ok is True for each in report.protocols)
    asked = len(report.protocols) + len(report.unknown)
    parts = [f"{number(right)} of {count(asked, 'protocol')} passed"]
    for what, ok in (("failed", False), ("unknown", None)):
        some = [each.name for each in report.protocols if each.conclusion.ok is ok]
        parts += [f"{what}: {', '.join(some)}"] * bool(some)
    parts += [f"not found: {', '.join(report.unknown)}"] * bool(report.unknown)
    parts += [f"left out: {', '.join(report.excepted)}"] * bool(report.excepted)
    without = bool(report.protocols) and all(each.hardware is Hardware.LEFT_OUT for each in report.protocols)
    return "; ".join(parts) + (" (hardware left out)" if without else "")


# times


def _times_lines(protocols: Iterable[ProtocolReport], width: int) -> list[str]:
    """A line for each protocol with recorded times; none if there are none."""
    lines: list[str] = []
    for each in protocols:
        found = [line.time for line in each.traces if line.time is not None]
        if found:
            lines += field(
                "" if lines else "times", [f"{each.name}: {_time_verdicts(found)}", *_time_differences(found)], width
            )
    return lines


def _time_verdicts(found: Sequence[TimeComparison]) -> str:
    """How many of each verdict, with all that any of them assumes."""
    said = []
    for verdict in TimeVerdict:
        mine = [each for each in found if each.verdict is verdict]
        if mine:
            said.append(f"{number(len(mine))} {_time_verdict(verdict, mine)}")
    return ", ".join(said)


def _time_verdict(verdict: TimeVerdict, mine: Sequence[TimeComparison]) -> str:
    match verdict:
        case TimeVerdict.WITHIN_STATED_ERROR:
            return WITHIN
        case TimeVerdict.OFF:
            return "off"
        case TimeVerdict.OUTSIDE:
            # each role's work once, whatever was recorded of it
            assumed = {(one.kind, one.name): one for each in mine for one in each.assumed}
            words = assumed_words(sorted(assumed.values(), key=_order))
            return OUTSIDE + f" (not modelled for: {words})" * bool(words)
        case TimeVerdict.NOT_COMPARED:
            return "not compared"


def _order(one: TimeAssumption) -> tuple[int, str]:
    return list(AssumedKind).index(one.kind), one.name


def _time_differences(found: Sequence[TimeComparison]) -> list[str]:
    """Median and worst difference of those that have one, and by what they were compared."""
    numbers = [(each.off_permille, each.figure == PERIOD) for each in found if each.off_permille is not None]
    if not numbers:
        return []
    offs = sorted(off for off, _ in numbers)
    median, furthest = offs[len(offs) // 2], max(offs, key=lambda off: (abs(off), off))
    periods = sum(by_period for _, by_period in numbers)
    parts = [f"off by {signed_percent(median)} in the median, {signed_percent(furthest)} at worst"]
    by = [count(periods, "period")] * bool(periods)
    by += [count(len(numbers) - periods, "whole run")] * (len(numbers) > periods)
    return [*parts, f"over {' and '.join(by)}"]
