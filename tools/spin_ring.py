"""SPIN's time for a ring of any number of tiles: ``python tools/spin_ring.py [--stages S] [--consumers C]``.

The ring of ``producer_consumer`` without its counters: every role loops on, a tile is known by the parity of its
lap, and the barriers obey the same rules as in ``pipesim export``. That is the yardstick for a verdict for any number
of tiles: the time of ``spin -a``, of the compiler and of the run. Needs ``spin`` and a C compiler.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from pipesim.export.promela.rules import broken_by, rules

BYTES = 64


class Times(NamedTuple):
    """Seconds of SPIN's three steps, of the processor in all of them, the states it stored, the errors it found."""

    generate: float
    compile: float
    run: float
    processor: float
    states: int
    errors: int


def model(stages: int, consumers: int) -> str:
    """The endless ring: ``full`` of stage s is barrier s, ``empty`` barrier ``stages + s``."""
    producer = f"""\
active proctype producer() provided (!broken) {{
  byte s; bit parity = 1;
  do
  :: d_step {{ life[{stages} + s] != 1 || phase[{stages} + s] != parity -> passed({stages} + s) }};
     d_step {{ arrive(s, 1, {BYTES}) }};
     d_step {{
       if :: left[s] || {" || ".join(f"reading[{consumers} * s + {c}]" for c in range(consumers))} -> fault(race)
       :: else fi;
       cell[s] = -2; left[s] = {BYTES} + 1; brings[s] = 1 - parity; step(parity)
     }}
  od
}}
"""
    readers = [
        f"""\
active proctype consumer{c}() provided (!broken) {{
  byte s; bit parity;
  do
  :: d_step {{ life[s] != 1 || phase[s] != parity -> passed(s) }};
     d_step {{ if :: left[s] -> fault(race) :: else fi; reading[{consumers} * s + {c}] = 1 }};
     d_step {{ reading[{consumers} * s + {c}] = 0; held = cell[s]; look(parity) }};
     d_step {{ arrive({stages} + s, 1, 0); step(parity) }}
  od
}}
"""
        for c in range(consumers)
    ]
    landings = "\n".join(
        f"  :: d_step {{ left[{s}] -> cell[{s}] = brings[{s}]; add_tx({s}, 1 - left[{s}]); left[{s}] = 0 }}\n"
        f"  :: d_step {{ 0 < tx[{s}] && tx[{s}] < left[{s}] - 1 -> "
        f"left[{s}] = left[{s}] - tx[{s}]; add_tx({s}, -tx[{s}]) }}"
        for s in range(stages)
    )
    memory = f"active proctype memory() provided (!broken) {{\nend:\n  do\n{landings}\n  od\n}}\n"
    own = f"""\
inline passed(b) {{ if :: life[b] != 1 -> dead(b) :: else fi }}

inline step(parity) {{ s = s + 1; if :: s == {stages} -> s = 0; parity = 1 - parity :: else fi }}
"""
    moves = "\n".join([own, producer, *readers, memory])
    inlines = rules(moves, tokens=False)
    counts = ", ".join(["1"] * stages + [str(consumers)] * stages)
    tables = "\n".join([
        "bool broken;",
        *(f"hidden byte {name} = 1;" for name in broken_by(inlines + moves)),
        f"byte expected[{2 * stages}] = {{{counts}}};",
        f"byte pending[{2 * stages}] = {{{counts}}};",
        f"short tx[{2 * stages}];",
        f"bit phase[{2 * stages}];",
        f"byte life[{2 * stages}] = 1;",
        f"short cell[{stages}] = -1;",
        f"byte left[{stages}];",
        f"bit brings[{stages}];",
        f"bit reading[{stages * consumers}];",
        "hidden byte completed;",
        "hidden int held;\n",
    ])  # fmt: skip
    return "\n".join([tables, inlines, moves, "active proctype watch() { end: do :: broken od }\n"])


def times(text: str, compiler: str) -> Times:
    """Let SPIN judge a model. RuntimeError if it does not come to an end."""
    with tempfile.TemporaryDirectory(prefix="spin_ring") as folder:
        before = _processor()
        (Path(folder) / "ring.pml").write_text(text, encoding="utf-8")
        generate, _ = _timed(["spin", "-Pcat", "-a", "ring.pml"], folder)
        build, _ = _timed([compiler, "-w", "-DSAFETY", "-o", "pan", "pan.c"], folder)
        for depth in (20_000, 200_000, 5_000_000):  # what is not needed costs time, too
            run, said = _timed(["./pan", "-n", "-w20", f"-m{depth}"], folder)
            if "max search depth too small" not in said:
                break
        processor = _processor() - before
    found = [re.search(what, said) for what in (r"(\d+) states, stored", r"errors: (\d+)")]
    if None in found or "too small" in said or "out of memory" in said:
        raise RuntimeError(f"this is not how a verifier ends: {said[-2000:]}")
    stored, errors = (int(match[1]) for match in found if match)
    return Times(generate, build, run, processor, stored, errors)


def _timed(command: list[str], folder: str) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - began, done.stdout + done.stderr


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def whole(took: Times) -> float:
    """The seconds of all three."""
    return took.generate + took.compile + took.run


def main(argv: list[str] | None = None) -> int:
    """Print SPIN's time, the fastest of some; exit code 1 if it finds an error in the ring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--consumers", type=int, default=2, help="consumer warps")
    parser.add_argument("--compiler", default="tcc" if shutil.which("tcc") else "cc")
    parser.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    options = parser.parse_args(argv)
    text = model(options.stages, options.consumers)
    took = min((times(text, options.compiler) for _ in range(max(options.repeats, 1))), key=whole)
    of = f"ring of {options.stages} stages, {options.consumers} consumers, any number of tiles"
    steps = f"spin -a {took.generate:.3f} s, {options.compiler} {took.compile:.3f} s, run {took.run:.3f} s"
    print(f"{of}: {took.errors} errors, {took.states:,} states\n{steps}: {whole(took):.3f} s")
    print(f"of which on the processor {took.processor:.3f} s")
    return int(took.errors > 0)


if __name__ == "__main__":
    sys.exit(main())
