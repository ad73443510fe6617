"""How far the simulated times of kernels read from PTX are off recorded ones: `python tools/ptx_times.py [--write]`.

For each recording of ``traces/h200/ptx`` whose PTX is at hand: cycles of the recorded CTA, and of the simulation of
the program that is read from the PTX, with the cost of recording; the period of its main loop, where it has one. Of
the recording nothing is used, but the values ``ptx.*`` of the profile were fitted to those of Triton and Gluon.
``--more FOLDER``: where the PTX of Modular's kernels is (``tools/ptx_corpus.py`` makes it), which no fit has seen.
``--write``: into docs/times.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pipesim.answers.compare import compare_kernel
from pipesim.conform.timing import TRACED_PERIOD
from pipesim.ptx.kernel import read_kernel
from pipesim.trace.files import read_trace

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "traces" / "h200" / "ptx"
PAGE = ROOT / "docs" / "times.md"
BEGIN, END = "<!-- times of kernels read from PTX -->", "<!-- end -->"


class Row(NamedTuple):
    """A kernel: cycles of the run, and of its period in thousandths of a cycle (None: too few iterations)."""

    name: str
    run: tuple[int, int]
    period: tuple[int, int] | None


def row_of(trace: Path, ptx: Path) -> Row | None:
    """Measured and simulated numbers of a recording, None if it has no time to compare."""
    found = compare_kernel(read_kernel(ptx), read_trace(trace), str(trace)).comparison
    if found.timing is None or found.time.simulated is None or found.time.measured is None:
        return None
    figure = next(each for each in found.timing.figures if each.name == TRACED_PERIOD)
    both = figure.measured and figure.simulated
    whole = next(each for each in found.timing.figures if each.name == "whole run, traced")
    period = (figure.measured or 0, figure.simulated or 0) if both else None
    return Row(trace.stem, ((whole.measured or 0) // 1000, (whole.simulated or 0) // 1000), period)


def rows(more: Path | None) -> Iterator[Row]:
    """Those of the repository, then Modular's, if their PTX is there."""
    for trace in sorted(FOLDER.glob("*.parquet")):
        found = row_of(trace, trace.with_suffix(".ptx"))
        if found is not None:
            yield found
    if more is None:
        return
    for trace in sorted((FOLDER / "modular").glob("*.parquet")):
        ptx = more / f"{trace.stem}-sm_90a.ptx"
        found = row_of(trace, ptx) if ptx.is_file() else None
        if found is not None:
            yield found._replace(name=f"modular-{found.name}")


def _off(pair: tuple[int, int]) -> float:
    return 100 * (pair[1] - pair[0]) / pair[0]


def line(row: Row) -> str:
    """A row of the table."""
    of_period = f"{_off(row.period):+.1f} %" if row.period else "–"
    return f"| `{row.name}` | {row.run[0]:,} | {row.run[1]:,} | {_off(row.run):+.1f} % | {of_period} |"


def table(found: Sequence[Row]) -> str:
    """The table of the page, with medians of the amounts of the errors."""
    lines = ["| kernel | cycles, recorded | simulated | error | error of the period |", "|---|---|---|---|---|"]
    lines += map(line, found)
    runs = [abs(_off(row.run)) for row in found]
    periods = [abs(_off(row.period)) for row in found if row.period]
    return "\n".join([*lines, "", _median("runs", runs) + "; " + _median("periods", periods) + "."])


def _median(what: str, errors: Sequence[float]) -> str:
    return f"{what}: median {median(errors):.1f} %, worst {max(errors):.1f} % of {len(errors)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    text = table(list(rows(options.more)))
    if not options.write:
        sys.stdout.write(text + "\n")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
