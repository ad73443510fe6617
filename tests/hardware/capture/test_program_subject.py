"""A flat program as the subject of a capture: its launch, its table, what it refuses; without a GPU."""

from dataclasses import replace

import pytest

from hwkernels.capture import CaptureRequest
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.interpreter.chip import compile_interpreter
from hwkernels.twins.buffers import Input, Output
from pipesim.answers.evidence import interpreted_request
from pipesim.errors import ConfigurationError, ParameterError, UsageError
from pipesim.targets import find
from pipesim.trace.sites import site_table
from tests.support.small_programs import build


def request(name: str, **params: int) -> CaptureRequest:
    return interpreted_request(find(name).build(params))


@pytest.mark.parametrize("name", ["producer_consumer", "gemm_sm90", "cutlass_sm90_pingpong", "cluster_multicast"])
def test_the_launch_of_a_described_protocol(name: str) -> None:
    asked = request(name)
    check_request(asked)
    laid, program = plan(asked), asked.subject.program  # type: ignore[attr-defined]
    known = site_table(program)
    assert (laid.table.agents, laid.table.barriers) == (known.agents, known.barriers)
    assert laid.shape.block == (32 * (max(agent.warp for agent in program.agents) + 2),)  # the watchdog's warp
    assert (laid.memory, laid.shape.cluster) == ("device", program.ctas)
    ends = next(a for a in asked.subject.kernel_arguments(asked) if isinstance(a, Output))
    told = ends.expected[ends.expected[:, 1] == 1]
    assert sorted(told[:, 0]) == sorted(len(code) for code in program.code)


def test_a_grid_is_so_many_runs() -> None:
    asked = interpreted_request(find("producer_consumer").build({}, grid=3))
    jobs = asked.subject.kernel_arguments(asked)[0]
    assert isinstance(jobs, Input)
    assert (len(jobs.data), len(set(jobs.data["sync"].tolist()))) == (3, 3)
    assert plan(asked).shape.grid == (3,)


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("records", [False, True])
def test_the_interpreter_compiles(records: bool) -> None:
    compiled = compile_interpreter(records=records)
    assert compiled.entry == "interpreter"
    assert "error" not in compiled.log


@pytest.mark.parametrize(
    ("change", "error", "fact"),
    [
        ({"window": (0, 2)}, UsageError, "--window has no effect where a program is interpreted"),
        ({"encoding": "full"}, UsageError, "--encoding has no effect"),
        ({"memory": "shared"}, UsageError, "--memory has no effect"),
        ({"clock": "globaltimer"}, ParameterError, "is recorded with the SM's clock"),
        ({"deadline_ms": 2001}, ParameterError, "deadline_ms = 2001 is out of range"),
    ],
)
def test_what_only_kernels_have(change: dict[str, object], error: type[Exception], fact: str) -> None:
    with pytest.raises(error, match=fact):
        check_request(replace(request("producer_consumer"), **change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("CLUSTER_ARRIVE; CLUSTER_WAIT", "one CTA waits at the barrier of a cluster"),
        ("TRY_WAIT register=0; JUMP_IF register=0 value=1 skip=1; WORK", "it decides by the result of a try"),
        ("COMMIT engine=TCGEN05 barrier=0", "it uses tcgen05"),
    ],
)
def test_a_program_that_cannot_be_recorded_says_why(code: str, cause: str) -> None:
    asked = interpreted_request(build(code))
    with pytest.raises(ConfigurationError, match="story cannot be run by the interpreter") as caught:
        check_request(asked)
    assert caught.value.cause.startswith(cause)
    assert "docs/own-kernel.md" in caught.value.correction
