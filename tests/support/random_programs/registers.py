"""Random warp groups that ask for registers, give some back, and wait for each other in between.

``random_registers``: of any kind, most of them hang. ``random_handovers``: without their requests they never would.
``random_meetings``: each asks several times, and they meet or signal each other in between.
"""

import random
from collections.abc import Sequence

from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Agent, Barrier


def random_registers(seed: int) -> Program:
    """The program of this seed: two or three warp groups of one or two warps."""
    rng = random.Random(seed)
    groups, warps = rng.choice([2, 2, 3]), rng.choice([1, 1, 2])
    codes: list[tuple[Operation, ...]] = []
    agents: list[Agent] = []
    bars = groups
    for group in range(groups):
        plan: list[Operation] = []
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(["take", "take", "arrive", "wait"])
            if kind == "take":
                plan.append((int(Op.SETMAXNREG), rng.choice([24, 40, 104, 168, 232])))
            elif kind == "arrive":
                plan.append((int(Op.ARRIVE), rng.randrange(bars), 1, 0, -1, 0))
            else:
                plan.append((int(Op.WAIT), rng.randrange(bars), 0, 0))
        for warp in range(warps):
            agents.append(Agent(0, 4 * group + warp, ALL_LANES, f"g{group}", warp))
            start = tuple((int(Op.INIT), b, warps) for b in range(bars)) if not group and not warp else ()
            meet = ((int(Op.BAR_SYNC), 0, 32 * groups * warps, 32),)
            codes.append((*start, *meet, *plan))
    return _program(agents, codes, bars, rng.choice([0, 104, 136, 168]))


def random_handovers(seed: int) -> Program:
    """The program of this seed: three or four warps, each a group, that signal each other in an order drawn before."""
    rng = random.Random(seed)
    groups, signals = rng.choice([3, 3, 4]), rng.randint(1, 4)
    plans: list[list[Operation]] = [[] for _ in range(groups)]
    for plan in plans:
        if rng.random() < 0.5:
            plan.append((int(Op.SETMAXNREG), rng.choice([24, 40])))
    for signal in range(signals):
        for _ in range(rng.randint(0, 3)):
            rng.choice(plans).append((int(Op.SETMAXNREG), rng.choice([24, 40, 104, 168, 232])))
        sender, *waiting = rng.sample(plans, rng.randint(2, groups))
        sender.append((int(Op.ARRIVE), signal, 1, 0, -1, 0))
        for plan in waiting:
            plan.append((int(Op.WAIT), signal, 0, 0))
    for plan in plans:
        if rng.random() < 0.3:
            plan.append((int(Op.SETMAXNREG), rng.choice([24, 40, 104, 168])))
    inits = tuple((int(Op.INIT), b, 1) for b in range(signals))
    meet = ((int(Op.BAR_SYNC), 0, 32 * groups, 32),)
    agents = [Agent(0, 4 * group, ALL_LANES, f"g{group}", 0) for group in range(groups)]
    codes = [(*(inits if not group else ()), *meet, *plan) for group, plan in enumerate(plans)]
    return _program(agents, codes, signals, rng.choice([104, 104, 136, 168]))


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
    return _program(agents, codes, bars, rng.choice([0, 104, 136, 168]))


def _program(agents: Sequence[Agent], codes: Sequence[tuple[Operation, ...]], bars: int, launched: int) -> Program:
    return Program(
        name="drawn",
        params={},
        agents=tuple(agents),
        barriers=tuple(Barrier(0, "b", b) for b in range(bars)),
        accesses=(),
        tiles=(),
        code=tuple(codes),
        lines=tuple((0,) * len(code) for code in codes),
        sources=("drawn:1",),
        named_barriers=((0, 0),),
        launch_registers=launched,
    )
