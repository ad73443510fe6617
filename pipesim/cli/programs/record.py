"""``pipesim record``: run a program, and record the kernels with barriers that it launches, as traces."""

import argparse
from dataclasses import replace
from pathlib import Path

from pipesim.cli.arguments import Command, add_caught, add_dump, add_flag, add_force, add_program, add_value, program_of
from pipesim.cli.output import progress, show_answer
from pipesim.process.watch import SignalError, current

_OUT = Path("recording")
_MOST_BYTES = "256M"


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_caught(parser, _OUT, _MOST_BYTES)
    add_value(parser, "--launches", "N", "launches of each kernel that are recorded (default 1)", int, 1)
    add_value(parser, "--skip", "N", "launches of each kernel before the first that is recorded", int, 0)
    text = "stop a launch after this time, and say who waits for what; records are kept in host memory then"
    add_value(parser, "--deadline", "SECONDS", text, float)
    add_flag(parser, "--waits-only", "record at waits only, where registers are short")
    text = "the CTA that leaves records, with the others of its cluster: its number in the grid, x first (default 0)"
    add_value(parser, "--cta", "N", text, int, 0)
    add_flag(parser, "--diff", "compare every trace with the program of its PTX")
    add_dump(parser)
    add_force(parser)
    add_program(parser, "record")


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.formats.documents import document, record_exit_code
    from pipesim.launches.files.embedded_ptx import dumped_so_far
    from pipesim.launches.files.gather import require_folder
    from pipesim.launches.inject import INJECTION, NOT_PYTHON, limits_of, observed_environment, spool_folder
    from pipesim.launches.record.gather import gather_recording
    from pipesim.launches.record.options import RecordOptions
    from pipesim.launches.record.service import answering
    from pipesim.launches.record.session import MOST_DISTINCT
    from pipesim.process.program import run_program
    from pipesim.report.pages.programs.launches import recording_lines

    words = program_of(options)
    require_folder(options.out, force=options.force)
    limits = limits_of(options.kernels, MOST_DISTINCT, options.max_bytes, once=False)
    given = options.launches, options.skip, options.deadline, options.waits_only, options.cta
    dump = "" if options.ptx is None else str(options.ptx.absolute())
    chosen = RecordOptions(*given, ends_process=options.deadline is not None, dump=dump)
    with spool_folder() as spool:
        environment = observed_environment(spool, limits, more=chosen.to_environment())
        with answering(spool, chosen):
            ran = run_program(words, environment, to_stderr=options.json)
        current().start(None)  # what the program has cost is not lost for a limit of time
        with progress("reading what was recorded"):
            report, files = gather_recording(
                spool,
                folder=str(options.out),
                command=words,
                status=ran.status,
                patterns=options.kernels,
                compare=options.diff,
                dump=dumped_so_far(options.ptx),
            )
            if not (report.kernels or report.notes or report.devices or INJECTION in environment):
                report = replace(report, notes=(NOT_PYTHON,))
            files.write(options.out, force=options.force)
    made = document("record", record_exit_code(report), report=report)
    code = show_answer(options, made, lambda width: recording_lines(report, width))
    if ran.ending is not None and not ran.status:
        raise SignalError(ran.ending)
    return code


COMMAND = Command(
    "record",
    "run a program, and record the kernels that it launches",
    "Run a program on a machine with a GPU, with records put into the kernels with barriers where they are "
    "launched, and write a trace of each with its PTX and launch file. The kernels compute what they computed before.",
    _arguments,
    _carry_out,
    (
        ("pipesim record -- python train.py", "write recording/KERNEL.parquet, .ptx and .json, for pipesim diff"),
        ("pipesim record --kernels 'gemm*' --skip 2 --launches 3 --diff -- python bench.py", "three warm launches"),
        ("pipesim record --deadline 5 -- python hangs.py", "stop a kernel that hangs, and say who waits for what"),
    ),
    in_steps=True,
)
