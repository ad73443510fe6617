"""``pipesim hang``: run a program, and when its kernels hang, take a core dump of each of its processes."""

import argparse
import os
from dataclasses import replace
from pathlib import Path

from pipesim.cli.arguments import Command, add_flag, add_program, add_value, program_of, seconds_of
from pipesim.cli.output import progress, remark, show_answer
from pipesim.errors import UsageError
from pipesim.process.watch import SignalError, current

_KEEP = Path("hang")


def _arguments(parser: argparse.ArgumentParser) -> None:
    text = (
        "dump the program when none of its GPU processes has read or written a byte for so long; "
        "longer than it ever is silent (default: only when asked)"
    )
    add_value(parser, "--after", "SECONDS", text, seconds_of)
    text = "dump a program that runs: this is its process, or that of pipesim hang"
    add_value(parser, "--now", "PID", text, int)
    add_value(parser, "--keep", "DIR", f"the folder of dumps (default {_KEEP})", Path, _KEEP)
    text = "with global and local memory, for flags and locks there: as large as what the program has allocated"
    add_flag(parser, "--memory", text)
    add_flag(parser, "--remove", "remove the dumps that could be read, once this is said")
    add_program(parser, "hang")


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.views.launches import HangCause, HangReport
    from pipesim.formats.documents import document, hang_exit_code
    from pipesim.hang.compare import compare_dumps
    from pipesim.hang.dumps import HangWatch, dump_environment, dump_now, written_meanwhile
    from pipesim.hang.surroundings import pipe_folder, require_dump_folder
    from pipesim.process.program import run_program, without_secrets
    from pipesim.report.pages.programs.autopsy import hang_lines

    ending = None
    if options.now is not None:
        if options.words:
            raise UsageError("hang: --now is for a program that runs", correction="leave out the command, or --now")
        dumps = dump_now(options.now)
        if dumps is None:
            remark(f"the pipesim hang that watches process {options.now} makes the dump")
            return 0
        report = HangReport((), None, HangCause.ASKED, None, dumps)
    else:
        words = program_of(options)
        require_dump_folder(options.keep)
        _warn_without_driver()
        watch, before = HangWatch(options.after, remark), set(options.keep.glob("core.*"))
        first = ", or of a container `docker kill -s QUIT`" * (os.getpid() == 1)
        remark(f"when it hangs: Ctrl-\\ here, or in another terminal `pipesim hang --now {os.getpid()}`{first}")
        with pipe_folder(options.keep) as pipes:
            environment = dump_environment(options.keep, Path(pipes), memory=options.memory)
            ran = run_program(words, environment, to_stderr=options.json, look=watch.look, ask=watch.ask)
        current().start(None)
        status, ending = ran.status if watch.cause is None else None, ran.ending
        dumps = watch.dumps if watch.cause is not None else written_meanwhile(options.keep, before)
        report = HangReport(without_secrets(words), status, watch.cause, options.after, dumps)
    with progress("reading the core dumps"):
        report = replace(report, alike=compare_dumps(report.complete))
    code = show_answer(
        options, document("hang", hang_exit_code(report), report=report), lambda width: hang_lines(report, width)
    )
    for group in report.alike if options.remove else ():
        for each in group.dumps if group.autopsy is not None else ():
            Path(each.file).unlink(missing_ok=True)
    if ending is not None and not code:
        raise SignalError(ending)
    return code


def _warn_without_driver() -> None:
    """Say before the program starts that nothing can be dumped."""
    from hwkernels.device.presence import driver_present
    from pipesim.hang.surroundings import missing_of_driver

    current().allow_reserving()
    found = driver_present()
    problem = found.problem or (next(missing_of_driver(), ("", ""))[0] if found.gpus else "the driver sees no GPU")
    if problem:
        remark(f"no dump can be made on this machine: {problem} (pipesim doctor)")


COMMAND = Command(
    "hang",
    "run a program, and when its kernels hang, say who waits for whom",
    "Run a program on a machine with a GPU, and when it hangs (nothing moves for --after seconds, or a person asks), "
    "have the driver write a core dump of each of its processes, end it, and say who waits for whom, as autopsy does. "
    "The program is not changed, its kernels take no longer, and it has no limits. Exit code 5: it hung.",
    _arguments,
    _carry_out,
    (
        ("pipesim hang --after 60 -- python train.py", "dump it when no process has read or written for a minute"),
        ("pipesim hang -- torchrun --nproc-per-node 8 train.py", "dump all ranks with Ctrl-\\ on its terminal"),
        ("pipesim hang --now 4711", "dump a program that runs: process 4711 and those that it started"),
    ),
    in_steps=True,
)
