"""``pipesim diff`` of a kernel that was made wrong on purpose: the fault is named, and a hang is opened up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.conform.diagnose.edits import Edit, EditKind, apply
from pipesim.model.barrier import BarrierWord
from pipesim.model.ending import Ending
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import write_trace
from pipesim.trace.schema import CtaInfo, Trace
from tests.support.barrier_words import encode_word
from tests.support.fixture_types import Call

STATUS = {"finished": "finished", "deadlock": "deadline", "fault": "trap"}


@pytest.fixture
def faulty(tmp_path: Path) -> Callable[..., Path]:
    """A trace, as if from hardware, of the usual kernel with one mistake; ``edit`` None: none, whatever it says."""

    def faulty(edit: Edit | None, made: str, **params: int) -> Path:
        right = find("producer_consumer").build(params)
        run = simulate(apply(right, edit) if edit else right, load_profile("h100"))
        words = tuple(encode_word(BarrierWord(b.expected, b.pending, b.tx, b.done & 1)) for b in run.state.barriers)
        status = STATUS[run.trace.meta.status]
        header = CtaInfo(0, 0, barrier_words=() if status == "trap" else words)
        meta = replace(run.trace.meta, source="hardware", status=Ending(status), fault=made, ctas=(header,), extra={})
        path = tmp_path / "faulty.parquet"
        write_trace(Trace(meta, run.trace.events), path, force=True)
        return path

    return faulty


@pytest.mark.slow
def test_a_hang_is_named_and_opened_up(call: Call, faulty: Callable[..., Path]) -> None:
    answer = call("diff", faulty(Edit(EditKind.MISSING_ARRIVE, 1, 7), "missing_arrive@7"))
    assert (answer.code, answer.err) == (0, "")  # the model follows the run, and the fault that was made is named
    flat = " ".join(answer.out.split())
    for words in (
        "one edit makes the whole trace conform: consumer/0 does not arrive on empty[3] for tile 7",
        "missing_arrive@7 was injected into the kernel: it is the edit found",
        "it hung · in the model a kernel with this edit hangs",
        "autopsy of CTA 0 · timed out",
        "the barrier words read afterwards agree",
        "producer waits for phase 1 of empty[3] (parity 1, now in phase 1): it has 1 of 2 arrivals",
    ):
        assert words in flat
    assert max(map(len, answer.out.splitlines())) <= 80
    verdict = (
        "the kernel has an injected fault, which is named: consumer/0 does not arrive on empty[3] for tile 7 "
        "(NVIDIA H100 80GB HBM3)"
    )
    assert flat.endswith(verdict)
