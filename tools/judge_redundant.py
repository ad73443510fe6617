"""Removals that are offered of random programs, against a search that follows every schedule of the edited program.

Every operation of a program has a line of its own, so that each alone is a candidate. It is a family of
``judge_proof.py``.
"""

from collections import Counter
from dataclasses import replace

from pipesim.answers.redundant import redundant
from pipesim.model.program import Program
from pipesim.prove.redundant.candidates import candidates
from pipesim.prove.redundant.removal import Removal, without
from pipesim.targets import target_of
from tests.support.random_programs.corners import random_corners
from tests.support.random_programs.rings import random_ring
from tools.fuzz.naive import Explored, explore

MOST_STATES = 4_000  #: of a program that is checked
MOST_OPERATIONS = 60


def program_of(seed: int) -> Program:
    """The random program of a seed, each operation on its own line."""
    made = random_ring(seed, mutated=0.1) if seed % 2 else random_corners(seed, mutated=0.1)
    lines, sources = [], list[str]()
    for code in made.code:
        lines.append(tuple(range(len(sources), len(sources) + len(code))))
        sources += [f"random.py:{len(sources) + n + 1}" for n in range(len(code))]
    return replace(made, lines=tuple(lines), sources=tuple(sources) or made.sources)


def judge(seed: int) -> Counter[str]:
    """How many removals are offered, WRONG, kept back and break, kept back in vain, or left out as too large."""
    program = program_of(seed)
    if sum(map(len, program.code)) > MOST_OPERATIONS or not _right(explore(program, MOST_STATES)):
        return Counter(["left out"])
    report = redundant(target_of(program), {})
    offered = [each.removal for each in report.alone]
    said = Counter(_verdict_text(program, [each], offered=each in offered) for each in candidates(program))
    together = [offered[n] for n in report.together]
    if together:
        text = _verdict_text(program, together, offered=True)
        said["TOGETHER WRONG" if text == "WRONG" else f"together: {text}"] += 1
    return said


def _verdict_text(program: Program, removals: list[Removal], *, offered: bool) -> str:
    edited = without(program, *removals)
    if edited is None:
        return "no program"
    seen = explore(edited, MOST_STATES)
    if not seen.complete:
        return "too many states"
    if offered:
        return "offered" if _right(seen) else "WRONG"
    return "kept back" if _right(seen) else "breaks"


def _right(seen: Explored) -> bool:
    return seen.complete and not seen.wrong
