"""Advice: what limits a protocol is what a change relieves; stages are found by what they do; costs and verdicts."""

import pytest

from pipesim.answers.advise.advise import advise
from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.sweep import Advice, AdvisedChange, AdviseReport, ChangeKind, Metric, Outcome
from pipesim.conform.result import LimitKind
from pipesim.model.finding import Verdict
from pipesim.report.pages.protocols.advise import advise_lines
from pipesim.targets import find, target_of
from pipesim.timed.profile import load_profile
from tests.answers.test_sweep import ring

H200 = load_profile("h200")


def advice(name: str, **params: int) -> AdviseReport:
    return advise(find(name), params, H200)


def by_kind(report: AdviseReport) -> dict[tuple[ChangeKind, str], Advice]:
    return {(each.change.kind, each.change.parameter or each.change.role): each for each in report.advice}


def test_a_ring_that_waits_for_its_loads_gains_by_a_stage() -> None:
    report = advice("producer_consumer", stages=1, tiles=24)
    assert report.times is not None
    assert report.times.limited_by is not None
    assert (report.times.limited_by.limit, report.times.limited_by.group) == (LimitKind.LOADS, "full")
    best = report.advice[0]
    assert best.change == AdvisedChange(ChangeKind.MORE_STAGES, "stages", 2)
    assert (best.verdict, best.reached) == (Verdict.PROVED, Outcome.USABLE)
    assert best.resources is not None
    assert best.resources.smem_bytes - report.resources.smem_bytes == 16384 + 16
    assert (best.gain_permille or 0) > 200
    assert report.conclusion is Conclusion.AGREES


@pytest.mark.slow
def test_a_ring_that_is_limited_by_its_consumers_gains_by_their_work_and_not_by_a_stage() -> None:
    """The twin: the same protocol with four stages."""
    report = advice("producer_consumer", stages=4, tiles=24)
    found = by_kind(report)
    assert report.advice[0].change == AdvisedChange(ChangeKind.WORK, role="consumer", loop="tiles")
    assert found[ChangeKind.MORE_STAGES, "stages"].gain_permille == 0
    assert found[ChangeKind.FEWER_STAGES, "stages"].change.value == 3


@pytest.mark.slow
def test_each_gain_is_that_of_a_simulation_of_its_own() -> None:
    report = advice("producer_consumer", stages=2, tiles=24, work=1000)
    work = by_kind(report)[ChangeKind.WORK, "consumer"]
    direct = advice("producer_consumer", stages=2, tiles=24, work=800)
    assert (work.value, report.metric) == (direct.value, Metric.PERIOD)
    assert work.gain_permille == round(1000 * (report.value - direct.value) / report.value)


@pytest.mark.slow
def test_gains_are_in_order_and_what_cannot_be_tried_comes_last() -> None:
    report = advice("attention_sm90", kv_blocks=4)
    gains = [each.gain_permille for each in report.advice]
    known = [gain for gain in gains if gain is not None]
    assert known == sorted(known, reverse=True)
    assert gains[len(known) :] == [None] * (len(gains) - len(known))
    work = {ChangeKind.MATRIX, ChangeKind.WORK}  # products; the softmax, and the result on its way out of registers
    assert {each.change.kind for each in report.advice[:3]} == work


@pytest.mark.slow
def test_what_the_tensor_cores_gain_is_told_apart_from_what_it_takes_to_issue_for_them() -> None:
    """A GEMM whose products are long gains by faster ones; its twin with short ones hardly does."""
    gains = []
    for block_n in (256, 64):
        found = by_kind(advice("gemm_sm90", tiles=1, k_iters=16, epilogue=0, num_consumer=1, stages=4, block_n=block_n))
        gains.append(found[ChangeKind.MATRIX, ""].gain_permille or 0)
    assert gains[0] > 2 * gains[1]


@pytest.mark.slow
def test_a_stage_that_does_not_fit_is_said() -> None:
    report = advice("gemm_sm90", stages=4, block_n=192, tiles=1, k_iters=8)
    refused = [each for each in report.advice if each.reached is Outcome.REFUSED]
    assert [(each.change.parameter, each.change.value) for each in refused] == [("stages", 5)]
    assert "shared memory; a CTA has 232,448" in refused[0].why


@pytest.mark.slow
def test_work_is_told_apart_by_its_loop() -> None:
    """The epilogue of a GEMM is the work outside of the inner loop."""
    report = advice("gemm_sm90", tiles=2, k_iters=4, epilogue=4000)
    epilogue = by_kind(report)[ChangeKind.WORK, "consumer"]
    assert epilogue.change.loop == "tiles"
    assert (epilogue.gain_permille or 0) > 50


def test_a_protocol_that_is_not_correct_gets_none() -> None:
    wrong = advise(target_of(ring), {"how": 1}, H200)
    assert (wrong.verdict, wrong.times, wrong.advice, wrong.why) == (Verdict.REFUTED, None, (), "deadlock")
    assert wrong.conclusion is Conclusion.WRONG


def test_a_flat_program_has_no_stages_to_change() -> None:
    report = advise(target_of(ring().flatten()), {}, H200)
    kinds = {each.change.kind for each in report.advice}
    assert kinds == {ChangeKind.READS, ChangeKind.LOAD_LATENCY, ChangeKind.LOAD_RATE, ChangeKind.SIGNALS}


def test_a_change_without_a_period_is_compared_by_its_run() -> None:
    """With so few tiles two stages leave no steady state; the run shows what they gain."""
    report = advice("producer_consumer", stages=1, tiles=4)
    assert report.metric is Metric.PERIOD
    runs = [each for each in report.advice if each.metric is Metric.RUN]
    assert [(each.change.parameter, each.change.value) for each in runs] == [("stages", 2)]
    assert (runs[0].gain_permille or 0) > 100
    assert report.times is not None
    for each in runs:
        assert each.times is not None
        assert each.times.period_millicycles is None
        assert each.value == 1000 * each.times.cycles
        assert each.gain_permille == round(1000 * (report.times.cycles - each.times.cycles) / report.times.cycles)
        assert any(f"run {each.times.cycles:,}" in line for line in advise_lines(report, 100))
