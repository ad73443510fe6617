"""Answers as data, without a command line: what is computed, its conclusion, and its reasons with their numbers."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path

import pytest

from pipesim.answers.check import check, replay, replay_report
from pipesim.answers.compare import compare_trace
from pipesim.answers.evidence import HardwareSource
from pipesim.answers.progress import Progress, Stage, Unit
from pipesim.answers.run import run
from pipesim.answers.verify import Subject, verify
from pipesim.answers.verify_all import verify_several
from pipesim.answers.views.conclusion import Conclusion, exit_code, worst
from pipesim.answers.views.trace import PeriodCheck
from pipesim.conform.agreement import Agreement, Reason, ReasonKind
from pipesim.errors import EvidenceError, NoTraceError, ParameterError
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultKind, Verdict
from pipesim.prove.any_size.family import Stop
from pipesim.prove.check import How
from pipesim.targets import find, target_of
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.small import two_of_three

PC = "producer_consumer"
GOOD = trace_folder() / "h100" / "producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet"
SMALL = {"tiles": 5}
H100 = load_profile("h100")


class TestConclusion:
    def test_what_is_wrong_beats_the_unknown_and_that_the_tolerance(self) -> None:
        order = [Conclusion.AGREES, Conclusion.OUTSIDE_TOLERANCE, Conclusion.UNKNOWN, Conclusion.WRONG]
        order.append(Conclusion.INTERNAL_ERROR)
        for n, each in enumerate(order):
            assert worst(order[: n + 1]) is each
        assert worst([]) is Conclusion.AGREES
        assert [each.ok for each in order] == [True, False, None, False, None]

    def test_each_has_an_exit_code_of_its_own(self) -> None:
        class One:
            def __init__(self, conclusion: Conclusion) -> None:
                self.conclusion = conclusion

        assert [exit_code(One(each)) for each in Conclusion] == [0, 4, 3, 1, 70]
        assert exit_code(One(Conclusion.AGREES), One(Conclusion.UNKNOWN)) == 3
        assert exit_code() == 0

    @pytest.mark.parametrize(
        ("off", "expected"),
        [
            (None, Conclusion.UNKNOWN),
            (5.0, Conclusion.AGREES),
            (-5.0, Conclusion.AGREES),
            (-5.000001, Conclusion.OUTSIDE_TOLERANCE),
        ],
    )
    def test_a_period_beside_its_tolerance(self, off: float | None, expected: Conclusion) -> None:
        assert PeriodCheck(off, 5.0).conclusion is expected


class TestCheck:
    @pytest.mark.slow
    def test_proved_for_any_value_of_a_trip_count(self) -> None:
        report = check(find(PC), {"stages": 2})
        assert (report.verdict, report.how, report.conclusion) == (Verdict.PROVED, How.CERTIFICATE, Conclusion.AGREES)
        (tiles,) = [each for each in report.ranges if each.parameter == "tiles"]
        assert (tiles.lap > 0, tiles.why, tiles.refuted) == (True, None, None)
        assert check(find(PC), {"stages": 2}, most_ranges=0).ranges == ()

    def test_refuted_with_a_counterexample_that_can_be_replayed(self) -> None:
        target = target_of(BROKEN["consumer_never_arrives"])
        report = check(target, {})
        assert (report.verdict, report.how, report.conclusion) == (Verdict.REFUTED, How.SCHEDULE, Conclusion.WRONG)
        (found,) = report.refutations
        assert isinstance(found.finding, Deadlock)
        assert report.findings == (found.finding,)
        program = target.build(dict(found.at))
        again = replay(program, found.replay)
        assert (again.how, again.verdict, again.findings) == (None, Verdict.REFUTED, report.findings)
        assert again.replayed == replay_report(program, found.replay).moves > 0

    @pytest.mark.slow
    def test_why_not_every_value_is_an_enum(self) -> None:
        report = check(find("conv_epilogue"), {"tiles": 1}, most_ranges=1)
        (first,) = report.ranges
        assert (first.fails, first.refuted, first.lap) == (2, Ending.DEADLOCK, 0)
        assert isinstance(first.why, Stop)

    def test_a_limit_is_unknown(self) -> None:
        report = check(target_of(two_of_three), {}, max_states=5)
        assert (report.verdict, report.how, report.conclusion) == (Verdict.UNKNOWN, How.NOTHING, Conclusion.UNKNOWN)

    def test_a_schedule_that_ends_well_says_whether_it_ended(self) -> None:
        program = target_of(BROKEN["consumer_never_arrives"]).build({})
        report = replay_report(program, "0")
        assert (report.findings, report.ended, report.conclusion) == ((), False, Conclusion.UNKNOWN)

    def test_the_size_of_the_launch_counts(self) -> None:
        assert check(find(PC), SMALL, ctas=2, most_ranges=0).heading.grid == 2
        with pytest.raises(ParameterError):
            check(find(PC), SMALL, ctas=0)


class TestRun:
    def test_a_deadlock_a_fault_and_a_budget(self) -> None:
        stuck = run(target_of(BROKEN["consumer_never_arrives"]).build({}), H100)
        assert (stuck.conclusion, stuck.simulation.outcome) == (Conclusion.WRONG, "deadlock")
        assert stuck.findings == (stuck.deadlock,)
        faulty = run(target_of(BROKEN["producer_does_not_wait"]).build({}), H100)
        assert (faulty.conclusion, faulty.simulation.broken) == (Conclusion.WRONG, FaultKind.OVER_ARRIVAL)
        silent = run(target_of(BROKEN["expects_nothing"]).build({}), H100)
        assert (silent.simulation.outcome, silent.simulation.broken) == ("finished", FaultKind.RACE)
        assert (silent.conclusion, silent.findings) == (Conclusion.WRONG, silent.faults)
        cut = run(find(PC).build(SMALL), H100, max_steps=10)
        assert (cut.conclusion, cut.simulation.outcome, cut.simulation.budget) == (Conclusion.UNKNOWN, "unknown", 10)


@pytest.fixture
def good() -> Trace:
    return read_trace(GOOD)


class TestCompare:
    @staticmethod
    def stands(trace: Trace, tolerance: float | None = None) -> tuple[Conclusion, Agreement, Reason | None]:
        report = compare_trace(find(PC).build(trace.meta.params), trace, "t.parquet", tolerance=tolerance)
        return report.conclusion, report.comparison.agreement, report.comparison.reason

    def test_reasons_have_their_numbers(self, good: Trace) -> None:
        wrong = Trace(replace(good.meta, wrong_tiles=3), good.events)
        assert self.stands(wrong) == (Conclusion.WRONG, Agreement.DIFFERS, Reason(ReasonKind.WRONG_TILES, 3))
        outputs = Trace(replace(good.meta, extra={"wrong_outputs": {"sums": 7}}), good.events)
        reason = Reason(ReasonKind.WRONG_OUTPUT, 7, "sums")
        assert self.stands(outputs) == (Conclusion.WRONG, Agreement.DIFFERS, reason)
        lossy = tuple(replace(cta, dropped=(0, 0, 2)) for cta in good.meta.ctas)
        lost = Trace(replace(good.meta, ctas=lossy), good.events)
        assert self.stands(lost) == (Conclusion.UNKNOWN, Agreement.UNKNOWN, Reason(ReasonKind.RECORDS_LOST, 2))

    def test_a_divergence(self, good: Trace) -> None:
        parity = good.events.parity.copy()
        parity[20] = 1 - parity[20]
        wrong = Trace(good.meta, replace(good.events, parity=parity))
        assert self.stands(wrong) == (Conclusion.WRONG, Agreement.DIFFERS, Reason(ReasonKind.DIVERGES))

    def test_without_a_period_no_tolerance_is_met(self, good: Trace) -> None:
        bare = Trace(replace(good.meta, runs=()), good.events)
        report = compare_trace(find(PC).build(SMALL), bare, "t.parquet", tolerance=50)
        assert report.comparison.period == PeriodCheck(None, 50)
        assert (report.comparison.agreement, report.conclusion) == (Agreement.CONFORMS, Conclusion.UNKNOWN)

    def test_the_file_of_another_kernel_is_named(self, good: Trace) -> None:
        with pytest.raises(EvidenceError) as raised:
            compare_trace(target_of(right_ring).build({}), good, "t.parquet")
        assert raised.value.place == "t.parquet"


class Heard(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.stages: list[Enum] = []
        self.errors: list[EvidenceError] = []
        self.files: tuple[Path, ...] = ()

    def stage(self, stage: Stage, *names: str) -> AbstractContextManager[None]:
        return self._around(stage)

    @contextmanager
    def _around(self, stage: Stage) -> Iterator[None]:
        self.stages.append(stage)
        yield

    @contextmanager
    def check_step(self, protocol: str, step: Enum) -> Iterator[Unit]:
        self.stages.append(step)
        yield lambda done, of: None

    def report_missing(self, error: EvidenceError) -> None:
        assert Stage.SIMULATE not in self.stages  # before the simulation, which may take long
        self.errors.append(error)

    def left_out(self, files: tuple[Path, ...]) -> None:
        self.files = files


class TestVerify:
    @pytest.mark.slow
    def test_with_recorded_traces(self, good: Trace, tmp_path: Path) -> None:
        write_trace(good, tmp_path / "a.parquet")
        report = verify(find(PC), SMALL, traces=tmp_path)
        assert (report.conclusion, report.left_out, report.missing) == (Conclusion.AGREES, False, None)
        (found,) = report.hardware
        assert (found.source, found.agreement) == (f"{tmp_path.name}/a.parquet", Agreement.CONFORMS)
        wrong = Trace(replace(good.meta, wrong_tiles=1), good.events)
        write_trace(wrong, tmp_path / "a.parquet", force=True)
        report = verify(find(PC), SMALL, traces=tmp_path)
        assert report.proof.conclusion is Conclusion.AGREES
        assert (report.conclusion, report.hardware[0].reason) == (Conclusion.WRONG, Reason(ReasonKind.WRONG_TILES, 1))

    @pytest.mark.slow
    def test_missing_evidence_is_part_of_the_answer(self, tmp_path: Path) -> None:
        heard = Heard()
        report = verify(find(PC), SMALL, traces=tmp_path, progress=heard)
        assert report.conclusion is Conclusion.UNKNOWN
        assert isinstance(report.missing, NoTraceError)
        assert heard.errors == [report.missing]

    def test_a_trace_of_another_kernel_is_missing_evidence(self, good: Trace, tmp_path: Path) -> None:
        other = Trace(replace(good.meta, protocol="right_ring", params={"stages": 2, "tiles": 3}), good.events)
        write_trace(other, tmp_path / "a.parquet")
        program = target_of(right_ring).build({"stages": 2, "tiles": 3})
        write_trace(Trace(replace(other.meta, protocol=program.name), good.events), tmp_path / "a.parquet", force=True)
        report = verify(target_of(right_ring), {"stages": 2, "tiles": 3}, traces=tmp_path)
        assert report.conclusion is Conclusion.UNKNOWN
        assert (type(report.missing), report.hardware) == (EvidenceError, ())

    def test_findings_of_the_proof_and_of_the_simulation(self) -> None:
        report = verify(target_of(BROKEN["consumer_never_arrives"]), {}, hardware=HardwareSource.LEFT_OUT)
        assert report.conclusion is Conclusion.WRONG
        assert set(report.proof.findings) <= set(report.findings)
        assert any(isinstance(finding, Deadlock) for finding in report.findings)


class TestSeveral:
    def test_a_parameter_that_one_of_them_has_not(self) -> None:
        with pytest.raises(ParameterError, match="has no parameter 'nonsense'"):
            verify_several([Subject(PC, (("nonsense", 1),))], hardware=False)
