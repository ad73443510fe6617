"""The delays that a schedule asks for, put into the PTX, which stays the same program; they bring the finding about."""

import shutil
from dataclasses import replace

import pytest

from pipesim.answers.check import check
from pipesim.confirm.choose import Chooser, DelayPlan, Sign
from pipesim.confirm.delays import Delay, place_of
from pipesim.confirm.launches import machine_code
from pipesim.confirm.memory import launch_memory
from pipesim.confirm.rewrite import delayed_ptx
from pipesim.errors import LaunchFileError, PtxError
from pipesim.model.finding import FaultReport
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer, TensorMap
from pipesim.ptx.text.read import read_module
from pipesim.targets import target_of
from tests.support.machine_chip import MachineChip
from tests.support.paths import ROOT
from tests.support.planted_ptx import PLANTED, Planted
from tests.support.ptx_machine import Machine
from tests.support.small_ptx import extraction_of

ASSEMBLES = pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas assembles")
BY_NAME = {each.name: each for each in PLANTED}
LIMIT_NS = 5_000_000


def read(planted: Planted) -> Extraction:
    return extract(read_module(planted.text, f"{planted.name}.ptx"), planted.launch)


def plans(made: Extraction) -> list[tuple[str, DelayPlan]]:
    """The kind of each finding, with what is tried for it."""
    found = []
    for shown in check(replace(target_of(made.program), kernel=made), {}, quick=True).refutations:
        kind = shown.finding.kind if isinstance(shown.finding, FaultReport) else None
        chooser = Chooser(made.kernel, made.program, made.streams, 1_000_000)
        name = kind.name if kind is not None else str(shown.finding.kind)
        found.append((name, chooser.plan(shown.replay, kind)))
    return found


def said(delay: Delay) -> tuple[int, str, str, int]:
    place = delay.place
    return place.warp, "after" if place.after else "before", place.opcode, place.nth


WAIT = "mbarrier.try_wait"
#: For each planted finding its sign, the delays, and how many warps wait at its end.
CHOSEN = {
    "lapped": [(Sign.HANG, [(2, "before", WAIT, 0)], 1)],
    "lapped_later": [(Sign.HANG, [(2, "before", WAIT, 0)], 1)],
    "early_release": [(Sign.DATA, [(1, "after", "mbarrier.arrive", 0)], 0)],
    "uncounted_reader": [(Sign.DATA, [(2, "after", WAIT, 0)], 0), (Sign.HANG, [(2, "before", WAIT, 0)], 1),
                         (Sign.DATA, [(2, "before", WAIT, 2)], 0)],
    "missing_arrive": [(Sign.HANG, [], 2)],
    "beside_barrier": [(Sign.HANG, [], 3)],
    "one_too_many": [(Sign.HANG, [], 2)],
    "stale_wait": [(Sign.DATA, [(0, "before", WAIT, 2)], 0)],
    "over_arrival": [(Sign.TRAP, [], 0)],
    "no_proxy_fence": [(Sign.NONE, [], 0)],
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.name)
def test_what_is_late_is_chosen_from_the_schedule(planted: Planted) -> None:
    found = plans(read(planted))
    assert [kind for kind, _ in found][:1] == ([planted.finding] if planted.finding else [])
    chosen = [(plan.sign, [said(each) for each in plan.delays], len(plan.waiting)) for _, plan in found]
    assert chosen == CHOSEN.get(planted.name, [])
    assert all(plan.modelled or plan.sign is Sign.NONE for _, plan in found)


@pytest.mark.long
def test_the_delay_of_a_published_kernel() -> None:
    """Gluon's watched ring: a warp that is lapped by its full barriers, while all others wait for its end."""
    ((kind, plan),) = plans(read_kernel(ROOT / "tests/ptx/kernels/scale_watched-sm_90a.ptx"))
    assert (kind, plan.modelled, [said(each) for each in plan.delays]) == (
        "lapped_waiter", True, [(6, "before", WAIT, 0)],
    )  # fmt: skip
    assert {each.warp for each in plan.waiting} == set(range(8))


# the rewritten PTX


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.name)
def test_a_kernel_with_delays_reads_as_the_same_program(planted: Planted) -> None:
    made = read(planted)
    delays = [each for _, plan in plans(made) for each in plan.delays]
    text = delayed_ptx(planted.text, made.kernel, delays, 0).text
    assert text.count("nanosleep") == len(delays)
    assert text.count("bra") == planted.text.count("bra")
    again = extract(read_module(text, "delayed.ptx"), planted.launch)
    assert again.program.code == made.program.code
    assert not again.program.coverage.stopped


def test_a_barrier_that_counts_threads_is_noted_before_and_after() -> None:
    planted = BY_NAME["beside_barrier"]
    planted = replace(planted, text=planted.text.replace("barrier.sync 1;", "barrier.sync 1, 96;", 1))
    text = delayed_ptx(planted.text, read(planted).kernel, [], LIMIT_NS).text
    before, after = text.split("barrier.sync 1, 96;")
    assert before.rstrip().endswith("[%pipesim_mine], 3;")
    assert "[%pipesim_mine], 0;" in after.partition("barrier.sync 1;")[0]
    assert text.count("[%pipesim_mine]") == 6  # at all three: where one may stay shut, another one may
    plain = BY_NAME["beside_barrier"]
    assert "%pipesim_mine" not in delayed_ptx(plain.text, read(plain).kernel, [], LIMIT_NS).text


@pytest.mark.slow
@ASSEMBLES
@pytest.mark.parametrize(
    "name",
    [
        "gemm_wgmma_ws",
        "scale_watched",
        *(pytest.param(f"scale_{each}_s3", marks=pytest.mark.long) for each in ("ws", "pipelined")),
    ],
)
def test_ptxas_takes_published_kernels_with_every_wait_delayed(name: str) -> None:
    path = ROOT / f"tests/ptx/kernels/{name}-sm_90a.ptx"
    made, text = read_kernel(path), path.read_text()
    places = {
        place_of(made.kernel, made.program, made.streams[agent], agent, pc): None
        for agent, code in enumerate(made.program.code)
        for pc in range(0, len(code), 7)
    }
    delays = [Delay(each, 3_000_000) for each in places if each.nth < 2][:40]
    assert machine_code(delayed_ptx(text, made.kernel, delays, LIMIT_NS))
    again = extract(read_module(delayed_ptx(text, made.kernel, delays, 0).text, path.name), made.kernel.launch)
    assert again.program.code == made.program.code


def outcomes(planted: Planted, delays: list[Delay], times: int = 2) -> list[str]:
    """How launches with delays end, beside a control."""
    made = read(planted)
    kernels = [(delayed_ptx(planted.text, made.kernel, each, LIMIT_NS), n) for each, n in (((), 1), (delays, times))]
    memory, _ = launch_memory(planted.launch, made.kernel.entry, 4096, lambda name: False)
    control, tried = MachineChip().launch(kernels, planted.launch, memory, 1)
    assert [each.outcome.value for each in control] == ["same"]
    return [each.outcome.value for each in tried]


@pytest.mark.slow
def test_the_same_delay_brings_a_finding_about_and_leaves_its_right_twin_alone() -> None:
    for wrong, right, shows in (("lapped", "not_lapped", "hang"), ("early_release", "right", "differs")):
        ((_, plan),) = plans(read(BY_NAME[wrong]))
        assert outcomes(BY_NAME[wrong], list(plan.delays)) == [shows] * 2
        (delay,), text = plan.delays, BY_NAME[right].text
        statement = next(line for line in text.splitlines() if delay.place.opcode in line and "init" not in line)
        place = replace(delay.place, begin=text.index(statement) + 1)
        assert outcomes(BY_NAME[right], [Delay(place, delay.ns)]) == ["same"] * 2


def test_beside_a_delay_there_is_a_turn_for_a_gpu_on_which_no_delay_is_right() -> None:
    (_, plan), *_ = plans(read(BY_NAME["lapped_later"]))
    (turn,) = plan.turns
    assert (turn.place, plan.modelled) == (plan.delays[0].place, True)
    assert turn.until is not None
    assert (turn.until.opcode, turn.until.nth) == ("mbarrier.arrive", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shows"),
    [("lapped", "hang"), pytest.param("lapped_later", "hang", marks=pytest.mark.long), ("early_release", "differs")],
)
def test_turns_bring_about_what_no_delay_does(name: str, shows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chooser, "_shows", lambda *_: False)
    made = read(BY_NAME[name])
    ((_, plan),) = plans(made)
    assert plan.turns
    assert all(each.until is not None and each.until.warp != each.place.warp for each in plan.turns)
    assert outcomes(BY_NAME[name], list(plan.turns)) == [shows] * 2
    text = delayed_ptx(BY_NAME[name].text, made.kernel, plan.turns, LIMIT_NS).text
    assert text.count("[pipesim_turns+0]") == 2
    assert text.count("nanosleep.u32 20000") == len(plan.turns)
    assert shutil.which("ptxas") is None or machine_code(delayed_ptx(BY_NAME[name].text, made.kernel, plan.turns, 1))


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(("name", "ends"), [("right", "same"), ("missing_arrive", "hang")])
def test_a_process_that_does_not_run_for_a_while_gives_up_no_wait(name: str, ends: str, monkeypatch) -> None:
    """The clock goes on where other processes have the GPU: here eight times for ten times the limit."""
    made, text = read(BY_NAME[name]), delayed_ptx(BY_NAME[name].text, read(BY_NAME[name]).kernel, (), LIMIT_NS)

    def time(machine: Machine) -> int:
        return 32 * (machine.steps // 64) + machine.skipped_ns + 10 * LIMIT_NS * min(machine.steps // 500, 8)

    monkeypatch.setattr(Machine, "time", property(time))
    memory, _ = launch_memory(made.kernel.launch, made.kernel.entry, 4096, lambda name: False)
    ((found,),) = MachineChip().launch([(text, 1)], made.kernel.launch, memory, 1)
    assert found.outcome.value == ends


@pytest.mark.slow
def test_no_delay_changes_what_a_right_kernel_leaves() -> None:
    planted = BY_NAME["right"]
    made = read(planted)
    for agent, code in enumerate(made.program.code):
        for pc in range(0, len(code), 11):
            place = place_of(made.kernel, made.program, made.streams[agent], agent, pc)
            assert outcomes(planted, [Delay(place, 300_000)], 1) == ["same"], place


def test_a_delay_in_a_function_that_is_called_is_refused() -> None:
    made = read(BY_NAME["lapped"])
    ((_, plan),) = plans(made)
    (delay,) = plan.delays
    with pytest.raises(PtxError, match="in a function that the kernel calls"):
        delayed_ptx(BY_NAME["lapped"].text, made.kernel, [Delay(replace(delay.place, begin=7), 1)], 0)
    with pytest.raises(PtxError, match="too long"):
        delayed_ptx(BY_NAME["lapped"].text, made.kernel, [replace(delay, ns=10**13)], 0)


# the memory of a launch


def test_buffers_are_as_large_as_the_launch_file_says() -> None:
    params = ".param .u64 a, .param .b8 m[128], .param .u32 n, .param .b8 o[128]"
    values = Pointer(), TensorMap("bf16", (64, 32), (64, 8), (128,)), Number("u32", 7), TensorMap("f16", box=(64, 8))
    made = extraction_of(" bar.sync 0;\n", params=params, values=values)
    memory, zeros = launch_memory(made.kernel.launch, made.kernel.entry, 1000, lambda name: True)
    assert zeros == ("a",)
    sizes = [(1024, False), (64 * 32 * 2, True), (64 * 64 * 64 * 8 * 2, True)]
    assert [(each.nbytes, each.filled) for each in memory.buffers] == sizes
    assert memory.parameters[0].pointers == [(0, 0)]
    assert memory.parameters[1].maps[0][1]["strides"] == (128,)
    assert memory.parameters[2].known == [(0, "07000000")]


@pytest.mark.parametrize(
    ("content", "refused"),
    [(TensorMap(), "has no box"), (TensorMap("f16", box=(8,), pixels=4), "Im2col"), (Number("u32", None), "no value")],
)
def test_what_a_launch_file_leaves_open_is_refused(content: TensorMap | Number, refused: str) -> None:
    launch = Launch("kernel", (1, 1, 1), (64, 1, 1), parameters=(Parameter("x", content),))
    with pytest.raises(LaunchFileError, match=refused):
        launch_memory(launch, read(BY_NAME["right"]).kernel.entry, 256, lambda name: False)
