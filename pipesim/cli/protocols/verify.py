"""``pipesim verify``: the main job. Check, simulate, compare with the hardware, report."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pipesim.cli import arguments as given
from pipesim.cli.output import complain, progress, show_answer, show_report
from pipesim.errors import PipesimError, UnknownProtocolError, UsageError


def _arguments(parser: argparse.ArgumentParser) -> None:
    named = (
        "a built-in name (see `pipesim list`), file.py, file.py:function, a program's .json, or a kernel's .ptx; "
        "several are summed up"
    )
    every = "every built-in protocol, each compared with every recorded trace of it"
    given.add_chosen(parser, named=named, every=every)
    given.add_params(parser, "a parameter of every protocol named; may be repeated")
    given.add_ctas(parser)
    given.add_launch(parser)
    which = parser.add_mutually_exclusive_group()
    given.add_flag(which, "--no-hardware", "do not compare with hardware")
    given.add_flag(which, "--recorded", "use the recorded traces even if this machine has a GPU")
    text = "use the recorded traces in this folder (default: those that came with pipesim)"
    given.add_value(parser, "--traces", "FOLDER", text, Path)
    given.add_profile(parser, "latency profile (default: the one of each device)")
    given.add_tolerance(parser)
    given.add_jobs(parser, "processes for several protocols (default: one a processor)")
    given.add_strict(parser)


def _carry_out(options: argparse.Namespace) -> int:
    names = given.named_protocols(options, "verify")
    _check(options)
    if options.all or len(names) > 1:
        return _verify_several(options, names)
    return _verify(options, names[0])


def _verify(options: argparse.Namespace, name: str) -> int:
    """The whole report on one protocol."""
    from pipesim.answers.evidence import HardwareSource
    from pipesim.answers.verify import verify
    from pipesim.cli.output import TerminalProgress
    from pipesim.report.pages.protocols.verify import verify_lines
    from pipesim.timed.profile import load_profile

    profile = load_profile(options.profile) if options.profile else None
    source = HardwareSource.RECORDED if options.recorded else HardwareSource.GPU_OR_RECORDED
    with progress(f"flattening {name}"):
        target = given.target_of(options, name).with_strictness(given.strictness_of(options))
    report = verify(
        target,
        given.params_of(options),
        profile=profile,
        traces=options.traces,
        hardware=HardwareSource.LEFT_OUT if options.no_hardware else source,
        tolerance=options.tolerance,
        ctas=options.ctas,
        time_limit=options.time_limit,
        keeps_known=True,
        progress=TerminalProgress(),
    )
    return show_report(options, report, verify_lines)


def _verify_several(options: argparse.Namespace, names: Sequence[str]) -> int:
    """The summary of several protocols; a name that no protocol has is reported now, and the others are verified.

    UsageError for options that mean nothing for several.
    """
    from pipesim.answers.spread import processors
    from pipesim.answers.verify import Subject
    from pipesim.answers.verify_all import verify_several
    from pipesim.answers.views.conclusion import exit_code
    from pipesim.cli.output import TerminalProgress
    from pipesim.formats.documents import document
    from pipesim.report.pages.protocols.summary import summary_lines

    _refuse(options)
    params = tuple(given.params_of(options).items())
    subjects = [Subject(name, params, options.ctas, given.strictness_of(options)) for name in names]
    unknown: dict[str, PipesimError] = {}
    for subject in subjects:
        try:
            subject.target()
        except UnknownProtocolError as lacking:
            unknown[subject.name] = lacking
    errors = list(unknown.values())
    last = errors.pop() if len(errors) == len(subjects) else None
    for error in errors:  # now: the others may take long, and are verified nevertheless
        complain(error)
    if last is not None:
        raise last
    report = verify_several(
        [subject for subject in subjects if subject.name not in unknown],
        profile=options.profile,
        traces=options.traces,
        hardware=not options.no_hardware,
        jobs=options.jobs or processors(),
        excepted=options.excepted,
        unknown=tuple(unknown),
        time_limit=options.time_limit,
        progress=TerminalProgress(),
    )
    code = PipesimError.exit_code if unknown else exit_code(report)
    each: dict[str, dict[str, object]] = {
        one.name: {"exit_code": exit_code(one), "findings": one.findings, "report": one} for one in report.protocols
    }
    each |= {name: {"exit_code": error.exit_code, "error": error} for name, error in unknown.items()}
    head = {"profile": report.profile, "excepted": report.excepted}
    made = document("verify-several", code, **head, protocols=each)
    return show_answer(options, made, lambda width: summary_lines(report, width))


# what argparse cannot say


def _refuse(options: argparse.Namespace) -> None:
    if options.launch or options.sets:
        raise UsageError(
            "--launch, --set and --box are for the launch of one kernel",
            cause="with several protocols each kernel is read with the .json beside it",
            correction="name one .ptx, or leave them out",
        )
    if options.tolerance is not None:
        raise UsageError(
            "--tolerance applies to the period of one configuration",
            cause="with several protocols every recorded trace is compared, and many have too few tiles for a period",
            correction="name one protocol, or leave --tolerance out",
        )
    given.require_positive(options, "jobs")


def _check(options: argparse.Namespace) -> None:
    """Arguments that contradict each other, and a folder that is not there."""
    if options.no_hardware and (options.traces is not None or options.tolerance is not None):
        given = "--traces" if options.traces is not None else "--tolerance"
        raise UsageError(
            f"{given} asks for a comparison with hardware, and --no-hardware excludes it", correction="give only one"
        )
    if options.traces is not None and not options.traces.is_dir():
        raise UsageError(f"there is no folder {options.traces}", correction="check the path of --traces")


COMMAND = given.Command(
    "verify",
    "check, simulate and compare with hardware: the main job",
    "Check a protocol for every schedule, simulate it, and compare it with hardware (a GPU if there is one, else "
    "recorded traces). Several are compared with every recorded trace of each, and reported in one table.",
    _arguments,
    _carry_out,
    (
        ("pipesim verify producer_consumer --recorded", "a built-in protocol, with the traces that came with pipesim"),
        ("pipesim verify my_kernel.py --no-hardware", "the protocol of a file of your own: proof and simulation"),
        ("pipesim verify --all", "every built-in protocol and every recorded trace, in a table"),
    ),
    in_steps=True,
)
