"""``--untrusted``: a command about files of strangers, confined before it opens one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from pipesim.cli.output import remark
from pipesim.errors import UsageError

_OUTPUTS = ("sarif", "svg", "html", "output", "save_launch")  #: options that name what is written
#: Options that do what an untrusted file must not cause, and what each does.
_REFUSED = {
    "open": "--open starts a browser",
    "pid": "--pid starts a debugger",
    "write": "--write edits a source file",
    "update_baseline": "--update-baseline writes a file that is read again",
}


def confine_command(options: argparse.Namespace) -> None:
    """Confine this process to what the line names. UsageError for an option that goes beyond."""
    from pipesim.process.sandbox import confine

    for name, does in _REFUSED.items():
        if getattr(options, name, None):
            raise UsageError(f"--untrusted: {does}", correction="leave one of them out")
    if getattr(options, "core", None) is not None and (options.check or options.ptx) and options.save_launch is None:
        raise UsageError(
            "--untrusted: --check writes the launch to a folder", correction="add --save-launch FOLDER, one that exists"
        )
    inputs = (Path.cwd(), *_inputs(options))
    outputs = [given.absolute() for name in _OUTPUTS if (given := getattr(options, name, None)) is not None]
    writes = [given if given.is_dir() else given.parent for given in outputs]
    for link in (each for place in writes for each in (place, *place.parents) if each.is_symlink()):
        if any(link.parent.resolve().is_relative_to(folder.resolve()) for folder in inputs):
            fact = f"--untrusted: {link} is a link beside the inputs, which may lead an output anywhere"
            raise UsageError(fact, correction="name the folder that it leads to")
    if getattr(options, "to", "promela") != "promela" and options.output is None:
        writes.append(Path.cwd())  # under a name of its own
    for lack in confine(inputs, writes):
        remark(f"--untrusted: {lack}")


def _inputs(options: argparse.Namespace) -> Iterator[Path]:
    """The folders of the files that the line names, where their launch files and sources lie, and the source roots."""
    for given in vars(options).values():
        for each in given if isinstance(given, list) else [given]:
            named = re.sub(r"\A@|:\d+\Z", "", str(each)) if str(each).startswith("@") else str(each)
            path = Path(named) if isinstance(each, str | Path) and "\0" not in named else None
            if path is not None and named and path.exists():
                yield from (path,) if path.is_dir() else (path.absolute().parent, path.resolve())
