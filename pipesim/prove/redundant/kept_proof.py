"""What is proved of a program, and what a removal must keep of it.

A program is taken by the strictest rules that it satisfies. Where it breaks an optional rule already, as the rings of
the libraries do that read a stage and hand it back without a proxy fence, a removal may not break it at a line where it
was kept: it adds nothing to what the proof assumes. Nor may it leave a transfer in flight at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pipesim.model.coverage import RULES, Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.groups import TOUCHES_MEMORY
from pipesim.model.ops import Space, operand
from pipesim.model.program import Program
from pipesim.prove.any_size.laps import holds
from pipesim.prove.assumed import assumed_of_commits
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.check import Check, How, check
from pipesim.prove.counterexample.leftovers import advisories, assumed_at_exit, leftovers
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.redundant.removal import Removal, RemovalKind, is_of_kernel, sites

MOST_OPERATIONS = 60_000  #: of a program whose removals are looked for

_Place = tuple[str, str]
#: Optional rules that are not kept, each with the role and line of both sides: roles may share a line, not its fence.
_Broken = frozenset[tuple[FaultKind, _Place, _Place]]


class Withheld(Enum):
    """Why nothing is offered of a program. The value is what reports say."""

    REFUTED = "the protocol is refuted: correct it first"
    UNKNOWN = "the protocol is not proved"
    COVERAGE = "coverage is incomplete: what the program leaves out may need any of its operations"
    LANES = "lanes of a warp that parted are taken to be together again, and a barrier may be what joins them"
    FENCES = "every schedule was searched, and which reads rest on no proxy fence is not known then"
    GLOBAL = "what it does may order accesses to global memory, which are no operations of the program"
    LONG = "the program is too long to be proved again for each of its operations"


@dataclass(frozen=True)
class OpenRules:
    """What the proof of one program leaves open: a removal may take away from it, and add nothing to it.

    ``broken``: what the rules that the program breaks find, by roles and lines. ``left``: warnings of what is left at
    the end, and where the order of commits is relied on.
    """

    broken: _Broken
    left: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class KeptProof:
    """A proof that removals must keep.

    ``rules``: the optional rules that the program satisfies; ``here``: what it assumes. ``max_states``: of a search, 0
    where one run represents every schedule.
    """

    rules: Strictness
    here: OpenRules
    max_states: int

    def still_holds(self, program: Program) -> bool:
        """True if an edited program, which may be one of another size, is proved by the same rules."""
        judged = program.with_strictness(self.rules)
        if not self.max_states:
            return holds(judged)
        return check(judged, self.max_states).verdict is Verdict.PROVED

    def open_rules(self, program: Program) -> OpenRules:
        """What is assumed of a program, which may be one of another size."""
        return _open_rules(program, self.rules)

    def adds_nothing(self, edited: Program, whole: OpenRules) -> bool:
        """True if the edited program assumes nothing that the whole one does not, and leaves no more at its end."""
        mine = self.open_rules(edited)
        return mine.left <= whole.left and mine.broken <= whole.broken


def kept_proof(
    program: Program, max_states: int, before: Callable[[], None] = lambda: None
) -> tuple[Check | None, KeptProof | Withheld]:
    """The proof of a program under the strictest rules that it satisfies, and not under fewer than it was given.

    ``before`` is called before each check. The check is the one that decided, None where none was made.
    """
    if withheld := _by_coverage(program):
        return None, withheld
    if sum(map(len, program.code)) > MOST_OPERATIONS:
        return None, Withheld.LONG
    rungs = _ladder(program)
    for rules in rungs:
        before()
        found = check(program.with_strictness(rules), max_states)
        if found.verdict is Verdict.PROVED:
            searched = found.how is How.SEARCH
            if searched and rules != rungs[0]:
                return found, Withheld.FENCES
            return found, KeptProof(rules, _open_rules(program, rules), max_states if searched else 0)
    if found.verdict is Verdict.UNKNOWN:
        return found, Withheld.UNKNOWN
    before()
    lenient = check(program, max_states)
    lanes = lenient.verdict is Verdict.PROVED
    return (lenient if lanes else found), Withheld.LANES if lanes else Withheld.REFUTED


def _by_coverage(program: Program) -> Withheld | None:
    coverage = program.coverage
    left = coverage.left_out or coverage.unread or coverage.unsized or coverage.undefined or coverage.unordered
    return Withheld.COVERAGE if left or not coverage.complete else None


def _ladder(program: Program) -> list[Strictness]:
    """Sets of rules, the strictest first. Lanes of a kernel are together only where PTX says so in all; the lanes of a
    described role are, as it is recorded.
    """
    given = program.strictness
    all_rules = RULES if is_of_kernel(program) else RULES - {Assumption.LANES}
    rungs = [
        all_rules | (given & RULES),
        given | (all_rules - {Assumption.PROXIES}),
        given | (all_rules - {Assumption.COMMITS, Assumption.EXIT}),
        given | (all_rules - {Assumption.PROXIES, Assumption.COMMITS, Assumption.EXIT}),
        given | (all_rules & {Assumption.LANES}),
    ]
    return list(dict.fromkeys(rungs))


def _open_rules(program: Program, rules: Strictness) -> OpenRules:
    broken = _broken(program) if rules != _ladder(program)[0] else frozenset()
    left = leftovers(program)
    said = {(each.claim, each.line) for each in advisories(program, left)}
    said |= {(each.what, each.lines[0]) for each in assumed_at_exit(program, left)}
    if Assumption.COMMITS not in rules:
        said |= {(each.what, " ".join(each.lines)) for each in assumed_of_commits(program)}
    return OpenRules(broken, frozenset(said))


def _broken(program: Program) -> _Broken:
    """What one run breaks of the strictest rules, each kind and pair of places once."""
    strict = program.with_strictness(RULES)
    order = MemoryOrder(strict)
    run = CanonicalRun(strict, [order]).to_end()
    return frozenset(
        (fault.kind, _place(strict, fault.agent, fault.pc), _place(strict, fault.other_agent, fault.other_pc))
        for fault in (*run.faults, *order.faults)
    )


def _place(program: Program, agent: int, pc: int) -> _Place:
    return (program.agents[agent].role, program.line(agent, pc)) if agent >= 0 else ("", "")


# what the program does not describe


def may_guard_more(program: Program, removal: Removal) -> bool:
    """True if a removal may guard the allocation of tensor memory, which programs do not describe.

    So it is for what an agent that uses tensor memory does only before its first use of it, or only after its last.
    """
    if removal.edit is RemovalKind.FENCE:
        return False
    used = _tensor_uses(program)
    removed = [place for site, places in sites(program).items() if site in removal.sites for place in places]
    for agent, (first, last) in used.items():
        mine = [pc for at, pc in removed if at == agent]
        if mine and (max(mine) < first or min(mine) > last):
            return True
    return False


def _tensor_uses(program: Program) -> dict[int, tuple[int, int]]:
    """For each agent that uses tensor memory its first and its last operation that does."""
    tensor = {n for n, access in enumerate(program.accesses) if access.space == Space.TENSOR}
    found: dict[int, tuple[int, int]] = {}
    for agent, code in enumerate(program.code) if tensor else ():
        uses = [pc for pc, op in enumerate(code) if op[0] in TOUCHES_MEMORY and operand(op, "access") in tensor]
        if uses:
            found[agent] = uses[0], uses[-1]
    return found
