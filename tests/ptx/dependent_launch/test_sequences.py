"""Launches one after the other: which bytes two of them share, and whether a wait, a stream or an event orders it."""

import json
from pathlib import Path
from typing import Any

import pytest

from hwkernels.device.compile import compile_ptx
from pipesim.answers.launch_sequence.check import check_sequence
from pipesim.answers.views.conclusion import Basis, Conclusion
from pipesim.answers.views.sequence import Promise, SequenceReport
from pipesim.errors import LaunchFileError
from tests.cli.conftest import Call, call  # noqa: F401  # a fixture
from tests.support.documents import faults
from tests.support.paths import ROOT

pytest.importorskip("cuda.bindings.nvrtc")
SOURCE = Path(__file__).parent / "kernels.cu"
POINTERS = {"primary": 1, "without_wait": 2, "with_wait": 2, "early_exit": 2}
RECORD, WAIT, HOST = {"record": "e", "stream": "s"}, {"wait": "e", "stream": "t"}, {"synchronize": "s"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The PTX of the right kernels and of the wrong ones, and a launch file of each kernel."""
    made = tmp_path_factory.mktemp("sequence")
    for name, wrong in (("right", 0), ("wrong", 1)):
        (made / f"{name}.ptx").write_text(compile_ptx(SOURCE, {"WRONG": wrong}), "utf-8")
    head = {"format": "pipesim-launch", "version": 1, "grid": [4, 1, 1], "block": [64, 1, 1]}
    for name, pointers in POINTERS.items():
        given: list[dict[str, Any]] = [{"kind": "pointer"}] * pointers
        given += [{"kind": "value", "type": "s32", "value": 0}] if name == "early_exit" else []
        (made / f"{name}.json").write_text(json.dumps({**head, "entry": name, "parameters": given}), "utf-8")
    return made


def launch(kernel: str, *memory: str, stream: str = "s", after: bool = True, ptx: str = "right") -> dict[str, Any]:
    """A launch; ``after``: it may begin before the kernel before it has completed."""
    buffers = {str(8 * n): where for n, where in enumerate(memory)}
    return {
        "ptx": f"{ptx}.ptx", "launch": f"{kernel}.json", "stream": stream, "programmatic": after, "buffers": buffers
    }  # fmt: skip


def asked(folder: Path, *steps: dict[str, Any]) -> SequenceReport:
    file = folder / "launches.json"
    file.write_text(json.dumps({"format": "pipesim-launches", "version": 1, "sequence": steps}), "utf-8")
    return check_sequence(file)


def line(kernel: str) -> str:
    text = SOURCE.read_text("utf-8")
    return f"kernels.cu:{text[: text.index('// wrong', text.index(f' {kernel}('))].count(chr(10)) + 1}"


FIRST, SECOND = launch("primary", "A", after=False), launch("with_wait", "A", "B")
LATE = launch("primary", "A", after=False, ptx="wrong")
EARLY_EXIT = launch("early_exit", "C", "D")
ELSEWHERE = launch("with_wait", "A", "B", stream="t", after=False)
SEQUENCES = {
    "a wait": ([FIRST, SECOND], Promise.PROMISED, ""),
    "a wait after a late store": ([LATE, SECOND], Promise.PROMISED, ""),
    "no overlap of launches": ([LATE, launch("without_wait", "A", "B", after=False)], Promise.PROMISED, ""),
    "no wait": ([LATE, launch("without_wait", "A", "B")], Promise.NONE, "may come after launch_dependents"),
    "a trigger alone": ([FIRST, launch("without_wait", "A", "B")], Promise.SEEN, "launch_dependents alone orders no"),
    "a chain": ([FIRST, EARLY_EXIT, SECOND], Promise.PROMISED, ""),
    "a chain without a wait": (
        [FIRST, {**EARLY_EXIT, "ptx": "wrong.ptx"}, SECOND], Promise.SEEN, "2 early_exit, which does not wait for 1"
    ),
    "two streams": ([FIRST, ELSEWHERE], Promise.NONE, "no event and no synchronisation"),
    "an event": ([FIRST, RECORD, WAIT, ELSEWHERE], Promise.PROMISED, ""),
    "an event too early": ([RECORD, FIRST, WAIT, ELSEWHERE], Promise.NONE, "no event and no synchronisation"),
    "the host": ([FIRST, HOST, ELSEWHERE], Promise.PROMISED, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_what_orders_two_launches_that_use_the_same_bytes(folder: Path, name: str) -> None:
    steps, promise, missing = SEQUENCES[name]
    report = asked(folder, *steps)
    (found,) = (each for pair in report.pairs for each in pair.shared)
    assert (found.allocation, found.first, found.end, found.promise) == ("A", 0, 1024, promise)
    second = "without_wait" if "without_wait" in steps[-1]["launch"] else "with_wait"
    assert (found.earlier_line, found.later_line) == (line("primary"), line(second))
    assert missing in found.missing
    assert bool(missing) == bool(found.missing)
    wrong = bool(missing) and found.basis is not Basis.LETTER
    assert report.conclusion is (Conclusion.WRONG if wrong else Conclusion.AGREES)


def test_offsets_decide_which_bytes_are_shared(folder: Path) -> None:
    apart, touching = (asked(folder, LATE, launch("without_wait", f"A+{at}", "B")) for at in (1024, 1020))
    assert apart.pairs == ()
    assert [(each.first, each.end) for each in touching.findings] == [(1020, 1024)]


def test_a_wait_is_superfluous_if_all_is_ordered_without_it(folder: Path) -> None:
    assert asked(folder, FIRST, launch("with_wait", "C", "B")).superfluous
    assert asked(folder, FIRST, {**SECOND, "programmatic": False}).superfluous
    assert not asked(folder, FIRST, SECOND).superfluous
    assert not asked(folder, FIRST, EARLY_EXIT, SECOND).superfluous  # the last wait is for the one between


def test_memory_that_the_file_does_not_place_is_not_known(folder: Path) -> None:
    report = asked(folder, FIRST, launch("with_wait", "A"))
    assert (report.conclusion, len(report.unread)) == (Conclusion.UNKNOWN, 1)
    with pytest.raises(LaunchFileError, match="no parameter 64"):
        asked(folder, {**FIRST, "buffers": {"64": "A"}})


@pytest.mark.parametrize(("second", "wrong"), [("A", False), ("A+1024", False), ("A+4", True)])
def test_two_parameters_to_one_buffer_are_judged_with_its_bytes(folder: Path, second: str, *, wrong: bool) -> None:
    report = asked(folder, launch("with_wait", "A", second))
    assert [each.basis for each in report.findings] == [Basis.CERTAIN] * wrong
    assert report.conclusion is (Conclusion.WRONG if wrong else Conclusion.AGREES)
    assert all(
        "CTA 0 and CTA 1 of this launch both access bytes 256 to 259" in each.missing for each in report.findings
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "counter_barrier_0",
            "2 counter_barrier_0: where flags[0] is 2 at its start, as 1 leaves it, 2 CTAs have a race",
        ),
        ("generation_barrier_0", ""),  # which counts from any number
    ],
)
def test_flags_that_a_launch_leaves_are_those_with_which_the_next_one_begins(
    folder: Path, name: str, said: str
) -> None:
    head = {"format": "pipesim-launch", "version": 1, "grid": [2, 1, 1], "block": [64, 1, 1], "entry": name}
    given = [{"kind": "pointer", "name": each} for each in ("flags", "x", "y")]
    (folder / f"{name}.json").write_text(json.dumps({**head, "parameters": given}), "utf-8")
    step = {**launch(name, "F", "X", "Y", after=False), "ptx": str(ROOT / "tests/ptx/flags/flags.ptx")}
    report = asked(folder, step, step)
    assert (report.conclusion is Conclusion.UNKNOWN, " ".join(report.unread).partition(" at flags")[0]) == (
        bool(said),
        said,
    )


def test_the_command_prints_a_block_for_each_pair(folder: Path, call: Call) -> None:  # noqa: F811
    asked(folder, LATE, launch("without_wait", "A", "B"))
    answer = call("check", "--sequence", str(folder / "launches.json"))
    assert answer.code == 1
    assert "1 primary → 2 without_wait" in answer.out
    assert "✗ refuted: 1 pair of accesses is not ordered" in answer.out
    document = call("check", "--sequence", str(folder / "launches.json"), "--json").json
    assert (document["exit_code"], faults("check-sequence", document)) == (1, [])
