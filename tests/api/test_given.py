"""Whatever a public function is given: it is understood, or the error has fact, cause and correction."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipesim
from pipesim.errors import ParameterError, PipesimError, UsageError
from pipesim.model.program_json import dumps
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.protocols.hopper.producer_consumer import producer_consumer
from pipesim.trace.library import trace_folder

ROOT = Path(__file__).resolve().parents[2]
RECORDED = trace_folder() / "h100" / "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


def ring(stages: int = 2, tiles: int = 3) -> pipesim.Protocol:
    p = pipesim.Protocol("ring")
    bars = p.mbarriers("pipe", 2 * stages, count=1)

    @p.role("load")
    def load(w: pipesim.Warp) -> None:
        pipe = ProducerConsumerPipeline(bars, stages)
        with w.elect_one():
            for _ in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().arrive()

    @p.role("use")
    def use(w: pipesim.Warp) -> None:
        pipe = ProducerConsumerPipeline(bars, stages)
        with w.elect_one():
            for _ in w.loop(tiles, "tiles"):
                with pipe.consume():
                    w.work(10)

    return p


@pytest.mark.slow
def test_every_way_to_name_a_protocol(tmp_path: Path) -> None:
    program = producer_consumer(tiles=4).flatten({"tiles": 4})
    saved = tmp_path / "program.json"
    saved.write_text(dumps(program), encoding="utf-8")
    example = ROOT / "docs" / "examples" / "ring.py"
    given: list[Any] = [ring, ring(), ring().flatten(), "producer_consumer", pipesim.find("producer_consumer")]
    given += [program, str(saved), saved, f"{example}:ring", Path(f"{example}:ring")]
    for x in given:
        assert pipesim.show(x).svg(), x
    for x in (given[0], given[-1]):
        assert pipesim.check(x).ok, x
        assert pipesim.simulate(x).ok, x


def test_parameters_are_keywords_and_whole_numbers_of_any_kind() -> None:
    assert pipesim.check(ring, stages=np.int64(3), tiles=4).program.params == {"stages": 3, "tiles": 4}  # type: ignore[arg-type]
    assert pipesim.simulate("producer_consumer", tiles=2, ctas=3).trace.meta.grid == 3


KERNEL = str(ROOT / "docs" / "examples" / "row_max.ptx")


@pytest.mark.parametrize(
    ("words", "params"),
    [({"launch": f"{KERNEL[:-3]}json"}, (8, 1280)), ({"set": {"n": 2048, 16: 2}}, (2, 2048)), ({}, (8, 1280))],
)
def test_a_kernel_is_read_in_the_launch_that_the_keywords_give(words: dict[str, Any], params: tuple[int, int]) -> None:
    """As the command reads it with the same options: every function takes them."""
    from pipesim.targets import find

    rows, n = params
    asked = find(KERNEL, sets=[f"rows={rows}", f"n={n}"]).build()
    assert pipesim.show(Path(KERNEL), **words).data == pipesim.show(asked).data
    found = pipesim.check(KERNEL, quick=True, **words)
    assert (found.program.code, found.ok) == (asked.code, n == 2048)


@pytest.mark.parametrize(
    ("x", "words", "said"),
    [
        (ring, {"set": {"n": 3}}, ["set is given, but no kernel's PTX", 'the path of a .ptx file: "kernel.ptx"']),
        (pipesim.find("producer_consumer"), {"launch": "x.json"}, ["launch is given, but no kernel's PTX"]),
        ("producer_consumer", {"box": {"a": (4, 4)}}, ["takes no words or boxes of parameters"]),
        (KERNEL, {"set": {"m": 3}}, ["--set m=3: ", "no parameter m", "rows at 16"]),
        (KERNEL, {"box": {"x": (64, 128)}}, ["--box x=64,128: there is no tensor map at this place"]),
        (KERNEL, {"set": ["n=3"]}, ["set is ['n=3']", 'a dict, for example set={"m_tiles": 2}']),
        (KERNEL, {"launch": 3}, ["launch is 3", "the path of a launch file"]),
        (KERNEL, {"launch": "nowhere.json"}, ["there is no launch file nowhere.json"]),
        (ring, {"launched": "x.json"}, ["there is no keyword 'launched'", "did you mean launch?"]),
    ],
)
@pytest.mark.parametrize("function", [pipesim.check, pipesim.show, pipesim.advise])
def test_a_launch_that_nothing_has_is_a_usage_error(function: Any, x: object, words: Any, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        function(x, **words)
    assert all(part in str(caught.value) for part in said), str(caught.value)


def test_a_profile_is_a_name_a_path_or_itself(tmp_path: Path) -> None:
    h100 = pipesim.load_profile("h100")
    mine = tmp_path / "mine.json"
    mine.write_text((ROOT / "pipesim" / "timed" / "profiles" / "h100.json").read_text("utf-8"), encoding="utf-8")
    cycles = {pipesim.simulate(ring, profile).cycles for profile in ("h100", h100, mine, str(mine))}
    assert len(cycles) == 1


@pytest.mark.parametrize(
    ("x", "params", "said"),
    [
        ("producer-consumer", {}, ["there is no protocol 'producer-consumer'", "did you mean producer_consumer"]),
        (ring, {"stage": 2}, ["ring has no parameter 'stage'", "did you mean stages?"]),
        (ring, {"stages": "2"}, ["stages takes a whole number, not '2'", "for example stages=4"]),
        (ring, {"stages": 2.0}, ["stages takes a whole number, not 2.0"]),
        (ring, {"stages": True}, ["stages takes a whole number, not True"]),
        (ring(), {"stages": 3}, ["ring was called already", "give the function itself: ring, stages=3"]),
        (ring().flatten(), {"stages": 3}, ["ring is a flat program and takes no parameters"]),
        ([ring], {}, ["a protocol is expected, not something of type list", "give a function that makes one"]),
        (None, {}, ["a protocol is expected, not None", "without `return p` gives None"]),
        (3, {}, ["a protocol is expected, not something of type int"]),
        (lambda: None, {}, ["<lambda> returned NoneType, not a Protocol", "end it with: return p"]),
        (print, {}, ["print: parameter *args has no whole number", "leave *args out"]),
        ("producer_consumer", {"ctas": "2"}, ["ctas takes a whole number, not '2'"]),
    ],
)
@pytest.mark.parametrize("function", [pipesim.check, pipesim.verify, pipesim.simulate, pipesim.show])
def test_what_cannot_be_built_is_a_usage_error(
    function: Any, x: object, params: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        function(x, **params)
    assert all(part in str(caught.value) for part in said), str(caught.value)
    assert caught.value.correction or caught.value.cause, "an error says what can be done"


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("h10", ["there is no latency profile 'h10'", "did you mean h100?"]),
        ("nowhere.json", ["the latency profile nowhere.json cannot be read"]),
        (None, ["a latency profile is expected, not None"]),
        (7, ["a latency profile is expected, not something of type int", '"h100"']),
    ],
)
def test_a_profile_that_is_none(profile: Any, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        pipesim.simulate(ring, profile)
    assert all(part in str(caught.value) for part in said), str(caught.value)


@pytest.mark.slow
def test_a_trace_names_its_built_in_protocol() -> None:
    trace = pipesim.read_trace(RECORDED)
    results = [pipesim.compare(trace), pipesim.compare(RECORDED), pipesim.compare(trace=trace)]
    results += [pipesim.compare(None, str(RECORDED)), pipesim.compare("producer_consumer", trace)]
    assert [r.ok for r in results] == [True] * 5
    assert {r.program.params["tiles"] for r in results} == {64}, "what is not given is the trace's"


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (("gemm_sm90", RECORDED), PipesimError, ["the trace"]),
        ((ring, RECORDED), PipesimError, ["the trace"]),
        (("producer_consumer", ROOT / "README.md"), PipesimError, ["is no"]),
        (("producer_consumer", "nowhere.parquet"), PipesimError, ["nowhere.parquet"]),
        (("producer_consumer",), UsageError, ["no trace is given", "for example compare(x,"]),
        ((), UsageError, ["no trace is given"]),
        ((RECORDED, RECORDED), UsageError, ["two traces are given, and no protocol", "`pipesim diff A B`"]),
        (("producer_consumer", [1]), UsageError, ["a trace is expected, not something of type list"]),
    ],
)
def test_what_cannot_be_compared(arguments: tuple[Any, ...], kind: type[PipesimError], said: list[str]) -> None:
    with pytest.raises(kind) as caught:
        pipesim.compare(*arguments)
    assert all(part in str(caught.value) for part in said), str(caught.value)


def test_a_trace_of_a_protocol_that_is_not_built_in_needs_it_named() -> None:
    with pytest.raises(UsageError, match="the trace is of protocol ring") as caught:
        pipesim.compare(pipesim.simulate(ring).trace)
    assert "give the protocol first: compare(my_kernel, trace)" in str(caught.value)


@pytest.mark.parametrize("tolerance", ["5", -1, float("nan"), True])
def test_a_tolerance_is_a_percentage(tolerance: Any) -> None:
    with pytest.raises(ParameterError, match="give a percentage of 0 or more"):
        pipesim.compare(RECORDED, tolerance=tolerance)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: pipesim.simulate("producer_consumer", profle="h200"), "profile"),  # type: ignore[arg-type]  # misuse
        (lambda: pipesim.check("producer_consumer", max_state=5), "max_states"),
        (lambda: pipesim.verify("producer_consumer", hardwre=False), "hardware"),
    ],
)
def test_a_misspelt_keyword_is_recognised_whatever_its_value(call: Callable[[], object], meant: str) -> None:
    with pytest.raises(ParameterError, match="there is no keyword") as caught:
        call()
    assert caught.value.correction == f"did you mean {meant}?"
