"""Which program a trace is of is decided once: diff, diff A B, verify and pipesim.compare refuse the same traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pipesim
from pipesim.answers.pair import compare_pair
from pipesim.errors import EvidenceError
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.schema import Trace

Call = Callable[..., Any]
PC = "producer_consumer"


def without(params: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in params.items() if name != "work"}


def with_more(params: Mapping[str, int]) -> dict[str, int]:
    return {**params, "old": 1}


@pytest.fixture(
    params=[(without, "only the protocol has work"), (with_more, "only the trace has old")], ids=["lacks", "has more"]
)
def odd(request: pytest.FixtureRequest, good: Trace) -> tuple[Path, str]:
    """A recording with other parameters than the protocol has, alone in its folder, and what every command says."""
    change, only = request.param
    path = Path("mine", "h100", "odd.parquet")
    write_trace(Trace(replace(good.meta, params=change(good.meta.params)), good.events), path)
    return path, f"the trace was recorded with other parameters: {only}"


def test_diff_refuses_it(call: Call, odd: tuple[Path, str]) -> None:
    path, fact = odd
    answer = call("diff", path)
    assert (answer.code, answer.out) == (3, "")
    assert answer.error[:2] == [f"pipesim: {fact}", f"  at: {path}"]
    assert answer.error[-1].startswith("  try: record it again, or name the protocol")


def test_compare_refuses_it(odd: tuple[Path, str]) -> None:
    with pytest.raises(EvidenceError) as raised:
        pipesim.compare(odd[0])
    assert (raised.value.fact, raised.value.place) == (odd[1], str(odd[0]))


def test_diff_of_two_compares_neither_with_the_protocol(call: Call, recorded: Path, odd: tuple[Path, str]) -> None:
    path, fact = odd
    out = " ".join(call("diff", recorded, path).out.split())
    assert out.count("conform") == 1  # A only
    assert f"not compared with {PC}: {fact}" in out
    side = compare_pair(read_trace(path), read_trace(path)).b
    assert isinstance(side.refused, EvidenceError)


def test_verify_of_several_cannot_use_it(call: Call, ring: str, odd: tuple[Path, str]) -> None:
    answer = call("verify", PC, ring, "--traces", "mine", "--jobs", "1")
    assert answer.code == 3
    assert odd[1] in " ".join(answer.out.split())


def test_a_protocol_that_is_named_takes_the_parameters_that_it_has(call: Call, odd: tuple[Path, str]) -> None:
    """The twin: whoever names the protocol has chosen it."""
    assert call("diff", odd[0], "--protocol", PC).code == 0
    assert pipesim.compare(PC, odd[0]).ok


def test_a_value_that_is_given_is_not_missing(call: Call, good: Trace) -> None:
    write_trace(Trace(replace(good.meta, params=without(good.meta.params)), good.events), "t.parquet")
    assert call("diff", "t.parquet", "-p", f"work={good.meta.params['work']}").code == 0
    assert pipesim.compare("t.parquet", work=good.meta.params["work"]).ok
