"""What the reader makes of the kernels in ``tests/ptx/kernels``, in numbers and a hash: ``programs.json`` pins it.

A change that is to make the reader faster leaves every operation of every warp as it is.
"""

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from pipesim.model.coverage import Coverage
from pipesim.model.ops import Op
from pipesim.model.program_json import dumps
from pipesim.ptx.kernel import read_kernel
from tests.support.paths import ROOT

KERNELS = ROOT / "tests" / "ptx" / "kernels"
PINNED = KERNELS / "programs.json"


def kernel_paths() -> list[Path]:
    """The kernels of ours whose PTX is in the repository."""
    return sorted(KERNELS.glob("*.ptx"))


def summary(path: Path) -> dict[str, object]:
    """Warp instructions that were emulated, operations by kind, a hash of the program's file without its coverage."""
    found = read_kernel(path)
    program = found.program
    counts = Counter(Op(operation[0]).name for operation in program.operations)
    digest = hashlib.sha256(dumps(replace(program, coverage=Coverage())).encode()).hexdigest()
    return {"instructions": found.instructions, "operations": dict(sorted(counts.items())), "sha256": digest}


def pins() -> str:
    """The text of the file that pins them."""
    return json.dumps({path.stem: summary(path) for path in kernel_paths()}, indent=1) + "\n"
