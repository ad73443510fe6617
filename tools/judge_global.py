"""Compare what is said of global memory with brute force over all threads, on random kernels.

``python tools/judge_global.py --seeds 2000 [--first 0]`` ends with 1 at a contradiction: a race that is proved to be
none, or a finding where threads cannot meet.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.check import check
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from tests.support.random_global_kernels import GlobalKernel, random_kernel


def judged(kernel: GlobalKernel) -> str:
    """What is said: that it is right or wrong, that something is not judged, or assumed; or a contradiction."""
    report, races = check(kernel.target(), {}, quick=True), kernel.races()
    if report.verdict is Verdict.REFUTED:
        return "wrong" if races else "CONTRADICTION: refuted, and no bytes meet"
    if report.scope.not_judged:
        return "not judged"
    if races and Assumption.EQUAL_STORES in report.scope.kinds:
        return "assumed"
    return "CONTRADICTION: proved, and bytes meet" if races else "right"


def main() -> int:
    """Compare what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    given = parser.parse_args()
    found: Counter[str] = Counter()
    for seed in range(given.first, given.first + given.seeds):
        said = judged(random_kernel(seed))
        found[said] += 1
        if said.startswith("CONTRADICTION"):
            print(f"seed {seed}: {said}", flush=True)
    print(", ".join(f"{count:,} {said}" for said, count in sorted(found.items())))
    return int(any(said.startswith("CONTRADICTION") for said in found))


if __name__ == "__main__":
    raise SystemExit(main())
