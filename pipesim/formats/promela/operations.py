"""Each operation of the flat program as the indivisible steps of a Promela process."""

from collections.abc import Callable
from typing import NamedTuple

from pipesim.formats.promela.flights import Flights, ModelledFlight, barrier_away, memory_away
from pipesim.model.barrier import COUNT_BITS, MAX_COUNT
from pipesim.model.groups import ARRIVALS, BY_STATE, NO_EFFECT
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation, operand, operands
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP

#: Operands beyond this break the same rule as this does, and sums with them stay within Promela's 32-bit integers.
CLAMP = 1 << 28


class PromelaStep(NamedTuple):
    """One indivisible move: possible when ``guard`` holds ("" always), with these effects.

    ``waits`` is a condition that must hold before the move ends: until then others may move. A jump has a target.
    """

    guard: str
    effects: tuple[str, ...]
    waits: str = ""
    after: tuple[str, ...] = ()
    jump: int = -1


Choice = tuple[PromelaStep, ...]


class Words:
    """What the translation of a program's operations needs to know: its flights, and how state is spelled."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.flights = Flights(program)
        operations = list(program.operations)
        self.tokens = any(
            op[0] in BY_STATE or op[0] == Op.PENDING_COUNT or (op[0] in ARRIVALS and operand(op, "register") >= 0)
            for op in operations
        )
        waited: dict[tuple[int, int], None] = {}
        for agent, code in enumerate(program.code):
            for op in code:
                if op[0] == Op.WAIT_GROUP:
                    waited.update(
                        ((member, operand(op, "engine")), None)
                        for member in self.group_of(agent, operand(op, "engine"))
                    )
        self.groups = {key: f"groups[{n}]" for n, key in enumerate(waited)}
        self._peopled = {agent.cta for agent in program.agents}

    def group_of(self, agent: int, engine: int) -> tuple[int, ...]:
        """The agents whose closed groups a wait of this agent is for."""
        return self.program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)

    def passes(self, bar: int, parity: int) -> str:
        """The phase of this parity has completed."""
        return f"phase[{bar}] {'% 2 ' if self.tokens else ''}!= {parity}"

    def exit_condition(self, ctas: tuple[int, ...]) -> str:
        """One of these CTAs has exited; "" if none of them ever does."""
        return " || ".join(f"running[{cta}] == 0" for cta in dict.fromkeys(ctas) if cta in self._peopled)

    def unless_exited(self, ctas: tuple[int, ...], effects: tuple[str, ...]) -> tuple[str, ...]:
        """The effects, or the fault that one of the CTAs has exited."""
        gone = self.exit_condition(ctas)
        return (f"if :: {gone} -> fault(exited_cta) :: else -> {'; '.join(effects)} fi",) if gone else effects

    def conflict(self, flight: ModelledFlight) -> tuple[str, ...]:
        """The fault that something is open with which opening this one conflicts."""
        rivals = " || ".join(self.flights.name(other) for other in self.flights.conflicts_of(flight))
        return (f"if :: {rivals} -> fault(race) :: else fi",) if rivals else ()

    def brings(self, flight: ModelledFlight) -> str:
        """The variable that says which item the flight brings, "" if all that share its place bring the same."""
        sharing = self.flights.by_place[flight.place]
        return self.flights.name(flight).replace("left", "brings") if len({f.item for f in sharing}) > 1 else ""


def register(number: int) -> str:
    """A register of the agent, local to its process."""
    return f"r[{number}]"


def steps(words: Words, agent: int, pc: int) -> list[Choice]:
    """The steps of one operation, one after the other; each a choice. Nothing for what no other agent can notice."""
    operation = words.program.code[agent][pc]
    if operation[0] in NO_EFFECT:
        return []
    return _RULES[Op(operation[0])](words, agent, pc, operation)


def always(*effects: str) -> list[Choice]:
    """One step that is always possible."""
    return [(PromelaStep("", effects),)]


def clamp(value: int) -> int:
    """The operand as an integer of Promela."""
    return max(-CLAMP, min(CLAMP, value))


def _token(bar: int, into: int) -> tuple[str, ...]:
    return (f"{register(into)} = (phase[{bar}] << {COUNT_BITS}) | pending[{bar}]",) if into >= 0 else ()


def _init(_words: Words, _agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar, count = operands(op, "barrier", "count")
    return always(f"init_barrier({bar}, {count})" if 1 <= count <= MAX_COUNT else "fault(init_count)")


def _arrive(words: Words, agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar, count, expect, into = operands(op, "barrier", "count", "expect", "register")
    name = "arrive" if op[0] == Op.ARRIVE else "arrive_drop"
    call = f"{name}({bar}, {clamp(count)}, {clamp(expect)})" if count >= 1 else f"arrive_wrongly({bar})"
    return always(*words.unless_exited(barrier_away(words.program, agent, bar), (*_token(bar, into), call)))


def _arrive_no_complete(words: Words, agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar, count, into = operands(op, "barrier", "count", "register")
    call = f"arrive_no_complete({bar}, {clamp(count)})" if count >= 1 else f"arrive_wrongly({bar})"
    return always(*words.unless_exited(barrier_away(words.program, agent, bar), (*_token(bar, into), call)))


def _change_tx(words: Words, agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar, nbytes = operands(op, "barrier", "bytes")
    call = f"add_tx({bar}, {clamp(nbytes if op[0] == Op.EXPECT_TX else -nbytes)})"
    return always(*words.unless_exited(barrier_away(words.program, agent, bar), (call,)))


def _unless_dead(bar: int, effect: str = "") -> str:
    then = f" -> {effect}" if effect else ""
    return f"if :: life[{bar}] != 1 -> dead({bar}) :: else{then} fi"


def _wait(words: Words, _agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar, parity = operands(op, "barrier", "parity")
    return [(PromelaStep(f"life[{bar}] != 1 || {words.passes(bar, parity)}", (_unless_dead(bar),)),)]


def _wait_unless(words: Words, agent: int, pc: int, op: Operation) -> list[Choice]:
    bar, parity, unless = operands(op, "barrier", "parity", "register")
    if unless < 0:
        return _wait(words, agent, pc, op)
    known = f"{register(unless)} != 0"
    guard = f"{known} || life[{bar}] != 1 || {words.passes(bar, parity)}"
    return [(PromelaStep(guard, (f"if :: {known} :: else -> {_unless_dead(bar)} fi",)),)]


def _test(words: Words, _agent: int, _pc: int, op: Operation) -> list[Choice]:
    """A try may say no although the phase is complete; but without a register the answer is lost."""
    bar, parity, into = operands(op, "barrier", "parity", "register")
    if into < 0:
        return always(_unless_dead(bar))
    yes = PromelaStep(f"life[{bar}] == 1 && {words.passes(bar, parity)}", (f"{register(into)} = 1",))
    return [(yes, PromelaStep("", (_unless_dead(bar, f"{register(into)} = 0"),)))]


def _lag(bar: int, state: int) -> str:
    return f"phase[{bar}] - ({register(state)} >> {COUNT_BITS})"


def _wait_state(_words: Words, _agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar, state = operands(op, "barrier", "register")
    return [(PromelaStep(f"life[{bar}] != 1 || {_lag(bar, state)} != 0", (f"check_state({bar}, {register(state)})",)),)]


def _test_state(_words: Words, _agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar, state, into = operands(op, "barrier", "state_register", "register")
    check = f"check_state({bar}, {register(state)})"
    if into < 0:
        return always(check)
    yes = PromelaStep(f"life[{bar}] == 1 && {_lag(bar, state)} == 1", (check, f"{register(into)} = 1"))
    return [(yes, PromelaStep("", (check, f"{register(into)} = 0")))]


def _pending_count(_words: Words, _agent: int, _pc: int, op: Operation) -> list[Choice]:
    state, into = operands(op, "state_register", "register")
    return always(f"{register(into)} = {register(state)} & {MAX_COUNT}") if into >= 0 else []


def _cp_async_arrive(words: Words, agent: int, pc: int, op: Operation) -> list[Choice]:
    bar, lanes, noinc = operands(op, "barrier", "lanes", "noinc")
    (flight,) = words.flights.flights_of(agent, pc)
    raised = _unless_dead(bar) if noinc else f"raise_pending({bar}, {clamp(lanes)})"
    return always(raised, f"{words.flights.name(flight)} = 1")


def _bar_sync(_words: Words, _agent: int, _pc: int, op: Operation) -> list[Choice]:
    bar = operand(op, "named_barrier")
    joined = (f"waits = generation[{bar}] + 1", _join(op))
    return [(PromelaStep("", joined, waits=f"generation[{bar}] >= waits", after=("waits = 0",)),)]


def _join(op: Operation) -> str:
    bar, threads, lanes = operands(op, "named_barrier", "threads", "lanes")
    if threads % WARP or threads <= 0:
        return "fault(barrier_threads)"
    return f"bar_join({bar}, {clamp(threads)}, {clamp(lanes)})"


def _cluster_arrive(words: Words, _agent: int, _pc: int, _op: Operation) -> list[Choice]:
    join = "cluster_join_or_ended" if words.program.leaves_cluster_barrier else "cluster_join"
    return always(f"{join}({len(words.program.agents)})")


def _cluster_wait(_words: Words, _agent: int, _pc: int, _op: Operation) -> list[Choice]:
    effect = "if :: joined -> joined = 0 :: else -> fault(cluster_arrive) fi"
    return [(PromelaStep("cluster_generation >= joined", (effect,)),)]


def _tma_load(words: Words, agent: int, pc: int, op: Operation) -> list[Choice]:
    nbytes = operand(op, "bytes")
    flights = words.flights.flights_of(agent, pc)
    reached = tuple(cta for row in words.program.accesses_of(op) for cta in memory_away(words.program, agent, row))
    opened: list[str] = []
    for flight in flights:
        opened += words.conflict(flight)
        opened += [f"cell[{cell}] = -2" for cell in range(flight.first, flight.end)]
        opened.append(f"{words.flights.name(flight)} = {min(nbytes, CLAMP)} + 1")
        if words.brings(flight):
            opened.append(f"{words.brings(flight)} = {flight.item}")
    return always(*words.unless_exited(reached, tuple(opened)))


def _transfer(words: Words, agent: int, pc: int, op: Operation) -> list[Choice]:
    """What is under way is numbered by its group, so that a wait for groups finds it: 1 more than those closed before.

    A fault of opening comes before a fault of what is read, as ``fault`` takes the first only.
    """
    code = op[0]
    engine, item = operands(op, "engine", "item")
    (flight,) = words.flights.flights_of(agent, pc)
    effects = list(words.conflict(flight))
    for cell in range(flight.first, flight.end):
        if code == Op.TRANSFER_WRITE:
            effects.append(f"cell[{cell}] = -2")
            continue
        effects.append(f"held = cell[{cell}]")
        if engine in IN_ORDER:  # it reads what the last write under way will have left
            effects += [
                f"if :: {words.flights.name(other)} -> held = {other.item} :: else fi"
                for other in words.flights.of_engine(agent, engine)
                if other.pc < pc and other.writes and other.first <= cell < other.end
            ]
        effects.append(f"{_look(words, operand(op, 'access'), item)}({item})")
    group = words.groups.get((agent, engine))
    effects.append(f"{words.flights.name(flight)} = {f'{group} + 1' if group else '1'}")
    return always(*words.unless_exited(flight.ctas, tuple(effects)))


def _commit(words: Words, agent: int, pc: int, op: Operation) -> list[Choice]:
    group = words.groups.get((agent, operand(op, "engine")))
    flights = words.flights.flights_of(agent, pc)
    if flights:
        return always(*(f"{words.flights.name(flight)} = 1" for flight in flights))
    return always(f"{group} = {group} + 1") if group else always("skip")


def _wait_group(words: Words, agent: int, _pc: int, op: Operation) -> list[Choice]:
    engine, groups = operands(op, "engine", "groups")
    limit = f"{words.groups[agent, engine]} - {min(groups, CLAMP)}"
    conditions = []
    for member in words.group_of(agent, engine):
        if member != agent:
            conditions.append(f"{words.groups[member, engine]} >= {limit}")
        for flight in words.flights.of_engine(member, engine):
            if not flight.arrivals:
                name = words.flights.name(flight)
                conditions.append(f"({name} == 0 || {name} > {limit})")
    return [(PromelaStep(" && ".join(conditions), ("skip",)),)]


def _look(words: Words, access: int, item: int) -> str:
    """The rule for a cell that is read."""
    return "look_unless_empty" if words.program.may_hold_nothing(access, item) else "look"


def _access(words: Words, agent: int, pc: int, op: Operation) -> list[Choice]:
    """A read or write opens and closes: whatever conflicts with it until then is a race."""
    code = op[0]
    access, item = operands(op, "access", "item")
    (flight,) = words.flights.flights_of(agent, pc)
    name = words.flights.name(flight)
    cells = range(flight.first, flight.end)
    if code == Op.WRITE:
        effects = [f"cell[{cell}] = {item}" for cell in cells]
    else:
        look = _look(words, access, item)
        effects = [effect for cell in cells for effect in (f"held = cell[{cell}]", f"{look}({item})")]
    closed = words.unless_exited(memory_away(words.program, agent, access), tuple(effects))
    return [*always(*words.conflict(flight), f"{name} = 1"), *always(f"{name} = 0", *closed)]


def _jump_if(_words: Words, _agent: int, pc: int, op: Operation) -> list[Choice]:
    number, value, skip = operands(op, "register", "value", "skip")
    if not -(1 << 31) <= value < 1 << 31:
        return []  # no register ever holds it
    there = pc + 1 + skip
    taken = PromelaStep(f"{register(number)} == {value}", (), jump=there)
    return [(taken, PromelaStep(f"{register(number)} != {value}", ()))]


_RULES: dict[Op, Callable[[Words, int, int, Operation], list[Choice]]] = {
    Op.INIT: _init,
    Op.INVAL: lambda _words, _agent, _pc, op: always(f"inval_barrier({operand(op, 'barrier')})"),
    Op.ARRIVE: _arrive,
    Op.ARRIVE_DROP: _arrive,
    Op.ARRIVE_NO_COMPLETE: _arrive_no_complete,
    Op.EXPECT_TX: _change_tx,
    Op.COMPLETE_TX: _change_tx,
    Op.WAIT: _wait,
    Op.WAIT_UNLESS: _wait_unless,
    Op.TRY_WAIT: _test,
    Op.TEST_WAIT: _test,
    Op.WAIT_STATE: _wait_state,
    Op.TEST_STATE: _test_state,
    Op.PENDING_COUNT: _pending_count,
    Op.CP_ASYNC_ARRIVE: _cp_async_arrive,
    Op.BAR_SYNC: _bar_sync,
    Op.BAR_ARRIVE: lambda _words, _agent, _pc, op: always(_join(op)),
    Op.SETMAXNREG: lambda *_: [],  # the model has registers enough: docs/spin.md
    Op.CLUSTER_ARRIVE: _cluster_arrive,
    Op.CLUSTER_WAIT: _cluster_wait,
    Op.TMA_LOAD: _tma_load,
    Op.TRANSFER_READ: _transfer,
    Op.TRANSFER_WRITE: _transfer,
    Op.COMMIT: _commit,
    Op.WAIT_GROUP: _wait_group,
    Op.COMMIT_MULTICAST: _commit,
    Op.READ: _access,
    Op.WRITE: _access,
    Op.JUMP_IF: _jump_if,
}
assert set(_RULES) | NO_EFFECT == set(Op), "every operation is translated"
