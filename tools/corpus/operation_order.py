"""What each warp does on each mbarrier, in its order: of a kernel read from PTX, of a protocol, and how they differ."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from pipesim.model.groups import ON_BARRIER
from pipesim.model.ops import OPERANDS, Op, Operation, operand
from pipesim.model.program import Program

Place = tuple[int, str, int]  #: CTA, group, stage of an mbarrier
Warp = tuple[int, int]  #: CTA and warp
OpText = tuple[str, ...]  #: an operation and what it says: ``("ARRIVE", "count 1", "expect 32768")``
Orders = dict[Place, dict[Warp, list[OpText]]]

#: In place of a warp for the inits: every role of a kernel starts after a barrier that follows them, whoever did them.
INIT: Warp = (-1, -1)
#: Operands that are compared. Registers and state tokens have names of their own on either side; the order and scope
#: of an instruction are left to the proof of each program.
_COMPARED = frozenset({"count", "expect", "parity", "bytes", "lanes", "noinc", "engine"})


Numbered = tuple[int, OpText]  #: an operation with its position among those of its warp on its barrier
OnBarrier = tuple[Place, OpText]  #: an operation with its barrier


@dataclass(frozen=True)
class Difference:
    """What one side does and the other does not, on the same stages of a group and in the same warps."""

    group: str
    ctas: tuple[int, ...]
    stages: tuple[int, ...]
    warps: tuple[int, ...]  #: -1: of the inits
    own: bool  #: whether the warps are of the CTA in which the barrier is
    kernel_only: tuple[Numbered, ...]
    protocol_only: tuple[Numbered, ...]

    def __str__(self) -> str:
        """One line."""
        where = f"{self.group}[{_listed(self.stages)}] of CTA {_listed(self.ctas)}"
        who = f"warp {_listed(self.warps)}" + ("" if self.own else " of another CTA")
        sides = [("kernel", self.kernel_only), ("protocol", self.protocol_only)]
        said = "; ".join(f"only the {side}: {_in_words(ops)}" for side, ops in sides if ops)
        return f"{where}, {'init' if self.warps == (INIT[1],) else who}: {said}"


@dataclass(frozen=True)
class Moved:
    """Warps that do the same on every barrier in another order among barriers, and the first operations that differ."""

    warps: tuple[Warp, ...]
    kernel: str
    protocol: str

    def __str__(self) -> str:
        """One line."""
        ctas, warps = (_listed(sorted(set(each))) for each in zip(*self.warps, strict=True))
        return f"warp {warps} of CTA {ctas}, order among barriers: kernel {self.kernel}; protocol {self.protocol}"


@dataclass(frozen=True)
class Comparison:
    """``matched`` of ``barriers`` mbarriers stand on both sides; ``equal`` operations on them stand in equal order."""

    barriers: int
    matched: int
    equal: int
    differences: tuple[Difference, ...]
    moved: tuple[Moved, ...]

    @property
    def lines(self) -> list[str]:
        """Every difference in a line."""
        return [*map(str, self.differences), *map(str, self.moved)]


def names_by_address(places: Sequence[tuple[int, int]], groups: Sequence[tuple[str, int]]) -> list[Place]:
    """Names for the barriers at ``places`` (CTA and byte offset): ``groups``, each a name and its stages, are laid out
    in this order in every CTA. Barriers beyond the last group are called by their place among all.
    """
    names = [(name, stage) for name, stages in groups for stage in range(stages)]
    offsets = sorted({offset for _, offset in places})
    beyond = [("unnamed", at) for at in range(len(names), len(offsets))]
    named = dict(zip(offsets, [*names, *beyond], strict=False))
    return [(cta, *named[offset]) for cta, offset in places]


def names_of_protocol(program: Program) -> list[Place]:
    """The names that a protocol has for its barriers."""
    return [(each.cta, each.name, each.stage) for each in program.barriers]


def compared(kernel: Program, names: Sequence[Place], protocol: Program, *, summed: bool = False) -> Comparison:
    """Barrier by barrier and warp by warp, what both do and what only one does, in the CTAs that the protocol has.

    ``summed``: copies in a row to one barrier count as one of all their bytes, for a protocol that copies a tile where
    the kernel copies the boxes of a tensor map.
    """
    left = _warps(kernel, names, range(protocol.ctas), summed=summed)
    right = _warps(protocol, names_of_protocol(protocol), range(protocol.ctas), summed=summed)
    ours, theirs = _by_barrier(left), _by_barrier(right)
    raw: dict[tuple[str, bool, tuple[Numbered, ...], tuple[Numbered, ...]], set[tuple[int, int, int]]]
    raw = defaultdict(set)
    equal, unequal = 0, set()
    for place in sorted({*ours, *theirs}):
        first, second = ours.get(place, {}), theirs.get(place, {})
        for warp in sorted({*first, *second}):
            same, only_first, only_second = _parted(first.get(warp, []), second.get(warp, []))
            equal += same
            if only_first or only_second:
                unequal.add(warp)
                own = warp == INIT or warp[0] == place[0]
                raw[place[1], own, only_first, only_second].add((place[0], place[2], warp[1]))
    there = {name for name in names if name[0] < protocol.ctas}
    known = set(names_of_protocol(protocol))
    differences = []
    for (group, own, *only), where in raw.items():
        ctas, stages, warps = (tuple(sorted(set(each))) for each in zip(*where, strict=True))
        differences.append(Difference(group, ctas, stages, warps, own, *only))
    moved = _moved(left, right, [warp for warp in sorted({*left, *right} - unequal) if warp != INIT])
    return Comparison(len(there | known), len(there & known), equal, tuple(differences), moved)


def _moved(
    left: dict[Warp, list[OnBarrier]], right: dict[Warp, list[OnBarrier]], warps: Sequence[Warp]
) -> tuple[Moved, ...]:
    """The warps whose operations are the same on every barrier but come in another order."""
    found: dict[tuple[str, str], list[Warp]] = defaultdict(list)
    for warp in warps:
        for first, second in zip(left[warp], right[warp], strict=True):
            if first != second:
                found[_place_text(warp, first), _place_text(warp, second)].append(warp)
                break
    return tuple(Moved(tuple(each), *said) for said, each in found.items())


def _place_text(warp: Warp, told: OnBarrier) -> str:
    (cta, group, stage), said = told
    return f"{' '.join(said)} on {group}[{stage}]" + ("" if cta == warp[0] else " of another CTA")


def _parted(first: list[OpText], second: list[OpText]) -> tuple[int, tuple[Numbered, ...], tuple[Numbered, ...]]:
    """How many operations are equal in order, and what is in one list only, each with its position."""
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    in_first = {each.a + i for each in blocks for i in range(each.size)}
    in_second = {each.b + i for each in blocks for i in range(each.size)}
    return (
        len(in_first),
        tuple((i, said) for i, said in enumerate(first) if i not in in_first),
        tuple((i, said) for i, said in enumerate(second) if i not in in_second),
    )


def _warps(program: Program, names: Sequence[Place], ctas: range, *, summed: bool) -> dict[Warp, list[OnBarrier]]:
    """What each warp does on the mbarriers of ``ctas`` in its order; inits, sorted, in a list of their own."""
    found: dict[Warp, list[OnBarrier]] = defaultdict(list)
    for agent, code in zip(program.agents, program.code, strict=True):
        for op in code:
            if op[0] in ON_BARRIER and op[0] != Op.INVAL and operand(op, "barrier") >= 0:
                warp = INIT if op[0] == Op.INIT else (agent.cta, agent.warp)
                told = [each for each in _effects(program, op, names) if each[0][0] in ctas]
                if summed and op[0] == Op.TMA_LOAD and told and found[warp] and _alike(found[warp][-1], told[0]):
                    told = [_sum(found[warp].pop(), told[0])]
                found[warp] += told
    return {warp: _joined(said) if warp != INIT else sorted(said) for warp, said in found.items() if said}


def _alike(first: OnBarrier, second: OnBarrier) -> bool:
    """True for two copies to the same place that count on one barrier."""
    return (first[0], first[1][0], first[1][2:]) == (second[0], second[1][0], second[1][2:])


def _sum(first: OnBarrier, second: OnBarrier) -> OnBarrier:
    total = sum(int(told[1][1].removeprefix("bytes ")) for told in (first, second))
    return first[0], (first[1][0], f"bytes {total}", *first[1][2:])


def _joined(said: list[OnBarrier]) -> list[OnBarrier]:
    """A try and, as the next operation on its barrier, the wait that depends on it are a wait, where the wait is."""
    found: list[OnBarrier | None] = []
    tries: dict[Place, int] = {}
    for place, each in said:
        before = tries.pop(place, None)
        if each[0] == "WAIT_UNLESS" and before is not None:
            found[before] = None
            found.append((place, ("WAIT", *each[1:])))
            continue
        if each[0] == "TRY_WAIT":
            tries[place] = len(found)
        found.append((place, each))
    return [told for told in found if told is not None]


def _effects(program: Program, op: Operation, names: Sequence[Place]) -> list[OnBarrier]:
    """Which barriers an operation reaches: a multicast arrives on the barrier at the same place in several CTAs."""
    kind = Op(op[0])
    said = tuple(f"{n} {v}" for n, v in zip(OPERANDS[kind], op[1:], strict=True) if n in _COMPARED)
    cta, group, stage = names[operand(op, "barrier")]
    if kind == Op.COMMIT_MULTICAST:
        mask = operand(op, "cta_mask")
        return [((to, group, stage), ("COMMIT", *said)) for to in range(program.ctas) if mask >> to & 1]
    if kind == Op.TMA_LOAD:  # a multicast to one CTA is a copy to it
        mask = operand(op, "cta_mask") or 1 << program.accesses[operand(op, "access")].cta
        said = (*said, "to CTA " + _listed([to for to in range(program.ctas) if mask >> to & 1]))
    return [((cta, group, stage), (kind.name, *said))]


def _by_barrier(warps: dict[Warp, list[OnBarrier]]) -> Orders:
    found: Orders = defaultdict(lambda: defaultdict(list))
    for warp, said in warps.items():
        for place, each in said:
            found[place][warp].append(each)
    return {place: dict(each) for place, each in found.items()}


def _in_words(ops: Sequence[Numbered]) -> str:
    """Operations in a row, equal ones counted."""
    runs = [(list(run), said) for said, run in groupby(ops, key=lambda each: each[1])]
    return ", ".join(f"{len(run)} x {' '.join(said)} (from position {run[0][0]})" for run, said in runs)


def _listed(numbers: Sequence[int]) -> str:
    """``0 to 3`` of numbers in a row, else one by one."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
