"""On a Hopper GPU: right programs end with their data, deadlocks hang where schedules say, the GPU never hangs."""

import pytest

from hwkernels.capture import CaptureRequest, ProgramSubject, capture
from hwkernels.device.launch import require_gpu
from hwkernels.interpreter.chip import Chip
from hwkernels.interpreter.job import Run
from hwkernels.interpreter.turns import turns_of
from pipesim.answers.compare import compare_trace
from pipesim.answers.evidence import interpreted_request
from pipesim.model.finding import Verdict
from pipesim.model.program_json import dumps
from pipesim.prove.check import check
from pipesim.targets import find
from tests.support.small_programs import build
from tools.judge_chip import judged, on_chip, said_of

pytestmark = pytest.mark.gpu
SET_UP = "INIT count=1; BAR_SYNC threads=64"


def test_a_read_that_comes_too_early_is_seen() -> None:
    race = build(f"{SET_UP}; WORK cycles=30000; WRITE item=1", "BAR_SYNC threads=64; READ item=1")
    right = build(f"{SET_UP}; WORK cycles=30000; WRITE item=1; ARRIVE", "BAR_SYNC threads=64; WAIT; READ item=1")
    chip = Chip(require_gpu())
    early, late = chip.run([Run(race), Run(right)])
    assert (early.hangs, early.wrong_reads, early.first) == (False, 1, (1, 1))
    assert (late.hangs, late.wrong_reads, late.pcs) == (False, 0, (5, 3))
    chip.close()


def test_a_hang_is_reported_where_it_is() -> None:
    waits = build(f"{SET_UP}; BAR_SYNC threads=64", "BAR_SYNC threads=64; WAIT")
    found = check(waits)
    assert found.verdict is Verdict.REFUTED
    chip = Chip(require_gpu())
    free, led = chip.run([Run(waits), Run(waits, turns=turns_of(waits, found.refutations[0].schedule))])
    assert free.pcs == led.pcs == (2, 1)
    assert not any(free.finished + led.finished)
    chip.close()


@pytest.mark.parametrize("family", ["rings", "operations", "lives", "exchanged"])
def test_verdicts_of_random_programs(family: str) -> None:
    found = [each for seed in range(60) if not isinstance(each := judged((family, seed)), str)]
    for each in found:
        left = on_chip([each])
        assert left is not None
        assert not said_of(each, left[0]).isupper(), (family, each.seed)


@pytest.mark.parametrize("name", ["producer_consumer", "gemm_sm90", "cutlass_sm90_pingpong", "cluster_multicast"])
def test_a_described_protocol_is_recorded_and_conforms(name: str) -> None:
    program = find(name).build({})
    request = CaptureRequest(ProgramSubject(name, dumps(program)), program.params, repetitions=1)
    assert request.subject == interpreted_request(program).subject
    report = compare_trace(program, capture(request), name)
    assert report.conclusion.ok
