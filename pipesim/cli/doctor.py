"""``pipesim doctor``: what this machine has of what pipesim uses."""

import argparse

from pipesim.cli.arguments import Command
from pipesim.cli.output import progress, show_answer

USES = ("check", "compile", "capture", "launches", "hang", "triton", "tests")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--for", dest="uses", metavar="USE", action="append", choices=USES, default=[],
        help=f"exit with 1 if this is not possible here: {', '.join(USES)} (default check); may be repeated",
    )  # fmt: skip


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.views.conclusion import exit_code
    from pipesim.answers.views.doctor import Purpose
    from pipesim.doctor.examine import examine
    from pipesim.formats.documents import document
    from pipesim.process.watch import current
    from pipesim.report.pages.doctor import doctor_lines

    with progress("looking at this machine"):
        current().allow_reserving()  # the driver reserves more addresses than there is memory
        report = examine(tuple(Purpose[name.upper()] for name in dict.fromkeys(options.uses)) or (Purpose.CHECK,))
    made = document("doctor", exit_code(report), report=report)
    return show_answer(options, made, lambda width: doctor_lines(report, width))


COMMAND = Command(
    "doctor",
    "what this machine has, what is missing, and the command that corrects it",
    "Say what of Python, packages, traces, NVRTC, driver, GPU and CUPTI is there, what is missing with the command "
    "that corrects it, and what pipesim can do on this machine. Without a GPU everything but new recordings works.",
    _arguments,
    _carry_out,
    (
        ("pipesim doctor", "the whole of it; the exit code says whether check is possible"),
        ("pipesim doctor --for capture --for launches", "in a script: exit code 1 where these are not possible"),
    ),
)
