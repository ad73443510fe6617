"""What is claimed of every value of a word of a kernel's parameters, compared with values that are read one by one.

``python tools/judge_sizes.py N [FIRST_SEED] [--jobs J]``: N random kernels, whose loops mostly grow with ``n``. A value
that was not looked at is read, in a CTA of its own, and compared with the class and the laps more that the claim says,
operation by operation.
"""

from __future__ import annotations

import argparse
import random
import sys
from math import prod
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.every_cta.conditions import covered
from pipesim.answers.every_cta.kinds import CtaKind
from pipesim.answers.every_cta.launches import shape_of_program
from pipesim.answers.every_size.claims import EverySize, WordClaim
from pipesim.answers.every_size.classes import AnyWord
from pipesim.model.program import Program
from pipesim.prove.any_size.family import EveryValue
from pipesim.ptx.launch.file import launch_json
from pipesim.targets import Target, find
from tests.support.random_cta_kernels import random_sized_kernel

_LARGEST, _READ = 400, 12  #: of the values that are read, and how many


def by_size(target: Target, rng: random.Random) -> tuple[str, int, list[str]]:
    """What is claimed of the word ``n``, the sizes that were read one by one, and those that do something else.

    A size is read in a CTA of its own; what the claim says of it is a class that was looked at, and laps more.
    """
    every = EverySize(target, [AnyWord("n")])
    list(every)
    (word,), (range_,) = every.words, every.ranges
    if not range_.is_every:
        return "nothing", 0, []
    wrong, sizes = [], rng.sample(range(1, _LARGEST), _READ)
    for value in sizes:
        cta = rng.randrange(prod(target.kernel.kernel.launch.grid)) if target.kernel else 0
        program = every.target({"n": value, "cta": cta}).build()
        if not _is_claimed(word, value, cta, program):
            wrong.append(f"n={value} cta={cta}")
    return "every size, by code" if range_.lap else "all", len(sizes), wrong


def _is_claimed(word: WordClaim, value: int, cta: int, program: Program) -> bool:
    """Whether a program is what is claimed of a size and a CTA."""
    known, places = word.classes.known, word.classes.places_of(cta)
    number = word.classes.holding(value)
    if number < len(known):
        there = known[number].program_of(cta, places)
        return there is not None and shape_of_program(there) == shape_of_program(program)
    rows = [(of, found) for of, found in word.found.items() if isinstance(found, EveryValue)]
    for first_cta, found in rows:
        lap = known[found.first + found.lap].value - known[found.first].value
        laps = (value - known[found.first].value) // lap
        near = word.classes.holding(value - laps * lap)
        mine, theirs = (_kind_of(word, near, each) for each in (cta, first_cta))
        if mine is theirs and mine is not None:
            return word.families[first_cta].covers(found, near + laps * found.lap, program)
    return False


def _kind_of(word: WordClaim, number: int, cta: int) -> CtaKind | None:
    places, kinds = word.classes.places_of(cta), word.classes.known[number].kinds
    return next((kind for kind, _ in kinds if kind.cta == cta or covered(kind.inputs, places)[0]), None)


def _judge(seed: int) -> bool:
    text, launch = random_sized_kernel(seed)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "random.ptx"
        file.write_text(text)
        file.with_suffix(".json").write_text(launch_json(launch))
        said, cases, wrong = by_size(find(str(file)), random.Random(seed))
    print(f"seed {seed}: {said}, {cases} values; {f'WRONG for {wrong[:3]}' if wrong else ''}", flush=True)
    return not wrong


def main() -> int:
    """1 if a value does something else than is claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    options = parser.parse_args()
    with Pool(options.jobs) as pool:
        return 0 if all([*pool.imap(_judge, range(options.first, options.first + options.count))]) else 1


if __name__ == "__main__":
    sys.exit(main())
