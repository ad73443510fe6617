"""``pipesim export``: a protocol in another tool's language, and pictures of runs and counterexamples as files."""

import argparse
from pathlib import Path

from pipesim.cli.arguments import (
    Command,
    add_ctas,
    add_force,
    add_launch,
    add_params,
    add_profile,
    add_strict,
    add_untrusted,
    build_target,
    complete,
    names_of,
    require_output,
)
from pipesim.cli.completers import protocols
from pipesim.cli.output import emit, progress, write_text
from pipesim.cli.protocols.export_pictures import SUFFIXES, draw
from pipesim.errors import ParameterError, UsageError
from pipesim.formats.pictures import PICTURES

PROMELA = "promela"
FORMATS = (PROMELA, *SUFFIXES)


def _arguments(parser: argparse.ArgumentParser) -> None:
    what = "a built-in name, file.py, file.py:function, a program's .json, or a trace (.parquet)"
    complete(parser.add_argument("protocol", help=what), protocols)
    beside = parser.add_argument("other", nargs="?", help="a trace beside the protocol, or beside the first trace")
    complete(beside, protocols)
    add_params(parser, "a parameter of the protocol; may be repeated")
    add_ctas(parser)
    add_launch(parser)
    known = "perfetto, html, svg, or promela, the modelling language of SPIN"
    complete(parser.add_argument("--to", metavar="FORMAT", required=True, help=known), names_of(FORMATS))
    drawn = parser.add_argument(
        "--picture",
        metavar="WHAT",
        choices=PICTURES,
        help="timeline (default); counterexample: of a refuted protocol, to be stepped through (html) or as a schedule "
        "(svg); hang: who waits for whom (svg)",
    )
    complete(drawn, names_of(PICTURES))
    named = parser.add_argument("--protocol", dest="against", help="the protocol of a trace (default: what it names)")
    complete(named, protocols)
    add_profile(parser, "latency profile of a simulation (default h100, beside a trace that of its device)")
    parser.add_argument("--cta", type=int, metavar="N", help="the CTA of an SVG timeline (default: the lowest)")
    parser.add_argument(
        "--between", type=nanoseconds_of, metavar="A..B", help="the nanoseconds of an SVG timeline (default: all)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="output file (default: named after the protocol or the trace; promela: standard output)",
    )
    parser.add_argument("--open", action="store_true", help="open the result in a browser")
    add_strict(parser)
    add_force(parser)
    add_untrusted(parser)


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
    if options.output is not None:
        require_output(options.output, force=options.force)

    from pipesim.formats.documents import document
    from pipesim.formats.promela import to_promela
    from pipesim.process.files import write_whole
    from pipesim.report.text.words import printable

    _, program = build_target(options, options.protocol)
    with progress(f"translating {program.name}"):
        text = to_promela(program)
    if options.output is not None:
        write_whole(options.output, text.encode(), force=options.force)
        said = f"wrote {printable(str(options.output))}: its first lines explain how to run SPIN on it\n"
    else:
        said = text
    made = document("export", format=options.to, file=options.output, text=text)
    emit(options, made, lambda _: write_text(said))
    return 0


COMMAND = Command(
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
