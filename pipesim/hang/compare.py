"""What the dumps of one program say, and which say the same: of many ranks the one that differs is found."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pipesim.answers.autopsy.autopsy import autopsy
from pipesim.answers.views.autopsy import AutopsyReport
from pipesim.answers.views.launches import DumpsAlike, ProcessDump
from pipesim.errors import PipesimError

_GLOBAL_ADDRESS = re.compile(r"0x[0-9a-f]{9,16}")  # another one in each process


def compare_dumps(dumps: Sequence[ProcessDump]) -> tuple[DumpsAlike, ...]:
    """Read each dump; the groups in the order of their first ones."""
    groups: dict[str, tuple[list[ProcessDump], AutopsyReport | None, str]] = {}
    for dump in dumps:
        found, problem = None, ""
        try:
            found = autopsy(Path(dump.file))
        except PipesimError as error:
            problem = str(error)
        launches = [replace(each, device=0) for each in found.launches] if found is not None else []  # each has its own
        said = _GLOBAL_ADDRESS.sub("", repr((launches, found.notes))) if found is not None else problem
        groups.setdefault(said, ([], found, problem))[0].append(dump)
    return tuple(DumpsAlike(tuple(some), found, problem) for some, found, problem in groups.values())
