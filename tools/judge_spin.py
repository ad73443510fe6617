"""SPIN against the search: ``python tools/judge_spin.py [--programs N] [--seed S] [--family NAME] [--twins]``.

Random programs from seed S on (rings, corners, or programs of every operation), and with ``--twins`` the
mistakes of ``tests.support.mistakes`` at small sizes: the plain search follows every schedule of the machine, SPIN
every schedule of the exported model. They must see the same kinds of faults, and a deadlock both or neither. Needs
``spin`` and a C compiler (``tcc`` if there is one).
"""

import argparse
import inspect
import itertools
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.errors import PipesimError
from pipesim.formats.promela import search_depth, to_promela
from pipesim.model.program import Program
from pipesim.prove.search.breadth_first import explore
from tests.support.mistakes import BROKEN
from tests.support.random_programs import FAMILIES

MOST_STATES = 40_000
_NO_PROMELA = {"registers", "handovers"}  #: families whose operations no model of ours has
SECONDS = 120  #: for each of SPIN's steps
DEADLOCK = "DEADLOCK"
_ERROR = re.compile(r"^pan:\d+: (?:assertion violated\s+!\((\w+)\)|(invalid end state)) \(at depth", re.MULTILINE)
_INCOMPLETE = ("max search depth too small", "out of memory", "VECTORSZ", "not completed", "aborted")
_SIZES = {"stages": (1, 2), "tiles": (0, 1, 2, 3), "k_iters": (1, 2), "slots": (1, 2), "missing": (1,)}


class Judged(NamedTuple):
    """What both said about one program. ``search`` is None where it met its limit."""

    name: str
    search: frozenset[str] | None
    spin: frozenset[str]
    states: int  #: of the search
    stored: int  #: of SPIN
    seconds: tuple[float, float]

    @property
    def agrees(self) -> bool:
        """True if they say the same, or the search cannot say."""
        return self.search is None or self.search == self.spin


def available() -> str:
    """Why SPIN cannot be asked here, "" if it can."""
    if not shutil.which("spin"):
        return "spin is not installed"
    return "" if _compiler() else "there is no C compiler"


def _compiler() -> str:
    return next((name for name in ("tcc", "cc", "gcc", "clang") if shutil.which(name)), "")


def pan(model: str, depth: int) -> str:
    """What SPIN's verifier prints that does not stop at the first error. RuntimeError if it saw a part of the model."""
    with tempfile.TemporaryDirectory(prefix="judge_spin") as folder:
        (Path(folder) / "model.pml").write_text(model, encoding="utf-8")
        for command in (
            ["spin", "-Pcat", "-a", "model.pml"],  # the model has nothing for a preprocessor
            [_compiler(), "-w", "-DSAFETY", f"-DVECTORSZ={_vector(model)}", "-o", "pan", "pan.c"],
            ["./pan", "-c0", "-n", "-w20", f"-m{depth}"],
        ):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
            said = done.stdout + done.stderr
            if (done.returncode and command[0] != "./pan") or any(sign in said for sign in _INCOMPLETE):
                raise RuntimeError(f"{' '.join(command)}: {said[-2000:]}")
    return said


def _vector(model: str) -> int:
    told = re.search(r"-DVECTORSZ=(\d+)", model)
    return int(told[1]) if told else 1024


def spin(program: Program) -> tuple[frozenset[str], int]:
    """The kinds of everything that SPIN finds wrong, and the states it stored."""
    said = pan(to_promela(program), search_depth(program))
    kinds = frozenset(DEADLOCK if end else rule.upper() for rule, end in _ERROR.findall(said))
    errors, stored = (re.search(pattern, said) for pattern in (r"errors: (\d+)", r"(\d+) states, stored"))
    if errors is None or stored is None or bool(int(errors[1])) != bool(kinds):
        raise RuntimeError(f"this is not how a verifier ends: {said[-2000:]}")
    return kinds, int(stored[1])


def judge(name: str, program: Program) -> Judged:
    """Ask both."""
    began = time.perf_counter()
    seen = explore(program, MOST_STATES, reduced=False)
    between = time.perf_counter()
    kinds, stored = spin(program)
    found = frozenset(kind.name for kind in seen.kinds) if seen.complete else None
    return Judged(name, found, kinds, seen.states, stored, (between - began, time.perf_counter() - between))


def twins() -> Iterator[tuple[str, dict[str, int]]]:
    """Every wrong twin at every small size that it has."""
    for name, make in BROKEN.items():
        names = [parameter for parameter in inspect.signature(make).parameters if parameter in _SIZES]
        for values in itertools.product(*(_SIZES[parameter] for parameter in names)):
            yield name, dict(zip(names, values, strict=True))


def judged_task(task: tuple[str, dict[str, int]] | tuple[str, int]) -> Judged | str:
    """The verdicts on a seed or a twin; a text if there is no such program or SPIN failed."""
    family, which = task
    if isinstance(which, int):
        name, program = f"{family}, seed {which}", FAMILIES[family](which)
    else:
        name = " ".join([family, *(f"{key}={value}" for key, value in which.items())])
        try:
            program = BROKEN[family](**which).flatten()
        except PipesimError:
            return "no such size"
    try:
        return judge(name, program)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return f"{name}: SPIN FAILED: {error}"


def main(argv: list[str] | None = None) -> int:
    """Compare them all; exit code 1 if there is a disagreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed")
    parser.add_argument(
        "--family",
        choices=sorted(FAMILIES.keys() - {"registers", "handovers"}),
        default="rings",
        help="what the programs look like",
    )
    parser.add_argument("--twins", action="store_true", help="the wrong twins first")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    if available():
        print(available())
        return 2
    seeds = range(options.seed, options.seed + options.programs)
    tasks = [*(twins() if options.twins else ()), *((options.family, seed) for seed in seeds)]
    began, words, states, stored, seconds = time.perf_counter(), Counter[str](), 0, 0, [0.0, 0.0]
    with Pool(options.processes) as pool:
        for said in pool.imap(judged_task, tasks, chunksize=8):
            if isinstance(said, str):
                words["no such size" if said == "no such size" else "SPIN FAILED"] += 1
                if said != "no such size":
                    print(said, flush=True)
                continue
            words.update(_words(said))
            states, stored = states + said.states, stored + said.stored
            seconds = [a + b for a, b in zip(seconds, said.seconds, strict=True)]
            if not said.agrees:
                print(f"{said.name}: search {sorted(said.search or ())}, SPIN {sorted(said.spin)}", flush=True)
    for word, times in words.most_common():
        print(f"{times:8,}  {word}")
    print(f"{len(tasks):,} programs, seeds from {options.seed}; search {states:,} states in {seconds[0]:.0f} s, "
          f"SPIN {stored:,} in {seconds[1]:.0f} s; {time.perf_counter() - began:.0f} s on the clock")  # fmt: skip
    return int(any(word.isupper() for word in words))


def _words(said: Judged) -> list[str]:
    """One program in words to be counted."""
    if said.search is None:
        return ["too many states for the search", "right" if not said.spin else "wrong"]
    kinds = sorted(kind.lower().replace("_", " ") for kind in said.search)
    return ["agreed" if said.agrees else "CONTRADICTION", "right" if not said.search else "wrong", *kinds]


if __name__ == "__main__":
    sys.exit(main())
