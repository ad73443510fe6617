"""From a doubt to a schedule that shows the fault: the causal past of what is doubted, then that, then on to an end."""

from collections.abc import Callable, Iterator, Sequence

from pipesim.model.coverage import Assumption
from pipesim.model.edits import Listing, listing, replace_operations, with_listings
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import TAKES_REGISTERS
from pipesim.model.moves import Move
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import WARP, warp_shape_faults
from pipesim.prove.counterexample.leftovers import exit_faults
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Doubt, Refutation, Why
from pipesim.prove.stale_waits import stale_waits

_NONE = (-1, -1)  #: no transfer


def confirm(program: Program, doubt: Doubt, passes: Callable[[Fault], bool] = lambda _: False) -> Refutation | None:
    """A schedule in which what is doubted fails, None if none of those tried does.

    ``passes``: the faults that are known, after which a schedule continues.
    """
    agents = list(range(len(program.agents)))
    orders = [agents, agents[::-1]]
    if doubt.agent >= 0:
        rest = [agent for agent in agents if agent != doubt.agent]
        orders += [[*rest, doubt.agent], [doubt.agent, *rest]]
    if doubt.why is Why.LAP:
        found = _lapping_schedule(doubt, Play(program, passes=passes), agents)
        if found is not None:
            return found
    for hold in _delayed_transfers(doubt):
        begun = Play(program, passes=passes)
        if not _bring_about(begun, doubt, hold):
            continue
        for order in orders:
            play = begun.fork()
            if not play.faults:
                play.go_on(order)
            found = refutation(play)
            if found is not None:
                return found
    pools = program.register_pools
    if doubt.why is Why.UNPUBLISHED and pools is not None and pools.may_block:
        return _ordered_by_registers(program, doubt)
    return None


def _ordered_by_registers(program: Program, doubt: Doubt) -> Refutation | None:
    """A use that comes after the init only since its agent has to wait for registers (``setmaxnreg``), which orders no
    memory (PTX ISA, "Memory Consistency Model"): without these requests there is a schedule in which it does not.
    """
    free = with_listings(program, {a: _without_requests(listing(program, a)) for a in range(len(program.agents))})
    made = [(a, pc) for a, code in enumerate(program.code) for pc, op in enumerate(code)
            if op[0] == Op.INIT and operand(op, "barrier") == doubt.where]  # fmt: skip
    if not made or confirm(free, doubt) is None:
        return None
    fault = Fault(FaultKind.UNPUBLISHED_INIT, doubt.agent, doubt.pc, doubt.where, 0, 0, *made[0])
    return Refutation(Ending.FAULT, way_to(program, doubt.agent, doubt.pc + 1), fault, usual=True)


def _without_requests(before: Listing) -> Listing:
    """The same with requests for registers that change nothing, so that places stay."""
    idle: Operation = (int(Op.WORK), 0)
    return replace_operations(before, {pc: idle for pc, op in enumerate(before.code) if op[0] in TAKES_REGISTERS})


def _lapping_schedule(doubt: Doubt, play: Play, agents: Sequence[int]) -> Refutation | None:
    """A schedule in which the agent stays before its wait until no other agent can move and everything has landed."""
    play.go_on([doubt.agent, *agents], hold=(doubt.agent, doubt.pc))
    if not play.faults:
        play.go_on(agents)
    return refutation(play)


def hang_beside(program: Program) -> tuple[Refutation, ...]:
    """The deadlock of such a schedule in which nothing else is wrong before it."""
    found = None if program.cut else at_once(program)
    return (found,) if found is not None and found.deadlock is not None else ()


def at_once(program: Program) -> Refutation | None:
    """The fault or deadlock of one of a few fixed schedules: each agent in turn runs as far as it can, and transfers
    land after each round or only where no agent can move. None if these schedules have none.
    """
    agents = list(range(len(program.agents)))
    half = len(agents) // 2
    orders = agents, agents[::-1], agents[half:] + agents[:half], agents[half::-1] + agents[:half:-1]
    for order, early in (*((each, False) for each in orders), (agents, True)):
        play = Play(program)
        play.go_on(order, early=early)
        found = refutation(play)
        if found is not None:
            return found
    return None


def refutation(play: Play) -> Refutation | None:
    """What is wrong at the point that a play has reached, None if nothing is."""
    if play.faults:
        return Refutation(Ending.FAULT, tuple(play.moves), play.faults[0])
    stuck = play.deadlock
    return Refutation(Ending.DEADLOCK, tuple(play.moves), deadlock=stuck) if stuck is not None else None


def _delayed_transfers(doubt: Doubt) -> tuple[tuple[int, int], ...]:
    """The transfers, by agent and operation, that one after the other are kept from landing in the past of a doubt."""
    if doubt.why is Why.EARLY_INVAL and doubt.other_agent >= 0:
        return (doubt.other_agent, doubt.other_pc), _NONE
    return (_NONE,)


def _bring_about(play: Play, doubt: Doubt, hold: tuple[int, int]) -> bool:
    """Play the past of a doubt and what is doubted itself; False if that cannot be reached."""
    match doubt.why:
        case Why.RACE:
            return _race(play, doubt)
        case Why.EARLY_INVAL | Why.EARLY_PART | Why.EARLY_PASS | Why.STALE_TRY | Why.UNPUBLISHED:
            if not play.reach(doubt.past, hold):
                return False
            if not play.faults and play.state.pcs[doubt.agent] == doubt.pc:
                play.advance(doubt.agent)
            return True
        case Why.LAP | Why.LATE_RAISE:
            return play.reach(doubt.past)
        case Why.EXIT:
            return play.reach(doubt.past, hold=(doubt.agent, doubt.pc))
        case _:
            return False


def _race(play: Play, doubt: Doubt) -> bool:
    """Both accesses open at the same time: the other begins and stays open, then this one begins."""
    other = (doubt.other_agent, doubt.other_pc)
    if not play.reach(doubt.past, hold=other) or play.faults:
        return bool(play.faults)
    if play.state.pcs[other[0]] <= other[1] and (play.state.pcs[other[0]] < other[1] or not play.begin(other[0])):
        return False
    if not play.faults and play.state.pcs[doubt.agent] == doubt.pc:
        play.begin(doubt.agent)
    return bool(play.faults)


def shown_by_code(program: Program) -> tuple[Refutation, ...]:
    """What no move shows: the code of the warps, each with a way to its operation, and work under way at an end."""
    faults = [*warp_shape_faults(program), *_partial_warps(program), *_forbidden(program), *_lanes_apart(program)]
    faults += stale_waits(program)
    found: dict[tuple[FaultKind, int, int], Refutation] = {}
    for each in faults:
        at = each.kind, each.agent, each.pc
        if at not in found:
            end = each.pc + (each.kind is FaultKind.STALE_WAIT)  # which returns: it is the last move
            found[at] = Refutation(Ending.FAULT, way_to(program, each.agent, end), each, usual=True)
    at_exit, schedule = exit_faults(program) if Assumption.EXIT in program.strictness else ((), ())
    return (*found.values(), *(Refutation(Ending.FAULT, schedule, each) for each in at_exit[:1]))


def _partial_warps(program: Program) -> Iterator[Fault]:
    """Instructions of whole warps that only some lanes execute, as the kernel's reader has seen."""
    for place in program.coverage.partial:
        agent, pc = _operation_at(program, place.partition(" ")[0])
        number = place.rpartition(" warp ")[2]
        yield Fault(FaultKind.WARP_SHAPE, agent, pc, found=int(number) if number.isdecimal() else -1, expected=WARP)


def _forbidden(program: Program) -> Iterator[Fault]:
    """What PTX forbids, as the kernel's reader has seen, and no assumption excuses."""
    strict = {"", *(each.value for each in program.strictness)}
    for n, each in enumerate(program.coverage.forbidden):
        if each.unless not in strict:
            continue
        agent, pc = _operation_at(program, each.line, each.agent)
        yield Fault(each.kind, agent, pc, found=n)


def _lanes_apart(program: Program) -> Iterator[Fault]:
    """The first operation after each place where lanes of a warp are taken to be together; none without the rule."""
    if Assumption.LANES not in program.strictness:
        return
    for place in program.coverage.rejoined:
        yield Fault(FaultKind.LANES_APART, *_operation_at(program, place))


def may_be_ended(program: Program, shown: Refutation) -> bool:
    """Whether lanes that do not wait may end a deadlock: those of one warp are scheduled independently, so that none on
    one way of a branch waits for those on the other (PTX ISA, "Independent thread scheduling").
    """
    if shown.deadlock is None or not program.coverage.ahead:
        return False
    pcs = Play(program, shown.schedule).state.pcs
    later = (program.line(a, n) for a, pc in enumerate(pcs) for n in range(pc + 1, len(program.code[a])))
    return not set(program.coverage.ahead).isdisjoint(later)


def _operation_at(program: Program, place: str, of: int = -1) -> tuple[int, int]:
    """The first operation of this source line, else of the next line of the file that has one, else of the last.

    ``of``: of this agent.
    """
    file, line = _file_and_line(place)
    found: dict[tuple[bool, bool, bool, int], tuple[int, int]] = {}
    for agent, code in enumerate(program.code):
        for pc in range(len(code)):
            other, at = _file_and_line(program.line(agent, pc))
            found.setdefault((0 <= of != agent, other != file, at < line, abs(at - line)), (agent, pc))
    return found[min(found)] if found else (0, 0)


def _file_and_line(place: str) -> tuple[str, int]:
    """Of ``kernel.cu:12``; -1 for a place without a line."""
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdecimal() else -1


def way_to(program: Program, agent: int, pc: int) -> tuple[Move, ...]:
    """Moves after which the agent is there, as far as one plain schedule gets."""
    play = Play(program)
    order = [agent, *(other for other in range(len(program.agents)) if other != agent)]
    while play.state.pcs[agent] < pc and not play.faults:
        if not (play.advance(agent) or any(play.advance(other) for other in order[1:]) or play.land()):
            break
    return tuple(play.moves)
