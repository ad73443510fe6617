"""Write the table of docs/pipelines.md that says where each of Modular's pipeline structs is proved and recorded.

``python tools/pipelines_doc.py [--check]``. With ``--check`` nothing is written, and the exit code is 1 if the page is
not what the protocols, kernels and traces say.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.check import check
from pipesim.conform.compare import times_of
from pipesim.conform.times import PERIOD, TimeVerdict
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.pipelines.common.register_value import MODULAR_PIPELINES
from pipesim.protocols.catalog import BUILT_IN
from pipesim.report.sentences.times import assumed_words
from pipesim.report.text.words import signed_percent
from pipesim.targets import find
from pipesim.trace.files import read_trace
from pipesim.trace.library import StoredTrace, device_slug, stored_traces

ROOT = Path(__file__).resolve().parents[1]
PAGE, TRACES, TWINS = ROOT / "docs" / "pipelines.md", ROOT / "traces", ROOT / "hwkernels" / "twins"
BEGIN, END = "<!-- where each struct is recorded -->\n", "<!-- end of the table -->\n"
HEAD = ("struct", "protocol", "kernel", "traces, all conforming", "proof", "time on the H200")
NO_TRACE, NO_TIME = "none: no Blackwell GPU was at hand", "none: no trace"


def page(text: str) -> str:
    """The page with the table as it should be."""
    rows = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    rows += ["| " + " | ".join(row) + " |" for row in _rows()]
    return re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + "\n" + "\n".join(rows) + "\n\n" + END, text, flags=re.DOTALL)


def _rows() -> Iterator[tuple[str, ...]]:
    stored: dict[str, list[StoredTrace]] = {}
    for trace in stored_traces(TRACES):
        stored.setdefault(trace.meta.protocol, []).append(trace)
    made = {name: find(name).build().pipelines for name in BUILT_IN}
    cells = {
        name: (_kernel(name), _traces(stored.get(name, [])), _proof(name), _time(stored.get(name, [])))
        for name in BUILT_IN
        if set(made[name]) & set(MODULAR_PIPELINES)
    }
    for struct in MODULAR_PIPELINES:
        users = [name for name in cells if struct in made[name]]
        for name in sorted(users, key=lambda name: (not stored.get(name), name)):
            yield (struct, f"[{name}](protocols/{name}.md)", *cells[name])


def _kernel(name: str) -> str:
    source = next(iter(TWINS.glob(f"*/{name}.cu")), None)
    if source is None:
        return "none: only described"
    return f"[{source.name}](../{source.relative_to(ROOT).as_posix()})"


def _traces(mine: list[StoredTrace]) -> str:
    """How many of each device; those that hung or have an injected fault agree in that."""
    if not mine:
        return NO_TRACE
    each = Counter(device_slug(trace.meta.device.name).upper() for trace in mine)
    return f"[{', '.join(f'{number} {device}' for device, number in sorted(each.items()))}](../traces/README.md)"


def _proof(name: str) -> str:
    verdict = check(find(name), {}, quick=True).verdict
    said = "proved" if verdict is Verdict.PROVED else "refuted: the order of its loads can be missed"
    return f"[{said}](protocols/{name}.md)"


def _time(mine: list[StoredTrace]) -> str:
    """Of the recording with the most iterations: its period, or what is not modelled."""
    able = [
        trace
        for trace in mine
        if device_slug(trace.meta.device.name) == "h200"
        and trace.meta.status == Ending.FINISHED
        and not trace.meta.fault
    ]
    periods = [t for t in able if any(p for run in t.meta.runs if not run.traced for p in run.period_millicycles)]
    if not able:
        return NO_TIME
    trace = read_trace(max(periods or able, key=lambda t: (max(t.meta.params.values()), t.path.name)).path)
    program = find(trace.meta.protocol).build(dict(trace.meta.params), grid=trace.meta.grid)
    found = times_of(program, trace)
    figure = "period" if found.figure == PERIOD else "whole run"
    off = f"{figure} {signed_percent(found.off_permille)}" if found.off_permille is not None else "not compared"
    if found.verdict is TimeVerdict.WITHIN_STATED_ERROR:
        return f"[{off}, within the stated error](latency-profile.md)"
    lacking = f", [not modelled](latency-profile.md): {assumed_words(found.assumed)}" if found.assumed else ""
    return off + lacking


def main(argv: list[str] | None = None) -> int:
    """Write the table, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit code 1 if the page is stale")
    options = parser.parse_args(argv)
    before = PAGE.read_text(encoding="utf-8")
    after = page(before)
    if options.check:
        if after != before:
            print("stale: docs/pipelines.md; run python tools/pipelines_doc.py")
        return int(after != before)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
