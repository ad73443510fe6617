"""A folder of launches that were caught: its PTX files, its launch files, and ``launches.json``, which lists them.

Names of files are readable, safe in any folder, and the same for the same launches in the same order.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path

from pipesim.answers.views.launches import (
    INDEX_FORMAT,
    INDEX_VERSION,
    NOT_LISTED,
    CaughtKernel,
    CaughtLaunch,
    LaunchesReport,
)
from pipesim.errors import OutputExistsError, UsageError
from pipesim.ptx.names.paths import kernel_name
from pipesim.trace.whole import require_free, write_whole
from pipesim.version import version

INDEX = "launches.json"


def require_folder(folder: Path, *, force: bool) -> None:
    """Before a program runs: raise if the files could not be written after it.

    OutputExistsError if the folder has something in it and ``force`` is not given; UsageError if it is not a folder, or
    cannot be made or written to.
    """
    at = folder
    while not at.exists() and at != at.parent:
        at = at.parent
    if not at.is_dir():
        raise UsageError(f"{at} is not a folder", correction="name another one")
    if not os.access(at, os.W_OK):
        raise UsageError(f"cannot write to the folder {at}", correction="name another folder")
    if at == folder and not force and any(not each.name.startswith(".") for each in folder.iterdir()):
        raise OutputExistsError(
            f"{folder} is not empty", correction="name another folder, or add --force to overwrite files in it"
        )


def write_launches(report: LaunchesReport, texts: Mapping[str, str], folder: Path, *, force: bool = False) -> None:
    """Write the files and the index; the folder is made. OutputExistsError unless ``force``, before any is written."""
    every = {**texts, INDEX: index_json(report)}
    for name in every:
        require_free(folder / name, force=force)
    for name, text in every.items():
        write_whole(folder / name, text.encode("utf-8"), force=force)


def index_json(report: LaunchesReport) -> str:
    """What was launched and which files have it, as JSON (docs/launches.md)."""
    head = {"format": INDEX_FORMAT, "version": INDEX_VERSION, "pipesim": version()}
    head |= {"command": report.command, "status": report.status}
    kernels = [_members(each) | {"caught": [_members(one) for one in each.caught]} for each in report.kernels]
    data = {**head, "devices": report.devices, "kernels": kernels, "notes": report.notes}
    return json.dumps(data, indent=1) + "\n"


def _members(each: CaughtKernel | CaughtLaunch) -> dict[str, object]:
    return {field.name: getattr(each, field.name) for field in fields(each) if field.name not in NOT_LISTED}


_MOST = 48  #: characters of a name
_RESERVED = frozenset(
    {"launches", "sequence", "con", "prn", "aux", "nul"}
)  #: the index, and names that Windows has taken
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


class FileNames:
    """Gives each kernel and PTX a name of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set(_RESERVED)

    def name_of(self, kernel: str, text: str) -> str:
        """The name, without a suffix, of a kernel's files; ``text``: its PTX."""
        safe = _UNSAFE.sub("_", kernel_name(kernel)).strip("_") or "kernel"
        digest = sha256(f"{kernel}\0{text}".encode("utf-8", "surrogateescape")).hexdigest()
        name = safe if len(safe) <= _MOST else f"{safe[:_MOST]}-{digest[:8]}"
        if name.lower() in self._taken:  # another kernel, or another PTX of this one
            name = f"{safe[:_MOST]}-{digest[:8]}"
        length = 16
        while name.lower() in self._taken:
            name, length = f"{safe[:_MOST]}-{digest[:length]}", length + 8
        self._taken.add(name.lower())
        return name


def launch_file_name(name: str, number: int) -> str:
    """``NAME.json`` of the first launch (0), ``NAME-2.json`` of the second."""
    return f"{name}.json" if number == 0 else f"{name}-{number + 1}.json"
