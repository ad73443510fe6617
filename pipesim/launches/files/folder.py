"""A folder of launches that were caught: its PTX files, its launch files, and ``launches.json``, which lists them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from pipesim.answers.views.launches import CaughtKernel, CaughtLaunch, LaunchesReport
from pipesim.errors import OutputExistsError, UsageError
from pipesim.trace.whole import require_free, write_whole

INDEX = "launches.json"
INDEX_FORMAT = "pipesim-launches"
INDEX_VERSION = 1
NOT_LISTED = frozenset({"verdict", "said"})  #: what a check says is not in the index


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
    head = {"format": INDEX_FORMAT, "version": INDEX_VERSION, "command": report.command, "status": report.status}
    kernels = [_members(each) | {"caught": [_members(one) for one in each.caught]} for each in report.kernels]
    data = {**head, "devices": report.devices, "kernels": kernels, "notes": report.notes}
    return json.dumps(data, indent=1) + "\n"


def _members(each: CaughtKernel | CaughtLaunch) -> dict[str, object]:
    return {field.name: getattr(each, field.name) for field in fields(each) if field.name not in NOT_LISTED}
