"""Do random programs show each rule? ``python tools/judge_rules.py [--most COUNT] [--only WORD]``.

Each rule of the certificate, of memory order, of loops, of warp groups, of stale waits and of the search is switched
off in turn, and random programs are compared until one contradicts: a program called proved in which a search or a
schedule shows a fault, or a reduced search that sees less than the plain one. A rule whose absence no comparison
notices among COUNT programs is one that nothing would miss; docs/proof.md says how many programs they took.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.any_size import Families
from pipesim.answers.check import check as prove_target
from pipesim.model.barrier import BarrierState
from pipesim.model.coverage import LENIENT, STRICTEST, Assumption, Strictness
from pipesim.model.finding import Verdict
from pipesim.model.groups import BARRIER, BRANCHES
from pipesim.model.machine import TMA, Flight, finished
from pipesim.model.moves import Kind, moves
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import RegisterPools
from pipesim.model.tables import OPEN_WORD
from pipesim.prove import refutation
from pipesim.prove.any_size.laps import holds
from pipesim.prove.any_size.skip_laps import phases_by_laps
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.certificate.requirements import Lives, RegisterRequests
from pipesim.prove.check import check
from pipesim.prove.counterexample.leftovers import LeftKind, leftovers
from pipesim.prove.counterexample.play import Play
from pipesim.prove.happens_before.accesses import Accesses, AccessEvent, EqualWrites
from pipesim.prove.happens_before.snapshot import Clock, Snapshot
from pipesim.prove.memory_order import may_fail
from pipesim.prove.memory_order.may_fail import order_may_fail
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Doubt, Why
from pipesim.prove.search.breadth_first import MemorySearch, explore
from pipesim.prove.search.footprint import NOTHING, Footprints, Touch
from pipesim.ptx.emulate.boxless import _UseByOne
from pipesim.ptx.emulate.tensor_allocations import COLUMNS, TensorAllocations
from pipesim.ptx.flow.divergence import converges
from pipesim.targets import target_of
from tests.prove.any_size.test_skipped_random_loops import numbered, whole
from tests.prove.happens_before.test_snapshot import compared
from tests.ptx.emulate.test_boxless import contradicts, random_body, random_phases
from tests.ptx.emulate.test_exchanges import kernel as exchanging
from tests.ptx.emulate.test_launch_control import handed_out, random_handed_out
from tests.support.memory_order_graph import Graph
from tests.support.random_programs import FAMILIES
from tests.support.random_programs.allocations import allocations_are_right, kernel_of, random_allocations
from tests.support.random_programs.beginnings import beginning
from tests.support.random_programs.contested import contested
from tests.support.random_programs.lane_exchanges import SET_UP as EXCHANGED
from tests.support.random_programs.lane_exchanges import random_exchanges
from tests.support.random_programs.lane_fences import random_fences
from tests.support.random_programs.lanes import random_lanes
from tests.support.random_programs.orders_and_scopes import random_orders
from tests.support.random_programs.perhaps import may_be, random_perhaps
from tests.support.random_programs.sizes import MOST as MOST_TRIPS
from tests.support.random_programs.sizes import random_sizes
from tests.support.random_programs.stale_waits import random_stale, ring
from tests.support.random_programs.warp_shapes import random_warp_shapes, shape_is_right
from tools.judge_ptx import judged

_CHUNK = 16

Judge = Callable[[int], bool]  #: whether the program of a seed shows a contradiction
Judges = tuple[tuple[str, Judge], ...]


def of_certificate(family: str, seed: int) -> bool:
    """The certificate says proved, and a plain search finds a fault or several ends."""
    program = FAMILIES[family](seed)
    if check(program, max_states=1, one_memory=True).verdict is not Verdict.PROVED:
        return False
    with _unbroken():
        seen = explore(program, 10_000, reduced=False)
    return seen.complete and (seen.verdict is not Verdict.PROVED or seen.outcomes != 1)


def of_search(family: str, seed: int) -> bool:
    """The reduced search is complete and sees something else than the plain one."""
    program = FAMILIES[family](seed)
    reduced = explore(program, 3_000)
    if not reduced.complete:
        return False
    with _unbroken():
        plain = explore(program, 10_000, reduced=False)
    return plain.complete and (plain.wrong, plain.outcomes) != (reduced.wrong, reduced.outcomes)


def of_memory(make: Callable[[int], Program], seed: int) -> bool:
    """A program is proved, and schedules made at random show a fault of memory order, by the naive graph."""
    program = make(seed)
    if check(program, max_states=3_000).verdict is not Verdict.PROVED:
        return False
    with _unbroken():
        return any(_faulty(program, 50 * seed + n) for n in range(10))


def of_laps(seed: int) -> bool:
    """A run without some of its laps represents every schedule where the whole run does not, or counts otherwise."""
    short = phases_by_laps(numbered(seed))
    if short is None:
        return False
    with _unbroken():
        return whole(numbered(seed)) != short


def of_sizes(seed: int) -> bool:
    """What is claimed of every value of a trip count, or of several together, does not hold at values drawn."""
    target = target_of(random_sizes(seed))
    asked = Families(target, {}, target.build(twice=False))
    ranges = asked.ranges(2)
    free = [each for each in ranges if each.lap]
    together = asked.together(ranges)
    rng = random.Random(seed)
    drawn = [{each.parameter: rng.randint(each.least, most)} for each in free for most in (9, MOST_TRIPS)]
    if together is not None and not together.fails:
        drawn += [{each.parameter: rng.randint(each.least, each.least + 6) for each in free} for _ in range(3)]
    with _unbroken():
        return not all(holds(target.build(params, twice=False)) for params in drawn)


def of_leftovers(family: str, seed: int) -> bool:
    """A program leaves nothing under way, it is said, and a schedule made at random does when its agents have ended."""
    program = FAMILIES[family](seed)
    if any(left.what is not LeftKind.UNREAD for left in leftovers(program)):
        return False
    if check(program, max_states=1, one_memory=True).verdict is not Verdict.PROVED:
        return False
    with _unbroken():
        return any(_leaves(program, 50 * seed + n) for n in range(10))


def of_concern(make: Callable[[int], Program], seed: int) -> bool:
    """A program without copies needs no look at its memory order, it is said, and a schedule shows a fault of it."""
    program = make(seed)
    if order_may_fail(program) or any(op[0] == Op.TMA_LOAD for op in program.operations):
        return False
    with _unbroken():
        return any(_faulty(program, 50 * seed + n) for n in range(10))


def of_beginning(family: str, seed: int) -> bool:
    """The beginnings of some agents of a program are refuted, and a plain search of the whole finds nothing wrong."""
    program = FAMILIES[family](seed)
    begun = beginning(program, seed)
    if begun is None or check(begun, max_states=1_000, one_memory=True).verdict is not Verdict.REFUTED:
        return False
    with _unbroken():
        seen = explore(program, 10_000, reduced=False)
    return seen.complete and seen.verdict is Verdict.PROVED


def of_shapes(seed: int) -> bool:
    """What the verdict says of warps that multiply together is not what is asked of them."""
    program = random_warp_shapes(seed)
    return (check(program).verdict is Verdict.PROVED) != shape_is_right(program)


def of_lanes(seed: int) -> bool:
    """A role is proved to rest on no lanes being together, and with lanes apart a schedule shows a fault."""
    together = random_lanes(seed, apart=False).with_strictness(Strictness({Assumption.LANES}))
    if check(together, 3_000).verdict is not Verdict.PROVED:
        return False
    with _unbroken():
        return check(random_lanes(seed, apart=True), 3_000).verdict is Verdict.REFUTED


def of_exchanges(seed: int) -> bool:
    """What is said of lanes that hand words to each other is not what their clocks say, one lane at a time."""
    body, right = random_exchanges(seed)
    strict = exchanging(EXCHANGED + body).with_strictness(Strictness({Assumption.LANES}))
    return (check(strict).verdict is Verdict.PROVED) != right


def of_fences(seed: int) -> bool:
    """What is said of fences that some lanes execute is not what each lane then knows of."""
    program, right = random_fences(seed)
    strict = check(program.with_strictness(Strictness({Assumption.LANES}))).verdict
    return check(program).verdict is Verdict.REFUTED if right else strict is Verdict.PROVED


def of_stale(seed: int) -> bool:
    """What the verdict says of a ring whose reads name no item is not what is said where they name theirs."""
    drawn = random_stale(seed)
    found = check(ring(drawn), max_states=1_000).verdict
    with _unbroken():
        named = check(ring(drawn, named=True), max_states=1_000).verdict
    return {found, named} == {Verdict.PROVED, Verdict.REFUTED}


def of_perhaps(seed: int) -> bool:
    """A program is refuted, and right if no two of its accesses that may not happen do, with other bytes perhaps; or
    it is proved, and wrong if none of them does.
    """
    program = random_perhaps(seed)
    verdict = check(program, 2_000, one_memory=True).verdict
    if verdict is Verdict.UNKNOWN:
        return False
    with _unbroken():
        if verdict is Verdict.PROVED:
            return explore(next(may_be(program, small=False)), 10_000, reduced=False).verdict is Verdict.REFUTED
        return any(
            all(explore(each, 10_000, reduced=False).verdict is Verdict.PROVED for each in may_be(program, small=small))
            for small in (True, False)
        )


def of_allocations(seed: int) -> bool:
    """What the verdict says of a kernel that allocates tensor memory is not what is said column by column."""
    drawn = random_allocations(seed)
    return (check(kernel_of(*drawn)).verdict is Verdict.PROVED) != allocations_are_right(*drawn)


def of_boxless(seed: int) -> bool:
    """A kernel whose tensor maps have no box is proved or refuted, and it is not with the boxes of its maps."""
    return contradicts(random_body(seed)) or contradicts(random_phases(seed))


def of_handed_out(seed: int) -> bool:
    """A kernel with cluster launch control is proved, and refuted where a policy says how many tiles it is handed."""
    body = random_handed_out(seed)
    kernel = handed_out(body, None)
    if prove_target(replace(target_of(kernel.program), kernel=kernel), {}, quick=True).verdict is not Verdict.PROVED:
        return False
    with _unbroken():
        return any(check(handed_out(body, given).program).verdict is Verdict.REFUTED for given in (0, 1, 4))


def of_kernels(seed: int) -> bool:
    """What is said of a random kernel, or of its beginning, is not what a naive explorer of its schedules finds."""
    return judged(seed)[0] in ("FALSE ALARM", "WRONG PROOF")


def of_moments(seed: int) -> bool:
    """Two snapshots of a loop that are equal have different continuations, if what follows is drawn."""
    return not all(same for _, same in compared(seed))


def _faulty(program: Program, seed: int) -> bool:
    rng, graph = random.Random(seed), Graph(program)
    play = Play(program, observers=[graph])
    while possible := moves(program, play.state):
        play.make(rng.choice(possible))
    return bool(graph.faults())


def _leaves(program: Program, seed: int) -> bool:
    """True if something of a CTA is under way in its own memory when it has ended: landings come late here."""
    rng, play = random.Random(seed), Play(program)
    agents = range(len(program.agents))
    running = dict(enumerate([a for a in agents if program.agents[a].cta == cta] for cta in range(program.ctas)))
    while not all(finished(program, play.state, agent) for agent in agents):
        possible = moves(program, play.state)
        if not possible or play.faults:
            return False
        stepping = [move for move in possible if move.kind != Kind.LAND]
        play.make(rng.choice(stepping if stepping and rng.random() < 0.8 else possible))
        for cta in [each for each, mine in running.items() if all(finished(program, play.state, a) for a in mine)]:
            own = [flight for flight in play.state.flights if flight.agent in running[cta]]
            if any(_in_own_memory(program, flight, cta) for flight in own):
                return True
            del running[cta]
    return False


def _in_own_memory(program: Program, flight: Flight, cta: int) -> bool:
    """Whether a flight ends in the memory of this CTA, or on a barrier of it."""
    if flight.first == flight.end:
        return program.barriers[flight.barrier].cta == cta
    access = program.accesses_of(program.code[flight.agent][flight.pc])[0]
    return program.accesses[access].space is not Space.GLOBAL and program.cell_ctas[flight.first] == cta


class Rule(NamedTuple):
    """A rule: where it is, what it says, what takes its place while it is off, and who should notice."""

    engine: str
    said: str
    target: str
    instead: Any
    judges: Judges


def _without(why: Why) -> Callable[[Certificate, Doubt], None]:
    """A certificate that never has this doubt."""
    doubt = Certificate._doubt  # noqa: SLF001  # the rule that is switched off

    def silent(self: Certificate, found: Doubt) -> None:
        if found.why is not why:
            doubt(self, found)

    return silent


def _nothing(*_: object, **__: object) -> None:
    """Not remembered, or not wrong."""


def _always(rule: Callable[..., object]) -> Callable[..., bool]:
    def done(*given: object) -> bool:
        rule(*given)
        return True

    return done


_is_granted = RegisterRequests._is_granted  # noqa: SLF001  # the rule that is switched off


def _ended_hold_none(self: RegisterRequests, pools: RegisterPools, request: tuple[int, int], wanted: int) -> bool:
    ends = {(agent, len(mine)) for agent, mine in enumerate(pools.requests)}
    with patch.dict(self._stands, {request: self._stands[request] - ends}):
        return _is_granted(self, pools, request, wanted)


_enter = EqualWrites.enter  # the rule that is switched off


def _later_ones_follow_nothing(
    self: EqualWrites, cell: int, access: AccessEvent, before: tuple[AccessEvent, ...]
) -> tuple[AccessEvent, ...]:
    known = bool(access.written) and any(each.written == access.written for each in self.latest(cell))
    _enter(self, cell, access, before)
    return () if known else before


_touch = Footprints._rule  # noqa: SLF001  # the rule that is switched off


def _without_pool(self: Footprints, agent: int, op: Operation) -> Touch:
    return NOTHING if op[0] == Op.SETMAXNREG else _touch(self, agent, op)


def _touches_nothing(*_: object, **__: object) -> Touch:
    return NOTHING


def _strict_orders(seed: int) -> Program:
    return random_orders(seed).with_strictness(STRICTEST)


def _lenient_orders(seed: int) -> Program:
    return random_orders(seed).with_strictness(LENIENT)


def overwritten(seed: int) -> Program:
    """One in which nothing orders what two agents write, by the strictest reading."""
    return contested(seed, overwrites=True).with_strictness(STRICTEST)


def _on_blackwell(make: Callable[[int], Program], seed: int) -> Program:
    return replace(make(seed), architecture=100).with_strictness(LENIENT)


_fenced = may_fail._fenced  # noqa: SLF001  # the rules that are switched off
_fence_order = MemoryOrder._fence_order  # noqa: SLF001
_fence_tensor = MemoryOrder._fence_tensor  # noqa: SLF001


def _fenced_straight(code: Any, what: Any, by: Any) -> bool:
    return _fenced([op for op in code if op[0] not in BRANCHES], what, by)


def _fence_wide(self: MemoryOrder, agent: int, pc: int, _: Scope, *, full: bool = False) -> None:
    _fence_order(self, agent, pc, Scope.CLUSTER, full=full)


def _fence_both_sides(self: MemoryOrder, agent: int, pc: int, _: Fence) -> None:
    _fence_tensor(self, agent, pc, Fence.TCGEN05_BEFORE)
    _fence_tensor(self, agent, pc, Fence.TCGEN05_AFTER)


_committed_since = Accesses.committed_since  # the rule that is switched off


def _any_commit(self: Accesses, clock: Clock, agent: int, engine: int, _: int, **keywords: bool) -> bool:
    return _committed_since(self, clock, agent, engine, -1, **keywords)


def _if_not_for_phases(program: Program, waiting: Mapping[int, int]) -> bool:
    """Where all that were not read to their end are silent."""
    return not waiting.keys() >= set(program.cut) and max(waiting.values()) >= len(program.barriers)


def _if_not_silent(program: Program, waiting: Mapping[int, int]) -> bool:
    """Where those that are silent reach no barrier of threads."""
    return not waiting.keys() | set(program.silent) >= set(program.cut)


_phases = _UseByOne.phases  # the rule that is switched off


def _where_they_end(self: _UseByOne, keys: Sequence[object], *, backwards: bool) -> list[list[Any]]:
    """Each phase ends only where the next one begins."""
    return [ends[-1:] for ends in _phases(self, keys, backwards=backwards)]


def _of_each(ctas: list[TensorAllocations], *, ended: bool) -> dict[int, str]:
    return {at: said for cta in ctas for at, said in (cta.at_end() if ended else cta.faults).items()}


def _in_time(self: Certificate, did: Any) -> None:
    bar = did.op[BARRIER]  # the rule that is switched off
    self._see(did.agent, bar, len(self._done[bar]) - 1)


_sure_bytes = refutation._sure_bytes  # noqa: SLF001  # the rule that is switched off


def _whole_access(program: Program, agent: int, pc: int, _: int) -> range:
    return _sure_bytes(program, agent, pc, 0)


def _yes(*_: object) -> bool:
    return True


def _no(*_: object, **__: object) -> bool:
    return False


def _empty(_: object) -> Snapshot:
    return Snapshot((), (), ())


def _if_written(_: object, other: AccessEvent, __: int) -> bool:
    return other.writes and other.generic


def _not_yet(_self: object, _part: int, word: BarrierState) -> int:
    """No phase completes meanwhile."""
    return word.done


def _alone(_here: object, seed: object, _weights: object, _most: object) -> set[int]:
    return {id(seed)}


def _rules(engine: str, judges: Judges, *rows: tuple[str, str, Any]) -> Iterator[Rule]:
    """Rules of an engine which the same comparisons should notice: what each says, where it is, what is instead."""
    return (Rule(engine, *row, judges) for row in rows)


def _in_families(judge: Callable[[str, int], bool], *families: str) -> Judges:
    return tuple((family, partial(judge, family)) for family in families or FAMILIES)


def _in_memory(makes: Mapping[str, Callable[[int], Program]]) -> Judges:
    return tuple((name, partial(of_memory, make)) for name, make in makes.items())


_STRICT = _in_memory({"orders, strict": _strict_orders, "overwritten": overwritten})
_BLACKWELL = _in_memory(
    {
        "orders, sm_100": partial(_on_blackwell, random_orders),
        "overwritten, sm_100": partial(_on_blackwell, overwritten),
    }
)
_BLIND = MemorySearch(complete=True, states=1, refutations=())
_ENDED = property(lambda program: tuple(map(len, program.code)))

RULES = [
    *_rules(
        "certificate", _in_families(of_certificate),
        *((why.value, "certificate.certificate.Certificate._doubt", _without(why)) for why in Why),
        ("an inval comes after the transfers that arrive on its barrier", "certificate.requirements.Lives.land",
         _nothing),
        ("an init comes after the inval before it", "certificate.requirements.Lives.begin", _always(Lives.begin)),
        ("a read comes after each of several equal writes", "happens_before.accesses.EqualWrites.latest",
         lambda *_: ()),
        ("equal writes come after what came before the first", "happens_before.accesses.EqualWrites.enter",
         _later_ones_follow_nothing),
    ),
    *_rules(
        "certificate", _in_families(of_certificate, "exchanged"),
        ("an arrive in another's place knows what comes before both", "memory_order.exchanged._covers", _yes),
        ("who waits knows the arrives of earlier phases",
         "memory_order.exchanged.ExchangedPhases.cannot_pass_early", _yes),
        ("no arrive of the phase after next precedes a wait",
         "memory_order.exchanged.ExchangedPhases._follows_waits", _yes),
        ("only arrives of one size are exchanged", "memory_order.exchanged._are_alike", _yes),
    ),
    *_rules(
        "certificate", _in_families(of_certificate, "registers", "handovers"),
        ("a phase that is waited for may be incomplete until the request", "certificate.requirements._is_complete",
         _yes),
        ("who has ended holds what it asked for", "certificate.requirements.RegisterRequests._is_granted",
         _ended_hold_none),
        ("a request has room beside what the others hold", "certificate.requirements.RegisterRequests.all_granted",
         _yes),
    ),
    *_rules(
        "certificate", _in_families(of_certificate, "rings"),
        ("a wait by state token may miss its phase", "certificate.certificate.Certificate._wait_by_state", _in_time),
    ),
    *_rules(
        "memory order", _in_memory({"orders": random_orders, "contested": contested}),
        ("a relaxed arrive hands nothing on", "memory_order.order._RELEASES", frozenset(Order)),
        ("a relaxed wait takes nothing over", "memory_order.comparison._ACQUIRES", frozenset(Order)),
        ("the asynchronous proxy sees only what was fenced", "memory_order.comparison.AccessOrder._wrong", _nothing),
        ("an init is used only after it was published", "memory_order.comparison.AccessOrder.use", _nothing),
        ("fence.mbarrier_init is of its own thread", "memory_order.order.MemoryOrder._inits_of_fence",
         lambda *given: given[-1]),
        ("a fence of the CTA does not reach another one", "memory_order.order.MemoryOrder._fence_order", _fence_wide),
        ("the bytes of a copy pass nothing else on", "memory_order.order._RELEASE_THE_ISSUE",
         frozenset({TMA, *Engine})),
        ("who issues a copy arrives before it", "memory_order.may_fail._arrives_before_each_copy", _yes),
        ("a program that needs a look gets one", "memory_order.may_fail.order_may_fail", _no),
        ("every schedule is looked at where no run represents them", "check.search_memory_order", lambda *_: _BLIND),
    ),
    *_rules(
        "memory order", (("concern", partial(of_concern, contested)),),
        ("a jump may lead over a fence", "memory_order.may_fail._fenced", _fenced_straight),
    ),
    *_rules(
        "memory order", _STRICT,
        ("under --strict-proxies reads are fenced, too", "memory_order.comparison.AccessOrder._needs_fence",
         _if_written),
        ("a program whose reads need a look gets one", "memory_order.may_fail.reads_may_be_unfenced", _no),
        ("accesses to tensor memory are fenced", "memory_order.comparison.AccessOrder._asks_for_tensor_fence", _no),
        ("a fence of tensor memory orders one side", "memory_order.order.MemoryOrder._fence_tensor",
         _fence_both_sides),
        ("tensor memory that needs a look gets one", "memory_order.may_fail.tensor_accesses_may_be_unfenced", _no),
    ),
    *_rules(
        "memory order", _in_memory({"orders, lenient": _lenient_orders}),
        ("an init without a fence is met first by a barrier", "memory_order.comparison.AccessOrder._is_enough", _yes),
    ),
    *_rules(
        "memory order", _BLACKWELL,
        ("what a thread reads on sm_100 is fenced", "pipesim.model.program.Program.fences_reads", property(_no)),
    ),
    *_rules(
        "loop acceleration", (("loops", of_laps), ("moments", of_moments)),
        ("the items of every lap that is left out are looked at", "any_size.skip_laps._LapRun._items_go_on", _yes),
        ("a lap ends where everything is as at its beginning", "any_size.skip_laps.is_again", _yes),
        ("what the certificate remembers is compared", "certificate.certificate.Certificate.snapshot", _empty),
    ),
    *_rules(
        "any number", (("sizes", of_sizes),),
        ("values far beyond are compared with the lap", "any_size.family.Family.far", lambda _, every: every),
        ("several trip counts are tried together", "pipesim.answers.any_size._small", lambda _: ()),
        ("one value after the other is run", "any_size.family.Family._all_hold", _yes),
    ),
    *_rules(
        "exits", _in_families(of_leftovers),
        ("a copy lands as late as it can", "counterexample.leftovers._WaitTargets.served_by", lambda *_: [0]),
        ("what is under way in the memory of its CTA when that ends is not silent",
         "counterexample.leftovers._stays", _no),
        ("work of a CTA for which others wait may land after its end", "counterexample.leftovers._is_for_others", _no),
    ),
    *_rules(
        "commits", _in_families(of_certificate, "commits"),
        ("a phase is over before a commit if all its parts are", "certificate.canonical._Parts.come_before", _yes),
        ("lanes that differ keep no order of commits", "certificate.canonical.committer",
         lambda agent, op: (agent, op[0])),
        ("a commit has arrived if a later one has", "happens_before.accesses.Accesses.committed_since", _any_commit),
    ),
    *_rules(
        "commits", _in_families(of_search, "commits"),
        ("what may land meanwhile need not wait for what is held", "search.meanwhile.lands_after", _yes),
    ),
    *_rules(
        "beginnings", _in_families(of_beginning),
        ("an agent that was not read to its end has not ended", "pipesim.model.program.Program.ends", _ENDED),
        ("it may do what others wait for", "pipesim.explain.blocked_agents._may_be_ended", _no),
        ("it may complete a phase, unless it is silent", "pipesim.explain.blocked_agents._may_be_ended",
         _if_not_for_phases),
        ("it may arrive at a barrier of threads", "pipesim.explain.blocked_agents._may_be_ended", _if_not_silent),
    ),
    *_rules(
        "beginnings", (("PTX", of_kernels),),
        ("what was not read may signal", "pipesim.ptx.emulate.regions.Regions.may_signal", _no),
    ),
    *_rules(
        "shape of a warp", (("warp shapes", of_shapes),),
        ("a warp group has four warps, which execute the same equally often",
         "pipesim.model.rules.warp_shape._uneven", _nothing),
        ("a warp group begins at a multiple of four warps", "pipesim.model.rules.warp_shape.WARP_GROUP", 1),
        ("a CTA has 65,536 registers", "pipesim.model.rules.warp_shape.SM_REGISTERS", 1 << 20),
    ),
    *_rules(
        "what may not happen", (("perhaps", of_perhaps),),
        ("what fails only if an access happens is not certain", "check.is_unsure", _no),
        ("what fails without an access that may not happen is not proved", "check.certain_part",
         lambda program: program),
        ("two values that are not known need not go together", "refutation.OPEN_WORD", OPEN_WORD + 1),
        ("a copy of inferred bytes may be smaller", "refutation._sure_bytes", _whole_access),
    ),
    *_rules(
        "lanes", (("lanes", of_lanes),),
        ("a lane that signals others is taken to be together with the rest", "pipesim.lang.flatten.HANDS_ON",
         frozenset()),
        ("places where lanes are taken to be together are known", "pipesim.lang.flatten.rests_on_lanes",
         lambda *_: []),
        ("a described fence orders what its own lane knows of", "pipesim.lang.flatten._LaneFences.fence", _no),
    ),
    *_rules(
        "lanes", (("exchanges", of_exchanges),),
        ("accesses of two lanes are in order after a barrier of both",
         "pipesim.ptx.emulate.lanes.exchanges.LaneExchanges._is_ordered", _yes),
        ("an exchange of values orders no accesses", "pipesim.ptx.emulate.code.orders_lanes", converges),
    ),
    *_rules(
        "lanes", (("lane fences", of_fences),),
        ("a fence is an acquire of its own lane", "pipesim.ptx.emulate.lanes.apart.LaneFences.fence", _yes),
        ("a fence makes a release of what its own lane signals", "pipesim.ptx.emulate.lanes.apart.LaneFences.signal",
         _nothing),
    ),
    *_rules(
        "stale waits", (("stale waits", of_stale),),
        ("a stale wait is a finding", "counterexample.confirm.stale_waits", lambda _: ()),
        ("what is read again was handed back", "stale_waits._Deliveries._handed_back", _yes),
        ("something of the kind is never read", "stale_waits._Deliveries._missed",
         lambda _, again, __: next(iter(again.old.values()))),
        ("a wait may be stale if two waits in a row ask for one parity", "stale_waits._waits_again", _no),
    ),
    *_rules(
        "tensor memory", (("allocations", of_allocations),),
        ("columns are a power of two from 32 to 512", "pipesim.ptx.emulate.tensor_allocations._SIZES",
         range(COLUMNS + 1)),
        ("nothing is allocated without the permit",
         "pipesim.ptx.emulate.tensor_allocations.TensorAllocations.relinquish", _nothing),
        ("columns that are used are allocated", "pipesim.ptx.emulate.tensor_allocations.TensorAllocations.use",
         _nothing),
        ("all columns are released before the kernel ends",
         "pipesim.ptx.emulate.tensor_allocations.TensorAllocations.at_end", lambda self: self.faults),
        ("both CTAs of a pair allocate and release", "pipesim.ptx.coverage.allocation_faults", _of_each),
    ),
    *_rules(
        "without boxes", (("without boxes", of_boxless),),
        ("no proof rests on bytes that are inferred", "pipesim.ptx.coverage._without_boxes", lambda _: ()),
        ("a copy of inferred bytes may be smaller", "pipesim.prove.refutation._sure_bytes", _whole_access),
        ("a phase may end anywhere from its arrive to the next", "pipesim.ptx.emulate.boxless._UseByOne.phases",
         _where_they_end),
        ("no bytes fit if none fits any of the ends", "pipesim.ptx.emulate.boxless._some_fit", _no),
    ),
    *_rules(
        "hand-outs", (("hand-outs", of_handed_out),),
        ("the fewest tiles are looked at", "pipesim.ptx.extract.fewer_tiles", lambda *_: ()),
        ("enough tiles are handed out to use barriers again", "pipesim.ptx.hand_outs._HANDED_OUT", (1,)),
    ),
    *_rules(
        "reduced search", _in_families(of_search),
        ("who arrives, expects or lands touches the barrier", "search.footprint.Footprints._signal", _touches_nothing),
        ("who accesses memory touches its cells", "search.footprint.Footprints._access", _touches_nothing),
        ("transfers of an agent on an engine touch each other", "search.footprint.Footprints._group",
         _touches_nothing),
        ("a wait for groups touches the transfers", "search.footprint.Footprints._awaited_touch", _touches_nothing),
        ("an operation on another CTA touches whether it has ended", "search.footprint.Footprints._outlives",
         _touches_nothing),
        ("the last operation of an agent touches its end", "search.footprint.Footprints._end", _touches_nothing),
        ("who asks for registers touches the pool of its CTA", "search.footprint.Footprints._rule", _without_pool),
        ("others that may interfere join the chosen processes", "search.persistent.Here.interfering_processes",
         lambda *_: []),
        ("arrivals that may complete more than one phase are not exchanged",
         "search.meanwhile.Meanwhile._mixed_parts", lambda *_: 0),
        ("a phase may complete while others are held still", "search.meanwhile.Meanwhile._most_done", _not_yet),
        ("a choice with a move that fails in it is not made", "search.persistent._closure", _alone),
    ),
]  # fmt: skip
_off: list[Any] = []  # the patches of the rule that is off now


@contextmanager
def _unbroken() -> Iterator[None]:
    """The yardstick runs with every rule on."""
    for each in _off:
        each.stop()
    try:
        yield
    finally:
        for each in _off:
            each.start()


def noticed(rule: Rule, most: int, jobs: int) -> tuple[str, int]:
    """The comparison that notices first, and after how many programs; ("", programs) if none does."""
    with ExitStack() as stack:
        off = patch(rule.target if rule.target.startswith("pipesim.") else f"pipesim.prove.{rule.target}", rule.instead)
        off.start()
        _off[:] = [off]
        stack.callback(_off.clear)
        stack.callback(off.stop)
        pool = stack.enter_context(get_context("fork").Pool(jobs))
        for name, seed in pool.imap(partial(_first, rule.judges), _chunks(len(rule.judges), most)):
            if seed >= 0:
                return name, seed + 1  # whoever is still at work is terminated with the pool
    return "", most


def _chunks(judges: int, most: int) -> Iterator[tuple[int, range]]:
    """All seeds for each comparison: each asks a few programs before any asks many."""
    begin, size = 0, 1
    while begin < most:
        end = min(begin + size, most)
        for judge in range(judges):
            yield judge, range(begin, end)
        begin, size = end, min(2 * size, _CHUNK)


def _first(judges: Sequence[tuple[str, Judge]], chunk: tuple[int, range]) -> tuple[str, int]:
    """The first seed of a chunk that its comparison notices, -1 if there is none."""
    name, judge = judges[chunk[0]]
    return name, next((seed for seed in chunk[1] if _judged(judge, seed)), -1)


def _judged(judge: Judge, seed: int) -> bool:
    try:
        return judge(seed)
    except AssertionError:  # an engine that finds itself in a state that cannot be has noticed, too
        return True


def main(argv: list[str] | None = None) -> int:
    """Try every rule; exit code 1 if a rule is missed by all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=20_000, help="programs of each family")
    parser.add_argument("--only", default="", help="rules whose engine or sentence has this word")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes")
    options = parser.parse_args(argv)
    missed = 0
    print("| engine | rule | noticed by | after programs |\n| --- | --- | --- | --- |")
    for rule in (rule for rule in RULES if options.only in f"{rule.engine}: {rule.said}"):
        name, count = noticed(rule, options.most, options.jobs)
        missed += not name
        print(f"| {rule.engine} | {rule.said} | {name or 'none'} | {count:,} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
