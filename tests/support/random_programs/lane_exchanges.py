"""Random exchanges of words between the lanes of a warp, and which PTX orders: lane by lane, with vector clocks."""

import random
from collections.abc import Callable

_LANES = range(32)
#: Lanes that execute: the predicate, and which they are.
_WHO: dict[str, Callable[[int], bool]] = {
    "": lambda _: True,
    "@%p1 ": lambda lane: lane < 16,
    "@!%p1 ": lambda lane: lane >= 16,
    "@!%p2 ": lambda lane: lane == 0,
    "@%p2 ": lambda lane: lane != 0,
}
#: Registers with an address, and the word that each lane has there.
_WHERE: dict[str, Callable[[int], int]] = {
    "%r5": lambda lane: lane,
    "%r6": lambda lane: lane ^ 1,
    "%r7": lambda lane: lane ^ 16,
    "%r4": lambda _: 0,
}
#: What lanes execute together, and the lanes that each of them meets there.
_TOGETHER: dict[str, Callable[[int], int]] = {
    "bar.warp.sync -1;": lambda _: 0xFFFFFFFF,
    "bar.sync 0;": lambda _: 0xFFFFFFFF,
    "bar.warp.sync %r12;": lambda lane: 0xFFFF if lane < 16 else 0xFFFF0000,
    "bar.warp.sync %r13;": lambda lane: 0x55555555 << (lane & 1),
    "shfl.sync.bfly.b32 %r10, %r2, 1, 31, -1;": lambda lane: 1 << lane,
    "elect.sync _|%p9, -1;": lambda lane: 1 << lane,
    "vote.sync.ballot.b32 %r10, %p1, -1;": lambda lane: 1 << lane,
}
_MATRIX = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r14];"  #: of all 32 words, which lanes exchange
SET_UP = """ mov.u32 %r12, 0xffff;
 @!%p1 mov.u32 %r12, 0xffff0000;
 and.b32 %r11, %r2, 1;
 shl.b32 %r13, 0x55555555, %r11;
 and.b32 %r14, %r2, 7;
 mad.lo.u32 %r14, %r14, 16, %r4;
 st.shared.u32 [%r5], 0;
 setp.eq.u32 %p10, %r2, 99;
 bar.warp.sync -1;
"""


#: Who completes the one phase of each mbarrier: all lanes, or the second one.
_ARRIVE = ("mbarrier.arrive.shared::cta.b64 _, [%r3];", "@!%p3 mbarrier.arrive.shared::cta.b64 _, [%r3+8];")
_WAIT = """{who}bra past{n};
wait{n}: mbarrier.try_wait.parity{order}.shared::cta.b64 %p9, [%r3+{at}], 0;
 @!%p9 bra wait{n};
past{n}:"""
_ASK = "mbarrier.test_wait.parity.shared::cta.b64 %p9, [%r3+{at}], 0;"  #: and do not look at the answer
_OTHERS = {"": "@%p10 ", "@%p1 ": "@!%p1 ", "@!%p1 ": "@%p1 ", "@!%p2 ": "@%p2 ", "@%p2 ": "@!%p2 "}


def random_exchanges(seed: int, *, signals: bool = False) -> tuple[str, bool]:
    """What follows :data:`SET_UP`, and whether PTX orders every two accesses of different lanes of which one writes.

    ``signals``: lanes also arrive on two mbarriers, and wait for them; some so that it orders no accesses.
    """
    rng = random.Random(seed)
    sent: dict[int, list[int]] = {}  # by mbarrier whose phase is complete: what whoever waits for it learns
    clocks = [[0] * len(_LANES) for _ in _LANES]
    stored: dict[int, list[tuple[int, int]]] = {}  # by word: lane and time of each store, and of each load
    loaded: dict[int, list[tuple[int, int]]] = {}
    body, right = "", True
    for time in range(1, rng.randint(3, 8) + 5 * signals):
        if signals and rng.random() < 0.5:
            bar, who, order = rng.randrange(2), rng.choice([*_WHO]), rng.choice(("", "", "", ".relaxed.cta"))
            if bar not in sent:
                body += f" {_ARRIVE[bar].replace('arrive', 'arrive' + order)}\n"
                sent[bar] = [max(clock) for clock in zip(*(clocks if bar == 0 else clocks[1:2]), strict=True)]
                sent[bar] = [0] * len(_LANES) if order else sent[bar]
                continue
            text = _ASK if (asks := rng.random() < 0.2) else _WAIT
            body += f" {text.format(who=_OTHERS[who], n=time, at=8 * bar, order=order)}\n"
            if not (asks or order):
                clocks = [[*map(max, clock, sent[bar])] if _WHO[who](n) else clock for n, clock in enumerate(clocks)]
            continue
        if rng.random() < 0.5:
            text = rng.choice([*_TOGETHER])
            body += f" {text}\n"
            met = [_TOGETHER[text](lane) for lane in _LANES]
            clocks = [[max(clocks[by][n] for by in _LANES if met[lane] >> by & 1) for n in _LANES] for lane in _LANES]
            continue
        who, where, writes = rng.choice([*_WHO]), rng.choice([*_WHERE]), rng.random() < 0.5
        if writes and where == "%r4" and who != "@!%p2 ":
            where = "%r5"  # of stores of several lanes to one word none is the last
        text = f"{who}st.shared.u32 [{where}], %r2;" if writes else f"{who}ld.shared.u32 %r9, [{where}];"
        mine = [(lane, _WHERE[where](lane)) for lane in _LANES if _WHO[who](lane)]
        if not writes and rng.random() < 0.25:
            text, mine = _MATRIX, [(lane, word) for lane in _LANES for word in range(32)]
        body += f" {text}\n"
        for lane, word in mine:
            before = stored.get(word, []) + (loaded.get(word, []) if writes else [])
            right = right and all(by == lane or clocks[lane][by] >= at for by, at in before)
        for lane, word in mine:
            (stored if writes else loaded).setdefault(word, []).append((lane, time))
            clocks[lane][lane] = time
    return body, right
