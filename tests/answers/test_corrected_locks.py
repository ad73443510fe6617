"""Corrections of locks in kernels whose CTAs talk, each proved: edits of a right kernel's PTX."""

import re
from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.model.finding import Verdict
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.paths import ROOT

PTX = (ROOT / "tests" / "ptx" / "flags" / "flags.ptx").read_text()
_ENTRY = re.compile(r"\.visible \.entry lock_0\(.*?^\}", re.DOTALL | re.MULTILINE)
RIGHT = _ENTRY.search(PTX)[0]  # type: ignore[index]
EXCHANGE = re.search(r"atom\.global\.exch\.b32 .*, \[(%rd\d+)\], 0;", RIGHT)[0]  # type: ignore[index]
FENCES = [each.group() for each in re.finditer(r"\tmembar\.gl;\n|\tfence\.[\w.]*;\n", RIGHT)]
BARRIERS = [each.start() for each in re.finditer(r"\tbar\.sync", RIGHT)]


def without_last_barrier() -> str:
    return RIGHT[: BARRIERS[1]] + RIGHT[BARRIERS[1] :].replace("\tbar.sync \t0;\n", "", 1)


def given_at_first() -> str:
    """The exchange before the stores, behind the first barrier, by the thread that has taken the lock."""
    early = "\tmov.u32 %r99, %tid.x;\n\tsetp.eq.u32 %p99, %r99, 0;\n\t@%p99 membar.gl;\n\t@%p99 " + EXCHANGE + "\n"
    text = RIGHT.replace(EXCHANGE, "").replace("{\n", "{\n\t.reg .b32 %r99;\n\t.reg .pred %p99;\n", 1)
    return text.replace("\tbar.sync \t0;\n", f"\tbar.sync \t0;\n{early}", 1)


WRONG = {
    "is not given back": (RIGHT.replace(EXCHANGE, ""), ["compute gives flags[0] back after the bar.sync"]),
    "gives another word back": (
        RIGHT.replace(EXCHANGE, EXCHANGE.replace("],", "+8],")),
        ["compute gives flags[0] back, not flags[2]", "compute takes flags[2], not flags[0]"],
    ),
    "gives another value back": (
        RIGHT.replace(EXCHANGE, EXCHANGE.replace(", 0;", ", 3;")), ["compute gives flags[0] back as 0"]
    ),
    "no barrier before it is given back": (
        without_last_barrier(), ["compute executes bar.sync before it gives back flags[0]"]
    ),
    "is given back before the stores": (given_at_first(), ["compute gives flags[0] back only after the bar.sync"]),
    "no fence before it is given back": (
        RIGHT[::-1].replace(FENCES[-1][::-1], "", 1)[::-1],
        ["compute executes fence.acq_rel.gpu before it gives back flags[0]"],
    ),
    "no fence after it is taken": (
        RIGHT.replace(FENCES[0], "", 1), ["compute executes fence.acq_rel.gpu after it takes flags[0]"]
    ),
}  # fmt: skip


def corrected(text: str, folder: Path) -> tuple[Verdict, list[str]]:
    given = tuple(Parameter(name, Pointer()) for name in ("flags", "x", "y"))
    launch = Launch("lock_0", (4, 1, 1), (64, 1, 1), parameters=given)
    found = check(find(written(folder / "lock.ptx", PTX[: PTX.index("\t// .globl")] + text + "\n", launch)), {})
    said = [each.said.partition(" (")[0] for shown in found.refutations for each in shown.corrections]
    return found.verdict, said


@pytest.mark.sampled(0, 1, 3)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_meant_is_offered(name: str, tmp_path: Path) -> None:
    text, said = WRONG[name]
    assert text != RIGHT
    assert corrected(text, tmp_path) == (Verdict.REFUTED, said)


def test_the_right_one_is_proved(tmp_path: Path) -> None:
    assert corrected(RIGHT, tmp_path) == (Verdict.PROVED, [])
