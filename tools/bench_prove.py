"""What a verdict for every schedule costs: ``python tools/bench_prove.py [--rounds N] [--divide N]``.

For each case the whole verdict in this process, from the author's function to the proof: flattening, then one run of
the program with the certificate.
Beside each is a replay of the same program (the yardstick: it reads every operation once and makes one tuple for
it), so that ratios can be compared between machines; the exponent of a power of the size that fits the seconds; the
peak memory of a process that does nothing else. Then the reduced search against the plain one and on a ring of nine
warps. Seconds are medians of processor time.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.search.breadth_first import explore
from pipesim.targets import find

ROOT = Path(__file__).resolve().parents[1]
SMALLER = (8, 4, 2, 1)  #: the size of a case is divided by these to see how its cost grows


@dataclass(frozen=True)
class Case:
    """A protocol at a size, the parameter that is varied, and the seconds that the whole verdict may take."""

    what: str
    protocol: str
    params: dict[str, int]
    varied: str
    target: float

    def at(self, divisor: int) -> dict[str, int]:
        """The parameters of the case, made smaller."""
        return self.params | {self.varied: max(1, self.params[self.varied] // divisor)}


CASES = (
    Case("ring", "producer_consumer", {"stages": 4, "tiles": 4096, "consumer_warps": 1}, "tiles", 1.0),
    Case("Hopper GEMM", "gemm_sm90", {"tiles": 8, "k_iters": 64}, "tiles", 0.2),
    Case("Blackwell GEMM", "gemm_sm100", {"tiles": 8, "k_iters": 64}, "tiles", 0.2),
    Case("Hopper attention", "attention_sm90", {"kv_blocks": 16}, "kv_blocks", 0.5),
    Case("Blackwell attention", "attention_sm100", {"kv_blocks": 16}, "kv_blocks", 0.5),
    Case("Blackwell GEMM, long", "gemm_sm100", {"tiles": 250, "k_iters": 30}, "tiles", 1.5),
)
SEARCHED = {"stages": 3, "tiles": 8, "consumer_warps": 3}  #: a ring whose schedules can all be followed
MOST_STATES = 300_000
NINE_WARPS = ROOT / "tests" / "support" / "nine_warps.py"
NINE_SEARCHED = 2_000  #: states, of the many that it has
NINE_WRONG: tuple[dict[str, int], ...] = ({}, {"empty_count": 7}, {"empty_count": 9})


@dataclass(frozen=True)
class Cost:
    """One whole verdict, in seconds."""

    flatten: float
    certificate: float
    walk: float
    operations: int
    verdict: Verdict
    how: str

    @property
    def whole(self) -> float:
        """From the author's function to the verdict, by one run."""
        return self.flatten + self.certificate


def walk(program: Program) -> int:
    """The yardstick: read every operation once and make a tuple of as many numbers for it."""
    total = 0
    for code in program.code:
        for operation in code:
            total += len((*operation[1:], total))
    return total


def verdict(protocol: str, params: dict[str, int], rounds: int) -> Cost:
    """The median cost of this many verdicts; flattening and certificate are timed apart, in the same round."""
    target, seconds = find(protocol), []
    for _ in range(rounds):
        program, flatten = _timed(target.build, params)
        found, certificate = _timed(check, program, 1)
        seconds.append((flatten, certificate, _timed(walk, program)[1]))
    flatten, certificate, walked = map(statistics.median, zip(*seconds, strict=True))
    return Cost(flatten, certificate, walked, found.operations, found.verdict, found.how.value)


def _timed(call: Callable[..., Any], *arguments: object) -> tuple[Any, float]:
    begin = time.process_time()
    result = call(*arguments)
    return result, time.process_time() - begin


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the line through the logarithms: 1 is a cost that grows as the size does."""
    x, y = [math.log(size) for size in sizes], [math.log(max(second, 1e-9)) for second in seconds]
    return statistics.linear_regression(x, y).slope if len(set(x)) > 1 else math.nan


def peak_megabytes(protocol: str, params: dict[str, int]) -> tuple[float, float]:
    """Peak memory of a process that only imports, and of one that makes the verdict (Linux; NaN elsewhere)."""
    told = []
    for do in ("", "bench_prove.verdict(name, params, 1)"):
        script = (
            f"import sys, json; sys.path.insert(0, {str(Path(__file__).parent)!r}); import bench_prove\n"
            f"name, params = json.loads(sys.argv[1])\n{do}\n"
            "print(next((l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')), 'nan'))"
        )
        arguments = [sys.executable, "-c", script, json.dumps([protocol, params])]
        told.append(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    return float(told[0]) / 1024, float(told[1]) / 1024


def verdicts(divide: int, rounds: int) -> bool:
    """Print a line for each case; False if one was not proved."""
    heads = [
        ("flatten", 10),
        ("proof", 9),
        ("whole", 9),
        ("target", 9),
        ("replays", 8),
        ("exponent", 10),
        ("peak MB", 9),
    ]
    print(f"{'verdict':22}{'size':>6}{'operations':>12}", *(f"{head:>{width}}" for head, width in heads), sep="")
    proved = True
    for case in CASES:
        sizes = sorted({case.at(divide * n)[case.varied] for n in SMALLER})
        costs = [verdict(case.protocol, case.params | {case.varied: size}, rounds) for size in sizes]
        mine, size = costs[-1], sizes[-1]
        bare, peak = peak_megabytes(case.protocol, case.params | {case.varied: size})
        kept = "" if divide > 1 else "  kept" if mine.whole < case.target else "  over"
        print(
            f"{case.what:22}{size:6,}{mine.operations:12,}{mine.flatten:8.3f} s{mine.certificate:7.3f} s"
            f"{mine.whole:7.3f} s{case.target:7.1f} s{mine.whole / max(mine.walk, 1e-9):8,.0f}"
            f"{exponent(sizes, [cost.whole for cost in costs]):10.2f}{peak - bare:9.1f}{kept}"
        )
        for cost in costs:
            if cost.verdict is not Verdict.PROVED:
                proved = False
                print(f"  NOT PROVED: {cost.verdict.value}, {cost.how}")
    print(
        "whole: flatten + proof, and in replays of the same program (the yardstick). peak MB: above the bare imports."
    )
    return proved


def searches(divide: int) -> None:
    """Print the states that both searches look at, and how fast."""
    params = SEARCHED | {"tiles": max(1, SEARCHED["tiles"] // divide)}
    program = find("producer_consumer").build(params)
    print(f"\n{'search of a ring':22}{'states':>12}{'seconds':>10}{'states/s':>12}   {_named(params)}")
    seconds = []
    for reduced in (False, True):
        seen, took = _timed(partial(explore, program, MOST_STATES, reduced=reduced))
        seconds.append(took)
        end = "" if seen.complete else "  stopped at its limit"
        name = "reduced" if reduced else "plain (yardstick)"
        print(f"{name:22}{seen.states:12,}{took:8.3f} s{seen.states / max(took, 1e-9):12,.0f}{end}")
    print(f"reduced, in plain searches {seconds[1] / max(seconds[0], 1e-9):17.4f}")
    ring = find(f"{NINE_WARPS}:nine_warps")
    for wrong in NINE_WRONG:
        seen, took = _timed(explore, ring.build(wrong), max(1, NINE_SEARCHED // divide))
        said = f"nine warps {_named(wrong)}".rstrip()
        print(f"{said:26}{seen.states:8,}{took:8.3f} s{seen.states / max(took, 1e-9):12,.0f}")


def _named(params: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit code 1 if a case was not proved, whatever it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--divide", type=int, default=1, help="every size by this number, for a first look")
    options = parser.parse_args(arguments)
    proved = verdicts(options.divide, options.rounds)
    searches(options.divide)
    return 0 if proved else 1


if __name__ == "__main__":
    sys.exit(main())
