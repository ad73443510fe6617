"""``pipesim export``: a protocol in another tool's language, and pictures of runs and counterexamples as files."""

import argparse
from pathlib import Path

from pipesim.cli import arguments as given
from pipesim.cli.completers import protocols
from pipesim.cli.output import progress, show_text
from pipesim.cli.protocols.export_pictures import SUFFIXES, draw
from pipesim.errors import ParameterError, UsageError
from pipesim.formats.pictures import PICTURES

PROMELA = "promela"
FORMATS = (PROMELA, *SUFFIXES)


def _arguments(parser: argparse.ArgumentParser) -> None:
    what = "a built-in name, file.py, file.py:function, a program's .json, or a trace (.parquet)"
    given.complete(parser.add_argument("protocol", help=what), protocols)
    beside = parser.add_argument("other", nargs="?", help="a trace beside the protocol, or beside the first trace")
    given.complete(beside, protocols)
    given.add_params(parser, "a parameter of the protocol; may be repeated")
    given.add_ctas(parser)
    given.add_launch(parser)
    known = "perfetto, html, svg, or promela, the modelling language of SPIN"
    given.complete(parser.add_argument("--to", metavar="FORMAT", required=True, help=known), given.names_of(FORMATS))
    text = (
        "timeline (default); counterexample: of a refuted protocol, to be stepped through (html) or as a schedule "
        "(svg); hang: who waits for whom (svg)"
    )
    drawn = parser.add_argument("--picture", metavar="WHAT", choices=PICTURES, help=text)
    given.complete(drawn, given.names_of(PICTURES))
    text = "the protocol of a trace (default: what it names)"
    given.complete(given.add_value(parser, "--protocol", None, text, dest="against"), protocols)
    given.add_profile(parser, "latency profile of a simulation (default h100, beside a trace that of its device)")
    given.add_value(parser, "--cta", "N", "the CTA of an SVG timeline (default: the lowest)", int)
    text = "the nanoseconds of an SVG timeline (default: all)"
    given.add_value(parser, "--between", "A..B", text, nanoseconds_of)
    text = "output file (default: named after the protocol or the trace; promela: standard output)"
    given.add_value(parser, "-o --output", "FILE", text, Path)
    given.add_flag(parser, "--open", "open the result in a browser")
    given.add_strict(parser)
    given.add_force(parser)
    given.add_untrusted(parser)


def nanoseconds_of(text: str) -> tuple[int, int]:
    """``1000..2500`` as (1000, 2500); argparse reports anything else."""
    first, dots, end = text.partition("..")
    if not (
        dots and first.isdecimal() and end.isdecimal() and max(len(first), len(end)) < 13 and int(first) < int(end)
    ):
        raise argparse.ArgumentTypeError(f"{text!r}: expected nanoseconds A..B, for example 1000..2500")
    return int(first), int(end)


def _carry_out(options: argparse.Namespace) -> int:
    if options.to not in FORMATS:
        known = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise UsageError(f"nothing can be exported to {options.to!r}", correction=f"use --to {known}")
    if options.to != PROMELA:
        return draw(options)
    for name in ("other", "picture", "against", "profile", "cta", "between", "open"):
        if getattr(options, name):
            said = {"other": f"{options.other}", "against": "--protocol"}.get(name, f"--{name}")
            raise ParameterError(f"{said} and --to {PROMELA} cannot be combined", correction="leave one of them out")
    given.require_output(options.output, force=options.force)

    from pipesim.formats.documents import document
    from pipesim.formats.promela import to_promela

    _, program = given.build_target(options, options.protocol)
    with progress(f"translating {program.name}"):
        text = to_promela(program)
    made = document("export", format=options.to, file=options.output, text=text)
    return show_text(options, made, text, "its first lines explain how to run SPIN on it")


COMMAND = given.Command(
    "export",
    "pictures of runs and counterexamples; a protocol in another tool's language",
    "Write a trace, a simulation, both beside each other, or a counterexample as a file that others can open: for "
    "Perfetto, as one HTML page or as an SVG picture; or a protocol's flat program for SPIN, an independent model "
    "checker.",
    _arguments,
    _carry_out,
    (
        ("pipesim export my_kernel.py --to html", "the simulation of your protocol as a page; --open shows it"),
        ("pipesim export gemm_sm90 gemm.parquet --to perfetto", "simulation and trace on one clock"),
        ("pipesim export my_kernel.py -p tiles=3 --to promela -o my_kernel.pml", "your protocol as a model for SPIN"),
    ),
)
