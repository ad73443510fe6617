"""What one version of a program does in its synchronisation: counted by role, operation, group and stage."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipesim.explain.operation_words import operation_in_short, operation_in_words
from pipesim.model.groups import (
    ACCESSES,
    ASYNC_ACCESSES,
    BY_PARITY,
    ENGINE_ACCESSES,
    EXPECTS,
    LOOP_MARKS,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY_WAITS,
    PRIVATE,
    TOUCHES_MEMORY,
    TRANSACTIONS,
    TRIP_BEGINS,
)
from pipesim.model.ops import AT, IN_ORDER, Op, Operation, operand, ranks, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import number_runs

Stage = tuple[str, int]  #: a group of barriers and a stage, ("", -1) for an operation on none
_NOWHERE: Stage = ("", -1)
_IN_MEMORY: Stage = ("", -2)  #: of reads and writes
_SLOT = re.compile(r"\[\d+\].*")
_NUMBER = re.compile(r" -?[\d,]+$")


@dataclass(frozen=True)
class SyncStep:
    """An operation, or the accesses between two: each in words, and without the name of a tile, with its line.

    ``amount``: for how many it does it, its bytes, and the parity that it waits for, -1 if none.
    """

    on: Stage
    words: dict[str, str]
    plain: dict[str, str]
    amount: tuple[int, int, int] = (1, 0, -1)


@dataclass
class RoleTally:
    """What a role does: how often what on which stage, with how many bytes, and at which lines."""

    warps: int = 0
    times: Counter[tuple[str, Stage]] = field(default_factory=Counter)
    nbytes: Counter[tuple[str, Stage]] = field(default_factory=Counter)
    lines: dict[tuple[str, Stage], dict[str, None]] = field(default_factory=dict)
    first: dict[Stage, int] = field(default_factory=dict)
    order: list[list[SyncStep]] = field(default_factory=list)
    iterations: int = 1
    cut: bool = False


@dataclass(frozen=True)
class NewNames:
    """What a version's tiles and groups are called in the new one, and the tiles whose slots are distinguished."""

    tiles: Mapping[str, str]
    slotted: set[str]
    groups: Mapping[str, str]

    def stage(self, program: Program, barrier: int) -> Stage:
        """The stage that a barrier is."""
        found = program.barriers[barrier]
        return (self.groups.get(found.name, found.name), found.stage)


Warp = tuple[int, int, int]  #: CTA, warp, and which of the agents that its lanes are


def _warps(program: Program) -> list[Warp]:
    """The warp of each agent."""
    seen: Counter[tuple[int, int]] = Counter()
    found = []
    for agent in program.agents:
        found.append((agent.cta, agent.warp, seen[agent.cta, agent.warp]))
        seen[agent.cta, agent.warp] += 1
    return found


def roles_of_warps(old: Program, new: Program) -> dict[Warp, str]:
    """The role of each warp of two kernels; {} for programs whose roles are an author's, or with other warps.

    They are those of the version that was read to its end, since what a warp does after a hang is not known.
    """
    read = old.coverage.extracted and new.coverage.extracted
    if not read or {each[:2] for each in _warps(old)} != {each[:2] for each in _warps(new)}:
        return {}
    named = old if new.cut and not old.cut else new
    return dict(zip(_warps(named), (agent.role for agent in named.agents), strict=True))


def role_tallies(program: Program, names: NewNames, role_of: Mapping[Warp, str]) -> dict[str, RoleTally]:
    """What each role does; ``role_of``: the roles of warps, of others the program's."""
    found: dict[str, RoleTally] = {}
    known: dict[Operation, tuple[str, Stage, int, int]] = {}
    for a, warp in enumerate(_warps(program)):
        mine = found.setdefault(role_of.get(warp, program.agents[a].role), RoleTally())
        mine.warps += 1
        mine.cut = mine.cut or a in program.cut
        mine.iterations = max(mine.iterations, _iterations(program, a))
        order: list[SyncStep] = []
        for pc, op in enumerate(program.code[a]):
            if op[0] in LOOP_MARKS or (op[0] in PRIVATE and op[0] != Op.FENCE):
                continue
            line = program.line(a, pc)
            if op[0] in ACCESSES or (op[0] in ENGINE_ACCESSES and operand(op, "engine") in IN_ORDER):
                _add_access(order, program, op, names, line)
                continue
            if op not in known:
                known[op] = _described(program, op, names)
            what, on, times, nbytes = known[op]
            if op[0] == Op.INIT:  # what is another in them is said of the barriers
                continue
            plain, slot = (
                _verb_and_slot(program, op, names) if op[0] in TOUCHES_MEMORY else (what.partition(" in CTAs ")[0], "")
            )
            parity = operand(op, "parity") if op[0] in BY_PARITY else -1
            ctas = "".join(what.partition(" in CTAs ")[1:])
            words, short = {f"{plain}{slot}{ctas}": line}, {f"{_without_tile(plain)}{ctas}": line}
            order.append(SyncStep(on, words, short, (times, nbytes, parity)))
            mine.times[what, on] += times
            mine.nbytes[what, on] += nbytes
            mine.lines.setdefault((what, on), {})[line] = None
            if op[0] in PARITY_WAITS:
                mine.first.setdefault(on, operand(op, "parity"))
        mine.order.append(_without_last_tries(order) if a in program.cut else order)
    return found


def _without_last_tries(order: list[SyncStep]) -> list[SyncStep]:
    """A loop of tries at whose wait reading stopped is this wait."""
    done = len(order) - 1
    while (
        done > 0
        and order[done - 1].on == order[-1].on
        and all(said.startswith("try") for said in order[done - 1].words)
    ):
        done -= 1
    return [*order[: max(done, 0)], *order[-1:]]


def _iterations(program: Program, agent: int) -> int:
    """Of the loop of which an agent runs most iterations; without marks of loops the most executions of one line."""
    code = program.code[agent]
    marked = Counter(operand(op, "loop") for op in code if op[0] in TRIP_BEGINS)
    if marked:
        return max(marked.values())
    executed = zip(program.instructions[agent], code, strict=True)
    return max(Counter(each for each, op in executed if op[0] not in LOOP_MARKS).values(), default=1)


def _described(program: Program, op: Operation, names: NewNames) -> tuple[str, Stage, int, int]:
    """What an operation does, without its numbers; the stage that it is on; how often it does it; its bytes."""
    plain = op
    for name, value in (("count", 1), ("expect", 0), ("item", -1), ("lanes", 1)):
        if op[0] in AT[name] and op[0] not in ON_NAMED_BARRIER:  # type: ignore[index]
            plain = with_operand(plain, name, value)  # type: ignore[arg-type]
    words = (operation_in_words if op[0] in ON_NAMED_BARRIER else operation_in_short)(program, plain)
    on, times, nbytes = _NOWHERE, 1, 0
    if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
        barrier = operand(op, "barrier")
        on = names.stage(program, barrier)
        words = words.replace(program.barrier_name(barrier).partition("@")[0], "", 1).partition("@")[0]
    if op[0] in TOUCHES_MEMORY:
        verb, slot = _verb_and_slot(program, op, names)
        words = f"{verb}{_SLOT.sub('', slot)}"
    if op[0] in AT["cta_mask"] and operand(op, "cta_mask"):
        words += f" in CTAs {number_runs(ranks(operand(op, 'cta_mask')))}"
    if op[0] in AT["count"] and op[0] != Op.INIT:
        times = operand(op, "count")
    elif op[0] in AT["lanes"] and op[0] not in ON_NAMED_BARRIER:
        times = operand(op, "lanes")
    if op[0] in EXPECTS:
        nbytes = operand(op, "expect")
    elif op[0] in TRANSACTIONS or op[0] in ASYNC_ACCESSES:
        nbytes = operand(op, "bytes")
    if op[0] in TRANSACTIONS:
        words = _NUMBER.sub("", words)
    return " ".join(words.replace("→", "to").split()).removesuffix(" to"), on, times, nbytes


def _verb_and_slot(program: Program, op: Operation, names: NewNames) -> tuple[str, str]:
    """``copy to`` and the tile by the new version's name, with its slot if slots are distinguished."""
    access = operand(op, "access")
    verb = operation_in_short(program, op).partition(program.access_name(access))[0].replace("→", "to")
    if (slot := program.slot_of(access)) < 0:
        return verb, f"{program.accesses[access].space.name.lower()} memory"
    tile = _SLOT.sub("", program.access_name(access))
    return verb, f"{names.tiles.get(tile, tile)}{f'[{slot}]' if tile in names.slotted else ''}"


def _add_access(order: list[SyncStep], program: Program, op: Operation, names: NewNames, line: str) -> None:
    """Accesses between two operations are one step: a compiler may exchange them."""
    if not order or order[-1].on != _IN_MEMORY:
        order.append(SyncStep(_IN_MEMORY, {}, {}))
    verb, slot = _verb_and_slot(program, op, names)
    order[-1].words.setdefault(f"{verb}{slot}", line)
    order[-1].plain.setdefault(_without_tile(verb), line)


def _without_tile(verb: str) -> str:
    return verb.rstrip(" ←").removesuffix(" to")


def tile_shapes(program: Program) -> dict[str, tuple[int, int]]:
    """The size and number of slots of each tile."""
    return {tile.name: (tile.nbytes, tile.slots) for tile in program.tiles}


def group_stages(program: Program) -> dict[str, set[int]]:
    """The stages of each group of barriers."""
    found: dict[str, set[int]] = {}
    for barrier in program.barriers:
        found.setdefault(barrier.name, set()).add(barrier.stage)
    return found


def init_counts(program: Program) -> dict[Stage, int]:
    """The count of the last init of each stage."""
    found: dict[Stage, int] = {}
    for op in program.operations:
        if op[0] == Op.INIT:
            barrier = program.barriers[operand(op, "barrier")]
            found[barrier.name, barrier.stage] = operand(op, "count")
    return found
