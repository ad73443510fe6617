"""A project with a baseline and three waivers, in two versions: what fails, what is named, what is unused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.checking.counterexample import counterexample_of
from pipesim.answers.project_settings import Triage, TriagePolicy, settings_of
from pipesim.answers.views.check import Origin
from pipesim.answers.views.conclusion import Basis
from pipesim.errors import UsageError
from pipesim.findings.catalog import of_fault
from pipesim.findings.kind import Owner, ProtocolExample
from pipesim.findings.waivers import Identity, comments_at, identity_of
from pipesim.model.finding import FaultKind, FaultReport
from pipesim.prove.check import check as prove
from pipesim.ptx.extract import owner_of
from pipesim.ptx.text.instruction import Frame, Instruction, SourceLine
from pipesim.ptx.text.locations import is_library, with_own_lines
from pipesim.targets import find
from tests.support.fixture_types import Call
from tests.support.paths import ROOT
from tests.support.report_examples import checked_twin

PROJECT = ROOT / "tests" / "support" / "waived_project"
RINGS = "rings_protocol.py"
NEW = '''

def new() -> Protocol:
    """Written since the baseline: a count that is never reached."""

    def consume(w: Warp, tile: Slot, empty: SharedMemBarrier, i: int) -> None:
        w.read(tile, i)
        empty.arrive()

    return _ring("new", 3, consume)
'''

BESIDE = """from pipesim import Protocol, Warp

def beside(tiles: int = 3, count: int = 2) -> Protocol:
    p = Protocol("beside")
    log = p.smem("log", 1, 64)
    empty = p.mbarriers("empty", 1, count)

    @p.role("one")
    def one(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                w.write(log[0], i)
                empty[0].arrive()

    @p.role("other")
    def other(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                w.write(log[0], 100 + i)
                empty[0].wait(i & 1)

    return p
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project in the folder in which the commands run."""
    return Path(shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True))


def second_version(project: Path) -> None:
    """Everything 40 lines further down, and one more ring."""
    file = project / RINGS
    file.write_text("#\n" * 40 + file.read_text("utf-8") + NEW, "utf-8")


def prints(call: Call, *more: str) -> dict[str, tuple[str, bool]]:
    """The fingerprint of the finding of each function in SARIF, and whether it is waived."""
    (run,) = json.loads(call("check", "--format", "sarif", *more).out)["runs"]
    return {
        each["message"]["text"].split(":")[1]: (each["partialFingerprints"]["pipesim/v1"], "suppressions" in each)
        for each in run["results"]
    }


@pytest.mark.long
def test_a_project_whose_findings_are_all_known_passes(call: Call, project: Path) -> None:
    told = call("check")
    assert (told.code, told.verdict) == (0, "! 1 of 5 protocols proved, 4 more without a finding that fails")
    said = " ".join(told.out.split())
    only = "! refuted only by what does not fail the check: 1 finding"
    assert f"{only} waived (race at rings_protocol.py:23: the next version reads first); nothing else was" in said
    assert f"{only} waived (deadlock at rings_protocol.py:21: the second arrive goes with" in said
    assert "(deadlock at rings_protocol.py:21: baseline baseline.json)" in said
    assert f"{only} less sure than --fail-on possible (no-complete, letter); nothing else was" in said
    assert said.count("matches no finding") == 1
    assert "rings_protocol.py:40 ignore[race] matches no finding" in said
    assert project.is_dir()


@pytest.mark.slow
def test_a_second_version_fails_on_what_is_new(call: Call, project: Path) -> None:
    before = prints(call)
    assert [waived for _, waived in before.values()] == [True, True, True, False]
    second_version(project)
    after = prints(call)
    assert {name: after[name] for name in before} == before  # 40 lines further down
    assert set(after) - set(before) == {"new"}
    assert not after["new"][1]
    assert call("check", "--quick").code == 1
    only = call("check", f"{RINGS}:new", "--quick")
    assert "matches no finding" not in only.out  # the project's waivers are about the others
    assert call("check", "--quick", "--update-baseline").code == 0
    written = (project / "baseline.json").read_text("ascii")
    assert [each["function"] for each in json.loads(written)["findings"]] == ["in_baseline", "new", "by_the_letter"]
    assert call("check", f"{RINGS}:new", "--update-baseline", "--quick").code == 0
    assert (project / "baseline.json").read_text("ascii") == written  # of what was not checked nothing is lost
    assert call("check", "--quick").code == 0


@pytest.mark.usefixtures("project")
def test_a_baseline_says_what_is_no_longer_found(call: Call, project: Path) -> None:
    file = project / RINGS
    file.write_text(file.read_text("utf-8").replace('_ring("in_baseline", 2', '_ring("in_baseline", 1'), "utf-8")
    told = call("check", f"{RINGS}:in_baseline", "--quick")
    assert told.code == 0
    assert "baseline baseline.json: deadlock of load in in_baseline" in " ".join(told.out.split())


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_a_waiver_of_the_command_line_is_about_what_its_pattern_matches(call: Call) -> None:
    name, quick = f"{RINGS}:by_the_letter", "--quick"
    assert call("check", name, quick).code == 0
    assert call("check", name, quick, "--fail-on", "letter").code == 1
    for pattern in ("", ":empty", ":mma", ":by_*", f":{RINGS}"):
        assert call("check", name, quick, "--fail-on", "letter", "--ignore", f"no_complete{pattern}").code == 0
    assert "matches no finding" not in call("check", name, quick, "--ignore", "race").out  # not all was looked for
    other = call("check", name, "--fail-on", "letter", "--ignore", "no-complete:full")
    assert (other.code, "--ignore no-complete:full matches no finding" in other.out) == (1, True)
    assert call("check", name, "--ignore", "no-complet").error[-1].startswith("  try: did you mean no-complete")


@pytest.mark.slow
def test_a_waived_race_does_not_hide_a_hang_beside_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(BESIDE, "utf-8")
    asked = "check", "beside.py", "--ignore", "race:log", "-p", "tiles=1"
    assert call(*asked, "-p", "count=1").code == 0
    told = [call(*asked, *more, "--json") for more in ((), ("--quick",))]
    assert [each.code for each in told] == [1, 1]
    assert [[f["kind"] for f in each.json["findings"]] for each in told] == [["race", "deadlock"]] * 2


@pytest.mark.parametrize(
    ("waived", "kinds", "code"),
    [((), "race", 1), ((1, 2), "race", 0), ((1,), "race", 1), ((1,), "race,", 1), ((1, 2), "deadlock,", 1)],
)
def test_a_waived_race_hides_no_other_that_the_same_change_corrects(
    call: Call, tmp_path: Path, waived: tuple[int, ...], kinds: str, code: int
) -> None:
    text = BESIDE.replace("empty[0].wait(i & 1)", "w.work(1)").replace('"log", 1', '"log", 2')
    mine = [f"w.write(log[{n}], i)" + f"  # pipesim: ignore[{kinds}] x" * (n + 1 in waived) for n in range(2)]
    text = text.replace("w.write(log[0], i)", ("\n" + " " * 16).join(mine))
    text = text.replace("w.write(log[0], 100 + i)", "w.write(log[0], 100 + i); w.write(log[1], 100 + i)")
    (tmp_path / "both.py").write_text(text, "utf-8")
    for quick in ("--quick", "--json"):
        assert call("check", "both.py", quick, "-p", "tiles=1", "-p", "count=1").code == code


def test_a_race_that_is_found_behind_another_one_is_waived_once(call: Call, tmp_path: Path) -> None:
    text = BESIDE.replace("    empty =", '    more = p.smem("more", 1, 64)\n    empty =')
    text = text.replace("empty[0].wait", "empty[0].arrive(); empty[0].wait")
    for item in ("i", "100 + i"):
        text = text.replace(f"w.write(log[0], {item})", f"w.write(log[0], {item})\n{' ' * 16}w.write(more[0], {item})")
    (tmp_path / "two.py").write_text(text, "utf-8")
    assert len(call("check", "two.py", "--ignore", "race", "--json", "-p", "tiles=1").json["findings"]) == 2


def test_a_possible_finding_does_not_fail_where_only_certain_ones_do(call: Call, tmp_path: Path) -> None:
    shutil.copy(PROJECT / RINGS, tmp_path)
    name = f"{RINGS}:arrives_first"
    (tmp_path / RINGS).write_text((tmp_path / RINGS).read_text("utf-8").replace("# pipesim", "#"), "utf-8")
    assert call("check", name, "--quick").code == 1
    told = call("check", name, "--quick", "--fail-on", "certain", "--json")
    assert (told.code, told.json["report"]["refutations"][0]["basis"]) == (0, "possible")
    assert call("check", f"{RINGS}:in_baseline", "--quick", "--fail-on", "certain").code == 1


@pytest.mark.slow
def test_what_has_to_be_late_is_said() -> None:
    """A waiter that nobody waits for misses a phase only if it is held up for laps of the ring."""
    program = find(str(ROOT / "tests" / "ptx" / "kernels" / "scale_watched-sm_90a.ptx")).build()
    (refuted,) = prove(program).refutations
    shown = counterexample_of(program, refuted)
    assert shown.late is not None
    late = shown.late.agent, shown.late.laps, shown.late.transfer
    assert (shown.basis, *late) == (Basis.POSSIBLE, "waiting", 3, False)


def test_a_letter_fails_where_a_strict_rule_was_asked_for(call: Call, tmp_path: Path) -> None:
    example = of_fault(FaultKind.NO_COMPLETE).example
    assert isinstance(example, ProtocolExample)
    (tmp_path / "mine.py").write_text(example.text("no_complete"), "utf-8")
    assert call("check", "mine.py:no_complete").code == 0
    assert call("check", "mine.py:no_complete", "--strict-lanes").code == 1


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"target": []}, "[tool.pipesim] has no key 'target'"),
        ({"fail-on": "sure"}, "fail-on takes one of certain, possible, letter"),
        ({"ignore": [{"kind": "race"}]}, "ignore takes tables with texts"),
        ({"ignore": [{"kind": "rase", "reason": "x"}]}, "there is no finding 'rase'"),
        ({"launch": {"k.ptx": 1}}, "launch takes the name of a file for each kernel"),
        ({"launch": {"k.ptx": ["a.json", 1]}}, "or a list of names, not {'k.ptx': ['a.json', 1]}"),
        ({"launch": {"kernels/*.ptx": "{kernel}.json"}}, "no file matches the kernel kernels/*.ptx"),
        ({"launch": {"k.ptx": ["{kernel}*.json"]}}, "no file matches the launch k*.json of "),
        ({"targets": ["nothing/*.py"]}, "no file matches the target nothing/*.py"),
    ],
)
def test_settings_that_are_none(table: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pyproject") as raised:
        settings_of(table, "pyproject.toml", tmp_path)
    assert said in str(raised.value)


@pytest.mark.slow
def test_a_kernel_has_the_launches_that_the_project_names(call: Call, tmp_path: Path) -> None:
    """Each is checked; what is about one launch asks for one. A name precedes a pattern."""
    kernel = ROOT / "docs" / "examples" / "row_max.ptx"
    (tmp_path / "kernels").mkdir()
    for ptx, launches in {"k": ("k", "k-2"), "other": ("other",)}.items():
        shutil.copy(kernel, tmp_path / "kernels" / f"{ptx}.ptx")
        for each in launches:
            text = kernel.with_suffix(".json").read_text("utf-8")
            (tmp_path / f"{each}.json").write_text(text.replace("1280", "2560") if each == "k-2" else text, "utf-8")
    table = {"launch": {"kernels/*.ptx": ["{kernel}.json", "{kernel}-*.json"], "kernels/other.ptx": "k-2.json"}}
    found = settings_of(table, "", Path())
    assert found.launches_of("./kernels/k.ptx") == ("k.json", "k-2.json")
    assert found.launches_of(str(tmp_path / "kernels" / "other.ptx")) == ("k-2.json",)
    assert found.launches_of("kernels/none.ptx") == found.launches_of("kernels/k.py") == ()
    launch = 'launch = {"kernels/*.ptx" = ["{kernel}.json", "{kernel}-*.json"]}'
    (tmp_path / "pyproject.toml").write_text(f"[tool.pipesim]\n{launch}\n", "utf-8")
    both = call("check", "kernels/k.ptx", "--quick", "--json").json["protocols"]
    assert list(both) == ["kernels/k.ptx --launch k.json", "kernels/k.ptx --launch k-2.json"]
    few, many = (each["report"]["operations"] for each in both.values())
    assert few < many
    one = call("check", "kernels/k.ptx", "--quick", "--json", "--launch", "k.json").json
    assert one["report"]["operations"] == few
    assert "kernels/k.ptx has 2 launch files" in call("check", "kernels/k.ptx", "--redundant").err


@pytest.mark.parametrize("text", ["{", "[]", '{{"schema": {0}, "version": 2}}',
                                  '{{"schema": {0}, "version": 1, "findings": [{{"kind": 1}}]}}'])  # fmt: skip
def test_a_file_that_is_no_baseline(call: Call, project: Path, text: str) -> None:
    (project / "baseline.json").write_text(text.replace("{0}", '"pipesim-baseline"').replace("{{", "{"), "utf-8")
    told = call("check", f"{RINGS}:right", "--quick")
    assert (told.code, "baseline.json" in told.err) == (2, True)


@pytest.mark.slow
def test_a_comment_in_the_source_of_a_kernel(call: Call, tmp_path: Path) -> None:
    for suffix in ("cu", "ptx", "json"):
        shutil.copy(ROOT / "docs" / "examples" / f"row_max.{suffix}", tmp_path)
    (shown,) = call("check", "row_max.ptx", "--quick", "--json").json["report"]["refutations"]
    number = max(int(each["line"].partition(":")[2]) for each in shown["finding"]["blocked"] if each["missed"] < 0)
    lines = (tmp_path / "row_max.cu").read_text("utf-8").split("\n")
    for n in range(number):
        lines[n] += "  // pipesim: ignore[deadlock] known"
    (tmp_path / "row_max.cu").write_text("\n".join(lines), "utf-8")
    told = call("check", "row_max.ptx", "--quick")
    said = " ".join(told.out.split())
    assert (told.code, "the check: 1 finding waived (deadlock at row_max.cu:" in said) == (0, True)
    assert "nothing else was found in row_max; --quick looks for the first of each kind" in said


def test_comments_of_c_and_python_at_a_line_or_alone_above_it() -> None:
    text = {
        "k.cu:3": "// pipesim: ignore[stale_wait] a watchdog",
        "k.cu:4": "full.wait(phase);",
        "k.cu:5": "x = 1;  // pipesim: ignore[race]",
        "k.cu:6": "y = 2;",
    }
    found = comments_at(["k.cu:4", "k.cu:5", "k.cu:6"], lambda line: text.get(line, ""))
    assert [(each.kind, each.said, each.line, each.reason) for each in found] == [
        ("stale-wait", "k.cu:3", "k.cu:4", "a watchdog"),
        ("race", "k.cu:5", "k.cu:5", ""),
    ]


def test_an_identity_has_no_line_numbers_and_no_numbers_of_registers() -> None:
    def of(line: str, barrier: str, text: str) -> Identity:
        finding = FaultReport(FaultKind.STALE_WAIT, "", "mma/1", "wait", line)
        return identity_of(finding, "k", (barrier,), text)

    one = of("k.cu:10", "k.cu:38:5", "mbarrier.try_wait %p1,  [%rd7], %r2;")
    assert one == of("k.cu:50", "k.cu:78:9", "mbarrier.try_wait %p2, [%rd9], %r4;")
    assert one.fingerprint != of("k.cu:10", "k.cu:38:5", "mbarrier.test_wait %p1, [%rd7], %r2;").fingerprint
    assert (one.role, one.names) == ("mma", ("k.cu",))


@pytest.mark.parametrize(
    ("files", "owner", "call"),
    [
        (("/home/me/k.cu",), Owner.USER, ""),
        (("/home/me/k.cu", "/opt/x/site-packages/nvidia/cutlass/barrier.h"), Owner.USER, ""),
        (("/src/include/cutlass/device_kernel.h", "/home/me/mainloop.hpp"), Owner.USER, "device_kernel.h:1"),
        (("/usr/local/cuda-13.0/bin/../targets/x86_64-linux/include/cuda/barrier",), Owner.LIBRARY, ""),
        (("triton/language/standard.py",), Owner.LIBRARY, ""),
        ((), Owner.COMPILER, ""),
    ],
)
def test_whose_a_line_is(files: tuple[str, ...], owner: Owner, call: str) -> None:
    frames = tuple(Frame(file, n, "") for n, file in enumerate(files, start=1))
    source = SourceLine(*frames[0][:3], frames) if frames else None
    (own,) = with_own_lines([Instruction("mbarrier", (), (), None, 7, source, 0)])
    found = owner_of(own, has_lines=True)
    assert (found.owner, found.call) == (owner, call)
    assert [is_library(file) for file in ("cutlass_user/k.cu", "/home/me/cute.cu")] == [False, False]


@pytest.mark.parametrize(("kind", "waived"), [("deadlock", True), ("race", False)])
def test_a_comment_may_be_at_the_call_of_the_function_that_the_line_is_in(kind: str, waived: bool) -> None:
    report = checked_twin("empty_count_too_high")
    shown = replace(report.refutations[0], origin=Origin(Owner.USER, "ring.cuh:4"))
    text = {"ring.cuh:3": f"// pipesim: ignore[{kind}] known"}
    triage = Triage(TriagePolicy(), lambda line: f"the text of {line}", lambda line: text.get(line, ""))
    found = triage.of(replace(report, refutations=(shown,), left_out=()), (), last=True)
    assert (bool(found.waived), [each.said for each in found.unused]) == (waived, [] if waived else ["ring.cuh:3"])
    (identity,) = (each.identity for each in found.refutations)
    assert identity is not None
    assert identity.text == "the text of ring.cuh:4"  # as in baselines that were made before deeper lines were named
