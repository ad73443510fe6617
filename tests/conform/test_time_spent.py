"""Where the time goes, by names from the program: every cycle has one row, the rows are those of the operations."""

import numpy as np
import pytest

from pipesim.answers.run import inner_period, run
from pipesim.conform.steady import time_spent
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import OPTIONAL, Trace
from pipesim.trace.sites import optional_sites

H200 = load_profile("h200")


def whole(program: Program) -> Trace:
    return simulate(program, H200, also=optional_sites(program)).trace


def rows(program: Program, trace: Trace, agent: str) -> dict[str, int]:
    return {what: share for (name, what), share in time_spent(program, trace).items() if name == agent}


@pytest.mark.parametrize("name", ["attention_sm90", "epilogue_residual", "gemm_sm90", "producer_consumer"])
def test_no_time_of_any_agent_is_left_over(name: str) -> None:
    program = find(name).build()
    shares = time_spent(program, whole(program))
    assert "everything else" not in {what for _, what in shares}
    for agent in {agent for agent, _ in shares}:
        assert abs(sum(share for (of, _), share in shares.items() if of == agent) - 1000) <= len(shares)


def test_what_is_not_recorded_is_part_of_a_row_that_says_so() -> None:
    program = find("gemm_sm90").build()
    consumer = rows(program, simulate(program, H200).trace, "consumer/0")
    assert list(consumer) == ["issue", "waiting for full", "issue and wgmma groups", "tile reads and writes", "work",
                              "issue and bulk groups"]  # fmt: skip


@pytest.mark.sampled(3, 5)
@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_without_the_optional_sites_it_is_the_trace_that_never_had_them(name: str) -> None:
    program = find(name).build()
    with_them, plain = whole(program), simulate(program, H200).trace
    found = with_them.without(OPTIONAL)
    assert found.meta == plain.meta
    order = [np.lexsort((t.events.site, t.events.agent, t.events.cta, t.events.cycle)) for t in (found, plain)]
    assert found.events.select(order[0]) == plain.events.select(order[1])


class TestPeriods:
    @pytest.mark.slow
    def test_it_is_the_steady_pace_of_that_loop(self) -> None:
        """With many more iterations it is the same within the ends of its window."""
        short, long = (find("gemm_sm90").build({"k_iters": k}) for k in (16, 64))
        found = [inner_period(program, simulate(program, H200).trace) for program in (short, long)]
        assert found[0] is not None
        assert found[1] is not None
        assert abs(found[0][0] - found[1][0]) < 0.02 * found[1][0]

    @pytest.mark.sampled(3, 5)
    @pytest.mark.parametrize("name", sorted(BUILT_IN))
    def test_every_run_has_each_or_the_reason(self, name: str) -> None:
        line = run(find(name).build(), H200).simulation
        assert (line.period_millicycles is None and line.steady) == (line.no_period is not None)
        assert (line.bound_by == "") == (line.no_bound is not None)
