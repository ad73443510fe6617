"""Slips at single instructions of a kernel's PTX: the line as it was is among those that are tried before all else."""

from pathlib import Path

import pytest

from pipesim.answers.kernel.slips import LIKELY, Slips
from pipesim.model.coverage import LENIENT
from pipesim.prove.check import check
from pipesim.ptx.kernel import EditableKernel

KERNELS = Path(__file__).resolve().parents[1] / "ptx" / "kernels"
#: The kernel, the line as it is, and with a slip.
SLIPS = {
    "parity of the first lap": ("scale_ws_s3-sm_90a", "mov.b32 \t%r180, 0;", "mov.b32 \t%r180, 1;"),
    "groups under way": ("scale_pipelined_s3-sm_90a", "wait_group.read \t1;", "wait_group.read \t2;"),
    "warps of a role": ("scale_ws_s3-sm_90a", "setp.lt.u32 \t%p1, %r3, 4;", "setp.lt.u32 \t%p1, %r3, 5;"),
    "length of a ring": ("gemm_tma_ws-sm_100a", "setp.eq.b32 \t%p9, %r34, 3;", "setp.eq.b32 \t%p9, %r34, 4;"),
    "place of a tile": ("gemm_wgmma_ws-sm_90a", "add.s32 \t%r30, %r39, 65536;", "add.s32 \t%r30, %r39, 98304;"),
}


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("name", SLIPS)
def test_the_line_as_it_was_is_tried_early(name: str) -> None:
    kernel, right, wrong = SLIPS[name]
    path = KERNELS / f"{kernel}.ptx"
    text = path.read_text()
    editable = EditableKernel(path, None, (), text.replace(right, wrong))
    reading, lines, was = editable.read(), editable.text.split("\n"), text.split("\n")
    changed = {n + 1: line for n, line in enumerate(was) if line != lines[n]}
    refuted = check(reading.program.with_strictness(LENIENT), max_states=1).refutations[0]
    ranked = Slips(editable.prepared(), reading, refuted, lines).ranked()
    assert any(dict(slip.lines) == changed for slip in ranked if slip.cost <= LIKELY)
    assert all(lines[number - 1] != new for slip in ranked for number, new in slip.lines)
