"""Work that roles hand over: by named barriers, by mbarriers in turn, at the end."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.pipelines import PipelineState

#: What is offered for each slip.
NAMED_SPLIT: dict[str, tuple[str, ...]] = {
    "wrong_id": ("cons uses named barriers 4 and 5 instead of 2 and 3 at the bar_arrive",),
    "cons_only": ("192 threads at named barriers 2 and 3 instead of 128",),
    "no_prime": ("cons arrives at named barriers 4 and 5 (192 threads) once before it begins",),
    "early": ("cons arrives at named barriers 4 and 5 only after its reads and writes",),
    "prod_arrives_at_empty": ("prod waits at named barriers 4 and 5 as well: bar_sync instead of bar_arrive",),
    "swap_ids": ("prod uses named barriers 2 and 3 in the other order at the bar_arrive: the one of its own stage",),
}


def named_split(slip: str = "") -> Protocol:
    """Two writers, four readers, two buffers: a pair of named barriers for each."""
    p = Protocol("named_split")
    N = 6
    t = p.smem("t", 2, 64)
    th = 128 if slip == "cons_only" else 192

    @p.role("prod", warps=2)
    def prod(w: Warp) -> None:
        for i in range(N):
            if slip == "prod_arrives_at_empty":
                w.bar_arrive(4 + i % 2, 192)
            else:
                w.bar_sync(4 + i % 2, 192)
            w.write(t[i % 2].part(32 * w.index, 32), i)
            w.bar_arrive(2 + ((i + 1) % 2 if slip == "swap_ids" else i % 2), th)

    @p.role("cons", warps=4)
    def cons(w: Warp) -> None:
        if slip != "no_prime":
            w.bar_arrive(4, 192)
            w.bar_arrive(5, 192)
        for i in range(N):
            w.bar_sync(2 + i % 2, th)
            more = i + 2 < N
            if slip == "early" and more:
                w.bar_arrive(4 + i % 2, 192)
            w.read(t[i % 2], i)
            if slip != "early" and more:
                w.bar_arrive((2 if slip == "wrong_id" else 4) + i % 2, 192)

    return p


#: What is offered for each slip.
PING_PONG_MBARRIERS: dict[str, tuple[str, ...]] = {
    "g0_parity": ("math0 waits for turn with parity 1 in the first lap, alternating in each later lap",),
    "own_order": ("math1: the arrive on turn is for the stage 1 stage further",),
    "no_skip": (),
    "no_order_wait": (),
    "order_early": ("math0 executes the arrive on turn only after the write to stage",),
    "count_threads": ("initialise turn with a count of 1 instead of 32",),
}


def ping_pong_mbarriers(slip: str = "") -> Protocol:
    """Two math warps that take tiles in turn, in an order that mbarriers keep."""
    p = Protocol("pingpong")
    S, K, T = (4, 2, 4)
    b = p.smem("ab", S, 64)
    stg = p.smem("stage", 1, 32)
    full = p.mbarriers("full", S, 1)
    empty = p.mbarriers("empty", S, 1)
    turn = p.mbarriers("turn", 2, 32 if slip == "count_threads" else 1)

    @p.role("prod")
    def prod(w: Warp) -> None:
        ps = PipelineState(S, 0, 1)
        with w.elect_one():
            for i in range(T * K):
                empty[ps.index()].wait(ps.phase())
                full[ps.index()].expect_bytes(64)
                w.tma_load(b[ps.index()], full[ps.index()], i)
                ps.step()

    def math(w: Warp, me: int) -> None:
        cs = PipelineState(S)
        ph = 1 - me
        if slip == "g0_parity" and me == 0:
            ph = 0
        if me == 1 and slip != "no_skip":
            cs.advance(K)
        for t in range(me, T, 2):
            if slip != "no_order_wait" or me == 0:
                turn[me].wait(ph)
            ph ^= 1
            if slip == "order_early" and me == 0:
                with w.elect_one():
                    turn[1].arrive()
            for k in range(K):
                full[cs.index()].wait(cs.phase())
                w.read(b[cs.index()], t * K + k)
                with w.elect_one():
                    empty[cs.index()].arrive()
                cs.step()
            cs.advance(K)
            w.write(stg[0], t)
            if not (slip == "order_early" and me == 0):
                with w.elect_one():
                    turn[me if slip == "own_order" and me == 1 else 1 - me].arrive()

    @p.role("math0", warps=1)
    def math0(w: Warp) -> None:
        math(w, 0)

    @p.role("math1", warps=1)
    def math1(w: Warp) -> None:
        math(w, 1)

    return p


#: What is offered for each slip.
SCHEDULER: dict[str, tuple[str, ...]] = {
    "storer_uncounted": ("initialise sched_empty with a count of 3 instead of 2",),
    "write_first": ("sched executes the write to tile_id only after the wait for sched_empty",),
    "read_late": ("math arrives on sched_empty only after its reads and writes of the stage",),
    "lane_write": ("sched: put the arrive on sched_full inside elect_one(): all 32 lanes execute it",),
    "one_less": (),
    "no_wait_in_storer": ("storer waits for sched_full, with parity 0 in the first lap, before it uses a stage",),
    "storer_parity": ("storer waits for sched_full with parity 0 in the first lap, alternating in each later lap",),
    "arrive_before_write": ("sched arrives on sched_full only after its reads and writes of the stage",),
}


def scheduler(slip: str = "") -> Protocol:  # noqa: C901 (many slips)
    """Numbers of tiles that a scheduler hands to three roles."""
    p = Protocol("clc_soft")
    D, N = (2, 5)
    m = p.smem("tile_id", D, 16)
    f = p.mbarriers("sched_full", D, 1)
    e = p.mbarriers("sched_empty", D, 2 if slip == "storer_uncounted" else 3)

    @p.role("sched")
    def sched(w: Warp) -> None:
        for i in range(N - (slip == "one_less")):
            s, ph = (i % D, i // D & 1)
            if slip == "write_first":
                w.write(m[s], i)
            e[s].wait(ph ^ 1)
            if slip == "arrive_before_write":
                with w.elect_one():
                    f[s].arrive()
            if slip != "write_first":
                w.write(m[s], i)
            if slip == "arrive_before_write":
                pass
            elif slip == "lane_write":
                f[s].arrive()
            else:
                with w.elect_one():
                    f[s].arrive()

    def use(w: Warp, name: str) -> None:
        for i in range(N):
            s, ph = (i % D, i // D & 1)
            if not (slip == "no_wait_in_storer" and name == "storer"):
                f[s].wait(ph ^ (slip == "storer_parity" and name == "storer"))
            if slip == "read_late" and name == "math":
                with w.elect_one():
                    e[s].arrive()
            w.read(m[s], i)
            if not (slip == "read_late" and name == "math"):
                with w.elect_one():
                    e[s].arrive()

    @p.role("loader")
    def loader(w: Warp) -> None:
        use(w, "loader")

    @p.role("math")
    def math(w: Warp) -> None:
        use(w, "math")

    @p.role("storer")
    def storer(w: Warp) -> None:
        use(w, "storer")

    return p


#: What is offered for each slip.
FINAL: dict[str, tuple[str, ...]] = {
    "idle_returns": ("idle executes the bar_sync once more at its end, as many times as its partners",),
    "count_w": ("initialise done with a count of 3 instead of 4",),
    "elect_missing": ("work: put the arrive on done inside elect_one(): all 32 lanes execute it",),
    "reader_no_wait": ("tail waits for done, with parity 0, once: before it first executes the read of x",),
}


def final(slip: str = "") -> Protocol:
    """Three warps write, one reads, and all meet at the end."""
    p = Protocol("final")
    x = p.smem("x", 3, 32)
    done = p.mbarriers("done", 1, 4 if slip == "count_w" else 3)

    @p.role("work", warps=3)
    def work(w: Warp) -> None:
        w.write(x[w.index], 7)
        if slip == "elect_missing":
            done[0].arrive()
        else:
            with w.elect_one():
                done[0].arrive()
        w.sync_threads()

    @p.role("tail")
    def tail(w: Warp) -> None:
        if slip != "reader_no_wait":
            done[0].wait(0)
        for j in range(3):
            w.read(x[j], 7)
        w.sync_threads()

    @p.role("idle")
    def idle(w: Warp) -> None:
        if slip != "idle_returns":
            w.sync_threads()

    return p
