"""No change that is looked at ends in an exception, whatever the program: of wrong ones of all sizes and at random."""

from collections.abc import Callable
from itertools import product

import pytest

from pipesim.errors import PipesimError
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.repair.correction import candidates
from pipesim.prove.repair.edits import apply_repair, place_of
from pipesim.prove.repair.wording.sentences import sentence
from tests.support.mistakes.kernel_mistakes import KERNEL_MISTAKES
from tests.support.mistakes.memory_mistakes import MEMORY_MISTAKES
from tests.support.mistakes.ring_mistakes import RING_MISTAKES
from tests.support.random_programs.all_operations import random_operations
from tests.support.random_programs.copies import random_copies
from tests.support.random_programs.corners import random_corners
from tests.support.random_programs.engines import random_engines
from tests.support.random_programs.exits import random_exits
from tests.support.random_programs.lanes import random_lanes
from tests.support.random_programs.lives import random_lives
from tests.support.random_programs.registers import random_registers
from tests.support.random_programs.warp_shapes import random_warp_shapes

EVERY = RING_MISTAKES | KERNEL_MISTAKES | MEMORY_MISTAKES
RANDOM: tuple[Callable[[int], Program], ...] = (
    random_operations, random_copies, random_corners, random_engines, random_exits, random_lives, random_registers,
    random_warp_shapes, lambda seed: random_lanes(seed, apart=bool(seed % 2)),
)  # fmt: skip


def try_all(program: Program) -> None:
    for refuted in check(program, max_states=300).refutations:
        for n, (_, repair) in enumerate(candidates(program, refuted, program)):
            apply_repair(program, repair)
            assert sentence(repair)
            if not n % 7:
                place_of(program, repair)


@pytest.mark.sampled(10, 30)
@pytest.mark.parametrize("seed", range(2000))
def test_of_random_programs(seed: int) -> None:
    try_all(RANDOM[seed % len(RANDOM)](seed))


@pytest.mark.sampled(1, 8)
@pytest.mark.parametrize("name", EVERY)
def test_of_mistakes_at_small_sizes(name: str) -> None:
    sizes = EVERY[name].right.__annotations__.keys() - {"return"}
    for several, (parameter, value) in product((False, True), product(sizes, (0, 1, 3))):
        try:
            program = EVERY[name].wrong(**(dict.fromkeys(sizes, value) if several else {parameter: value})).flatten()
        except PipesimError:
            continue  # there is no program of this size
        try_all(program)
