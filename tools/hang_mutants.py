"""Mutants that hang so that a flag ends them: ``python tools/hang_mutants.py OUT kernel.ptx ... [--most N]``.

Of each kernel, mutants with an arrive that is dropped or bytes too many that are expected (``tools/ptx_mutants.py``). A
random schedule of the model says where each warp stands at last. A launch can be stopped by the flag of an instrumented
kernel only if every warp that has not ended asks an mbarrier, in a loop that looks at the flag: a warp in ``bar.sync``
looks at nothing, and its kernel never ends. Those of which this is so are written to OUT as ``hang_NAME_lineN.ptx``
with their launch files, for ``tools/record_kernels.py``, and every mutant is printed with what holds its warps.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.rewriter import RewriteOptions, instrument
from pipesim.errors import PipesimError
from pipesim.model.groups import PARITY_WAITS
from pipesim.model.machine import finished, initial_state
from pipesim.model.moves import canonical, make, moves
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.strictness import LENIENT
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from tools.ptx_mutants import mutants

KINDS = ("arrive dropped", "bytes + 128")
SPINS = {Op(number).name for number in PARITY_WAITS}


def held(program: Program, seed: int = 0) -> Counter[str]:
    """By the name of an operation, how many warps stand at it for good in a random schedule; "fault": one ended it."""
    chance, state = random.Random(seed), canonical(initial_state(program))
    while possible := moves(program, state):
        after = make(program, state, chance.choice(possible))
        if after.faults:
            return Counter(["fault"])
        state = after.state
    left = [agent for agent in range(len(program.agents)) if not finished(program, state, agent)]
    return Counter(Op(program.code[agent][state.pcs[agent]][0]).name for agent in left)


def judged(text: str, name: str, launch: Launch) -> Counter[str]:
    """What holds the warps of a mutant; "unread": it cannot be read, or cannot be instrumented with a flag."""
    try:
        program = extract(read_module(text, name, launch.entry), launch).program.judged(LENIENT)
        found = held(program)
        if ends_by_flag(found):
            instrument(text, name, launch, RewriteOptions(stop_flag=True, eager=True))
    except PipesimError:
        return Counter(["unread"])
    return found


def ends_by_flag(found: Counter[str]) -> bool:
    """Whether some warps are held, and all of them where they look at the flag."""
    return bool(found) and set(found) <= SPINS


def hanging(text: str, name: str, launch: Launch) -> Iterator[tuple[int, str, str, Counter[str]]]:
    """Line, kind, text and what holds the warps, of each mutant of these kinds."""
    for mutant in mutants(text):
        if mutant.kind in KINDS:
            yield mutant.line, mutant.kind, mutant.text, judged(mutant.text, name, launch)


def main() -> int:
    """Write and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("kernels", nargs="+", type=Path, help="PTX files with launch files beside them")
    parser.add_argument("--most", type=int, default=1, help="mutants of one kernel that are written")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in options.kernels:
        text, beside = path.read_text(), path.with_suffix(".json").read_text()
        launch, written = read_launch(beside, str(path)), 0
        for line, kind, changed, found in hanging(text, path.name, launch):
            said = ", ".join(f"{name} {number}" for name, number in sorted(found.items())) or "ends"
            chosen = ends_by_flag(found) and written < options.most
            print(f"{path.parent.name}/{path.stem} line {line}, {kind}: {said}{' *' if chosen else ''}", flush=True)
            if chosen:
                written += 1
                made = options.out / f"hang_{path.parent.name}_{path.stem.removesuffix('-sm_90a')}_line{line}"
                made.with_suffix(".ptx").write_text(changed)
                made.with_suffix(".json").write_text(beside)
    return 0


if __name__ == "__main__":
    sys.exit(main())
