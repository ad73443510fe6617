"""What each operation of a program costs under a profile: computed once, before the clock starts."""

from dataclasses import dataclass, replace

from pipesim.model.groups import (
    BLOCKING_WAITS,
    DELAYED_ARRIVALS,
    ENGINE_ACCESSES,
    ISSUE_ONLY,
    MEETINGS,
    SIGNALS,
    TRIES,
    WORKS,
)
from pipesim.model.ops import AT, IN_ORDER, Engine, Op, Operation, Order, Space, operand, order_of
from pipesim.model.program import Program
from pipesim.model.tables import Work, kernel_in_names
from pipesim.timed.profile import OF_INSTRUCTIONS, Profile, cycles_at_rate
from pipesim.timed.work import QUARTERS, SERVED, Works, cached
from pipesim.trace.sites import kinds

#: Instructions of one multiplication that are distinguished. Above it several count as one: any number is simulated.
MOST_PRODUCTS = 256


@dataclass(frozen=True)
class Cost:
    """Cycles of one operation.

    ``busy``: until its agent continues. ``visible``: until others see its effect (of a wait: until it returns once it
    is woken). ``engine``: until the copy engine may start the next. ``flight``: from the start to the last byte, -1 for
    an operation that puts nothing under way. ``demand``: of ``busy`` the cycles that it takes the issue slots of its
    quarter of the SM; 0 where none can slow it. With ``in_memory`` not 0: those that it takes the SM's shared memory,
    which serves one access after another; alone, the access is served in the first ``in_memory`` cycles;
    of the others it takes its quarter's issue slots ``slots``. ``scalar``: a tensor core at work does not slow
    it, and it does not slow works. ``products``: in how many instructions a tensor core of a quarter multiplies, of
    which one is issued each ``interval`` cycles; 0 of what the engine of a whole CTA does.
    """

    busy: int
    visible: int = 0
    engine: int = 0
    flight: int = -1
    demand: int = 0
    in_memory: int = 0
    slots: int = 0
    scalar: bool = False
    products: int = 0
    interval: int = 0


class ProgramValues:
    """The values of a profile for one program: those of instructions where its other instructions are also priced."""

    def __init__(self, program: Program, profile: Profile) -> None:
        self._profile = profile
        self._names = OF_INSTRUCTIONS if program.counts_instructions else {}

    def __getitem__(self, name: str) -> int:
        return self._profile[self._names.get(name, name)]


class Prices:
    """The price list of a program under a profile, ``program.grid`` CTAs sharing the device's bandwidth."""

    def __init__(self, program: Program, profile: Profile, *, traced: bool) -> None:
        self._program = program
        self._profile = profile
        self._values = ProgramValues(program, profile)
        self._record = record_cycles(program, profile, traced=traced)
        self._known: dict[tuple[int, ...], Cost] = {}
        self._works = Works(program, profile, traced=traced)
        self._clock = clock_permille(program, profile)
        streamed = streamed_bytes(program)
        self._streams = streamed > 0 and streamed > profile["copy.cached_bytes"]
        self.worked = self._works.of_line.keys()  #: lines whose operations do a work

    def __call__(self, op: Operation, line: int = -1) -> Cost:
        """The cost of one operation of this line of the program, which may say what work it does."""
        key = op[: AT["item"].get(op[0], len(op))]
        if line in self.worked:
            key = (*key, -1, line)
        cost = self._known.get(key)
        if cost is None:
            cost = self._known[key] = self._cost(op, line)
        return cost

    def _cost(self, op: Operation, line: int) -> Cost:
        """What an operation costs, with the work that it does: all of its time, or what comes after it."""
        work = self._works.of_line.get(line)
        if work is not None and op[0] == Op.ENGINE_WORK:
            issue, interval, cycles = self._works.multiplication(work)
            busy = self._values["other.issue"] + issue
            products = max(1, work.amount("products"))
            demand = self._works.scalar(work, busy)
            told = min(products, MOST_PRODUCTS)
            interval = interval * products // told
            return Cost(busy, engine=cycles, flight=0, demand=demand, scalar=True, products=told, interval=interval)
        if work is not None and op[0] in WORKS:
            cycles = self._works.cycles(work) + work_record(self._program, self._record) * len(kinds(op))
            moved, in_memory = self._works.memory_cycles(work) if op[0] in SERVED else (0, 0)
            if not moved:
                return Cost(cycles, demand=min(cycles, self._works.demand(work)))
            return Cost(cycles, demand=moved, in_memory=in_memory, slots=self._works.issue_cycles(work))
        cost = self._copy(op, work) if op[0] == Op.TMA_LOAD else self._alone(op)
        if work is None:
            return cost
        cycles = self._works.cycles(work)
        busy = cost.busy + cycles
        if self._profile.knows(work.name):  # a constant of this kernel, in place of that of any kernel
            busy = cycles + (0 if op[0] in BLOCKING_WAITS else self._record * len(kinds(op)))
        if op[0] == Op.TMA_LOAD:
            return replace(cost, busy=busy)
        if op[0] in BLOCKING_WAITS:
            return replace(cost, busy=busy, demand=min(busy, self._works.demand(work)), scalar=True)
        return replace(cost, busy=busy, visible=cost.visible + self._works.until_effect(work))

    def _alone(self, op: Operation) -> Cost:
        """The cost of an operation without a work."""
        return _cost(self._program, op, self._profile, self._values, self._record)

    def _copy(self, op: Operation, work: Work | None) -> Cost:
        """A copy moves at its SM's rate. The next may start when the SM's share of what the device can load allows it.

        The L2 cache has a clock of its own: the constants were measured at the SM clock of which this is a part.
        """
        profile, clock, nbytes = self._profile, self._clock, operand(op, "bytes")
        sharing = resident(self._program, profile)
        near, far, full = profile["copy.latency"], profile["copy.latency_loaded"], profile["copy.loaded_bytes"]
        burst = min(nbytes, full) * (sharing - 1)
        latency = (near + (far - near) * burst // (full * max(1, profile.sms - 1))) * clock // 1000
        late = 0 if work is None else self._works.late(work, streams=self._streams) * clock // 1000
        rate = profile["copy.bytes_per_kcycle"] * 1000 // clock
        share = profile[_source(work, streams=self._streams)] * 1000 // clock // sharing
        extra = self._record * len(kinds(op))
        return Cost(
            self._values["copy.issue"] + extra,
            engine=cycles_at_rate(nbytes, max(1, min(rate, share))),
            flight=extra + latency + cycles_at_rate(nbytes, rate) + late,
        )


def record_cycles(program: Program, profile: Profile, *, traced: bool) -> int:
    """What a record costs in this program: a constant of its kernel, or that of any kernel; 0 if none are made."""
    if not traced:
        return 0
    known = f"{kernel_in_names(program.name)}/record.cycles"
    return profile.values.get(known, ProgramValues(program, profile)["record.issue"])


def work_record(program: Program, record: int) -> int:
    """The part of a record's cost that each end of a work adds: nothing where it is what a kernel's PTX says."""
    return 0 if program.counts_instructions else record


def resident(program: Program, profile: Profile) -> int:
    """CTAs of the launch that load at the same time: at most one for each SM."""
    return min(program.grid * program.ctas, profile.sms)


@cached
def streamed_bytes(program: Program) -> int:
    """Bytes of all streamed copies of a launch."""
    lines = {work.line for work in program.work if work.amount("streamed_copies")}
    return program.grid * sum(
        operand(op, "bytes")
        for code, at in zip(program.code, program.lines, strict=True)
        for op, line in zip(code, at, strict=True)
        if line in lines and op[0] == Op.TMA_LOAD
    )


def clock_permille(program: Program, profile: Profile) -> int:
    """The SM clock in thousandths of the profile's: while tensor cores work it is lower, the more of them the lower."""
    alone, loaded = (min(1000, profile[f"clock.tensor{name}_permille"]) for name in ("", "_loaded"))
    if alone == loaded == 1000 or not _multiplies(program):
        return 1000
    return alone + (loaded - alone) * (resident(program, profile) - 1) // max(1, profile.sms - 1)


@cached
def _multiplies(program: Program) -> bool:
    """Whether it uses tensor cores."""
    return any(op[0] == Op.ENGINE_WORK for code in program.code for op in set(code))


def sm_khz(program: Program, profile: Profile) -> int:
    """The SM clock while the program runs, in kHz."""
    return profile.sm_khz * clock_permille(program, profile) // 1000


def _cost(program: Program, op: Operation, profile: Profile, values: ProgramValues, record: int) -> Cost:
    extra = record * len(kinds(op))
    match op[0]:
        case code if code in BLOCKING_WAITS | SIGNALS and program.is_word(operand(op, "barrier")):
            return _of_word(program, op, profile, extra)
        case code if code in BLOCKING_WAITS:  # the engine adds their records: it knows which are left
            return Cost(values["wait.issue"], profile["wait.wake_up"])
        case code if code in TRIES:  # one that was suspended returns as a wait does
            return Cost(values["wait.issue"] + extra, profile["wait.wake_up"])
        case Op.ARRIVE if operand(op, "expect"):
            return Cost(values["expect.issue"] + extra, profile["arrive.latency"] + extra)
        case code if code in SIGNALS:
            return Cost(values["arrive.issue"] + extra, profile["arrive.latency"] + extra)
        case Op.READ:
            return _read(program, op, profile)
        case Op.WORK:
            cycles = operand(op, "cycles")
            return Cost((cycles + profile["work.issue"] if cycles else 0) + extra)
        case Op.LOOP_NEXT:
            return Cost(profile["loop.issue"])
        case Op.LOOP_BEGIN | Op.LOOP_END | Op.JUMP_IF:
            return Cost(0)
        case code if code in MEETINGS:
            return Cost(0, values["sync.latency"])
        case code if code in ENGINE_ACCESSES:
            return _transfer(program, op, profile, values)
        case Op.ENGINE_WORK:
            return Cost(values["other.issue"], engine=operand(op, "cycles"), flight=0)
        case code if code in DELAYED_ARRIVALS and operand(op, "barrier") >= 0:  # a commit of no group on a barrier
            return Cost(values["other.issue"], flight=0)
        case code:
            assert code in ISSUE_ONLY, f"{Op(code).name} has no price"
            return Cost(values["other.issue"])


def _of_word(program: Program, op: Operation, profile: Profile, extra: int) -> Cost:
    """Of a loop on a word the engine adds the loads: it knows how many there are."""
    if op[0] in BLOCKING_WAITS:
        return Cost(0)
    relaxed = order_of(operand(op, "semantics")) is Order.RELAXED
    busy = profile["word.store" if relaxed else "word.release"] + extra
    return Cost(busy, busy + profile["word.count"] * (operand(op, "barrier") in _counters(program)))


@cached
def _counters(program: Program) -> frozenset[int]:
    """The barriers that several arrivals complete: of words, counters that several CTAs raise."""
    begun = (op for op in program.operations if op[0] == Op.INIT)
    return frozenset(operand(op, "barrier") for op in begun if operand(op, "count") > 1)


def _read(program: Program, op: Operation, profile: Profile) -> Cost:
    """Registers are read by whatever computes with them."""
    source = program.accesses[operand(op, "access")]
    if source.space == Space.REGISTERS:
        return Cost(0)
    return Cost(profile["read.issue"] + cycles_at_rate(source.nbytes, profile["read.bytes_per_kcycle"]))


def _transfer(program: Program, op: Operation, profile: Profile, values: ProgramValues) -> Cost:
    """A result in registers is named by the instruction whose other operands are priced.

    A bulk store takes the copy engine while it is read from shared memory (measured on an H200).
    """
    if op[0] == Op.TRANSFER_READ and operand(op, "engine") == Engine.BULK:
        size = cycles_at_rate(operand(op, "bytes"), profile["copy.store_bytes_per_kcycle"])
        return Cost(values["other.issue"], engine=size, flight=profile["transfer.latency"] + size)
    size = cycles_at_rate(operand(op, "bytes"), profile["copy.bytes_per_kcycle"])
    late = profile["matrix.latency"] if operand(op, "engine") in IN_ORDER else profile["transfer.latency"] + size
    in_registers = program.accesses[operand(op, "access")].space == Space.REGISTERS
    return Cost(0 if in_registers else values["other.issue"], flight=late)


def _source(work: Work | None, *, streams: bool) -> str:
    """The rate at which all SMs together load what this copy loads."""
    if work is None:
        return "copy.device_bytes_per_kcycle"
    if streams and work.amount("streamed_copies"):
        return "copy.memory_bytes_per_kcycle"
    if work.amount("shared_copies"):
        return "copy.device_shared_bytes_per_kcycle"
    return "copy.device_fresh_bytes_per_kcycle" if work.amount("fresh_copies") else "copy.device_bytes_per_kcycle"


def engines_busy(program: Program, profile: Profile, cycles: int) -> dict[str, int]:
    """Thousandths of a run of this many cycles in which each engine of a CTA works, of the CTA whose works most.

    The matrix engine of a quarter counts as one.
    """
    price = Prices(program, profile, traced=False)
    busy: dict[tuple[str, int, int], int] = {}
    for agent, code, lines in zip(program.agents, program.code, program.lines, strict=True):
        for op, line in zip(code, lines, strict=True):
            if op[0] == Op.ENGINE_WORK:
                cost = price(op, line)
                key = "matrix engine", agent.cta, agent.warp % QUARTERS if cost.products else -1
                busy[key] = busy.get(key, 0) + cost.engine
            elif op[0] == Op.TMA_LOAD:
                key = "copy engine", agent.cta, -1
                busy[key] = busy.get(key, 0) + price(op).engine
    worst: dict[str, int] = {}
    for (engine, _, _), spent in busy.items():
        worst[engine] = max(worst.get(engine, 0), round(1000 * spent / max(cycles, 1)))
    return worst
