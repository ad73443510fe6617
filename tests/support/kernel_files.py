"""Kernels and protocols as the files that a check reads, and what is offered for the first finding in one."""

from pathlib import Path

from pipesim.answers.checking.counterexample import corrections_of
from pipesim.prove.check import check
from pipesim.prove.repair.correction import Correction
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.targets import Target, find


def written(file: Path, text: str, launch: Launch) -> str:
    """A kernel's PTX, with its launch file beside it; the name of the PTX."""
    file.write_text(text, "utf-8")
    file.with_suffix(".json").write_text(launch_json(launch), "utf-8")
    return str(file)


def with_a_pointer(warps: int, ctas: int = 1) -> Launch:
    """A launch of one cluster whose parameter is the pointer ``x``."""
    shape = (ctas, 1, 1)
    return Launch("kernel", shape, (32 * warps, 1, 1), shape, parameters=(Parameter("x", Pointer()),))


def described(folder: Path, text: str) -> Target:
    """The one protocol of a file with this text."""
    file = folder / "described.py"
    file.write_text(text, "utf-8")
    return find(str(file))


def first_offered(target: Target) -> list[Correction]:
    """What is offered for the first finding in a kernel."""
    program = target.build()
    refuted = check(program).refutations[0]
    return list(corrections_of(program, refuted, program, lambda done, of: None, target.editable))
