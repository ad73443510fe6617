"""How long a named work takes: its amounts at the device's rates, scaled as fitted for this work, and its overhead.

A work alone takes ``overhead + scale * (sum of amounts times rates)``. Where the warps of an SM can ask for more than
it has, a work has a demand: of its shared memory, which serves one access after another, or of the issue slots of a
quarter (:mod:`pipesim.timed.sm.engines`).
"""

import weakref
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from pipesim.model.groups import ON_ENGINE, WORKS
from pipesim.model.program import Program
from pipesim.model.tables import Work
from pipesim.timed.profile import Profile, cycles_at_rate

Found = TypeVar("Found")


def cached(compute: Callable[[Program], Found]) -> Callable[[Program], Found]:
    """``compute``, called once for each program; by identity, as a program is too long to be compared.

    Its result must not refer to the program, which would then never be freed.
    """
    known: dict[int, Found] = {}

    @wraps(compute)
    def lookup(program: Program) -> Found:
        number = id(program)
        if number not in known:
            known[number] = compute(program)
            weakref.finalize(program, known.pop, number).atexit = False
        return known[number]

    return lookup


OVERHEAD, SCALE = ".cycles", ".permille"  #: what follows the name of a work in the names of its two constants
QUARTERS = 4  #: of an SM, each with issue slots and units of its own; a warp is on quarter ``warp % 4``
#: Cycles that a quarter takes over one warp instruction of its special-function unit: 8, which has 4 lanes (CUDA
#: programming guide, throughput of arithmetic instructions; measured: ``class.exp2``), and one for what comes with it:
#: two softmaxes together take 1.83 times as long as one (measured: docs/hopper.md).
_EXP2_CYCLES = 9
#: And over one of integers, comparisons and conversions, which have 16 lanes (the same; ``class.alu``).
_ALU_CYCLES = 2
_ISSUED = ("fma", "alu", "shuffles", "exp2")
#: Thousandths of a memory that warps can ask for together without a queue in the model: it would be of a few cycles.
CROWD = 1250
#: Thousandths of its time from which on an access computes: those of two warps of a quarter meet then.
BUSY = 250
#: Thousandths of the issue slots of its quarter that a warp takes which computes with what it has loaded.
SLOTS = 850
#: Amounts that take their warp no time: they say where the data of a copy is.
OF_DATA = frozenset({"fresh_copies", "shared_copies", "streamed_copies"})
SERVED = WORKS - ON_ENGINE  #: operations whose work the memory of their SM serves: accesses, and work by itself
_RATED = (
    "rounds",
    "fma",
    "alu",
    "exp2",
    "shuffles",
    "shared_bytes",
    "global_accesses",
    "global_bytes",
    "global_lines",
    "copies",
    "cluster_fences",
    "fences_beside",
    "warp_products",
    "proxy_fences",
)


class Works:
    """The prices of a program's works under a profile."""

    def __init__(self, program: Program, profile: Profile, *, traced: bool = False) -> None:
        self._profile = profile
        self._traced = traced
        self._meets = _who_meet(program)
        self._counted = program.counts_instructions
        self.of_line = program.work_of_line
        self._crowded = self._who_crowds(program)
        self._computes = self._who_computes(program)

    def cycles(self, work: Work) -> int:
        """Cycles of a warp that does it alone."""
        amounts = dict(work.amounts)
        if self._left_out(work):
            return 0
        if amounts.keys() <= OF_DATA and amounts and not self._profile.knows(work.name):
            return 0  # nothing is computed: it only says when a copy comes
        alone = constants(self._profile, work.name)[0] + self._rated_cycles(work)
        spin = amounts["spin"] + self._profile["work.issue"] if amounts.get("spin") else 0
        return max(alone, spin)

    def _left_out(self, work: Work) -> bool:
        """Whether only a launch that is recorded does it and this one is not, or the reverse."""
        return bool(work.amount("unrecorded" if self._traced else "recorded"))

    def _rated_cycles(self, work: Work) -> int:
        """Cycles of its amounts."""
        rate, scale = self._rates(work), constants(self._profile, work.name)[1]
        rated = sum(amount * rate[f"class.{kind}"] for kind, amount in work.amounts if kind in _RATED)
        if not self._traced:
            rated += work.amount("unrecorded_alu") * rate["class.alu"]
        return -(-rated * scale // 10**6)

    def until_effect(self, work: Work) -> int:
        """By how many cycles an arrive takes effect later: it waits for earlier accesses, its overhead follows."""
        return self._rated_cycles(work) if work.amount("cluster_fences") else 0

    def _rates(self, work: Work) -> dict[str, int] | Profile:
        """The profile's rates; not as its own where constants of the work were fitted to their effect."""
        return self._profile.values if self._profile.knows(work.name) else self._profile

    def demand(self, work: Work) -> int:
        """Cycles that it takes the issue slots of its quarter (of a multiplication: any), 0 where no other does."""
        if work.name not in self._meets or self._left_out(work):
            return 0
        return self._slots(work) or _multiply_adds(work)

    def _slots(self, work: Work) -> int:
        """Cycles of a quarter, with what only a launch executes that records nothing, if this one does not."""
        return _slots(work) + (0 if self._traced else _ALU_CYCLES * work.amount("unrecorded_alu"))

    def scalar(self, work: Work, cycles: int) -> int:
        """The cycles of a multiplication's issue in which it needs the issue slots of its quarter, 0 where no other
        work does. With an operand in registers there are fewer descriptors to be made.
        """
        if not self.demand(work):
            return 0
        return cycles if work.amount("mma") else 3 * cycles // 10

    def memory_cycles(self, work: Work) -> tuple[int, int]:
        """Cycles that an access takes its SM's memory, and in which a warp alone is served; 0 where none slows it."""
        return self._memory_cycles(work) if work.name in self._crowded | self._computes else (0, 0)

    def issue_cycles(self, work: Work) -> int:
        """Cycles for which an access takes its quarter's issue slots after it has been served; 0 where no other warp of
        the quarter computes as much.
        """
        if work.name not in self._computes:
            return 0
        return max(0, self._rated_cycles(work) - self._memory_cycles(work)[1]) * SLOTS // 1000

    def _arithmetic(self, work: Work) -> int:
        """Cycles of its arithmetic."""
        rate, scale = self._rates(work), constants(self._profile, work.name)[1]
        return -(-sum(work.amount(kind) * rate[f"class.{kind}"] for kind in ("fma", "alu")) * scale // 10**6)

    def _who_computes(self, program: Program) -> frozenset[str]:
        """The accesses that compute for a good part of their time where another warp of their quarter also does."""
        if not self.of_line or any(work.amount("exp2") for work in program.work):
            return frozenset()
        on: dict[tuple[int, int], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        busy: set[tuple[int, int]] = set()
        for agent, works in enumerate(_memory_works(program)):
            where = program.agents[agent].cta, program.agents[agent].warp % QUARTERS
            for work in works:
                if work.amount("shared_bytes") and self._arithmetic(work):
                    on[where][agent].add(work.name)
                    if 1000 * self._arithmetic(work) > BUSY * self.cycles(work):
                        busy.add(where)
        return frozenset(name for where in busy if len(on[where]) > 1 for each in on[where].values() for name in each)

    def _memory_cycles(self, work: Work) -> tuple[int, int]:
        """What of the SM's memory its bytes take, and how long a warp alone takes over loading or storing them.

        Lines of global memory go through the same memory, each in its own time.
        """
        rate, scale = self._rates(work), constants(self._profile, work.name)[1]
        moved, lines = work.amount("shared_bytes"), work.amount("global_lines") * rate["class.global_lines"]
        alone = moved * rate["class.shared_bytes"] + work.amount("rounds") * rate["class.rounds"] + lines
        alone = -(-alone * scale // 10**6)
        return min(alone, cycles_at_rate(moved, rate["shared.bytes_per_kcycle"]) + -(-lines * scale // 10**6)), alone

    def late(self, work: Work, *, streams: bool) -> int:
        """By how many cycles a copy comes later. ``streams``: the launch streams more than a cache holds."""
        rate, counted = self._rates(work), ("fresh_copies", "streamed_copies") if streams else ("fresh_copies",)
        late = sum(amount * rate[f"class.{kind}"] for kind, amount in work.amounts if kind in counted)
        return -(-late // 1000)

    def _who_crowds(self, program: Program) -> frozenset[str]:
        """The works that move shared memory on an SM whose warps could together ask for more than it moves."""
        if not self.of_line:
            return frozenset()
        asked: dict[int, int] = defaultdict(int)
        names: dict[int, set[str]] = defaultdict(set)
        for agent, works in zip(program.agents, _memory_works(program), strict=True):
            moving = [(work.name, *self._memory_cycles(work)) for work in works]
            asked[agent.cta] += max((1000 * demand // max(1, alone) for _, demand, alone in moving), default=0)
            names[agent.cta] |= {name for name, _, _ in moving}
        return frozenset(name for cta, share in asked.items() if share > CROWD for name in names[cta])

    def multiplication(self, work: Work) -> tuple[int, int, int]:
        """One warp's part of a multiplication: cycles to issue it, of these for each of its products, and cycles of the
        tensor core of its quarter. Where the instructions around it are counted, they are what its issue takes.
        """
        issue, scale = constants(self._profile, work.name)
        cycles = -(
            -cycles_at_rate(QUARTERS * _multiply_adds(work), self._rates(work)["mma.per_kcycle"]) * scale // 1000
        )
        products = max(1, work.amount("products"))
        cycles = products * -(-cycles // products)  # each takes whole cycles
        beside = 0 if self._counted else cycles * self._profile["mma.issue_permille"] // products
        if work.amount("alu"):  # their operands' addresses
            beside += work.amount("alu") * self._rates(work)["class.alu"] // products
        each = max(self._profile["class.products"], beside) // 1000
        return issue + each * products, each, cycles


def constants(profile: Profile, name: str) -> tuple[int, int]:
    """Overhead in cycles and scale in thousandths of the work of this name: 0 and 1,000 if the profile has none."""
    return profile.values.get(name + OVERHEAD, 0), profile.values.get(name + SCALE, 1000)


def _in_memory(work: Work) -> bool:
    """Whether it goes through the memory of its SM."""
    return bool(work.amount("shared_bytes") or work.amount("global_lines"))


def _multiply_adds(work: Work) -> int:
    return work.amount("mma") + work.amount("mma_registers")


def _slots(work: Work) -> int:
    """Cycles of a quarter: of its units of few lanes, which work one after the other, or of all instructions."""
    special = _EXP2_CYCLES * work.amount("exp2") + _ALU_CYCLES * work.amount("alu")
    return max(special, sum(work.amount(kind) for kind in _ISSUED))


@cached
def _works_of_agents(program: Program) -> tuple[tuple[Work, ...], ...]:
    """For each agent the works of its lines."""
    worked = program.work_of_line
    return tuple(tuple(worked[line] for line in sorted(set(lines) & worked.keys())) for lines in program.lines)


@cached
def _memory_works(program: Program) -> tuple[tuple[Work, ...], ...]:
    """For each agent its works that the SM's memory serves: what comes before or after another operation is part of it,
    and no access that could be served in turn.
    """
    worked = program.work_of_line
    in_turn = [
        {line for op, line in zip(code, lines, strict=True) if op[0] in SERVED and line in worked}
        for code, lines in zip(program.code, program.lines, strict=True)
    ]
    return tuple(tuple(worked[line] for line in sorted(lines) if _in_memory(worked[line])) for lines in in_turn)


@cached
def _who_meet(program: Program) -> frozenset[str]:
    """The works that agents can do while another agent of their quarter does its own, or its tensor core works."""
    if not any(work.amount("exp2") for work in program.work):
        return frozenset()
    multiplied = {
        (program.agents[a].cta, program.agents[a].warp % QUARTERS)
        for a, works in enumerate(_works_of_agents(program))
        if any(map(_multiply_adds, works))
    }
    on: dict[tuple[int, int], dict[int, set[str]]] = defaultdict(dict)
    for a, works in enumerate(_works_of_agents(program)):
        names = {work.name for work in works}
        names = {
            name
            for name in names
            if any(_slots(work) or _multiply_adds(work) for work in program.work if work.name == name)
        }
        if names:
            on[program.agents[a].cta, program.agents[a].warp % QUARTERS][a] = names
    return frozenset(
        name
        for quarter, agents in on.items()
        if len(agents) > 1 or quarter in multiplied
        for names in agents.values()
        for name in names
    )
