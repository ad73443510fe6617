"""The whole model: declarations, rules, a process for each agent, and one for all that is under way.

Names are written in comments alone, and one function quotes them. A model may hold C (``c_code``), which the verifier
then runs: a name that ended its comment would be code. SPIN itself (6.5, with ``-Pcat``) looks for quotes, braces and
``$`` also in comments, and copies a line into an array.
"""

import re
import string
from collections.abc import Iterable, Iterator, Sequence

from pipesim.bounds import MAX_MODEL_OPERATIONS
from pipesim.errors import UsageError
from pipesim.formats.promela.flights import ModelledFlight
from pipesim.formats.promela.operations import CLAMP, Choice, PromelaStep, Words, clamp, steps
from pipesim.formats.promela.rules import broken_by, rules
from pipesim.model.groups import CLUSTER, EXPECTS, ON_NAMED_BARRIER, TRANSACTIONS
from pipesim.model.moves import arrive_in_order
from pipesim.model.ops import IN_ORDER, OPERANDS, Op, Operation, describe, operand
from pipesim.model.program import Program
from pipesim.model.state import OWN, TMA
from pipesim.model.tables import NAMED_BARRIERS, meeting_name

_MOST_PROCESSES = 250  #: SPIN knows 255; two are the model's own
_MOST_PHASES = 1 << 11  #: a state token has 11 bits for the phase
_WATCH = """\
/* keeps a schedule that broke a rule from being called a deadlock as well */
active proctype watch() { end: do :: broken od }
"""
_LONGEST_NAME = 40  #: characters of a role in the name of its process: SPIN copies names into arrays of fixed sizes
_VECTOR = 1024  #: bytes of state that SPIN keeps without an option


def to_promela(program: Program) -> str:
    """The flat program as a Promela model with the same schedules, faults and deadlocks as the machine's.

    A fault is a failed assertion with the name of its kind, a deadlock SPIN's invalid end state; SPIN finds no error
    exactly if no schedule fails. UsageError for a program too large for SPIN.
    """
    words = Words(program)
    _require_small(words)
    processes = [_process(words, agent) for agent, code in enumerate(program.code) if code]
    moves = "\n".join([*processes, *_memory(words)])
    inlines = rules(moves, tokens=words.tokens)
    tables, size = _declarations(words, broken_by(inlines + moves))
    return "\n".join([_header(words, size), tables, inlines, moves, _WATCH])


def search_depth(program: Program) -> int:
    """A number of moves that no schedule exceeds: what ``./pan -m`` wants."""
    words = Words(program)
    operations = sum(map(len, program.code))
    return 100 + 8 * operations + 4 * sum(map(len, words.flights.places))


def _require_small(words: Words) -> None:
    program = words.program
    operations = sum(map(len, program.code))
    if operations > MAX_MODEL_OPERATIONS:  # before its transfers are compared with each other
        raise UsageError(
            f"{program.name} has {operations:,} operations, and a model at most {MAX_MODEL_OPERATIONS:,}",
            cause="SPIN could not search its schedules",
            correction="export a smaller size",
        )
    if len(program.agents) > _MOST_PROCESSES:
        raise UsageError(
            f"{program.name} has {len(program.agents)} agents, and SPIN takes {_MOST_PROCESSES} processes",
            correction="export a smaller launch or fewer warps",
        )
    most = max((sum(op[0] == Op.ARRIVE for op in program.operations), 0))
    if words.tokens and most + len(words.flights.places) >= _MOST_PHASES:
        raise UsageError(
            f"{program.name} uses state tokens, and a barrier may go through {_MOST_PHASES} phases or more",
            cause="the export keeps the phase of a token in 11 bits",
            correction="export fewer tiles",
        )


def _header(words: Words, size: int) -> str:
    program = words.program
    params = ", ".join(f"{name}={value}" for name, value in program.params.items())
    vector = f" -DVECTORSZ={size}" if size > _VECTOR else ""
    lines = [
        f"/* {comment_text(program.name)}: every schedule of its flat program, for SPIN 6.",
        *([f" * Parameters: {comment_text(params)}"] if params else []),
        " *",
        " *   spin -a FILE",
        f" *   tcc -DSAFETY{vector} -o pan pan.c",
        f" *   ./pan -m{search_depth(program)}",
        " *",
        " * errors: 0             no schedule fails",
        " * assertion violated    a rule is broken: the assertion names it",
        " * invalid end state     a deadlock",
        " *",
        " * spin -t -p FILE shows the schedule; ./pan -c0 continues to every fault. Any C compiler will do; tcc needs",
        " * a second where others need a minute. Without gcc say spin -Pcat, as there is nothing to preprocess.",
        " */",
    ]
    return "\n".join(lines) + "\n"


def _type(most: int) -> tuple[str, int]:
    """The smallest type for 0 to ``most``, and its bytes."""
    return ("byte", 1) if most <= 255 else ("short", 2) if most < 1 << 15 else ("int", 4)


def _int(most: int) -> tuple[str, int]:
    return ("short", 2) if most < 1 << 15 else ("int", 4)


def _declarations(words: Words, faults: list[str]) -> tuple[str, int]:
    """The variables, and roughly the bytes of a state with its processes."""
    program = words.program
    operations = list(program.operations)
    lines = ["bool broken;  " + comment("a rule is broken"), *_assertions(faults)]
    size = 64 + 16 * (len(program.agents) + 2)

    def declare(kind: tuple[str, int], name: str, number: int, meaning: str = "", start: str = "") -> None:
        nonlocal size
        if number:
            size += kind[1] * number + 3
            said = "  " + comment(meaning) if meaning else ""
            lines.append(f"{kind[0]} {name}[{number}]{start};{said}")

    bars = len(program.barriers)
    count = sum(max(_expects(op), 0) for op in operations)
    nbytes = sum(abs(value) for op in operations for value in _bytes(op))
    lines += [comment(f"barrier {b} is {program.barrier_name(b)}") for b in range(bars)]
    declare(_type(count), "expected", bars)
    declare(_type(count), "pending", bars)
    declare(_int(nbytes + 1), "tx", bars)
    declare(("short", 2) if words.tokens else ("bit", 1), "phase", bars)
    declare(("byte", 1), "life", bars)
    if bars:
        lines[-1] += "  /* 0 before the init, 1 in use, 2 after the inval */"
        lines.append("hidden byte completed;")
    named = len(program.named_barriers)
    lines += [
        comment(f"named barrier {n} is {number if number < NAMED_BARRIERS else meeting_name(number)} of CTA {cta}")
        for n, (cta, number) in enumerate(program.named_barriers)
    ]
    threads = max((operand(op, "threads") for op in operations if op[0] in ON_NAMED_BARRIER), default=0)
    for name, most in (("arrived", threads), ("agreed", threads), ("generation", len(operations))):
        declare(_type(min(most, CLAMP)), name, named)
    if any(op[0] in CLUSTER for op in program.operations):
        lines += ["byte cluster_arrived;", "short cluster_generation;"]
    if program.leaves_cluster_barrier:
        idle = sum(not code for code in program.code)
        lines += [f"byte cluster_ended = {idle};", f"byte cluster_gone = {idle};"]
    if _remote(words):
        running = [sum(a.cta == cta and bool(c) for a, c in zip(program.agents, program.code, strict=True))
                   for cta in range(program.ctas)]  # fmt: skip
        declare(("byte", 1), "running", program.ctas, "agents of each CTA that have not ended", _start(running))
    _declare_memory(words, declare)
    if program.accesses:
        lines.append("hidden int held;")
    return "\n".join(lines) + "\n", size


def _assertions(faults: list[str]) -> list[str]:
    said = comment("each is 1: the rules that assertions name; no part of the state")
    return [said, *(f"hidden byte {name} = 1;" for name in faults)] if faults else []


def _bytes(op: Operation) -> tuple[int, ...]:
    """The bytes that an operation adds to a barrier or takes from it."""
    if op[0] in EXPECTS:
        return (operand(op, "expect"),)
    return (operand(op, "bytes"),) if op[0] in TRANSACTIONS or op[0] == Op.TMA_LOAD else ()


def _expects(op: Operation) -> int:
    """The arrivals that an operation makes a barrier expect."""
    if op[0] == Op.INIT:
        return operand(op, "count")
    return operand(op, "lanes") if op[0] == Op.CP_ASYNC_ARRIVE else 0


def _declare_memory(words: Words, declare: object) -> None:
    assert callable(declare)
    program, flights = words.program, words.flights
    everything = [flight for sharing in flights.places for flight in sharing]
    items = max((flight.item for flight in everything), default=0)
    copies = [sharing for sharing in flights.places if sharing[0].engine == TMA]
    others = len(flights.places) - len(copies)
    declare(_int(items), "cell", program.cell_count, "the item in each cell of memory: -1 nothing, -2 being written",
            "" if not program.cell_count else " = -1")  # fmt: skip
    most = max((flight.nbytes for flight in everything), default=0)
    declare(_type(min(most, CLAMP) + 1), "left", len(copies), "of a copy under way: the bytes to come, plus 1")
    if any(words.brings(sharing[0]) for sharing in copies):
        declare(_type(items), "brings", len(copies), "its item")
    closed = sum(op[0] == Op.COMMIT for op in program.operations) + 1
    declare(_type(closed), "flying", others, "whether a transfer, arrival or access is under way")
    declare(_type(closed), "groups", len(words.groups), "groups that an agent has closed on an engine")


def _start(values: list[int]) -> str:
    return " = {" + ", ".join(map(str, values)) + "}"


def _remote(words: Words) -> bool:
    """True if it matters when a CTA has exited."""
    return words.program.ctas > 1


def _process(words: Words, agent: int) -> str:
    program = words.program
    code = program.code[agent]
    cta = program.agents[agent].cta
    leaves = [f"running[{cta}] = running[{cta}] - 1"] if _remote(words) else []
    leaves += [f"cluster_leave({len(program.agents)})"] if program.leaves_cluster_barrier else []
    body = list(_body(words, agent, "; ".join(leaves)))
    role = re.sub(r"[^a-z0-9_]", "_", program.agents[agent].role.lower())[:_LONGEST_NAME]
    name = f"a{agent}_{role}"
    local = [f"  {kind};" for kind, wanted in _locals(words, code) if wanted]
    head = f"{comment(program.agent_name(agent))}\nactive proctype {name}() provided (!broken) {{"
    return "\n".join([head, *local, *body, "end:", "  false", "}", ""])


def _locals(words: Words, code: tuple[Operation, ...]) -> list[tuple[str, bool]]:
    ops = {op[0] for op in code}
    registers = words.program.registers
    kind = "int" if words.tokens else "byte"
    return [
        (f"{kind} r[{registers}]", any(map(_uses_register, code))),
        ("short waits", Op.BAR_SYNC in ops),
        ("short joined", bool(ops & CLUSTER) or words.program.leaves_cluster_barrier),
    ]


def _uses_register(op: Operation) -> bool:
    return any(
        value >= 0
        for name, value in zip(OPERANDS[Op(op[0])], op[1:], strict=True)
        if name in {"register", "state_register"}
    )


def _body(words: Words, agent: int, leave: str) -> Iterator[str]:
    """The lines of a process. ``leave`` is what its last step also does: its CTA may have exited with it."""
    program = words.program
    code = program.code[agent]
    choices = [steps(words, agent, pc) for pc in range(len(code))]
    if not choices[-1] and leave:
        choices[-1] = [(PromelaStep("", ("skip",)),)]  # the CTA exits with an operation that no other agent notices
    targets = {step.jump for said in choices for choice in said for step in choice if step.jump >= 0}
    labels: set[int] = set()
    for target in targets:
        labels.add(next((pc for pc in range(target, len(code)) if choices[pc]), len(code)))
    for pc, said in enumerate(choices):
        if not said:
            continue
        yield f"  {comment(f'{pc} {describe(code[pc])}  {program.line(agent, pc)}')}"
        if pc in labels:
            yield f"L{pc}:\n  skip;"  # SPIN refuses a jump to a d_step
        last = pc == len(code) - 1
        for n, choice in enumerate(said):
            yield _render_choice(choices, choice, leave if last and n == len(said) - 1 else "", leave, len(code))


def _render_choice(choices: list[list[Choice]], choice: Choice, leave: str, jumped: str, size: int) -> str:
    if len(choice) == 1:
        return f"  {_step(choice[0], leave)};"
    lines = ["  if"]
    for step in choice:
        if step.jump < 0:
            lines.append(f"  :: {_step(step, leave)}")
            continue
        there = next((pc for pc in range(step.jump, size) if choices[pc]), size)
        ends = step.jump == size
        lines.append(f"  :: {_step(step, jumped if ends else '')}; goto {f'L{there}' if there < size else 'end'}")
    return "\n".join([*lines, "  fi;"])


def _step(step: PromelaStep, leave: str = "") -> str:
    leaving = (leave,) if leave else ()
    if step.waits:
        first = "d_step { " + "; ".join(step.effects) + " }"
        return "atomic { " + f"{first}; {step.waits} -> " + "; ".join((*step.after, *leaving)) + " }"
    effects = (*step.effects, *leaving)
    if step.guard and not effects:
        return f"d_step {{ {step.guard} }}"
    return "d_step { " + (f"{step.guard} -> " if step.guard else "") + "; ".join(effects) + " }"


def _memory(words: Words) -> list[str]:
    """One process lets everything land, in any order that the machine allows. None where nothing ever does."""
    program = words.program
    lines = []
    for sharing in words.flights.places:
        flight = sharing[0]
        if flight.engine == OWN:
            continue
        lines.append(f"  {comment(_operations_of(program, [f.pc for f in sharing], flight.agent))}")
        lines += [f"  :: {_step(step)}" for step in landings(words, sharing)]
    if not lines:
        return []
    head = ["/* what is under way lands */", "active proctype memory() provided (!broken) {", "end:", "  do"]
    return ["\n".join([*head, *lines, "  od", "}", ""])]


def _operations_of(program: Program, pcs: Iterable[int], agent: int) -> str:
    numbers = sorted(set(pcs))
    shown = ", ".join(map(str, numbers[:6])) + (", ..." if len(numbers) > 6 else "")
    return f"{program.agent_name(agent)}: operation {shown}"


_KEPT = frozenset(string.ascii_letters + string.digits + " _.,:;=+-*/@()[]<>|&!?%~^")
_LONGEST = 1_000  #: characters of a text


def comment_text(text: str) -> str:
    """``text`` as a comment can hold it: ASCII of a limited length, in which nothing ends or begins.

    White space becomes a space, and any other character that is not kept a question mark.
    """
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    plain = "".join(c if c in _KEPT else " " if c.isspace() else "?" for c in cut)
    return plain.replace("*/", "* /").replace("/*", "/ *")


def comment(text: str) -> str:
    """A comment of one line."""
    return f"/* {comment_text(text)} */"


# how what is under way lands, as the steps of one Promela process


def landings(words: Words, sharing: Sequence[ModelledFlight]) -> list[PromelaStep]:
    """How what is under way in one place may land: whole, or just the bytes that complete a phase before."""
    flight = sharing[0]
    name = words.flights.name(flight)
    if flight.engine == TMA:
        item = words.brings(flight) or str(flight.item)
        filled = tuple(f"cell[{cell}] = {item}" for cell in range(flight.first, flight.end))
        whole = (*filled, f"add_tx({flight.barrier}, 1 - {name})", f"{name} = 0")
        due = f"tx[{flight.barrier}]"
        part = (f"{name} = {name} - {due}", f"add_tx({flight.barrier}, -{due})")
        return [
            PromelaStep(name, words.unless_exited(flight.ctas, whole)),
            PromelaStep(f"0 < {due} && {due} < {name} - 1", words.unless_exited(flight.ctas, part)),
        ]
    effects: tuple[str, ...] = (f"{name} = 0",)
    if flight.arrivals:
        effects += (f"arrive({flight.barrier}, {clamp(flight.arrivals)}, 0)",)
    if flight.writes:
        effects += tuple(_holds_item(words, flight, cell) for cell in range(flight.first, flight.end))
    earlier = [words.flights.name(other) for other in _predecessors(words, flight)]
    guard = f"{name} && !({' || '.join(earlier)})" if earlier else name
    return [PromelaStep(guard, words.unless_exited(flight.ctas, effects))]


def _predecessors(words: Words, flight: ModelledFlight) -> list[ModelledFlight]:
    """What must have landed before it: of a commit or on an engine that works in order the transfers, and of a commit
    the commits before it where they keep their order.
    """
    if not flight.arrivals and flight.engine not in IN_ORDER:
        return []
    all_ = words.flights.of_engine(flight.agent, flight.engine)
    before = all_[: all_.index(flight)]
    made = flight.pc, flight.arrivals
    return [
        other
        for other in before
        if not other.arrivals
        or (flight.arrivals and arrive_in_order(words.program, flight.engine, (other.pc, other.arrivals), made))
    ]


def _holds_item(words: Words, flight: ModelledFlight, cell: int) -> str:
    """The cell holds the item, but where a later write of the same engine, still under way, covers it."""
    later = [
        words.flights.name(other)
        for other in words.flights.of_engine(flight.agent, flight.engine)
        if other != flight and other.writes and other.first <= cell < other.end and other.pc > flight.pc
    ]
    filled = f"cell[{cell}] = {flight.item}"
    if flight.engine not in IN_ORDER or not later:
        return filled
    return f"if :: {' || '.join(later)} :: else -> {filled} fi"
