"""Tables made from protocols: those of the repository are what their protocols say, and every expression is checked."""

import pytest

from hwkernels.source_recorder.record_format import MAX_SITES
from hwkernels.source_recorder.table import read_table
from hwkernels.source_recorder.table_file import Variant, fixed_macros, table_text, variants_of
from hwkernels.twins import REGISTRY
from pipesim.errors import ConfigurationError, ParameterError
from pipesim.targets import find
from pipesim.trace.schema import AgentInfo, BarrierGroup, EventKind, Site
from pipesim.trace.sites import SiteTable, site_table
from tools.tables import text_of


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("name", REGISTRY)
def test_the_files_are_what_their_protocols_say(name):
    twin = REGISTRY[name]
    assert twin.table_file.read_text(encoding="utf-8") == text_of(twin), "run python tools/update_golden.py tables"


def build(params):
    return find("producer_consumer").build(dict(params))


def upper(params):
    return {name.upper(): value for name, value in params.items()}


@pytest.mark.slow
def test_other_values_are_looked_for_until_a_protocol_has_them():
    defaults = find("producer_consumer").defaults
    variants = variants_of(build, upper, defaults, tuple(defaults))
    assert {variant.values["ARRIVE_LANES"] for variant in variants} == {1, 32}
    assert fixed_macros(variants) == {}
    assert "PIPESIM_BARRIER(empty, STAGES, CONSUMER_WARPS * ARRIVE_LANES)\n" in table_text(variants)
    alone = variants_of(build, upper, defaults, ("stages",))
    assert fixed_macros(alone) == {name: value for name, value in upper(defaults).items() if name != "STAGES"}
    with pytest.raises(ParameterError):
        variants_of(lambda _: build({"stages": -1}), upper, defaults, ())


@pytest.mark.slow
def test_a_table_reads_back_for_other_values_than_it_was_made_from(tmp_path):
    defaults = find("producer_consumer").defaults
    path = tmp_path / "made.table.h"
    path.write_text(table_text(variants_of(build, upper, defaults, tuple(defaults))))
    for changes in ({}, {"stages": 7, "consumer_warps": 5, "arrive_lanes": 32}, {"consumer_warps": 8}):
        table, known = read_table(path, upper(defaults | changes)), site_table(build(defaults | changes))
        assert (table.agents, table.barriers) == (known.agents, known.barriers)
        assert [(s.role, s.kind, s.barrier) for s in table.sites] == [(s.role, s.kind, s.barrier) for s in known.sites]


def a_table(warps: int = 1, stages: int = 2, sites: int = 2, first: int = 0) -> SiteTable:
    found = [Site("", "load", EventKind(n % 8), "" if n < 8 else f"b{n // 8}") for n in range(sites)]
    groups = [BarrierGroup("full.x", stages, 1), *(BarrierGroup(f"b{n}", 1, 1) for n in range(1, sites // 8 + 1))]
    agents = tuple(AgentInfo("load", index, first + index) for index in range(warps))
    return SiteTable(tuple(found), tuple(groups), agents, ())


def test_more_sites_than_a_record_can_name():
    assert table_text([Variant({}, a_table(sites=MAX_SITES))]).count("_SITE(") == MAX_SITES
    with pytest.raises(ConfigurationError, match="64 sites; a record can name 63"):
        table_text([Variant({}, a_table(sites=MAX_SITES + 1))])
