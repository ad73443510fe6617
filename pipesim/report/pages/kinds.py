"""``pipesim explain``: all kinds of findings and warnings in a line each, or one in full with its smallest example."""

from collections.abc import Sequence

from pipesim.answers.views.kinds import AssumptionReport, ExampleForm, KindLine, KindReport
from pipesim.report.text.layout import field, pad, wrap


def kind_list_lines(kinds: Sequence[KindLine], assumptions: Sequence[KindLine], width: int) -> list[str]:
    """All kinds and assumptions, a line each."""
    names = max(len(each.name) for each in kinds) + 2
    lines: list[str] = []
    for heading, some in (
        ("findings", [each for each in kinds if not each.warning]),
        ("warnings of a proved protocol", [each for each in kinds if each.warning]),
        ("assumptions of a verdict, each with its switch --strict-NAME", assumptions),
    ):
        lines += [*([""] if lines else []), heading]
        for each in some:
            lines += wrap(each.title, width, f"  {pad(each.name, names)}")
    return [*lines, "", "one of them in full: pipesim explain NAME"]


def assumption_lines(report: AssumptionReport, width: int) -> list[str]:
    """One assumption in lines of at most ``width`` cells."""
    lines = wrap(f"{report.name} · that {report.clause}", width, "", "  ")
    parts = (("what", report.what), ("relied on by", report.relies), ("measured", report.measured))
    for label, said in (*parts, ("without it", f"{report.switch}: {report.strict}")):
        lines += ["", *field(label, [said], width)]
    return lines


def kind_lines(report: KindReport, width: int) -> list[str]:
    """One kind in lines of at most ``width`` cells, but for the example, which is to be copied."""
    lines = wrap(f"{report.name} · {report.title}", width, "", "  ")
    parts = (("what", report.cause), ("shows", report.shows), ("corrected", report.correction))
    for label, said in parts:
        lines += ["", *field(label, [said], width)]
    lines += ["", *field("detected", [_hardware(report)], width), *field("how sure", [report.certainty.value], width)]
    lines += field("PTX ISA", [report.ptx], width) if report.ptx else []
    if report.switches:
        lines += field("a finding", [f"with {' '.join(report.switches)}"], width)
    if report.written is not ExampleForm.PROTOCOL:
        said = report.written.value
        wrong, right = report.example.splitlines(), report.corrected.splitlines()
        return [*lines, "", f"  wrong, in {said}", "", *wrong, "", "  right", "", *right]
    file = f"{report.name}.py"
    check = " ".join(["pipesim check", file, *report.switches])
    outcome = "proved, with the warning" if report.warning else "refuted"
    lines += ["", *field("try it", [f"pipesim explain {report.name} --example > {file}"], width)]
    lines += field("", [f"{check}: {outcome}"], width)
    lines += field("", [f"{check} -p right=1: proved"], width)
    return [*lines, "", *report.example.replace("\n\n\n", "\n\n").splitlines()]


def _hardware(report: KindReport) -> str:
    if report.warning:
        return "no: it breaks no rule that PTX states"
    if report.name in ("deadlock", "lapped_waiter"):
        return "no: the kernel does not end"
    return "the hardware traps, or the launch is illegal in PTX" if report.traps else "not by the hardware"
