"""Write docs/experiments.md from the stored answers of all devices.

``python tools/experiments_doc.py [--check]``. With ``--check`` nothing is written, and the exit code is 1 if the page
is not what the stored files say.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hwkernels.experiments.catalogue import EXPERIMENTS, Experiment
from hwkernels.experiments.results import Stored, stored_results
from hwkernels.experiments.verdict import SILENT, verdict
from pipesim.errors import PipesimError

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "experiments.md"

INTRODUCTION = """\
# Experiments

How mbarriers and clocks behave was measured on the hardware in November 2026, with one small kernel per question. The
results are stored as `experiments.json` in each device's folder of `traces`. This page is written from them
(`python tools/experiments_doc.py`); do not edit it by hand. A test compares the model with every stored result.

"""

SEQUENCES = """\
A row has the operations, then which parity has completed after each of them (`-`: there is no barrier, `!`: the launch
fails), and the barrier's word after `inval`.

"""


def page(stored: tuple[Stored, ...]) -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    if stored:
        names = [f"an {one.device} (driver {one.driver}, NVRTC {one.nvrtc})" for one in stored]
        parts.append(f"Stored: {' and '.join(names)}.\n\n")
    else:
        parts.append("No results are stored yet: the questions are listed without results.\n\n")
    parts += [_section(each, stored) for each in EXPERIMENTS]
    return "".join(parts).rstrip() + "\n"


def _section(each: Experiment, stored: tuple[Stored, ...]) -> str:
    text = f"## {each.question}\n\n`{each.name}`: {each.how}\n\n"
    known = [one for one in stored if each.name in one.cases]
    if not known:
        return text + f"{len(each.cases)} cases, not measured yet.\n\n"
    rows: list[tuple[str, ...]] = []
    agreed, against = 0, []
    for case in each.cases:
        cells, model = [], SILENT
        for one in known:
            outcome = one.cases[each.name].get(case.name)
            if outcome is None:
                cells.append("not measured")
                continue
            found = verdict(each, case, outcome)
            model = found.model
            agreed += found.agrees is True
            if found.agrees is False:
                against.append(f"{case.name} ({one.device})")
            cells.append(found.seen if found.agrees is not False else f"**{found.seen}**")
        rows.append((case.name, model, *cells))
    rows = [(*row[:2], *("same" if cell == row[1] else cell for cell in row[2:])) for row in rows]
    head = ("case", "the model", *(one.device for one in known))
    lines = ["| " + " | ".join(row) + " |" for row in (head, tuple("---" for _ in head), *rows)]
    text += SEQUENCES if each.name == "mbarrier" else ""
    return text + "\n".join(lines) + f"\n\n{_summary(agreed, against)}\n\n"


def _summary(agreed: int, against: list[str]) -> str:
    if against:
        return f"**The model differs** in {len(against)} of {agreed + len(against)}: {'; '.join(against)}."
    return f"The model agrees in all {agreed}." if agreed else "The model does not cover this."


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="write docs/experiments.md from the stored answers")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is stale")
    parser.add_argument("--traces", type=Path, default=ROOT / "traces")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    try:
        text = page(stored_results(options.traces))
    except PipesimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if not options.check:
        options.page.write_text(text, encoding="utf-8")
    elif not options.page.is_file() or options.page.read_text(encoding="utf-8") != text:
        print(f"{options.page} is stale: run python tools/experiments_doc.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
