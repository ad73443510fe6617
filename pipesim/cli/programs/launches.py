"""``pipesim launches``: run a program, and write the PTX and a launch file of every kernel with barriers in it."""

import argparse
import shutil
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_caught, add_dump, add_flag, add_force, add_program, add_value, program_of
from pipesim.cli.limits import start
from pipesim.cli.output import progress, show_answer
from pipesim.errors import ParameterError, PipesimError
from pipesim.process.watch import SignalError, current, signal_of

if TYPE_CHECKING:
    from pipesim.model.finding import Verdict

_OUT = Path("launches")
_MOST_LAUNCHES = 256
_MOST_ORDERED = 1024  #: launches, events and waits of a process
_MOST_BYTES = "64M"
Texts = dict[str, tuple[tuple[str, str], ...]]  #: of each kernel, with where they are from
_NOT_SHARED = "no launch was noted: link the program with nvcc -cudart shared, and compile its PTX into it"


def _arguments(parser: argparse.ArgumentParser) -> None:
    add_caught(parser, _OUT, _MOST_BYTES)
    add_flag(parser, "--check", "check every launch file that is written")
    add_flag(parser, "--once", "only the first launch of each kernel")
    text = f"distinct launches of a process that are recorded (default {_MOST_LAUNCHES})"
    add_value(parser, "--max-launches", "N", text, int, _MOST_LAUNCHES)
    text = "also record the order of launches, events and waits, as sequence.json for pipesim check --sequence"
    add_flag(parser, "--sequence", text)
    add_flag(parser, "--inject", "require that other processes than Python are observed")
    text = "run the program without a GPU: a runtime (nvcc -cudart shared) and a driver that only note launches"
    add_flag(parser, "--no-gpu", text)
    add_dump(parser)
    add_force(parser)
    add_program(parser, "launches")


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.formats.documents import document, launches_exit_code
    from pipesim.launches.files.embedded_ptx import dumped_so_far
    from pipesim.launches.files.gather import gather, require_folder, write_launches
    from pipesim.launches.inject import INJECTION, NOT_PYTHON, limits_of, observed_environment, spool_folder
    from pipesim.process.program import run_program
    from pipesim.report.pages.programs.launches import launches_lines

    words = program_of(options)
    if options.no_gpu and (options.sequence or options.inject):
        raise ParameterError("--no-gpu notes launches alone", correction="leave --sequence and --inject out")
    require_folder(options.out, force=options.force)
    dump = dict[str, tuple[tuple[str, str], ...]]()
    limits = limits_of(options.kernels, options.max_launches, options.max_bytes, once=options.once)
    limits = replace(limits, ordered=_MOST_ORDERED if options.sequence else 0, dump=options.ptx is not None)
    with spool_folder() as spool:
        if options.no_gpu:
            environment, known = _without_gpu(spool, words[0])
            dump |= known
        else:
            environment = observed_environment(spool, limits, inject=options.inject)
        ran = run_program(words, environment, to_stderr=options.json)
        current().start(None)  # what the program has cost is not lost for a limit of time
        with progress("reading what was launched"):
            dumped = dumped_so_far(options.ptx)
            dump |= dumped
            report, texts = gather(
                spool, dump, folder=str(options.out), command=words, status=ran.status, patterns=options.kernels
            )
            if options.no_gpu and not report.kernels:
                report = replace(report, notes=(_NOT_SHARED, *report.notes))
            elif not (report.kernels or report.notes or report.devices or INJECTION in environment):
                report = replace(report, notes=(NOT_PYTHON,))
            if options.ptx is not None and not dumped:
                report = replace(report, notes=(*report.notes, f"the folder {options.ptx} has no PTX of a kernel"))
            write_launches(report, texts, options.out, force=options.force)
    if options.check and ran.ending is None:  # a Ctrl-C was the program's; another one ends the checks
        from pipesim.launches.checks import check_launches  # takes longer to import than all else together

        report = check_launches(report, options.out, _Verdicts(options))
    made = document("launches", launches_exit_code(report), report=report)
    code = show_answer(options, made, lambda width: launches_lines(report, width))
    if ran.ending is not None and not ran.status:
        raise SignalError(ran.ending)
    return code


def _without_gpu(spool: Path, program: str) -> tuple[dict[str, str], Texts]:
    """The environment of a program that runs without a GPU, and the kernels that it has PTX of; none of a script."""
    from pipesim.launches.files.embedded_ptx import FoundKernel, found_kernels
    from pipesim.launches.files.launch_file import kernel_text
    from pipesim.launches.inject import no_gpu_environment

    found: list[FoundKernel] = []
    with suppress(PipesimError):
        found = [each for each in found_kernels(Path(shutil.which(program) or program)) if each.text]
    read = [kernel_text(each.text, each.origin, each.name).entry for each in found]
    sizes = "".join(f"{each.name} {' '.join(str(param.size) for param in each.params)}\n" for each in read)
    capability = 100 if any(each.arch.startswith("sm_10") for each in found) else 90
    dump: Texts = {each.name: ((each.origin, each.text),) for each in found}
    return no_gpu_environment(spool, sizes, capability), dump


class _Verdicts:
    """Checks one launch after the other, each within the limits of a check, until Ctrl-C ends them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._ended = False

    def __call__(self, ptx: Path, launch: Path) -> "tuple[Verdict, str]":
        from pipesim.answers.budget import Budget
        from pipesim.cli.output import TerminalProgress
        from pipesim.launches.checks import check_launch
        from pipesim.model.finding import Verdict

        if not self._ended:
            start(self._options)
            try:
                budget = Budget(self._options.time_limit)
                return check_launch(ptx, launch, budget=budget, progress=TerminalProgress())
            except KeyboardInterrupt as error:
                if signal_of(error) != signal.SIGINT:
                    raise
                current().resume()
                self._ended = True
        return Verdict.UNKNOWN, "unknown: interrupted before there was a verdict"


COMMAND = Command(
    "launches",
    "run a program, and catch the kernels that it launches",
    "Run a program on a machine with a GPU, and write the PTX and a launch file of every kernel with barriers that it "
    "launches, once for each distinct launch, with a table at the end. The program is not changed, and has no limits.",
    _arguments,
    _carry_out,
    (
        (
            "pipesim launches -- python train.py",
            "write launches/KERNEL.ptx and .json, for pipesim check on any machine",
        ),
        ("pipesim launches --check --once -- python train.py", "the first launch of each kernel, with its verdict"),
        ("pipesim launches --kernels 'gemm*' --out gemm -- pytest test_gemm.py", "some kernels of a test, as gemm/..."),
    ),
    in_steps=True,
)
