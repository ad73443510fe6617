"""CUTLASS's pipelines of SM100: commits in place of arrivals, their masks in a cluster, and a pair of CTAs."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.model.ops import Operation
from pipesim.pipelines import (
    AsyncParams,
    PipelineState,
    PipelineTmaUmmaAsync,
    PipelineUmmaAsync,
    TmaParams,
)
from tests.pipelines.structs import arrive, commit, role_code

Shape = tuple[int, int]
Body = Callable[[Any, PipelineState], Any]
PAIR: Shape = (2, 1)


def recorded(make: Callable[[Any], Any], body: Body, cluster: int = 1) -> list[list[Operation]]:
    """What each CTA's role records at stage 1, phase 0, of two; full[1] is barrier 4c + 1, empty[1] is 4c + 3."""
    p = Protocol("umma", cluster=cluster)
    storage = p.mbarriers("pipe", 4, count=1)
    p.role("r")(lambda _: body(make(storage), PipelineState(2, 1, 0, 1)) and None)
    program = p.flatten()
    return [role_code(program, cta) for cta in range(cluster)]


@pytest.mark.parametrize("kind", [PipelineTmaUmmaAsync, PipelineUmmaAsync])
def test_a_cluster_of_three_holds_no_pairs(kind: Any) -> None:
    params = TmaParams() if kind is PipelineTmaUmmaAsync else AsyncParams()
    with pytest.raises(ProtocolError, match=r"multiply together as \(2, 1\) in a cluster of \(3, 1\)"):
        recorded(lambda s: kind(s, 2, params, (3, 1), PAIR), lambda p, s: None, 3)


# MMA to threads, and back


def test_in_a_pair_the_commit_reaches_both_ctas_and_both_arrive_in_the_leader() -> None:
    def make(storage: Any) -> PipelineUmmaAsync:
        return PipelineUmmaAsync(storage, 2, AsyncParams(1, 256), (4, 1), PAIR)

    assert recorded(make, lambda p, s: p.producer_commit(s), 4) == [
        [commit(1, 0b0011)], [commit(5, 0b0011)], [commit(9, 0b1100)], [commit(13, 0b1100)],
    ]  # fmt: skip
    assert recorded(make, lambda p, s: p.consumer_release(s), 4) == [
        [arrive(3)], [arrive(3)], [arrive(11)], [arrive(11)],
    ]  # fmt: skip
