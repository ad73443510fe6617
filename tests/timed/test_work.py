"""What a role does between its barriers: amounts in the program, constants in the profile, and no operation."""

from dataclasses import replace

import pytest

from pipesim.errors import ProgramFormatError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.tables import Work
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.targets import find
from pipesim.timed.costs import Prices, streamed_bytes
from pipesim.timed.profile import FIELDS, Profile, cycles_at_rate, load_profile
from pipesim.timed.work import OF_DATA, SLOTS


def ring(**amounts: int) -> Program:
    """A ring whose two consumer warps read a tile, and do this with it."""
    p = Protocol("ring")
    tile, storage = p.smem("tile", 2, 4096), p.mbarriers("pipe", 4)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, 2).init_mbars(1, 2)

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, 2)
        with w.elect_one():
            for i in w.loop(6, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(4096)
                    w.tma_load(tile[stage.index()], stage.mbar(), i)

    @p.role("use", warps=2)
    def use(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, 2)
        for i in w.loop(6, "tiles"):
            with pipe.consume_explicit() as stage:
                w.read(tile[stage.index()], i)
                if amounts:
                    w.compute("ring/use", **amounts)
                with w.elect_one():
                    stage.arrive()

    return p.flatten()


def profile(**constants: int) -> Profile:
    """One with round rates, and with these constants of the work ``ring/use``."""
    rates = {name: 10_000 for name in FIELDS if name.startswith("class.")}
    named = {f"ring/use.{name}": value for name, value in constants.items()}
    base = load_profile("h200")
    return replace(base, values={**base.values, **rates, "shared.bytes_per_kcycle": 128_000, **named})


def test_a_warp_that_computes_much_slows_one_that_computes_little() -> None:
    """On its quarter, and is slowed by it. The twins: beside one that computes as little, and on another quarter."""

    def slots(*computed: int, quarters: int = 4) -> dict[int, int]:
        p = Protocol("quarter")
        tile = p.smem("tile", 1, 512)
        lines = {}

        @p.role("use", warps=quarters + 1)
        def use(w: Warp) -> None:
            if w.index % quarters == 0:
                w.read(tile[0])
                w.compute(
                    f"quarter/of_{computed[w.index // quarters]}", shared_bytes=16, fma=computed[w.index // quarters]
                )

        program = p.flatten()
        price = Prices(program, profile(), traced=False)
        for code, at in zip(program.code, program.lines, strict=True):
            for op, line in zip(code, at, strict=True):
                if op[0] == Op.READ:
                    lines[program.work_of_line[line].amount("fma")] = price(op, line).slots
        return lines

    assert slots(100, 1) == {100: 100 * 10 * SLOTS // 1000, 1: 10 * SLOTS // 1000}
    assert slots(2, 1) == {2: 0, 1: 0}
    assert slots(100, 1, quarters=3) == {100: 0, 1: 0}


@pytest.mark.parametrize(
    "work",
    [
        Work(-1, "a/b"), Work(10**6, "a/b"), Work(0, ""), Work(0, "a\n"), Work(0, "a/b", (("flops", 3),)),
        Work(0, "a/b", (("fma", -1),)),
    ],
)  # fmt: skip
def test_what_is_no_work(work: Work) -> None:
    with pytest.raises(ProgramFormatError, match="work 0"):
        replace(ring(), work=(work,))


@pytest.mark.parametrize("amounts", [{"flops": 3}, {"fma": -1}, {"fma": 1.5}])
def test_amounts_that_are_none(amounts: dict[str, int]) -> None:
    with pytest.raises(ProtocolError):
        ring(**amounts)


def test_nothing_is_computed_in_a_wait_of_other_threads() -> None:
    p = Protocol("waits")

    @p.role("one")
    def one(w: Warp) -> None:
        w.bar_sync(1, 32)
        w.compute("waits/late")

    with pytest.raises(ProtocolError, match="computes waits/late after a wait"):
        p.flatten()


@pytest.mark.slow
def test_the_built_in_profiles_know_the_works_of_the_recorded_kernels() -> None:
    """Each constant was fitted; a work without one is counted as assumed. That data is fresh takes no work."""
    for on in (load_profile("h100"), load_profile("h200")):
        for kernel in RECORDED:
            works = [
                work
                for work in find(kernel).build({}).work
                if not work.amounts or {kind for kind, _ in work.amounts} - OF_DATA
            ]
            assert {work.name for work in works if not on.knows(work.name)} == set(), kernel


RECORDED = (
    "producer_consumer", "persistent_scheduler", "cluster_multicast", "epilogue_residual", "gemm_sm90",
    "attention_sm90", "attention_sm90_fused",
)  # fmt: skip


def test_what_a_cache_does_not_hold_comes_later_and_slower() -> None:
    """The tiles of ``persistent_scheduler`` are each loaded once, by one CTA: 33 MB by 132 of them."""
    h200 = load_profile("h200")
    program = find("persistent_scheduler").build({"tiles": 8, "tile_bytes": 16_384, "k_iters": 2}, grid=132)
    load, line = next(
        (op, line)
        for code, lines in zip(program.code, program.lines, strict=True)
        for op, line in zip(code, lines, strict=True)
        if op[0] == Op.TMA_LOAD
    )
    assert streamed_bytes(program) == 132 * 8 * 2 * 16_384
    costs = []
    for held in (streamed_bytes(program), streamed_bytes(program) - 1):
        profile = replace(h200, values={**h200.values, "copy.cached_bytes": held})
        costs.append(Prices(program, profile, traced=False)(load, line))
    near, far = costs
    assert far.flight - near.flight == h200["class.streamed_copies"] // 1000 == 500
    assert near.engine == cycles_at_rate(16_384, h200["copy.device_fresh_bytes_per_kcycle"] // 132)
    assert far.engine == cycles_at_rate(16_384, h200["copy.memory_bytes_per_kcycle"] // 132)
