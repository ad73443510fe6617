"""Random works of the operations of a program, and profiles of which some have constants for them."""

import random
from dataclasses import replace

from pipesim.model.groups import LIFE, LOOP_MARKS
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.tables import Work
from pipesim.timed.profile import AT_LEAST_ONE, FIELDS, Profile, load_profile

_NAMES = ("made/x", "made/y", "made/z")
_AMOUNTS = ("alu", "fma", "exp2", "shuffles", "shared_bytes", "fresh_copies")


def drawn(seed: int) -> Profile:
    """A profile of numbers from 0 on, many of them equal, so that things fall into one cycle."""
    draw = random.Random(seed)
    values = {name: draw.choice([0, 1, 2, draw.randint(0, 60)]) for name in FIELDS}
    values |= {name: draw.randint(1, 20_000) for name in FIELDS if "bytes" in name or name in AT_LEAST_ONE}
    return replace(load_profile("h100"), name=f"drawn {seed}", values=values)


def with_works(program: Program, draw: random.Random) -> Program:
    """The program with a work of its own for two operations of five."""
    sources, works, lines = list(program.sources), [], []
    for code, at in zip(program.code, program.lines, strict=True):
        mine = list(at)
        for pc, op in enumerate(code):
            if op[0] not in LOOP_MARKS | LIFE and draw.random() < 0.4:
                mine[pc] = len(sources)
                works.append(_work(len(sources), draw, multiplies=op[0] == Op.ENGINE_WORK))
                sources.append(f"work {len(works)}")
        lines.append(tuple(mine))
    return replace(program, sources=tuple(sources), lines=tuple(lines), work=tuple(works))


def with_works_of_lines(program: Program, draw: random.Random) -> Program:
    """The program with a work for half of its source lines: what comes again in a loop costs the same again."""
    lines = {
        (line, op[0] == Op.ENGINE_WORK)
        for code, at in zip(program.code, program.lines, strict=True)
        for op, line in zip(code, at, strict=True)
        if op[0] not in LOOP_MARKS | LIFE
    }
    works = {
        line: _work(line, draw, multiplies=multiplies) for line, multiplies in sorted(lines) if draw.random() < 0.5
    }
    return replace(program, work=tuple(works.values()))


def _work(line: int, draw: random.Random, *, multiplies: bool) -> Work:
    if multiplies:
        return Work(line, draw.choice(_NAMES), (("mma", draw.choice([2048, 32768])), ("products", draw.randint(1, 4))))
    kinds = draw.sample(_AMOUNTS, draw.randint(0, 2))
    amounts = tuple((kind, draw.randint(0, 40) * (20 if kind == "shared_bytes" else 1)) for kind in kinds)
    return Work(line, draw.choice(_NAMES), amounts)


def with_constants(seed: int, draw: random.Random) -> Profile:
    """A random or a shipped profile, half of them with constants for one of these works."""
    base = drawn(seed) if draw.random() < 0.7 else load_profile(draw.choice(["h100", "h200"]))
    values = dict(base.values)
    if base.name.startswith("drawn"):
        values |= {name: draw.choice([0, 500, 3_000, 20_000]) for name in values if name.startswith("class.")}
    if draw.random() < 0.5:
        values |= {"made/x.cycles": draw.choice([0, 3, 50]), "made/x.permille": draw.choice([0, 500, 1_300])}
    if draw.random() < 0.5:
        values |= {"made/y.cycles": draw.choice([0, 1, 200])}
    return replace(base, values=values)
