"""``pipesim check --sequence``: what launches one after the other do to the same memory."""

from pipesim.answers.views.conclusion import Basis, Conclusion
from pipesim.answers.views.sequence import SequenceReport, SharedBytes
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, wrap, wrap_parts
from pipesim.report.text.words import count, number


def sequence_lines(report: SequenceReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells: a block for each pair."""
    lines = wrap(f"{report.file}: {number(report.launches)} launches", width)
    for pair in report.pairs:
        title = f"{pair.earlier} {pair.earlier_kernel} → {pair.later} {pair.later_kernel}"
        lines += ["", *wrap_parts([title, pair.by], width, "", "  ")]
        for each in pair.shared:
            lines += field("shared", _shared(each), width)
            lines += wrap(_standing(each), width, f"    {mark(_OK[each.basis])} ")
    lines += ["" for _ in report.superfluous[:1]]
    lines += [line for each in report.superfluous for line in field("superfluous", [each], width)]
    lines += ["" for _ in report.unread[:1]]
    lines += [line for each in report.unread for line in field("not known", [each], width)]
    return [*lines, "", *wrap(sequence_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


_OK = {None: True, Basis.LETTER: None, Basis.POSSIBLE: False, Basis.CERTAIN: False}


def _shared(each: SharedBytes) -> list[str]:
    end = f"to {number(each.end - 1)}" if each.end >= 0 else "on"
    does = {True: "stores", False: "loads"}
    first, second = does[each.earlier_writes], does[each.later_writes]
    return [
        f"{each.allocation} bytes {number(each.first)} {end}",
        f"{first} at {each.earlier_line}",
        f"{second} at {each.later_line}",
    ]


def shared_claim(each: SharedBytes) -> str:
    """What two launches do to the same bytes, and what orders them or is missing."""
    return f"{', '.join(_shared(each))}: {_standing(each)}"


def _standing(each: SharedBytes) -> str:
    if each.basis is None:
        return each.promise.value
    return f"{each.promise.value} ({each.basis.value}): {each.missing}"


def sequence_sentence(report: SequenceReport) -> str:
    """The answer in one line."""
    if report.findings:
        lines = len(report.findings)
        return f"refuted: {count(lines, 'pair')} of accesses {'are' if lines > 1 else 'is'} not ordered"
    if report.conclusion is Conclusion.UNKNOWN:
        return "unknown: not all accesses are known"
    letter = sum(each.basis is Basis.LETTER for pair in report.pairs for each in pair.shared)
    if letter:
        return f"proved, but for {count(letter, 'pair')} of accesses that PTX does not promise to order"
    return f"proved: the accesses of {count(len(report.pairs), 'pair')} of launches to the same bytes are ordered"
