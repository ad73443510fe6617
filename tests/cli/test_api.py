"""The Python API: the same as the commands, in a few calls."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipesim
from pipesim.conform.result import TraceVerdict
from pipesim.errors import ConfigurationError, ParameterError, UnknownProtocolError
from pipesim.model.ending import Ending


def test_from_a_name_to_a_verdict(recorded: Path, tmp_path: Path) -> None:
    program = pipesim.find("producer_consumer").build({"stages": 4})
    simulation = pipesim.simulate(program, pipesim.load_profile("h100"))
    assert simulation.outcome is Ending.FINISHED
    trace = pipesim.read_trace(recorded)
    comparison = pipesim.compare(program, trace)
    assert comparison.conformance.verdict is TraceVerdict.AGREES
    pipesim.write_trace(simulation.trace, tmp_path / "t.parquet")
    assert pipesim.read_trace(tmp_path / "t.parquet") == simulation.trace
    assert pipesim.compare(program, simulation.trace).conformance.verdict is TraceVerdict.AGREES


def test_a_protocol_of_ones_own() -> None:
    p = pipesim.Protocol("mine")

    @p.role("worker")
    def worker(w: pipesim.Warp) -> None:
        w.work(100)

    program = p.flatten()
    assert pipesim.simulate(program, pipesim.load_profile("h200")).outcome is Ending.FINISHED


def test_errors_are_those_of_the_commands() -> None:
    with pytest.raises(UnknownProtocolError, match="did you mean producer_consumer"):
        pipesim.find("producer-consumer")
    target = pipesim.find("producer_consumer")
    with pytest.raises(ParameterError, match="did you mean stages"):
        target.build({"stage": 4})
    with pytest.raises(ParameterError, match="takes a whole number, not '4'"):
        target.build({"stages": "4"})  # type: ignore[dict-item]
    with pytest.raises(ParameterError, match="a launch of True CTAs"):
        target.build(grid=True)
    with pytest.raises(ConfigurationError, match="shared memory"):
        target.build({"stages": 32})


def test_the_defaults_are_those_of_the_function() -> None:
    target = pipesim.find("producer_consumer")
    assert target.build().params == target.defaults
    assert list(target.defaults) == ["stages", "tiles", "tile_bytes", "consumer_warps", "work", "arrive_lanes"]
    assert target.build(grid=7).grid == 7
