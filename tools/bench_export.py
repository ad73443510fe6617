"""What an export of a large trace costs: ``python -m tools.bench_export [EVENTS] [--limit]``.

Two traces of at least so many events (default 100,000): *one CTA*, a long simulated ring, and *many CTAs*, those of a
stored recording of ``epilogue_residual`` again and again. For each and each format the seconds of processor time and
the peak memory of ``pipesim export`` in a process of its own, start and imports included, the best of three. Modules
are compiled beforehand, as pip does where it installs them.
``--limit``: exit with 1 where one takes 3 s or more, or 200 MB or more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.schema import Events, Trace

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "traces" / "h200" / (
    "epilogue_residual-a2-at700-cs2-es2-e150-fto1-ki3-od0-r1-sb2048-s4-st4-t16-g132-both.parquet"
)  # fmt: skip
FORMATS = ("perfetto", "html", "svg")
EVENTS, SECONDS, MEGABYTES, ROUNDS = 100_000, 3.0, 200.0, 3
_PER_TILE = 14  #: events of the ring with two consumers


def one_cta(events: int) -> Trace:
    """A simulated ring with at least so many events."""
    program = find("producer_consumer").build({"tiles": -(-events // _PER_TILE)}, twice=False)
    return simulate(program, load_profile("h200")).trace


def many_ctas(events: int) -> Trace:
    """The recorded CTAs of a stored trace, with new numbers, until there are so many events."""
    stored = read_trace(STORED)
    ctas = [header.cta for header in stored.meta.ctas]
    times = -(-events // len(stored.events))
    parts, headers = [], []
    for turn in range(times):
        number = {cta: turn * len(ctas) + n for n, cta in enumerate(ctas)}
        parts.append(replace(stored.events, cta=np.array([number[int(cta)] for cta in stored.events.cta])))
        headers += [replace(header, cta=number[header.cta]) for header in stored.meta.ctas]
    columns = (np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Events))
    meta = replace(stored.meta, ctas=tuple(headers), grid=max(stored.meta.grid, len(headers)), runs=())
    return Trace(meta, Events(*columns))


#: A small process between: the peak of a new process is at least the memory of the one that starts it.
_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)
"""


def _compiled(folder: Path) -> dict[str, str]:
    """An environment in which modules are compiled once, by the first process, whatever the one of ours says."""
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**rest, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def cost(trace: Path, to: str) -> tuple[float, float]:
    """Seconds of processor time and megabytes (10**6 bytes) of one export."""
    command = [sys.executable, "-m", "pipesim", "export", str(trace), "--to", to, "--force"]
    command += ["-o", str(trace.with_suffix(f".{to}"))]
    ended = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command],
        cwd=ROOT,
        env=_compiled(trace.parent),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {ended.returncode}")
    seconds, kib = ended.stdout.split()
    return float(seconds), int(kib) * 1024 / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=int, nargs="?", default=EVENTS)
    parser.add_argument("--limit", action="store_true")
    options = parser.parse_args()
    over = False
    print(f"{'trace':12}{'events':>9}{'format':>10}{'seconds':>9}{'MB':>6}{'file MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name, trace in (("one CTA", one_cta(options.events)), ("many CTAs", many_ctas(options.events))):
            path = Path(folder) / f"{name.replace(' ', '_')}.parquet"
            write_trace(trace, path)
            for to in FORMATS:
                seconds, megabytes = map(min, zip(*(cost(path, to) for _ in range(ROUNDS)), strict=True))
                size = path.with_suffix(f".{to}").stat().st_size / 1e6
                print(f"{name:12}{len(trace.events):>9,}{to:>10}{seconds:>9.2f}{megabytes:>6.0f}{size:>9.1f}")
                over |= seconds >= SECONDS or megabytes >= MEGABYTES
    return int(options.limit and over)


if __name__ == "__main__":
    sys.exit(main())
