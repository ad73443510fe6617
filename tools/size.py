"""How large the project is, compared with its budgets: ``python tools/size.py [--base REV]``.

Prints the lines of each top folder beside its budget, what changed since ``REV`` folder by folder, and how many files
of ``pipesim`` three commands enter: what a reader follows who asks how an answer is made. Exit code 1 above a budget.
A budget is raised only in a commit that does nothing else and says why.
"""

import argparse
import contextlib
import inspect
import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Budget:
    """The most lines that the files of a folder may have: those with one suffix, or all text if it is empty."""

    folder: str
    suffix: str
    lines: int


BUDGETS = (
    # The aim is 78,000. What verdicts cover added 16,300, core dumps 6,400, slips 2,400, global memory 6,500,
    # runs on a GPU 2,500, launches of any framework, program, source or graph 2,300, long traces 900,
    # words of which a part is data 400, values between bounds and states that are counted otherwise 1,000,
    # branches that all threads of a CTA take alike 220, plain stores and bulk reductions between CTAs 110,
    # elements of free arrays with all values of their type 130, tensor maps that a kernel changes 270,
    # every combination of several words 410; of what was there some 900 lines are gone.
    Budget("pipesim", ".py", 131_290),
    Budget("hwkernels", ".py", 9_000),
    Budget("tests", ".py", 81_840),  # the aim is 62,000
    Budget("tools", ".py", 8_500),
    Budget("docs", "", 11_600),  # the aim was 12,000
)

#: Commands, and the most files of ``pipesim`` in which a function may run for their answer.
ENTERED = (
    ("check docs/examples/row_max.ptx", 140),  # first: a later one also closes what those before it have opened
    ("run producer_consumer", 69),
    ("verify producer_consumer", 125),
)


def tracked(folder: str, suffix: str) -> list[str]:
    """The files of a folder that git tracks and that are there, by their path below the root."""
    names = _git("ls-files", "-z", "--", folder).split("\0")
    return [name for name in names if name.endswith(suffix) and (ROOT / name).is_file()]


def lines_of(path: Path) -> int:
    """The number of lines of a text file; 0 of a binary one."""
    data = path.read_bytes()
    return 0 if b"\0" in data else data.count(b"\n")


def changes(base: str, budget: Budget) -> dict[str, tuple[int, int]]:
    """For each folder two levels deep the lines that were added and removed since ``base``."""
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for row in _git("diff", "--numstat", "--no-renames", base, "--", budget.folder).splitlines():
        plus, minus, name = row.split("\t")
        if plus != "-" and name.endswith(budget.suffix):
            parts = name.split("/")
            place = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
            added[place] += int(plus)
            removed[place] += int(minus)
    return {place: (added[place], removed[place]) for place in sorted(added) if added[place] or removed[place]}


def entered(words: Sequence[str], package: Path = ROOT / "pipesim") -> set[str]:
    """The files of a package in which a function ran for a command, apart from what an import runs."""
    from pipesim.cli.main import main

    found: set[str] = set()
    below = f"{package}{os.sep}"

    def called(frame: FrameType, _event: str, _arg: object) -> None:
        name = frame.f_code.co_filename
        if name not in found and name.startswith(below) and not _is_import(frame, below):
            found.add(name)

    sys.settrace(called)  # of calls alone: it returns no function for the lines
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            main(list(words))
    finally:
        sys.settrace(None)
    return found


def _is_import(frame: FrameType | None, below: str) -> bool:
    """Whether a frame is the body of a module or class of the package, or was called from the body of a module."""
    if frame is not None and not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return True
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(below)):
        frame = frame.f_back
    return frame is not None


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _base() -> str:
    """What a change is compared with: the branch that it left, or its parent where there is no other branch."""
    here = _git("rev-parse", "HEAD").strip()
    with contextlib.suppress(subprocess.CalledProcessError):
        branch = _git("merge-base", "HEAD", "origin/main").strip()
        if branch != here:
            return branch
    with contextlib.suppress(subprocess.CalledProcessError):
        return _git("rev-parse", "--verify", "HEAD~1").strip()
    return here


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; 1 if something is above its budget."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", help="the revision that the change is compared with (default: main, else the parent)")
    base = parser.parse_args(words).base or _base()
    failed = False
    print(f"lines, and their change since {base[:12]}")
    for budget in BUDGETS:
        lines = sum(lines_of(ROOT / name) for name in tracked(budget.folder, budget.suffix))
        failed |= lines > budget.lines
        what = f"{budget.folder} ({budget.suffix.removeprefix('.') or 'all text'})"
        print(f"  {what:20}{lines:8,} of {budget.lines:7,}{'   ABOVE ITS BUDGET' if lines > budget.lines else ''}")
        for place, (plus, minus) in changes(base, budget).items():
            print(f"      {place:28}{plus:+8,}{-minus:+8,}")
    print("files of pipesim that a command enters")
    os.chdir(ROOT)
    for command, most in ENTERED:
        count = len(entered(command.split()))
        failed |= count >= most
        print(f"  {command:34}{count:4} below {most}{'   NOT BELOW ITS BUDGET' if count >= most else ''}")
    return int(failed)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
