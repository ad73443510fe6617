"""``pipesim names``: what a kernel's barriers, tiles and roles are called, to be changed in its launch file."""

import argparse
import json
from pathlib import Path

from pipesim.cli.arguments import Command, add_flag, add_launch, target_of
from pipesim.errors import UsageError


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ptx", metavar="KERNEL.ptx", help="the kernel, with its launch file; or what `check` takes")
    add_launch(parser)
    add_flag(parser, "--write", "put the names into the launch file")


def _carry_out(options: argparse.Namespace) -> int:
    from pipesim.cli.output import emit, write_text
    from pipesim.formats.documents import document
    from pipesim.process.files import write_whole
    from pipesim.ptx.kernel import names_in_force
    from pipesim.ptx.launch.file import launch_json, names_json
    from pipesim.report.text.words import inert_text

    target = target_of(options, options.ptx)
    if target.kernel is None:
        raise UsageError(
            f"{options.ptx} is not a kernel", correction="name a .ptx, or what pipesim check finds kernels in"
        )
    launch = names_in_force(target.kernel)
    file = Path(options.launch or Path(options.ptx).with_suffix(".json"))
    if options.write and not file.is_file():
        way = "name one with --launch, or have it written by `pipesim new --ptx`"
        raise UsageError("there is no launch file that takes the names", place=str(file), correction=way)
    listed = [
        f'    "{kind}": [\n' + ",\n".join(f"      {json.dumps(each)}" for each in items) + "\n    ]"
        for kind, items in names_json(launch.names).items()
    ]
    text = '  "names": {\n' + ",\n".join(listed) + "\n  }"
    said = ""
    if options.write:
        write_whole(file, launch_json(launch).encode(), force=True)
        said = f"wrote {file}, with names that go before those of the source; change them there\n"
    made = document("names", file=str(file), text=text)
    emit(options, made, lambda _: write_text(inert_text(f"{said}{text}\n")))
    return 0


COMMAND = Command(
    "names",
    "what a kernel's barriers, tiles and roles are called, to be changed",
    "Print the names of a kernel's barriers, tiles and roles as a launch file has them: those of the launch file, else "
    "those of the source, else the lines. With --write they are put into the launch file, to be changed there.",
    _arguments,
    _carry_out,
    (
        ("pipesim names kernel.ptx", "how reports call them"),
        ("pipesim names kernel.ptx --write", "then change the names in kernel.json"),
    ),
)
