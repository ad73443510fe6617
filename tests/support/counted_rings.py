"""Rings whose two warps count by two formulas of the CTA and of ``n``: right, or wrong in some CTA or size.

Which CTAs and sizes hang is known by arithmetic alone, so verdicts are compared with every CTA and many sizes. What is
counted is steps: warp 1 waits for one that warp 0 does not fill, or warp 0 for one of two stages that warp 1 does not
give back. Or the bytes of a box, of which an mbarrier expects another number than are copied; or the steps before the
last tile, from which on warp 1 is in another stage and phase.
"""

import operator
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pipesim.answers.check import check
from pipesim.answers.every_size.classes import AnyWord
from pipesim.model.finding import Verdict
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.random_cta_kernels import ring_of_cta

CTAS, SIZES = 12, 120
_STAGES = 2
_MOST = 100  #: steps at the launch's size
Step = tuple[str, str, str, str]  #: an operator, a result, and two operands, of which ``x`` is the CTA

#: Numbers of steps as kernels have them.
FORMULAS = {
    "tail": "mul d x 4; max c n d; sub c c d; min d c 4",
    "last CTA": "add c n 3; shr c c 2; sub e 12 1; eq e x e; rem g n 4; mul e e g; add d c e",
    "odd K": "add c n 15; div d c 16; rem e n 16; min e e 1; add d d e; and e n 1; add d d e",
    "prefetch": "div c n 8; min e c 3; max c c 3; sub c c 3; add d c e; rem e x 5; add d d e",
    "causal": "add c x 1; mul c c 32; min c c n; add c c 15; div d c 16",
    "window": "mul c x 2; add e c 5; min e e n; min c c e; sub d e c",
    "groups": "rem c x 4; mul e c 3; div g x 4; add e e g; add e e n; rem e e 7; add d e 1; div c n 9; add d d c",
    "split": "div c n 12; rem e n 12; lt e x e; add d c e",
    "stream": "mul c n x; div c c 12; add e x 1; mul e e n; div e e 12; sub d e c",
    "early exit": "lt c x n; rem e x 3; add e e 2; mul d c e",
    "guard": "le c x n; mul d c 3",
    "hand-out": "add c n 11; sub c c x; div d c 12",
}
_OPS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.floordiv, "rem": operator.mod,
    "min": min, "max": max, "and": operator.and_, "shr": operator.rshift, "eq": operator.eq, "lt": operator.lt,
    "ge": operator.ge, "le": operator.le,
}  # fmt: skip
_INSTEAD = {"min": "max", "max": "min", "eq": "ge", "lt": "le", "add": "sub", "rem": "min"}


class CountedRing(NamedTuple):
    """The formulas of both warps, the size of the launch, and what is counted: steps, a box, or steps before a tile."""

    name: str
    filled: tuple[Step, ...]
    emptied: tuple[Step, ...]
    n: int
    counts: str = "steps"

    def hangs(self, x: int, n: int) -> bool:
        """Whether a CTA does at a size."""
        filled, emptied = steps_of(self.filled, x, n), steps_of(self.emptied, x, n)
        if self.counts == "box":
            return (filled ^ emptied) & 3 != 0
        if self.counts == "tile":
            return (filled - emptied) % (2 * _STAGES) != 0
        return emptied > filled or filled > emptied + _STAGES

    @property
    def counted(self) -> list[tuple[int, int]]:
        """By both warps, in all CTAs at some sizes."""
        at = [(x, n) for n in {*range(SIZES), self.n} for x in range(CTAS)]
        return [(steps_of(self.filled, *each), steps_of(self.emptied, *each)) for each in at]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The CTAs and sizes that hang, of all CTAs and some sizes."""
        return [(x, n) for n in {*range(SIZES), self.n} for x in range(CTAS) if self.hangs(x, n)]


def steps_of(formula: tuple[Step, ...], x: int, n: int) -> int:
    """The number of steps, of 32 bits."""
    known = {"x": x, "n": n}
    for op, result, *operands in formula:
        a, b = (known[each] if each in known else int(each) for each in operands)
        known[result] = int(_OPS[op](a, b)) & 0xFFFFFFFF
    return known["d"]


#: What is put in where not steps are counted. In another phase of the same stage no warp need wait: not taken.
_PUT_IN = {
    "steps": ("", ""),
    "box": (
        " @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r56];",
        """ and.b32 %r60, %r30, 3;
 and.b32 %r61, %r31, 3;
 mad.lo.u32 %r60, %r60, 16, 16;
 mad.lo.u32 %r61, %r61, 16, 16;
 mad.lo.u32 %r63, %r55, 64, %r4;
 @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r56], %r61;
 @!%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r63], [%rd1], %r60, [%r56];""",
    ),
    "tile": (
        " and.b32 %r55, %r54, 1;\n mad.lo.u32 %r56, %r55, 8, %r3;\n shr.u32 %r57, %r54, 1;",
        """ sub.u32 %r60, %r31, %r30;
 setp.ge.and.u32 %p6, %r54, %r30, %p1;
 selp.u32 %r60, %r60, 0, %p6;
 add.u32 %r60, %r60, %r54;
 and.b32 %r55, %r60, 1;
 mad.lo.u32 %r56, %r55, 8, %r3;
 shr.u32 %r57, %r60, 1;""",
    ),
}


def random_ring(seed: int, *, wrong: bool) -> CountedRing:
    """One of which warp 1 has another number or operator in its formula. ``wrong``: CTA 0 of the launch is right."""
    rng = random.Random(seed)
    while True:
        name = rng.choice(list(FORMULAS))
        filled: tuple[Step, ...] = tuple(tuple(each.split()) for each in FORMULAS[name].split("; "))  # type: ignore[misc]
        at = rng.randrange(len(filled))
        op, result, a, b = filled[at]
        others = [(_INSTEAD[op], result, a, b)] if op in _INSTEAD else []
        others += [(op, result, a, str(int(b) + by)) for by in (-1, 1) if b.isdecimal() and int(b) + by > 0]
        if not others:
            continue
        emptied = (*filled[:at], rng.choice(others), *filled[at + 1 :])
        counts = rng.choice(("steps", "steps", "box", "tile"))
        made = CountedRing(name, filled, emptied, rng.choice((8, 12, 16, 24, 36, 48, 64, 96)), counts)
        if counts == "tile" and any((a - b) % 4 == 2 for a, b in made.counted):
            continue
        steps = [steps_of(each, x, made.n) for each in made[1:3] for x in range(CTAS)]
        if max(steps) < _MOST and (not wrong or (made.places and not made.hangs(0, made.n))):
            return made


def judged(ring: CountedRing, *, sizes: bool) -> str:
    """What is wrong with the verdict on it, "" if nothing is; ``unknown``; ``proved elsewhere``:
    at sizes that do not hang. ``sizes``: also about every size."""
    made = "\n".join((*_ptx(ring.filled, 30, 30), *_ptx(ring.emptied, 36, 31)))
    trips, other = 30, 31
    if ring.counts != "steps":
        made += f"\n add.u32 %r62, %r30, 3;{' mov.u32 %r62, 3;' * (ring.counts == 'box')}"
        trips = other = 62
    text, launch = ring_of_cta(made, (CTAS, 1, 1), ring.n, trips=trips, other=other, most=0x7FFFFFFF)
    text = text.replace(*_PUT_IN[ring.counts])
    n, *others = launch.parameters
    launch = replace(launch, parameters=(n._replace(name="n"), *others))
    with TemporaryDirectory() as folder:
        file = written(Path(folder) / "ring.ptx", text, launch)
        report = check(find(file), {}, quick=True, any_words=(AnyWord("n"),) if sizes else ())
    if report.verdict is Verdict.REFUTED:
        at = {"cta": 0, "n": ring.n, **report.refutations[0].settings}
        return "" if ring.hangs(at["cta"], at["n"]) else f"refuted at {at}"
    if report.verdict is Verdict.UNKNOWN:
        return "unknown"
    least, last = (report.ranges[0].least, report.ranges[0].last) if sizes else (ring.n, ring.n)
    missed = [each for each in ring.places if least <= each[1] <= last]
    if missed:
        return f"proved, and hangs at {missed[0]}"
    return "proved elsewhere" if ring.places else ""


def _ptx(formula: tuple[Step, ...], first: int, result: int) -> list[str]:
    """The instructions, with registers from the second after this one on."""
    registers, found = {"x": "%r20", "n": "%r22"}, []
    for op, to, a, b in formula:
        left, right = registers.get(a, a), registers.get(b, b)
        if a.isdecimal():
            found.append(f" mov.u32 %r49, {a};")
            left = "%r49"
        into = registers.setdefault(to, f"%r{first + len(registers)}")
        if op in ("eq", "lt", "ge", "le"):
            found += [f" setp.{op}.u32 %p20, {left}, {right};", f" selp.u32 {into}, 1, 0, %p20;"]
        else:
            kind = {"mul": "mul.lo.u32", "and": "and.b32"}.get(op, f"{op}.u32")
            found.append(f" {kind} {into}, {left}, {right};")
    return [*found, f" mov.u32 %r{result}, {registers['d']};"]
