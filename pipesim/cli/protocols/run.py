"""``pipesim run``: simulate a protocol on one profile."""

import argparse
import gc
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli import arguments as given
from pipesim.cli.output import progress, show_report
from pipesim.errors import ParameterError

if TYPE_CHECKING:
    from pipesim.model.program import Program


def _arguments(parser: argparse.ArgumentParser) -> None:
    given.add_protocol(parser)
    given.add_launch(parser)
    given.add_profile(parser)
    given.add_flag(parser, "--recording", "add the cost of recording each event on the GPU")
    given.add_value(parser, "--max-steps", "N", "give up (exit code 3) after N operations", int)
    given.add_value(parser, "--save-trace", "FILE", "write the simulated events as a trace (Parquet)", Path)
    given.add_window(
        parser, "keep only the iterations A to B-1 of every agent in the saved trace, as the recorder does"
    )
    given.add_value(parser, "--save-program", "FILE", "write the flat program (JSON)", Path)
    text = "replay this schedule, as printed by `pipesim check`, instead of simulating"
    given.add_value(parser, "--schedule", "TEXT", text)
    given.add_strict(parser)
    given.add_force(parser)


def _carry_out(options: argparse.Namespace) -> int:
    _check_outputs(options)
    given.require_positive(options, "max_steps")
    if options.schedule is not None:
        return _walk(options)

    from pipesim.answers.run import run
    from pipesim.conform.steady import without_estimates
    from pipesim.model.program_json import dumps
    from pipesim.process.files import write_whole
    from pipesim.report.pages.protocols.run import run_lines
    from pipesim.timed.engine import DEFAULT_BUDGET
    from pipesim.timed.profile import load_profile
    from pipesim.trace.activity import cut
    from pipesim.trace.files import write_trace

    profile = load_profile(options.profile or "h100")
    program = given.build_target(options, options.protocol, timed=True)[1]
    gc.collect()  # what a kernel was read from has cycles, and a third of the memory that a long run takes
    window = _clip_window(options.window, program) if options.window is not None else None
    if options.save_program is not None:
        write_whole(options.save_program, dumps(program).encode(), force=options.force)
    with progress(f"simulating {program.name} on {profile.name}"):
        most = options.max_steps or DEFAULT_BUDGET
        report = run(program, profile, traced=options.recording, max_steps=most, until_time_limit=True)
    if options.save_trace is not None:
        trace = without_estimates(report.trace)
        write_trace(cut(trace, *window) if window else trace, options.save_trace, force=options.force)
    return show_report(options, report, run_lines)


def _walk(options: argparse.Namespace) -> int:
    """One schedule, move by move: no profile, no cycles, no trace."""
    for name in ("profile", "recording", "max_steps", "save_trace"):
        if getattr(options, name):
            raise ParameterError(
                f"--schedule and {given.flag_of(name)} cannot be combined",
                cause="a schedule is replayed in moves: it has no cycles and leaves no trace",
                correction="leave one of them out",
            )

    from pipesim.answers.check import program_of_schedule, replay_report
    from pipesim.model.program_json import dumps
    from pipesim.process.files import write_whole
    from pipesim.report.pages.protocols.run import walk_lines

    target, program = given.build_target(options, options.protocol)
    if options.save_program is not None:
        write_whole(options.save_program, dumps(program).encode(), force=options.force)
    text = given.schedule_text(options.schedule)
    report = replay_report(program_of_schedule(target, program, text, options.ctas), text)
    return show_report(options, report, walk_lines)


def _check_outputs(options: argparse.Namespace) -> None:
    if options.window is not None and options.save_trace is None:
        raise ParameterError(
            "--window selects what a saved trace keeps, but no trace is saved", correction="add --save-trace FILE"
        )
    for path in (options.save_trace, options.save_program):
        given.require_output(path, force=options.force)
    if options.save_trace is not None and options.save_trace == options.save_program:
        raise ParameterError(
            f"{options.save_trace} cannot be both the trace and the program", correction="give each a file of its own"
        )


def _clip_window(window: tuple[int, int], program: "Program") -> tuple[int, int]:
    """The window as far as the program goes; ParameterError for one that begins after its last iteration."""
    from pipesim.trace.sites import iterations, site_table

    last = iterations(site_table(program))
    if window[0] >= last:
        number = "1 iteration" if last == 1 else f"{last:,} iterations"
        raise ParameterError(
            f"the window starts at iteration {window[0]}, after the last of {number} of {program.name}",
            cause="iterations count from 0, and the end of a window is exclusive",
            correction="start it earlier, or run more tiles" if last else "leave the window out",
        )
    return window[0], min(window[1], last)


COMMAND = given.Command(
    "run",
    "simulate a protocol",
    "Simulate a protocol on one device's latency profile and report what happened.",
    _arguments,
    _carry_out,
    (
        ("pipesim run producer_consumer -p stages=2", "the period of a built-in ring with two stages"),
        ("pipesim run my_kernel.py --profile h200", "the protocol of a file of your own, on an H200"),
        ("pipesim run gemm_sm90 --save-trace gemm.parquet", "keep the events, to be compared with `pipesim diff`"),
    ),
)
