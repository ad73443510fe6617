"""``pipesim explain``: what a kind of finding is, how it shows, how it is corrected, and its smallest example."""

import argparse

from pipesim.cli.arguments import Command, add_flag, complete
from pipesim.cli.output import show_answer, write
from pipesim.errors import ParameterError


def _arguments(parser: argparse.ArgumentParser) -> None:
    text = "a kind of finding or warning, or an assumption (default: list all)"
    complete(parser.add_argument("kind", nargs="?", metavar="NAME", help=text), _kinds)
    add_flag(parser, "--example", "only the example, a protocol file that can be checked")


def _kinds(**_: object) -> list[str]:
    from pipesim.findings.assumptions import ASSUMPTIONS
    from pipesim.findings.catalog import BY_NAME

    return [*BY_NAME, *(each.value for each in ASSUMPTIONS)]


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.kinds import assumption_lines, kind_lines, kind_named
    from pipesim.answers.views.kinds import AssumptionReport, ExampleForm
    from pipesim.formats.documents import document
    from pipesim.report.pages import kinds as page

    if options.kind is None:
        if options.example:
            raise ParameterError("--example without a kind", correction="pipesim explain race --example")
        known, assumed = kind_lines(), assumption_lines()
        listing = document("explain-list", kinds=known, assumptions=assumed)
        return show_answer(options, listing, lambda width: page.kind_list_lines(known, assumed, width))
    report = kind_named(options.kind)
    if isinstance(report, AssumptionReport):
        if options.example:
            raise ParameterError("an assumption has no example", correction=f"pipesim explain {report.name}")
        made = document("explain-assumption", assumption=report)
        return show_answer(options, made, lambda width: page.assumption_lines(report, width))
    if options.example and not options.json:
        if report.written is not ExampleForm.PROTOCOL:
            raise ParameterError(
                f"the example of {report.name} is not a protocol file: it is {report.written.value}",
                correction=f"pipesim explain {report.name} shows it",
            )
        write(lambda _: print(report.example))  # to be copied: not wrapped
        return 0
    return show_answer(options, document("explain", kind=report), lambda width: page.kind_lines(report, width))


COMMAND = Command(
    "explain",
    "what a kind of finding or an assumption is",
    "Explain a kind of finding or warning: what it is, how it shows on the hardware, how it is corrected, and the "
    "smallest protocol that has it; or an assumption of a verdict: what it means, who relies on it, what was measured. "
    "Without a name, list all.",
    _arguments,
    _carry_out,
    (
        ("pipesim explain race", "what a race is, with the smallest protocol that has one"),
        ("pipesim explain proxies", "what a verdict that assumes it rests on"),
        ("pipesim explain race --example", "the example alone, as a file for pipesim check"),
    ),
)
