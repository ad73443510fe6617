"""Parameters are refused for type, range and multiple; programs for what the chip does not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipesim.errors import ConfigurationError, ParameterError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.protocols.hopper.producer_consumer import producer_consumer
from pipesim.protocols.limits import COPY_MULTIPLE, MAX_SMEM, MAX_THREADS, require, require_fits
from pipesim.targets import find

REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "n takes a whole number, not 'four'": (("four", 1, 8), {}, ""),
    "n takes a whole number, not 4.0": ((4.0, 1, 8), {}, ""),
    "n takes a whole number, not True": ((True, 1, 8), {}, ""),
    "n takes a whole number, not None": ((None, 1, 8), {}, ""),
    "n = 0 is out of range": ((0, 1, 8), {}, "use 1 to 8"),
    "n = 9 is out of range": ((9, 1, 8), {}, "use 1 to 8"),
    "n = -1 is out of range": ((-1, 0, 1 << 20), {}, "use 0 to 1,048,576"),
    "n = 24 is not a multiple of 16": ((24, 16, 64), {"multiple_of": 16}, "use 16 or 32"),
    "n = 3": ((3, 1, 32), {"one_of": (1, 32)}, "use 1 or 32"),
}


@pytest.mark.parametrize("fact", REFUSED)
def test_a_parameter_is_refused(fact: str) -> None:
    arguments, options, correction = REFUSED[fact]
    with pytest.raises(ParameterError) as caught:
        require("n", *arguments, **options)
    assert (caught.value.fact, caught.value.correction, caught.value.exit_code) == (fact, correction, 2)


@pytest.mark.parametrize(
    ("value", "options"), [(1, {}), (8, {}), (4, {"multiple_of": 4}), (1, {"one_of": (1, 8)}), (8, {"one_of": (1, 8)})]
)
def test_a_parameter_is_accepted(value: int, options: dict[str, Any]) -> None:
    require("n", value, 1, 8, **options)


def test_a_copy_says_why_it_wants_multiples_of_16() -> None:
    with pytest.raises(ParameterError) as caught:
        require("tile_bytes", 100, 16, 1 << 20, multiple_of=COPY_MULTIPLE)
    assert caught.value.cause == "a bulk copy moves whole units of 16 bytes"
    assert caught.value.correction == "use 96 or 112"


def kernel(smem: int = 64, warps: int = 1, expect: int = 0, late: int = 0, nbytes: int = 16) -> Protocol:
    """One role that asks for so much."""
    p = Protocol("kernel")
    tile, bars = p.smem("tile", 1, smem - 8), p.mbarriers("b", 1, count=2)

    @p.role("r", warps=warps)
    def r(w: Warp) -> None:
        with w.elect_one():
            bars[0].expect_bytes(expect)
            bars[0].expect_tx(late)
            w.tma_load(tile[0], bars[0], 0, nbytes=nbytes)
            bars[0].arrive_drop()

    return p


def refused(protocol: Protocol) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        require_fits(protocol.flatten())
    return caught.value


def test_shared_memory() -> None:
    require_fits(kernel(smem=MAX_SMEM).flatten())
    error = refused(kernel(smem=MAX_SMEM + 8))
    assert error.fact == "kernel needs 232,456 bytes of shared memory; a CTA has 232,448"
    assert error.cause == "tile alone is 1 slots of 232,448 bytes"
    assert error.correction == "use fewer stages or smaller tiles"


def test_shared_memory_of_barriers_alone_has_no_tile_to_blame() -> None:
    p = Protocol("barriers")
    p.mbarriers("b", MAX_SMEM // 8 + 1, count=1)
    p.init(lambda: None)
    p.role("r")(lambda _: None)
    assert refused(p).cause == ""


def test_memory_beyond_the_end_is_refused() -> None:
    """Nothing that a Protocol lays out: a program from a file."""
    program = kernel(smem=64, nbytes=48).flatten()
    assert program.smem_bytes == 64
    require_fits(program)
    for change, fact in (
        ({"smem_bytes": 55}, "kernel: tile ends beyond its 55 bytes of shared memory"),
        ({"smem_bytes": 40, "tiles": ()}, "kernel: bytes 0 to 48 are accessed, beyond its 40 bytes of shared memory"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            require_fits(replace(program, **change))
        assert caught.value.fact == fact


def test_threads() -> None:
    require_fits(kernel(warps=MAX_THREADS // 32).flatten())
    error = refused(kernel(warps=33))
    assert error.fact == "kernel needs 1,056 threads; a CTA has at most 1,024"


def test_the_number_of_a_warp() -> None:
    program = kernel().flatten()
    last = replace(program, agents=(replace(program.agents[0], warp=31), *program.agents[1:]))
    require_fits(last)
    with pytest.raises(ConfigurationError) as caught:
        require_fits(replace(program, agents=(replace(program.agents[0], warp=32), *program.agents[1:])))
    assert caught.value.fact == "kernel: r is in warp 32 of its CTA"
    assert caught.value.cause == "a CTA has at most 1,024 threads, which are warps 0 to 31"


def test_threads_are_those_of_one_cta_and_of_warps() -> None:
    p = Protocol("cluster", cluster=2)
    p.role("r", warps=32)(lambda _: None)
    program = p.flatten()
    assert len(program.agents) == 64
    require_fits(program)
    diverged = replace(
        program,
        agents=tuple(replace(a, cta=0, index=32 * a.cta + a.index, lanes=0xFFFF << 16 * a.cta) for a in program.agents),
    )  # two agents share each warp
    require_fits(diverged)


@pytest.mark.parametrize("how", ["expect", "late"])
def test_bytes_of_a_phase(how: str) -> None:
    require_fits(kernel(**{how: MAX_COUNT}).flatten())
    error = refused(kernel(**{how: MAX_COUNT + 1}))
    assert error.fact == "r expects 1,048,576 bytes in one phase of b[0]"
    assert error.place.startswith(f"{__file__}:")
    assert error.cause == "an mbarrier counts up to 1,048,575 bytes a phase"


def test_bytes_of_an_arrive_drop() -> None:
    program = kernel().flatten()
    code = tuple((*op[:3], MAX_COUNT + 1, *op[4:]) if op[0] == Op.ARRIVE_DROP else op for op in program.code[0])
    with pytest.raises(ConfigurationError, match="expects 1,048,576 bytes"):
        require_fits(replace(program, code=(code,)))


def test_a_copy_moves_units_of_16_bytes() -> None:
    require_fits(kernel(nbytes=48).flatten())
    error = refused(kernel(nbytes=40))
    assert (error.fact, error.cause) == ("r copies 40 bytes", "a bulk copy moves a multiple of 16 bytes")


def test_the_protocol_of_the_package_fits_at_its_largest() -> None:
    require_fits(producer_consumer(stages=7, tiles=2, tile_bytes=32768, consumer_warps=8).flatten())
    with pytest.raises(ConfigurationError):
        require_fits(producer_consumer(stages=8, tiles=2, tile_bytes=32768).flatten())


def roomy(registers: dict[str, int], columns: int = 512) -> Program:
    """Two roles of four warps that ask for registers, and accumulators of so many columns of tensor memory."""
    p = Protocol("roomy")
    p.tmem("accumulator", 1, columns * 512)
    for name, count in registers.items():
        p.role(name, warps=4)(lambda w, n=count: w.setmaxnreg(n))  # type: ignore[misc]
    return p.flatten()


def test_tensor_memory_has_512_columns() -> None:
    require_fits(roomy({"mma": 24}))
    with pytest.raises(ConfigurationError) as caught:
        require_fits(roomy({"mma": 24}, 513))
    assert caught.value.fact == "roomy needs 262,656 bytes of tensor memory; an SM has 262,144"


def test_the_warps_of_a_cta_share_the_registers_of_an_sm() -> None:
    require_fits(roomy({"load": 24, "a": 240, "b": 240}))
    with pytest.raises(ConfigurationError) as caught:
        require_fits(roomy({"load": 40, "a": 240, "b": 240}))
    assert caught.value.fact == "roomy asks for 66,560 registers in one CTA; an SM has 65,536"
    assert "test_limits.py" in caught.value.place


@pytest.mark.parametrize("count", [0, 16, 25, 264])
def test_setmaxnreg_takes_multiples_of_eight(count: int) -> None:
    with pytest.raises(ConfigurationError, match=f"load/0 asks for {count} registers a thread"):
        require_fits(roomy({"load": count}))


def test_a_cta_has_16_named_barriers() -> None:
    def made(number: int) -> Program:
        p = Protocol("named")
        p.role("load")(lambda w: w.bar_sync(number, 32))
        return p.flatten()

    require_fits(made(15))
    with pytest.raises(ProtocolError, match="named barrier 16") as caught:
        made(16)
    assert "a CTA has 16" in caught.value.cause


TOGETHER: list[tuple[str, dict[str, int], str, str]] = [
    ("gemm_sm100", {"clc_stages": 0}, "tiles = 3 with clc_stages = 0", "use tiles = 0 or 1, or clc_stages = 1 or more"),
    ("conv_epilogue", {"clc_stages": 0}, "tiles = 3 with clc_stages = 0",
     "use tiles = 0 or 1, or clc_stages = 1 or more"),
    ("gemm_sm100", {"stages": 1, "k_group_size": 2}, "k_group_size = 2 with stages = 1",
     "use stages = 2 or more, or a smaller k_group_size"),
    ("gemm_sm100", {"accumulators": 3, "block_n": 256}, "accumulators = 3 with block_n = 256 need 768 columns",
     "use at most 2 accumulators, or a smaller block_n"),
    ("cutlass_sm100", {"accumulators": 4, "block_n": 256}, "accumulators = 4 with block_n = 256 need 1024 columns",
     "use at most 2 accumulators, or a smaller block_n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params", "fact", "correction"), TOGETHER)
def test_parameters_that_do_not_go_together_are_both_named(
    name: str, params: dict[str, int], fact: str, correction: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        find(name).build(params)
    assert (caught.value.fact, caught.value.correction) == (fact, correction)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gemm_sm100", {"clc_stages": 0, "tiles": 1}),
        ("gemm_sm100", {"stages": 2, "k_group_size": 2}),
        ("gemm_sm100", {"accumulators": 3, "block_n": 160, "tiles": 1, "stages": 4}),
    ],
)
def test_those_that_do_are_taken(name: str, params: dict[str, int]) -> None:
    assert find(name).build(params).code
