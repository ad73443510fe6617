"""The answer on times: apart from behaviour, by the profile's own statement, and never better than what it rests on."""

from dataclasses import replace

import pytest

from pipesim.conform.agreement import Agreement, agreement_of
from pipesim.conform.compare import compare, times_of
from pipesim.conform.times import AssumedKind, NoTime, TimeAssumption, TimeComparison, TimeVerdict
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import PERIOD, WHOLE_RUN, StatedError, load_profile
from pipesim.trace.schema import Trace
from tests.conform.cases import stored
from tests.support.recordings import RECORDINGS, one_of_each, sampled

USUAL = "h200/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"
FAULTY = "h200/producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-swapped_stages-at-7.parquet"
HUNG = "h200/epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet"
MULTICAST = "h200/cluster_multicast-c2-cw2-ob8192-sb8192-s4-t24-w600-g2-both.parquet"
GEMM = "h200/gemm_sm90-bk64-bn128-d0-e300-kgs1-ki16-l0-nc2-s4-t2-tm1-g1.parquet"
SCHEDULER = "h200/persistent_scheduler-a700-cs2-cw2-ki8-s4-tb16384-t16-w600-g1-both.parquet"


def kinds(found: TimeComparison) -> list[AssumedKind]:
    return [each.kind for each in found.assumed]


#: A profile with constants of barriers and copies, and none of named works.
ESTIMATES = ("transfer.latency", "matrix.latency", "sync.latency")
VALUES = {name: value for name, value in load_profile("h200").values.items() if "/" not in name}
WITHOUT_WORKS = replace(load_profile("h200"), values=VALUES, assumed=ESTIMATES, errors=())


def slower(trace: Trace, factor: int) -> Trace:
    """Everything took so many times as long: the events, and what the launches measured."""
    runs = tuple(
        replace(
            run,
            cycles=tuple(factor * cycles for cycles in run.cycles),
            period_millicycles=tuple(factor * period for period in run.period_millicycles),
        )
        for run in trace.meta.runs
    )
    first = trace.events.cycle.min()
    events = replace(trace.events, cycle=first + factor * (trace.events.cycle - first))
    return Trace(replace(trace.meta, runs=runs), events)


class TestStatedError:
    def test_times_twice_as_long_are_off_though_the_order_agrees(self) -> None:
        case = stored(USUAL)
        slow = slower(case.trace, 2)
        assert agreement_of(case.program, slow).agreement is Agreement.CONFORMS
        found = times_of(case.program, slow)
        assert (found.verdict, found.figure) == (TimeVerdict.OFF, PERIOD)
        assert -515 < (found.off_permille or 0) < -485
        assert found.stated is not None

    @pytest.mark.slow
    def test_an_error_is_stated_between_the_least_and_the_greatest_value_that_was_measured(self) -> None:
        """And of launches of as many CTAs; what lies outside is named, with what was measured."""
        case = stored(USUAL)
        params = {"stages": (2, 4), "work": (600, 900)}
        error = StatedError("producer_consumer", PERIOD, (1, 66), params, 9, 10, 500)

        def by(*errors: StatedError) -> TimeComparison:
            return times_of(case.program, case.trace, replace(load_profile("h200"), errors=errors))

        found = by(error)
        assert (found.verdict, found.stated, found.beyond) == (TimeVerdict.WITHIN_STATED_ERROR, error, {})
        assert by(replace(error, worst_permille=0)).verdict is TimeVerdict.OFF
        few, many = replace(error, params={"stages": (2, 3)}), replace(error, params={"stages": (5, 8)})
        grid = replace(error, ctas=(67, 132))
        for other, beyond in (few, {"stages": (2, 3)}), (many, {"stages": (5, 8)}), (grid, {"CTAs": (67, 132)}):
            found = by(other)
            assert (found.verdict, found.stated, found.beyond) == (TimeVerdict.OUTSIDE, None, beyond)
        both = replace(many, ctas=(67, 132))
        assert by(both).beyond == {"stages": (5, 8), "CTAs": (67, 132)}
        assert by(both, grid).beyond == {"CTAs": (67, 132)}, "of the nearest launches"
        found = by(replace(error, figure=WHOLE_RUN))
        assert (found.verdict, found.beyond) == (TimeVerdict.OUTSIDE, {})


class TestAssumed:
    def test_another_device(self) -> None:
        case = stored(USUAL)
        found = times_of(case.program, case.trace, load_profile("h100"))
        assert found.verdict is TimeVerdict.OUTSIDE
        assert found.assumed == (TimeAssumption(AssumedKind.DEVICE, "NVIDIA H200"),)
        assert (abs(found.off_permille or 100) < 30, found.stated) == (True, None)

    def test_multicast_copies_and_arrivals_at_other_ctas(self) -> None:
        case = stored(MULTICAST)
        found = times_of(case.program, case.trace, replace(load_profile("h200"), errors=()))
        assert (found.verdict, found.figure) == (TimeVerdict.OUTSIDE, PERIOD)
        assert kinds(found) == [AssumedKind.MULTICAST, AssumedKind.REMOTE]
        assert found.off_permille is not None

    @pytest.mark.slow
    def test_matrix_multiplications_and_the_profiles_estimates(self) -> None:
        case = stored(GEMM)
        found = times_of(case.program, case.trace, WITHOUT_WORKS)
        assert found.verdict is TimeVerdict.OUTSIDE
        assert AssumedKind.MATRIX in kinds(found)
        named = [each.name for each in found.assumed if each.kind is AssumedKind.VALUE]
        assert named == ["transfer.latency", "matrix.latency", "sync.latency"]
        fitted = times_of(case.program, case.trace)
        assert AssumedKind.MATRIX not in kinds(fitted), "the profile has constants of this multiplication"
        measured = times_of(case.program, case.trace, replace(load_profile("h200"), assumed=()))
        assert AssumedKind.VALUE not in kinds(measured)

    @pytest.mark.slow
    def test_a_work_that_took_another_time_than_given(self) -> None:
        """The scheduler's 700 cycles: the atomic that they stand for takes less; the consumers' 600 are spent."""
        case = stored(SCHEDULER)
        assert times_of(case.program, case.trace).assumed == (), "its time was fitted"
        (work,) = times_of(case.program, case.trace, WITHOUT_WORKS).assumed
        assert (work.kind, work.name, work.given) == (AssumedKind.WORK, "scheduler", 700)
        assert work.recorded is not None
        assert work.recorded < 600
        assert "consumer" in {
            each.name for each in times_of(case.program, slower(case.trace, 2), WITHOUT_WORKS).assumed
        }

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("name", ["gemm_sm100", "attention_sm100"])
    def test_blackwell(self, name: str) -> None:
        """On any Hopper profile, whatever it was recorded on."""
        program = find(name).build({})
        trace = simulate(program, load_profile("h100")).trace
        found = times_of(program, trace)
        assert found.verdict is TimeVerdict.OUTSIDE
        assert AssumedKind.TCGEN05 in kinds(found)
        other = Trace(replace(trace.meta, device=replace(trace.meta.device, name="NVIDIA B200")), trace.events)
        assert kinds(times_of(program, other))[:2] == [AssumedKind.DEVICE, AssumedKind.TCGEN05]


@pytest.mark.slow
def test_nothing_to_compare() -> None:
    """A run that did not finish, a program that does not, and a window of a run without a period."""
    hung, usual = stored(HUNG), stored(USUAL)
    for program, trace, why in (
        (hung.program, hung.trace, NoTime.UNFINISHED),
        (stuck_of(usual.program), usual.trace, NoTime.NOT_SIMULATED),
        (usual.program, usual.with_meta(runs=()).window(8, 12).trace, NoTime.NOT_RECORDED),
    ):
        found = times_of(program, trace)
        assert (found.verdict, found.why) == (TimeVerdict.NOT_COMPARED, why)
        assert compare(program, trace).time == found


def stuck_of(program: Program) -> Program:
    """The program whose producer, its first agent, does nothing after its first copies: the consumers wait for more."""
    code, lines = list(program.code), list(program.lines)
    half = next(n for n, op in enumerate(code[0]) if op[0] == Op.LOOP_NEXT)
    rest = [n for n in range(half, len(code[0])) if code[0][n][0] == Op.LOOP_END]
    kept = [*range(half), *rest]
    code[0] = tuple(code[0][n] for n in kept)
    lines[0] = tuple(lines[0][n] for n in kept)
    return replace(program, code=tuple(code), lines=tuple(lines))


@pytest.mark.sampled(3, 14)
@pytest.mark.parametrize("name", sampled(RECORDINGS, one_of_each(RECORDINGS, 8_000), fast=[USUAL, FAULTY, HUNG]))
def test_the_short_way_gives_the_same_answer(name: str) -> None:
    case = stored(name)
    assert times_of(case.program, case.trace) == compare(case.program, case.trace).time
