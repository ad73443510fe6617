"""``conv_epilogue`` with Hopper's means: a load warp for the epilogue's source, ordered after the main loads.

Upstream: ``nn/conv/gpu/nvidia/sm100/conv2d_fprop_kernel.mojo`` with ``epilogue_load_pipeline.mojo``. A tile counter in
global memory answers in place of CLC, and the accumulators lie in shared memory in place of tensor memory. The roles,
their rings, the throttle and the load-order barrier are those of the original, so that its hazard can be looked for on
a chip: with an arrival for **every** tile two may complete before one wait is tested, which then misses both.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines import EpiLoadPipeline, ProducerConsumerPipeline
from pipesim.pipelines.modular.producer_consumer import LoadOrderBarrier
from pipesim.protocols.hopper.software_clc import RESPONSE_BYTES, SoftwareClc
from pipesim.protocols.limits import ranges

EPILOGUE_WARPS = 4
EPILOGUE_THREADS = 32 * EPILOGUE_WARPS
READERS = 4 * 32 + EPILOGUE_THREADS  #: threads that read a response: those of all roles
OUTPUTS = 2  #: slices of the output on their way at a time
_WARP_LOAD = 512  #: bytes that a warp loads by one instruction
_UNROLLED = 4  #: rounds of the loop that sums
_EPILOGUE = 1  # the named barrier of the epilogue's threads


@ranges(accumulators=(1, 8), slices=(1, 32), slice_bytes=(2048, 1 << 16, 2048))
def epilogue_residual(
    stages: int = 4,
    tiles: int = 6,
    k_iters: int = 3,
    epi_stages: int = 2,
    accumulators: int = 2,
    clc_stages: int = 2,
    slices: int = 4,
    slice_bytes: int = 2048,
    residual: int = 1,
    first_tile_only: int = 1,
    epilogue: int = 150,
    order_delay: int = 0,
    atomic: int = 700,
) -> Protocol:
    """D = sum of A + beta * C on Hopper: an epilogue-load warp, ordered by a barrier, feeds 128 epilogue threads.

    ``tiles`` of ``slices`` times ``slice_bytes`` for this CTA, each the sum of ``k_iters`` tiles of A. ``residual`` 0:
    no C is loaded, the order is waited for nevertheless. ``first_tile_only`` 1: CUTLASS's order, which cannot be
    missed; 0: upstream's, for every tile. ``epilogue``: SM cycles of an epilogue warp per slice; ``order_delay``: of
    the epilogue-load warp before each tile but the first; ``atomic``: of a fetch.
    """
    p = Protocol("epilogue_residual")
    a = p.smem("a", stages, slices * slice_bytes)
    accumulator = p.smem("accumulator", accumulators, slices * slice_bytes)
    source = p.smem("source", epi_stages, slice_bytes)
    d = p.smem("d", OUTPUTS, slice_bytes)
    response = p.smem("response", clc_stages, RESPONSE_BYTES)
    kernel = _Residual(
        a=a,
        accumulator=accumulator,
        source=source,
        d=d,
        input_mbars=p.mbarriers("input", 2 * stages),
        output_mbars=p.mbarriers("output", 2 * accumulators),
        epi_mbars=p.mbarriers("epi_load", 2 * epi_stages),
        order_mbar=p.mbarriers("load_order", 1),
        clc=SoftwareClc.for_protocol(p, response, tiles=tiles, cycles=atomic),
        k_iters=k_iters,
        slices=slices,
        residual=bool(residual),
        every_tile=not first_tile_only,
        epilogue_cycles=epilogue,
        delay_cycles=order_delay,
    )
    kernel.roles(p)
    return p


@dataclass(frozen=True, kw_only=True)
class _Residual:
    """The kernel's memory and sizes, and its roles. ``every_tile``: loads are ordered in every tile, as upstream."""

    a: TileArray
    accumulator: TileArray
    source: TileArray
    d: TileArray
    input_mbars: BarrierStorage
    output_mbars: BarrierStorage
    epi_mbars: BarrierStorage
    order_mbar: BarrierStorage
    clc: SoftwareClc
    k_iters: int
    slices: int
    residual: bool
    every_tile: bool
    epilogue_cycles: int
    delay_cycles: int

    def roles(self, p: Protocol) -> None:
        p.init(self.init)
        p.role("epilogue", warps=EPILOGUE_WARPS)(self.epilogue)
        p.role("scheduler")(self.clc.scheduler)
        p.role("load")(self.load)
        p.role("mma")(self.mma)
        p.role("epilogue_load")(self.epilogue_load)

    def _input(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.input_mbars, self.a.slots)

    def _output(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.output_mbars, self.accumulator.slots)

    def _source(self) -> EpiLoadPipeline:
        return EpiLoadPipeline(self.epi_mbars, self.source.slots)

    def init(self) -> None:
        self._input().init_mbars(1, 1)
        self._output().init_mbars(1, EPILOGUE_THREADS)
        self._source().init_barriers(1, EPILOGUE_THREADS)
        LoadOrderBarrier(self.order_mbar).init()
        self.clc.init(READERS)

    def load(self, w: Warp) -> None:
        pipe, tiles, throttle = self._input(), self.clc.ring(), self.clc.throttle()
        order = LoadOrderBarrier(self.order_mbar)
        prologue = min(self.a.slots, self.k_iters)
        for t in w.loop(self.clc.tiles, "tiles"):
            throttle.producer_signal_and_step()
            w.compute("epilogue_residual/begin_loads")
            ordered = self.every_tile or t == 0
            with w.elect_one():
                if ordered and not prologue:
                    order.arrive_and_step()
                for k in w.loop(self.k_iters, "k_iters"):
                    with pipe.produce() as stage:
                        stage.mbar().expect_bytes(self.a.nbytes)
                        w.tma_load(self.a[stage.index()], stage.mbar(), t * self.k_iters + k)
                        w.compute("epilogue_residual/load", fresh_copies=1, streamed_copies=1)
                    if ordered and k + 1 == prologue:
                        order.arrive_and_step()
            self.clc.fetch(w, tiles, t + 1, after="epilogue_residual/end_loads" if self.k_iters else "")

    def mma(self, w: Warp) -> None:
        pipe, output, tiles = self._input(), self._output(), self.clc.ring()
        loads = -(-self.a.nbytes // _WARP_LOAD)
        constant = self.a.slots == self.accumulator.slots == 1  # addresses: then loads of several rounds overlap
        rounds = -(-loads // _UNROLLED) if constant else loads
        for t in w.loop(self.clc.tiles, "tiles"):
            w.compute("epilogue_residual/next_sum")
            with output.produce() as accumulator:
                w.write(self.accumulator[accumulator.index()], t)
                w.compute("epilogue_residual/begin_sum", rounds=0 if self.k_iters else loads)
                for k in w.loop(self.k_iters, "k_iters"):
                    with pipe.consume_explicit() as stage:
                        w.read(self.a[stage.index()], t * self.k_iters + k)
                        w.compute(
                            "epilogue_residual/accumulate",
                            rounds=rounds,
                            fma=4 * loads,
                            shared_bytes=3 * self.a.nbytes,  # also of the first one, which loads its zeros
                        )
                        w.write(self.accumulator[accumulator.index()], t)
                        with w.elect_one():
                            stage.arrive()
                            w.compute("epilogue_residual/give_back")
                with w.elect_one():
                    accumulator.mbar().arrive()
                    w.compute("epilogue_residual/finish_sum")
            self.clc.fetch(w, tiles, t + 1)

    def epilogue_load(self, w: Warp) -> None:
        """After the main loads of a tile have begun, the slices of its source, as stages come free."""
        order, pipe, tiles = LoadOrderBarrier(self.order_mbar), self._source(), self.clc.ring()
        for t in w.loop(self.clc.tiles, "tiles"):
            if self.every_tile or t == 0:
                order.wait_and_step()
            for n in range(self.slices if self.residual else 0):
                stage = pipe.acquire_producer()
                with w.elect_one():
                    stage.mbar().expect_bytes(self.source.nbytes)
                    w.compute("epilogue_residual/expect_source")
                    w.tma_load(self.source[stage.index()], stage.mbar(), t * self.slices + n)
                    w.compute("epilogue_residual/load_source", fresh_copies=1, streamed_copies=1)
                stage.release()
            self.clc.fetch(w, tiles, t + 1)
            if t + 1 < self.clc.tiles:
                w.work(self.delay_cycles)

    def epilogue(self, w: Warp) -> None:
        output, source, tiles = self._output(), self._source(), self.clc.ring()
        words = self.d.nbytes // EPILOGUE_THREADS // 16
        rows = {"rounds": words, "fma": 4 * words, "shared_bytes": self.d.nbytes // EPILOGUE_WARPS}
        for t in w.loop(self.clc.tiles, "tiles"):
            w.compute("epilogue_residual/next_tile")
            with output.consume_explicit() as accumulator:
                w.compute("epilogue_residual/take_sum")
                for n in range(self.slices):
                    tile = self.accumulator[accumulator.index()].part(n * self.d.nbytes, self.d.nbytes)
                    w.read(_rows(tile, w.index), t)
                    last = n == self.slices - 1
                    next_wait = self.residual and not last  # its place is computed, too
                    w.compute(f"epilogue_residual/load_rows{'_and_wait' if next_wait else ''}", **rows)
                    if last:
                        accumulator.arrive()
                        w.compute("epilogue_residual/give_back_sum")
                    if self.residual:
                        held = source.acquire_consumer()
                        w.compute("epilogue_residual/take_source")
                        w.read(_rows(self.source[held.index()], w.index), t * self.slices + n)
                        w.compute("epilogue_residual/add_rows", **rows)
                        held.release()
                        w.compute("epilogue_residual/give_back_source")
                    self._store(w, t * self.slices + n)
            self.clc.fetch(w, tiles, t + 1)
            w.bar_sync(_EPILOGUE, EPILOGUE_THREADS)  # all four continue, or none
        if w.index == 0:
            with w.elect_one():
                w.wait_group(Engine.BULK)

    def _store(self, w: Warp, item: int) -> None:
        """Work on a slice, write this warp's rows of it, and let one lane store it."""
        out = self.d[item % OUTPUTS]
        w.work(self.epilogue_cycles)
        if w.index == 0:
            with w.elect_one():
                w.wait_group(Engine.BULK, OUTPUTS - 1)  # the store before the last has read its rows
        w.bar_sync(_EPILOGUE, EPILOGUE_THREADS)
        w.write(_rows(out, w.index), item)
        w.compute("epilogue_residual/store_rows", shared_bytes=out.nbytes // EPILOGUE_WARPS)
        w.fence(Fence.PROXY_ASYNC)
        w.compute("epilogue_residual/fence")
        w.bar_sync(_EPILOGUE, EPILOGUE_THREADS)
        if w.index == 0:
            with w.elect_one():
                w.async_read(Engine.BULK, out, item)
                w.commit(Engine.BULK)


def _rows(tile: Slot, warp: int) -> Slot:
    """An epilogue warp's quarter of a slice."""
    return tile.part(warp * (tile.nbytes // EPILOGUE_WARPS), tile.nbytes // EPILOGUE_WARPS)
