"""The engines of the proof against each other: ``python tools/judge_proof.py [COUNT] [FIRST_SEED] [--family NAME]``.

COUNT random programs in all, divided among the families that are named, all if none is. What each family is judged by:

* ``rings``, ``corners``, ``operations``, ``exits``, ``registers``, ``handovers``: the plain search follows every
  schedule of a program, if they are not too many. The reduced search must find exactly the same faults, deadlocks and
  outcomes. The certificate may not call a wrong program right, and every schedule that ``check`` shows must end as it
  says, in a way that a search has seen, too.
* ``orders``, ``contested``, ``overwritten`` (fences, scopes, jumps over fences, phases that any of several arrivals may
  complete): of a program that is proved no schedule made at random may show a fault of memory order, by a graph in
  which every path is followed; every schedule that ``check`` shows must show its fault again.
* ``loops``: a run without its repeated laps must say what the whole run says.
* ``sizes``: what is claimed of all values of one trip count or of two must hold at values drawn.
* ``beginnings``: what is found where only the beginning of some agents was read must be wrong in the whole.
* ``in flight``: where nothing is said to be under way at the end, no schedule made at random may leave anything.

All processors are used unless ``--jobs`` says otherwise; but for the times, what is printed does not depend on how many
there are. A table of the counts comes last.
"""

from __future__ import annotations

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
from pipesim.model.assumptions import STRICTEST
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.confirm import refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.memory_order.faults import memory_faults_of
from pipesim.prove.refutation import Refutation
from pipesim.prove.search.breadth_first import Exploration, explore
from tests.support.random_programs import FAMILIES
from tests.support.random_programs.contested import contested
from tests.support.random_programs.orders_and_scopes import random_orders
from tools.judge_rules import of_beginning, of_laps, of_leftovers, of_memory, of_sizes

MOST_STATES = 10_000
MOST_REDUCED = 3_000
NOT_JUDGED = "not judged"
NOT_DECIDED = "not decided"


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


def _overwritten(seed: int) -> Program:
    return contested(seed, overwrites=True).with_strictness(STRICTEST)


def _in_flight(seed: int) -> bool:
    return of_leftovers(("rings", "corners", "operations", "exits")[seed % 4], seed // 4)


def _in_beginning(seed: int) -> bool:
    return of_beginning(("rings", "corners", "operations", "exits")[seed % 4], seed // 4)


class Family(NamedTuple):
    """The judge of a family, and its share of the programs: what takes longer gets fewer."""

    share: int
    judge: Callable[[int], list[str]]


JUDGED: Mapping[str, Family] = {
    **{name: Family(share, partial(judge, family=name)) for name, share in
       zip(FAMILIES, (120, 240, 280, 150, 70, 60, 160, 160), strict=True)},
    "orders": Family(40, partial(judge_memory, random_orders)),
    "contested": Family(20, partial(judge_memory, contested)),
    "overwritten": Family(10, partial(judge_memory, _overwritten)),
    "loops": Family(16, partial(_by, of_laps)),
    "sizes": Family(2, partial(_by, of_sizes)),
    "in flight": Family(12, partial(_by, _in_flight)),
    "beginnings": Family(40, partial(_by, _in_beginning)),
}  # fmt: skip


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
    """Judge this many programs; exit code 1 if an engine was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=10_000, help="programs in all")
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("--family", nargs="+", choices=JUDGED, default=list(JUDGED), help="what they look like")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes")
    options = parser.parse_args(argv)
    shares = sum(JUDGED[family].share for family in options.family)
    with get_context("fork").Pool(options.jobs) as pool:
        tallies = {}
        for family in options.family:
            many = -(-options.count * JUDGED[family].share // shares)
            tallies[family] = _family(family, range(options.first, options.first + many), pool)
    print("\n".join(_table(tallies)))
    return int(any(tally.contradictions for tally in tallies.values()))


def _family(family: str, seeds: range, pool: Pool) -> Tally:
    """Judge the programs of one family, and print what they are."""
    began, words = time.perf_counter(), Counter[str]()
    chunk = min(50, max(1, len(seeds) // 200))
    said_of = pool.imap(JUDGED[family].judge, seeds, chunksize=chunk)
    for done, (seed, said) in enumerate(zip(seeds, said_of, strict=True), 1):
        words.update(said)
        if done % 5_000 == 0:
            print(f"{family} up to seed {seed}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        if any(word.isupper() for word in said) or NOT_JUDGED in said:
            print(f"{family}, seed {seed}: {', '.join(said)}", flush=True)
    for word, times in words.most_common():
        print(f"{times:8,}  {word}")
    taken = time.perf_counter() - began
    print(f"{family}, seeds {seeds.start} to {seeds.stop - 1}, {taken:.0f} s", flush=True)
    return Tally(len(seeds), words, taken)


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
