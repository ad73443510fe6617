"""Every recorded trace beside the program that is read from its kernel's PTX: ``python tools/trace_kernels.py [WORD]``.

For each file of ``traces`` whose path contains WORD: NVRTC compiles the twin with the trace's parameters and its
injected fault, the PTX is read, and the records are replayed on that program, as ``pipesim diff TRACE --protocol
kernel.ptx`` does. Prints a table by kernel, and a line for each trace that does not simply conform. The exit code is 1
if a trace without an injected fault differs. Of a kernel with a fault the model may break the rule that the fault
breaks, and where the emulation of the faulty kernel ends before the recorded run did, nothing is known.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.twins.launch_file import recorded_kernel
from pipesim.answers.compare import compare_kernel
from pipesim.answers.views.trace import TraceComparison
from pipesim.conform.agreement import Agreement
from pipesim.conform.result import DivergenceKind
from pipesim.errors import PipesimError
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.text.read import read_module
from pipesim.trace.files import read_trace
from pipesim.trace.schema import TraceMeta

TRACES = Path(__file__).resolve().parents[1] / "traces"
CONFORMS, HANGS, BREAKS, UNKNOWN, DIFFERS = "conforms", "hangs too", "breaks its rule", "unknown", "differs"
_WORDS = {Agreement.CONFORMS: CONFORMS, Agreement.HANGS_TOO: HANGS, Agreement.UNKNOWN: UNKNOWN}


def main() -> int:
    """Compare them all; 1 if one without a fault differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="", help="only files whose path contains this")
    options = parser.parse_args()
    files = [path for path in sorted(TRACES.glob("*/*.parquet")) if options.word in str(path)]
    table: Counter[tuple[str, str]] = Counter()
    begun, events, wrong = time.perf_counter(), 0, 0
    for path in files:
        trace = read_trace(path)
        meta, events = trace.meta, events + len(trace.events)
        try:
            found = extracted(meta.protocol, tuple(sorted(meta.params.items())), meta.fault)
            stands = compare_kernel(found, trace, path.name).comparison
            word, why = outcome(stands, meta)
        except PipesimError as error:
            word, why = DIFFERS, f"{error.fact}: {error.cause}"
        table[meta.protocol, word] += 1
        wrong += word == DIFFERS
        if why:
            print(f"{word:16s}{path.parent.name}/{path.name}: {why}", flush=True)
    _print(table)
    print(f"{len(files):,} traces, {events:,} events, {time.perf_counter() - begun:.0f} s")
    return int(wrong > 0)


@cache
def extracted(protocol: str, params: tuple[tuple[str, int], ...], fault: str) -> Extraction:
    """The program of a twin's PTX; recordings of one configuration on several devices share it."""
    ptx, launch = recorded_kernel(protocol, dict(params), fault)
    return extract(read_module(ptx, f"{protocol}.ptx"), launch)


def outcome(found: TraceComparison, meta: TraceMeta) -> tuple[str, str]:
    """A column of the table, and what there is to say of it."""
    divergence = found.conformance.divergence
    fault = f" ({meta.fault})" if meta.fault else ""
    said = divergence.claim if divergence is not None else found.reason.kind.value if found.reason is not None else ""
    if found.agreement in _WORDS:
        return _WORDS[found.agreement], said and said + fault
    if meta.fault and (divergence is None or divergence.kind is DivergenceKind.FAULT):
        return BREAKS, said + fault
    return DIFFERS, said + fault


def _print(table: Counter[tuple[str, str]]) -> None:
    columns = (CONFORMS, HANGS, BREAKS, UNKNOWN, DIFFERS)
    names = sorted({name for name, _ in table})
    print(f"{'':24s}" + "".join(f"{column:>16s}" for column in columns))
    for name in names:
        print(f"{name:24s}" + "".join(f"{table[name, column]:16,d}" for column in columns))
    print(f"{'together':24s}" + "".join(f"{sum(table[n, column] for n in names):16,d}" for column in columns))


if __name__ == "__main__":
    sys.exit(main())
