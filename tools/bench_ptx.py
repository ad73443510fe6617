"""What a kernel costs from its PTX to the verdict: ``python -m tools.bench_ptx [KERNEL.ptx ...] [--rounds N]``.

For each kernel (without names: the whole corpus of ``tools/ptx_corpus.py`` and the kernels of the tests) the seconds of
each stage in this process, after imports: *text* (instructions and declarations), *flow* (calls, graph, slice),
*emulation* (with the compilation of what is run), *emission* and *proof* (the verdict, as ``pipesim check --quick``).
``warp instr.``: executed, of all warps and in all runs of the emulation; ``/s``: by the seconds of the emulation.

The yardstick is a plain Python loop, measured before and after every kernel: an addition, a mask and a look-up in a
dict of 1,024 entries each step. ``steps``: how many of its steps take as long as one warp instruction, so that ratios
can be compared between machines. Seconds are of processor time, the median of the rounds. ``ptx_corpus.py --table``
measures memory.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pipesim.answers.budget import states_of
from pipesim.errors import PipesimError
from pipesim.model.coverage import LENIENT
from pipesim.prove.check import check
from pipesim.ptx.emulation import emulate, prepare
from pipesim.ptx.extract import emit
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.text.read import read_module

ROOT = Path(__file__).resolve().parents[1]
CORPUS = Path.home() / ".cache" / "pipesim-corpus" / "kernels"
COMMITTED = ROOT / "tests" / "ptx" / "kernels"
STAGES = ("text", "flow", "emulation", "emission", "proof")
MOST_MEDIAN, MOST_WORST, LEAST_RATE = 0.3, 15.0, 150_000
_STEPS = 200_000  #: of the yardstick at a time

Result = TypeVar("Result")


@dataclass(frozen=True)
class Cost:
    """What one kernel cost: the seconds of each stage, and one step of the yardstick beside it."""

    lines: int
    warps: int
    instructions: int
    operations: int
    seconds: tuple[float, ...]
    step: float
    verdict: str

    @property
    def total(self) -> float:
        """Seconds from PTX to verdict."""
        return sum(self.seconds)

    @property
    def rate(self) -> float:
        """Warp instructions a second."""
        return self.instructions / max(self.seconds[STAGES.index("emulation")], 1e-9)


def yardstick() -> float:
    """Seconds of one step: an addition, a mask and a look-up."""
    table = {i: i + 1 for i in range(1024)}
    at = total = 0
    begin = time.process_time()
    for _ in range(_STEPS):
        total += at
        at = table[(at + total) & 1023]
    return (time.process_time() - begin) / _STEPS


def cost_of(path: Path, most: int | None = None) -> Cost:
    """Read one kernel and check it, with a search of ``most`` states. Raises PipesimError if it cannot be read."""
    gc.collect()
    before = yardstick()
    text = path.read_text(encoding="utf-8")
    launch = read_launch(path.with_suffix(".json").read_text(encoding="utf-8"), path.name)
    spent: list[float] = []
    module = _timed(spent, lambda: read_module(text, path.name, launch.entry))
    kernel = _timed(spent, lambda: prepare(module, launch))
    emulation = _timed(spent, lambda: emulate(kernel))
    extraction = _timed(spent, lambda: emit(kernel, emulation))
    program = extraction.program.with_strictness(LENIENT)
    found = _timed(spent, lambda: check(program, states_of(most, program)))
    step = min(before, yardstick())
    operations = sum(map(len, program.code))
    warps = len(emulation.cluster.warps)
    lines = text.count("\n")
    return Cost(lines, warps, emulation.instructions, operations, tuple(spent), step, found.verdict.value)


def _timed(spent: list[float], call: Callable[[], Result]) -> Result:
    begin = time.process_time()
    result = call()
    spent.append(time.process_time() - begin)
    return result


def median_of(costs: Sequence[Cost]) -> Cost:
    """One kernel's rounds as one: the median of each stage."""
    first = costs[0]
    seconds = tuple(statistics.median(stage) for stage in zip(*(cost.seconds for cost in costs), strict=True))
    step = min(cost.step for cost in costs)
    return Cost(first.lines, first.warps, first.instructions, first.operations, seconds, step, first.verdict)


def kernels() -> list[Path]:
    """The corpus and the kernels of the tests, those that have a launch file."""
    found = [*sorted(CORPUS.glob("*/*.ptx")), *sorted(COMMITTED.glob("*.ptx"))]
    return [path for path in found if path.with_suffix(".json").is_file()]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each kernel, then the median, the worst, and what is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", type=Path, help="PTX files with launch files beside them")
    parser.add_argument("--rounds", type=int, default=1, help="of which the median is shown (default 1)")
    parser.add_argument(
        "--states", type=int, help="searched where one run does not decide (default: as `pipesim check`)"
    )
    given = parser.parse_args(argv)
    heads = (("lines", 9), ("warps", 7), ("warp instr.", 13), ("ops", 9), *((stage, 11) for stage in STAGES))
    columns = "".join(f"{name:>{width}}" for name, width in (*heads, ("total", 9), ("/s", 10), ("steps", 8)))
    print(f"{'kernel':46}{columns}")
    costs: dict[str, Cost] = {}
    for path in given.kernels or kernels():
        name = f"{path.parent.name}/{path.stem}"
        try:
            cost = costs[name] = median_of([cost_of(path, given.states) for _ in range(given.rounds)])
        except PipesimError as error:
            print(f"{name:46}  {error.fact}")
            continue
        print(f"{_row(name, cost)}  {cost.verdict}", flush=True)
    return _summary(costs) if costs else 1


def _row(name: str, cost: Cost) -> str:
    counted = f"{cost.lines:9,}{cost.warps:7,}{cost.instructions:13,}{cost.operations:9,}"
    spent = "".join(f"{second:11.3f}" for second in cost.seconds)
    return f"{name[:45]:46}{counted}{spent}{cost.total:9.3f}{cost.rate:10,.0f}{1 / cost.rate / cost.step:8.0f}"


def _summary(costs: dict[str, Cost]) -> int:
    """Print what the kernels cost together; 1 if something is over its limit."""
    totals = {name: cost.total for name, cost in costs.items()}
    worst = max(totals, key=totals.__getitem__)
    instructions = sum(cost.instructions for cost in costs.values())
    emulated = sum(cost.seconds[STAGES.index("emulation")] for cost in costs.values())
    median, rate = statistics.median(totals.values()), instructions / max(emulated, 1e-9)
    median_rate = statistics.median(cost.rate for cost in costs.values())
    step = statistics.median(cost.step for cost in costs.values())
    lines = [
        (f"median of {len(totals)} kernels: {median:.3f} s", median <= MOST_MEDIAN),
        (f"worst: {totals[worst]:.3f} s, {worst}", totals[worst] <= MOST_WORST),
        (f"warp instructions a second: {rate:,.0f} together, {median_rate:,.0f} in the median", rate >= LEAST_RATE),
    ]
    for text, kept in lines:
        print(f"{text}  {'kept' if kept else 'over'}")
    print(f"yardstick: {step * 1e9:.0f} ns a step, {1 / step:,.0f} steps a second")
    return 0 if all(kept for _, kept in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
