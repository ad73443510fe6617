"""The reader and the engines against every schedule of random kernels (``tools/judge_proof.py`` has many more)."""

import random

import pytest

from tests.support.kernel_ptx import ptx_of
from tests.support.kernel_schedules import Fault, faults_of
from tests.support.random_kernels import Arrive, Copy, Loop, Named, Only, RandomKernel, Touch, Wait, random_kernel
from tools.judge_ptx import judged

RING = (
    Loop(4, (Wait(1, 1), Touch(0, write=True), Arrive(0, 32, 1))),
    Loop(4, (Wait(0, 0), Touch(0, write=False), Arrive(1, 1, 1))),
)


def ring(*changes: tuple[int, object], stages: int = 2, counts: tuple[int, ...] = (32, 1)) -> RandomKernel:
    warps = [(each,) for each in RING]
    for warp, steps in changes:
        warps[warp] = steps  # type: ignore[call-overload]
    return RandomKernel(stages, counts, 1, tuple(warps))


@pytest.mark.parametrize(
    ("kernel", "faults"),
    [
        (ring(), set()),
        (ring(counts=(32, 2)), {Fault.DEADLOCK}),
        (ring(counts=(16, 1)), {Fault.TOO_MANY}),
        (ring((0, (Loop(3, RING[0].body),))), {Fault.DEADLOCK}),
        (ring((1, (Loop(4, RING[1].body[1:]),))), {Fault.RACE, Fault.UNWRITTEN, Fault.TOO_MANY}),
        (ring((0, (Loop(4, RING[0].body[1:]),))), {Fault.RACE, Fault.TOO_MANY, Fault.DEADLOCK}),
        (ring((0, (RING[0], Named(1, 64, waits=True)))), {Fault.DEADLOCK}),
        (ring((0, (Named(1, 64, waits=False), RING[0])), (1, (Named(1, 64, waits=True), RING[1]))), set()),
        (ring((0, (Named(1, 64, waits=True),)), (1, (Named(1, 96, waits=True),))), {Fault.BARRIER, Fault.DEADLOCK}),
        (ring((0, (Loop(4, (Wait(1, 1), Arrive(0, 1, 1, 128), Copy(0, 0))),)), counts=(1, 1)), set()),
        (
            ring((0, (Loop(4, (Wait(1, 1), Arrive(0, 1, 1, 64), Copy(0, 0))),)), counts=(1, 1)),
            {Fault.DEADLOCK, Fault.RACE, Fault.UNWRITTEN},
        ),
        (ring((1, (Loop(4, (Only(3, inside=False, body=RING[1].body),)),))), set()),
    ],
)
def test_the_explorer_of_schedules(kernel, faults):
    found = faults_of(kernel)
    assert found is not None
    assert (found == set()) == (faults == set()), found


def test_the_ptx_of_a_seed_is_always_the_same_and_of_others_another():
    kernel = ring()
    assert ptx_of(kernel, 3) == ptx_of(kernel, 3)
    assert len({ptx_of(kernel, seed) for seed in range(20)}) == 20
    assert random_kernel(random.Random(5)) == random_kernel(random.Random(5))


@pytest.mark.sampled(10, 14)
@pytest.mark.parametrize("seed", [*range(5), 25, *range(6, 20), 37, 209, 578, 869])
def test_every_verdict_is_right(seed):
    of_words = {"unknown"} if seed % 10 in (6, 9) else set()
    assert judged(seed)[0] in {"right proof", "refuted", "of two proxies"} | of_words


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, pytest.param(160, marks=pytest.mark.long)])
def test_every_verdict_is_right_of_many(count):
    said = [judged(seed)[0] for seed in range(100_000, 100_000 + count)]
    assert set(said) <= {"right proof", "refuted", "of two proxies", "unknown", "too large"}
    assert min(said.count("right proof"), said.count("refuted")) > count // 4
