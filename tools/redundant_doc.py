"""Write docs/redundant.md: what the built-in protocols do not need, and what one removal gained on a GPU.

``python tools/redundant_doc.py [--check] [NAME ...]``. Every removal of the table is proved again; the measured one is
that of ``traces/h200/without_throttle.json`` (``tools/without_throttle.py``). With ``--check`` nothing is written, and
the exit code is 1 if a row is not what is found today; NAME: only the rows of these protocols.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.budget import Budget
from pipesim.answers.redundant import redundant
from pipesim.answers.views.redundant import RedundantReport
from pipesim.protocols.catalog import BUILT_IN
from pipesim.report.text.words import count, listed, number
from pipesim.targets import find

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "redundant.md"
_SECONDS = 3_600.0  #: of each step: the page does not depend on the machine
_BEGIN, _END = "<!-- removals -->\n", "<!-- end of removals -->\n"
MEASURED = ROOT / "traces" / "h200" / "without_throttle.json"
_BEGIN_MEASURED, _END_MEASURED = "<!-- measured removal -->\n", "<!-- end of measured removal -->\n"
_HEAD = """\
| protocol | what may go, everything else staying | source line | executions by an agent | in the set |
|---|---|---|---|---|
"""


def rows(name: str) -> list[str]:
    """The rows of a protocol at its default parameters."""
    report = redundant(find(name), {}, budget=Budget(_SECONDS))
    if not report.alone:
        return [f"| `{name}` | {_nothing(report)} | | | |"]
    return [
        f"| `{name}` | {each.said} | {_places(each.lines)} | {number(each.removal.times)} | {_set(report, n)} |"
        for n, each in enumerate(report.alone)
    ]


def _nothing(report: RedundantReport) -> str:
    if report.withheld is not None:
        return f"not offered: {report.withheld.value}"
    return f"nothing: {count(report.tried, 'removal')} tried, none of them offered"


def _set(report: RedundantReport, n: int) -> str:
    return "yes" if n in report.together else ""


def _places(lines: Sequence[str]) -> str:
    shown = [f"`{Path(line).name}`" for line in lines[:3]]
    return listed([*shown, *(["others"] if len(lines) > 3 else [])])


def measured_lines(document: dict[str, Any]) -> Iterator[str]:
    """What a launch took with and without the barriers: a row for each case, and how it was measured."""
    yield "| rows | CTAs | parameters | with, µs | without, µs | shorter by |"
    yield "|---|---|---|---|---|---|"
    cases = document["cases"]
    for each in cases:
        params = " ".join(f"{name}={value}" for name, value in each["params"].items() if name != "tiles")
        (low, full, _), (_, less, high) = each["with_quartiles"], each["without_quartiles"]
        gain = f"{100 * (full - less) / full:.1f} %" if high < low else "nothing that is beyond the quartiles"
        times = " | ".join(_times(each[f"{which}_quartiles"]) for which in ("with", "without"))
        yield f"| {each['params']['tiles']:,} | {each['grid']} | `{params}` | {times} | {gain} |"
    right = all(each["same_bits"] and not each["wrong"] and not each["gave_up"] for each in cases)
    launches = listed([str(n) for n in sorted({each["launches"] for each in cases})])
    yield ""
    yield f"Medians and quartiles of {launches} launches of each build, in turn, on an {document['device']}"
    yield f"(driver {document['driver']}), between two CUDA events. " + (
        "The results of all launches were the same bits, and right."
        if right
        else "Not all results were the same bits, and right."
    )


def _times(quartiles: Sequence[float]) -> str:
    low, middle, high = (each / 1000 for each in quartiles)
    return f"{middle:,.1f} ({low:,.1f} to {high:,.1f})"


def with_measured(page: str, document: dict[str, Any]) -> str:
    """The page with these numbers."""
    head, tail = page[: page.index(_BEGIN_MEASURED) + len(_BEGIN_MEASURED)], page[page.index(_END_MEASURED) :]
    return head + "".join(f"{line}\n" for line in measured_lines(document)) + tail


def written(page: str) -> list[str]:
    """The rows that the page has."""
    begin, end = page.index(_BEGIN) + len(_BEGIN) + len(_HEAD), page.index(_END)
    return page[begin:end].splitlines()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    page = PAGE.read_text(encoding="utf-8")
    kept = {name: [row for row in written(page) if row.startswith(f"| `{name}` ")] for name in sorted(BUILT_IN)}
    found = {name: rows(name) for name in given.names or sorted(BUILT_IN)}
    stale = [name for name, those in found.items() if kept[name] != those]
    whole = with_measured(page, json.loads(MEASURED.read_text(encoding="utf-8")))
    stale += ["the measured removal"] if whole != page else []
    page = whole
    if given.check:
        print(f"stale: {', '.join(stale)}: run python tools/redundant_doc.py" if stale else "the table is right")
        return int(bool(stale))
    table = "".join(f"{row}\n" for those in (kept | found).values() for row in those)
    head, tail = page[: page.index(_BEGIN) + len(_BEGIN)], page[page.index(_END) :]
    PAGE.write_text(head + _HEAD + table + tail, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
