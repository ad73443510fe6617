"""``pipesim new``: a protocol file to start from, or a launch file for a kernel's PTX.

The protocol file is :mod:`pipesim.cli.protocols.template` under the name of the new file.
"""

import argparse
import ast
import keyword
import shlex
import unicodedata
from pathlib import Path

from pipesim.cli.arguments import Command, add_force, add_value, require_output
from pipesim.errors import UsageError

TEMPLATE = Path(__file__).with_name("template.py")
_HELP = "`pipesim new --help` says what it takes"
NAME = "my_kernel"  #: of the template's function, its protocol and, in its text, its file


def _arguments(parser: argparse.ArgumentParser) -> None:
    text = "the file to write; a protocol's function is named after it, a launch file is beside the PTX by default"
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help=text)
    text = (
        "write a launch file for this kernel; of a program, library, object, fat binary or a compiler's cache "
        "that has PTX of it, the PTX as well, into the current folder"
    )
    add_value(parser, "--ptx", "KERNEL.ptx", text, Path)
    add_value(parser, "--entry", "NAME", "the kernel, where there are several", default="")
    add_force(parser)


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.output import emit, write_text
    from pipesim.formats.documents import document
    from pipesim.process.files import write_whole
    from pipesim.report.text.words import inert_text

    if options.ptx is not None:
        return _launch_file(options)
    if options.entry:
        raise UsageError("--entry names a kernel of a PTX file", correction="name the file with --ptx")
    if options.file is None:
        raise UsageError("new: the following arguments are required: FILE", correction=_HELP)
    text = TEMPLATE.read_text(encoding="utf-8")
    name = _name(options.file, text)
    require_output(options.file, force=options.force)
    write_whole(options.file, text.replace(NAME, name).encode(), force=options.force)
    steps = _steps(str(options.file))
    made = document("new", file=str(options.file), function=name, next=[command for command, _ in steps])
    emit(options, made, lambda _: write_text(inert_text(_next_steps(options.file, steps))))
    return 0


def _launch_file(options: argparse.Namespace) -> int:
    """Write what a launch of a kernel has to say."""
    from pipesim.cli.output import emit, write_text
    from pipesim.formats.documents import document
    from pipesim.launches.files.embedded_ptx import chosen_kernel
    from pipesim.launches.files.gather import FileNames
    from pipesim.process.files import write_whole
    from pipesim.ptx.kernel import launch_template
    from pipesim.report.text.words import inert_text

    ptx, entry = options.ptx, options.entry
    found = None
    if ptx.suffix == ".ptx" and entry:
        entry = chosen_kernel(ptx, entry).name
    if ptx.suffix != ".ptx":
        found = chosen_kernel(ptx, entry)
        stem, entry = FileNames().name_of(found.name, found.text), found.name
        ptx = options.file.with_suffix(".ptx") if options.file else Path(f"{stem}.ptx")
        require_output(ptx, force=options.force)
    file: Path = options.file or ptx.with_suffix(".json")
    require_output(file, force=options.force)
    if found is not None:
        write_whole(ptx, found.text.encode(), force=options.force)
    made = launch_template(ptx, entry)
    write_whole(file, made.text.encode(), force=options.force)
    given = "" if file == ptx.with_suffix(".json") else f" --launch {shlex.quote(str(file))}"
    sets = " --set block=THREADS" * made.block + "".join(f" --set {place}=VALUE" for place in made.open_words)
    command = f"pipesim check {shlex.quote(str(ptx))}{given}"
    lines = [f"wrote {ptx}: from {found.origin}"] if found else []
    lines += [f"wrote {file}: a launch of {made.launch.entry}", "", "To be filled in:", ""]
    if made.block:
        lines.append("  block: it is null in the file, and PTX does not say how many threads a CTA has")
    others = "grid, cluster" if made.block else "grid, block, cluster"
    lines.append(f"  {others} and dynamic_shared_bytes, where they are not those of your launch")
    if made.dynamic_shared:
        lines.append("  dynamic_shared_bytes: it is 0 in the file, and the kernel uses dynamic shared memory")
    for place in made.open_words:
        word = f"the word at byte {place} of the parameters" if place[0].isdigit() else f"the parameter {place}"
        lines.append(f"  {word}: its value is null")
    if made.tensor_maps:
        lines.append("  of tensor maps element and box, or --box: a proof needs them where a copy uses the map")
    lines += ["", "Then, with the words in the file or on the command line:", "", f"  {command}{sets}", ""]
    said = document("new", file=str(file), function=made.launch.entry, next=[f"{command}{sets}"])
    emit(options, said, lambda _: write_text(inert_text("\n".join(lines))))
    return 0


def _name(file: Path, template: str) -> str:
    """The name of the file's function; UsageError if that of the file cannot be one."""
    name = file.stem
    if file.suffix != ".py":
        near = file.with_suffix(".py") if name.isidentifier() else f"{NAME}.py"
        raise UsageError(f"{file} is not a Python file", correction=f"name it {near}")
    better = "".join(c if c.isalnum() or c == "_" else "_" for c in unicodedata.normalize("NFKC", name))
    if not name.isidentifier() or better != name:
        better = better if better.isidentifier() else f"kernel_{better}"
        raise UsageError(
            f"{file} is not a possible name: its function is named after it, and {name!r} is not a Python name",
            cause="a name consists of letters, digits and _, and does not start with a digit",
            correction=f"for example {file.with_name(f'{better}.py')}",
        )
    if keyword.iskeyword(name) or name in _imported_names(template):
        raise UsageError(
            f"{file} is not a possible name: its function is named after it, and {name!r} has another meaning there",
            correction=f"for example {file.with_name(f'{name.lower()}_kernel.py')}",
        )
    return name


def _imported_names(template: str) -> set[str]:
    """The names that the template imports, and the package they are from, which a file beside it would hide."""
    imports = [node for node in ast.walk(ast.parse(template)) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names} | {"pipesim"}


def _steps(target: str) -> tuple[tuple[str, str], ...]:
    """What to do next: commands, and what each is for."""
    word = shlex.quote(target)
    return (
        (f"pipesim check {word}", "check every schedule: proved, or a schedule that fails and its correction"),
        (f"pipesim check {word} -p stages=2", "the same with another value of a parameter"),
        (f"pipesim run {word}", "simulate it: where does the time go?"),
        (f"pipesim verify {word} --no-hardware", "both in one report: exit code 0 if nothing is found"),
    )


def _next_steps(file: Path, steps: tuple[tuple[str, str], ...]) -> str:
    """Commands are printed in whole lines, whatever the width: they are there to be copied."""
    lines = [f"wrote {file}: one warp loads tiles, two compute, one stores the results", ""]
    lines += [f"  {command}\n      {purpose}" for command, purpose in steps]
    return "\n".join([*lines, "", f"Then adapt it: the first lines of {file} say what to change first.", ""])


COMMAND = Command(
    "new",
    "write a protocol file as a starting point, or a launch file for a kernel's PTX",
    "Write a commented, working protocol file, to be adapted to your kernel; with --ptx, a launch file for a kernel.",
    _arguments,
    _carry_out,
    (
        ("pipesim new my_kernel.py", "write the file; it says what to change first"),
        ("pipesim check my_kernel.py", "then check it: every schedule, for any number of tiles"),
        ("pipesim new --ptx kernel.ptx", "write kernel.json: what has to be known of a launch of this kernel"),
        ("pipesim new --ptx libgemm.so --entry gemm", "the same of a kernel in a library, with its PTX"),
    ),
)
