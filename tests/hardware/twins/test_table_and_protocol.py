"""The table that the kernel includes says what the protocol says: nothing is typed twice, and nothing drifts apart."""

import itertools

import pytest

from hwkernels.source_recorder.table import read_table
from hwkernels.twins.hopper.producer_consumer import PRODUCER_CONSUMER, defines
from pipesim.targets import find
from pipesim.trace.sites import site_table

GRID = list(itertools.product((1, 4, 32), (16, 4096), (1, 2, 8), (1, 32)))


@pytest.mark.parametrize(("stages", "tile_bytes", "consumer_warps", "arrive_lanes"), GRID)
def test_roles_barriers_counts_and_sites_agree(stages, tile_bytes, consumer_warps, arrive_lanes):
    params = {
        "stages": stages, "tile_bytes": tile_bytes, "consumer_warps": consumer_warps, "arrive_lanes": arrive_lanes,
        "tiles": 2,
    }  # fmt: skip
    kernel = read_table(PRODUCER_CONSUMER.table_file, defines(params))
    protocol = site_table(find("producer_consumer").build(params))
    assert kernel.agents == protocol.agents
    assert kernel.barriers == protocol.barriers
    assert [(s.role, s.kind, s.barrier) for s in kernel.sites] == [(s.role, s.kind, s.barrier) for s in protocol.sites]


@pytest.mark.parametrize("wrong", ["consumer_warps", "arrive_lanes", "stages"])
def test_a_kernel_built_with_another_value_would_be_seen(wrong):
    params = {"stages": 4, "tile_bytes": 4096, "consumer_warps": 2, "arrive_lanes": 1, "tiles": 2}
    other = params | {wrong: 8 if wrong != "arrive_lanes" else 32}
    kernel = read_table(PRODUCER_CONSUMER.table_file, defines(other))
    protocol = site_table(find("producer_consumer").build(params))
    assert (kernel.agents, kernel.barriers) != (protocol.agents, protocol.barriers)
