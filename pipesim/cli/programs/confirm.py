"""``pipesim confirm``: have a GPU follow the schedule of each finding of a kernel, by delays in its PTX."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from pipesim.cli import arguments as given
from pipesim.cli.output import TerminalProgress, progress, show_answer, show_report
from pipesim.cli.programs.capture_kernel import require_gpu_or
from pipesim.errors import ParameterError, UsageError
from pipesim.process.watch import SignalError, current

_OUT = Path("confirm")
_MOST_BYTES = "1G"  #: that are copied of what the launches of a process lead to
_MOST_RECORDS, _MOST_LAUNCHES = 1 << 26, 64  #: of a process
_INPUTS = (".ptx", ".py", ".json")
Number = tuple[str, int, str, str]  #: an option with its default, its metavar and its help


def add_launching(parser: argparse.ArgumentParser, launches: Number, *others: Number, saved: str, unrun: str) -> None:
    """The options of a command that launches a kernel with delays; ``launches``: how many launches it makes."""
    given.add_launch(parser)
    for name, default, metavar, text in (
        launches,
        ("--deadline-ms", 250, "MS", "time after which a wait gives up"),
        *others,
        ("--buffer-bytes", 1 << 24, "N", "size of a buffer that the launch file does not say"),
    ):
        given.add_value(parser, name, metavar, f"{text} (default {default})", int, default)
    text = f"write the PTX with {saved} to FILE, and beside it a .json that says how to launch it"
    given.add_value(parser, "--save", "FILE", text, Path)
    given.add_flag(parser, "--no-run", unrun)
    given.add_force(parser)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="KERNEL", help="the kernel's .ptx, or -- and a program to run")
    given.add_caught(parser, _OUT, _MOST_BYTES)
    given.add_flag(parser, "--inject", "require that programs which are not Python are observed as well")
    add_launching(
        parser,
        ("--launches", 5, "N", "launches with the delays, and without"),
        ("--delay-us", 1000, "US", "the shortest delay"),
        ("--seed", 0, "N", "seed of the data in the buffers"),
        saved="the delays",
        unrun="choose the delays and save them, without a GPU",
    )
    given.add_value(parser, "--finding", "N", "the Nth finding of check (default all)", int, 0)
    given.add_value(parser, "--replay", "TEXT", "confirm this schedule: the line at the end of a finding")


_RANGES = {"launches": (1, 1_000), "deadline_ms": (1, 2_000), "delay_us": (1, 100_000), "finding": (0, 10_000)}
_RANGES |= {"buffer_bytes": (256, 1 << 34), "seed": (0, (1 << 63) - 1)}


def require_in_range(options: argparse.Namespace, other: Mapping[str, tuple[int, int]]) -> None:
    """ParameterError for a number that is out of range; ``other``: ranges that are not those of confirm."""
    for name, (low, high) in ({**_RANGES, **other}).items():
        if not low <= (value := getattr(options, name, low)) <= high:
            fact = f"{given.flag_of(name)} {value} is out of range"
            raise ParameterError(fact, correction=f"use {low:,} to {high:,}")


def _is_program(words: list[str]) -> bool:
    return len(words) > 1 or (Path(words[0]).suffix not in _INPUTS and os.access(words[0], os.X_OK))


def _program_on_chip(options: argparse.Namespace) -> int:
    """The launches that a program makes, on copies of their buffers."""
    from pipesim.answers.budget import Budget
    from pipesim.confirm.confirm import ConfirmOptions
    from pipesim.confirm.launches import GpuChip
    from pipesim.formats.documents import document_of
    from pipesim.launches.confirmed import LaunchConfirming
    from pipesim.launches.files.gather import require_folder
    from pipesim.launches.inject import limits_of, observed_environment, spool_folder
    from pipesim.process.program import run_program
    from pipesim.report.pages.programs.confirm import confirm_program_lines

    for name in ("save", "no_run", "replay", "finding"):
        if getattr(options, name):
            fact = f"{given.flag_of(name)} is of one kernel, and a program was given"
            raise UsageError(fact, correction="give it with a kernel that the program launches: its files are in --out")
    require_folder(options.out, force=options.force)
    require_gpu_or("run it on a machine with an H100 or H200")
    limits = replace(limits_of(options.kernels, _MOST_LAUNCHES, _MOST_RECORDS, once=False), copies=options.max_bytes)
    asked = ConfirmOptions(options.launches, options.deadline_ms, options.delay_us, force=options.force)
    current().start(None)  # the program has no limits, and what it has cost is not lost for one
    with spool_folder() as spool:
        environment = observed_environment(spool, limits, inject=options.inject)
        ran = run_program(options.words, environment, to_stderr=options.json)
        way = LaunchConfirming(options.out, GpuChip(), asked, Budget(options.time_limit), TerminalProgress())
        report = way.report(spool, options.words, ran.status, options.kernels)
    made = document_of(report)
    made["exit_code"] = ran.status or made["exit_code"]
    code = show_answer(options, made, lambda width: confirm_program_lines(report, width))
    if ran.ending is not None and not ran.status:
        raise SignalError(ran.ending)
    return code


def _carry_out(options: argparse.Namespace) -> int:
    require_in_range(options, {})
    if _is_program(options.words):
        return _program_on_chip(options)
    options.kernel = options.words[0]
    given.require_output(options.save, force=options.force)

    from pipesim.answers.budget import Budget, states_of
    from pipesim.answers.check import check, program_of_schedule, replay
    from pipesim.confirm.confirm import ConfirmOptions, confirm, require_findings, require_kernel
    from pipesim.confirm.launches import GpuChip
    from pipesim.ptx.source_files import lines_read_from
    from pipesim.report.pages.programs.confirm import confirm_lines

    with progress(f"reading {options.kernel}"):
        target = given.target_of(options, options.kernel)
        require_kernel(target)
        program = target.build()
    if not options.no_run:
        require_gpu_or("confirm on a machine with an H100 or H200; --no-run --save FILE chooses the delays without one")
    asked = ConfirmOptions(**{each.name: getattr(options, each.name) for each in fields(ConfirmOptions)})
    if options.replay is not None:
        text = given.schedule_text(options.replay)
        checked = replay(program_of_schedule(target, program, text), text)
    else:
        states, budget = states_of(None, program), Budget(options.time_limit)
        checked = check(target, {}, program=program, max_states=states, budget=budget, progress=TerminalProgress())
    require_findings(checked, asked)
    with progress(f"confirming {program.name}"):
        report = confirm(target, checked, None if options.no_run else GpuChip(options.seed), asked)
    with lines_read_from(target.sources):
        return show_report(options, report, confirm_lines)


COMMAND = given.Command(
    "confirm",
    "have a GPU follow the schedule of a kernel's finding",
    "Put delays into a kernel's PTX that make a GPU follow the schedule of each finding of check, launch it with and "
    "without them, and compare. Waits are bounded, and the launches are in processes of their own. Of a program, its "
    "launches: on copies of their buffers, once it has ended.",
    _arguments,
    _carry_out,
    (
        ("pipesim confirm kernel.ptx --launch kernel.json", "every finding of the kernel (needs a GPU)"),
        ("pipesim confirm kernel.ptx --no-run --save late.ptx", "the delays alone, on any machine"),
        ("pipesim confirm -- python train.py", "every kernel that a program launches, with the program's data"),
    ),
)
