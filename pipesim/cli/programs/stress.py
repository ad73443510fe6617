"""``pipesim stress``: launches of a kernel in which warps are late, compared with those in which none is."""

import argparse

from pipesim.cli.arguments import Command, require_output, target_of
from pipesim.cli.output import TerminalProgress, progress, show_report
from pipesim.cli.programs.capture_kernel import require_gpu_or
from pipesim.cli.programs.confirm import add_launching, require_in_range


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", help="the kernel's .ptx")
    add_launching(
        parser,
        ("--launches", 10_000, "N", "launches"),
        ("--seed", 0, "N", "seed of the delays, and of the data in the buffers"),
        saved="the delays of what was seen",
        unrun="save the PTX with the first delays, without a GPU",
    )


def _carry_out(options: argparse.Namespace) -> int:
    require_in_range(options, {"launches": (1, 10_000_000)})
    require_output(options.save, force=options.force)

    from pipesim.answers.budget import Budget, states_of
    from pipesim.answers.check import check
    from pipesim.confirm.confirm import ConfirmOptions, require_kernel
    from pipesim.confirm.launches import GpuChip
    from pipesim.confirm.stress import stress
    from pipesim.ptx.source_files import lines_read_from
    from pipesim.report.pages.programs.stress import stress_lines

    with progress(f"reading {options.kernel}"):
        target = target_of(options, options.kernel)
        require_kernel(target)
        program = target.build()
    if not options.no_run:
        require_gpu_or("stress on a machine with an H100 or H200; --no-run --save FILE writes the PTX without one")
    states, budget = states_of(None, program), Budget(options.time_limit)
    checked = check(target, {}, program=program, max_states=states, budget=budget, progress=TerminalProgress())
    asked = ConfirmOptions(
        deadline_ms=options.deadline_ms, save=options.save, force=options.force, buffer_bytes=options.buffer_bytes
    )
    with progress(f"launching {program.name}"):
        chip = None if options.no_run else GpuChip(options.seed)
        report = stress(target, checked, chip, asked, many=options.launches, seed=options.seed)
    with lines_read_from(target.sources):
        return show_report(options, report, stress_lines)


COMMAND = Command(
    "stress",
    "launch a kernel with its warps late at random, and compare",
    "Put delays into a kernel's PTX that a table in global memory gives, launch it with thousands of seeded tables, "
    "and compare what each launch leaves with one without delays. Waits are bounded.",
    _arguments,
    _carry_out,
    (
        ("pipesim stress kernel.ptx --launch kernel.json --launches 100000", "many launches (needs a GPU)"),
        ("pipesim stress kernel.ptx --no-run --save late.ptx", "the PTX with the delays of a launch, on any machine"),
    ),
)
