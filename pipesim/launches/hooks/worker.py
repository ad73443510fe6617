"""The process that checks what was compiled: a line names a file, the answer is a line of JSON. It is niced."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipesim.answers.budget import Budget
from pipesim.errors import PipesimError
from pipesim.launches.checks import checked
from pipesim.launches.hooks.compilers import LONGEST
from pipesim.launches.hooks.guess import launch_of
from pipesim.model.finding import FaultKind, Finding, Verdict
from pipesim.process.limits import usual_bytes
from pipesim.process.watch import Watch
from pipesim.ptx.launch.file import launch_json
from pipesim.report.findings.brief import brief_of, in_one_line

_NOT_OF_A_GUESS = (FaultKind.GLOBAL_RACE, FaultKind.ILLEGAL_OPERAND, FaultKind.BEFORE_GRID_WAIT)


def answer(job: Path) -> dict[str, Any]:
    """The verdict on a kernel that was compiled, in a sentence, and the place and the correction of its finding."""
    given = json.loads(job.read_text(encoding="utf-8"))
    place = f"{given['file']}:{given['line']}" if given["file"] else given["name"]
    said = {"verdict": "unknown", "place": place, "correction": "", "guessed": ""}
    try:
        ptx, launch = job.with_suffix(".ptx"), job.with_suffix(".json")
        ptx.write_text(given["ptx"], encoding="utf-8")
        made, guessed = launch_of(given, ptx)
        launch.write_text(launch_json(made), encoding="utf-8")
    except PipesimError as error:
        return {**said, "said": error.fact}
    except (KeyError, TypeError, ValueError) as error:
        return {**said, "said": f"its launch is not known: {type(error).__name__}: {error}"}
    report = checked(ptx, launch, budget=Budget(LONGEST))
    said["guessed"] = guessed
    if isinstance(report, str):
        return {**said, "said": report.removeprefix("unknown: ")}
    failing = [each.finding for each in report.failing]
    if report.verdict is Verdict.REFUTED and guessed and not any(map(_holds_for_a_guess, failing)):
        return {**said, "said": "its arguments decide, which are guessed"}
    brief = brief_of(report)
    said["verdict"] = report.verdict.value
    if report.verdict is Verdict.REFUTED:
        found = next(iter(report.failing or report.refutations)).place
        source = Path(found.rpartition(":")[0])
        known = source.suffix != ".ptx" and source.is_file()
        said |= {"place": found if known else place, "correction": brief.correction}
    text = in_one_line(report) if report.verdict is Verdict.REFUTED else brief.said
    return {**said, "said": text + f" (for {guessed})" * bool(guessed)}


def _holds_for_a_guess(finding: Finding) -> bool:
    """Whether a finding is about barriers and memory of a CTA, and not about where arguments lead."""
    return getattr(finding, "kind", None) not in _NOT_OF_A_GUESS


def main() -> None:
    """Answer until there is no further line."""
    with suppress(OSError, AttributeError):
        os.nice(10)
    with Watch(usual_bytes()) as watch:
        for line in sys.stdin:
            watch.start(LONGEST)
            sys.stdout.write(json.dumps(answer(Path(line.rstrip("\n")))) + "\n")
            sys.stdout.flush()
            watch.stop()


if __name__ == "__main__":
    main()
