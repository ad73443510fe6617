"""Mistakes in kernels, most of them written down with what is meant before the tool was run on them.

Where two sentences are offered, or none, that is what was judged to be as good, or is not found. The mistakes in
ready-made protocols are in ``tests/protocols/test_corrected_twins.py``.
"""

from collections.abc import Callable

from pipesim.lang.protocol import Protocol
from tests.support.mistakes import kernels, small
from tests.support.mistakes.edited import Edits, Mistake
from tests.support.mistakes.memory_mistakes import SCOPED
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.ring_mistakes import (
    ACQUIRE,
    AWAIT,
    COMMITS,
    EXPECT,
    LOAD,
    PRODUCER,
    PRODUCER_ROLE,
    READ,
    READABLE,
    RELEASE,
    WGMMAS,
    WRITTEN,
)

CONSUMER_ROLE, TILES = '@r.role("consumer")', "tiles: int = 3"
FIVE, SEVEN = {TILES: "tiles: int = 5"}, {TILES: "tiles: int = 7", "stages: int = 2": "stages: int = 3"}
#: Right rings: each of two warps copies a half by ``cp.async``; one of four warps copies; one of two warps releases.
HALVES = {
    **FIVE,
    PRODUCER_ROLE: '@r.p.role("producer", warps=2)',
    EXPECT: "w.async_write(Engine.CP_ASYNC, r.tile[r.slot(i)].part(w.index * TILE // 2, TILE // 2), i)",
    LOAD: "r.of_full(i).cp_async_arrive(noinc=True)",
    "full=1": "full=64",
}
TWO_CONSUME = {**FIVE, CONSUMER_ROLE: '@r.role("consumer", warps=2)', "empty=1": "empty=2"}
ONE_COPIES = {**SEVEN, PRODUCER: 'role("producer", warps=4)', "range(tiles)": "range(tiles if w.index == 0 else 0)"}
ONE_RELEASES = {
    **FIVE,
    CONSUMER_ROLE: '@r.p.role("consumer", warps=2)',
    RELEASE: f"w.bar_sync(7, 64)\nif w.index == 0:\n    with w.elect_one(): {RELEASE}",
}
#: The lanes of both warps run apart, a third warp looks on, one signal says that all tiles are there.
APART = {
    **FIVE,
    PRODUCER_ROLE: '@r.p.role("producer", lanes_apart=True)',
    CONSUMER_ROLE: '@r.p.role("consumer", lanes_apart=True)',
    **{each: f"with w.elect_one(): {each}" for each in (ACQUIRE, EXPECT, LOAD)},
    RELEASE: f"w.sync_warp()\nwith w.elect_one(): {RELEASE}",
}
WATCHED = {
    **FIVE,
    CONSUMER_ROLE: f"""@r.p.role("watcher")
def watcher(w: Warp) -> None:
    for i in range(tiles):
        w.work(1)

{CONSUMER_ROLE}""",
}
ALL_AT_ONCE = {
    "stages: int = 2": "stages: int = 3",
    PRODUCER_ROLE: f'late = r.p.mbarriers("late", 1, 1)\n{PRODUCER_ROLE}',
    ACQUIRE: "pass",
    EXPECT: "w.write(r.tile[r.slot(i)], i)",
    LOAD: "if i == tiles - 1: late[0].arrive()",
    AWAIT: "if i == 0: late[0].wait(0)",
    RELEASE: "pass",
}
#: A scheduler says when a tile may be begun; both roles count iterations; a tile is multiplied in two parts.
THROTTLED = {
    PRODUCER_ROLE: f"""go, back = r.p.mbarriers("go", 1, 1), r.p.mbarriers("back", 1, 1)

@r.role("scheduler")
def scheduler(w: Warp) -> None:
    for i in range(tiles):
        go[0].wait(i & 1)
        back[0].arrive()

{PRODUCER_ROLE}""",
    ACQUIRE: f"back[0].wait(i & 1 ^ 1)\ngo[0].arrive()\n{ACQUIRE}",
}
COUNTED = {**SEVEN, "in range(tiles)": 'in w.loop(tiles, "tiles")', "in range(r.tiles)": 'in w.loop(r.tiles, "tiles")'}
IN_PARTS = {
    **FIVE,
    READ: "for half in range(0, TILE, TILE // 2):\n    " + COMMITS[READ].replace("(i)]", "(i)].part(half, TILE // 2)"),
    RELEASE: COMMITS[RELEASE],
}
#: The producer lets the consumer begin; writes each tile in two parts; waits for what two consumers give it at first.
BEGUN = {
    **COUNTED,
    PRODUCER_ROLE: f'go = r.p.mbarriers("go", 1, 1)\n{PRODUCER_ROLE}',
    LOAD: f"{LOAD}\nif i == 0: go[0].arrive()",
    AWAIT: f"if i == 0: go[0].wait(0)\n{AWAIT}",
}
PART = "(r.tile[r.slot(i)].part({0} * TILE // 2, TILE // 2), i)"
BY_PARTS = {
    **FIVE,
    "stages: int = 2": "stages: int = 1",
    PRODUCER_ROLE: f'part = r.p.mbarriers("part", 2, 1)\n{PRODUCER_ROLE}',
    EXPECT: f"w.write{PART.format(0)}; part[0].arrive()",
    LOAD: f"w.write{PART.format(1)}; part[1].arrive()",
    AWAIT: f"part[0].wait(i & 1); w.read{PART.format(0)}",
    READ: f"part[1].wait(i & 1); w.read{PART.format(1)}",
}
PRIMED = {
    **TWO_CONSUME,
    CONSUMER_ROLE: '@r.role("consumer", warps=4)',
    ACQUIRE: "r.of_empty(i).wait(r.phase(i))",
    "for i in range(r.tiles):": """if w.index % 2 == 0:
    for barrier in r.empty: barrier.arrive()
for i in range(r.tiles if w.index % 2 == 0 else 0):""",
}
#: Of two rings, the slot of the first is given back before the wait for the second.
RELEASE_B = " empty[a.slot(i)].arrive()"
IN_TURN = {**FIVE, "a.read(w, i)": "a.read(w, i)\na.of_empty(i).arrive()", "a.release(i)": "pass"}


def _in(
    right: Callable[..., Protocol], slip: str, kinds: str, edits: Edits, *offered: str, base: Edits | None = None
) -> Mistake:
    """In ``right``, or in what it is with the edits ``base``, which is right as well."""
    rights = base or {}
    return Mistake(
        f"{right.__name__}.{slip}", right, {**rights, **edits}, (f"True: {kinds}",), offered, rights=(rights,)
    )


_KERNELS = [
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
        right_ring, "one_warp_copies", "DEADLOCK", {LOAD: f"if w.index == 0: {HALVES[LOAD]}"},
        "every warp of producer executes the cp.async arrive on full, not only some of them", base=HALVES,
    ),
    _in(
        right_ring, "all_issue", "OVER_ARRIVAL", {"range(tiles)": "range(tiles)"},
        "producer: only one warp waits, copies and arrives, inside a condition: all 4 warps do so", base=ONE_COPIES,
    ),
    _in(
        right_ring, "wait_for_the_stage_before", "DEADLOCK, RACE", {AWAIT: "r.of_full(i - 1).wait(r.phase(i))"},
        "consumer: the wait for full is for the next stage", base=SEVEN,
    ),
    _in(
        right_ring, "release_of_the_stage_after", "DEADLOCK", {RELEASE: "r.of_empty(i + 1).arrive()"},
        "consumer: the arrive on empty is for the stage before", base=SEVEN,
    ),
    _in(
        right_ring, "copy_to_the_stage_after", "DEADLOCK, RACE", {LOAD: LOAD.replace("full(i)", "full(i + 1)")},
        "producer: the copy to full is for the stage before", base=SEVEN,
    ),
    _in(
        right_ring, "begins_again", "WRONG_ITEM",
        {AWAIT: AWAIT.replace("(i)", "(i % 4)"), READ: "w.read(r.tile[r.slot(i % 4)], i)",
         RELEASE: RELEASE.replace("(i)", "(i % 4)")},
        "consumer carries stage and phase of full on instead of beginning again (parity 0 in the first lap)",
        base={**SEVEN, TILES: "tiles: int = 8"},
    ),
    _in(
        right_ring, "never_released", "DEADLOCK", {RELEASE: "w.bar_sync(7, 64)"},
        "one warp of consumer arrives on empty for every stage, after the bar_sync", base=ONE_RELEASES,
    ),
    _in(
        right_ring, "watcher_waits", "DEADLOCK", {"w.work(1)": AWAIT},
        "watcher: warps that neither use a stage nor arrive for it do not wait for full", base=WATCHED,
    ),
    _in(
        right_ring, "no_sync_warp", "DEADLOCK, RACE, WRONG_ITEM", {RELEASE: f"with w.elect_one(): {RELEASE}"},
        "the lanes of the warp meet at __syncwarp() after the read of tile", base=APART,
    ),
    _in(
        right_ring, "wait_inside", "RACE", {AWAIT: f"with w.elect_one(): {AWAIT}"},
        "put the wait for full outside elect_one(): every lane of the warp needs it", base=APART,
    ),
    _in(
        right_ring, "wait_outside", "DEADLOCK", {ACQUIRE: ACQUIRE},
        "put the wait for empty inside elect_one(): only one lane of the warp needs it", base=APART,
    ),
    _in(
        right_ring, "all_not_waited_for", "RACE, UNINITIALISED_READ", {AWAIT: "pass"},
        "consumer waits for late, with parity 0 in the first lap, before each round of the read of tile",
        base=ALL_AT_ONCE,
    ),
    _in(
        right_ring, "every_second_product", "DEADLOCK", {RELEASE: f"if i % 2 == 0:\n    with w.elect_one(): {RELEASE}"},
        "mma arrives on empty for every stage: also after the wait for its wgmmas", base={**FIVE, **WGMMAS},
    ),
    _in(
        small.two_rings, "released_crosswise", "DEADLOCK",
        {"a.read(w, i)": "a.read(w, i)\n(empty)[a.slot(i)].arrive()", RELEASE_B: " a.of_empty(i).arrive()"},
        "consumer: exchange b_empty and empty where it arrives on them", base=IN_TURN,
    ),
    _in(
        small.two_rings, "b_released_as_a", "DEADLOCK", {RELEASE_B: " a.of_empty(i).arrive()"},
        "consumer arrives on b_empty, not on empty", base=IN_TURN,
    ),
    _in(
        small.two_rings, "b_not_released", "DEADLOCK", {RELEASE_B: " pass"},
        "consumer arrives on b_empty after its last use of each stage of full", base=IN_TURN,
    ),
    _in(
        small.two_rings, "waits_for_b_to_read_a", "RACE",
        {"a.read(w, i)": "full[a.slot(i)].wait(a.phase(i))\nw.read(a.tile[a.slot(i)], i)"},
        "consumer waits for full, not for b_full", base=FIVE,
    ),
    _in(
        small.two_rings, "copy_signals_a", "DEADLOCK", {"full[a.slot(i)], i)": "a.of_full(i), i)"},
        "producer completes its copy on b_full, not on full", base=FIVE,
    ),
    _in(
        small.multicast, "not_remote", "DEADLOCK", {"arrive_cluster(0)": "arrive()"},
        "consumer: the arrive on empty is meant for the barrier of CTA 0",
    ),
    _in(
        small.multicast, "relaxed", "WEAK_ORDER", {"arrive_cluster(0)": "arrive_cluster(0, order=Order.RELAXED)"},
        "consumer: let the arrive release at cluster scope instead of .relaxed", base=SCOPED,
    ),
    _in(
        small.multicast, "narrow", "NARROW_SCOPE", {"arrive_cluster(0)": "arrive_cluster(0, scope=Scope.CTA)"},
        "consumer: let the arrive release at cluster scope instead of .cta", base=SCOPED,
    ),
    _in(
        small.multiplied_and_filled, "waits_late", "RACE, WRONG_ITEM", {"empty.wait((i & 1) ^ 1)": "pass",
         "w.write(tile[0], i)": "w.write(tile[0], i)\nempty.wait((i & 1) ^ 1)"},
        "writer executes the write to tile only after the wait for empty",
    ),
    _in(
        kernels.grouped_ring, "fence_late", "MISSING_PROXY_FENCE", {"w.fence(Fence.PROXY_ASYNC)": "pass",
         "full[i % stages].arrive()": "full[i % stages].arrive()\nw.fence(Fence.PROXY_ASYNC)"},
        "producer executes the fence before the arrive on full",
    ),
    _in(
        small.hand_over, "another_number", "DEADLOCK", {READABLE: "w.bar_sync(2, threads)"},
        "writer uses named barrier 2 instead of 1 at the bar_sync",
    ),
    _in(
        small.hand_over, "written_unsynced", "RACE", {WRITTEN: "pass"},
        "writer executes bar_sync at named barrier 1 (64 threads) after the write to tile",
    ),
    _in(
        right_ring, "expects_not_at_the_end", "DEADLOCK", {EXPECT: f"if i + 1 < tiles: {EXPECT}"},
        "producer executes the arrive on full every time, after the wait for empty", base=FIVE,
    ),
    _in(
        right_ring, "reads_one_slot", "RACE", {READ: "w.read(r.tile[0], i)"},
        "consumer: the read of tile is for one slot after the other, not always for the same", base=FIVE,
    ),
    _in(
        small.two_groups, "none_arrives", "DEADLOCK", {"empty[n][i % stages].arrive()": "pass"},
        "each of consumer0 and consumer1 arrives on empty0 and empty1 whenever it has finished with a stage",
    ),
    _in(
        small.two_groups, "waits_for_the_first_phase", "WRONG_ITEM", {"wait(i // stages & 1)": "wait(0)"},
        "each of consumer0 and consumer1 waits for full0 and full1 with parity 0 in the first lap, alternating in each "
        "later lap",
    ),
    _in(
        small.two_groups, "reads_the_slot_before", "RACE", {"w.read(tile[n][i % stages], i)":
        "w.read(tile[n][(i + 1) % stages], i)"},
        "each of consumer0 and consumer1: the read of tile0 and tile1 is for the slot 1 further: that of its own stage",
    ),
    _in(
        small.two_groups, "no_end", "DEADLOCK", {"done[0].arrive()": "pass"},
        "each of consumer0 and consumer1 arrives on done once at its end: no role does",
    ),
    _in(
        right_ring, "counts_exchanged", "DEADLOCK", {"full=1": "full=2", "empty=2": "empty=1"},
        "initialise full with a count of 1 instead of 2 and initialise empty with a count of 2 instead of 1",
        base=TWO_CONSUME,
    ),
    _in(
        right_ring, "exchanges_both", "DEADLOCK", {AWAIT: AWAIT.replace("full", "empty"),
         RELEASE: RELEASE.replace("empty", "full")}, "consumer: exchange empty and full where it uses them",
        base=TWO_CONSUME,
    ),
    _in(
        kernels.split_named, "not_freed_again", "DEADLOCK", {"w.bar_arrive(empty + i % STAGES, 96)": "pass"},
        "reader arrives at named barriers 3 and 4 (96 threads) after the read of tile, once for each meeting there",
    ),
    _in(
        kernels.split_named, "syncs_twice", "DEADLOCK",
        {"w.bar_sync(full + i % STAGES, 96)": "for _ in range(2): w.bar_sync(full + i % STAGES, 96)"},
        "reader executes the bar_sync once, not twice in a row",
    ),
    _in(
        right_ring, "an_iteration_short", "DEADLOCK", {"w.loop(tiles,": "w.loop(tiles - 1,"},
        "producer executes 1 iteration more of its loop over tiles, or consumer 1 fewer: all roles as many",
        base=COUNTED,
    ),
    _in(
        right_ring, "not_throttled", "DEADLOCK", {"back[0].wait(i & 1 ^ 1)": "pass", "go[0].arrive()": "pass"},
        "producer waits for back and arrives on go before the wait for empty: no role does", base=THROTTLED,
    ),
    _in(
        right_ring, "a_commit_for_each_part", "RACE",
        {RELEASE: "pass", READ: f"{IN_PARTS[READ]}\n    {COMMITS[RELEASE]}"},
        "initialise empty with a count of 2 instead of 1",
        "consumer commits to empty once for each stage, after its last use of it, not after each", base=IN_PARTS,
    ),
    _in(
        right_ring, "expects_in_parts", "OVER_ARRIVAL",
        {EXPECT: f"for _ in range(2): {EXPECT.replace('TILE', 'TILE // 2')}"},
        "initialise full with a count of 2 instead of 1",
        "producer expects the bytes of a stage together, with one arrive on full, not part by part",
    ),
    _in(
        right_ring, "nothing_for_the_last", "DEADLOCK",
        {EXPECT: f"if i + 1 < tiles: {EXPECT}", LOAD: f"if i + 1 < tiles: {LOAD}"},
        "producer executes the arrive on full and the copy to full every time, after the wait for empty", base=FIVE,
    ),
    _in(
        right_ring, "waits_every_time", "DEADLOCK", {AWAIT: "late[0].wait(i & 1)"},
        "consumer executes the wait for late only the first time: the others do so once", base=ALL_AT_ONCE,
    ),
    _in(
        right_ring, "begun_at_the_end", "DEADLOCK", {LOAD: f"{LOAD}\nif i == tiles - 1: go[0].arrive()"},
        "producer executes the arrive on go in the first iteration of its loop over tiles, not in the last", base=BEGUN,
    ),
    _in(
        right_ring, "second_part_not_awaited", "RACE", {READ: f"w.read{PART.format(1)}"},
        "consumer waits for part also before the read of tile", base=BY_PARTS,
    ),
    _in(
        right_ring, "one_of_two_primes", "DEADLOCK", {
            "for i in range(r.tiles):": PRIMED["for i in range(r.tiles):"].replace("% 2 == 0:", "== 0:")},
        "consumer/2 arrives once on every stage of empty before it begins, as others of its role do", base=PRIMED,
    ),
    _in(
        right_ring, "commits_to_its_own_wait", "WRONG_ITEM", {RELEASE: COMMITS[RELEASE].replace("empty", "full")},
        "mma commits to empty, not to full", base={**FIVE, **COMMITS},
    ),
    _in(
        right_ring, "reads_at_another_index", "RACE", {READ: "w.read(r.tile[r.slot(i // 2)], i)"},
        "consumer: the read of tile is for the slot of the stage that it has waited for", base=FIVE,
    ),
    _in(
        right_ring, "both_copy_the_first_half", "RACE",
        {EXPECT: HALVES[EXPECT].replace("w.index * TILE // 2", "0")},
        "producer: the transfer into tile is for another part of the slot in each warp: its own of 2", base=HALVES,
    ),
    _in(
        small.stores, "two_in_a_row", "RACE", {"out[i % slots]": "out[i // 2 % slots]"},
        "every warp of epilogue takes the next slot of out after each use of one",
        base={"slots: int = 1, tiles: int = 2": "slots: int = 2, tiles: int = 6"},
    ),
    _in(
        small.multicast, "to_its_own_cta", "DEADLOCK", {", cta_mask=0b11": ""},
        "loader multicasts on full to the CTAs of mask 0b11 instead of copying to its own alone, at the copy to full",
    ),
]  # fmt: skip
KERNEL_MISTAKES = {each.name: each for each in _KERNELS}
