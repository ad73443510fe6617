"""Random kernels whose CTAs all add to one word and wait for it: claims beside all schedules of 2 to 6 CTAs."""

from random import Random
from typing import NamedTuple

from pipesim.answers.every_cta.symmetry import all_meet, most_that_meet
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module

ADD = "red.release.gpu.global.add.u32 [%rd1], {0};"
WAIT = "spin{0}: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.{1}.u32 %p2, %r8, %r7; @%p2 bra spin{0};"
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry meet(.param .u64 words) { .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [words]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; add.u32 %r3, %r1, %r2;
"""
MOST_CTAS = 6
MEETING = ("claimed", "claimed of this grid", "right", "wrong")  #: without a contradiction


class Step(NamedTuple):
    """``add`` a number, or wait while the word is less than another one (``lt.u32``, ``lt.s32``) or not it (``ne``):
    ``times`` the number of CTAs, or the least of that and of ``most`` if that is not 0, and ``more``.
    """

    what: str
    more: int
    times: int = 0
    most: int = 0

    def number(self, ctas: int) -> int:
        """Modulo the size of the word."""
        return (self.times * (min(ctas, self.most) if self.most else ctas) + self.more) % (1 << 32)


def random_steps(random: Random, ctas: int) -> list[Step]:
    """Additions, and waits for what is mostly right; some are right for one number of CTAs alone."""
    steps = [Step("add", random.randrange(1, 4))]
    for _ in range(random.randrange(1, 5)):
        so_far = sum(each.more for each in steps if each.what == "add")
        if random.random() < 0.4:
            steps.append(Step("add", random.randrange(1, 4)))
            continue
        how = random.choice(("lt.u32", "lt.u32", "lt.s32", "ne.u32"))
        wrong = random.choice((0, 0, 0, 0, 0, -1, 1, -2))
        made = Step(how, wrong, so_far, random.choice((0, 0, 0, 0, 4)))
        steps.append(random.choice((made, made, made, made, Step(how, max(ctas * so_far + wrong, 0)))))
    return steps


def ptx_of(steps: list[Step]) -> str:
    """The kernel. A wait for what depends on the number of CTAs computes it."""
    text = HEAD
    for n, (what, more, times, most) in enumerate(steps):
        if what == "add":
            text += ADD.format(more) + "\n"
            continue
        least = f"min.u32 %r4, %r2, {most};" if most else "sub.u32 %r4, %r3, %r1;"
        wait = WAIT.format(n, what[:2]).replace("setp.lt.u32", f"setp.{what}")
        text += f"{least} mul.lo.u32 %r7, %r4, {times}; add.u32 %r7, %r7, {more}; {wait}\n"
    return text + "ret; }\n"


def is_right(steps: list[Step], ctas: int) -> bool:
    """Whether no schedule of CTAs that take these steps stops before its end, or leads past a wait too early."""
    mine = [0]
    for each in steps:
        mine.append(mine[-1] + (each.more if each.what == "add" else 0))
    numbers = [each.number(ctas) for each in steps]
    open_, seen = [(0,) * ctas], {(0,) * ctas}
    while open_:
        state = open_.pop()
        value, moved = sum(mine[at] for at in state), False
        for cta, at in enumerate(state):
            what = steps[at].what if at < len(steps) else "end"
            if what == "end" or (what[:2] == "lt" and value < _signed(numbers[at], what)):
                continue
            if what == "ne.u32" and value != numbers[at]:
                continue
            if what != "add" and any(mine[other] < mine[at] for other in state):
                return False
            moved = True
            after = tuple(sorted((*state[:cta], at + 1, *state[cta + 1 :])))  # the CTAs are alike
            if after not in seen:
                seen.add(after)
                open_.append(after)
        if not moved and any(at < len(steps) for at in state):
            return False
    return True


def _signed(number: int, what: str) -> int:
    return number - (1 << 32) if what == "lt.s32" and number >> 31 else number


def judged_meeting(seed: int) -> str:
    """What is claimed of a random kernel, or what of it is ``right`` or ``wrong`` unclaimed, or the contradiction."""
    random = Random(seed)
    ctas = random.randrange(2, 6)
    steps = random_steps(random, ctas)
    right = {n: is_right(steps, n) for n in range(2, MOST_CTAS + 1)}
    module, given = read_module(ptx_of(steps), "meet.ptx"), (Parameter("words", Pointer()),)
    made = extract(module, Launch("meet", (ctas, 1, 1), (1, 1, 1), parameters=given))
    every, of_grid = most_that_meet(made) > 0, all_meet(made)
    if (every and not all(right.values())) or (of_grid and not right[ctas]):
        return f"seed {seed}: claimed {'of any number' if every else f'of {ctas}'}, and right: {right} {steps}"
    return "claimed" if every else "claimed of this grid" if of_grid else "right" if right[ctas] else "wrong"
