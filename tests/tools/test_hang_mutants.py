"""Which mutants of a kernel a flag can end, and what a launch that was ended so would leave."""

from dataclasses import replace
from pathlib import Path

import pytest

from hwkernels.rewriter import Encoding, decode_records
from pipesim.answers.compare import compare_kernel
from pipesim.conform.agreement import Agreement
from pipesim.model.ending import Ending
from pipesim.ptx.launch.file import launch_json
from pipesim.trace.schema import Device
from tests.support.recorded_hang import hung
from tests.support.rewritten_ring import LAUNCH, RELEASE, rewritten, ring, run
from tools import hang_mutants as tool

DEVICE = Device("machine", sm_khz=2_000_000)
BRANCH, THIRD = " @%p1 bra consumer;\n", " setp.eq.u32 %p15, %r1, 2;\n @%p15 bra end;\n"
MEETS = "end:\n bar.sync 0;\n"


def test_warps_that_wait_at_mbarriers_can_be_ended_and_those_in_a_barrier_cannot() -> None:
    text = ring()
    found = {kind: said for _, kind, _, said in tool.hanging(text, "ring.ptx", LAUNCH)}
    assert found == {"arrive dropped": {"WAIT": 2}, "bytes + 128": {"WAIT": 2}}
    assert all(map(tool.ends_by_flag, found.values()))
    parts = text.split(BRANCH)
    meeting = BRANCH.join((parts[0], THIRD + parts[1])).replace("end:\n", MEETS)
    found = {kind: said for _, kind, _, said in tool.hanging(meeting, "ring.ptx", replace(LAUNCH, block=(96, 1, 1)))}
    assert found == {"arrive dropped": {"WAIT": 2, "BAR_SYNC": 1}, "bytes + 128": {"WAIT": 2, "BAR_SYNC": 1}}
    assert not any(map(tool.ends_by_flag, found.values()))


def test_a_kernel_that_ends_is_none_and_one_that_cannot_be_read_neither() -> None:
    assert not tool.ends_by_flag(tool.judged(ring(), "ring.ptx", LAUNCH))
    assert tool.judged(ring().replace("bra w1;", "bra nowhere;"), "ring.ptx", LAUNCH) == {"unread": 1}


def test_it_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ring.ptx").write_text(ring())
    (tmp_path / "ring.json").write_text(launch_json(LAUNCH))
    monkeypatch.setattr("sys.argv", ["hang_mutants.py", str(tmp_path / "out"), str(tmp_path / "ring.ptx")])
    assert tool.main() == 0
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    line = 1 + ring().split("\n").index(" mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;")
    assert made == [f"hang_{tmp_path.name}_ring_line{line}{end}" for end in (".json", ".ptx")]
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith("*")]


def test_what_a_schedule_leaves_is_what_a_machine_leaves() -> None:
    kernel = rewritten(ring(release=""), Encoding.POSITIONAL, stops=True)
    traces = [
        decode_records(kernel, bytes(hung(kernel)), DEVICE),
        decode_records(kernel, run(kernel, stop=True)[0], DEVICE),
    ]
    for trace in traces:
        assert trace.meta.status is Ending.DEADLINE
        assert compare_kernel(kernel.extraction, trace, "ring").comparison.agreement is Agreement.HANGS_TOO
    assert traces[0].events.site.tolist() == traces[1].events.site.tolist()
    with pytest.raises(AssertionError):
        hung(rewritten(ring(release=RELEASE), Encoding.POSITIONAL, stops=True))
