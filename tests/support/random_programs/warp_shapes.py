"""Random CTAs of warps that multiply in warp groups and ask for registers: some as PTX has it, some not quite.

Nothing else can be wrong with them: they have no memory and no barrier, and each warp asks for registers once.
"""

import random
from collections import defaultdict

from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Agent

_LINES = 6
_WGMMA = int(Engine.WGMMA)


def random_warp_shapes(seed: int) -> Program:
    """The program of this seed: each warp group has a list of instructions, from which one warp may deviate."""
    rng = random.Random(seed)
    warps = rng.choice([3, 4, 4, 5, 7, 8, 8, 12])
    of_group = [_instructions(rng) if rng.random() < 0.7 else [] for _ in range(-(-warps // 4))]
    unused = rng.choice([warps, warps, warps, 1])
    asks = [rng.choice([0, 0, 24, 160, 240, 256]) if unused == warps else 0 for _ in of_group]
    code: list[list[tuple[int, Operation]]] = []
    for warp in range(warps):
        mine = [(0, (int(Op.SETMAXNREG), asks[warp // 4]))] if asks[warp // 4] else []
        code.append([*mine, *of_group[warp // 4]])
    if rng.random() < 0.6:
        _deviate(rng, rng.choice(code))
    numbers = [warp for warp in range(warps + 1) if warp != unused]
    return Program(
        name="warp_shapes",
        params={},
        agents=tuple(Agent(0, number, ALL_LANES, "math", n) for n, number in enumerate(numbers)),
        barriers=(),
        accesses=(),
        tiles=(),
        code=tuple(tuple(op for _, op in each) for each in code),
        lines=tuple(tuple(line for line, _ in each) for each in code),
        sources=tuple(f"shapes.py:{n + 1}" for n in range(_LINES)),
    )


def _instructions(rng: random.Random) -> list[tuple[int, Operation]]:
    """Products, groups of them and waits, each with its line."""
    made: list[tuple[int, Operation]] = []
    for _ in range(rng.randint(1, 3)):
        products = rng.choices([(1, 8), (1, 16), (2, 8)], k=rng.randint(1, 3))
        made += [(line, (int(Op.ENGINE_WORK), _WGMMA, cycles)) for line, cycles in products]
        made.append((3, (int(Op.COMMIT), _WGMMA, -1)))
        made.append((rng.randint(4, 5), (int(Op.WAIT_GROUP), _WGMMA, rng.randint(0, 1))))
    return made


def _deviate(rng: random.Random, code: list[tuple[int, Operation]]) -> None:
    """One warp leaves out an instruction, executes one twice or at another line, or ends early; or only takes time."""
    at = rng.randrange(len(code)) if code else -1
    match rng.choice(["less", "more", "line", "end", "time"]) if code else "time":
        case "less":
            del code[at]
        case "more":
            code.insert(at, code[at])
        case "line":
            line, op = code[at]
            code[at] = (line % (_LINES - 1) + 1, op)
        case "end":
            del code[at:]
        case _:
            code.insert(max(at, 0), (0, (int(Op.WORK), 5)))


def shape_is_right(program: Program) -> bool:
    """Whether the warps do what PTX asks, said once more: four warps, the same list; and enough registers."""
    by_group: dict[int, list[tuple[list[tuple[int, ...]], int]]] = defaultdict(list)
    total = 0
    for agent, code, lines in zip(program.agents, program.code, program.lines, strict=True):
        products = [
            (line,) if op[0] == Op.ENGINE_WORK else (line, *op)
            for op, line in zip(code, lines, strict=True)
            if op[0] in (Op.ENGINE_WORK, Op.COMMIT, Op.WAIT_GROUP)
        ]
        asked = [op[1] for op in code if op[0] == Op.SETMAXNREG]
        total += 32 * (asked[-1] if asked else 0)
        by_group[agent.warp // 4].append((products, len(asked)))
    for warps in by_group.values():
        multiplies = any(products for products, _ in warps)
        if multiplies and (len(warps) < 4 or any(products != warps[0][0] for products, _ in warps)):
            return False
        if any(asked != warps[0][1] for _, asked in warps):
            return False
    return total <= 65_536
