"""``pipesim stress``: what launches showed in which warps are late, with the delays to repeat it."""

from pipesim.confirm.choose import Sign
from pipesim.confirm.report import StressReport, StressSeen, Tries
from pipesim.report.pages.programs.confirm import delay_words, what_happened
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, heading_lines, wrap
from pipesim.report.text.source import with_source
from pipesim.report.text.words import listed, number

_MOST = 12  #: delays that are shown


def stress_sentence(report: StressReport) -> str:
    """The answer in one line."""
    device, without = report.device.name, report.control
    if report.reason and not device:
        return f"not launched: {report.reason}"
    if report.reason:
        return f"seen on {device} {_times(without)} without delays: {what_happened(without)}"
    launches = f"in {number(report.launches)} launches on {device}"
    if not report.seen:
        return f"nothing seen {launches}"
    return f"seen {launches}: {listed([seen_words(each) for each in report.seen])}"


def seen_words(each: StressSeen) -> str:
    """``launch 812 hangs``, and what launches with its delays show again."""
    what = {Sign.HANG: "hangs", Sign.TRAP: "traps"}.get(each.sign, "leaves other results")
    again = f"with its delays again {_times(each.again)}"
    if each.again.seen:
        again = f"{again}, {what_happened(each.again)}"
    return f"launch {number(each.number)} {what} ({again}; without {_times(each.control)})"


def _times(tries: Tries) -> str:
    return f"{number(tries.seen + tries.otherwise)} of {number(tries.launches)}"


def stress_lines(report: StressReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines, device = heading_lines(report.heading, width), report.device.name
    if device:
        lines += ["", *field("GPU", [device, f"driver {report.device.driver}"], width)]
    lines += field("check", [report.verdict.value], width) + field("seed", [number(report.seed)], width)
    ways = [f"{number(times)} {way.value}" for way, times in report.ways.items()]
    lines += field("launches", ways, width) if ways else []
    for each in report.seen:
        lines += ["", *wrap(f"launch {number(each.number)}, {each.way.value}", width, "  ", "    ")]
        for delay in each.delays[:_MOST]:
            lines += with_source(delay_words(delay), delay.place.source, width, "  delay  ", " " * 9)
        lines += wrap(f"{number(len(each.delays) - _MOST)} more", width, " " * 9) if len(each.delays) > _MOST else []
    lines += wrap(f"zeros in {listed(list(report.zeros))}", width, "  ") if report.zeros else []
    lines += wrap("results vary without delays: they are not compared", width, "  ") if report.varies else []
    files = report.files or next((each.files for each in report.seen if each.files), ())
    lines += wrap(f"written: {listed(list(files))}", width, "  ") if files else []
    return [*lines, "", *wrap(stress_sentence(report), width, f"{mark(report.conclusion.ok)} ")]
