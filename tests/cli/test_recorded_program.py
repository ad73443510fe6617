"""Which program a trace is of is decided once: diff, diff A B, verify and pipesim.compare refuse the same traces."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pipesim
from pipesim.answers.compare import compare_pair
from pipesim.answers.recorded_program import most_operations
from pipesim.bounds import MAX_OPERATIONS, OPERATIONS_A_RECORD, SPARE_OPERATIONS
from pipesim.errors import EvidenceError, TooManyOperationsError
from pipesim.model.ending import Ending
from pipesim.targets import find, target_of
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.schema import Trace
from tests.support.fixture_types import Call

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


def test_diff_of_two_compares_neither_with_the_protocol(call: Call, recorded: Path, odd: tuple[Path, str]) -> None:
    path, fact = odd
    out = " ".join(call("diff", recorded, path).out.split())
    assert out.count("conform") == 1  # A only
    assert f"not compared with {PC}: {fact}" in out
    side = compare_pair(read_trace(path), read_trace(path)).b
    assert isinstance(side.refused, EvidenceError)


@pytest.mark.sampled(0, 1)
def test_verify_of_several_cannot_use_it(call: Call, ring: str, odd: tuple[Path, str]) -> None:
    answer = call("verify", PC, ring, "--traces", "mine", "--jobs", "1")
    assert answer.code == 3
    assert odd[1] in " ".join(answer.out.split())


@pytest.mark.sampled(1)
def test_a_protocol_that_is_named_takes_the_parameters_that_it_has(call: Call, odd: tuple[Path, str]) -> None:
    """The twin: whoever names the protocol has chosen it."""
    assert call("diff", odd[0], "--protocol", PC).code == 0
    assert pipesim.compare(PC, odd[0]).ok


def test_a_trace_makes_nobody_run_a_file(call: Call, user: Callable[[str], None]) -> None:
    user(
        "from pathlib import Path\nPath('it_ran').touch()\nfrom pipesim import Protocol\ndef f():\n"
        "    p = Protocol('mine.py:f')\n    @p.role('r')\n    def r(w):\n        w.work(1)\n    return p\n"
    )
    call("run", "mine.py:f", "--save-trace", "t.parquet")
    Path("it_ran").unlink()
    answer = call("diff", "t.parquet")
    said = "pipesim: the trace is of protocol mine.py:f, which is not built in"
    assert (answer.code, answer.out, answer.error[0]) == (2, "", said)
    assert not Path("it_ran").exists()


class TestSizes:
    """A program for a trace is never larger than its records allow: a small file does not make a large program."""

    LARGE = 1_000_000

    @pytest.fixture
    def large(self, good: Trace) -> Path:
        """A recording whose parameters say another number of tiles than it has."""
        path = Path("mine", "h100", "large.parquet")
        write_trace(Trace(replace(good.meta, params={**good.meta.params, "tiles": self.LARGE}), good.events), path)
        return path

    def refuses(self, answer: Any, path: Path) -> None:
        most = SPARE_OPERATIONS + OPERATIONS_A_RECORD * len(read_trace(path).events)
        too_large = f"the program of these parameters has more than {most:,} operations"
        assert answer.code == 3
        assert answer.error == [
            f"pipesim: {too_large}, which the trace is too short for",
            f"  at: {path}",
            "  probable cause: the parameters are not those of the recording",
            "  try: record it again, or give the parameters with -p NAME=VALUE",
        ]

    @pytest.mark.slow
    def test_diff(self, call: Call, large: Path) -> None:
        self.refuses(call("diff", large), large)
        assert call("diff", large, "-p", "tiles=64").code == 0

    def test_a_run_that_hung_or_was_cut_may_be_of_any_program(self, good: Trace) -> None:
        meta, records = good.meta, len(good.events)
        header = meta.ctas[0]
        whole = SPARE_OPERATIONS + OPERATIONS_A_RECORD * records
        assert most_operations(meta, records) == most_operations(meta) == whole
        assert most_operations(meta, 10**9) == MAX_OPERATIONS
        lost = replace(header, dropped=(1,) * len(meta.agents))
        for other in (
            replace(meta, status=Ending.DEADLINE),
            replace(meta, status=Ending.UNKNOWN),
            replace(meta, window=(2, 4)),
            replace(meta, ctas=(lost,)),
        ):
            assert most_operations(other, records) == MAX_OPERATIONS
        assert most_operations(replace(meta, ctas=())) == MAX_OPERATIONS  # nobody says how many records there are
        assert most_operations(replace(meta, ctas=()), 10) == SPARE_OPERATIONS + 10 * OPERATIONS_A_RECORD

    def test_a_program_that_is_ready_is_compared_with_the_same_bound(self, good: Trace) -> None:
        target = target_of(find(PC).build({"tiles": 64}))
        assert target.build(most=1000) is not None
        with pytest.raises(TooManyOperationsError, match="has more than 10 operations"):
            target.build(most=10)
