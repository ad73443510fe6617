"""``pipesim doctor``: what is there, what is missing with its correction, and what can be done."""

from pipesim.answers.views.doctor import DoctorReport, MachinePart
from pipesim.report.text.console import mark
from pipesim.report.text.layout import wrap
from pipesim.report.text.words import listed

_INDENT = 4
_MISSING = "–"  #: of what is missing and not asked for


def doctor_lines(report: DoctorReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    names = max(len(part.name) for part in report.parts)
    lines = [*wrap(f"pipesim {report.version}   {report.place}", width), ""]
    for part in report.parts:
        lines += _part(part, names, width, asked=any(use in part.needed for use in report.asked))
    lines += ["", "what is possible here", ""]
    for each in report.uses:
        lacking = f" (needs {listed(list(each.lacks))})" if each.lacks else ""
        sign = mark(ok=True) if not each.lacks else mark(ok=False) if each.use in report.asked else _MISSING
        lines += wrap(f"{each.use.value}{lacking}", width, f"  {sign} ", " " * _INDENT)
    return [*lines, "", *wrap(doctor_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def doctor_sentence(report: DoctorReport) -> str:
    """Whether what was asked for is possible: ``check: possible here``."""
    wanted = [each for each in report.uses if each.use in report.asked]
    lacking = list(dict.fromkeys(name for each in wanted for name in each.lacks))
    names = listed([each.use.name.lower() for each in wanted])
    if lacking:
        return f"{names}: not possible here without {listed(lacking)}"
    return f"{names}: possible here"


def _part(part: MachinePart, names: int, width: int, *, asked: bool) -> list[str]:
    """``✓ NVRTC    13.0``; of what is missing the problem, and below it the correction."""
    sign = mark(ok=True) if part.is_there else mark(ok=False) if asked else _MISSING
    indent = " " * (names + _INDENT + 2)
    first = f"  {sign} {part.name:<{names}}  "
    lines = wrap(part.found if part.is_there else part.problem, width, first, indent)
    if part.correction and not part.is_there:
        lines += wrap(f"try: {part.correction}", width, indent, indent + "  ")
    return lines
