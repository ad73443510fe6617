"""``pipesim check NEW --against OLD``: findings that are new, gone or unchanged, and what is synchronised otherwise."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import pipesim
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch
from tests.support.fixture_types import Call
from tests.support.mistakes import BROKEN_FILE
from tests.support.small_ptx import SET_UP, text_of

#: One warp allocates tensor memory, another writes and reads it, and tells the first by a barrier when it has.
ALLOCATES = """ setp.ne.u32 %p4, %r1, 0;
 @%p4 bra epilogue;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 64;
 bar.sync 1, 64;
 ld.shared.u32 %r9, [tile];
wait:
 mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r3+8], 0;
 @!%p5 bra wait;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 64;
 bra rest;
epilogue:
 bar.sync 1, 64;
 ld.shared.u32 %r9, [tile];
 mov.u32 %r11, 0;
 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r11};
 tcgen05.wait::st.sync.aligned;
 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r9];
 tcgen05.wait::ld.sync.aligned;
 setp.ne.u32 %p6, %r2, 0;
 @%p6 bra rest;
 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
rest:
"""
DEALLOC = " tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 64;\n"
ARRIVE = " mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"
FREED_EARLY = ALLOCATES.replace(DEALLOC, "").replace("wait:\n", f"{DEALLOC}wait:\n")
MOVED = FREED_EARLY.replace(" setp.ne", "\n" * 40 + " setp.ne", 1).replace("%r10", "%r21").replace("%p6", "%p7")
WITHOUT_SYNC = ALLOCATES.replace(" tcgen05.wait::ld", " fence.proxy.async;\n tcgen05.wait::ld")


def kernel(folder: Path, name: str, body: str) -> str:
    """A kernel's PTX and its launch file."""
    text = text_of(SET_UP.format(first=1, count=1) + body, target="sm_100a")
    (folder / f"{name}.ptx").write_text(text, encoding="utf-8")
    launch = launch_json(Launch("kernel", (1, 1, 1), (64, 1, 1), (1, 1, 1)))
    (folder / f"{name}.json").write_text(launch, encoding="utf-8")
    return f"{name}.ptx"


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kernel(tmp_path, "old", ALLOCATES)
    kernel(tmp_path, "new", FREED_EARLY)
    kernel(tmp_path, "moved", MOVED)
    kernel(tmp_path, "fenced", WITHOUT_SYNC)
    kernel(tmp_path, "hangs", ALLOCATES.replace(ARRIVE, ""))


EARLY = ["tensor_allocation", "tensor_allocation", "race"]
LINE = 1 + text_of(SET_UP.format(first=1, count=1) + FREED_EARLY).split("\n").index(DEALLOC.rstrip())
AT_ARRIVE = f"was at old.ptx:{LINE + 15}"
ORDER = f"compute: another sequence, MMA to tensor memory where wait was (new.ptx:{LINE})"


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize(
    ("new", "old", "code", "kinds", "counts", "changes"),
    [
        ("new", "old", 1, EARLY, (3, 0, 0), [ORDER]),
        ("old", "new", 0, [], (0, 3, 0), 1),
        ("moved", "new", 0, [], (0, 0, 3), []),
        ("old", "old", 0, [], (0, 0, 0), []),
        ("hangs", "old", 1, ["deadlock"], (1, 0, 0), [f"compute_2: arrive: gone, was executed once ({AT_ARRIVE})"]),
        ("old", "hangs", 0, [], (0, 1, 0), 1),
        ("fenced", "old", 0, [], (0, 0, 0), [f"compute_2: fence proxy.async: new once (fenced.ptx:{LINE + 12})"]),
    ],
)
def test_two_versions_of_a_kernel(
    call: Call, new: str, old: str, code: int, kinds: list[str], counts: tuple[int, int, int], changes: list[str] | int
) -> None:
    found = call("check", f"{new}.ptx", "--against", f"{old}.ptx", "--quick", "--json")
    report = found.json["report"]
    assert found.code == found.json["exit_code"] == code
    assert [each["kind"] for each in found.json["findings"]] == kinds
    assert tuple(len(report[name]) for name in ("appeared", "gone", "unchanged")) == counts
    sentences = [
        re.sub(r"(wait|arrive)(?: on)? \S+\](:| was)", r"\1\2", each["said"])
        for each in report["synchronisation"]["changes"]
    ]
    assert (len(sentences) if isinstance(changes, int) else sentences) == changes


@pytest.mark.usefixtures("versions")
def test_the_report_shows_what_is_new_and_python_says_the_same(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    told = call("check", "new.ptx", "--against", "old.ptx", "--quick")
    new, old = pipesim.check("new.ptx", quick=True), pipesim.check("old.ptx", quick=True)
    compared = new.against(old)
    assert str(compared) == told.out.rstrip("\n")
    assert compared.to_json() == call("check", "new.ptx", "--against", "old.ptx", "--quick", "--json").out.rstrip("\n")
    assert told.verdict.startswith("✗ 3 new findings, 0 gone, 0 unchanged: was proved, is refuted; 1 difference in")
    assert (compared.ok, [each.kind for each in compared.findings], compared.gone) == (False, EARLY, ())
    assert [each.kind for each in old.against(new).gone] == EARLY
    assert [each.kind for each in new.against(new).unchanged] == EARLY
    assert len(repr(compared)) <= 100


@pytest.mark.slow
def test_described_protocols_in_two_files(call: Call, user: Callable[[str], None]) -> None:
    user(BROKEN_FILE)
    size = ("-p", "tiles=3")
    wrong, right = "mine.py:consumer_never_arrives", "mine.py:right_ring"
    new = call("check", wrong, "--against", right, *size, "--quick")
    assert (new.code, "✗ deadlock" in new.out) == (1, True)
    assert "consumer: arrive on empty[0..1]: gone, was executed 3 times, 1 in each of 3 iterations" in " ".join(
        new.out.split()
    )
    assert call("check", right, "--against", wrong, *size, "--quick").code == 0
    limit = ("-p", "stages=3", "--max-states", "5", "--quick")
    twice = "mine.py:two_of_three"
    unknown = call("check", twice, "--against", twice, *size, *limit)
    assert (unknown.code, "more may be wrong in what is unknown" in " ".join(unknown.out.split())) == (3, True)
