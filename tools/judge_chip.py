"""Verdicts against silicon: ``python tools/judge_chip.py [COUNT] [FIRST_SEED] [--family NAME]``, on a GPU.

COUNT random programs of each family are checked, and run by the interpreter (``hwkernels/interpreter``):

* one that is proved, with random pauses, several times: it must end, and every read must find the item that it names;
* one that is refuted by a deadlock, in the turns of its schedule: it must hang with every agent at the operation that
  the schedule says. Where turns cannot force the schedule (a try that says no, bytes that land late) it is counted
  apart.

Words in capitals are mistakes of ours, each with a seed of the shortest such program.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.interpreter.able import unable
from hwkernels.interpreter.chip import Chip, Outcome
from hwkernels.interpreter.job import Run
from hwkernels.interpreter.turns import Turns, turns_of
from pipesim.errors import KernelTrapError
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import check
from tests.support.random_programs import FAMILIES

MOST_STATES = 3_000
DELAYS = (0, 200, 2_000, 2_000, 20_000, 20_000)  #: cycles at most before each operation of a run
TRIES = 3  #: of a schedule
BATCH = 2_000


@dataclass(frozen=True)
class Judged:
    """A program with what is said about it; ``turns`` of a deadlock's schedule."""

    family: str
    seed: int
    program: Program
    verdict: Verdict
    turns: Turns | None = None


def judged(which: tuple[str, int]) -> Judged | str:
    """The program of a family and seed with its verdict, or why it is not run."""
    family, seed = which
    program = FAMILIES[family](seed)
    reason = unable(program) or ("its warps wait for registers" if program.register_pools is not None else "")
    if reason:
        return f"not interpreted: {reason}"
    found = check(program, max_states=MOST_STATES)
    if found.verdict is Verdict.PROVED:
        return Judged(family, seed, program, found.verdict)
    if found.verdict is Verdict.UNKNOWN:
        return "no verdict"
    dead = next((each for each in found.refutations if each.end is Ending.DEADLOCK), None)
    if dead is None or len(found.refutations) > 1:
        return "refuted by another fault, after which hardware may do anything"
    return Judged(family, seed, program, found.verdict, turns_of(program, dead.schedule))


def runs_of(each: Judged) -> list[Run]:
    """What is run of a program."""
    if each.turns is not None:
        return [Run(each.program, seed, 0, each.turns) for seed in range(TRIES)]
    return [Run(each.program, each.seed * len(DELAYS) + n, delay) for n, delay in enumerate(DELAYS)]


def said_of(each: Judged, outcomes: Sequence[Outcome]) -> str:
    """What the hardware did, in words to be counted."""
    hangs = sum(outcome.hangs for outcome in outcomes)
    wrong = sum(bool(outcome.wrong_reads or outcome.wrong_stores) for outcome in outcomes)
    if each.turns is None:  # proved
        return (
            "PROVED, AND IT HANGS" if hangs else "PROVED, AND DATA IS WRONG" if wrong else "proved, ends with its data"
        )
    there = sum(outcome.pcs == each.turns.ends for outcome in outcomes)
    kind = "deadlock" if each.turns.exact else "deadlock that turns cannot force"
    if there == len(outcomes):
        return f"{kind}: hangs as the schedule says"
    if there:
        return f"{kind}: hangs as the schedule says in some tries"
    if hangs:
        return f"{kind}: hangs elsewhere" if not each.turns.exact else "A DEADLOCK HANGS ELSEWHERE"
    return f"{kind}: not seen" if not each.turns.exact else "A DEADLOCK IS NOT SEEN"


def _batches(found: list[Judged]) -> Iterator[list[Judged]]:
    """Programs with as many CTAs each, as many as make about :data:`BATCH` runs of a launch."""
    ordered = sorted(found, key=lambda each: (max(2, each.program.ctas), each.turns is not None))
    for _, alike in groupby(ordered, key=lambda each: (max(2, each.program.ctas), each.turns is not None)):
        rest = list(alike)
        while rest:
            yield rest[: BATCH // len(DELAYS)]
            rest = rest[BATCH // len(DELAYS) :]


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 if the hardware contradicts a verdict."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--family", choices=sorted(FAMILIES), action="append")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e9, help="check no further programs after this time")
    options = parser.parse_args(words)
    begun = time.monotonic()
    which = [(family, options.seed + n) for n in range(options.count) for family in options.family or sorted(FAMILIES)]
    counts: Counter[str] = Counter()
    found: list[Judged] = []
    with get_context("fork").Pool(options.jobs) as pool:  # before there is a context that a fork would break
        for each in pool.imap(judged, which, chunksize=8):
            if isinstance(each, str):
                counts[each] += 1
            else:
                found.append(each)
            if time.monotonic() - begun > options.seconds:
                pool.terminate()
                break
    made, took = sum(counts.values()) + len(found), time.monotonic() - begun
    print(f"{made:,} programs from seed {options.seed}, checked in {took:.0f} s")
    return _run(found, counts)


def _run(found: list[Judged], counts: Counter[str]) -> int:
    from hwkernels.device.launch import require_gpu

    begun, made = time.monotonic(), 0
    shortest: dict[str, Judged] = {}
    for each, outcomes in _outcomes(found):
        said = said_of(each, outcomes) if outcomes else "A PROGRAM TRAPS"
        counts[said] += 1
        made += len(outcomes)
        known = shortest.get(said)
        if known is None or sum(map(len, each.program.code)) < sum(map(len, known.program.code)):
            shortest[said] = each
    print(f"{len(found):,} of them run {made:,} times on {require_gpu().name} in {time.monotonic() - begun:.1f} s")
    for said, count in counts.most_common():
        example = f"  ({shortest[said].family} {shortest[said].seed})" if said in shortest else ""
        print(f"{count:8,}  {said}{example}")
    return int(any(said.isupper() for said in counts))


def _outcomes(found: list[Judged]) -> Iterator[tuple[Judged, list[Outcome]]]:
    """Each program with what its runs left, none of one that traps: then the process is lost, the batch is halved."""
    waiting = list(_batches(found))
    while waiting:
        with get_context("spawn").Pool(1) as worker:
            while waiting:
                batch = waiting.pop()
                left = worker.apply(on_chip, (batch,))
                if left is not None:
                    yield from zip(batch, left, strict=True)
                    continue
                if len(batch) == 1:
                    yield batch[0], []
                else:
                    waiting += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
                break


_CHIP: list[Chip] = []  # of this process


def on_chip(batch: list[Judged]) -> list[list[Outcome]] | None:
    """What the runs of each program left; None if a kernel trapped, after which this process cannot launch."""
    from hwkernels.device.launch import require_gpu

    if not _CHIP:
        _CHIP.append(Chip(require_gpu()))
    runs = [runs_of(each) for each in batch]
    try:
        outcomes = iter(_CHIP[0].run([run for mine in runs for run in mine]))
    except KernelTrapError:
        return None
    return [[next(outcomes) for _ in mine] for mine in runs]


if __name__ == "__main__":
    sys.exit(main())
