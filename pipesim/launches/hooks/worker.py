"""The process that checks what was compiled: a line names a file, the answer is a line of JSON. It is niced.

Of a launch its compiler has said a part; the rest is guessed (:mod:`pipesim.launches.guess`), which is said.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipesim.answers.budget import Budget
from pipesim.answers.views.check import CheckReport
from pipesim.errors import PipesimError, internal_error
from pipesim.launches.checks import checked
from pipesim.launches.guess import OTHER, launch_of
from pipesim.launches.hooks.checker import LONGEST
from pipesim.model.finding import Verdict
from pipesim.process.system import usual_bytes
from pipesim.process.watch import Watch
from pipesim.ptx.launch.file import launch_json
from pipesim.report.findings.brief import brief_of, in_one_line


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
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one kernel must not lose the others
        return {**said, "said": (error if isinstance(error, PipesimError) else internal_error(error)).fact}
    report = checked(ptx, launch, budget=Budget(LONGEST))
    said["guessed"] = guessed
    if isinstance(report, str):
        return {**said, "said": report.removeprefix("unknown: ")}

    def by_other_guesses() -> CheckReport | str:
        launch.write_text(launch_json(launch_of(given, ptx, OTHER)[0]), encoding="utf-8")
        return checked(ptx, launch, budget=Budget(LONGEST))

    report = report.with_guess(guessed, by_other_guesses)
    brief = brief_of(report)
    said |= {"verdict": report.verdict.value, "said": brief.said.removeprefix("unknown: ")}
    if report.verdict is Verdict.REFUTED:
        found = next(iter(report.failing or report.refutations)).place
        source = Path(found.rpartition(":")[0])
        known = source.suffix != ".ptx" and source.is_file()
        text = in_one_line(report) + f" (for guessed {guessed})" * bool(guessed)
        said |= {"place": found if known else place, "correction": brief.correction, "said": text}
    return said


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
