"""Parameters are refused for type, range and multiple; programs for what the chip does not have."""

from dataclasses import replace

import pytest

from pipesim.errors import ConfigurationError, ParameterError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.protocols.limits import MAX_SMEM, MAX_THREADS, require_fits
from pipesim.targets import find


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


def roomy(registers: dict[str, int], columns: int = 512) -> Protocol:
    """Roles of four warps that ask for registers, and accumulators of this many columns of tensor memory."""
    p = Protocol("roomy")
    p.tmem("accumulator", 1, columns * 512)
    for name, count in registers.items():
        p.role(name, warps=4)(lambda w, n=count: w.setmaxnreg(n))  # type: ignore[misc]
    return p


def barriers_alone(count: int) -> Protocol:
    p = Protocol("barriers")
    p.mbarriers("b", count, count=1)
    p.init(lambda: None)
    p.role("r")(lambda _: None)
    return p


#: What fits exactly, what does not, and what is then said: the fact, and its cause.
TOO_MUCH: dict[str, tuple[Protocol, Protocol, str, str]] = {
    "shared memory": (
        kernel(smem=MAX_SMEM), kernel(smem=MAX_SMEM + 8),
        "kernel needs 232,456 bytes of shared memory; a CTA has 232,448", "tile alone is 1 slots of 232,448 bytes",
    ),
    "barriers alone have no tile to blame": (
        barriers_alone(MAX_SMEM // 8), barriers_alone(MAX_SMEM // 8 + 1),
        "barriers needs 232,456 bytes of shared memory; a CTA has 232,448", "",
    ),
    "threads": (
        kernel(warps=MAX_THREADS // 32), kernel(warps=33),
        "kernel needs 1,056 threads; a CTA has at most 1,024", "",
    ),
    "bytes of a phase": (
        kernel(expect=MAX_COUNT), kernel(expect=MAX_COUNT + 1),
        "r expects 1,048,576 bytes in one phase of b[0]", "an mbarrier counts up to 1,048,575 bytes a phase",
    ),
    "bytes expected late": (
        kernel(late=MAX_COUNT), kernel(late=MAX_COUNT + 1),
        "r expects 1,048,576 bytes in one phase of b[0]", "an mbarrier counts up to 1,048,575 bytes a phase",
    ),
    "a copy moves units of 16 bytes":
        (kernel(nbytes=48), kernel(nbytes=40), "r copies 40 bytes", "a bulk copy moves a multiple of 16 bytes"),
    "tensor memory has 512 columns": (
        roomy({"mma": 24}), roomy({"mma": 24}, 513),
        "roomy needs 262,656 bytes of tensor memory; an SM has 262,144", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TOO_MUCH)
def test_what_the_chip_does_not_have_is_refused(what: str) -> None:
    fits, too_much, fact, cause = TOO_MUCH[what]
    require_fits(fits.flatten())
    with pytest.raises(ConfigurationError) as caught:
        require_fits(too_much.flatten())
    assert caught.value.fact == fact
    assert caught.value.cause.startswith(cause)
    assert "bytes in one phase" not in fact or caught.value.place.startswith(f"{__file__}:")


ONE, CLUSTER = kernel(smem=64, nbytes=48).flatten(), Protocol("cluster", cluster=2)
CLUSTER.role("r", warps=32)(lambda _: None)


def in_warp(number: int) -> Program:
    return replace(ONE, agents=(replace(ONE.agents[0], warp=number), *ONE.agents[1:]))


def dropping(nbytes: int) -> Program:
    code = tuple((*op[:3], nbytes, *op[4:]) if op[0] == Op.ARRIVE_DROP else op for op in ONE.code[0])
    return replace(ONE, code=(code,))


#: Programs from a file, which no Protocol lays out.
NO_PROTOCOL = {
    "kernel: tile ends beyond its 55 bytes of shared memory": replace(ONE, smem_bytes=55),
    "kernel: bytes 0 to 48 are accessed, beyond its 40 bytes of shared memory": replace(ONE, smem_bytes=40, tiles=()),
    "kernel: r is in warp 32 of its CTA": in_warp(32),
    "r expects 1,048,576 bytes in one phase of b[0]": dropping(MAX_COUNT + 1),
}


@pytest.mark.parametrize("fact", NO_PROTOCOL)
def test_a_program_from_a_file_is_refused(fact: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        require_fits(NO_PROTOCOL[fact])
    assert caught.value.fact == fact
    assert bool(caught.value.place) == ("are accessed" in fact or "expects" in fact)


@pytest.mark.parametrize("count", [0, 16, 25, 264])
def test_setmaxnreg_takes_multiples_of_eight(count: int) -> None:
    with pytest.raises(ConfigurationError, match=f"load/0 asks for {count} registers a thread"):
        require_fits(roomy({"load": count}).flatten())


def test_a_cta_has_16_named_barriers() -> None:
    def made(number: int) -> Program:
        p = Protocol("named")
        p.role("load")(lambda w: w.bar_sync(number, 32))
        return p.flatten()

    require_fits(made(15))
    with pytest.raises(ProtocolError, match="named barrier 16") as caught:
        made(16)
    assert "a CTA has 16" in caught.value.cause


#: A protocol, parameters that do not go together, what is said, and the same parameters so that they do.
TOGETHER: list[tuple[str, dict[str, int], str, str, dict[str, int]]] = [
    (
        "gemm_sm100", {"clc_stages": 0}, "tiles = 3 with clc_stages = 0",
        "use tiles = 0 or 1, or clc_stages = 1 or more", {"tiles": 1},
    ),
    (
        "gemm_sm100", {"stages": 1, "k_group_size": 2}, "k_group_size = 2 with stages = 1",
        "use stages = 2 or more, or a smaller k_group_size", {"stages": 2},
    ),
    (
        "gemm_sm100", {"accumulators": 3, "block_n": 256}, "accumulators = 3 with block_n = 256 need 768 columns",
        "use at most 2 accumulators, or a smaller block_n", {"block_n": 160, "tiles": 1, "stages": 4},
    ),
    (
        "cutlass_sm100", {"accumulators": 4, "block_n": 256}, "accumulators = 4 with block_n = 256 need 1024 columns",
        "use at most 2 accumulators, or a smaller block_n", {"accumulators": 2},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params", "fact", "correction", "better"), TOGETHER)
def test_parameters_that_do_not_go_together_are_both_named(
    name: str, params: dict[str, int], fact: str, correction: str, better: dict[str, int]
) -> None:
    with pytest.raises(ParameterError) as caught:
        find(name).build(params)
    assert (caught.value.fact, caught.value.correction) == (fact, correction)
    assert find(name).build(params | better).code
