"""Edits of a flat program that make a wrong twin of it: operations left out, changed, or in another order."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program

Edit = Callable[[Program], Program]

#: Where an operation names its barrier.
_BARRIER = {Op.COMMIT: 2, Op.COMMIT_MULTICAST: 2, Op.INIT: 1, Op.ARRIVE: 1, Op.WAIT: 1, Op.WAIT_UNLESS: 1}


def the_same(program: Program) -> Program:
    """Nothing is wrong."""
    return program


def barrier_of(program: Program, op: Operation) -> str:
    """The barrier that an operation signals, waits for or initialises, as ``full[0]``; "" if it has none."""
    at = _BARRIER.get(Op(op[0]))
    return "" if at is None else program.barrier_name(op[at])


def reordered(program: Program, role: str, order: Callable[[Sequence[Operation]], list[int]]) -> Program:
    """The agents of a role ("": all) run the operations at the positions that ``order`` gives, in that order."""
    code, lines = list(program.code), list(program.lines)
    for number, agent in enumerate(program.agents):
        if role in ("", agent.role):
            positions = order(code[number])
            code[number] = tuple(program.code[number][at] for at in positions)
            lines[number] = tuple(program.lines[number][at] for at in positions)
    assert tuple(code) != program.code
    return replace(program, code=tuple(code), lines=tuple(lines))


def places(program: Program, code: Sequence[Operation], op: Op, on: str = "") -> list[int]:
    """Where an agent has this operation, on barriers whose name begins so."""
    return [at for at, one in enumerate(code) if one[0] == op and barrier_of(program, one).startswith(on)]


def without(role: str, op: Op, on: str = "", *, first: bool = False) -> Edit:
    """A role leaves out an operation on barriers whose name begins so, or only the first one."""

    def edit(program: Program) -> Program:
        def order(code: Sequence[Operation]) -> list[int]:
            gone = places(program, code, op, on)[: 1 if first else None]
            return [at for at in range(len(code)) if at not in gone]

        return reordered(program, role, order)

    return edit


def twice(role: str, op: Op, on: str = "") -> Edit:
    """A role runs an operation twice in a row, on barriers whose name begins so."""

    def edit(program: Program) -> Program:
        def order(code: Sequence[Operation]) -> list[int]:
            again = places(program, code, op, on)
            return [at for position in range(len(code)) for at in [position] * (2 if position in again else 1)]

        return reordered(program, role, order)

    return edit


def changed(program: Program, change: Callable[[Operation, str], Operation]) -> Program:
    """The program with every operation changed: ``change(operation, name of its barrier)``."""
    return replace(
        program, code=tuple(tuple(change(op, barrier_of(program, op)) for op in code) for code in program.code)
    )


def counting(on: str, count: int) -> Edit:
    """Barriers whose name begins so are initialised with another count."""
    return lambda program: changed(
        program, lambda op, name: (op[0], op[1], count) if op[0] == Op.INIT and name.startswith(on) else op
    )


def no_wait_group(engine: Engine, groups: int) -> Edit:
    """Nobody waits until at most this many groups of an engine are unfinished."""
    wait = (int(Op.WAIT_GROUP), int(engine), groups)
    return lambda program: reordered(program, "", lambda code: [at for at, op in enumerate(code) if op != wait])


def moved_before(role: str, what: tuple[Op, str], where: tuple[Op, str], offset: int = 0) -> Edit:
    """A role runs each operation ``what``, or the one ``offset`` after it, before the ``where`` of the same number."""

    def edit(program: Program) -> Program:
        def order(code: Sequence[Operation]) -> list[int]:
            positions = list(range(len(code)))
            for to, at in zip(places(program, code, *where), places(program, code, *what), strict=True):
                positions.remove(at + offset)
                positions.insert(positions.index(to), at + offset)
            return positions

        return reordered(program, role, order)

    return edit
