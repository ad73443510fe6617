"""What is said of global memory against brute force over all threads of random kernels.

It is a family of ``judge_proof.py``.
"""

from pipesim.answers.check import check
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from tests.support.random_global_kernels import GlobalKernel, random_kernel


def judged(kernel: GlobalKernel) -> str:
    """What is said: that it is right or wrong, that something is not judged, or assumed; or a contradiction."""
    report, races = check(kernel.target(), {}, quick=True), kernel.races()
    if report.verdict is Verdict.REFUTED:
        return "wrong" if races else "REFUTED, AND NO BYTES MEET"
    if report.scope.not_judged:
        return "not judged"
    if races and Assumption.EQUAL_STORES in report.scope.kinds:
        return "assumed"
    return "PROVED, AND BYTES MEET" if races else "right"


def judge(seed: int) -> list[str]:
    """The same of the kernel of a seed."""
    return [judged(random_kernel(seed))]
