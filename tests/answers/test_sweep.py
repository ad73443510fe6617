"""Sweeps: every configuration has an answer, in the order of the axes; the best, and the smallest nearly as good."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.sweep import configuration
from pipesim.answers.sweep import sweep as module
from pipesim.answers.sweep.configuration import Question, SweepAnswer, SweepPart, axes_of, carry_out, configurations
from pipesim.answers.sweep.sweep import METRIC, OnDone, Sweep, Where, comparable, rank, smallest, sweep
from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.sweep import (
    Comparable,
    Configuration,
    Metric,
    Outcome,
    Resources,
    SweepReport,
    Times,
    WorkUnit,
)
from pipesim.errors import ParameterError, ResultsFileError
from pipesim.lang.protocol import Protocol
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.targets import find, target_of
from pipesim.timed.profile import load_profile

H200 = load_profile("h200")


def ring(stages: int = 2, how: int = 0, tiles: int = 12) -> Protocol:
    """A ring that is right (how=0), hangs (1), or is refused by its author (2)."""
    if how == 2:
        raise ValueError("two is not possible")
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=4096)
    storage = p.mbarriers("pipe", 2 * stages)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=1)

    @p.role("load")
    def load(w):
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(4096)
                    w.tma_load(tile[stage.index()], stage.mbar(), i)

    @p.role("mma")
    def mma(w):
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume_explicit() as stage:
                    w.read(tile[stage.index()], i)
                    if not how or i < 3:
                        stage.arrive()

    return p


def of_ring(**axes: Sequence[int]) -> Sweep:
    return Sweep(target_of(ring), axes, {}, H200)


def states(report: SweepReport) -> list[tuple[dict[str, int], Outcome]]:
    return [(dict(each.params), each.state) for each in report.configurations]


class TestSpace:
    def test_every_combination_the_last_axis_fastest(self) -> None:
        axes = axes_of({"a": [2, 1, 2], "b": range(2)})
        assert axes == {"a": (2, 1), "b": (0, 1)}
        assert configurations(axes) == [
            (("a", a), ("b", b)) for a in (2, 1) for b in (0, 1)
        ]  # fmt: skip

    def test_an_axis_without_values_and_too_many_configurations(self) -> None:
        with pytest.raises(ParameterError, match="a has no value"):
            axes_of({"a": []})
        with pytest.raises(ParameterError, match="has 1,000,000 configurations"):
            axes_of({"a": range(1000), "b": range(1000)})


class TestAnswers:
    def test_each_configuration_has_an_answer_with_its_reason(self) -> None:
        report = sweep(of_ring(stages=[1, 2, 60], how=[0, 1, 2]))
        assert states(report) == [
            ({"stages": 1, "how": 0}, Outcome.USABLE),
            ({"stages": 1, "how": 1}, Outcome.REFUTED),
            ({"stages": 1, "how": 2}, Outcome.REFUSED),
            ({"stages": 2, "how": 0}, Outcome.USABLE),
            ({"stages": 2, "how": 1}, Outcome.REFUTED),
            ({"stages": 2, "how": 2}, Outcome.REFUSED),
            ({"stages": 60, "how": 0}, Outcome.REFUSED),
            ({"stages": 60, "how": 1}, Outcome.REFUSED),
            ({"stages": 60, "how": 2}, Outcome.REFUSED),
        ]
        reasons = {each.why for each in report.configurations}
        assert reasons == {
            "", "deadlock", "ring raised ValueError: two is not possible",
            "ring needs 246,720 bytes of shared memory; a CTA has 232,448",
        }  # fmt: skip
        assert [dict(each.configuration.params) for each in report.ranked] == [
            {"stages": 2, "how": 0},
            {"stages": 1, "how": 0},
        ]
        assert report.conclusion is Conclusion.WRONG
        resources = report.ranked[0].configuration.resources
        assert resources == Resources(smem_bytes=2 * 4096 + 4 * 8, threads=64, registers=0)

    def test_without_the_proof_a_deadlock_is_seen_by_the_simulation(self) -> None:
        report = sweep(replace(of_ring(how=[0, 1]), prove=False))
        assert states(report) == [({"how": 0}, Outcome.USABLE), ({"how": 1}, Outcome.UNFINISHED)]

    def test_limits_of_proof_and_simulation_are_no_verdict(self) -> None:
        cut = sweep(replace(of_ring(stages=[1, 2]), max_steps=10, prove=False))
        assert {each.state for each in cut.configurations} == {Outcome.CUT}
        assert (cut.ranked, cut.smallest, cut.conclusion) == ((), None, Conclusion.UNKNOWN)

    def test_a_mistake_of_pipesim_is_an_answer_of_its_configuration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pipesim.answers.sweep.configuration.simulate_once", lambda *_: 1 // 0)
        report = sweep(of_ring(stages=[1, 2]))
        assert {each.state for each in report.configurations} == {Outcome.FAILED}
        assert "ZeroDivisionError" in report.configurations[0].why

    def test_what_is_not_there_to_sweep(self) -> None:
        for asked, said in (
            (of_ring(), "no parameter is swept"),
            (of_ring(stage=[1, 2]), "ring has no parameter 'stage'"),
            (replace(of_ring(stages=[1, 2]), fixed={"tile": 4}), "ring has no parameter 'tile'"),
            (replace(of_ring(a=[1, 2]), target=target_of(ring().flatten())), "takes no parameters"),
        ):
            with pytest.raises(ParameterError, match=said):
                sweep(asked)


class TestAnEndBeforeTheLast:
    def test_a_time_limit_leaves_what_is_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tried = configuration.evaluate

        def limited(params: Any, *rest: Any) -> SweepAnswer:
            if dict(params)["stages"] == 3:
                raise LimitReachedError(Limit.TIME, 1)
            return tried(params, *rest)

        monkeypatch.setattr(module, "evaluate", limited)
        report = sweep(of_ring(stages=[1, 2, 3, 4]))
        assert [state for _, state in states(report)] == [Outcome.USABLE] * 2 + [Outcome.NOT_REACHED] * 2
        assert (report.interrupted, report.conclusion) == ("the time limit of 1 s was reached", Conclusion.UNKNOWN)
        with pytest.raises(LimitReachedError):
            sweep(of_ring(stages=[3, 4]))


class TestResultsFile:
    def test_it_is_continued(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        where = Where(results=tmp_path / "ring.jsonl")
        first = sweep(of_ring(stages=[1, 2], how=[0, 1, 2]), where)
        computed = []
        judged = configuration._evaluate_program

        def counted(named: Any, *rest: Any) -> Configuration:
            computed.append(named)
            return judged(named, *rest)

        monkeypatch.setattr(configuration, "_evaluate_program", counted)
        again = sweep(of_ring(stages=[1, 2], how=[0, 1, 2]), where)
        assert (again, computed, again.reused) == (replace(first, reused=6), [], 6)
        more = sweep(of_ring(stages=[1, 2, 3], how=[0]), where)
        assert computed == [{"stages": 3, "how": 0}]
        assert more.configurations[:2] == (first.configurations[0], first.configurations[3])

    def test_a_line_that_was_cut_off_is_computed_again(self, tmp_path: Path) -> None:
        path = tmp_path / "ring.jsonl"
        whole = sweep(of_ring(stages=[1, 2]), Where(results=path))
        data = path.read_bytes()
        for cut in (1, 40, len(data) - data.rfind(b"\n", 0, -1) - 2):
            path.write_bytes(data[:-cut])
            report = sweep(of_ring(stages=[1, 2]), Where(results=path))
            assert report == replace(whole, reused=1)
            assert path.read_bytes() == data

    @pytest.mark.parametrize(
        ("damage", "said"),
        [
            (lambda data: data.replace(b'"cycles":', b'"cycles":1', 1), "line 2 is damaged"),
            (lambda data: b"\x00" * len(data), "it has no whole line"),
            (lambda data: b"not of pipesim\n", "line 1 is damaged"),
            (lambda data: signed(data, b'"version":2', b'"version":1'), "it is of version 1; this pipesim continues"),
            (lambda data: signed(data, b'"protocol":"ring"', b'"protocol":"r"'), "the protocol: r in the file"),
            (lambda data: signed(data, b'"format":"pipesim-sweep",', b""), 'its first line has no "format"'),
            (lambda data: signed(data, b'"USABLE"', b'"GOOD"'), "line 2 does not hold a configuration"),
        ],
    )
    def test_any_other_damage_is_an_error(self, tmp_path: Path, damage: Any, said: str) -> None:
        path = tmp_path / "ring.jsonl"
        whole = sweep(of_ring(stages=[1, 2]), Where(results=path))
        damaged = damage(path.read_bytes())
        path.write_bytes(damaged)
        with pytest.raises(ResultsFileError, match="cannot be continued") as caught:
            sweep(of_ring(stages=[1, 2]), Where(results=path))
        assert said in caught.value.cause
        assert path.read_bytes() == damaged, "what cannot be read is not touched"
        path.unlink()
        assert sweep(of_ring(stages=[1, 2]), Where(results=path)) == whole

    def test_another_question_is_not_continued(self, tmp_path: Path) -> None:
        path = tmp_path / "ring.jsonl"
        sweep(of_ring(stages=[1, 2]), Where(results=path))
        asked = of_ring(stages=[1, 2])
        slower = replace(H200, values=H200.values | {"wait.issue": 99})
        for other, said in (
            (replace(asked, fixed={"tiles": 4}), "the parameters with one value: none in the file, tiles=4 here"),
            (replace(asked, profile=load_profile("h100")), "the latency profile: h200 in the file, h100 here"),
            (replace(asked, profile=slower), "its latency profile had other values"),
            (replace(asked, profile=replace(H200, sm_khz=1)), "its latency profile had other values"),
            (replace(asked, prove=False), "whether each is proved (--no-proof): yes in the file, no here"),
            (replace(asked, max_states=99), "the limit --max-states: 20000 in the file, 99 here"),
            (replace(asked, max_steps=99), "the limit --max-steps: 2000000 in the file, 99 here"),
            (replace(asked, ctas=2), "the CTAs of the launch (--ctas): none in the file, 2 here"),
            (of_ring(stages=[1, 2], how=[0, 1]), "the swept parameters: stages in the file, how stages here"),
        ):
            with pytest.raises(ResultsFileError, match="cannot be continued") as caught:
                sweep(other, Where(results=path))
            assert caught.value.cause == said

    @pytest.mark.parametrize("rule", [Assumption.PROXIES, Assumption.TIME_OUTS])
    def test_a_proof_without_a_rule_is_not_one_with_it(self, tmp_path: Path, rule: Assumption) -> None:
        path = tmp_path / "ring.jsonl"
        asked = of_ring(stages=[1, 2])
        sweep(asked, Where(results=path))
        strict = replace(asked, target=asked.target.with_strictness(Strictness({rule})))
        with pytest.raises(ResultsFileError, match="cannot be continued") as caught:
            sweep(strict, Where(results=path))
        assert caught.value.cause == f"the optional rules: none in the file, {rule.switch} here"
        path.unlink()
        again = sweep(strict, Where(results=path))
        assert sweep(strict, Where(results=path)) == replace(again, reused=2)

    def test_an_edit_is_seen_in_every_configuration_that_it_changes(self, tmp_path: Path) -> None:
        """Also where the program of the default parameters, or of most configurations, stays as it was."""
        where = Where(results=tmp_path / "ring.jsonl")

        def edited(tiles: int, wrong: int) -> Sweep:
            def ring_(stages: int = 1, how: int = 0) -> Protocol:
                return ring(stages, wrong if stages == 2 and not how else how, tiles if stages == 3 else 12)

            return Sweep(target_of(ring_), {"stages": [1, 2, 3, 60], "how": [0, 2]}, {}, H200)

        sweep(edited(12, 0), where)
        assert sweep(edited(12, 0), where).reused == 8
        for change in (edited(20, 0), edited(20, 1)):
            alone, kept = sweep(change), sweep(change, where)
            assert (kept.configurations, kept.reused, kept.changed) == (alone.configurations, 7, 1)
        assert (kept.conclusion, sweep(change, where).changed) == (Conclusion.WRONG, 0)

    def test_two_sweeps_do_not_write_one_file(self, tmp_path: Path) -> None:
        path = tmp_path / "ring.jsonl"

        class Second:
            def compute(self, parts: Sequence[SweepPart], asked: Question, on_done: OnDone) -> None:
                with pytest.raises(ResultsFileError, match="is in use"):
                    sweep(of_ring(stages=[1, 2]), Where(results=path))

        sweep(of_ring(stages=[1, 2]), Where(results=path, cluster=Second()))


def signed(data: bytes, old: bytes, new: bytes) -> bytes:
    """The file with another text in it, and the checksums that it should have."""
    import zlib

    lines = []
    for line in data.replace(old, new, 1).splitlines():
        text = line[9:]
        lines.append(b"%08x " % zlib.crc32(text) + text + b"\n")
    return b"".join(lines)


class TestCluster:
    """What is sent where: a stand-in computes as a cluster does, in this process."""

    def test_a_file_of_the_users_travels_as_a_program_and_is_refused_here(self) -> None:
        sent: list[SweepPart] = []

        class Here:
            def compute(self, parts: Sequence[SweepPart], asked: Question, on_done: OnDone) -> None:
                sent.extend(parts)
                for part in reversed(parts):
                    on_done(part.params, carry_out(part, asked))

        asked = of_ring(stages=[1, 2], how=[0, 2])
        assert sweep(asked, Where(cluster=Here())) == sweep(asked)
        assert all(isinstance(part.subject, Program) for part in sent)
        assert [dict(part.params) for part in sent] == [{"stages": 1, "how": 0}, {"stages": 2, "how": 0}]

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore")  # those of other packages
    def test_dask(self) -> None:
        distributed = pytest.importorskip("distributed")
        from pipesim.answers.sweep.dask_cluster import DaskCluster

        asked = Sweep(find("producer_consumer"), {"stages": range(1, 4)}, {"tiles": 8}, H200)
        mine = of_ring(stages=[1, 2], how=[0, 1, 2])
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local:
            cluster = DaskCluster(local.scheduler_address)
            assert sweep(asked, Where(cluster=cluster)) == sweep(asked)
            assert sweep(mine, Where(cluster=cluster)) == sweep(mine)


class TestRank:
    @staticmethod
    def made(name: int, cycles: int, smem: int = 0, **more: Any) -> Configuration:
        times = Times(**({"cycles": cycles, "period_millicycles": None, "work": 100, "unit": WorkUnit.BYTES} | more))
        return Configuration({"n": name}, Outcome.USABLE, resources=Resources(smem, 32, 0), times=times)

    def names(self, found: Sequence[Configuration], metric: Metric) -> list[tuple[int, int | None]]:
        return [(each.configuration.params["n"], each.off_permille) for each in rank(found, metric)]

    def test_the_smallest_is_within_the_bound_and_no_further(self) -> None:
        found = [self.made(0, 1000, 9), self.made(1, 1010, 5), self.made(2, 1011, 1)]
        order = rank(found, Metric.RUN)
        chosen = [smallest(order, within) for within in (0, 10, 11)]
        assert [each.configuration.params["n"] for each in chosen if each] == [0, 1, 2]
        assert smallest((), 10) is None

    def test_the_metric_is_one_that_can_be_compared(self) -> None:
        steady = self.made(0, 100, period_millicycles=5, iterations=8)
        unrolled = self.made(1, 100, period_millicycles=10, iterations=4)
        refuted = replace(self.made(1, 50, work=101), state=Outcome.REFUTED)
        idle = self.made(2, 100, work=0)
        steady_idle, longer = (self.made(2, 100, work=0, period_millicycles=5, iterations=n) for n in (8, 16))
        for found, common, metric in (
            ([steady, steady], Comparable.PERIODS, Metric.PERIOD),
            ([steady, unrolled], Comparable.OTHER_ITERATIONS, Metric.RUN),
            ([steady, self.made(1, 50)], Comparable.NOT_STEADY, Metric.RUN),
            ([steady, self.made(1, 50, work=101)], Comparable.OTHER_WORK, Metric.THROUGHPUT),
            ([steady, self.made(1, 50, unit=WorkUnit.MATRIX)], Comparable.OTHER_WORK, Metric.THROUGHPUT),
            ([steady, refuted], Comparable.PERIODS, Metric.PERIOD),
            ([idle, idle], Comparable.NO_WORK, Metric.RUN),
            ([steady_idle, longer], Comparable.NO_WORK, Metric.RUN),
            ([steady_idle, steady_idle], Comparable.PERIODS, Metric.PERIOD),
        ):
            assert (comparable(found), METRIC[comparable(found)]) == (common, metric)

    @pytest.mark.slow
    def test_an_iteration_of_two_tiles_is_not_compared_with_one_of_one(self) -> None:
        """Both kernels do the same work, in runs of almost the same length."""
        fixed = {"tiles": 1, "k_iters": 64}
        report = sweep(Sweep(find("gemm_sm90"), {"k_group_size": (1, 2)}, fixed, H200, prove=False))
        times = [each.times for each in report.configurations if each.times is not None]
        assert [each.iterations for each in times] == [64, 32]
        periods = [each.period_millicycles or 0 for each in times]
        assert periods[1] > 1.9 * periods[0]
        assert (report.comparable, report.metric) == (Comparable.OTHER_ITERATIONS, Metric.RUN)
        assert max(each.off_permille or 0 for each in report.ranked) < 30

    @pytest.mark.slow
    def test_more_stages_do_not_make_other_iterations(self) -> None:
        """The twin."""
        report = sweep(Sweep(find("producer_consumer"), {"stages": (2, 3), "work": (0, 900)}, {}, H200, prove=False))
        assert (report.comparable, report.metric) == (Comparable.PERIODS, Metric.PERIOD)


class TestCommand:
    """How the best is run again."""

    @staticmethod
    def command(**more: Any) -> str:
        asked = Sweep(find("producer_consumer"), {"stages": (2,)}, {"tiles": 4}, H200, prove=False)
        return sweep(replace(asked, **more)).command


def test_a_launch_that_does_not_exist_is_one_error() -> None:
    for ctas in (0, -1, 2**40):
        with pytest.raises(ParameterError, match="a launch of"):
            sweep(replace(of_ring(stages=[1, 2]), ctas=ctas))
