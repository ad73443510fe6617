"""The epilogue of CUTLASS's warp-specialised kernels, Hopper's and Blackwell's: loads of C, their order, stores of D.

Upstream: ``include/cutlass/epilogue/collective/sm90_epilogue_tma_warpspecialized.hpp`` and its ``sm100`` sister. C is
of 8 bits and D bf16, so that they have buffers of their own (``ReuseSmemC`` false) and no store is delayed
(``DelayTmaStore`` false). Without a residual (beta is 0) the barriers and the buffer of C are left out.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines import (
    AsyncParams,
    OrderedSequenceBarrier,
    PipelineState,
    PipelineTmaStore,
    PipelineTransactionAsync,
    make_producer_start_state,
)
from pipesim.pipelines.cutlass.base import Token
from pipesim.protocols.warp_group import BF16, share

SUBTILE_COLUMNS = 32  #: of the output, which the epilogue loads, converts and stores at a time
WARP = 32  #: threads
EPILOGUE_BARRIER = 1  #: ``ReservedNamedBarriers::EpilogueBarrier``
_MAX_STAGES_C, _MAX_STAGES_D = 4, 2


@dataclass(frozen=True)
class Residual:
    """The tiles of C and their pipeline's barriers."""

    c: TileArray
    mbars: BarrierStorage


@dataclass(frozen=True, kw_only=True)
class CutlassEpilogue:
    """Memory and sizes. ``warps`` work on a tile together; ``cycles``: what each takes to convert a subtile."""

    residual: Residual | None
    d: TileArray
    load_order: BarrierStorage
    subtiles: int
    warps: int
    cycles: int

    @classmethod
    def for_protocol(
        cls, p: Protocol, *, residual: int, rows: int, columns: int, warps: int, cycles: int
    ) -> "CutlassEpilogue":
        """The memory of all that, in ``p``, with as many stages as CUTLASS's builders choose."""
        subtiles, elements = columns // SUBTILE_COLUMNS, rows * SUBTILE_COLUMNS
        stages = min(subtiles, _MAX_STAGES_C)
        return cls(
            residual=Residual(p.smem("c", stages, elements), p.mbarriers("epi_load", 2 * stages)) if residual else None,
            d=p.smem("d", min(subtiles, _MAX_STAGES_D), elements * BF16),
            load_order=p.mbarriers("load_order", 2),
            subtiles=subtiles,
            warps=warps,
            cycles=cycles,
        )

    def init(self) -> None:
        """Initialise the barriers: of C each a warp that loads and all that add it, of the order one warp each."""
        if self.residual is not None:
            stages = self.residual.c.slots
            PipelineTransactionAsync.init_barriers(self.residual.mbars, stages, self.params())
        OrderedSequenceBarrier.init_barriers(self.load_order, 1, 2, WARP)

    def params(self) -> AsyncParams:
        """All 32 lanes of the loading warp arrive on ``full``, every thread of the epilogue on ``empty``."""
        nbytes = self.residual.c.nbytes if self.residual is not None else 0
        return AsyncParams(WARP, WARP * self.warps, transaction_bytes=nbytes)

    def order(self, *, main: bool) -> OrderedSequenceBarrier:
        """The order of the loads: one stage, first the main-load warp, then the epilogue-load warp."""
        return OrderedSequenceBarrier(self.load_order, 1, 2, 0 if main else 1)

    def load(
        self, w: Warp, residual: Residual, pipe: PipelineTransactionAsync, state: PipelineState, tile: int
    ) -> None:
        """The epilogue-load warp: the subtiles of C of one output tile; the state continues."""
        for n in range(self.subtiles):
            pipe.producer_acquire(state)
            with w.elect_one():
                c = residual.c[state.index()]
                w.tma_load(c, pipe.producer_get_barrier(state), tile * self.subtiles + n)
                pipe.producer_expect_transaction(state)
            pipe.producer_commit(state)
            state.step()

    def load_pipe(self, residual: Residual) -> PipelineTransactionAsync:
        """The calling agent's pipeline of C."""
        return PipelineTransactionAsync(residual.mbars, residual.c.slots, self.params())


class EpilogueWarp:
    """One warp of the epilogue, the ``warp``-th of those that share a tile: its places in the rings of C and of D."""

    def __init__(self, epilogue: CutlassEpilogue, w: Warp, warp: int) -> None:
        self._epilogue = epilogue
        self._w = w
        self._warp = warp
        self._residual = epilogue.residual
        if self._residual is not None:
            self._load_pipe = epilogue.load_pipe(self._residual)
            self._load_state = PipelineState(self._residual.c.slots)
        self._store_pipe = PipelineTmaStore(w, epilogue.d.slots, always_wait=True)
        self._store_state = make_producer_start_state(epilogue.d.slots)

    def advance(self) -> None:
        """Past a tile that is another warp group's."""
        if self._residual is not None:
            self._load_state.advance(self._epilogue.subtiles)
        self._store_state.advance(self._epilogue.subtiles)

    def try_residual(self, skip_wait: bool = False) -> Token:  # noqa: FBT001, FBT002  # CUTLASS's parameter
        """One try whether the next subtile of C is there; yes, where there is no C."""
        return True if self._residual is None else self._load_pipe.consumer_try_wait(self._load_state, skip_wait)

    def residual(self, item: int, token: Token = False) -> None:  # noqa: FBT002  # as the pipelines have it
        """Read this warp's rows of the next subtile of C and give it back, every thread for itself."""
        if self._residual is None:
            return
        self._load_pipe.consumer_wait(self._load_state, token)
        self._w.read(share(self._residual.c[self._load_state.index()], self._warp, self._epilogue.warps), item)
        self._w.fence(Fence.PROXY_ASYNC)
        self._load_pipe.consumer_release(self._load_state)
        self._load_state.step()

    def convert(self) -> None:
        """What the warp computes for a subtile."""
        self._w.work(self._epilogue.cycles)

    def acquire(self) -> None:
        """All warps wait until a buffer of D is free: the one that stores waits until a single store is under way."""
        if self._warp == 0:
            with self._w.elect_one():
                self._store_pipe.producer_acquire(self._store_state)
        self._synchronize()

    def store(self, item: int) -> None:
        """Write this warp's rows of a subtile of D; then the first warp stores the whole."""
        d = self._epilogue.d[self._store_state.index()]
        self._w.write(share(d, self._warp, self._epilogue.warps), item)
        self._w.fence(Fence.PROXY_ASYNC)
        self._synchronize()
        if self._warp == 0:
            with self._w.elect_one():
                self._w.async_read(Engine.BULK, d, item)
                self._store_pipe.producer_commit(self._store_state)
        self._store_state.step()

    def tail(self) -> None:
        """The warp that stores waits for all its stores."""
        if self._warp == 0:
            with self._w.elect_one():
                self._store_pipe.producer_tail(self._store_state)

    def _synchronize(self) -> None:
        self._w.bar_sync(EPILOGUE_BARRIER, WARP * self._epilogue.warps)
