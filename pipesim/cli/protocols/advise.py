"""``pipesim advise``: what limits a protocol, and what changes would bring."""

import argparse

from pipesim.cli import arguments as given
from pipesim.cli.output import progress, show_report


def _arguments(parser: argparse.ArgumentParser) -> None:
    given.add_protocol(parser)
    given.add_launch(parser)
    given.add_profile(parser)
    given.add_value(parser, "--percent", "N", "by how much work, loads and signals are shortened (default 20)", int)
    given.add_strict(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.advise.advise import PERCENT, advise
    from pipesim.cli.output import TerminalProgress
    from pipesim.report.pages.protocols.advise import advise_lines
    from pipesim.timed.profile import load_profile

    profile = load_profile(options.profile or "h100")
    with progress(f"flattening {options.protocol}"):
        target = given.target_of(options, options.protocol).with_strictness(given.strictness_of(options))
    report = advise(
        target,
        given.params_of(options),
        profile,
        ctas=options.ctas,
        percent=PERCENT if options.percent is None else options.percent,
        progress=TerminalProgress(),
    )
    return show_report(options, report, advise_lines)


COMMAND = given.Command(
    "advise",
    "what limits a protocol, and what more stages, faster loads or less work would bring",
    "Simulate a protocol as it is and with one change at a time: more and fewer stages, less work of each role, faster "
    "loads, reads, multiplications and signals. Each change has its gain, its cost in shared memory, and a verdict.",
    _arguments,
    _carry_out,
    (
        ("pipesim advise producer_consumer", "what limits the ring, and what would make it faster"),
        ("pipesim advise gemm_sm90 -p stages=2 --profile h200", "whether a GEMM with two stages needs a third"),
    ),
)
