"""Random programs of which some accesses may not happen, and some copies are perhaps smaller than they are taken to be.

A producer copies or writes a tile for a consumer, and bystanders access parts of it; some of them wait for something.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

from pipesim.model.groups import ASYNC_ACCESS
from pipesim.model.ops import Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import LEAST_COPY, OPEN_VALUE, OPEN_WORD, SIZE_INFERRED, Access
from tests.support.small_programs import build

_PARTS = [(0, 64), (0, LEAST_COPY), (0, 32), (16, 16), (32, 32)]  #: first byte and bytes of the tile's accesses


def random_perhaps(seed: int) -> Program:
    """The program of this seed: its ``unsure`` says which operations may not happen, and why."""
    rng = random.Random(seed)
    copied, full = rng.random() < 0.6, 0
    fill = f"ARRIVE barrier={full} expect=64; TMA_LOAD barrier={full} access=0 bytes=64 item=1"
    wrote = f"WRITE access={rng.randrange(5)} item=1; ARRIVE barrier={full}"
    meet = "BAR_SYNC named_barrier=0 threads=128 lanes=32; "
    codes = [f"INIT barrier=0 count=1; FENCE fence=0; {meet}" + (fill if copied else wrote)]
    for _ in range(3):
        steps = ["WAIT barrier=0 parity=0"] if rng.random() < 0.6 else []
        for _ in range(rng.choice([0, 1, 1, 2])):
            what = rng.choice(["READ access={} item=-1", "WRITE access={} item=1"])
            steps.insert(rng.randint(0, len(steps)), what.format(rng.randrange(5)))
        codes.append(meet + "; ".join(steps))
    program = build(*codes, accesses=tuple(Access(Space.SHARED, 0, *part) for part in _PARTS))
    marks: list[tuple[int, int, int]] = []
    for agent, code in enumerate(program.code):
        for pc, op in enumerate(code):
            if op[0] == Op.TMA_LOAD and rng.random() < 0.7:
                marks.append((agent, pc, SIZE_INFERRED))
            elif op[0] in (Op.READ, Op.WRITE) and rng.random() < 0.6:
                marks.append((agent, pc, rng.choice([OPEN_VALUE, OPEN_WORD])))
    return replace(program, unsure=tuple(marks))


def may_be(program: Program, *, small: bool) -> Iterator[Program]:
    """What the kernel may do instead: none of what a word of the launch decides happens, of what values decide one or
    none. ``small``: copies have their fewest bytes, not those that were inferred.
    """
    marks = {(agent, pc): why for agent, pc, why in program.unsure}
    for one in (None, *(at for at, why in marks.items() if why == OPEN_VALUE)):
        gone = {at for at, why in marks.items() if why <= OPEN_WORD and at != one}
        code = tuple(
            tuple(
                _smaller(op) if small and marks.get((agent, pc)) == SIZE_INFERRED else op
                for pc, op in enumerate(each)
                if (agent, pc) not in gone
            )
            for agent, each in enumerate(program.code)
        )
        yield replace(program, code=code, lines=tuple((0,) * len(each) for each in code), unsure=())


def _smaller(op: Operation) -> Operation:
    """The copy into the first bytes of the same tile."""
    return (*op[:ASYNC_ACCESS], 1, *op[ASYNC_ACCESS + 1 :])
