"""Compiled warps against threads that are interpreted one instruction at a time, on random kernels by seed."""

from random import Random

import pytest

from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.code import Code
from pipesim.ptx.emulate.constants import Constants
from pipesim.ptx.emulate.effects.table import effect_of
from pipesim.ptx.emulate.regions import Regions
from pipesim.ptx.emulate.stop import Status
from pipesim.ptx.emulate.values import Unknown, of_lane
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.flow.graph import graph_of
from pipesim.ptx.flow.inline import inline_calls
from pipesim.ptx.flow.slice import Slice
from pipesim.ptx.flow.uses import uses_of
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Launch, Number, Parameter
from pipesim.ptx.text.read import read_module
from tests.support.lanes import slow_but
from tests.support.naive_ptx import LONGS, PREDICATES, THREADS, WORDS, Kernel, run_thread

SEEDS = range(60)


def emulated(text: str, open_word: int | None) -> EmulatedWarp:
    """The one warp of a kernel after it has run, nothing of which was left out by the slice."""
    module = read_module(text, "random.ptx")
    function = inline_calls(module, module.entries[0])
    graph, uses = graph_of(function), uses_of(function)
    every = frozenset(range(len(function.body)))
    code = Code(function, Regions(function, graph, every, uses), Slice(every, every, {}, (), ()))
    code.effect_of = effect_of
    parameters = (Parameter("", Number("u32", open_word)),)
    launch = Launch("kernel", (1, 1, 1), (THREADS, 1, 1), (1, 1, 1), parameters=parameters)
    cluster = Cluster(code, launch, Image(launch, function), Constants(module))
    cluster.run()
    return cluster.warps[0]


@pytest.mark.sampled(12, 36)
@pytest.mark.parametrize("seed", slow_but(SEEDS[:12], SEEDS))
def test_a_warp_computes_what_its_threads_compute(seed: int) -> None:
    kernel, open_word = Kernel(seed), Random(seed).getrandbits(32)
    warp = emulated(kernel.text, open_word)
    assert warp.status is Status.ENDED
    for thread in range(THREADS):
        expected = run_thread(kernel.lines, thread, open_word)
        for name in (*WORDS, *LONGS, *PREDICATES):
            assert of_lane(warp.R[warp.code.register(name)], thread) == expected[name], (name, thread)


@pytest.mark.slow
def test_what_is_known_without_the_open_word_is_so_whatever_it_is() -> None:
    """A value may be unknown then; where it is known, every thread has it for any value of the word."""
    known = unknown = stopped = 0
    for seed in SEEDS:
        kernel = Kernel(seed)
        warp = emulated(kernel.text, None)
        if warp.status is not Status.ENDED:
            stopped += 1
            continue
        for thread in (0, 1, 17, 31):
            expected = run_thread(kernel.lines, thread, Random(seed * thread).getrandbits(32))
            for name in (*WORDS, *LONGS, *PREDICATES):
                value = of_lane(warp.R[warp.code.register(name)], thread)
                if isinstance(value, Unknown):
                    unknown += 1
                else:
                    known += 1
                    assert value == expected[name], (seed, name, thread)
    assert known > 1000
    assert unknown > 900
    assert stopped < len(SEEDS) // 2
