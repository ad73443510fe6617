"""Fuzzers: ``python tools/fuzz [COUNT] [SEED] [--kind NAME ...] [--jobs N] [--keep FOLDER]``.

COUNT cases of each kind of input from seed SEED on (docs: the modules of ``kinds``), each with 60 seconds and 1 GB in
a worker process. What may come back is an error in four parts with its exit code, or a result that a naive engine
confirms. Prints a table of counts and what was wrong, with the first seed of each; the exit code is then 1. ``--keep``
writes the files and the command of that seed into a folder. The same COUNT and SEED give the same cases.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # works from a checkout that is not installed

from tools.fuzz.kinds import KINDS
from tools.fuzz.worker import MEGABYTES, SECONDS, Result, case_of, in_workers

_HEAD = (
    "kind", "cases", "exit 0", "1", "2", "3", "4", "internal", "hangs", f">{MEGABYTES} MB", "crashes", "left",
    "other", "slowest", "most",
)  # fmt: skip

_SLOW = 5  #: seconds from which on the slowest case of a kind is named


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python tools/fuzz", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1000, help="cases of each kind")
    parser.add_argument("seed", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of input")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the first case of each complaint is written")
    options = parser.parse_args(argv)
    rows: list[tuple[str, ...]] = [_HEAD]
    first: dict[tuple[str, str], Result] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for kind in options.kind:
        began = time.monotonic()
        tasks = [(kind, seed) for seed in range(options.seed, options.seed + options.count)]
        results = list(in_workers(tasks, options.jobs))
        rows.append(row(kind, results))
        print(f"{kind}: {len(results):,} cases in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        for result in results:
            for said in result.wrong:
                counts[kind, said] += 1
                first.setdefault((kind, said), result)
        slowest = max(results, key=lambda result: result.seconds)
        if slowest.seconds > _SLOW:
            print(f"{kind}: {slowest.seconds:.0f} s, seed {slowest.seed}: {slowest.what}", flush=True)
    print(table(rows))
    for (kind, said), times in counts.most_common():
        result = first[kind, said]
        print(f"{times:6,}  {kind}: {said}\n        seed {result.seed}: {result.what}")
        if options.keep is not None:
            keep(options.keep, result, said)
    return int(bool(counts))


def row(kind: str, results: Sequence[Result]) -> tuple[str, ...]:
    """The counts of one kind."""
    codes = Counter(result.code for result in results)
    wrong = [said for result in results for said in result.wrong]
    kinds = ("internal error", f"more than {SECONDS} s", f"more than {MEGABYTES} MB", "the process ended", "left")
    several = [sum(word in said if word == "left" else said.startswith(word) for said in wrong) for word in kinds]
    return (
        kind,
        *(f"{number:,}" for number in (len(results), *(codes[code] for code in range(5)), *several)),
        f"{len(wrong) - sum(several):,}",
        f"{max((result.seconds for result in results), default=0):.1f} s",
        f"{max((result.megabytes for result in results), default=0):,} MB",
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns flush right, the first flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[cell.rjust(width) for cell, width in zip(cells, widths, strict=True)] for cells in rows]
    return "\n".join("  ".join([cells[0].ljust(widths[0]), *line[1:]]) for cells, line in zip(rows, lines, strict=True))


def keep(folder: Path, result: Result, said: str) -> None:
    """Write a case's files, its command and the complaint."""
    case = case_of(result.kind, result.seed)
    here = folder / f"{result.kind}-{result.seed}"
    for name, data in case.files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(data)
    words = " ".join(map(repr, case.words)) if case.words else "a function: see the module of its kind"
    text = f"{said}\n{case.what}\npipesim {words}\n"
    (here / "COMMAND").write_text(text, encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
