"""What makes no sense in a flat program, whoever made it: a ProgramFormatError at the first rule that it breaks.

These are rules of the form: indices, ranges, names, what may stand beside what. Whether the program *behaves* is for
the machine to say, and whether it fits the hardware for ``protocols/limits.py``.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from reprlib import repr as brief  # of an operation with any number of operands
from typing import NamedTuple

from pipesim.bounds import (
    MAX_ADDRESS,
    MAX_AGENTS,
    MAX_BARRIERS,
    MAX_COUNT_OPERAND,
    MAX_CYCLES,
    MAX_GRID,
    MAX_ITEM,
    MAX_PARAMETER,
    MAX_TRIPS,
    MAX_WARP,
)
from pipesim.errors import ProgramFormatError
from pipesim.inputs import quoted_name, wrong_identifier, wrong_name, wrong_text
from pipesim.model.groups import (
    ASYNC_ACCESS,
    BARRIER,
    COMMIT_BARRIER,
    COMMIT_MASK,
    COPY_MASK,
    LOOP_MARKS,
    ON_NAMED_BARRIER,
    REGISTER_OPTIONAL,
    SKIP,
    WRITES_MEMORY,
)
from pipesim.model.ops import (
    OPERANDS,
    Engine,
    Fence,
    Op,
    Operation,
    Order,
    Scope,
    describe,
    operand,
    semantics,
    with_operand,
)
from pipesim.model.tables import (
    ALL_LANES,
    MAX_ARCHITECTURE,
    MAX_CTAS,
    MAX_REGISTERS,
    MAX_THREAD_REGISTERS,
    NAMED_BARRIERS,
    PROGRAM_VERSION,
    WORK_CLASSES,
    ProgramData,
)

_LONGEST = 200  #: characters of an operation in an error
Limits = dict[Op, tuple[tuple[str, int, int], ...]]  #: for each operation its operands: name, least and largest value


def validate(program: ProgramData) -> None:
    """Raise ProgramFormatError, with the place in the program, for the first thing that makes no sense."""
    wrong = _wrong_names(program)
    if wrong:
        raise ProgramFormatError(wrong)  # without the program's name, which may be the wrong one
    if not len(program.agents) == len(program.code) == len(program.lines):
        raise ProgramFormatError(
            f"{program.name}: {len(program.agents)} agents, {len(program.code)} lists of operations, "
            f"{len(program.lines)} lists of lines",
            correction="give one list of each for every agent",
        )
    wrong = _wrong_sizes(program) or _wrong_agents(program) or _wrong_tables(program) or _wrong_rank(program)
    if wrong:
        raise ProgramFormatError(f"{program.name}: {wrong}")
    _require_right(program, range(len(program.code)))


def validate_agents(program: ProgramData, agents: Collection[int]) -> None:
    """The same for a valid program in which these agents do something else."""
    if len(program.agents) == len(program.code) == len(program.lines):
        wrong = _wrong_lines(program, agents) or _wrong_named_barrier(program)
        if not wrong:
            _require_right(program, agents)
            return
    validate(program)


def _require_right(program: ProgramData, agents: Iterable[int]) -> None:
    """Raise ProgramFormatError for the first of these agents' operations that makes no sense."""
    limits = _limits(program)
    for a in agents:
        code = program.code[a]
        if not _all_right(program, code, limits):
            for pc, operation in enumerate(code):
                found = _wrong_operation(program, operation, limits, len(code) - pc)
                if found is not None:
                    raise ProgramFormatError(
                        found.fact,
                        place=_place(program, a, pc),
                        cause=_operation_words(operation),
                        correction=found.correction,
                    )
        pc, wrong = _wrong_loop(code)
        if wrong:
            raise ProgramFormatError(wrong, place=_place(program, a, pc))


class _Wrong(NamedTuple):
    """What is wrong with an operation, and what it should be."""

    fact: str
    correction: str


def _place(program: ProgramData, agent: int, pc: int) -> str:
    """The author's line first: the author of the protocol does not know about operations."""
    line = program.sources[program.lines[agent][pc]]
    return f"{line} ({program.agent_name(agent)} of {program.name}, operation {pc} of agent {agent})"


def _operation_words(operation: Operation) -> str:
    """The operation by the names of its operands, as far as it has any."""
    try:
        said = describe(operation)
    except (ValueError, IndexError):
        return "an operation is its code and its operands, as docs/flat-program.md lists them"
    return f"the operation there is {said if len(said) < _LONGEST else brief(said)}"


# side tables


def _wrong_names(program: ProgramData) -> str:
    """Which name or text cannot be, "" if all can."""
    names = [
        ("the program's name", program.name),
        *((f"the role of agent {i}", x.role) for i, x in enumerate(program.agents)),
        *((f"the name of barrier {i}", x.name) for i, x in enumerate(program.barriers)),
        *((f"the name of tile {i}", x.name) for i, x in enumerate(program.tiles)),
        *((f"the name of loop {i}", x) for i, x in enumerate(program.loops) if x),
        *((f"pipeline {i}", x) for i, x in enumerate(program.pipelines)),
    ]
    texts = [
        *((f"source {i}", x) for i, x in enumerate(program.sources)),
        *((f"note {i}", x) for i, x in enumerate(program.notes)),
    ]
    parameters = [("a parameter's name", x) for x in program.params]
    for rule, entries in ((wrong_name, names), (wrong_identifier, parameters), (wrong_text, texts)):
        for what, text in entries:
            wrong = rule(text)
            if wrong:
                return f"{what} is {quoted_name(text)}: {wrong}"
    return ""


def _wrong_sizes(program: ProgramData) -> str:
    """What is wrong with the numbers of the program as a whole, "" if nothing is."""
    if not 1 <= program.ctas <= MAX_CTAS or program.grid < 1:
        return f"{program.ctas} CTAs, {program.grid} copies: 1 to {MAX_CTAS} and at least 1 are possible"
    if program.grid > MAX_GRID // program.ctas:
        return f"{program.grid:,} copies of {program.ctas} CTAs: a launch has at most {MAX_GRID:,} CTAs"
    if not 0 <= program.registers <= MAX_REGISTERS:
        return f"{program.registers} registers: 0 to {MAX_REGISTERS} are possible"
    if not 0 <= program.launch_registers <= MAX_THREAD_REGISTERS:
        return f"{program.launch_registers} registers a thread: 0 (not known) to {MAX_THREAD_REGISTERS} are possible"
    if not 0 <= program.architecture <= MAX_ARCHITECTURE:
        return f"architecture {program.architecture}: 90 of sm_90a, 100 of sm_100a, 0 if it is not known"
    if not 0 <= program.smem_bytes <= MAX_ADDRESS:
        return f"{program.smem_bytes} bytes of shared memory"
    for name, value in program.params.items():
        if not -MAX_PARAMETER <= value <= MAX_PARAMETER:
            return f"parameter {name} does not fit 64 bits"
    return _wrong_lines(program, range(len(program.code)))


def _wrong_lines(program: ProgramData, agents: Iterable[int]) -> str:
    """Which of these agents has not a source line for each operation, "" if all have."""
    for a in agents:
        code, lines = program.code[a], program.lines[a]
        if len(code) != len(lines) or (lines and not 0 <= min(lines) <= max(lines) < len(program.sources)):
            return f"agent {a} does not have one valid source line for each operation"
    return _wrong_work(program)


def _wrong_work(program: ProgramData) -> str:
    """What is wrong with the works of its lines, "" if nothing is."""
    seen: set[int] = set()
    for i, work in enumerate(program.work):
        if not 0 <= work.line < len(program.sources) or work.line in seen:
            return f"work {i} does not have a valid source line of its own"
        seen.add(work.line)
        if wrong := wrong_name(work.name):
            return f"the name of work {i} is {quoted_name(work.name)}: {wrong}"
        for kind, amount in work.amounts:
            if kind not in WORK_CLASSES:
                return f"work {i} has an amount of {quoted_name(kind)}; there are {', '.join(WORK_CLASSES)}"
            if not 0 <= amount <= MAX_CYCLES:
                return f"work {i} has {brief(amount)} {kind}: 0 to {MAX_CYCLES:,} are possible"
    return ""


def _wrong_agents(program: ProgramData) -> str:
    """What is wrong with the table of agents, "" if nothing is: no two are alike, and none shares a lane."""
    if len(program.agents) > MAX_AGENTS:
        return f"{len(program.agents):,} agents: at most {MAX_AGENTS:,} are possible"
    lanes: defaultdict[tuple[int, int], int] = defaultdict(int)
    for i, agent in enumerate(program.agents):
        if not 1 <= agent.lanes <= ALL_LANES:
            return f"agent {i} has lanes {agent.lanes:#x} of a warp's 32"
        if not 0 <= agent.warp <= MAX_WARP:
            return f"agent {i} is in warp {agent.warp}: warps are numbered 0 to {MAX_WARP}"
        if not 0 <= agent.index < MAX_AGENTS:
            return f"agent {i} is number {agent.index} of its role: numbers are 0 to {MAX_AGENTS - 1}"
        if lanes[agent.cta, agent.warp] & agent.lanes:
            return f"agent {i} has lanes of warp {agent.warp} of CTA {agent.cta} that another agent has, too"
        lanes[agent.cta, agent.warp] |= agent.lanes
    if not set(program.stored) <= set(range(len(program.accesses))):
        return f"stored are {program.stored} of {len(program.accesses)} accesses"
    if not set(program.silent) <= set(program.cut) <= set(range(len(program.agents))):
        return f"silent are {program.silent} of {program.cut}, which were cut, of {len(program.agents)} agents"
    alike = _twice((agent.cta, agent.role, agent.index) for agent in program.agents)
    if alike >= 0:
        agent = program.agents[alike]
        return f"two agents are number {agent.index} of role {agent.role} in CTA {agent.cta}"
    return ""


def _wrong_tables(program: ProgramData) -> str:
    """What is wrong with the other tables, "" if nothing is."""
    for i, barrier in enumerate(program.barriers):
        if not 0 <= barrier.stage < MAX_BARRIERS:
            return f"barrier {i} is stage {barrier.stage} of {barrier.name}: stages are 0 to {MAX_BARRIERS - 1}"
    alike = _twice(program.barriers)
    if alike >= 0:
        barrier = program.barriers[alike]
        return f"two barriers are stage {barrier.stage} of {barrier.name} in CTA {barrier.cta}"
    wrong = _wrong_named_barrier(program)
    if wrong:
        return wrong
    alike = _twice(program.named_barriers)
    if alike >= 0:
        cta, number = program.named_barriers[alike]
        return f"named barrier {number} of CTA {cta} is in the table twice"
    for i, access in enumerate(program.accesses):
        if access.offset < 0 or access.nbytes < 1 or access.offset + access.nbytes > MAX_ADDRESS:
            return f"access {i} is {access.nbytes} bytes at {access.offset}"
    for tile in program.tiles:
        inside = tile.offset >= 0 and tile.nbytes >= 1 and tile.slots >= 1
        if not inside or tile.offset + tile.slots * tile.nbytes > MAX_ADDRESS:
            return f"tile {tile.name} is {tile.slots} slots of {tile.nbytes} bytes at {tile.offset}"
    return ""


def _wrong_named_barrier(program: ProgramData) -> str:
    """Which entry of the table of named barriers is neither a barrier nor a warp, "" if all are right."""
    for i, (_, number) in enumerate(program.named_barriers):
        if not 0 <= number < NAMED_BARRIERS and not _is_warp_sync(program, i):
            return f"named barrier {i} has number {number}; a CTA has 0 to {NAMED_BARRIERS - 1}"
    return ""


def _is_warp_sync(program: ProgramData, index: int) -> bool:
    """True for an entry of the table of named barriers that represents ``bar.warp.sync``.

    Its number is 16 plus that of a warp of which agents have some lanes each; only these arrive at it, each with its
    lanes, and wait there for all 32.
    """
    cta, number = program.named_barriers[index]
    for agent, code in zip(program.agents, program.code, strict=False):
        mine = (agent.cta, NAMED_BARRIERS + agent.warp) == (cta, number) and agent.lanes != ALL_LANES
        wanted = (Op.BAR_SYNC, index, ALL_LANES.bit_count(), agent.lanes.bit_count())
        here = (op for op in code if op[1:2] == (index,) and op[0] in ON_NAMED_BARRIER)
        if any(not mine or op != wanted for op in here):
            return False
    return any(
        (agent.cta, NAMED_BARRIERS + agent.warp) == (cta, number) and agent.lanes != ALL_LANES
        for agent in program.agents
    )


def _twice(entries: Iterable[Hashable]) -> int:
    """The position of the first entry that equals an earlier one, -1 if there is none."""
    seen: set[Hashable] = set()
    for i, entry in enumerate(entries):
        if entry in seen:
            return i
        seen.add(entry)
    return -1


def _wrong_rank(program: ProgramData) -> str:
    """What lies in a CTA that the cluster does not have, "" if nothing does."""
    for what, cta in _ranks(program):
        if not 0 <= cta < program.ctas:
            return f"{what} is in CTA {cta} of {program.ctas}"
    return ""


def _ranks(program: ProgramData) -> Iterator[tuple[str, int]]:
    yield from ((f"agent {i}", x.cta) for i, x in enumerate(program.agents))
    yield from ((f"barrier {i}", x.cta) for i, x in enumerate(program.barriers))
    yield from ((f"access {i}", x.cta) for i, x in enumerate(program.accesses))
    yield from ((f"tile {x.name}", x.cta) for x in program.tiles)
    yield from ((f"named barrier {i}", cta) for i, (cta, _) in enumerate(program.named_barriers))


# operations


def _limits(program: ProgramData) -> Limits:
    """The values that each operand may have. A wrong count is the machine's to report: only its size is bounded."""
    tables = (program.barriers, program.accesses, program.named_barriers, program.loops)
    return _limits_of(*map(len, tables), program.registers, program.ctas)


@lru_cache(maxsize=64)
def _limits_of(barriers: int, accesses: int, named_barriers: int, loops: int, registers: int, ctas: int) -> Limits:
    """The same of tables of these lengths, and a program of this many registers and CTAs."""
    least = {"bytes": 0, "expect": 0, "groups": 0, "cycles": 0, "trips": 0, "registers": 0, "lanes": 1, "item": -1}
    most = {
        "barrier": barriers - 1,
        "access": accesses - 1,
        "named_barrier": named_barriers - 1,
        "register": registers - 1,
        "state_register": registers - 1,
        "loop": loops - 1,
        "parity": 1,
        "noinc": 1,
        "engine": max(Engine),
        "fence": max(Fence),
        "semantics": semantics(Order.ACQ_REL, Scope.SYS),
        "cta_mask": (1 << ctas) - 1,
    }
    sizes = {"bytes": MAX_ADDRESS, "expect": MAX_ADDRESS, "cycles": MAX_CYCLES, "trips": MAX_TRIPS, "item": MAX_ITEM}

    def bounds(op: Op, name: str) -> tuple[str, int, int]:
        low = least.get(name, 0 if name in most else -MAX_COUNT_OPERAND)
        if (name == "register" and op in REGISTER_OPTIONAL) or (name == "barrier" and op == Op.COMMIT):
            low = -1
        if name == "item" and op in WRITES_MEMORY:
            low = 0
        return name, low, most.get(name, sizes.get(name, MAX_COUNT_OPERAND))

    return {op: tuple(bounds(op, name) for name in names) for op, names in OPERANDS.items()}


def _all_right(program: ProgramData, code: tuple[Operation, ...], limits: Limits) -> bool:
    """True only if :func:`_wrong_operation` finds nothing: the operations of a kind together, operand by operand."""
    kinds: defaultdict[int, list[Operation]] = defaultdict(list)
    for operation in code:
        if not operation:
            return False
        kinds[operation[0]].append(operation)
    if not kinds.keys() <= limits.keys():
        return False
    for kind, operations in kinds.items():
        op = Op(kind)
        width = len(limits[op]) + 1
        values = list(chain.from_iterable(operations))
        if set(map(len, operations)) != {width} or set(map(type, values)) != {int}:
            return False
        for at, (name, low, high) in enumerate(limits[op], 1):
            operand = set(values[at::width])
            if min(operand) < low or max(operand) > high:
                return False
            if name == "semantics" and any(value % 8 > Scope.SYS for value in operand):
                return False
        if any(_wrong_operation(program, each, limits, 1) for each in _with_a_mask(op, operations)):
            return False
    return Op.JUMP_IF not in kinds or all(
        0 <= operation[SKIP] < len(code) - pc for pc, operation in enumerate(code) if operation[0] == Op.JUMP_IF
    )


def _with_a_mask(op: Op, operations: list[Operation]) -> set[Operation]:
    """Those that name a place in every CTA of a mask, where there must be something; all items as one."""
    if op == Op.TMA_LOAD:
        return {with_operand(each, "item", 0) for each in operations if each[COPY_MASK]}
    return set(operations) if op == Op.COMMIT_MULTICAST else set()


def _wrong_operation(program: ProgramData, operation: Operation, limits: Limits, left: int) -> _Wrong | None:
    """What is wrong with an operation, None if nothing is; ``left``: operations of its agent from it on."""
    try:
        op = Op(operation[0])
    except (ValueError, IndexError):
        fact = f"this is not an operation of version {PROGRAM_VERSION}"
        return _Wrong(fact, f"give one of the codes {min(Op)} to {max(Op)} that docs/flat-program.md lists")
    wanted = limits[op]
    if len(wanted) != len(operation) - 1 or not all(type(value) is int for value in operation):
        names = ", ".join(OPERANDS[op])
        return _Wrong(f"{op.name} takes {len(wanted)} integers: {names}", f"give {names} after its code")
    for (name, low, high), value in zip(wanted, operation[1:], strict=True):
        if not low <= value <= high:
            return _out_of_range(op, name, value, low, high)
        if name == "semantics" and value % 8 > Scope.SYS:
            fact = f"semantics {value}: there is no scope {value % 8}"
            return _Wrong(fact, f"give 8 times the order, plus a scope of 0 to {max(Scope)}")
    if op == Op.JUMP_IF and not 0 <= operation[SKIP] < left:
        fact = f"a jump over {operation[SKIP]} operations leaves the program: a jump goes forward, at most to the end"
        return _Wrong(fact, f"skip 0 to {left - 1} operations")
    fact = ""
    if op == Op.TMA_LOAD and operation[COPY_MASK]:
        fact = _wrong_multicast(program, operation)
    elif op == Op.COMMIT_MULTICAST:
        fact = _wrong_commit(program, operation)
    return (
        _Wrong(fact, "name CTAs that have the same barrier and bytes, in a mask with a bit for each") if fact else None
    )


def _out_of_range(op: Op, name: str, value: int, low: int, high: int) -> _Wrong:
    bounds = f"{low:,}..{high:,}"
    if name in {"barrier", "access", "named_barrier", "register", "state_register", "loop"}:
        bounds = f"the table of {high + 1}"
    span = f"{low:,} to {high:,}" if high > low else f"{low:,}"
    correction = f"give {name} a value of {span}" if high >= low else f"enter a {name} in the table"
    return _Wrong(f"{op.name}: {name} {value:,} is outside {bounds}", correction)


def _wrong_commit(program: ProgramData, operation: Operation) -> str:
    barrier, mask = operation[COMMIT_BARRIER], operation[COMMIT_MASK]
    if not mask:
        return "COMMIT_MULTICAST: an empty mask signals no CTA"
    for rank in range(program.ctas):
        if mask >> rank & 1:
            try:
                program.barrier_at_rank(barrier, rank)
            except KeyError:
                return f"the commit to CTA {rank} has no barrier at the same offset there"
    return ""


def _wrong_multicast(program: ProgramData, operation: Operation) -> str:
    barrier, access, mask = operation[BARRIER], operation[ASYNC_ACCESS], operation[COPY_MASK]
    signalled, issued = program.barriers[barrier].cta, program.accesses[access].cta
    if signalled // 2 != issued // 2:
        return f"the multicast from CTA {issued} signals CTA {signalled}, which is not of the same pair"
    for rank in range(program.ctas):
        if mask >> rank & 1:
            try:
                program.at_rank(barrier, access, rank)
            except KeyError:
                return f"the multicast to CTA {rank} has no barrier or no access at the same offset there"
    return ""


def _wrong_loop(code: tuple[Operation, ...]) -> tuple[int, str]:
    """The first loop mark whose loop has not begun, and why it is wrong; (-1, "") if there is none.

    An agent with a mistake may leave a loop early, end inside it, or do an iteration more than the trip count: how many
    there are is not checked, nor how loops are nested.
    """
    begun: set[int] = set()
    for pc, op in enumerate(code):
        if op[0] == Op.LOOP_BEGIN:
            begun.add(operand(op, "loop"))
        elif op[0] in LOOP_MARKS and operand(op, "loop") not in begun:
            return pc, f"{Op(op[0]).name} of loop {operand(op, 'loop')}, which has not begun here"
    return -1, ""
