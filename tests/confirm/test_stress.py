"""``pipesim stress``: delays by a table, seeded; what the machine of the tests shows of right and wrong kernels."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.cli.main import main
from pipesim.confirm import launches as launching
from pipesim.confirm.choose import Sign
from pipesim.confirm.confirm import ConfirmOptions
from pipesim.confirm.launches import Chip, ChipOutcome, GpuChip, LaunchSeen, ManySeen, machine_code
from pipesim.confirm.memory import LaunchMemory
from pipesim.confirm.plans import LateWay, PlanMaker
from pipesim.confirm.report import StressReport, Tries
from pipesim.confirm.rewrite import DelayedPtx
from pipesim.confirm.stress import stress
from pipesim.confirm.table import table_ptx
from pipesim.errors import HardwareError
from pipesim.ptx.extract import extract
from pipesim.ptx.kernel import EditableKernel, read_kernel
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from pipesim.report.pages.programs.stress import stress_lines, stress_sentence
from pipesim.targets import Target, target_of
from tests.support.machine_chip import SAME, MachineChip, Scripted
from tests.support.paths import ROOT
from tests.support.planted_ptx import PLANTED

QUICK = ConfirmOptions(launches=2, deadline_ms=20, buffer_bytes=4096)
BY_NAME = {each.name: each for each in PLANTED}
HANGS = LaunchSeen(ChipOutcome.HANG, ((0, 2, 3),))
DIFFERS = LaunchSeen(ChipOutcome.DIFFERS, differ=3, first=(1, 0))


@cache
def checked(name: str) -> tuple[Target, CheckReport]:
    planted = BY_NAME[name]
    read = extract(read_module(planted.text, f"{name}.ptx"), planted.launch)
    editable = EditableKernel(Path(f"{name}.ptx"), None, (), planted.text)
    target = replace(target_of(read.program), kernel=read, editable=editable)
    return target, check(target, {}, quick=True)


def stressed(name: str, chip: Chip | None, many: int = 40, seed: int = 0) -> StressReport:
    return stress(*checked(name), chip, QUICK, many=many, seed=seed)


def maker_of(name: str) -> PlanMaker:
    read = checked(name)[0].kernel
    assert read is not None
    return PlanMaker(read.kernel, read.program, read.streams, frozenset())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["right", *(pytest.param(each, marks=pytest.mark.long) for each in ("not_lapped", "proxy_fence"))]
)
def test_nothing_is_seen_of_a_right_kernel(name: str) -> None:
    found = stressed(name, MachineChip(), many=10)
    assert (found.launches, found.seen, found.varies, found.conclusion.ok) == (10, (), False, True)
    assert found.ways[LateWay.NONE] == 4
    assert found.ways[LateWay.LAP] == 2


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(("name", "sign"), [("lapped", Sign.HANG), ("early_release", Sign.DATA)])
def test_what_is_wrong_is_seen_and_can_be_repeated(name: str, sign: Sign) -> None:
    found = stressed(name, MachineChip(), seed=3)
    (seen,) = found.seen
    assert (seen.sign, seen.again.seen, seen.control.seen, found.conclusion.ok) == (sign, 2, 0, False)
    assert seen.delays


# the plans, and the table


def test_the_same_seed_makes_the_same_plans_and_every_way_is_gone() -> None:
    maker = maker_of("lapped")
    plans = [maker.plan(Random(f"7/{n}"), n) for n in range(200)]
    assert plans == [maker.plan(Random(f"7/{n}"), n) for n in range(200)]
    ways = Counter(each.way for each in plans)
    assert ways.keys() == set(LateWay) - {LateWay.APART}
    assert all(each.delays for each in plans if each.way is not LateWay.NONE)
    assert {delay.place.warp for each in plans for delay in each.delays} == {0, 1, 2}


def test_directed_delays_are_beside_what_the_verdict_assumes() -> None:
    read = checked("lapped")[0].kernel
    assert read is not None
    opcodes = {}
    for name, lines in (("init", {"lapped.ptx:18"}), ("none", set())):
        maker = PlanMaker(read.kernel, read.program, read.streams, frozenset(lines))
        opcodes[name] = [{path.places[n].opcode for n in path.aimed} for path in maker.paths.values()]
    assert opcodes["init"] == [{"fence.mbarrier_init"}, {"mbarrier.arrive"}, set()]
    assert opcodes["none"] == [{"mbarrier.arrive", "cp.async"}, {"mbarrier.arrive"}, set()]


def passed(row: Sequence[Sequence[int]], path: Sequence[int]) -> list[int]:
    """Where a warp sleeps that executes these statements, numbered as a table numbers them: the rewritten text."""
    rows = iter(row)
    number, left, _ = next(rows)
    slept = []
    if (number, left) == (1, 0):
        slept.append(-1)
        number, left, _ = next(rows)
    for n, each in enumerate(path):
        if number == each and left == 0:
            slept.append(2 * n)
            number, left, _ = next(rows)
        if number == each:
            left -= 1
        elif number == each + 1:
            if left == 0:
                slept.append(2 * n + 1)
                number, left, _ = next(rows)
            else:
                left -= 1
    return slept


def test_the_rows_of_a_table_say_where_a_warp_sleeps() -> None:
    maker, planted = maker_of("lapped"), BY_NAME["lapped"]
    read = checked("lapped")[0].kernel
    assert read is not None
    table = table_ptx(planted.text, read.kernel, maker.begins, 1_000)
    for n in range(300):
        delays = maker.plan(Random(n), n).delays
        made = table.table(maker.rows(delays)).reshape(table.rows, -1, 4)
        assert not made[-1].any()
        for (cta, warp), path in maker.paths.items():
            row = made[cta * table.warps + warp, :, :3].tolist()
            own = [each for each in delays if (each.place.cta, each.place.warp) == (cta, warp)]
            begins = [table.numbers[place.begin] for place in path.places[1::2]]
            assert passed(row, begins) == [path.places.index(each.place) - 1 for each in own]
            assert [ns for _, _, ns in row if ns] == [each.ns for each in own]


def test_a_kernel_with_a_table_reads_as_the_same_program() -> None:
    planted, maker = BY_NAME["lapped"], maker_of("lapped")
    read = checked("lapped")[0].kernel
    assert read is not None
    table = table_ptx(planted.text, read.kernel, maker.begins, 1_000)
    assert table.kernel.text.count("nanosleep") == 1 + 2 * len(maker.begins)
    assert len(table.kernel.table) == 0
    assert table.with_table(table.table({})).table == bytes(table.nbytes)
    assert "pipesim_delays[" in table.text_with(table.table({}))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas assembles")
@pytest.mark.parametrize("name", ["gemm_wgmma_ws", pytest.param("scale_ws_s3", marks=pytest.mark.long)])
def test_ptxas_takes_published_kernels_with_a_table(name: str) -> None:
    path = ROOT / f"tests/ptx/kernels/{name}-sm_90a.ptx"
    read = read_kernel(path)
    maker = PlanMaker(read.kernel, read.program, read.streams, frozenset())
    table = table_ptx(path.read_text(), read.kernel, maker.begins, 1_000_000)
    filled = table.text_with(table.table(maker.rows(maker.plan(Random(5), 6).delays)))
    assert machine_code(table.kernel)
    assert machine_code(replace(table.kernel, text=filled))


# what is launched again


class Many(Scripted):
    """``answers``: of the requests of many launches, in turn. ``asked``: how many launches they were, and batches."""

    def __init__(self, *delayed: LaunchSeen, answers: Sequence[ManySeen], control: LaunchSeen = SAME) -> None:
        super().__init__(*delayed, control=control)
        self.answers, self.asked = list(answers), list[tuple[int, int]]()

    def is_late(self, kernel: DelayedPtx) -> bool:
        return any(kernel.table)

    def many(
        self, kernel: DelayedPtx, tables: bytes, launch: Launch, memory: LaunchMemory, limit_s: float, *, batch: int
    ) -> ManySeen:
        self.asked.append((len(tables) // len(kernel.table), batch))
        return self.answers.pop(0)


def test_a_launch_that_traps_is_looked_for_one_by_one() -> None:
    trap = LaunchSeen(ChipOutcome.TRAP, error="CUDA_ERROR_LAUNCH_FAILED")
    chip = Many(trap, answers=[ManySeen(17, ended="trap"), ManySeen(6, ended="trap")])
    found = stressed("right", chip)
    (seen,) = found.seen
    assert chip.asked == [(41, 256), (25, 1)]
    assert (seen.number, seen.sign, seen.again.seen, found.launches) == (21, Sign.TRAP, 2, 22)
    assert stress_sentence(found) == (
        "seen in 22 launches on NVIDIA H200: launch 21 traps (with its delays again 2 of 2, the kernel traps "
        "(CUDA_ERROR_LAUNCH_FAILED); without 0 of 2)"
    )


def test_results_that_vary_without_delays_are_not_compared() -> None:
    chip = Many(DIFFERS, answers=[ManySeen(41, ((30, False),)), ManySeen(41, varies=True)], control=DIFFERS)
    found = stressed("right", chip, many=80)
    assert (found.varies, found.seen, found.launches) == (True, (), 80)


def test_one_delay_that_shows_it_alone_is_reported_and_what_is_not_repeated_is_not_the_end() -> None:
    chip = Many(HANGS, answers=[ManySeen(41, ((40, True),))])
    (seen,) = stressed("lapped", chip, many=40).seen
    assert (seen.number, len(seen.delays), seen.again.seen) == (39, 1, 2)
    chip = Many(SAME, answers=[ManySeen(9, ((8, False),)), ManySeen(33)])
    found = stressed("lapped", chip)
    assert (len(found.seen), found.launches, found.seen[0].again.seen) == (1, 40, 0)


def test_a_kernel_that_fails_without_delays_is_not_launched_with_them() -> None:
    found = stressed("beside_barrier", Many(answers=[], control=HANGS))
    assert (found.launches, found.conclusion.ok) == (0, False)
    assert stress_sentence(found).startswith("seen on NVIDIA H200 2 of 2 without delays: warp 2 waits")


def test_lines_of_the_process_become_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"name": "NVIDIA H200", "driver": "580"}, {"batch": 8, "seen": [], "varies": True},
             {"batch": 8, "seen": [[3, 1]], "varies": False}]  # fmt: skip

    def carried_out(made: Path, limit_s: float, module: str) -> str:
        assert json.loads((made / "request.json").read_text())["table_bytes"] == 16
        (made / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return ""

    monkeypatch.setattr(launching, "_carry_out", carried_out)
    monkeypatch.setattr(launching, "machine_code", lambda kernel: b"")
    kernel, given = DelayedPtx("", "k", (), 32, 32, bytes(16)), (PLANTED[0].launch, LaunchMemory([], [], []), 1.0)
    assert GpuChip().many(kernel, bytes(320), *given, batch=8) == ManySeen(16, ((11, True),), varies=True)
    lines.append({"batch": 4, "ended": "trap", "error": "E"})
    assert GpuChip().many(kernel, bytes(320), *given, batch=8) == ManySeen(16, (), True, "trap", "E")
    lines[:] = [{"error": {"fact": "no GPU", "cause": "", "place": "", "correction": ""}}]
    with pytest.raises(HardwareError, match="no GPU"):
        GpuChip().many(kernel, bytes(320), *given, batch=8)


def test_launches_of_the_process_are_made_in_batches(tmp_path: Path) -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    from pipesim.confirm.chip import LaunchProcess
    from pipesim.confirm.many import LEFT_WORDS, launch_many

    calls, left = Counter[str](), np.zeros((64, LEFT_WORDS), dtype=np.uint32)

    class Memory:
        def allocate(self, nbytes: int) -> int:
            return 4096

        def download(self, address: int, words: np.ndarray) -> None:
            first = (address - 4096) // (4 * LEFT_WORDS)
            words[...] = left[first : first + len(words)] if words.ndim == 2 else 0

        def upload(self, *_: object) -> None: ...

        fill = synchronize = upload

    class Process(LaunchProcess):
        def call(self, name: str, *arguments: object) -> int:
            calls[name] += 1
            return 1

        def variable(self, module: object, name: str) -> tuple[int, int]:
            return 4096, 4

        def load(self, kernel: str) -> tuple[object, object]:
            return 1, driver.CUfunction(0)

        def ends(self, stream: object, gives_up: object = None) -> bool:
            return True

    tables = np.ones((64, 8), dtype=np.uint32)
    tables[[0, 9]] = 0
    tables.tofile(tmp_path / "tables")
    memory = {
        "buffers": [{"nbytes": 256}],
        "parameters": [{"nbytes": 8, "known": [], "pointers": [(0, 0)], "maps": []}],
    }
    request = {"tables": "tables", "table_bytes": 32, "batch": 256, "memory": memory, "grid": [1, 1, 1],
               "block": [32, 1, 1], "cluster": [2, 1, 1], "dynamic_shared": 0, "entry": "k", "limit_s": 1}  # fmt: skip

    def launched() -> list[dict[str, object]]:
        said: list[dict[str, object]] = []
        process = Process(tmp_path, request, Memory(), driver, [4096], [4096])  # type: ignore[arg-type]
        launch_many(process, lambda **members: said.append(members))
        return said

    assert [each["batch"] for each in launched()] == [8, 8, 48]
    assert calls["cuLaunchKernelEx"] == 65
    left[20, 0] = 1
    assert launched()[-1] == {"batch": 48, "seen": [(4, 0)], "varies": False}
    left[9, 0], left[30, 1] = 1, 1
    assert launched()[-1] == {"batch": 48, "seen": [(14, 1)], "varies": True}


# the command


@pytest.mark.slow
def test_without_a_gpu_the_text_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel, planted = tmp_path / "lapped.ptx", BY_NAME["lapped"]
    kernel.write_text(planted.text)
    kernel.with_suffix(".json").write_text(launch_json(planted.launch))
    to = tmp_path / "late.ptx"
    assert main(["stress", str(kernel), "--no-run", "--save", str(to), "--json"]) == 3
    report = json.loads(capsys.readouterr().out)["report"]
    assert (report["said"], len(report["files"])) == ("not launched: no launch was asked for", 2)
    assert f"pipesim_delays[{4 * 8 * 4}] = {{" in to.read_text()
    assert json.loads(to.with_suffix(".json").read_text())["delays"][0]["ns"] > 0
    assert main(["stress", str(kernel), "--no-run", "--launches", "0"]) == 2
    assert "out of range" in capsys.readouterr().err


def test_what_was_seen_is_drawn_with_its_delays() -> None:
    found = stressed("lapped", Many(HANGS, answers=[ManySeen(41, ((40, True),))]))
    text = "\n".join(stress_lines(replace(found, files=("late.ptx",), zeros=("x",), varies=True), 100))
    for said in ("launch 39, ", "delay  warp", "zeros in x", "not compared", "written: late.ptx"):
        assert said in text
    alike = replace(found, seen=(), control=Tries(2))
    assert stress_sentence(alike) == "nothing seen in 40 launches on NVIDIA H200"
