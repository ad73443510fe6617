"""A kernel whose CTAs wait for each other by words of global memory: what 2, 3 and 4 of them do together.

Where atomics occur in another order and their answers are used, another program runs: each order is one
(:mod:`pipesim.ptx.emit.word_barriers`). Orders are found from those that were seen: of two CTAs that access the same
word one after the other, the later one comes first.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from pipesim.answers.every_cta.symmetry import all_meet, hangs_whole, most_that_meet
from pipesim.answers.global_memory.memories import writers
from pipesim.bounds import MAX_AGENTS
from pipesim.errors import PtxError
from pipesim.model.coverage import Assumed, Assumption, NotJudged, NotJudgedKind, Strictness
from pipesim.model.finding import Verdict
from pipesim.model.words import MANY_WARPS, Swaps, WordsOfRun
from pipesim.prove.atomic_orders import MOST_ORDERS, orders
from pipesim.prove.check import check as prove
from pipesim.prove.word_order import NO_ORDER, cannot_be_seen, faithful, is_decided, may_be_excluded, more_than_orders
from pipesim.ptx.coverage import loop_ends, place_in
from pipesim.ptx.extract import MOST_TOGETHER, Extraction
from pipesim.ptx.flow.open_results import waiting_loops
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.launch.values import MOST_OF_GRID, SIZES_TOGETHER, ctas_that_fit

_FEW_ORDERS = 4  #: in which atomics of more CTAs are looked at
_MORE_ORDERS = {2: 64, 3: 96}  #: where no grid with fewer CTAs is looked at
_MOST_CLOCKED = 1 << 22  #: warps, times operations, of a grid that is followed whole
_MOST_IN_ORDER = 64  #: warps of all of them, whose atomics are looked at in an order


@dataclass(eq=False)
class Together:
    """What is known of the CTAs together. ``sizes``: how many were looked at, with every order of their atomics.

    ``words``: names of the words; ``loops``: sentences on loops that are followed, as of the kernel's assumptions;
    ``why_not``: why nothing more was looked at, "" if all was; ``more``: why CTAs may do more than what was looked at;
    ``waits``: where they may wait for each other; ``asks``: whether what they do depends on what others write at all;
    ``open_data``: where data is accessed that was not looked at;
    ``assumed``: of the device. ``meet``: whether each wait of the whole grid ends, when all its CTAs have come so far;
    ``any_ctas``: of any number of CTAs along x up to this one, 0 where that is not known;
    ``shared``: whether they access the same data; ``refuted``: whether a program of them is.
    """

    sizes: list[int] = field(default_factory=list)
    words: dict[str, None] = field(default_factory=dict)
    loops: set[str] = field(default_factory=set)
    why_not: str = ""
    open_data: str = ""
    waits: str = ""
    more: str = ""
    assumed: tuple[Assumed, ...] = ()
    meet: bool = False
    shared: bool = False
    refuted: bool = False
    asks: bool = False
    any_ctas: int = 0

    def add(self, whole: "Together") -> None:
        """All that is known of the whole grid."""
        self.sizes += whole.sizes
        self.words |= whole.words
        self.loops |= whole.loops
        self.why_not, self.open_data, self.shared = whole.why_not, whole.open_data, whole.shared
        self.more = whole.more

    @property
    def not_judged(self) -> tuple[NotJudged, ...]:
        """What of it no verdict is about."""
        if self.may_hang:
            return (NotJudged(NotJudgedKind.WORDS, 0, (f"{self.waits}: {self.why_not}",)),)
        data = self.why_not or (self.open_data if self.sizes else "")
        return (NotJudged(NotJudgedKind.SHARED_DATA, 0, (data,)),) if data else ()

    @property
    def may_hang(self) -> bool:
        """Whether it is not known whether all waits end."""
        return bool(self.why_not and self.waits)

    @property
    def may_race(self) -> bool:
        """Whether they tell each other something, and it is not known what that orders."""
        talk = self.asks or bool(self.words)
        return talk and any(each.kind is NotJudgedKind.SHARED_DATA for each in self.not_judged)


def programs_together(
    kernel: Extraction, known: Together, strictness: Strictness
) -> Iterator[tuple[dict[str, int], Extraction]]:
    """The kernel as several of its CTAs run it together, with its settings: what decides the verdict on words.

    ``known``: gets what is known when all of them are proved.
    """
    code, launch = kernel.kernel.code, kernel.kernel.launch
    read = code.regions.observations.read
    unread = [each.position for each in kernel.kernel.function.body if each.position not in read]
    waits = waiting_loops(kernel.kernel.function, code.regions.graph, (), unread)
    known.waits = place_in(kernel.kernel, waits[0]) if waits else ""
    words = [each for each in kernel.kernel.function.body if is_word(each) and each.opcode != "red"]
    observations = code.regions.observations
    looks = [each for each in words if each.opcode == "ld" and observations.decides_what_runs(each)]
    if any(each.policy == "tile_counter" for each in kernel.fewer_tiles) and not looks:
        if not waits:
            return  # which tiles a counter hands out is looked at for one CTA
        if not waiting_loops(kernel.kernel.function, code.regions.graph, (), kernel.answers):
            known = Together()  # so it is here: more tiles in a row may be refuted, and nothing is claimed
    answers = [each for each in words if each.opcode == "atom"]
    valued, several = [each for each in answers if each.position in code.valued], prod(launch.cluster) > 1
    known.asks = bool(waits or looks) or any(map(observations.decides_what_runs, answers))
    if several or 2 * kernel.instructions > MOST_TOGETHER or not (waits or valued or launch.sizes_together):
        if waits or valued:
            known.why_not = "clusters of several CTAs" if several else "they are too long"
        return
    try:
        yield from _of_every_size(kernel, known, strictness)
    except PtxError:
        known.why_not = "their control flow is too large to be followed"


def _of_every_size(
    kernel: Extraction, known: Together, strictness: Strictness
) -> Iterator[tuple[dict[str, int], Extraction]]:
    launch = kernel.kernel.launch
    grid, code = prod(launch.grid), kernel.kernel.code
    known.why_not = "" if launch.sizes_together else "a grid with several long axes"
    for size in launch.sizes_together:
        if not (yield from _of_size(kernel, known, size, strictness)):
            break
    loops = waiting_loops(kernel.kernel.function, code.regions.graph, (), kernel.answers)
    waits = (
        known.loops or known.why_not or loops
    )  # one may be one that few CTAs never enter, as where each finds a lock free
    if waits and grid not in known.sizes and not known.refuted and _may_be_followed_whole(kernel):
        whole = Together()
        if (yield from _of_size(kernel, whole, grid, strictness)):
            known.add(whole)
    if known.more:
        known.why_not, known.sizes, known.words = known.why_not or known.more, [], {}
    if not known.sizes or known.why_not:
        return
    yield from _residency(kernel, known, strictness)
    if waits:
        known.any_ctas = most_that_meet(kernel)
        known.meet = known.any_ctas > 0 or (known.sizes[-1] < grid and all_meet(kernel))
        do = "order" if known.meet else "wait for each other, and order"
        said = f"{grid:,} CTAs {do} what they access{'' if known.meet else ','} as {known.sizes[-1]} do"
        if known.sizes[-1] < grid and (known.shared or not known.meet):
            known.assumed = (Assumed(Assumption.GLOBAL_LOOPS, said), *known.assumed)


def _may_be_followed_whole(kernel: Extraction) -> bool:
    grid = prod(kernel.kernel.launch.grid)
    agents, operations = grid * len(kernel.streams), grid * sum(map(len, kernel.program.code))
    few = agents < MAX_AGENTS and agents * operations <= _MOST_CLOCKED and grid * kernel.instructions <= MOST_TOGETHER
    return few and SIZES_TOGETHER[-1] < grid <= MOST_OF_GRID


def _of_size(
    kernel: Extraction, known: Together, size: int, strictness: Strictness
) -> Generator[tuple[dict[str, int], Extraction], None, bool]:
    """The kernel as this many of its CTAs run it in each order; whether these are all, and ``known`` has them.

    Of many with atomics whose answers decide no order is looked at that does not hang.
    """
    code, large = kernel.kernel.code, size * len(kernel.streams) > _MOST_IN_ORDER
    most = MOST_ORDERS.get(size, 1 if large else _FEW_ORDERS)
    most = _MORE_ORDERS.get(size, most) if size == prod(kernel.kernel.launch.grid) else most
    for made in orders(partial(kernel.together, size), most, MOST_TOGETHER):
        if made is None or (made.words and _are_too_many(made.words, large=large)):
            known.why_not = "" if known.sizes else MANY_WARPS if made and not large else "too many orders of atomics"
            return False
        made = made if known.open_data else _with_strong_data(kernel, made, size, strictness)
        found = made.words
        assert found is not None
        if made.kernel.launch.sees and cannot_be_seen(made.program, found):
            continue
        if not found.words and not found.stuck and not found.why_not:
            return code.regions.observations.decide  # nothing decides that others write; more of them may do more
        known.why_not = _why_not(kernel, made, found, size, strictness)
        if not known.why_not and may_be_excluded(made.program.with_strictness(strictness), found):
            known.why_not = NO_ORDER
        if known.why_not:
            return False
        yield {"together": size} | made.kernel.launch.of_words, made
        known.shared |= bool(found.tiles) or found.open_data >= 0
        known.words |= dict.fromkeys(word.name for word in found.words)
        known.loops |= set(_loops(kernel, made, found))
        known.more = known.more or more_than_orders(made.program, found)
        if found.open_data >= 0:
            known.open_data = place_in(made.kernel, found.open_data)
        if known.refuted and found.swaps is Swaps.ALL:
            break  # whether other orders are as good is not asked
    known.sizes.append(size)
    return True


def _are_too_many(found: WordsOfRun, *, large: bool) -> bool:
    """Whether orders of the atomics of as many CTAs are not looked at."""
    return found.why_not == MANY_WARPS or (large and bool(found.observed) and not found.stuck)


def _with_strong_data(kernel: Extraction, made: Extraction, size: int, strictness: Strictness) -> Extraction:
    """The program in which strong accesses to data are ordered as weak ones, where that decides: it is proved, or each
    finding is of what is loaded, changed and stored again while another CTA does the same, so that a change is lost.
    """
    if made.words is None or not made.words.strong_data:
        return made
    launch = made.kernel.launch
    ordered = kernel.together(size, launch.turns, strong_data=True, sees=launch.sees)
    shown = prove(ordered.program.with_strictness(strictness))
    updates = ordered.kernel.code.regions.observations.updates
    parts = {at for store, loads in updates.items() for at in (store, *loads)}
    lost = all(
        fault is not None
        and parts.issuperset(
            ordered.streams[agent].positions[pc]
            for agent, pc in ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc))
            if agent >= 0
        )
        for fault in (each.fault for each in shown.refutations)
    )
    decides = lost if shown.verdict is Verdict.REFUTED else shown.verdict is Verdict.PROVED
    return ordered if decides else made


def _residency(
    kernel: Extraction, known: Together, strictness: Strictness
) -> Iterator[tuple[dict[str, int], Extraction]]:  # fmt: skip
    """The kernel where one CTA fewer than are followed is on the device at a time, if that hangs and not all fit."""
    launch = kernel.kernel.launch
    grid, program = prod(launch.grid), kernel.program
    fit, sms = ctas_that_fit(launch, program.smem_bytes, program.architecture)
    some = launch.sizes_together[-2:] if known.sizes[0] in launch.sizes_together else ()
    small = [(size, size - 1) for size in some if size > 1]
    whole = [] if grid in launch.sizes_together or grid not in known.sizes else [(grid, min(fit, grid - 1))]
    tried = [
        (kernel.together(size, resident=most), size, most) for size, most in (small + whole if known.words else ())
    ]
    stuck = [each for each in tried if each[0].words is not None and each[0].words.stuck]
    if not stuck or stuck[-1] is not tried[-1] or not (whole or stuck == tried):
        return
    said = Assumed(Assumption.RESIDENCY, f"{fit:,} CTAs at a time on {sms} SMs, and the grid has {grid:,}")
    if fit < grid:
        last, size, most = stuck[len(small) - 1 if stuck == tried else -1]
        coverage = replace(last.program.coverage, assumed=(*last.program.coverage.assumed, said))
        shown = replace(last, program=replace(last.program, coverage=coverage))
        yield {"together": size, "resident": most}, shown
    elif Assumption.RESIDENCY in strictness:
        known.why_not = "they have to be on the device at the same time"
    else:
        known.assumed = (said,)


def _why_not(kernel: Extraction, made: Extraction, found: WordsOfRun, size: int, strictness: Strictness) -> str:
    """Why the program does not say what the kernel does, "" if it does."""
    if found.why_not:
        return found.why_not
    if made.limited or made.program.coverage.stopped:
        return "a warp is not followed to its end"
    whole = size == prod(kernel.kernel.launch.grid)
    outside = found.stuck and is_set_outside(kernel, found)
    hangs = (
        found.stuck and not outside and (whole or _stays_stuck(kernel, found, size) or hangs_whole(kernel, found.loops))
    )
    if is_decided(made.program.with_strictness(strictness), found, hangs=hangs):
        return ""
    if outside and _multicasts(kernel):
        return "a store to a multicast address may write the word that a CTA waits for"
    if outside:
        return "nothing in the grid writes the word that a CTA waits for"
    if found.stuck and not hangs:
        return "more CTAs than are followed together may end the wait"
    return open_wait(made, found)


def open_wait(made: Extraction, found: WordsOfRun) -> str:
    """That a wait, or a load, may see something else in another schedule, and where it is."""
    at = faithful(made.program, found).position
    where = "" if at < 0 else f" at {place_in(made.kernel, at)}"
    return f"what a wait sees{where} depends on the schedule"


def is_set_outside(kernel: Extraction, found: WordsOfRun) -> bool:
    """Whether a host, another device or an earlier kernel is to set a word for which a CTA waits: the grid does not, or
    may do so by a multicast address, at which the memory of other pointers is.
    """
    return _multicasts(kernel) or any(writers(kernel.kernel, [memory]) == frozenset() for memory in found.set_within)


def _multicasts(kernel: Extraction) -> bool:
    body = kernel.kernel.function.body
    return any(each.opcode == "multimem" and each.has_any("st", "red") and not each.has("cp") for each in body)


def _stays_stuck(kernel: Extraction, found: WordsOfRun, size: int) -> bool:
    """Whether no fewer writes are missing with more CTAs, and nothing else writes the word in the whole grid."""
    launch = kernel.kernel.launch
    sizes = launch.sizes_together
    other = size + 1 if size + 1 in sizes else size - 1
    beside = kernel.together(other, ()).words if other in sizes else None
    if beside is None or not beside.stuck or not beside.missing or not found.missing:
        return False
    if (beside.missing < found.missing) if other > size else (found.missing < beside.missing):
        return False
    small = replace(launch.with_setting("together", size), together=0)
    mine = writers(replace(kernel.kernel, launch=small), found.stuck_at)
    whole = writers(kernel.kernel, found.stuck_at)
    return mine is not None and whole is not None and whole <= mine


def _loops(kernel: Extraction, made: Extraction, found: WordsOfRun) -> Iterator[str]:
    """What the coverage says of the loops that are waits for words, and of those around these that are followed."""
    code, assumed = kernel.kernel.code, {each.what for each in made.program.coverage.assumed}
    graph = code.regions.graph
    inside = {at for position in found.loops for at in code.regions.loops.loop_around(position)}
    waiting = {graph.block_of[position] for position in found.loops}
    around = {graph.blocks[each.header].first for each in graph.loops if not waiting.isdisjoint(each.blocks)}
    for first in waiting_loops(kernel.kernel.function, graph, ()):
        said = loop_ends(place_in(kernel.kernel, first))
        if first in inside or (first in around and said not in assumed):
            yield said
