"""The engines of the proof against each other: ``python tools/judge_proof.py [COUNT] [FIRST_SEED] [--family NAME]``.

Random programs of three families: rings with mistakes, corners that a certificate is easily wrong about, and programs
of every operation; COUNT of each family that is named, of all if none is. The plain search follows every schedule of a
program, if they are not too many. The reduced search must find exactly the same faults, deadlocks and outcomes.
The certificate may not call a wrong program right, and every schedule that ``check`` shows must end as it says, in a
way that a search has seen, too. All processors are used unless ``--jobs`` says otherwise; but for the times, what is
printed does not depend on how many there are.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.confirm import refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.search.breadth_first import Exploration, explore
from tests.support.random_programs import FAMILIES

MOST_STATES = 10_000
MOST_REDUCED = 3_000
NOT_JUDGED = "not judged"


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
    for shown in found.refutations if found.how is How.SCHEDULE else ():
        again = refutation(Play(program, shown.schedule))
        if again is None or again.kind != shown.kind or shown.kind not in seen.kinds:
            said.append("A SCHEDULE THAT SHOWS NOTHING")
    return said


def main(argv: list[str] | None = None) -> int:
    """Judge so many programs; exit code 1 if an engine was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=2000, help="programs of each family")
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="what they look like")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes")
    options = parser.parse_args(argv)
    seeds = range(options.first, options.first + options.count)
    with get_context("fork").Pool(options.jobs) as pool:
        wrong = [_family(family, seeds, pool) for family in options.family]
    return int(any(wrong))


def _family(family: str, seeds: range, pool: Pool) -> bool:
    """Judge the programs of one family and print what they are; True if an engine was wrong."""
    began, words = time.perf_counter(), Counter[str]()
    said_of = pool.imap(partial(judge, family=family), seeds, chunksize=50)
    for done, (seed, said) in enumerate(zip(seeds, said_of, strict=True), 1):
        words.update(said)
        if done % 5_000 == 0:
            print(f"{family} up to seed {seed}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        if any(word.isupper() for word in said) or NOT_JUDGED in said:
            print(f"{family}, seed {seed}: {', '.join(said)}", flush=True)
    for word, times in words.most_common():
        print(f"{times:8,}  {word}")
    print(f"{family}, seeds {seeds.start} to {seeds.stop - 1}, {time.perf_counter() - began:.0f} s", flush=True)
    return any(word.isupper() for word in words)


if __name__ == "__main__":
    sys.exit(main())
