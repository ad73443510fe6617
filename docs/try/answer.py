"""What the page asks pipesim for, in the browser: the verdict first, then the report, its pictures and the steps."""

from __future__ import annotations

import json
from pathlib import Path

import pipesim
from pipesim.errors import PipesimError

_PTX = Path("kernel.ptx")  #: in the memory of the page
_SECONDS = 20.0  #: of each step after the verdict


def verdict(ptx: str, launch: str, sources: str) -> str:
    """The verdict alone, as JSON; or what is wrong with what was given. ``sources``: files by their names, as JSON."""
    for name, text in {"kernel.ptx": ptx, "kernel.json": launch, **json.loads(sources)}.items():
        Path(Path(name).name).write_text(text, encoding="utf-8")
    try:
        return json.dumps({"verdict": pipesim.check(_PTX, quick=True).verdict.value})
    except PipesimError as error:
        return json.dumps({"refused": str(error)})


def details() -> str:
    """The report, the pictures, and the page of steps of what is refuted, as JSON."""
    result = pipesim.check(_PTX, time_limit=_SECONDS)
    wrong = bool(result.report.refutations)
    steps = pipesim.export(_PTX, "html", picture="counterexample").data.decode() if wrong else ""
    return json.dumps({"report": str(result), "pictures": result.pictures(), "steps": steps})
