"""A fit finds the constants that recordings were made with, and says which of them the recordings do not determine."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from pipesim.conform.fit.observation import RunObservation, observe
from pipesim.conform.fit.problem import FitProblem
from pipesim.conform.fit.propose import propose
from pipesim.conform.fit.solve import fit_profile
from pipesim.conform.fit.values import ValueState
from pipesim.conform.quantities import QuantityKind, QuantityName
from pipesim.targets import find
from pipesim.timed.profile import Profile, load_profile
from tests.support.synthetic import synthetic

BASE = load_profile("h200")
TRUE = {"copy.latency": 310, "read.bytes_per_kcycle": 60_000, "copy.issue": 150, "work.issue": 40}
RINGS = ((1, 1024, 0), (1, 16384, 30), (2, 7168, 150), (4, 2048, 0), (4, 24576, 0))


def ring(stages: int, tile_bytes: int, work: int) -> dict[str, int]:
    return {"stages": stages, "tiles": 10, "tile_bytes": tile_bytes, "consumer_warps": 1, "work": work}


def observations(device: Profile, rings: Iterable[tuple[int, int, int]]) -> list[RunObservation]:
    found = [
        observe(str(n), *synthetic("producer_consumer", ring(*each), device, seed=n, works=False), BASE)
        for n, each in enumerate(rings)
    ]
    return [each for each in found if each is not None]


def device(**changed: int) -> Profile:
    return replace(BASE, values=BASE.values | changed)


@pytest.mark.long
def test_known_constants_are_recovered() -> None:
    problem = FitProblem(observations(device(**TRUE), RINGS), BASE, frozenset(TRUE))
    fit = fit_profile(problem)
    for each in fit.values:
        assert each.state is ValueState.FITTED
        assert each.half_width is not None
        off = abs(each.value - TRUE[each.name])
        assert off <= max(1.5 * each.half_width, 0.03 * TRUE[each.name]), each
        assert off < 0.3 * abs(each.base - TRUE[each.name]), each
    before, after = (max(max(abs(each)) for each in off) for off in (fit.before, fit.after))
    assert after < 2 < 5 < before


@pytest.mark.slow
def test_what_the_recordings_do_not_determine_keeps_its_value() -> None:
    """One ring of one size: latency and rate of a copy only together; no CTA beside it: no loaded latency."""
    names = frozenset({"copy.latency", "wait.wake_up", "copy.latency_loaded", "read.issue", "read.bytes_per_kcycle"})
    fit = fit_profile(FitProblem(observations(device(**TRUE), RINGS[:1]), BASE, names))
    found = {each.name: each for each in fit.values}
    assert found["copy.latency_loaded"].half_width is None
    fitted = {each.name for each in fit.values if each.state is ValueState.FITTED}
    assert "copy.latency_loaded" not in fitted
    assert not {"copy.latency", "wait.wake_up"} <= fitted
    assert not {"read.issue", "read.bytes_per_kcycle"} <= fitted
    for each in fit.values:
        if each.name not in fitted:
            assert each.value == each.base == fit.profile.values[each.name]


def test_the_capture_that_determines_a_value_is_proposed() -> None:
    """Tiles of 256 bytes say nothing of the rate of copies: large ones do, and the same ones again do not."""
    small = (1, 256, 0)
    problem = FitProblem(observations(BASE, [small]), BASE, frozenset({"copy.latency", "copy.bytes_per_kcycle"}))
    candidates = [
        (label, replace(find("producer_consumer").build(ring(*shape)), work=()))
        for label, shape in (("same", small), ("large", (1, 24576, 0)))
    ]
    chosen, never = propose(problem, ["copy.bytes_per_kcycle", "copy.latency_loaded"], candidates, BASE)
    assert [each.label for each in chosen] == ["large"]
    assert chosen[0].determines == ("copy.bytes_per_kcycle",)
    assert never == ("copy.latency_loaded",)


def test_a_value_that_the_profile_lacks_is_fitted_with_what_is_taken_for_it() -> None:
    (only,) = observations(BASE, RINGS[:1])
    problem = FitProblem([only], BASE)
    assert {name: value for name, value in problem.start.items() if "/" not in name}.items() <= BASE.values.items()
    assert problem.profile(["new/work.cycles"], [7.0]).values["new/work.cycles"] == 7  # type: ignore[arg-type]


def test_a_recording_has_its_period_its_run_its_waits_and_its_segments() -> None:
    (only,) = observations(BASE, RINGS[:1])
    assert {name.kind for name in only.names} == set(QuantityKind)
    assert all(sigma > 0 for sigma in only.sigma)
    assert abs(only.deviations(BASE)).max() < 3
    assert abs(only.deviations(device(**TRUE))).max() > 3
    run = QuantityName(QuantityKind.RUN)
    assert only.relative(run, 1.0) == pytest.approx(0.01, abs=0.003)
