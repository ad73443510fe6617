"""``pipesim calibrate --kernel``: the work of a kernel read from PTX, as a recording shows it."""

import pytest

from pipesim.conform.compare import compare
from pipesim.conform.fit.segments import measured_works, with_measured
from pipesim.conform.recorded_kernel import recorded_kernel
from pipesim.conform.timing import TRACED_PERIOD
from pipesim.ptx.kernel import read_kernel
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.timed.work import OVERHEAD, SCALE
from pipesim.trace.files import read_trace
from pipesim.trace.sites import optional_of
from tests.support.fixture_types import Call
from tests.support.paths import TRACES

FOLDER = TRACES / "h200" / "ptx"
NAME = "triton-gemm_tma_w4_s3"
H200 = load_profile("h200")


@pytest.mark.slow
def test_a_profile_is_written_and_simulated_with(call: Call) -> None:
    ptx, trace = str(FOLDER / f"{NAME}.ptx"), str(FOLDER / f"{NAME}.parquet")
    answer = call("calibrate", trace, "--kernel", ptx, "--out", "mine.json")
    assert (answer.code, answer.err) == (0, "")
    assert "the rest     is that of h200, or an estimate from instructions" in answer.out
    profile = load_profile("mine.json")
    new = profile.values.keys() - H200.values.keys()
    assert {profile.how[name] for name in new} == {"measured"}
    assert all(profile[name] == 0 for name in new if name.endswith(SCALE))
    said = " ".join(answer.out.split())
    assert "period, traced 1 9." in said
    assert "whole run, traced 1 " in said
    before, after = (period_off(call, trace, ptx, name) for name in ("h200", "mine.json"))
    assert abs(after) < 0.02 < 0.05 < abs(before)


def period_off(call: Call, trace: str, ptx: str, profile: str) -> float:
    """How far the simulated period is off, as a part of the recorded one."""
    (found,) = call("diff", trace, "--protocol", ptx, "--profile", profile, "--json").json["report"]["hardware"]
    figure = next(each for each in found["timing"]["figures"] if each["name"] == TRACED_PERIOD)
    return float(figure["simulated"] - figure["measured"]) / float(figure["measured"])


@pytest.mark.slow
def test_known_lengths_of_work_are_found_again() -> None:
    """A trace that was simulated with other lengths: each work that is alone in its segments is found to the cycle."""
    read = read_kernel(FOLDER / f"{NAME}.ptx")
    recorded = read_trace(FOLDER / f"{NAME}.parquet")
    kernel = recorded_kernel(read.timed, read.places, recorded, read.by_line)
    names = [each.name for each in measured_works(kernel.program, kernel.trace, H200)[1:]]
    lengths = {name: 40 + 7 * at if at % 3 else 0 for at, name in enumerate(names)}  # what is short shows a record
    values = dict(H200.values)
    for name, cycles in lengths.items():
        values |= {name + OVERHEAD: cycles, name + SCALE: 0}
    values["gemm_tma/record" + OVERHEAD] = 11
    other = type(H200)(**{**vars(H200), "values": values})
    made = simulate(kernel.program, other, traced=True, also=optional_of(recorded.meta)).trace
    found = {each.name: each.cycles for each in measured_works(kernel.program, made, H200)}
    alone = {name for name in lengths if name in found and abs(found[name] - lengths[name]) <= 1}
    assert len(alone) >= 0.8 * len(lengths)
    again = with_measured(H200, measured_works(kernel.program, made, H200))
    first = next(f for f in compare(kernel.program, made, again).timing.figures if f.name == "whole run, traced")  # type: ignore[union-attr]
    assert first.simulated is not None
    assert first.measured is not None
    assert abs(first.simulated - first.measured) < 0.03 * first.measured


@pytest.mark.slow
def test_what_cannot_be_measured(call: Call) -> None:
    hangs = str(FOLDER / "triton-gemm_tma_w8_s4-hangs.parquet")
    answer = call("calibrate", hangs, "--kernel", hangs.replace("parquet", "ptx"))
    assert (answer.code, answer.out) == (3, "")
    assert "the trace is not a finished run of gemm_tma" in " ".join(answer.err.split())
