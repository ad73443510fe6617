"""Fuzzers: ``python tools/fuzz [COUNT] [SEED] [--kind NAME ...] [--workers N] [--keep FOLDER] [--seconds N]``.

COUNT cases of each kind of input from seed SEED on (docs: the modules of ``kinds``), each with 60 s and 500 MB in
one of N worker processes. What may come back is an error in four parts with its exit code, or a result; a naive engine
confirms those that it can. Prints a table of counts and what was wrong, with the first seed of each; the exit code is
then 1. ``--keep`` writes the files and the command of that seed into a folder. The same COUNT and SEED give the same
cases. Needs what pipesim needs, and jsonschema.
"""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # works from a checkout that is not installed

from tools.fuzz.kinds import KINDS
from tools.fuzz.worker import MEGABYTES, SECONDS, Result, case_of, in_workers

_HEAD = (
    "kind", "cases", "clear errors", "results", "confirmed", "unknown", "internal errors", "hangs",
    f"over {MEGABYTES} MB", "crashes", "left", "other", "slowest", "most",
)  # fmt: skip
#: How the complaints of a column begin; "left" also has the processes that a case leaves. The rest are "other".
_COLUMNS = {
    "internal errors": ("internal error",),
    "hangs": (f"more than {SECONDS} s",),
    f"over {MEGABYTES} MB": (f"more than {MEGABYTES} MB",),
    "crashes": ("the process ended",),
    "left": ("left files", "left running"),
}
_CODES = {"clear errors": (2,), "results": (0, 1, 4), "unknown": (3,)}
_SLOW = 5  #: seconds from which on the slowest case of a kind is named
_SAID_S = 10.0  #: seconds between two lines that say how far it is


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python tools/fuzz", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1000, help="cases of each kind")
    parser.add_argument("seed", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of input")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="worker processes (default 1)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the first case of each complaint is written")
    parser.add_argument("--seconds", type=float, default=math.inf, help="count no case that ends after this time")
    options = parser.parse_args(argv)
    began = time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    tasks = [(kind, seed) for seed in seeds for kind in options.kind]  # of all kinds in turn, so that no worker waits
    found: dict[str, list[Result]] = {kind: [] for kind in options.kind}
    with closing(in_workers(tasks, options.workers)) as ended:
        for result in _with_progress(ended, len(tasks)):
            found[result.kind].append(result)
            if time.monotonic() - began > options.seconds:
                break  # those that wait in the workers are not begun
    for kind, results in found.items():
        slowest = max(results, key=lambda result: result.seconds, default=Result(kind, 0))
        if slowest.seconds > _SLOW:
            print(f"{kind}: {slowest.seconds:.0f} s, seed {slowest.seed}: {slowest.what}")
    every = list(chain.from_iterable(found.values()))
    print(table([_HEAD, *(row(kind, results) for kind, results in found.items()), row("all", every)]))
    print(f"{len(every):,} cases in {time.monotonic() - began:.0f} s, {options.workers} workers, seed {options.seed}")
    return _complained(every, options.keep)


def _with_progress(results: Iterable[Result], total: int) -> Iterator[Result]:
    """The same, and now and then a line on standard error that says how far it is."""
    said = time.monotonic()
    for done, result in enumerate(results, 1):
        yield result
        if time.monotonic() - said > _SAID_S:
            said = time.monotonic()
            print(f"{done:,} of {total:,}", file=sys.stderr, flush=True)


def _complained(results: Iterable[Result], folder: Path | None) -> int:
    """Print what was wrong, most often first; 1 if anything was."""
    first: dict[tuple[str, str], Result] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        for said in result.wrong:
            counts[result.kind, said] += 1
            first.setdefault((result.kind, said), result)
    for (kind, said), times in counts.most_common():
        result = first[kind, said]
        print(f"{times:6,}  {kind}: {said}\n        seed {result.seed}: {result.what}")
        if folder is not None:
            keep(folder, result, said)
    return int(bool(counts))


def row(kind: str, results: Sequence[Result]) -> tuple[str, ...]:
    """The counts of one kind, or of all."""
    codes = Counter(result.code for result in results)
    wrong = [said for result in results for said in result.wrong]
    counts = {"cases": len(results), "confirmed": sum(result.confirmed for result in results)}
    counts |= {column: sum(codes[code] for code in several) for column, several in _CODES.items()}
    counts |= {column: sum(said.startswith(words) for said in wrong) for column, words in _COLUMNS.items()}
    counts["other"] = len(wrong) - sum(counts[column] for column in _COLUMNS)
    return (
        kind,
        *(f"{counts[column]:,}" for column in _HEAD[1:-2]),
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
    here.mkdir(parents=True, exist_ok=True)
    for name, data in case.files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(data)
    words = " ".join(map(repr, case.words)) if case.words else "a function: see the module of its kind"
    text = f"{said}\n{case.what}\npipesim {words}\n"
    (here / "COMMAND").write_text(text, encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
