"""``pipesim confirm``: a finding on a chip, here the machine of the tests; what is launched and refused."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hwkernels import rewriter
from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.cli.main import main
from pipesim.cli.programs import confirm as command
from pipesim.confirm import launches as launching
from pipesim.confirm.choose import Chooser, DelayPlan, Sign
from pipesim.confirm.confirm import ConfirmOptions, confirm
from pipesim.confirm.delays import Delay, DelayPlace
from pipesim.confirm.launches import Chip, ChipOutcome, GpuChip, LaunchSeen
from pipesim.confirm.memory import LaunchMemory
from pipesim.confirm.report import ChipDevice, ChipVerdict, FindingOnChip, Tries, WarpsAtWait
from pipesim.confirm.rewrite import DelayedPtx
from pipesim.errors import EvidenceError, HardwareError, ParameterError, PtxError, UsageError
from pipesim.model.finding import FaultKind
from pipesim.ptx.launch.file import launch_json
from pipesim.report.pages.programs.confirm import chip_sentence, delay_words
from pipesim.targets import Target, find
from tests.support.machine_chip import SAME, MachineChip, Scripted
from tests.support.planted_ptx import PLANTED

QUICK = ConfirmOptions(launches=2, deadline_ms=1, delay_us=200, buffer_bytes=4096)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted kernels with their launch files."""
    made = tmp_path_factory.mktemp("planted")
    for each in PLANTED:
        (made / f"{each.name}.ptx").write_text(each.text)
        (made / f"{each.name}.json").write_text(launch_json(each.launch))
    return made


@cache
def checked(path: Path) -> tuple[Target, CheckReport]:
    target = find(str(path))
    return target, check(target, {}, quick=True)


def shown(folder: Path, name: str, chip: Chip, options: ConfirmOptions | None = None) -> FindingOnChip:
    """The one finding of a planted kernel on a chip."""
    report = confirm(*checked(folder / f"{name}.ptx"), chip, options or ConfirmOptions())
    (found,) = report.findings_on_chip
    assert (report.conclusion.ok is False) == (found.verdict in (ChipVerdict.CONFIRMED, ChipVerdict.OTHERWISE))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lapped", "warp 2 waits at lapped.ptx:43 as predicted, 2 of 2; without the delay 0 of 2"),
        pytest.param(
            "lapped_later",
            "warp 2 waits at lapped_later.ptx:43 as predicted, 2 of 2; without the delay 0 of 2",
            marks=pytest.mark.long,
        ),
        ("early_release", "128 bytes of the results differ, the first at byte 4,224 of x, 2 of 2; without the delay 0"),
        ("beside_barrier", "warp 0 waits at beside_barrier.ptx:32, warp 2 waits at beside_barrier.ptx:42 and warp 1"),
        ("missing_arrive", "warp 0 waits at missing_arrive.ptx:32 and warp 1 waits at missing_arrive.ptx:45 as"),
    ],
)
def test_the_machine_follows_the_schedule(folder: Path, name: str, said: str) -> None:
    found = shown(folder, name, MachineChip(), QUICK)
    assert chip_sentence(found, "X").startswith(f"confirmed on X: {said}")


# what is launched

LAPPED = LaunchSeen(ChipOutcome.HANG, ((0, 2, 3),))
TRAPS = LaunchSeen(ChipOutcome.TRAP, error="CUDA_ERROR_LAUNCH_FAILED")
DIFFERS = LaunchSeen(ChipOutcome.DIFFERS, differ=3, first=(1, 0))


def test_each_try_has_its_control_and_the_shown_delay_is_repeated(folder: Path) -> None:
    found = shown(folder, "lapped", chip := Scripted(LAPPED))
    assert chip.ran == [[(0, 5)], [(0, 1), (1, 1)], [(0, 1), (1, 5)]]
    assert (found.verdict, found.tried.seen, found.control) == (ChipVerdict.CONFIRMED, 5, Tries(5))


def test_longer_delays_are_tried_where_the_usual_ones_show_nothing(folder: Path) -> None:
    found = shown(folder, "lapped", chip := Scripted(SAME), ConfirmOptions(launches=3))
    assert chip.ran[-1] == [(0, 1), (10, 3)]
    assert [each.ns for each in found.delays] == [10_000_000]
    assert chip_sentence(found, "X") == "not seen in 3 launches on X"


def test_turns_are_tried_where_no_delay_shows_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, late = Chooser.plan, (SAME, SAME, LAPPED, LAPPED)

    def turned(self: Chooser, schedule: str, kind: FaultKind | None) -> DelayPlan:
        made = plan(self, schedule, kind)
        (delay,) = made.delays
        other = replace(delay.place, agent="load", warp=0)
        return replace(made, turns=(replace(delay, ns=20_000_000, until=other),) * 2)

    class Turned(Scripted):
        def is_late(self, kernel: DelayedPtx) -> bool:
            return "nanosleep" in kernel.text or "pipesim_turns" in kernel.text

        def launch(self, *given: object) -> list[list[LaunchSeen]]:
            self.delayed = late[max(len(self.ran) - 1, 0) :][:1]
            return super().launch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Chooser, "plan", turned)
    found = shown(folder, "lapped", chip := Turned(SAME), ConfirmOptions(launches=3))
    assert (len(chip.ran), found.verdict, found.tried.seen) == (5, ChipVerdict.CONFIRMED, 3)
    said = "warp 2 (waiting) waits until warp 0 (load) has executed its 1st mbarrier.try_wait (PTX line 43), before its"
    assert delay_words(found.delays[0]).startswith(said)


def test_a_trap_is_followed_by_another_process(folder: Path) -> None:
    found = shown(folder, "lapped", chip := Scripted(TRAPS), ConfirmOptions(launches=3))
    assert chip.ran[-3:] == [[(0, 1), (1, 3)], [(0, 1), (1, 2)], [(0, 1), (1, 1)]]
    said = "X shows something else than predicted: the kernel traps (CUDA_ERROR_LAUNCH_FAILED), 3 of 3; "
    assert chip_sentence(found, "X") == f"{said}without the delay 0 of 3"


def test_a_process_that_was_ended_is_not_followed_by_another(folder: Path) -> None:
    found = shown(folder, "lapped", Scripted(LaunchSeen(ChipOutcome.STUCK)))
    assert (found.tried.launches, found.tried.stuck, found.verdict) == (1, True, ChipVerdict.OTHERWISE)


def test_a_hang_beside_a_barrier_of_some_threads_is_read_while_it_lasts(folder: Path) -> None:
    found = shown(folder, "lapped", chip := Scripted(replace(LAPPED, outcome=ChipOutcome.STUCK)))
    assert (found.verdict, found.tried.seen, found.tried.stuck) == (ChipVerdict.CONFIRMED, 5, False)
    assert chip.ran[-1] == [(0, 1), (1, 1)]  # each in a process of its own


@pytest.mark.parametrize(("waits", "verdict"), [((0, 2, 3), "confirmed"), ((0, 0, 2), "seen otherwise")])
def test_what_comes_after_a_race_shows_it(folder: Path, waits: tuple[int, int, int], verdict: str) -> None:
    target, report = checked(folder / "uncounted_reader.ptx")
    chip = Scripted(LaunchSeen(ChipOutcome.HANG, (waits,)))
    (found,) = confirm(target, report, chip, ConfirmOptions(finding=1)).findings_on_chip
    assert (found.sign, found.verdict.value) == (Sign.DATA, verdict)


def test_a_hang_elsewhere_is_not_what_was_predicted(folder: Path) -> None:
    found = shown(folder, "lapped", Scripted(LaunchSeen(ChipOutcome.HANG, ((0, 0, 2),))))
    assert (found.verdict, found.tried.otherwise) == (ChipVerdict.OTHERWISE, 5)
    assert found.tried.waits == (WarpsAtWait(0, (0,), "lapped.ptx:32", False),)


def test_results_that_vary_without_delays_show_no_race_and_leave_a_hang_to_be_tried(folder: Path) -> None:
    found = shown(folder, "early_release", Scripted(DIFFERS, control=DIFFERS))
    assert (found.verdict, found.delays) == (ChipVerdict.NOT_SEEN, ())
    assert "vary without delays" in found.reason
    assert shown(folder, "lapped", Scripted(LAPPED, control=DIFFERS)).verdict is ChipVerdict.CONFIRMED


def test_a_control_that_traps_with_numbers_is_launched_with_zeros(folder: Path) -> None:
    found = shown(folder, "lapped", chip := Scripted(TRAPS, control=TRAPS), ConfirmOptions(launches=3))
    assert found.zeros == ("x", "y")
    assert chip.ran[:6] == [[(0, 3)]] * 4 + [[(0, 2)], [(0, 1)]]  # in x, in y, in both


def test_a_finding_can_show_with_delays_where_the_kernel_fails_otherwise_without(folder: Path) -> None:
    found = shown(folder, "lapped", chip := Scripted(LAPPED, control=TRAPS), ConfirmOptions(launches=2))
    assert (found.verdict, found.tried.seen, found.control.otherwise) == (ChipVerdict.CONFIRMED, 2, 2)
    assert chip.ran[-2:] == [[(1, 1)], [(1, 2)]]  # not beside a launch that takes the process away
    assert chip_sentence(found, "X").endswith(
        "without the delay 0 of 2, and something else in 2: the kernel traps (CUDA_ERROR_LAUNCH_FAILED)"
    )


def test_memory_is_kept_busy_for_a_race_that_no_delay_brings_about(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Chooser.plan
    monkeypatch.setattr(Chooser, "plan", lambda *given: replace(plan(*given), modelled=False))

    class Busy(Scripted):
        far = DIFFERS

        def launch(self, *given: Any) -> list[list[LaunchSeen]]:
            self.delayed = (self.far,) if given[0][-1][0].busy else (SAME,)
            return super().launch(*given)

    found = shown(folder, "early_release", Busy(SAME))
    assert (found.verdict, found.tried.seen) == (ChipVerdict.CONFIRMED, 5)
    assert chip_sentence(found, "X").endswith(
        "without the delay 0 of 5; with buffers in memory of the host, beside large copies to and from it"
    )
    monkeypatch.setattr(Busy, "far", TRAPS)
    assert shown(folder, "early_release", Busy(SAME)).verdict is ChipVerdict.OTHERWISE
    none = shown(folder, "early_release", Scripted(SAME))
    assert (
        chip_sentence(none, "X")
        == "not seen in 15 launches on X: with buffers in memory of the host, beside large copies to and from it"
    )


def test_other_delays_are_tried_where_the_first_show_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Chooser.plan

    def none_is_needed(self: Chooser, schedule: str, kind: FaultKind | None) -> DelayPlan:
        made = plan(self, schedule, kind)
        return replace(made, delays=(), others=(made.delays,))

    monkeypatch.setattr(Chooser, "plan", none_is_needed)
    found = shown(folder, "lapped", Scripted(LAPPED))
    assert (found.verdict, len(found.delays)) == (ChipVerdict.CONFIRMED, 1)


def test_one_buffer_of_zeros_is_enough_where_its_words_are_addresses(folder: Path) -> None:
    class OneOf(Scripted):
        def launch(self, *given: Any) -> list[list[LaunchSeen]]:
            self.control = TRAPS if given[2].buffers[1].filled else SAME
            return super().launch(*given)

    assert shown(folder, "lapped", OneOf(SAME), ConfirmOptions(launches=1)).zeros == ("y",)


def test_delays_that_are_not_needed_are_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Chooser.plan

    def more(self: Chooser, schedule: str, kind: FaultKind | None) -> DelayPlan:
        made = plan(self, schedule, kind)
        return replace(made, delays=(*made.delays, replace(made.delays[0], ns=7_000)))

    monkeypatch.setattr(Chooser, "plan", more)
    assert len(shown(folder, "lapped", Scripted(LAPPED)).delays) == 1


# what is refused


def test_there_must_be_a_finding(folder: Path) -> None:
    with pytest.raises(EvidenceError, match="no finding to confirm"):
        confirm(*checked(folder / "right.ptx"), None, QUICK)
    with pytest.raises(ParameterError, match="check has 1"):
        confirm(*checked(folder / "lapped.ptx"), None, replace(QUICK, finding=2))


def test_a_described_protocol_is_no_kernel() -> None:
    target = find("producer_consumer")
    with pytest.raises(UsageError, match="described protocol"):
        confirm(target, check(target, {}, quick=True), None, QUICK)


def test_a_schedule_that_other_ctas_decide_is_not_tried(folder: Path) -> None:
    target, report = checked(folder / "lapped.ptx")
    (found,) = report.refutations
    others = replace(found, settings={"launch_control": 1}), replace(found, replay="7*900")
    first, second = confirm(target, replace(report, refutations=others), None, QUICK).findings_on_chip
    assert first.reason == "its schedule is one with launch_control=1, which this launch does not decide"
    assert second.reason.startswith("the schedule: ")
    assert {first.verdict, second.verdict} == {ChipVerdict.NOT_TRIED}


def test_without_a_gpu_the_command_says_so(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    def none(correction: str) -> None:
        raise HardwareError("no usable GPU was found", correction=correction)

    monkeypatch.setattr(command, "require_gpu_or", none)
    assert main(["confirm", str(folder / "lapped.ptx")]) == HardwareError.exit_code
    assert "--no-run" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["--launches 0", "--deadline-ms 5000", "--delay-us 0", "--finding -1"])
def test_numbers_out_of_range_are_refused(folder: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main(["confirm", str(folder / "lapped.ptx"), "--no-run", *line.split()]) == 2
    assert "out of range" in capsys.readouterr().err


# files, and the process that launches


@pytest.mark.slow
def test_what_is_saved_can_be_launched_by_others(folder: Path, tmp_path: Path, capsys) -> None:
    to = tmp_path / "late.ptx"
    assert main(["confirm", str(folder / "uncounted_reader.ptx"), "--no-run", "--save", str(to), "--json"]) == 3
    report = json.loads(capsys.readouterr().out)["report"]
    assert [len(each["files"]) for each in report["findings_on_chip"]] == [2, 2, 2]
    said = json.loads((tmp_path / "late-2.json").read_text())
    assert (said["format"], said["entry"], said["block"]) == ("pipesim-delays", "kernel", [96, 1, 1])
    assert [(each["warp"], each["nth"], each["ns"]) for each in said["delays"]] == [(2, 0, 1_000_000)]
    assert [each["nbytes"] for each in said["memory"]["buffers"]] == [1 << 24] * 2
    text = (tmp_path / "late-2.ptx").read_text()
    assert "nanosleep.u32 1000000" in text
    assert said["variables"]["waits"] in text


def test_one_schedule_can_be_confirmed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = checked(folder / "lapped.ptx")[1].refutations
    assert main(["confirm", str(folder / "lapped.ptx"), "--no-run", "--replay", shown.replay]) == 3
    assert "warp 2 (waiting) sleeps 1,000 µs before its 1st mbarrier.try_wait" in capsys.readouterr().out


def test_text_newer_than_the_assembler_is_given_as_its_version(tmp_path: Path) -> None:
    (ptxas := tmp_path / "ptxas").write_text(
        "#!/usr/bin/env python3\nimport sys\ntext = open(sys.argv[-3]).read()\nif '.version 9.0' not in text:\n"
        """    sys.exit("ptxas k.ptx, line 1; fatal   : Unsupported .version 9.5; \\n   current version is '9.0'")\n"""
        "open(sys.argv[-1], 'w').write(text)\n"
    )
    ptxas.chmod(0o755)
    text = "// by hand\n.version {}\n.target sm_90a\n"
    assert rewriter.assemble(text.format("9.5"), ptxas=ptxas).cubin.decode() == text.format("9.0")
    with pytest.raises(PtxError, match="refuses"):
        rewriter.assemble(text.replace(".version", "// .version").format("9.5"), ptxas=ptxas)


def test_text_for_older_gpus_is_given_to_the_driver() -> None:
    text = ".version 7.8\n.target sm_80\n"
    assert launching.machine_code(DelayedPtx(text, "k", (), 32, 32)) == text.encode() + b"\0"


def test_lines_of_the_process_become_launches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"name": "NVIDIA H200", "driver": "580"}, {"kernel": "0", "outcome": "same", "differ": 0, "first": [-1, -1]},
        {"kernel": "1", "outcome": "hang", "waits": [[0, 2, 3]]}, {"kernel": "1", "outcome": "trap", "error": "E"},
    ]  # fmt: skip

    def carried_out(made: Path, limit_s: float, module: str) -> str:
        assert json.loads((made / "request.json").read_text())["kernels"] == [["0", 1, False], ["1", 2, False]]
        (made / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kernel": "1", "out')
        return ""

    monkeypatch.setattr(launching, "_carry_out", carried_out)
    monkeypatch.setattr(launching, "machine_code", lambda kernel: b"")
    chip, kernel = GpuChip(), DelayedPtx("", "k", (), 32, 32)
    first, second = chip.launch([(kernel, 1), (kernel, 2)], PLANTED[0].launch, LaunchMemory([], [], []), 1)
    assert (chip.device, len(first)) == (ChipDevice("NVIDIA H200", "580"), 1)
    assert second == [LaunchSeen(ChipOutcome.HANG, ((0, 2, 3),)), LaunchSeen(ChipOutcome.TRAP, error="E")]
    monkeypatch.setattr(launching, "_carry_out", lambda made, limit_s, module: "it died")
    with pytest.raises(HardwareError, match="left nothing"):
        chip.launch([(kernel, 1)], PLANTED[0].launch, LaunchMemory([], [], []), 1)


# sentences


def test_every_outcome_has_a_sentence(folder: Path) -> None:
    finding = checked(folder / "lapped.ptx")[1].refutations[0].finding
    place = DelayPlace("load", 0, 0, -1, -1, 1, "", "", 0)
    two = (Delay(place, 1_000), Delay(place, 2_000))
    plain = FindingOnChip(1, finding, ChipVerdict.CONFIRMED, Sign.DATA, two, control=Tries(5))
    waits = (WarpsAtWait(0, (4, 5, 6, 7), "k.cu:3", True), WarpsAtWait(1, (0,), "k.cu:9", False))
    other = replace(plain, verdict=ChipVerdict.OTHERWISE, tried=Tries(5, 0, 2, waits=waits))
    for made, said in (
        (replace(plain, tried=Tries(5, 5, waits=waits)), "confirmed on X: warps 4 to 7 wait at k.cu:3 as predicted,"),
        (other, "warps 4 to 7 wait at k.cu:3 and warp 0 of CTA 1 waits at k.cu:9, 2 of 5"),
        (
            replace(plain, tried=Tries(5, 4, differ=1, first=("y", 96))),
            "1 byte of the results differ, the first at byte",
        ),
        (replace(plain, tried=Tries(1, 1, stuck=True)), "the kernel does not end"),
        (replace(plain, verdict=ChipVerdict.NOT_TRIED, reason="why"), "not tried: why"),
    ):
        assert said in chip_sentence(made, "X")
