"""``pipesim autopsy``: what a core dump of a kernel that hangs says."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pipesim.cli.arguments import Command, add_flag, add_force, add_source_roots, add_untrusted, add_value
from pipesim.cli.output import progress, show_answer
from pipesim.errors import ParameterError, PipesimError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipesim.answers.views.autopsy import AutopsyReport, DumpedLaunch, PredictedHang
    from pipesim.coredump.dump import CoreDump

_MOST_PICTURES = 8


def _arguments(parser: argparse.ArgumentParser) -> None:
    text = (
        "a core dump of a GPU, as it is or packed by gzip or xz, or the folder with the one that `pipesim hang` "
        "left, or the text that cuda-gdb printed of the hang"
    )
    parser.add_argument("core", type=Path, nargs="?", help=text)
    text = "of this process instead, by cuda-gdb, which lets it run on afterwards"
    add_value(parser, "--pid", "N", text, int)
    add_value(parser, "--cubin", "FILE", "beside a text of cuda-gdb: the kernel's machine code", Path)
    text = (
        "check the launch that hangs, and say whether this hang is predicted: with the PTX in the dump, which is "
        "there if the kernel was compiled with -lineinfo"
    )
    add_flag(parser, "--check", text)
    add_value(parser, "--ptx", "PATH", "check with this PTX, or that in a folder, as of `pipesim launches`", Path)
    text = "write the PTX and the launch file of each kernel that hangs"
    add_value(parser, "--save-launch", "FOLDER", text, Path)
    add_flag(parser, "--anonymous", "without the names of kernels and files, addresses and other memory")
    text = "a report, JSON, or the first hang as JSON of at most 2 kB"
    parser.add_argument("--format", choices=("text", "json", "brief"), help=text)
    add_value(parser, "--html", "FILE", "also write it as a page, with pictures of the hangs", Path)
    add_source_roots(parser)
    add_force(parser)
    add_untrusted(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.answers.autopsy.autopsy import autopsy_of
    from pipesim.answers.autopsy.predicted import with_prediction
    from pipesim.answers.views.conclusion import exit_code
    from pipesim.coredump.gdb_text import open_dump_or_text
    from pipesim.formats.documents import document, document_of
    from pipesim.hang.dumps import dump_by_debugger
    from pipesim.process.files import write_whole
    from pipesim.ptx.source_files import current_sources, lines_read_from
    from pipesim.report.pages.programs.autopsy import autopsy_brief, autopsy_lines

    options.json = options.json or options.format in ("json", "brief")
    if options.anonymous and (options.check or options.ptx is not None or options.save_launch is not None):
        raise ParameterError("what check says names the kernel", correction="leave --anonymous, or --check, out")
    if (options.core is None) == (options.pid is None):
        raise ParameterError("a core dump or --pid N is needed, and not both", correction="give one of them")
    with ExitStack() as stack:
        core = _core_in(options.core or Path(stack.enter_context(TemporaryDirectory())) / "core")
        if options.pid is not None:
            with progress(f"cuda-gdb attaches to process {options.pid}"):
                dump_by_debugger(options.pid, core)
        with progress(f"reading {core}"):
            dump = open_dump_or_text(core, options.cubin)
            name = f"process {options.pid}" if options.core is None else str(core)
            report = autopsy_of(dump, "" if options.anonymous else name, anonymous=options.anonymous)
    if options.check or options.ptx is not None or options.save_launch is not None:
        with lines_read_from(current_sources()):  # those of the dump, and not those that its PTX finds where it is put
            launches = tuple(
                with_prediction(each, _predict(options, dump, each)) if each.groups else each
                for each in report.launches
            )
        report = replace(report, launches=launches)
    if options.html is not None:
        write_whole(options.html, _page(report), force=options.force)
    made = document_of(report)
    if options.format == "brief":
        made = document("autopsy-brief", exit_code(report), brief=autopsy_brief(report))
    return show_answer(options, made, lambda width: autopsy_lines(report, width))


def _core_in(path: Path) -> Path:
    """The core dump in a folder, as `pipesim hang` leaves it, if there is one; another path as it is."""
    found = sorted(path.glob("core.*")) if path.is_dir() else [path]
    if len(found) != 1:
        correction = f"name one of them: {found[0]}" if found else "give a core dump"
        raise ParameterError(f"{path} is a folder with {len(found)} core dumps", correction=correction)
    return found[0]


def _page(report: AutopsyReport) -> Iterator[bytes]:
    """The report as a page, with a picture of each hang: who waits for what, and whom that needs."""
    from pipesim.api.timelines import WIDTH, lines_of
    from pipesim.formats.html.page import Page, page_parts
    from pipesim.model.finding import Deadlock
    from pipesim.report.pages.programs.autopsy import autopsy_brief, autopsy_lines
    from pipesim.report.pictures.hang_svg import hang_svg

    brief = autopsy_brief(report)
    pictures = [hang_svg(each) for each in report.findings if isinstance(each, Deadlock)]
    lines = lines_of(autopsy_lines(report, WIDTH))
    return page_parts(Page(brief.said, claim=brief.claim, report=lines, pictures=pictures[:_MOST_PICTURES]))


def _predict(options: argparse.Namespace, dump: CoreDump, launch: DumpedLaunch) -> PredictedHang:
    """What check says of a launch, or why it cannot be checked."""
    from pipesim.answers.autopsy.predicted import DumpedProgram
    from pipesim.answers.budget import states_of
    from pipesim.answers.check import check
    from pipesim.answers.views.autopsy import PredictedHang
    from pipesim.model.finding import Verdict
    from pipesim.targets import find

    with ExitStack() as stack, progress(f"checking {launch.kernel}"):
        try:
            folder = options.save_launch or Path(stack.enter_context(TemporaryDirectory()))
            ptx, file = _files(options, dump, launch, folder)
            kept = (str(ptx), str(file)) if options.save_launch is not None else ()
            if not (options.check or options.ptx is not None):
                return PredictedHang(Verdict.UNKNOWN, files=kept)
            target = find(str(ptx), launch=str(file))
            mine = DumpedProgram(launch.hung, target, f"{folder}/")
            found = mine.replayed()
            if not (found.replayed and target.kernel and target.kernel.limited):  # then it says "unknown" after minutes
                states = states_of(None, mine.program)
                found = mine.compared(found, check(target, {}, program=mine.program, max_states=states, quick=True))
        except PipesimError as error:
            return PredictedHang(Verdict.UNKNOWN, reason=error.fact)
    if options.ptx is not None and not found.replayed:
        only = f"{options.ptx} is the PTX of this machine code: only the parameters were compared"
        found = replace(found, assumes=(*found.assumes, only))
    return replace(found, files=kept)


def _files(options: argparse.Namespace, dump: CoreDump, launch: DumpedLaunch, folder: Path) -> tuple[Path, Path]:
    """The PTX and the launch file of a launch, the latter out of the dump. PtxError, UsageError."""
    from pipesim.launches.files.of_dump import launch_of_dump

    hung = launch.hung.numbers  # if not all CTAs do the same, one of those that hang is followed
    cta = hung[0] if len(hung) < launch.ctas else None
    described = launch_of_dump(dump, dump.grids[launch.number], options.ptx, cta)
    if described.compiled is None:
        raise PipesimError(described.reason)
    folder.mkdir(parents=True, exist_ok=True)
    return described.compiled.save(folder, force=options.force)


COMMAND = Command(
    "autopsy",
    "what a core dump of a kernel that hangs says: who waits for whom",
    "Read a core dump that the driver wrote of a GPU: where each warp is and what it waits for, what each barrier "
    "lacks, who could have supplied it, and where that warp is now. No GPU and no driver is needed.",
    _arguments,
    _carry_out,
    (
        ("pipesim autopsy core.elf", "who waits for whom in the kernel that hung"),
        ("pipesim autopsy core.elf.xz --check", "and whether `pipesim check` predicts that hang; a dump may be packed"),
        ("pipesim autopsy core.elf --anonymous --json", "to be shown to others"),
        ("pipesim autopsy --pid 4711", "of a program that hangs now, and was started without `pipesim hang`"),
    ),
)
