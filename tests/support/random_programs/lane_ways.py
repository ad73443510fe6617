"""What lanes of one warp do on two ways of a branch, at random, as PTX, and the same done by two warps.

The lanes are scheduled independently, as warps are, so that one is right where the other is.
"""

import random

from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of

_ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r3+{}];"
_WAIT = "w{0}: mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+{1}], {2};\n @!%p9 bra w{0};"
_ACCESSES = "ld.shared.u32 %r9, [tile+{}];", "st.shared.u32 [tile+{}], %r0;"
_STORED = " st.shared.u64 [tile], 0;\n fence.mbarrier_init"
_ONE = "@%p4 "  #: one lane of a warp, or of those that are together


def random_ways(seed: int, *, apart: bool) -> Program:
    """The program of this seed; ``apart``: the lanes of each of the two ways are a warp of their own."""
    rng = random.Random(seed)
    counts = [rng.choice((1, 1, 2)) for _ in range(2)]
    agents = _drawn(rng, counts)
    first, second = ("".join(f" {line}\n" for line in each) for each in agents[:2])
    ways = [first.replace(_ONE, ""), second, "@%p3"]
    ways = ways if rng.random() < 0.5 else [ways[1], ways[0], "@!%p3"]
    both = " {2} bra second;\n{0} bra joined;\nsecond:\n{1}joined:\n".format(*ways)
    both += rng.choice(("", " bar.warp.sync -1;\n"))
    warps = [first, second] if apart else [both]
    warps += ["".join(f" {line}\n" for line in each) for each in agents[2:]]
    body = SET_UP.format(first=counts[0], count=counts[1]).replace(" fence.mbarrier_init", _STORED)
    body += " setp.ne.u32 %p3, %r2, 0;\n setp.eq.u32 %p4, %r2, 1;\n"
    for n, code in enumerate(warps):
        body += f" setp.ne.u32 %p5, %r1, {n};\n @%p5 bra past{n};\n{code}past{n}:\n"
    return program_of(body, len(warps))


def _drawn(rng: random.Random, counts: list[int]) -> list[list[str]]:
    """What each agent does, along a schedule in which all waits end; then, some of it in another order."""
    agents: list[list[str]] = [[] for _ in range(rng.choice((2, 3, 3, 4)))]
    arrived = [0, 0]
    for n in range(rng.randint(5, 9)):
        mine, bar = rng.choice(agents), rng.randrange(2)
        if rng.random() < 0.3:
            mine.append(_ONE + _ARRIVE.format(8 * bar))
            arrived[bar] += 1
        elif (done := arrived[bar] // counts[bar]) and rng.random() < 0.5:
            mine.append(_WAIT.format(n, 8 * bar, done - 1 & 1))
        else:
            mine.append(_ONE + rng.choice(_ACCESSES).format(4 * rng.randrange(2)))
    if rng.random() < 0.3:
        rng.shuffle(rng.choice(agents))
    return agents


def of_ways(seed: int) -> bool:
    """Of lanes on two ways it is proved what of two warps is refuted, or the other way round."""
    found = {check(random_ways(seed, apart=apart)).verdict for apart in (False, True)}
    return found == {Verdict.PROVED, Verdict.REFUTED}
