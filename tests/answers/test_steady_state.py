"""Of what a period is: of an iteration of every role, or of one role that handles several items in each."""

import pytest

from pipesim.answers.run import iteration_of, run
from pipesim.targets import find
from pipesim.timed.profile import load_profile


@pytest.mark.parametrize(
    ("name", "params", "of"),
    [
        ("cutlass_sm90_pingpong", {"tiles": 40}, "consumer1, 2 of load"),
        ("cutlass_sm90_pingpong", {"tiles": 41}, ""),  # one consumer has a tile more: 41 are no multiple of 20
        ("cutlass_sm90_cooperative", {"tiles": 12}, ""),
        ("producer_consumer", {}, ""),
    ],
)
def test_whose_iteration_a_period_is(name: str, params: dict[str, int], of: str) -> None:
    assert iteration_of(find(name).build(params)) == of


@pytest.mark.slow
def test_the_report_says_so() -> None:
    """The twin: one tile for each role is no iteration of a loop of several."""
    h200 = load_profile("h200")
    line = run(find("cutlass_sm90_pingpong").build({"tiles": 24}), h200).simulation
    assert (line.period_of, line.period_millicycles is not None) == ("consumer1, 2 of load", True)
    assert run(find("cutlass_sm90_pingpong").build({"tiles": 2}), h200).simulation.period_of == ""
