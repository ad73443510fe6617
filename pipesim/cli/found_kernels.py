"""The kernels that a command line names by a path: of a folder, a program, a library, a source that is compiled."""

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pipesim.answers.project_settings import TriagePolicy
from pipesim.cli.output import progress, remark
from pipesim.errors import UsageError
from pipesim.inputs import confined
from pipesim.launches.files.embedded_ptx import FoundKernel, chosen, found_kernels, is_named
from pipesim.launches.found import FoundQuestion, HowChecked, LaunchBeside, beside
from pipesim.model.coverage import LENIENT
from pipesim.protocol_files import jit_functions
from pipesim.ptx.names.paths import kernel_name
from pipesim.targets import SOURCES

if TYPE_CHECKING:
    from pipesim.targets import Target

_NOT_CHECKED: HowChecked = (LENIENT, None, None, TriagePolicy(), ())


def questions(options: argparse.Namespace, name: str, how: HowChecked = _NOT_CHECKED) -> list[FoundQuestion]:
    """Each kernel of a path in each of its launches, of those that the line names, and ``how`` it is to be checked."""
    if functions := jit_functions(name):
        from pipesim.launches.hooks.source import compiled_question

        with progress(f"compiling {name}"):
            return [compiled_question(name, functions, options.arch, options.sets, how)]
    kernels, sizes = _kernels(options, Path(name)), dict[str, LaunchBeside]()
    entries = options.entries or _entry_of(getattr(options, "launch", ""))
    named = [each for each in kernels if any(is_named(each.name, entry) for entry in entries)]
    if entries:
        kernels = named or [chosen(Path(name), kernels, entries[0])]
    if Path(name).suffix in SOURCES:
        from hwkernels.device.source_ptx import written_sizes

        written = {each.name: written_sizes(Path(name), kernel_name(each.name)) for each in kernels}
        sizes = {kernel: LaunchBeside(written=each) for kernel, each in written.items()}
    return [
        FoundQuestion(name, kernel, known, (*known.written, *options.sets), *how)
        for kernel in kernels
        for known in tuple(beside(kernel)) or (sizes.get(kernel.name, LaunchBeside()),)
    ]


def _entry_of(launch: str) -> list[str]:
    """The kernel that a launch file names, in a list; none without a file, or where it names none."""
    from pipesim.ptx.launch.file import LAUNCH_FILE, read_launch

    entry = read_launch(LAUNCH_FILE.read_text(Path(launch)), launch, open_block=True).entry if launch else ""
    return [entry] if entry else []


def _kernels(options: argparse.Namespace, path: Path) -> list[FoundKernel]:
    """Those of a path, which is compiled first if it is a source. CompileError with the place of what is wrong."""
    if path.suffix not in SOURCES:
        return found_kernels(path)
    if confined:
        raise UsageError(f"{path} is not compiled", cause="--untrusted starts no process", correction="give its PTX")
    from hwkernels.device.source_ptx import ptx_source

    with TemporaryDirectory() as folder, progress(f"compiling {path}"):
        includes = [f"-I{each}" for each in options.include]
        made = found_kernels(ptx_source(path, options.arch, includes, options.entries, Path(folder)))
    return [replace(each, file=path, origin=path.name) for each in made]


def only_target(options: argparse.Namespace, name: str, launch: str) -> "Target":
    """The one kernel of a path, in the launch of a file if one is named. PtxError where that is not clear."""
    from pipesim.ptx.launch.file import LAUNCH_FILE

    asked = [each for each in vars(options).pop("asked", ()) if each.path == name] or questions(options, name)
    kernel = chosen(Path(name), [each.kernel for each in asked], "")
    one = next(each for each in asked if each.kernel is kernel)
    if launch:
        one = replace(one, known=LaunchBeside(launch, LAUNCH_FILE.read_text(Path(launch)), is_launch=True))
    made, row = one.launch()
    target = replace(one.target(made, row.needs), guessed=row.guessed, other=one.by_other_guesses)
    if row.launch and (one.known.guessed or not one.known.is_launch):
        remark(f"{row.launch}: --set NAME=VALUE, grid=CTAS, cluster=CTAS, block=THREADS and shared=BYTES say otherwise")
    return target
