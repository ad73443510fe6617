"""SPIN against the search: families of ``judge_proof.py``, for random programs and for the wrong twins.

The plain search follows every schedule of the machine, SPIN every schedule of the exported model. They must see the
same kinds of faults, and a deadlock both or neither. Needs ``spin`` and a C compiler (``tcc`` if there is one).
"""

import inspect
import itertools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipesim.errors import PipesimError
from pipesim.formats.promela import search_depth, to_promela
from pipesim.model.program import Program
from pipesim.prove.search.breadth_first import explore
from tests.support.mistakes import BROKEN
from tests.support.random_programs import FAMILIES

MOST_STATES = 40_000
#: Without those whose operations no model of ours has.
_FAMILIES = sorted(FAMILIES.keys() - {"registers", "handovers"})
SECONDS = 120  #: for each of SPIN's steps
DEADLOCK = "DEADLOCK"
_ERROR = re.compile(r"^pan:\d+: (?:assertion violated\s+!\((\w+)\)|(invalid end state)) \(at depth", re.MULTILINE)
_INCOMPLETE = ("max search depth too small", "out of memory", "VECTORSZ", "not completed", "aborted")
_SIZES = {"stages": (1, 2), "tiles": (0, 1, 2, 3), "k_iters": (1, 2), "slots": (1, 2), "missing": (1,)}


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


def spin(program: Program) -> frozenset[str]:
    """The kinds of everything that SPIN finds wrong."""
    said = pan(to_promela(program), search_depth(program))
    kinds = frozenset(DEADLOCK if end else rule.upper() for rule, end in _ERROR.findall(said))
    errors = re.search(r"errors: (\d+)", said)
    if errors is None or bool(int(errors[1])) != bool(kinds):
        raise RuntimeError(f"this is not how a verifier ends: {said[-2000:]}")
    return kinds


def compared(program: Program) -> list[str]:
    """What both say of a program, in words to be counted; in capitals where they disagree."""
    seen = explore(program, MOST_STATES, reduced=False)
    try:
        kinds = spin(program)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return [f"SPIN FAILED: {error}".upper()]
    if not seen.complete:
        return ["too many states for the search", "wrong" if kinds else "right"]
    found = frozenset(kind.name for kind in seen.kinds)
    said = "agreed" if found == kinds else f"SEARCH {sorted(found)}, SPIN {sorted(kinds)}"
    return [said, "wrong" if found else "right", *(kind.lower().replace("_", " ") for kind in sorted(found))]


def program_of(seed: int) -> Program:
    """The random program of a seed, of each family in turn."""
    return FAMILIES[_FAMILIES[seed % len(_FAMILIES)]](seed // len(_FAMILIES))


def judge(seed: int) -> list[str]:
    """The same of the random program of a seed."""
    return compared(program_of(seed))


def judge_twin(seed: int) -> list[str]:
    """The same of a wrong twin at a small size, one after the other."""
    every = list(twins())
    name, values = every[seed % len(every)]
    try:
        program = BROKEN[name](**values).flatten()
    except PipesimError:
        return ["no such size"]
    return compared(program)


def twins() -> Iterator[tuple[str, dict[str, int]]]:
    """Every wrong twin at every small size that it has."""
    for name, make in BROKEN.items():
        names = [parameter for parameter in inspect.signature(make).parameters if parameter in _SIZES]
        for values in itertools.product(*(_SIZES[parameter] for parameter in names)):
            yield name, dict(zip(names, values, strict=True))
