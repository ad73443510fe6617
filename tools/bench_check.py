"""What a verdict for every schedule costs: ``python tools/bench_check.py [KERNEL.ptx ...] [--rounds N] [--divide N]``.

Of the protocols below at their sizes, or of kernels with launch files beside them, the seconds of processor time in
this process after the imports: *read* (the author's function run and flattened; of a kernel its text, its emulation and
its program) and *proof* (as ``pipesim check --quick``), medians of the rounds. *replays*: both in replays of the same
program, which read every operation once and make one tuple for it, so that ratios can be compared between machines.
Then the reduced search beside the plain one. ``ptx_corpus.py --table`` has the time and the memory of every kernel of
the corpus.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.budget import states_of
from pipesim.model.coverage import LENIENT
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.search.breadth_first import explore
from pipesim.targets import find

#: A protocol, its size, the parameter that ``--divide`` makes smaller, and the seconds that the verdict may take.
CASES: tuple[tuple[str, dict[str, int], str, float], ...] = (
    ("producer_consumer", {"stages": 4, "tiles": 4096, "consumer_warps": 1}, "tiles", 1.0),
    ("gemm_sm90", {"tiles": 8, "k_iters": 64}, "tiles", 0.2),
    ("gemm_sm100", {"tiles": 8, "k_iters": 64}, "tiles", 0.2),
    ("attention_sm90", {"kv_blocks": 16}, "kv_blocks", 0.5),
    ("attention_sm100", {"kv_blocks": 16}, "kv_blocks", 0.5),
    ("gemm_sm100", {"tiles": 250, "k_iters": 30}, "tiles", 1.5),
)
SEARCHED = {"stages": 3, "tiles": 8, "consumer_warps": 3}  #: a ring whose schedules can all be followed
MOST_STATES = 300_000

Result = TypeVar("Result")


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What a call returns, and its seconds of processor time."""
    begin = time.process_time()
    result = call()
    return result, time.process_time() - begin


def replay(program: Program) -> int:
    """The yardstick: read every operation once and make a tuple of as many numbers for it."""
    return sum(len((*operation[1:], 0)) for operation in program.operations)


def row(name: str, build: Callable[[], Program], rounds: int, target: float | None) -> str:
    """A line of the table."""
    seconds = []
    for _ in range(rounds):
        program, reading = timed(build)
        found, proving = timed(lambda: check(program, states_of(None, program)))  # noqa: B023
        seconds.append((reading, proving, timed(lambda: replay(program))[1]))  # noqa: B023
    reading, proving, replaying = map(statistics.median, zip(*seconds, strict=True))
    whole, operations = reading + proving, sum(map(len, program.code))
    aim = "" if target is None else f"  {'kept' if whole < target else 'over'} ({target} s)"
    return (
        f"{name[-45:]:46}{operations:12,}{reading:9.3f}{proving:9.3f}{whole:9.3f}"
        f"{whole / max(replaying, 1e-9):10,.0f}  {found.verdict.value}{aim}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="PTX files, instead of the protocols")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--divide", type=int, default=1, help="every size by this number, for a first look")
    given = parser.parse_args(argv)
    print(f"{'seconds':46}{'operations':>12}{'read':>9}{'proof':>9}{'whole':>9}{'replays':>10}")
    for kernel in given.kernels:
        print(row(kernel, lambda: find(kernel).build({}).with_strictness(LENIENT), given.rounds, None))  # noqa: B023
    for name, params, varied, target in () if given.kernels else CASES:
        sized = params | {varied: max(1, params[varied] // given.divide)}
        aim = target if given.divide == 1 else None
        print(row(f"{name} {varied}={sized[varied]}", lambda: find(name).build(sized), given.rounds, aim))  # noqa: B023
    ring = find("producer_consumer").build(SEARCHED | {"tiles": max(1, SEARCHED["tiles"] // given.divide)})
    for reduced in (False, True):
        seen, took = timed(lambda: explore(ring, MOST_STATES, reduced=reduced))  # noqa: B023
        said = f"{seen.states:,} states in {took:.3f} s, {seen.states / max(took, 1e-9):,.0f}/s"
        print(f"the {'reduced' if reduced else 'plain'} search of a ring of 3 stages and 3 consumers: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
