"""``pipesim confirm``: what a chip shows of each finding, with the delays, and without them."""

from pipesim.confirm.delays import Delay
from pipesim.confirm.report import (
    ChipVerdict,
    ConfirmProgramReport,
    ConfirmReport,
    FindingOnChip,
    Tries,
    WarpsAtWait,
)
from pipesim.model.finding import Verdict
from pipesim.model.tables import number_runs
from pipesim.report.findings.finding import claim_of
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, heading_lines, wrap
from pipesim.report.text.source import with_source
from pipesim.report.text.words import count, listed, number, ordinal

_MOST = 4  #: waits that a sentence names


def chip_sentence(each: FindingOnChip, device: str) -> str:
    """The answer about one finding in one line."""
    tried, without = each.tried, each.control
    of = f"of {number(tried.launches)}"
    control = f"without the {'delays' if len(each.delays) > 1 else 'delay'} {number(without.seen)} of"
    control = f"{control} {number(without.launches)}" if each.delays else each.reason or "no delay is needed"
    if each.delays and without.otherwise:
        control += f", and something else in {number(without.otherwise)}: {what_happened(without)}"
    control += f"; {each.reason}" if each.delays and each.reason else ""
    match each.verdict:
        case ChipVerdict.CONFIRMED:
            predicted = " as predicted" if tried.waits else ""
            return f"confirmed on {device}: {what_happened(tried)}{predicted}, {number(tried.seen)} {of}; {control}"
        case ChipVerdict.OTHERWISE:
            seen = f"{what_happened(tried)}, {number(tried.otherwise)} {of}"
            return f"{device} shows something else than predicted: {seen}; {control}"
        case ChipVerdict.NOT_SEEN:
            return f"not seen {of.replace('of', 'in')} launches on {device}{f': {each.reason}' if each.reason else ''}"
        case ChipVerdict.NOT_TRIED:
            return f"not tried: {each.reason}"


def what_happened(tries: Tries) -> str:
    """What a launch showed."""
    if tries.waits:
        named = [each for each in tries.waits if each.predicted and tries.seen] or tries.waits
        return listed([_waits(each) for each in named[:_MOST]])
    if tries.error:
        return f"the kernel traps ({tries.error})"
    if tries.stuck:
        return "the kernel does not end, and where its warps wait is not known"
    name, offset = tries.first
    return f"{count(tries.differ, 'byte')} of the results differ, the first at byte {number(offset)} of {name}"


def _waits(each: WarpsAtWait) -> str:
    of = f" of CTA {each.cta}" if each.cta else ""
    who = "warp" if len(each.warps) == 1 else "warps"
    return f"{who} {number_runs(each.warps)}{of} {'waits' if len(each.warps) == 1 else 'wait'} at {each.line}"


def delay_words(delay: Delay) -> str:
    """``warp 2 (waiting) sleeps 1,000 µs before its 1st mbarrier.try_wait``."""
    place = delay.place
    who = f"warp {place.warp} ({place.agent}) sleeps {number(delay.ns // 1_000)} µs"
    if (until := delay.until) is not None:
        who = f"warp {place.warp} ({place.agent}) waits until warp {until.warp} ({until.agent}) has executed"
        who = f"{who} its {ordinal(until.nth + 1)} {until.opcode} (PTX line {number(until.line)}),"
    if place.position < 0:
        return f"{who} where the kernel begins"
    side = "after" if place.after else "before"
    return f"{who} {side} its {ordinal(place.nth + 1)} {place.opcode} here (PTX line {number(place.line)})"


def confirm_lines(report: ConfirmReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines, device = heading_lines(report.heading, width), report.device.name
    if device:
        lines += ["", *field("GPU", [device, f"driver {report.device.driver}"], width)]
    for each in report.findings_on_chip:
        lines += ["", *wrap(f"finding {each.number}: {claim_of(each.finding)}", width, "  ", "    "), ""]
        for delay in each.delays:
            lines += with_source(delay_words(delay), delay.place.source, width, "  delay  ", " " * 9)
        if each.delays and not each.modelled:
            lines += wrap("(what the schedule keeps waiting; the program run with it does not end so)", width, "  ")
        lines += wrap(f"zeros in {listed(list(each.zeros))}", width, "  ") if each.zeros else []
        lines += wrap(f"written: {listed(list(each.files))}", width, "  ") if each.files else []
        lines += [""] if lines[-1] else []
        ok = None if each.verdict in (ChipVerdict.NOT_SEEN, ChipVerdict.NOT_TRIED) else False
        lines += wrap(chip_sentence(each, device), width, f"{mark(ok)} ")
    return lines


def confirm_program_lines(report: ConfirmProgramReport, width: int) -> list[str]:
    """The launches of a program in lines of at most ``width`` cells."""
    lines: list[str] = []
    for each in report.launches:
        name = each.launch.removesuffix(".json") or each.kernel
        lines += [*([""] if lines else []), *wrap(f"{name}: {each.said}", width, f"{mark(_OK[each.verdict])} ")]
        lines += ["", *confirm_lines(each.on_chip, width)] if each.on_chip is not None else []
    for note in report.notes:
        lines += wrap(f"note: {note}", width)
    files = f"their PTX and launch files are in {report.folder}" if any(each.ptx for each in report.launches) else ""
    made = len(report.launches)
    said = (
        f"{number(made)} {'launch' if made == 1 else 'launches'} of kernels with barriers{'; ' if files else ''}{files}"
    )
    return [*lines, *([""] if lines else []), *wrap(said, width)]


_OK = {Verdict.PROVED: True, Verdict.UNKNOWN: None, Verdict.REFUTED: False}
