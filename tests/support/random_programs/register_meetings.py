"""Random warp groups that take registers and give them back, and meet or signal each other in between."""

from __future__ import annotations

import random

from pipesim.model.ops import Op, Operation
from pipesim.model.program import ALL_LANES, Agent, Barrier, Program


def random_meetings(seed: int) -> Program:
    """The program of this seed: two or three warp groups of one or two warps, of which each asks several times."""
    rng = random.Random(seed)
    groups, warps = rng.choice([2, 2, 3]), rng.choice([1, 1, 2])
    meet: Operation = (int(Op.BAR_SYNC), 0, 32 * groups * warps, 32)
    plans: list[list[Operation]] = [[] for _ in range(groups)]
    bars = 0
    for _ in range(rng.randint(2, 5)):
        kind = rng.choice(["take", "take", "take", "meet", "signal"])
        if kind == "meet":
            for plan in plans:
                plan.append(meet)
        elif kind == "take":
            rng.choice(plans).append((int(Op.SETMAXNREG), rng.choice([24, 40, 104, 168, 232])))
        else:
            sender, receiver = rng.sample(range(groups), 2)
            plans[sender].append((int(Op.ARRIVE), bars, 1, 0, -1, 0))
            plans[receiver].append((int(Op.WAIT), bars, 0, 0))
            bars += 1
    agents = [
        Agent(0, 4 * group + warp, ALL_LANES, f"g{group}", warp) for group in range(groups) for warp in range(warps)
    ]
    inits = tuple((int(Op.INIT), bar, warps) for bar in range(bars))
    codes = [(*(inits if not n else ()), meet, *plans[n // warps]) for n in range(len(agents))]
    return Program(
        name="drawn",
        params={},
        agents=tuple(agents),
        barriers=tuple(Barrier(0, "b", bar) for bar in range(bars)),
        accesses=(),
        tiles=(),
        code=tuple(codes),
        lines=tuple((0,) * len(code) for code in codes),
        sources=("drawn:1",),
        named_barriers=((0, 0),),
        launch_registers=rng.choice([0, 104, 136, 168]),
    )
