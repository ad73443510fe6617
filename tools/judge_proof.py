"""The engines of the proof against each other on random programs: ``python tools/judge_proof.py [COUNT] [FIRST_SEED]``.

The plain search follows every schedule of a program, if they are not too many. The reduced search must find exactly the
same faults, deadlocks and outcomes. The certificate may not call a wrong program right, and every schedule that
``check`` shows must end as it says, in a way that a search has seen, too. All processors are used; what is printed does
not depend on how many there are.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.prove.confirm import refutation
from pipesim.prove.play import Play
from pipesim.prove.search import Exploration, explore

PROGRAMS = runpy.run_path(str(Path(__file__).resolve().parent.parent / "tests" / "prove" / "programs.py"))
MOST_STATES = 10_000
MOST_REDUCED = 3_000
NOT_JUDGED = "not judged"


def judge(seed: int) -> list[str]:
    """What the program of this seed is, in words to be counted; a word in capitals is a mistake of ours."""
    program = PROGRAMS["program"](seed)
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
    for shown in found.refutations if found.how is How.SCHEDULE else ():
        again = refutation(Play(program, shown.schedule))
        if again is None or again.kind != shown.kind or shown.kind not in seen.kinds:
            said.append("A SCHEDULE THAT SHOWS NOTHING")
    return said


def main() -> int:
    """Judge so many programs; exit code 1 if an engine was wrong."""
    count, first = (int(a) for a in (sys.argv[1:] + ["2000", "0"][len(sys.argv) - 1 :])[:2])
    began, words = time.perf_counter(), Counter[str]()
    seeds = range(first, first + count)
    with get_context("fork").Pool(os.cpu_count()) as pool:
        for seed, said in zip(seeds, pool.imap(judge, seeds, chunksize=50), strict=True):
            words.update(said)
            if (seed - first) % 5_000 == 4_999:
                print(f"up to seed {seed}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
            if any(word.isupper() for word in said) or NOT_JUDGED in said:
                print(f"seed {seed}: {', '.join(said)}", flush=True)
    for word, times in words.most_common():
        print(f"{times:8,}  {word}")
    print(f"seeds {first} to {first + count - 1}, {time.perf_counter() - began:.0f} s")
    return int(any(word.isupper() for word in words))


if __name__ == "__main__":
    sys.exit(main())
