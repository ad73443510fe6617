"""``pipesim decode``: make a trace of the records that a program in C++ has written."""

import argparse
from pathlib import Path

from pipesim.cli.arguments import Command, add_force, add_value
from pipesim.cli.output import progress, show_answer


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("records", type=Path, help="the file that pipesim_write wrote")
    text = "the kernel's .ptx, as it was instrumented"
    parser.add_argument("--kernel", type=Path, required=True, metavar="PTX", help=text)
    add_value(parser, "--launch", "FILE", "its launch file (default: the .json beside it)", Path)
    add_value(parser, "--out", "FILE", "the trace (default: RECORDS with .parquet)", Path)
    add_force(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.formats.documents import document
    from pipesim.launches.record.gather import decoded_trace, kernel_of
    from pipesim.process.files import require_free
    from pipesim.report.text.words import count
    from pipesim.trace.files import write_trace

    out: Path = options.out or options.records.with_suffix(".parquet")
    require_free(out, force=options.force)
    with progress(f"decoding {options.records}"):
        text, launch = kernel_of(options.kernel, options.launch)
        trace = decoded_trace(options.records, text, launch)
        write_trace(trace, out, force=options.force)
    ending = trace.meta.status
    events = len(trace.events)
    made = document("decode", trace=str(out), kernel=launch.entry, events=events, ending=ending.value)
    said = f"{out}: {count(events, 'event')} of {launch.entry} · {ending.value}"
    return show_answer(options, made, lambda _: [said])


COMMAND = Command(
    "decode",
    "make a trace of the records of a program in C++",
    "Make a trace of the file that a program wrote with pipesim_record.h. pipesim diff TRACE --protocol kernel.ptx "
    "compares it with the kernel's PTX.",
    _arguments,
    _carry_out,
    (
        ("pipesim decode gemm.records --kernel instrumented/gemm.ptx", "write gemm.parquet"),
        ("pipesim decode a.records --kernel instrumented/gemm.ptx --launch gemm-2.json", "of another launch of it"),
    ),
)
