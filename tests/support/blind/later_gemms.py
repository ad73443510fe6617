"""GEMMs with accumulators, rings of C, and named barriers."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine

#: What is offered for each slip.
TCGEN05_TILES: dict[str, tuple[str, ...]] = {
    "commit_wrong": ("mma: the commit on empty is meant for acc_full",),
    "acc_empty_cnt": ("initialise acc_empty with a count of 4 instead of 1",),
    "epi_early": ("epi arrives on acc_empty only after its reads and writes of the stage",),
    "mma_no_acc_wait": (
        "mma waits for acc_empty, with parity 1 in the first lap, before all the work that it signals on acc_full",
    ),
    "acc_parity": ("epi waits for acc_full with parity 0 in the first lap, alternating in each later lap",),
    "arrive_not_commit": ("mma commits to empty instead of the arrive: when its MMAs have ended",),
    "acc_full_every_k": (),
    "dma_bytes": ("dma expects 64 bytes on full instead of 32: as many as are copied",),
    "epi_one_warp": ("every warp of epi executes the arrive on acc_empty, not only some of them",),
}


def tcgen05_tiles(slip: str = "") -> Protocol:  # noqa: C901 (many slips)
    """Copies, MMAs into two accumulators, an epilogue of four warps."""
    p = Protocol("umma")
    S, T, K = (2, 4, 2)
    x = p.smem("x", S, 64)
    acc = p.tmem("acc", 2, 64)
    full = p.mbarriers("full", S, 1)
    empty = p.mbarriers("empty", S, 1)
    af = p.mbarriers("acc_full", 2, 1)
    ae = p.mbarriers("acc_empty", 2, 1 if slip == "acc_empty_cnt" else 4)

    @p.role("dma")
    def dma(w: Warp) -> None:
        with w.elect_one():
            for i in range(T * K):
                empty[i % S].wait(i // S & 1 ^ 1)
                full[i % S].expect_bytes(32 if slip == "dma_bytes" else 64)
                w.tma_load(x[i % S], full[i % S], i)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for t in range(T):
                if slip != "mma_no_acc_wait":
                    ae[t % 2].wait(t // 2 & 1 ^ 1)
                for k in range(K):
                    i = t * K + k
                    full[i % S].wait(i // S & 1)
                    w.mma(Engine.TCGEN05, reads=[(x[i % S], i)], writes=[(acc[t % 2], t)])
                    if slip == "arrive_not_commit":
                        empty[i % S].arrive()
                    else:
                        w.commit(Engine.TCGEN05, empty[i % S])
                    if slip == "acc_full_every_k":
                        w.commit(Engine.TCGEN05, af[t % 2])
                if slip == "commit_wrong":
                    w.commit(Engine.TCGEN05, empty[t % 2])
                elif slip != "acc_full_every_k":
                    w.commit(Engine.TCGEN05, af[t % 2])

    @p.role("epi", warps=4)
    def epi(w: Warp) -> None:
        for t in range(T):
            af[t % 2].wait(t & 1 if slip == "acc_parity" else t // 2 & 1)
            if slip == "epi_early":
                with w.elect_one():
                    ae[t % 2].arrive()
            w.read(acc[t % 2], t)
            if slip != "epi_early" and (slip != "epi_one_warp" or w.index == 0):
                with w.elect_one():
                    ae[t % 2].arrive()

    return p


#: What is offered for each slip.
COOPERATIVE: dict[str, tuple[str, ...]] = {
    "c_par": ("cload waits for c_empty with parity 1 in the first lap, alternating in each later lap",),
    "c_bytes": ("cload expects 64 bytes on c_full instead of 32: as many as are copied",),
    "c_rel_forgot": ("epi arrives on c_empty whenever it has finished with a stage of c_full",),
    "c_rel_on_ab": ("epi: the arrive on ab_empty is meant for c_empty",),
    "ab_once_per_tile": ("epi arrives on ab_empty for every stage: also after the wait for its wgmmas",),
    "c_wait_ab": ("epi: the wait for ab_full is meant for c_full",),
    "epi_cnt": ("initialise c_empty with a count of 4 instead of 2",),
    "ab_loop_phase": ("epi waits for ab_full with parity 0 in the first lap, alternating in each later lap",),
}


def cooperative(slip: str = "") -> Protocol:
    """Rings of operands and of C, of three and two stages, and four warps that use both."""
    p = Protocol("coop_c")
    S, C, T, K = (3, 2, 3, 2)
    ab = p.smem("ab", S, 64)
    c = p.smem("c", C, 64)
    abf = p.mbarriers("ab_full", S, 1)
    abe = p.mbarriers("ab_empty", S, 4)
    cf = p.mbarriers("c_full", C, 1)
    ce = p.mbarriers("c_empty", C, 2 if slip == "epi_cnt" else 4)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(T * K, "steps"):
                abe[i % S].wait(i // S & 1 ^ 1)
                abf[i % S].expect_bytes(64)
                w.tma_load(ab[i % S], abf[i % S], i)

    @p.role("cload")
    def cload(w: Warp) -> None:
        with w.elect_one():
            for t in w.loop(T, "tiles"):
                ce[t % C].wait(t // C & 1 ^ (0 if slip == "c_par" else 1))
                cf[t % C].expect_bytes(32 if slip == "c_bytes" else 64)
                w.tma_load(c[t % C], cf[t % C], 100 + t)

    @p.role("idle", warps=2)
    def idle(w: Warp) -> None:
        w.work(1)

    @p.role("epi", warps=4)
    def epi(w: Warp) -> None:
        n = 0
        for t in range(T):
            for k in range(K):
                ph = k // S & 1 if slip == "ab_loop_phase" else n // S & 1
                abf[n % S].wait(ph)
                w.mma(Engine.WGMMA, reads=[(ab[n % S], n)])
                w.commit(Engine.WGMMA)
                w.wait_group(Engine.WGMMA, 0)
                if slip != "ab_once_per_tile" or k == K - 1:
                    with w.elect_one():
                        abe[n % S].arrive()
                n += 1
            if slip == "c_wait_ab":
                abf[t % C].wait(t // C & 1)
            else:
                cf[t % C].wait(t // C & 1)
            w.read(c[t % C], 100 + t)
            if slip != "c_rel_forgot":
                with w.elect_one():
                    (abe if slip == "c_rel_on_ab" else ce)[t % C].arrive()

    return p


#: What is offered for each slip.
NAMED_WARP_GROUPS: dict[str, tuple[str, ...]] = {
    "sync_arrive_swap": ("mm waits at named barriers 1 and 2 as well: bar_sync instead of bar_arrive",),
    "threads128": ("256 threads at named barriers 1 and 2 instead of 128",),
    "id_off": ("ldr uses named barriers 1 and 2 in the other order at the bar_arrive: the one of its own stage",),
    "not_primed": ("mm arrives at named barriers 3 and 4 (256 threads) once before it begins",),
    "read_late": ("mm arrives at named barriers 3 and 4 only after its reads and writes",),
    "cp_wait": ("ldr waits for its cp.asyncs before the bar_arrive",),
    "cp_depth": ("ldr leaves none of its groups pending when it waits for them, instead of 1",),
}


def named_warp_groups(slip: str = "") -> Protocol:
    """Two warp groups, two buffers, and a pair of named barriers for each."""
    p = Protocol("named_wg")
    N = 5
    b = p.smem("b", 2, 128)

    @p.role("ldr", warps=4)
    def ldr(w: Warp) -> None:
        for n in range(N):
            w.bar_sync(3 + n % 2, 256)
            w.async_write(Engine.CP_ASYNC, b[n % 2].part(32 * w.index, 32), n)
            w.commit(Engine.CP_ASYNC)
            if slip != "cp_wait":
                w.wait_group(Engine.CP_ASYNC, 1 if slip == "cp_depth" else 0)
            w.bar_arrive(1 + ((n + 1) % 2 if slip == "id_off" else n % 2), 128 if slip == "threads128" else 256)

    @p.role("mm", warps=4)
    def mm(w: Warp) -> None:
        if slip != "not_primed":
            for q in (3, 4):
                w.bar_arrive(q, 256)
        for n in range(N):
            if slip == "sync_arrive_swap":
                w.bar_arrive(1 + n % 2, 256)
            else:
                w.bar_sync(1 + n % 2, 128 if slip == "threads128" else 256)
            if slip == "read_late" and n + 2 < N:
                w.bar_arrive(3 + n % 2, 256)
            w.read(b[n % 2], n)
            if slip != "read_late" and n + 2 < N:
                w.bar_arrive(3 + n % 2, 256)

    return p
