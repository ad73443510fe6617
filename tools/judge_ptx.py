"""The reader of PTX and the engines against every schedule of random kernels: a family of ``judge_proof.py``.

Each kernel is made as data, run in every schedule by a naive explorer (tests/support/kernel_schedules.py), written as
PTX in one of many ways (tests/support/kernel_ptx.py), read back, and checked. A proof of a kernel with a fault is an
error, and so is a refutation of one without, also where it is read up to a limit only.
"""

import random
from dataclasses import replace

from pipesim.answers.check import check
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import target_of
from tests.support.kernel_ptx import NAME, UNLIKE, ptx_of
from tests.support.kernel_schedules import Fault, faults_of
from tests.support.random_kernels import (
    LANES,
    Copy,
    Fetch,
    RandomKernel,
    Touch,
    executed,
    random_kernel,
    with_fetches,
    with_flags,
    with_last,
    with_signals,
    with_states,
)

#: A tile that nothing has written may be data of another kind: the checker says so in a note, or not at all.
_NOT_JUDGED = frozenset({Fault.UNWRITTEN})
#: Of ten kernels one has warps of which the last one reads a tile, one cp.async in place of stores, and so on.
_MORE = {9: with_last, 8: with_fetches, 7: with_states, 6: with_flags, 5: with_signals}


def read(kernel: RandomKernel, ptx: str, limits: EmulationLimits | None = None) -> Extraction:
    """What is read of a kernel's PTX, up to the limits."""
    numbers = Parameter("one", Number("u32", 1)), Parameter("unknown", Number("u32", None))
    threads = LANES * len(kernel.warps), 1, 1
    launch = Launch(NAME, (1, 1, 1), threads, parameters=(Parameter("source", Pointer()), *numbers))
    return extract(read_module(ptx, "random.ptx"), launch, limits)


def verdict_of(kernel: RandomKernel, ptx: str, limits: EmulationLimits | None = None) -> Verdict:
    """What the checker says of a kernel's PTX, up to the limits."""
    made = read(kernel, ptx, limits)
    program = made.program
    verdict = check(replace(target_of(program), kernel=made), {}, most_ranges=0).verdict
    alike = any(each.kind is Assumption.EQUAL_STORES for each in program.coverage.assumed)
    assert verdict is not Verdict.PROVED or alike == (UNLIKE in ptx)
    return verdict


def judged(seed: int) -> tuple[str, RandomKernel, str]:
    """How one kernel fares, in words; the kernel, and its PTX."""
    rng = random.Random(seed)
    kernel = random_kernel(rng)
    if seed % 10 in _MORE:
        kernel = _MORE[seed % 10](kernel, rng)
    faults = faults_of(kernel)
    ptx = ptx_of(kernel, seed)
    if faults is None:
        return "too large", kernel, ptx
    verdict = verdict_of(kernel, ptx)
    begun = verdict_of(kernel, ptx, EmulationLimits(operations=rng.randrange(1, 60)))
    if begun is Verdict.REFUTED and not faults and not mixes_proxies(kernel):
        return "FALSE ALARM", kernel, ptx  # of what was read up to a limit
    wrong = faults - _NOT_JUDGED
    if verdict is Verdict.UNKNOWN:
        return "unknown", kernel, ptx
    if verdict is Verdict.PROVED:
        return ("WRONG PROOF" if wrong else "right proof"), kernel, ptx
    if faults:
        return "refuted", kernel, ptx
    return ("of two proxies" if mixes_proxies(kernel) else "FALSE ALARM"), kernel, ptx


def mixes_proxies(kernel: RandomKernel) -> bool:
    """Whether warps write tiles that copies also write: that needs a fence, which is not explored."""
    done = [each.step for warp in range(len(kernel.warps)) for each in executed(kernel, warp)]
    copied = {each.tile for each in done if isinstance(each, Copy)}
    writes = [each for each in done if isinstance(each, Fetch) or (isinstance(each, Touch) and each.write)]
    return any(each.tile in copied for each in writes)
