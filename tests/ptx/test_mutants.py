"""Mutants of a kernel's PTX: each is refuted at the right line, or does what the kernel does, which is said."""

from pathlib import Path

import pytest

from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import FaultKind
from pipesim.prove.assumed import assumed_by
from pipesim.prove.counterexample.confirm import shown_by_code
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch
from tests.support.lanes import slow_but
from tests.support.paths import ROOT
from tools.corpus.mutations import Mutant, mutants
from tools.ptx_mutants import equivalence, executing, verdict_on

KERNEL = ROOT / "tests" / "ptx" / "kernels" / "scale_pipelined_s3-sm_90a.ptx"
TEXT = KERNEL.read_text(encoding="utf-8")
#: Meetings of the CTA that another one right before or after makes redundant, and the last bulk stores' wait.
REDUNDANT = {("barrier dropped", line) for line in (88, 102, 108, 144, 170, 285)} | {("wait_group dropped", 284)}
EVERY = list(mutants(TEXT))
#: One of each kind that is not redundant; the fast lane tries three of them.
FAST = {each.kind: each for each in reversed(EVERY) if (each.kind, each.line) not in REDUNDANT}.values()


def launch(path: Path = KERNEL) -> Launch:
    return read_launch(path.with_suffix(".json").read_text(encoding="utf-8"), path.name)


def said_of(mutant: Mutant) -> tuple[str, bool]:
    """The verdict, and whether its counterexample names the changed line or a warp that runs it."""
    found = verdict_on(mutant.text, KERNEL.name, launch(), 300)
    return found.word, not executing(TEXT, KERNEL.name, launch())[mutant.line].isdisjoint(found.named)


@pytest.mark.sampled(1, 4)
@pytest.mark.parametrize("mutant", slow_but([*FAST][:3], FAST), ids=lambda each: each.kind)
def test_one_mutant_of_each_kind_is_refuted_with_the_right_line(mutant: Mutant) -> None:
    assert said_of(mutant) == ("refuted", True)


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_every_mutant_is_refuted_or_equivalent(every: int) -> None:
    """Every third, or all."""
    chosen = EVERY[::every]
    assert len(EVERY) > 25
    original = verdict_on(TEXT, KERNEL.name, launch(), 300).program
    assert original is not None
    proved = set()
    for mutant in chosen:
        found = verdict_on(mutant.text, KERNEL.name, launch(), 300)
        assert found.word in ("refuted", "proved"), mutant.kind
        if found.word == "proved":
            proved.add((mutant.kind, mutant.line))
            assert found.program is not None
            assert equivalence(original, found.program, TEXT.split("\n")[mutant.line - 1])
    assert proved == REDUNDANT & {(each.kind, each.line) for each in chosen}
    assert 0 < len(proved) < len(chosen)


@pytest.mark.slow
def test_a_dropped_wait_for_the_last_bulk_stores_is_stated() -> None:
    (mutant,) = (each for each in EVERY if (each.kind, each.line) == ("wait_group dropped", 284))
    changed = verdict_on(mutant.text, KERNEL.name, launch(), 300).program
    original = verdict_on(TEXT, KERNEL.name, launch(), 300).program
    assert changed is not None
    assert original is not None
    assert Assumption.EXIT in {each.kind for each in assumed_by(changed)}
    assert Assumption.EXIT not in {each.kind for each in assumed_by(original)}
    strict = [each.with_strictness(Strictness({Assumption.EXIT})) for each in (changed, original)]
    kinds = [{shown.kind for shown in shown_by_code(each)} for each in strict]
    assert kinds == [{FaultKind.UNDER_WAY_AT_EXIT}, set()]
