"""Mistakes in larger kernels, most of them written down with what is meant before the tool was run on them.

Where two sentences are offered, or none, that is what was judged to be as good, or is not found.
"""

from __future__ import annotations

from collections.abc import Callable

from pipesim.lang.protocol import Protocol
from tests.support.mistakes import cluster_kernels, kernels
from tests.support.mistakes.edited import Edits, Mistake


def _in(right: Callable[..., Protocol], slip: str, kinds: str, edits: Edits, *offered: str) -> Mistake:
    return Mistake(f"{right.__name__}.{slip}", right, edits, (f"True: {kinds}",), offered)


_KERNELS = [
    _in(
        kernels.wgmma_ring, "released_too_early", "RACE",
        {"release(before)": "pass", "w.wait_group(Engine.WGMMA, 1)": "release(before)\nw.wait_group(Engine.WGMMA, 1)"},
        "math arrives on empty only after it has waited for its wgmmas",
    ),
    _in(
        kernels.wgmma_ring, "no_group_wait", "RACE", {"w.wait_group(Engine.WGMMA, 1)": "pass"},
        "math waits for its wgmmas, leaving no more than 1 pending, before the arrive on empty",
    ),
    _in(
        kernels.wgmma_ring, "group_wait_too_deep", "RACE",
        {"w.wait_group(Engine.WGMMA, 1)": "w.wait_group(Engine.WGMMA, 2)"},
        "math leaves no more than 1 of its groups pending when it waits for them, instead of 2",
    ),
    _in(
        kernels.wgmma_ring, "no_group_commit", "RACE", {"w.commit(Engine.WGMMA)": "pass"},
        "math executes wgmma.commit_group after its wgmmas, before it waits for them",
    ),
    _in(
        kernels.wgmma_ring, "counted_in_threads", "DEADLOCK", {'"empty", STAGES, MATH': '"empty", STAGES, 128'},
        "initialise empty with a count of 4 instead of 128",
    ),
    _in(
        kernels.wgmma_ring, "no_sync_before_store", "UNINITIALISED_READ",
        {"w.bar_sync(1, threads)  # it can be stored": "pass"},
        "math executes bar_sync at named barrier 1 (128 threads) after the fence",
    ),
    _in(
        kernels.wgmma_ring, "no_sync_after_store_wait", "RACE", {"w.bar_sync(1, threads)  # it can be written": "pass"},
        "math executes bar_sync at named barrier 1 (128 threads) before the write to out",
    ),
    _in(
        kernels.wgmma_ring, "no_store_wait", "RACE", {"w.wait_group(Engine.BULK, 0)": "pass"},
        "math waits for its bulk stores before the bar_sync",
    ),
    _in(
        kernels.wgmma_ring, "one_warp_releases", "DEADLOCK", {"if stage >= 0:": "if w.index == 0 and stage >= 0:"},
        "every warp of math executes the arrive on empty, not only some of them",
    ),
    _in(
        kernels.cp_async_ring, "one_warp_arrives", "DEADLOCK",
        {"full[stage].cp_async_arrive(noinc=True)": "if w.index == 0: full[stage].cp_async_arrive(noinc=True)"},
        "every warp of producer executes the cp.async arrive on full, not only some of them",
    ),
    _in(
        kernels.cp_async_ring, "counted_in_warps", "OVER_ARRIVAL", {'"full", stages, 64': '"full", stages, 2'},
        "initialise full with a count of 64 instead of 2",
    ),
    _in(
        kernels.grouped_ring, "no_wait", "RACE",
        {"w.wait_group(Engine.CP_ASYNC, left)": "if left == 0: w.wait_group(Engine.CP_ASYNC, 0)"},
        "producer waits for its cp.asyncs, leaving no more than 1 pending, before the fence",
    ),
    _in(
        kernels.grouped_ring, "no_commit", "RACE", {"w.commit(Engine.CP_ASYNC)": "pass"},
        "producer executes cp.async.commit_group after its cp.asyncs, before it waits for them",
    ),
    _in(
        kernels.grouped_ring, "last_arrive_missing", "DEADLOCK", {"signal(tiles - 1, 0)": "pass"},
        "producer arrives on full for its last stages as well, when their transfers have ended",
    ),
    _in(
        kernels.grouped_ring, "no_fence", "MISSING_PROXY_FENCE", {"w.fence(Fence.PROXY_ASYNC)": "pass"},
        "producer executes fence.proxy.async after its writes, before it signals any other agent",
    ),
    _in(
        kernels.grouped_ring, "one_lane_arrives", "DEADLOCK",
        {"full[i % stages].arrive()": "with w.elect_one(): full[i % stages].arrive()"},
        "producer: put the arrive on full outside elect_one(): each of the 32 lanes is counted",
    ),
    _in(
        kernels.multistage, "no_sync", "RACE, UNINITIALISED_READ", {"w.sync_threads()": "pass"},
        "warp executes __syncthreads() before the read of tile",
    ),
    _in(
        kernels.multistage, "no_commit_in_tail", "RACE",
        {"w.commit(Engine.CP_ASYNC)": "if i < tiles: w.commit(Engine.CP_ASYNC)"},
        "warp executes cp.async.commit_group in every iteration, also where it has nothing to copy",
    ),
    _in(
        kernels.multistage, "no_wait", "RACE", {"w.wait_group(Engine.CP_ASYNC, 1)": "pass"},
        "warp waits for its cp.asyncs, leaving no more than 1 pending, before the bar_sync",
    ),
    _in(
        kernels.split_named, "readers_say_64", "BARRIER_THREADS, RACE, UNINITIALISED_READ", {"96)  # filled": "64)"},
        "96 threads at named barriers 1 and 2 instead of 64",
    ),
    _in(
        kernels.split_named, "everybody_says_128", "DEADLOCK",
        {"empty + i % STAGES, 96": "empty + i % STAGES, 128", "empty + stage, 96": "empty + stage, 128"},
        "96 threads at named barriers 3 and 4 instead of 128",
    ),
    _in(
        kernels.split_named, "readers_only_arrive", "UNINITIALISED_READ", {"w.bar_sync(full": "w.bar_arrive(full"},
        "reader waits at named barriers 1 and 2 as well: bar_sync instead of bar_arrive",
    ),
    _in(
        kernels.split_named, "not_primed", "DEADLOCK", {"w.bar_arrive(empty + stage, 96)": "pass"},
        "reader arrives at named barriers 3 and 4 (96 threads) once before it begins",
    ),
    _in(
        kernels.split_named, "frees_before_reading", "RACE",
        {"w.read(tile[i % STAGES], i)": "pass", '_ = "after the arrive"': "w.read(tile[i % STAGES], i)"},
        "reader arrives at named barriers 3 and 4 only after its reads and writes",
    ),
    _in(
        kernels.split_named, "no_acquire", "DEADLOCK, RACE, WRONG_ITEM", {"w.bar_sync(empty + i % STAGES, 96)": "pass"},
        "writer executes bar_sync at named barriers 3 and 4 (96 threads) before the write to tile",
    ),
    _in(
        kernels.split_named, "other_buffer", "DEADLOCK", {"w.bar_sync(full + i": "w.bar_sync(full + (i + 1)"},
        "reader uses named barriers 1 and 2 in the other order at the bar_sync: the one of its own stage",
    ),
    _in(
        cluster_kernels.multicast_ring, "arrives_at_home_only", "DEADLOCK", {"range(2)": "(w.cta,)"},
        "consumer arrives on empty of every CTA of the cluster, not only of its own",
    ),
    _in(
        kernels.lanes_apart, "wait_outside", "DEADLOCK",
        {"empty[stage].wait(lap & 1 ^ 1)": "pass",
         "with w.elect_one():  # loads": "empty[stage].wait(lap & 1 ^ 1)\nwith w.elect_one():"},
        "put the wait for empty inside elect_one(): only one lane of the warp needs it",
    ),
    _in(
        kernels.lanes_apart, "wait_inside", "RACE",
        {"full[stage].wait(lap & 1)": "with w.elect_one(): full[stage].wait(lap & 1)"},
        "put the wait for full outside elect_one(): every lane of the warp needs it",
    ),
    _in(
        kernels.lanes_apart, "no_sync_warp", "DEADLOCK, RACE, WRONG_ITEM", {"w.sync_warp()": "pass"},
        "the lanes of the warp meet at __syncwarp() after the read of tile",
    ),
    _in(
        kernels.spectators, "idle_warps_wait", "DEADLOCK",
        {"for _ in range(tiles):": "for i in range(tiles):\n    full[i % STAGES].wait(i // STAGES & 1)"},
        "watcher: warps that neither use a stage nor arrive for it do not wait for full",
    ),
    _in(
        kernels.spectators, "not_counted", "DEADLOCK, RACE, WRONG_ITEM",
        {"count=3": "count=2", "empty[stage].arrive()": "if w.index < 1: empty[stage].arrive()"},
        "every warp of consumer arrives on empty, initialised with a count of 3 instead of 2",
    ),
    _in(
        kernels.tcgen05_tiles, "commit_wrong", "RACE", {"acc_full[t % 2])": "empty[t % 2])"},
        "mma: the commit on empty is meant for acc_full",
    ),
    _in(
        kernels.tcgen05_tiles, "mma_no_acc_wait", "DEADLOCK, RACE", {"acc_empty[t % 2].wait(t // 2 & 1 ^ 1)": "pass"},
        "mma waits for acc_empty, with parity 1 in the first lap, before all the work that it signals on acc_full",
    ),
    _in(
        kernels.two_groups, "no_init_arrive", "DEADLOCK", {"w.bar_arrive(1, threads)": "pass"},
        "wg1 arrives at named barrier 1 (64 threads) once before it begins",
    ),
    _in(
        kernels.two_groups, "wrong_next", "DEADLOCK", {"w.bar_arrive(2 - me, threads)": "w.bar_arrive(2, threads)"},
        "wg1 uses named barrier 1 instead of 2 at the bar_arrive",
    ),
    _in(
        kernels.two_groups, "v_not_released_by_wg1", "DEADLOCK",
        {"v_free[s].arrive()": "if me == 0: v_free[s].arrive()"},
        "each of wg0 and wg1 executes the arrive on v_free, not only some of their warps",
    ),
    _in(
        kernels.two_groups, "v_wait_forgotten", "RACE", {"v_full[s].wait(ph)": "if me: v_full[s].wait(ph)"},
        "wg0 waits for v_full, with parity 0 in the first lap, before the work that it signals on v_free",
    ),
    _in(
        kernels.two_groups, "o_store_no_fence", "MISSING_PROXY_FENCE", {"w.fence(Fence.PROXY_ASYNC)": "pass"},
        "every role executes fence.proxy.async after its writes, before it signals any other agent",
    ),
    _in(
        cluster_kernels.push, "relaxed", "WEAK_ORDER", {"Order.RELEASE": "Order.RELAXED"},
        "writer: let the arrive release at cluster scope instead of .relaxed",
    ),
    _in(
        cluster_kernels.push, "narrow", "NARROW_SCOPE", {"scope=Scope.CLUSTER": "scope=Scope.CTA"},
        "writer: let the arrive release at cluster scope instead of .cta",
    ),
    _in(
        cluster_kernels.push, "two_barriers", "RACE", {"far[0].wait_acquire(0, Scope.CLUSTER)": "pass"},
        "reader waits for far, with parity 0 in the first lap, before the read of tile",
    ),
    _in(
        kernels.attention, "q_no_release", "DEADLOCK", {"qe[0].arrive()": "pass"},
        "sm arrives on q_empty after its last use of each stage of q_full",
    ),
    _in(
        kernels.attention, "released_crosswise", "DEADLOCK",
        {"ke[s].arrive()": "(ve)[s].arrive()", " ve[s].arrive()": " ke[s].arrive()"},
        "sm: exchange v_empty and k_empty where it arrives on them",
    ),
    _in(
        kernels.attention, "kf_for_vf", "RACE, UNINITIALISED_READ", {"vf[s].wait(ph)": "kf[s].wait(ph)"},
        "sm: the wait for k_full is meant for v_full",
    ),
    _in(
        kernels.attention, "v_tma_on_k", "DEADLOCK", {"w.tma_load(v[s], vf[s], i)": "w.tma_load(v[s], kf[s], i)"},
        "ld: the copy to k_full is meant for v_full",
    ),
    _in(
        kernels.persistent_gemm, "reset", "WRONG_ITEM",
        {"for t in range(tiles):": "for t in range(tiles):\n    if t: st = PipelineState(stages)"},
        "mma carries stage and phase of full on instead of beginning again (parity 0 in the first lap)",
    ),
    _in(
        kernels.persistent_gemm, "tma_next", "RACE", {"+ 0)": "+ 1)"},
        "dma: the copy to full is for the stage 1 stage back",
    ),
    _in(
        kernels.warp_group_ring, "all_issue", "OVER_ARRIVAL", {"if w.index == 0:": "if True:"},
        "load: only one warp waits, copies and arrives, inside a condition: all 4 warps do so",
    ),
    _in(
        kernels.warp_group_ring, "stage_minus", "DEADLOCK, RACE",
        {"full[s].wait(ph)": "full[(s - 1) % stages].wait(ph)"},
        "math: the wait for full is for the stage 1 stage further",
    ),
    _in(
        kernels.warp_group_ring, "rel_stage", "DEADLOCK", {"empty[s].arrive()": "empty[(s + 1) % stages].arrive()"},
        "math: the arrive on empty is for the stage 1 stage back",
    ),
    _in(
        kernels.relay, "tr_waits_late", "RACE",
        {"out_free[s].wait(ph ^ 1)": "pass", "w.fence(": "out_free[s].wait(ph ^ 1)\nw.fence("},
        "tr executes the write to cooked only after the wait for out_free",
    ),
    _in(
        kernels.relay, "tr_rel_in_early", "RACE",
        {"in_free[s].arrive()": "pass",
         "out_free[s].wait(ph ^ 1)": "with w.elect_one(): in_free[s].arrive()\nout_free[s].wait(ph ^ 1)"},
        "tr executes the arrive on in_free only after the read of raw",
    ),
    _in(
        kernels.relay, "use_never_rel", "DEADLOCK", {"out_free[s].arrive()": "pass"},
        "one warp of use arrives on out_free for every stage, after the bar_sync",
    ),
    _in(
        kernels.relay, "fence_late", "MISSING_PROXY_FENCE",
        {"w.fence(Fence.PROXY_ASYNC)": "pass",
         "out_full[s].arrive()": "out_full[s].arrive()\nw.fence(Fence.PROXY_ASYNC)"},
        "tr executes the fence before the arrive on out_full",
    ),
    _in(
        kernels.cooperative, "c_rel_forgot", "DEADLOCK", {"c_empty[t % c_stages].arrive()": "pass"},
        "epi arrives on c_empty whenever it has finished with a stage of c_full",
    ),
    _in(
        kernels.cooperative, "c_rel_on_ab", "DEADLOCK",
        {"c_empty[t % c_stages].arrive()": "ab_empty[t % c_stages].arrive()"},
        "epi: the arrive on ab_empty is meant for c_empty",
    ),
    _in(
        kernels.cooperative, "ab_once_per_tile", "DEADLOCK",
        {"ab_empty[n % stages].arrive()": "if k == steps - 1: ab_empty[n % stages].arrive()"},
        "epi arrives on ab_empty for every stage: also after the wait for its wgmmas",
    ),
    _in(
        kernels.turns, "own_order", "DEADLOCK", {"turn[1 - me]": "turn[1]"},
        "math1: the arrive on turn is for the stage 1 stage further",
    ),
    _in(kernels.turns, "no_skip", "WRONG_ITEM", {"if me == 1:": "if me == 2:"}),
    _in(kernels.turns, "no_order_wait", "DEADLOCK, RACE", {"turn[me].wait(ph)": "if me == 0: turn[me].wait(ph)"}),
    _in(
        kernels.turns, "order_early", "RACE",
        {"turn[1 - me].arrive()": "if me: turn[0].arrive()",
         "ph ^= 1": "ph ^= 1\nif me == 0:\n    with w.elect_one(): turn[1].arrive()"},
        "math0 executes the arrive on turn only after the write to stage",
    ),
    _in(
        kernels.at_the_end, "reader_no_wait", "RACE, UNINITIALISED_READ", {"done[0].wait(0)": "pass"},
        "tail waits for done, with parity 0, once: before it first executes the read of x",
    ),
    _in(
        cluster_kernels.row_leader, "leader_not_remote", "DEADLOCK",
        {"arrive_cluster(0, order=Order.RELEASE, scope=Scope.CLUSTER)": "arrive()"},
        "math: the arrive on a_free is meant for the barrier of CTA 0",
    ),
    _in(
        cluster_kernels.row_leader, "b_free_missing", "OVER_ARRIVAL", {"b_free[s].wait(ph ^ 1)": "pass"},
        "load waits for b_free, with parity 1 in the first lap, before it uses a stage",
    ),
]  # fmt: skip
KERNEL_MISTAKES = {each.name: each for each in _KERNELS}
