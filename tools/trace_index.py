"""Write the README of a folder of recorded traces: one row a file, measured in the file itself.

``python tools/trace_index.py [FOLDER] [--check]``; the folder is the checkout's ``traces`` if not given. With
``--check`` nothing is written, and the exit code is 1 if the README is not what the files say.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from pipesim.errors import EvidenceError, PipesimError
from pipesim.trace.files import read_trace
from pipesim.trace.library import stored_traces
from pipesim.trace.schema import Trace, TraceMeta

NONE = "–"
NOT_MEASURED = "not measured"

INTRODUCTION = """\
# Recorded traces

Every file here was recorded on a real GPU: the events of a pipeline, each with the clock of its SM and its time on the
common time line, and everything needed to read them. The model is compared with these files by `pipesim verify` where
there is no GPU, and by the tests. They are ordinary Parquet: the events are columns of integers, and the description
is a JSON document in the file's metadata under the key `pipesim`.

To record more, on a machine with a Hopper GPU:

```
pipesim capture NAME -p parameter=value
python tools/trace_index.py
```

The second command writes this page; do not edit it by hand.
"""

EXPLANATION = """\
What the columns say:

- **events** are the records in the file, **CTAs** the thread blocks that were recorded, of **grid** that ran;
  **dropped** counts the records that found no room and are not in the file.
- **launches** and **period** (steady state, in cycles; the median over all CTAs and launches) are untraced / traced;
  **overhead** is what recording added to the period. A period is *not measured* where the run has too few iterations
  for a steady state or did not finish, and in recordings from before untraced launches of a kernel took it: all of the
  H100, which is not available any more, except those of `producer_consumer`. A traced launch of the other kernels takes
  none: its period is in its events.
- **a record** is what one costs, in cycles: the overhead of a tile over the records of the role that bounds the period,
  from the least to the most of the pairs of launches. **memory** is where records went first.
- **SM MHz** is the clock under this load, and **clock bound** the largest uncertainty of any event's time.
"""

HEADINGS = (
    "trace", "device", "driver", "NVRTC", "parameters", "grid", "events", "CTAs", "launches", "dropped", "period",
    "overhead", "a record", "memory", "SM MHz", "clock bound", "status", "size",
)  # fmt: skip


def index(folder: Path) -> str:
    """The README of this folder. Raises TraceFormatError for a damaged file, EvidenceError for a simulated trace."""
    rows = []
    for stored in stored_traces(folder):
        if stored.meta.source != "hardware":
            raise EvidenceError(
                "this trace was simulated; only recordings of a GPU belong here",
                place=str(stored.path),
                correction="move the file to another folder",
            )
        name = stored.path.relative_to(folder).as_posix()
        cells = map(markdown_text, (*_cells(read_trace(stored.path)), _size(stored.path.stat().st_size)))
        rows.append((f"[{markdown_text(name)}]({quote(name, errors='replace')})", *cells))
    if not rows:
        return f"{INTRODUCTION}\nNothing is recorded yet.\n"
    table = [HEADINGS, tuple("---" for _ in HEADINGS), *rows]
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return f"{INTRODUCTION}\n{EXPLANATION}\n" + "\n".join(lines) + "\n"


def markdown_text(text: str) -> str:
    """A name from a file as Markdown shows it: no cell, link, code or HTML begins or ends in it."""
    return "".join(f"\\{c}" if c in "\\|[]`*<>&" else c if c.isprintable() else "?" for c in text)


def _cells(trace: Trace) -> tuple[str, ...]:
    meta = trace.meta
    untraced, traced = _periods(meta, traced=False), _periods(meta, traced=True)
    bound = f"{int(trace.events.error_ps.max()) / 1000:.1f} ns" if len(trace.events) else NONE
    return (
        meta.device.name,
        meta.device.driver or NONE,
        meta.device.nvrtc or NONE,
        " ".join(f"{name}={value}" for name, value in sorted(meta.params.items())) or NONE,
        str(meta.grid),
        f"{len(trace.events):,}",
        str(len(meta.ctas)),
        " / ".join(str(sum(1 for run in meta.runs if run.traced is kind)) for kind in (False, True)),
        f"{sum(sum(header.dropped) for header in meta.ctas):,}",
        f"{_cycles(untraced)} / {_cycles(traced)}" if untraced or traced else NOT_MEASURED,
        f"{(traced - untraced) * 100 / untraced:+.2f} %" if untraced and traced is not None else NONE,
        _record_cost(meta),
        meta.memory or NONE,
        f"{meta.device.sm_khz / 1000:.0f}" if meta.device.sm_khz else NONE,
        bound,
        ", ".join(_status(meta)),
    )


def _record_cost(meta: TraceMeta) -> str:
    cost = meta.extra.get("cost_millicycles_per_record") or {}
    return f"{cost['low'] / 1000:.1f} to {cost['high'] / 1000:.1f}" if cost else NONE


def _status(meta: TraceMeta) -> Iterator[str]:
    if meta.fault:
        yield meta.fault
    yield meta.status
    if meta.window:
        yield f"iterations {meta.window[0]} to {meta.window[1] - 1}"
    if meta.wrong_tiles:
        yield f"{meta.wrong_tiles:,} wrong tiles"


def _periods(meta: TraceMeta, *, traced: bool) -> int | None:
    """The median period in 1/1000 of a cycle, over the CTAs that measured one in all launches of this kind.

    None if none did: 0 in a file says that it was not measured.
    """
    periods = sorted(p for run in meta.runs if run.traced is traced for p in run.period_millicycles if p)
    if not periods:
        return None
    return (periods[(len(periods) - 1) // 2] + periods[len(periods) // 2]) // 2


def _cycles(millicycles: int | None) -> str:
    return NOT_MEASURED if millicycles is None else f"{millicycles / 1000:,.1f}"


def _size(count: int) -> str:
    return f"{count / 1024:,.1f} KiB"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="write the README of a folder of recorded traces")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parents[1] / "traces")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the README is stale")
    options = parser.parse_args(arguments)
    readme: Path = options.folder / "README.md"
    try:
        text = index(options.folder)
    except PipesimError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if not options.check:
        readme.write_text(text, encoding="utf-8")
    elif not readme.is_file() or readme.read_text(encoding="utf-8") != text:
        print(f"{readme} is stale: run python tools/trace_index.py {options.folder}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
