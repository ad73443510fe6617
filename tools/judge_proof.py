"""The engines of the proof against each other: ``python tools/judge_proof.py [COUNT] [FIRST_SEED] [--family NAME]``.

COUNT random programs in all, divided among the families that are named, all if none is; with ``--seconds`` as many as
there is time for, the same for each family. What each is compared with:

* ``rings``, ``corners``, ``operations``, ``exits``, ``registers``, ``handovers``, ``lives``, ``commits``,
  ``exchanged``: the plain search follows every schedule of a program, if they are not too many. The reduced search
  must find exactly the same faults, deadlocks and outcomes. The certificate may not call a wrong program right, and
  every schedule that ``check`` shows must end as it says, in a way that a search has also seen.
* ``orders``, ``contested``, ``overwritten``, ``exchanged orders`` (fences, scopes, jumps over fences, phases that any
  of several arrivals may complete): of a program that is proved no schedule made at random may show a fault of memory
  order, by a graph in which every path is followed; every schedule that ``check`` shows must show its fault again.
* ``loops``: a run without its repeated laps must say what the whole run says.
* ``sizes``: what is claimed of all values of one trip count or of two must hold at values drawn.
* ``beginnings``: what is found where only the beginning of some agents was read must be wrong in the whole.
* ``in flight``: where nothing is said to be under way at the end, no schedule made at random may leave anything.
* ``perhaps``: what is refuted must be wrong whichever of the accesses that may not happen do.
* ``warp shapes``, ``allocations`` (of tensor memory), ``lanes``, ``lane fences``, ``lane ways``, ``stale waits``: the
  verdict must be that of a plain rule, of lanes that run apart, of what each lane knows, of two warps, of reads that
  name their items.
* ``without boxes``: what is said of a kernel without the boxes of its tensor maps must hold with them.
* ``ptx``: kernels written as PTX in many ways, against every schedule of what they were made from.
* ``removals``: what is offered of a program may be left out, says a search of every schedule.

What takes longer is compared only if it is named:

* ``CTAs``, ``free contents``, ``words``, ``global memory`` (``judge_ctas.py``), ``kernel sizes``,
  ``kernel sizes nearby``, ``kernel laps``, ``kernel counts`` (``judge_sizes.py``): what is said of CTAs and sizes that
  were not looked at, and of global memory, by brute force.
* ``SPIN``, ``SPIN twins`` (``judge_spin.py``): what SPIN finds in the exported model.

All processors are used unless ``--jobs`` says otherwise; but for the times, what is printed does not depend on how many
there are. A table of the counts comes last, and of each family with a contradiction the shortest such program.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.findings.catalog import MEMORY_ORDER, NO_MOVE_SHOWS
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.confirm import refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.memory_order.may_fail import memory_faults_of
from pipesim.prove.refutation import Refutation
from pipesim.prove.search.breadth_first import Exploration, explore
from tests.prove.any_size.test_skipped_random_loops import numbered
from tests.ptx.emulate.test_boxless import random_body, with_boxes
from tests.support.random_programs import FAMILIES
from tests.support.random_programs.allocations import kernel_of, random_allocations
from tests.support.random_programs.contested import contested
from tests.support.random_programs.exchanged import random_exchanged
from tests.support.random_programs.lane_fences import random_fences
from tests.support.random_programs.lane_ways import of_ways, random_ways
from tests.support.random_programs.lanes import random_lanes
from tests.support.random_programs.orders_and_scopes import random_orders
from tests.support.random_programs.perhaps import random_perhaps
from tests.support.random_programs.sizes import random_sizes
from tests.support.random_programs.stale_waits import random_stale, ring
from tests.support.random_programs.warp_shapes import random_warp_shapes
from tools import judge_ctas, judge_sizes, judge_spin
from tools.judge_ptx import judged, read
from tools.judge_redundant import judge as judge_removals
from tools.judge_redundant import program_of
from tools.judge_rules import (
    of_allocations,
    of_beginning,
    of_boxless,
    of_fences,
    of_lanes,
    of_laps,
    of_leftovers,
    of_memory,
    of_perhaps,
    of_shapes,
    of_sizes,
    of_stale,
    overwritten,
)  # fmt: skip

MOST_STATES = 10_000
MOST_REDUCED = 3_000
NOT_JUDGED = "not judged"
NOT_DECIDED = "not decided"
_MIXED = ("rings", "corners", "operations", "exits")  #: families of "in flight" and "beginnings"


def judge(seed: int, family: str = "rings") -> list[str]:
    """What the program of this seed is, in words to be counted; a word in capitals is a mistake of ours."""
    program = FAMILIES[family](seed)
    plain = explore(program, MOST_STATES, reduced=False)
    reduced = explore(program, MOST_REDUCED)
    said = _compared(plain, reduced)
    seen = plain if plain.complete else reduced
    if not seen.complete:
        return [*said, NOT_JUDGED]
    said.append("right" if seen.verdict is Verdict.PROVED else "wrong")
    return said + _checked(program, seen)


def _compared(plain: Exploration, reduced: Exploration) -> list[str]:
    """What the reduced search says against the plain one."""
    if not plain.complete:
        return ["too many states for the plain search"]
    if not reduced.complete:
        return ["too many states for the reduced search"]
    same = (plain.wrong, plain.outcomes) == (reduced.wrong, reduced.outcomes)
    return [] if same else ["THE REDUCED SEARCH SEES OTHER THINGS"]


def _checked(program: Program, seen: Exploration) -> list[str]:
    """What the certificate and the schedules say against a search that saw everything."""
    found = check(program, max_states=1, one_memory=True)
    if found.verdict is Verdict.UNKNOWN:
        return []
    said = [f"{found.verdict.value} by {found.how.name.lower()}"]
    if found.verdict is not seen.verdict:
        said.append("CONTRADICTION")
    if found.verdict is Verdict.PROVED and seen.verdict is Verdict.PROVED and seen.outcomes != 1:
        said.append("PROVED WITH SEVERAL OUTCOMES")
    shown = found.refutations if found.how is How.SCHEDULE else ()
    if not all(_shows(program, each, shown) and each.kind in seen.kinds for each in shown):
        said.append("A SCHEDULE THAT SHOWS NOTHING")
    return said


def _shows(program: Program, shown: Refutation, every: Sequence[Refutation]) -> bool:
    """True if the schedule of a refutation ends as it says; what no move shows may show others of them."""
    if shown.kind in MEMORY_ORDER:
        return any(fault.kind is shown.kind for fault in memory_faults_of(program, shown.schedule))
    if shown.kind in NO_MOVE_SHOWS:
        return {fault.kind for fault in Play(program, shown.schedule).faults} <= {each.kind for each in every}
    ended = refutation(Play(program, shown.schedule))
    return ended is not None and ended.kind == shown.kind


def judge_memory(make: Callable[[int], Program], seed: int) -> list[str]:
    """What the program of this seed is in memory order, in the same words."""
    program = make(seed)
    found = check(program, max_states=3_000)
    said = [f"{found.verdict.value} by {found.how.name.lower()}"]
    said += {Verdict.PROVED: ["right"], Verdict.REFUTED: ["wrong"], Verdict.UNKNOWN: [NOT_DECIDED]}[found.verdict]
    if of_memory(make, seed):
        said.append("PROVED, AND A SCHEDULE SHOWS A FAULT OF MEMORY ORDER")
    if not all(_shows(program, shown, found.refutations) for shown in found.refutations):
        said.append("A SCHEDULE THAT SHOWS NOTHING")
    return said


def _by(contradicts: Callable[[int], bool], seed: int) -> list[str]:
    return ["CONTRADICTION"] if contradicts(seed) else []


def _in_flight(seed: int) -> bool:
    return of_leftovers(_MIXED[seed % 4], seed // 4)


def _in_beginning(seed: int) -> bool:
    return of_beginning(_MIXED[seed % 4], seed // 4)


class Family(NamedTuple):
    """The comparison for a family, and its share of the programs: what takes longer gets fewer."""

    share: int
    judge: Callable[[int], list[str]]
    make: Callable[[int], Program] | None = None


def _ptx(seed: int) -> list[str]:
    return [judged(seed)[0]]


def _removals(seed: int) -> list[str]:
    return list(judge_removals(seed))


def _any_size(seed: int) -> Program:
    return random_sizes(seed)().flatten(twice=False)


def _any_family(seed: int) -> Program:
    return FAMILIES[_MIXED[seed % 4]](seed // 4)


_exchanged_orders = partial(random_exchanged, orders=True)
JUDGED: Mapping[str, Family] = {
    **{name: Family(share, partial(judge, family=name), FAMILIES[name]) for name, share in
       zip(FAMILIES, (120, 240, 280, 150, 70, 60, 160, 160, 160), strict=True)},
    "orders": Family(40, partial(judge_memory, random_orders), random_orders),
    "contested": Family(20, partial(judge_memory, contested), contested),
    "overwritten": Family(10, partial(judge_memory, overwritten), overwritten),
    "exchanged orders": Family(20, partial(judge_memory, _exchanged_orders), _exchanged_orders),
    "loops": Family(16, partial(_by, of_laps), numbered),
    "sizes": Family(2, partial(_by, of_sizes), _any_size),
    "in flight": Family(12, partial(_by, _in_flight), _any_family),
    "beginnings": Family(40, partial(_by, _in_beginning), _any_family),
    "warp shapes": Family(40, partial(_by, of_shapes), random_warp_shapes),
    "perhaps": Family(40, partial(_by, of_perhaps), random_perhaps),
    "allocations": Family(20, partial(_by, of_allocations), lambda seed: kernel_of(*random_allocations(seed))),
    "without boxes": Family(20, partial(_by, of_boxless), lambda seed: with_boxes(random_body(seed))),
    "ptx": Family(20, _ptx, lambda seed: read(*judged(seed)[1:]).program),
    "removals": Family(4, _removals, program_of),
    "lanes": Family(20, partial(_by, of_lanes), partial(random_lanes, apart=True)),
    "lane ways": Family(20, partial(_by, of_ways), partial(random_ways, apart=False)),
    "lane fences": Family(20, partial(_by, of_fences), lambda seed: random_fences(seed)[0]),
    "stale waits": Family(20, partial(_by, of_stale), lambda seed: ring(random_stale(seed))),
}  # fmt: skip
#: Those that are not meant by default.
SLOWER: Mapping[str, Family] = {
    "global memory": Family(4, judge_ctas.judge_global),
    "CTAs": Family(2, judge_ctas.judge_random),
    "free contents": Family(1, judge_ctas.judge_contents),
    "words": Family(1, judge_ctas.judge_words),
    "kernel sizes": Family(1, judge_sizes.judge_size),
    "kernel sizes nearby": Family(1, judge_sizes.judge_nearby),
    "kernel laps": Family(1, judge_sizes.judge_laps),
    "kernel counts": Family(4, judge_sizes.judge_verdict),
    "SPIN": Family(8, judge_spin.judge, judge_spin.program_of),
    "SPIN twins": Family(8, judge_spin.judge_twin),
}
_EVERY = {**JUDGED, **SLOWER}


class Tally(NamedTuple):
    """What came of one family: how many programs, how many of each word, and the seconds that they took."""

    programs: int
    words: Counter[str]
    seconds: float

    @property
    def contradictions(self) -> int:
        """Words in capitals: mistakes of ours."""
        return sum(times for word, times in self.words.items() if word.isupper())


def main(argv: list[str] | None = None) -> int:
    """Compare this many programs; exit code 1 if an engine was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=10_000, help="programs in all")
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("--family", nargs="+", choices=_EVERY, default=list(JUDGED), help="what they look like")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes")
    parser.add_argument("--seconds", type=int, default=0, metavar="N", help="seconds of each family, not a count")
    options = parser.parse_args(argv)
    shares = sum(_EVERY[family].share for family in options.family)
    with get_context("fork").Pool(options.jobs) as pool:
        tallies = {}
        for family in options.family:
            many = sys.maxsize if options.seconds else -(-options.count * _EVERY[family].share // shares)
            most = options.seconds or float("inf")
            tallies[family] = _family(family, range(options.first, options.first + many), most, options.jobs, pool)
    print("\n".join(_table(tallies)))
    return int(any(tally.contradictions for tally in tallies.values()))


def _family(family: str, seeds: range, most: float, jobs: int, pool: Pool) -> Tally:
    """Compare the programs of one family, for this many seconds at most, and print what they are."""
    began, words, wrong, done = time.perf_counter(), Counter[str](), list[int](), 0
    size = 4 * jobs
    while done < len(seeds) and time.perf_counter() - began < most:
        batch, started = seeds[done : done + size], time.perf_counter()
        said_of = pool.imap(_EVERY[family].judge, batch, chunksize=max(1, size // (16 * jobs)))
        for seed, said in zip(batch, said_of, strict=True):
            words.update(said)
            wrong += [seed] if any(word.isupper() for word in said) else []
            if seed in wrong[-1:] or NOT_JUDGED in said:
                print(f"{family}, seed {seed}: {', '.join(said)}", flush=True)
        done += len(batch)
        size *= 2 if time.perf_counter() - started < 1 else 1
    for word, times in words.most_common():
        print(f"{times:8,}  {word}")
    taken = time.perf_counter() - began
    print(f"{family}, {done:,} seeds from {seeds.start}, {taken:.0f} s", flush=True)
    _print_smallest(family, wrong)
    return Tally(done, words, taken)


def _print_smallest(family: str, seeds: list[int]) -> None:
    """Of the programs of these seeds the shortest, operation by operation."""
    make = _EVERY[family].make
    made = [(seed, make(seed)) for seed in seeds] if make is not None else []
    for seed, program in sorted(made, key=lambda each: sum(map(len, each[1].code)))[:1]:
        print(f"{family}, seed {seed}, the shortest of those that contradict:")
        for agent, code in zip(program.agents, program.code, strict=True):
            print(f"  {agent}:\n    " + "\n    ".join(f"{Op(op[0]).name} {op[1:]}" for op in code))


def _table(tallies: Mapping[str, Tally]) -> list[str]:
    """The counts of all families, one row for each, and of all together."""
    rows = ["| family | programs | right | wrong | not decided | contradictions | seconds |", "|" + " --- |" * 7]
    total = [0] * 5
    for family, tally in tallies.items():
        undecided = tally.words[NOT_JUDGED] + tally.words[NOT_DECIDED]
        counts = [tally.programs, tally.words["right"], tally.words["wrong"], undecided, tally.contradictions]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        rows.append(f"| {family} | {' | '.join(f'{n:,}' for n in counts)} | {tally.seconds:.0f} |")
    taken = sum(tally.seconds for tally in tallies.values())
    return [*rows, f"| all | {' | '.join(f'{n:,}' for n in total)} | {taken:.0f} |"]


if __name__ == "__main__":
    sys.exit(main())
