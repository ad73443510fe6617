"""A folder of launches that were caught: its PTX files, its launch files, and ``launches.json``, which lists them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from pipesim.answers.views.launches import CaughtKernel, CaughtLaunch, LaunchesReport
from pipesim.trace.whole import require_free, write_whole

INDEX = "launches.json"
INDEX_FORMAT = "pipesim-launches"
INDEX_VERSION = 1
_NOT_LISTED = frozenset({"verdict", "said", "caught"})


def require_folder(folder: Path, *, force: bool) -> None:
    """Before a program runs: OutputExistsError if the folder has launches already and ``force`` is not given."""
    require_free(folder / INDEX, force=force)


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
    return {field.name: getattr(each, field.name) for field in fields(each) if field.name not in _NOT_LISTED}
