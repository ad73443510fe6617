"""Random CTAs of one thread that talk by words of global memory, as PTX and described, and what schedules can do.

The explorer carries out every order of their operations, with a clock for each thread, word and fence: it knows nothing
of barriers, and nothing of how the words are used (PTX ISA, "Memory Consistency Model": release and acquire patterns).
"""

import random
from typing import NamedTuple, TypeVar

from pipesim import Fence, Order, Protocol, Scope, Warp
from pipesim.answers.check import check
from pipesim.answers.every_cta.together import Together, programs_together
from pipesim.model.coverage import LENIENT, Assumption, NotJudgedKind
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check as prove
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target, target_of

Clock = tuple[int, ...]
WORDS, CELLS = 3, 4
_T = TypeVar("_T")
MOST_STATES = 60_000


class Step(NamedTuple):
    """One operation. ``what``: store, add, wait, fence, write, read, take (a lock), count (an atomic whose answer is
    ``value``, or else ``skip`` operations are left out), see (the same of a wait for any value but 0), look (the same
    of a load), try (the same of a lock that is free), swap (an atomic store), poll (a wait by an atomic), or update (a
    strong load and store). ``how``: release, acquire, acq_rel, relaxed, ``cta``, or of a store ``weak``.
    """

    what: str
    at: int = 0
    value: int = 0
    how: str = ""
    skip: int = 0


Threads = list[list[Step]]


def random_threads(seed: int, counts: tuple[int, ...] = (2, 2, 3)) -> Threads:
    """A protocol that may be right, of 2 or 3 threads, with up to two random changes."""
    rng = random.Random(seed)
    count = rng.choice(counts)
    made = rng.choice((_barrier, _messages, _locks, _last, _turns, _any))(rng, count)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        _change(rng, made)
    return made


def random_talk(seed: int, counts: tuple[int, ...] = (2, 3)) -> Threads:
    """The same, of protocols that ask more: which flag it is, several words under one lock, updates under a lock."""
    rng = random.Random(seed)
    makers = [_counts_under_a_lock, _updates_under_a_lock, _tries, _tickets]
    makers += [_look_back, _looks] if max(counts) <= WORDS else []
    made = rng.choice(makers)(rng, rng.choice(counts))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        _change(rng, made)
    return made


def random_weak(seed: int) -> Threads:
    """The same, and protocols in which the last one counts back, with weak stores among them."""
    rng = random.Random(seed)
    made = (random_threads, random_talk, lambda at: _counts_back(rng, 2 + at % 2))[seed % 3](seed)
    for _ in range(rng.choice((1, 1, 2))):
        mine, at = rng.choice(made), rng.randrange(WORDS)
        stores = [n for n, step in enumerate(mine) if step.what == "store"]
        if stores and rng.random() < 0.7:
            mine[stores[-1]] = mine[stores[-1]]._replace(how="weak")
        elif not any(step.skip for step in mine):
            mine.insert(rng.choice((0, len(mine))), Step("store", at, rng.randrange(2), "weak"))
    return made


def _counts_back(rng: random.Random, count: int) -> Threads:
    made = []
    for _ in range(count):
        last = [Step("store", 0, 0, rng.choice(("weak", "relaxed"))), *_strong(rng, Step("add", 1, 1, "release"))]
        fence = [Step("fence")] * (rng.random() < 0.7)
        mine = [*fence, Step("count", 0, count - 1, "relaxed", len(last))]
        after = [
            *_strong(rng, Step("wait", 1, 1, "acquire")),
            Step("add", 0, 1, "relaxed"),
            Step("wait", 0, count, "acquire"),
        ]
        made.append(mine + last + after[: rng.randrange(len(after) + 1)])
    return made


def _look_back(rng: random.Random, count: int) -> Threads:
    made: Threads = []
    for me in range(count):
        mine: list[Step] = []
        if me:
            seen = _strong(rng, Step("see", me - 1, 2, "acquire"))
            seen[0] = seen[0]._replace(skip=len(seen))
            mine = [*seen, Step("read", 2 * me - 1)]
            mine += [*(seen[1:]), Step("read", 2 * me - 2)]
        if me < 2:
            for value in (1, 2):
                mine += [Step("write", 2 * me + value - 1), *_strong(rng, Step("store", me, value, "release"))]
        made.append(mine)
    return made


def _counts_under_a_lock(rng: random.Random, count: int) -> Threads:
    made = []
    for _ in range(count):
        mine = [*_strong(rng, Step("take", 0, 0, "acquire")), Step("count", 1, rng.randrange(count), "relaxed", 2)]
        mine += [Step("write", 0), Step("count", 2, rng.randrange(2), "relaxed", 1), Step("read", 0)]
        made.append(mine + _strong(rng, Step("store", 0, 0, "release")))
    return made


def _updates_under_a_lock(rng: random.Random, count: int) -> Threads:
    made = []
    for _ in range(count):
        mine = [*_strong(rng, Step("take", 0, 0, "acquire")), Step("update", 0)]
        mine += [Step("update", 1)] * (rng.random() < 0.3)
        made.append(mine + _strong(rng, Step("store", 0, 0, "release")))
    return made


def _looks(rng: random.Random, count: int) -> Threads:
    made: Threads = []
    for me in range(count):
        mine: list[Step] = []
        for value in (1, 2)[: 1 + (me == 0 and rng.random() < 0.3)] if me != 1 or count > 2 else ():
            mine += [Step("write", me), *_strong(rng, Step(rng.choice(("store", "swap")), me, value, "release"))]
        others = [n for n in range(count - (count == 2)) if n != me]
        for other in others if me and rng.random() < 0.8 else ():
            rest = [Step("read", other)] + [Step("write", 3)] * (rng.random() < 0.2)
            if rng.random() < 0.5:
                mine += [Step("look", other, 1, "acquire", len(rest)), *rest]
            else:
                mine += [Step("look", other, 1, "relaxed", len(rest) + 1), Step("fence"), *rest]
        if me and rng.random() < 0.3:
            mine += [*_strong(rng, Step("poll", 0, 1, "acquire")), Step("read", 0)]
        made.append(mine)
    return made


def _tries(rng: random.Random, count: int) -> Threads:
    made = []
    for _ in range(count):
        body = [Step("read", 0), Step("write", 0), *_strong(rng, Step(rng.choice(("store", "swap")), 0, 0, "release"))]
        fence = [Step("fence")] * (rng.random() < 0.5)
        mine = [Step("try", 0, 0, "relaxed" if fence else "acquire", len(body) + len(fence)), *fence, *body]
        made.append(mine + [Step("write", 0)] * (rng.random() < 0.2))
    return made


def _tickets(rng: random.Random, count: int) -> Threads:
    made = []
    for _ in range(count):
        rest = [Step(rng.choice(("read", "write")), 0) for _ in range(rng.randrange(1, 3))]
        how, ticket = rng.choice(("relaxed", "acq_rel")), rng.randrange(count + 1)
        made.append([Step("count", 0, ticket, how, len(rest)), *rest])
    return made


def _strong(rng: random.Random, step: Step) -> list[Step]:
    """A release, or a fence and a relaxed one; an acquire, or a relaxed one and a fence."""
    if rng.random() < 0.5:
        return [step]
    relaxed, fence = step._replace(how="relaxed"), Step("fence")
    return {"release": [fence, relaxed], "acquire": [relaxed, fence]}.get(step.how, [fence, relaxed, fence])


def _barrier(rng: random.Random, count: int) -> Threads:
    made: Threads = []
    laps, first = rng.choice((1, 1, 2)), rng.randrange(2)
    for me in range(count):
        mine: list[Step] = []
        for lap in range(1, laps + 1):
            mine.append(Step("write", me))
            mine += _strong(rng, Step("add", first, 1, "release"))
            mine += _strong(rng, Step("wait", first, lap * count, "acquire"))
            mine.append(Step("read", (me + 1) % count))
            if lap < laps and rng.random() < 0.7:
                mine += [Step("add", 2, 1, "release"), Step("wait", 2, lap * count, "acquire")]
        made.append(mine)
    return made


def _messages(rng: random.Random, count: int) -> Threads:
    laps = rng.choice((1, 2))
    made: Threads = [[] for _ in range(count)]
    for lap in range(1, laps + 1):
        if lap > 1:
            made[0] += _strong(rng, Step("wait", 1, lap - 1, "acquire"))
        made[0] += [Step("write", 0), *_strong(rng, Step("store", 0, lap, "release"))]
        made[1] += [*_strong(rng, Step("wait", 0, lap, "acquire")), Step("read", 0)]
        made[1] += _strong(rng, Step("store", 1, lap, "release"))
    for mine in made[2:]:
        mine += [*_strong(rng, Step("wait", 0, laps, "acquire")), *([Step("read", 0)] if laps == 1 else [])]
    return made


def _locks(rng: random.Random, count: int) -> Threads:
    made = []
    for _ in range(count):
        mine = [*_strong(rng, Step("take", 0, 0, "acquire")), Step("read", 0), Step("write", 0)]
        made.append(mine + _strong(rng, Step("store", 0, 0, "release")))
    return made


def _last(rng: random.Random, count: int) -> Threads:
    made = []
    for me in range(count):
        rest = [Step("read", each) for each in range(count)]
        counted = Step("count", 0, count - 1, "acq_rel")
        if rng.random() < 0.4:
            rest = [Step("fence"), *rest]
            mine = [Step("write", me), Step("fence"), counted._replace(how="relaxed", skip=len(rest))]
        else:
            mine = [Step("write", me), counted._replace(skip=len(rest))]
        made.append(mine + rest)
    return made


def _turns(rng: random.Random, count: int) -> Threads:
    made = []
    for me in range(count):
        mine = _strong(rng, Step("wait", 0, me, "acquire")) if me else []
        mine += [Step("read", 0), Step("write", 0)]
        made.append(mine + _strong(rng, Step("store", 0, me + 1, "release")))
    return made


def _any(rng: random.Random, count: int) -> Threads:
    return [[_random_step(rng) for _ in range(rng.randrange(2, 6))] for _ in range(count)]


def _random_step(rng: random.Random) -> Step:
    what = rng.choice(("store", "add", "wait", "write", "read", "fence", "take"))
    how = {"wait": ("acquire", "relaxed"), "take": ("acquire", "relaxed")}.get(what, ("release", "relaxed", "cta"))
    value = rng.randrange(1, 3) if what in ("store", "add", "wait") else 0
    return Step(
        what, rng.randrange(WORDS if what in ("store", "add", "wait", "take") else CELLS), value, rng.choice(how)
    )


def _change(rng: random.Random, made: Threads) -> None:
    mine = rng.choice([each for each in made if each])
    at = rng.randrange(len(mine))
    step = mine[at]
    match rng.randrange(5):
        case 0 if not any(each.skip for each in mine) and len(mine) > 1:
            del mine[at]
        case 1:
            mine[at] = step._replace(value=max(step.value + rng.choice((-1, 1)), 0))
        case 2:
            mine[at] = step._replace(how="relaxed" if step.how else "")
        case 3 if step.what in ("store", "add"):
            mine[at] = step._replace(how="cta")
        case _ if at and not any(each.skip for each in mine):
            mine[at - 1], mine[at] = mine[at], mine[at - 1]


_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry talk(.param .u64 words, .param .u64 x)
{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [x]; mov.u32 %r1, %ctaid.x;
"""
_PTX = {
    "store": "st.{how}.global.u32 [%rd1+{at}], {value};",
    "add": "red.{how}.global.add.u32 [%rd1+{at}], {value};",
    "wait": "{n}: ld.{how}.global.u32 %r2, [%rd1+{at}]; setp.lt.u32 %p2, %r2, {value}; @%p2 bra {n};",
    "take": "{n}: atom.{how}.global.cas.b32 %r2, [%rd1+{at}], 0, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra {n};",
    "count": "atom.{how}.global.add.u32 %r2, [%rd1+{at}], 1; setp.ne.u32 %p2, %r2, {value}; @%p2 bra {n}_end;",
    "see": "{n}: ld.{how}.global.u32 %r2, [%rd1+{at}]; setp.eq.u32 %p2, %r2, 0; @%p2 bra {n};\n"
    "setp.ne.u32 %p3, %r2, {value}; @%p3 bra {n}_end;",
    "look": "ld.{how}.global.u32 %r2, [%rd1+{at}]; setp.ne.u32 %p3, %r2, {value}; @%p3 bra {n}_end;",
    "try": "atom.{how}.global.cas.b32 %r2, [%rd1+{at}], 0, 1; setp.ne.u32 %p3, %r2, 0; @%p3 bra {n}_end;",
    "swap": "atom.{how}.global.exch.b32 %r7, [%rd1+{at}], {value};",
    "poll": "{n}: atom.{how}.global.add.u32 %r2, [%rd1+{at}], 0; setp.lt.u32 %p2, %r2, {value}; @%p2 bra {n};",
    "update": "ld.volatile.global.u32 %r4, [%rd2+{at}]; add.u32 %r4, %r4, 1; st.volatile.global.u32 [%rd2+{at}], %r4;",
    "fence": "fence.acq_rel.gpu;",
    "write": "st.global.f32 [%rd2+{at}], 0f00000000;",
    "read": "ld.global.u32 %r3, [%rd2+{at}];",
}


_SKIPS, _LOADS, _NO_WORD = ("see", "look", "try"), ("wait", "poll", "see", "look"), ("write", "read", "update", "fence")
_PLAIN = {"store", "wait", "see", "look", "fence", "write", "read"}
#: The same words with data in the other half: what is stored, and what is made of what is loaded.
_PACKED = {
    "u64": ("mov.b64 %rd3, {{%r4, %r7}};", "u64", "%rd3", "shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r2, %rd3;"),
    "low": ("cvt.u64.u32 %rd3, %r4; shl.b64 %rd3, %rd3, 8; or.b64 %rd3, %rd3, {value};", "u64", "%rd3",
            "cvt.u32.u64 %r2, %rd3; and.b32 %r2, %r2, 255;"),
    "v2": ("", "v2.u32", "{{%r4, %r7}}", "mov.u32 %r2, %r7;"),
}  # fmt: skip


def _packed(what: str, form: str) -> str:
    """An operation on words of which a part is data."""
    line, (before, kind, value, after) = _PTX[what], _PACKED[form]
    if what == "store":
        given = f"ld.global.u32 %r4, [%rd2+64]; mov.u32 %r7, {{value}}; {before}"
        return f"{given} st.{{how}}.global.{kind} [%rd1+{{at}}], {value};"
    return line.replace("u32 %r2, [%rd1+{at}];", f"{kind} {value}, [%rd1+{{at}}]; {after}")


#: Each thread is the first lane of one of the two warps of a CTA.
_OF_WARPS = """mov.u32 %r5, %tid.x; and.b32 %r6, %r5, 31; setp.ne.u32 %p1, %r6, 0; @%p1 ret; shr.u32 %r5, %r5, 5;
mov.u32 %r6, %ctaid.x; mad.lo.u32 %r1, %r6, 2, %r5;"""


def _looking_first(line: str) -> str:
    """A loop that waits for a word, with a load before it that is not in the loop."""
    if not line.startswith("{n}: ld"):
        return line
    load, rest = line.removeprefix("{n}: ").split(";", 1)
    return f"{load}; bra {{n}}_look; {{n}}: fence.acq_rel.cta; {load}; {{n}}_look: {rest}"


def ptx_of(threads: Threads, *, warps: bool = False, form: str = "", first: bool = False) -> tuple[str, Launch]:
    """The kernel, and its launch. What an atomic may leave out is the rest of its thread. ``warps``: two in a CTA;
    ``form``: of words with data in them; ``first``: waits look at their word before their loop.
    """
    text = _HEAD.replace("mov.u32 %r1, %ctaid.x;", _OF_WARPS) if warps else _HEAD
    for me in range(len(threads)):
        text += f"setp.eq.u32 %p1, %r1, {me}; @%p1 bra CTA{me};\n"
    for me, mine in enumerate(threads):
        text += f"CTA{me}:\n"
        ends: dict[int, str] = {}  # labels before an operation
        for n, (what, at, value, how, skip) in enumerate(mine):
            scoped = {"cta": "relaxed.cta", "weak": "weak"}.get(how, f"{how}.gpu")
            line = _packed(what, form) if form and what in ("store", "wait", "see", "look") else _PTX[what]
            line = _looking_first(line) if first else line
            step = 8 if form and "%rd1" in line else 4
            text += ends.get(n, "") + line.format(n=f"L{me}_{n}", at=step * at, value=value, how=scoped) + "\n"
            after = min(n + 1 + skip, len(mine)) if what in _SKIPS or skip else len(mine)
            ends[after] = ends.get(after, "") + f"L{me}_{n}_end:\n" * (what == "count" or what in _SKIPS)
        text += ends.get(len(mine), "") + "ret;\n"
    given = (Parameter("words", Pointer()), Parameter("x", Pointer()))
    grid, block = (len(threads) // 2, 64) if warps else (len(threads), 1)
    return text + "}\n", Launch("talk", (grid, 1, 1), (block, 1, 1), parameters=given)


_INSIDE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry talk(.param .u64 words, .param .u64 x)
{{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
.shared .align 4 .b8 w[12]; .shared .align 4 .b8 c[16];
{words} mov.u32 %r6, c; mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 bra SET; mov.u32 %r4, 0;
{first}
SET: bar.sync 0; and.b32 %r5, %r0, 31; setp.ne.u32 %p1, %r5, 0; @%p1 ret; shr.u32 %r1, %r0, 5;
"""
_WORDS_IN = {
    "shared": "mov.u32 %r7, w;",
    "global": "ld.param.u64 %rd1, [words]; mov.u32 %r3, %ctaid.x; mad.wide.u32 %rd1, %r3, 16, %rd1;",
}


def inside_of(threads: Threads, seed: int) -> tuple[str, Launch]:
    """The kernel in which the threads are the first lanes of warps; words are in shared memory, or in global memory."""
    rng, ctas = random.Random(seed), 1 + seed % 2
    space, scope = rng.choice(("shared", "shared", "global")), rng.choice(("cta", "gpu"))
    at_word = "%r7" if space == "shared" else "%rd1"
    zeros = [f"st.shared.u32 [%r6+{4 * n}], %r4;" for n in range(CELLS)]
    zeros += [f"st.shared.u32 [%r7+{4 * n}], %r4;" for n in range(WORDS) if space == "shared"]
    text = _INSIDE.format(words=_WORDS_IN[space], first="\n".join(zeros))
    for me in range(len(threads)):
        text += f"setp.eq.u32 %p1, %r1, {me}; @%p1 bra CTA{me};\n"
    for me, mine in enumerate(threads):
        text += f"CTA{me}:\n"
        for n, (what, at, value, how, _) in enumerate(mine):
            relaxed = "volatile" if what in ("store", "wait") and rng.random() < 0.5 else f"relaxed.{scope}"
            scoped = f"{how}.{scope}" if how not in ("relaxed", "cta") else relaxed
            line = _PTX[what].replace("global", "shared" if what in ("write", "read") else space)
            line = line.replace("fence.acq_rel.gpu", f"fence.acq_rel.{scope}").replace("{how}.gpu", "{how}")
            line = line.replace("%rd1", at_word).replace("%rd2", "%r6").replace("f32", "u32")
            line = line.replace("0f00000000", str(100 * me + n + 1))  # as equal stores are no race
            text += line.format(n=f"L{me}_{n}", at=4 * at, value=value, how=scoped) + "\n"
        text += "".join(f"L{me}_{n}_end:\n" for n, step in enumerate(mine) if step.what == "count") + "ret;\n"
    given = (Parameter("words", Pointer()), Parameter("x", Pointer()))
    return text + "}\n", Launch("talk", (ctas, 1, 1), (32 * len(threads), 1, 1), parameters=given)


def judged_inside(seed: int) -> str:
    """As :func:`judged`, of warps of one CTA, by all that a check does. A proof may assume that loops end."""
    made = [
        [step._replace(how="relaxed") if step.how == "cta" else step for step in mine] for mine in random_threads(seed)
    ]
    text, launch = inside_of(made, seed)
    read = extract(read_module(text, "talk.ptx"), launch)
    found = check(Target("talk", None, read.program, {}, "", kernel=read), {}, quick=True)
    kinds, races = (
        [each.finding.kind for each in found.refutations],
        {*_RACES, FaultKind.WRONG_ITEM, FaultKind.GLOBAL_RACE},
    )
    said = {"race" if each in races else each if isinstance(each, str) else each.name.lower() for each in kinds}
    true, assumed = explore(made), {each.kind for each in found.scope.assuming}
    if Assumption.GLOBAL_LOOPS in assumed and true is not None:
        true = true - {"deadlock"} if found.verdict is Verdict.PROVED else true
    open_ = [each for each in found.scope.not_judged if each.kind is NotJudgedKind.WORDS]
    return _compared(seed, said, true, proved=found.verdict is Verdict.PROVED and not open_)


_RACES = {FaultKind.RACE, FaultKind.WEAK_ORDER, FaultKind.NARROW_SCOPE}


def judged(seed: int) -> str:
    """``decided``, ``not decided``, or what the verdict on a random kernel contradicts."""
    threads = random_threads(seed)
    text, launch = ptx_of(threads)
    known, said, true = Together(), set[str](), explore(threads)
    for _, made in programs_together(extract(read_module(text, "talk.ptx"), launch), known, LENIENT):
        shown = prove(made.program)
        if shown.verdict is Verdict.UNKNOWN:
            return "not decided"
        said |= {"race" if each.kind in _RACES else each.kind.name.lower() for each in shown.refutations}
    return _compared(seed, said, true, proved=bool(known.sizes and not known.not_judged))


def judged_talk(seed: int) -> str:
    """As :func:`judged`, of what asks more, by all that a check does."""
    return _judged_by_check(seed, random_talk(seed))


def judged_weak(seed: int) -> str:
    """The same of threads some of whose stores are weak."""
    return _judged_by_check(seed, random_weak(seed))


def judged_warps(seed: int) -> str:
    """The same of four threads, which are warps of two CTAs."""
    every = (random_talk if seed % 2 else random_threads)(seed, (4,))
    alone = [[step._replace(how="relaxed") if step.how == "cta" else step for step in mine] for mine in every]
    return _judged_by_check(seed, alone, warps=True)


def _judged_by_check(seed: int, threads: Threads, *, warps: bool = False) -> str:
    packed = all(step.what in _PLAIN for mine in threads for step in mine)
    form = ("", *_PACKED)[seed % 4] if packed else ""
    text, launch = ptx_of(threads, warps=warps, form=form, first=seed % 8 < 4)
    read = extract(read_module(text, "talk.ptx"), launch)
    found = check(Target("talk", None, read.program, {}, "", kernel=read), {}, quick=True)
    kinds, races = (
        [each.finding.kind for each in found.refutations],
        {*_RACES, FaultKind.WRONG_ITEM, FaultKind.GLOBAL_RACE},
    )
    said = {"race" if each in races else each if isinstance(each, str) else each.name.lower() for each in kinds}
    return _compared(seed, said, explore(threads), proved=found.verdict is Verdict.PROVED)


def judged_whole(seed: int) -> str:
    """As :func:`judged`, of grids of 5 and 6 CTAs, by what is said of these alone; the last one may do nothing."""
    threads = random_threads(seed, (5, 5, 6))
    if seed % 3 == 0:
        threads[-1] = []
    text, launch = ptx_of(threads)
    known, said, grid = Together(), set[str](), len(threads)
    for settings, made in programs_together(extract(read_module(text, "talk.ptx"), launch), known, LENIENT):
        if settings["together"] == grid:
            shown = prove(made.program)
            said |= {"race" if each.kind in _RACES else each.kind.name.lower() for each in shown.refutations}
    true = explore(threads) if said or grid in known.sizes else None
    return _compared(seed, said, true, proved=grid in known.sizes and not known.not_judged)


def described(threads: Threads) -> Protocol:
    """The same threads as a description."""
    p = Protocol("talk", grid=len(threads))
    words, cells = p.gmem("words", WORDS, 4), p.gmem("cells", CELLS, 4)

    @p.role("thread")
    def thread(w: Warp) -> None:
        with w.elect_one():
            left = 0
            for n, step in enumerate(threads[w.cta]):
                left -= 1
                if left >= 0:
                    continue
                order = {"": Order.RELAXED, "cta": Order.RELAXED}.get(step.how) or Order[step.how.upper()]
                scope = Scope.CTA if step.how == "cta" else Scope.GPU
                match step.what:
                    case "store":
                        w.gstore(words[step.at], value=step.value, order=order, scope=scope)
                    case "add":
                        w.atomic(words[step.at], add=step.value, order=order, scope=scope)
                    case "wait":
                        w.spin_until(words[step.at], at_least=step.value, order=order, scope=scope)
                    case "take":
                        w.spin_until(words[step.at], cas=(0, 1), order=order, scope=scope)
                    case "count":
                        left = (
                            0
                            if w.atomic(words[step.at], add=1, order=order, scope=scope).old == step.value
                            else step.skip + 1
                        )
                    case "fence":
                        w.fence(Fence.ACQ_REL, Scope.GPU)
                    case "write":
                        w.gstore(cells[step.at], item=len(threads) * n + w.cta)
                    case _:
                        w.gload(cells[step.at])

    return p


def judged_description(seed: int) -> str:
    """As :func:`judged`, of the description of a random kernel."""
    threads = random_threads(seed)
    found, true = check(target_of(lambda: described(threads)), {}, quick=True), explore(threads)
    kinds = [each.finding.kind for each in found.refutations]
    said = {"race" if each in _RACES else each if isinstance(each, str) else each.name.lower() for each in kinds}
    return _compared(seed, said, true, proved=found.verdict is Verdict.PROVED)


def _compared(seed: int, said: set[str], true: set[str] | None, *, proved: bool) -> str:
    if true is None or not (said or proved):
        return "not decided"
    right = said <= true and bool(said) == bool(true)
    return "decided" if right else f"seed {seed}: said {sorted(said)}, and schedules have {sorted(true)}"


class _State(NamedTuple):
    pcs: tuple[int, ...]
    values: tuple[int, ...]
    told: tuple[Clock, ...]  #: by word: what whoever acquires it learns
    known: tuple[Clock, ...]
    fenced: tuple[Clock, ...]  #: by thread: what it knew at its last fence
    seen: tuple[Clock, ...]  #: by thread: what a fence makes known
    cells: tuple[tuple[Clock, Clock], ...]  #: by cell: 1 + the last write and read of each thread; by word that a
    #: store of CTA scope writes: such stores, and all accesses
    patterns: tuple[tuple[Clock, Clock], ...]  #: by thread and word: what it knew at its last release there, and what
    #: it has observed there: a later strong write hands the first on, a later acquire takes the second
    ran: Clock  #: accesses to words with weak stores, each with a place of its own in clocks
    chains: tuple[Clock, ...]  #: by word: those of them that who loads it observes


def explore(threads: Threads) -> set[str] | None:
    """Whether some schedule has a ``race`` or a ``deadlock``; None where there are too many states."""
    count, narrow = len(threads), frozenset(step.at for mine in threads for step in mine if step.how == "cta")
    weak = {step.at for mine in threads for step in mine if step.how == "weak"}
    steps = ((me, pc, step) for me, mine in enumerate(threads) for pc, step in enumerate(mine))
    watched = [(me, pc) for me, pc, step in steps if step.what not in _NO_WORD and step.at in weak]
    zero = (0,) * (count + len(watched))
    pairs = ((zero, zero),) * (CELLS + WORDS), ((zero, zero),) * count * WORDS
    start = _State((0,) * count, (0,) * WORDS, (zero,) * WORDS, *((zero,) * count,) * 3, *pairs, zero, (zero,) * WORDS)
    open_, done, found = [start], {start}, set[str]()
    while open_:
        state = open_.pop()
        moved = False
        for me in range(count):
            after, races = _move(threads, state, me, narrow, watched)
            found |= {"race"} if races else set()
            moved = moved or after is not None
            if after is not None and after not in done:
                done.add(after)
                open_.append(after)
        if len(done) > MOST_STATES:
            return None
        if not moved and any(pc < len(mine) for pc, mine in zip(state.pcs, threads, strict=True)):
            found.add("deadlock")
    return found


def _move(
    threads: Threads, state: _State, me: int, narrow: frozenset[int], watched: list[tuple[int, int]]
) -> tuple[_State | None, bool]:
    pc = state.pcs[me]
    if pc >= len(threads[me]):
        return None, False
    step = threads[me][pc]
    at = step.at if step.what not in _NO_WORD else 0
    value, told = state.values[at], state.told[at]
    waits = {"wait": value < step.value, "poll": value < step.value, "take": bool(value), "see": not value}
    if waits.get(step.what, False):
        return None, False
    known = _put(state.known[me], me, pc + 1)
    fenced, seen, next_ = state.fenced[me], state.seen[me], pc + 1
    values, words, cells, races = list(state.values), list(state.told), list(state.cells), False
    released, observed = state.patterns[me * WORDS + at]
    fails = step.what == "try" and value > 0
    here = len(threads) + watched.index((me, pc)) if (me, pc) in watched else 0
    chains = list(state.chains)
    if here:  # what is observed comes before what follows, and no weak store is observed
        known = _put(known if step.what == "store" else _join(known, chains[at]), here, 1)
        first = chains[at] if step.what != "store" else (0,) * len(known)
        chains[at] = first if step.how == "weak" or step.what in _LOADS or fails else _put(first, here, 1)
    if step.what in ("wait", "poll", "take", "count", "see", "look", "try"):
        observed = _join(observed, told)
        if step.how in ("acquire", "acq_rel"):
            known = _join(known, observed)
        else:
            seen = _join(seen, told)
    if step.what in ("store", "swap", "add", "take", "count", "try") and not fails:
        released = known if step.how in ("release", "acq_rel") else released
        given = _join(fenced, released)
        given = (0,) * len(known) if step.how in ("cta", "weak") else given
        words[step.at] = given if step.what == "store" else _join(told, given)
        values[step.at] = {"store": step.value, "swap": step.value, "take": 1, "try": 1, "count": value + 1}.get(
            step.what, value + step.value
        )
        if step.what == "count" and value != step.value:
            next_ += step.skip
    if fails or (step.what in ("see", "look") and value != step.value):
        next_ += step.skip
    if step.what == "fence":
        known = _join(known, seen)
        fenced = known
    if step.what in ("write", "read", "update"):
        wrote, read = cells[step.at]
        others = [wrote] if step.what == "read" else [wrote, read]
        races = any(last > known[u] for each in others for u, last in enumerate(each) if u != me)
        cells[step.at] = (wrote, _put(read, me, pc + 1)) if step.what == "read" else (_put(wrote, me, pc + 1), read)
    elif step.what != "fence" and step.at in narrow:
        narrowly, every = cells[CELLS + step.at]
        others = [every] if step.how == "cta" else [narrowly]
        races = any(last > state.known[me][u] for each in others for u, last in enumerate(each) if u != me)
        narrowly = _put(narrowly, me, pc + 1) if step.how == "cta" else narrowly
        cells[CELLS + step.at] = narrowly, _put(every, me, pc + 1)
    if here:
        before, mine = state.known[me] if step.what in waits else known, step.how == "weak"
        for n, (u, other) in enumerate(watched, len(threads)):
            met = threads[u][other]
            races |= u != me and met.at == at and (mine or met.how == "weak") and state.ran[n] > before[n]
    ran = _put(state.ran, here, 1) if here else state.ran
    pcs = _put(state.pcs, me, next_)
    clocks = _put(state.known, me, known), _put(state.fenced, me, fenced), _put(state.seen, me, seen)
    patterns = _put(state.patterns, me * WORDS + at, (released, observed))
    return _State(pcs, tuple(values), tuple(words), *clocks, tuple(cells), patterns, ran, tuple(chains)), races


def _put(row: tuple[_T, ...], at: int, value: _T) -> tuple[_T, ...]:
    return (*row[:at], value, *row[at + 1 :])


def _join(one: Clock, other: Clock) -> Clock:
    return tuple(map(max, one, other))
