"""The engines of the proof against each other on random programs: ``python tools/judge_proof.py [COUNT] [FIRST_SEED]``.

For every program whose schedules the plain search can all follow, the certificate may not call a wrong one right, and
every schedule that ``check`` shows must end as it says, in a way that the search has seen, too.
"""

from __future__ import annotations

import runpy
import sys
import time
from collections import Counter
from pathlib import Path

from pipesim.model.finding import Verdict
from pipesim.prove.check import How, check
from pipesim.prove.confirm import refutation
from pipesim.prove.play import Play
from pipesim.prove.search import explore

PROGRAMS = runpy.run_path(str(Path(__file__).resolve().parent.parent / "tests" / "prove" / "programs.py"))
MOST_STATES = 60_000


def judge(seed: int) -> list[str]:
    """What the program of this seed is, in words to be counted; a word in capitals is a mistake of ours."""
    program = PROGRAMS["program"](seed)
    seen = explore(program, MOST_STATES, reduced=False)
    if not seen.complete:
        return ["too many states"]
    found = check(program, max_states=1)
    said = ["right" if seen.verdict is Verdict.PROVED else "wrong"]
    if found.verdict is not Verdict.UNKNOWN:
        said.append(f"{found.verdict.value} by {found.how.name.lower()}")
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
    for seed in range(first, first + count):
        said = judge(seed)
        words.update(said)
        if any(word.isupper() for word in said):
            print(f"seed {seed}: {', '.join(said)}")
    for word, times in words.most_common():
        print(f"{times:8,}  {word}")
    print(f"seeds {first} to {first + count - 1}, {time.perf_counter() - began:.0f} s")
    return int(any(word.isupper() for word in words))


if __name__ == "__main__":
    sys.exit(main())
