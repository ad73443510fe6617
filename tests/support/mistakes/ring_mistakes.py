"""Mistakes in a ring and in small protocols: what every schedule of them shows, at any size, and what is offered."""

from collections.abc import Callable

from pipesim.lang.protocol import Protocol
from tests.support.mistakes import small
from tests.support.mistakes.edited import Edits, Mistake
from tests.support.mistakes.ring import right_ring

ACQUIRE, AWAIT = "r.of_empty(i).wait(r.phase(i) ^ 1)", "r.of_full(i).wait(r.phase(i))"
EXPECT, LOAD = "r.of_full(i).expect_bytes(TILE)", "w.tma_load(r.tile[r.slot(i)], r.of_full(i), i)"
READ, RELEASE = "w.read(r.tile[r.slot(i)], i)", "r.of_empty(i).arrive()"
PRODUCER, CONSUMER = 'role("producer")', 'role("consumer")'
HALF = "w.tma_load(r.tile[r.slot(i)].part({0} * TILE // 2, TILE // 2), {1}, i)"
TWO_BARRIERS = f"""for half, barriers in enumerate((r.full, late)):
    barriers[r.slot(i)].expect_bytes(TILE // 2)
    {HALF.format("half", "barriers[r.slot(i)]")}"""
WRITTEN, AGAIN = "w.bar_sync(1, threads)  # written", "w.bar_sync(1, threads)  # so that it can be written again"
READABLE, HAS_READ = "w.bar_sync(1, threads)  # so that it can be read", "w.bar_sync(1, threads)  # read"
INIT_BY_CONSUMER = """def consumer(w: Warp) -> None:
    with w.elect_one():
        for barrier in (*r.full, *r.empty):
            barrier.init(1)
        w.fence(Fence.MBARRIER_INIT)"""
#: The ring otherwise: inits of its own, products of tcgen05 and of wgmma instead of reads, copies by ``cp.async``.
PRODUCER_ROLE = '@r.role("producer")'
OWN_INITS = {
    PRODUCER_ROLE: f"""@r.p.init
def init() -> None:
    for s in range(stages):
        r.full[s].init(1)
        r.empty[s].init(1)
{PRODUCER_ROLE}"""
}
COMMITS = {
    CONSUMER: 'role("mma")',
    RELEASE: "w.commit(Engine.TCGEN05, r.of_empty(i))",
    READ: "w.mma(Engine.TCGEN05, reads=[(r.tile[r.slot(i)], i)])",
}
WGMMAS = {
    '@r.role("consumer")': '@r.p.role("mma", warps=4)',
    "empty=1": "empty=4",
    RELEASE: f"with w.elect_one(): {RELEASE}",
    READ: """w.mma(Engine.WGMMA, reads=[(r.tile[r.slot(i)], i)])
w.commit(Engine.WGMMA)
w.wait_group(Engine.WGMMA, 0)""",
}
COPIED_BY_THREADS = {
    EXPECT: "w.async_write(Engine.CP_ASYNC, r.tile[r.slot(i)], i)",
    LOAD: "r.of_full(i).cp_async_arrive(noinc=True)",
}
#: Corrections that several get.
PRODUCER_TOGGLES = "producer waits for empty with parity 1 in the first lap, alternating in each later lap"
CONSUMER_TOGGLES = "consumer waits for full with parity 0 in the first lap, alternating in each later lap"
CONSUMER_WAITS = "consumer waits for full, with parity 0 in the first lap, before it uses a stage"
STAGE_BY_STAGE = "consumer waits for full stage by stage, with parity 0 in the first lap"
EVERY_WARP = "every warp of consumer arrives on empty, initialised with a count of 2 instead of 1"
PUBLISH = "after the inits and their fence comes a barrier of all threads of"
BYTES = "producer expects 64 bytes on full instead of {}: as many as are copied"
THREADS = "64 threads at named barrier 1 instead of {}"
ANY = "tiles > 0: "
LAPPED = "tiles > stages: "
UNREADY = (f"{LAPPED}RACE, UNINITIALISED_READ, WRONG_ITEM", f"{ANY}RACE, UNINITIALISED_READ")
HANGS, HANGS_LAPPED = (f"{ANY}DEADLOCK",), (f"{LAPPED}DEADLOCK",)
WILD = (f"{LAPPED}DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM",)


def _in(
    right: Callable[..., Protocol], name: str, edits: Edits, claims: tuple[str, ...], *offered: str, **sizes: int
) -> Mistake:
    return Mistake(name, right, edits, claims, offered, sizes)


def _of(base: Edits, name: str, edits: Edits, claims: tuple[str, ...], *offered: str, **sizes: int) -> Mistake:
    """In a ring that is right with the edits ``base``."""
    return Mistake(name, right_ring, {**base, **edits}, claims, offered, sizes, rights=(base,))


_RING = [
    _in(
        right_ring, "full_count_too_high", {"full=1": "full=2"}, HANGS,
        "initialise full with a count of 1 instead of 2", tiles=5,
    ),
    _in(
        right_ring, "empty_count_too_high", {"empty=1": "empty=2"}, HANGS_LAPPED,
        "initialise empty with a count of 1 instead of 2", tiles=5,
    ),
    _in(
        right_ring, "two_producers_one_counted",
        {PRODUCER: 'role("producer", warps=2)', EXPECT: "r.of_full(i).expect_bytes(TILE // 2)",
         LOAD: HALF.format("w.index", "r.of_full(i)")},
        (f"{LAPPED}DEADLOCK, OVER_ARRIVAL, RACE, UNINITIALISED_READ, WRONG_ITEM",
         f"{ANY}DEADLOCK, OVER_ARRIVAL, RACE, UNINITIALISED_READ"), "initialise full with a count of 2 instead of 1",
    ),
    _in(
        right_ring, "two_consumers_one_counted", {CONSUMER: 'role("consumer", warps=2)'},
        ("tiles > 2 * stages: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM", f"{LAPPED}DEADLOCK, RACE, WRONG_ITEM"),
        "initialise empty with a count of 2 instead of 1",
    ),
    _in(
        right_ring, "second_consumer_silent",
        {CONSUMER: 'role("consumer", warps=2)', RELEASE: f"if w.index == 0: {RELEASE}"},
        (f"{LAPPED}DEADLOCK, RACE, WRONG_ITEM",), EVERY_WARP,
    ),
    _in(
        right_ring, "consumer_arrives_twice", {RELEASE: f"{RELEASE}; {RELEASE}"},
        ("tiles > 2 * stages: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM", *HANGS_LAPPED),
        "consumer omits its second arrive on empty", tiles=5,
    ),
    _in(
        right_ring, "consumer_never_arrives", {RELEASE: "pass"}, HANGS_LAPPED,
        "consumer arrives on empty whenever it has finished with a stage", tiles=5,
    ),
    _in(
        right_ring, "consumer_arrives_every_second", {RELEASE: f"if i % 2 == 0: {RELEASE}"},
        ("tiles > stages + 1: DEADLOCK",), "consumer arrives on empty for every stage: also after the read of tile",
        tiles=5,
    ),
    _in(
        right_ring, "every_lane_arrives", {'@r.role("consumer")': '@r.p.role("consumer")'}, (f"{ANY}OVER_ARRIVAL",),
        "consumer: put the arrive on empty inside elect_one(): all 32 lanes execute it", tiles=5,
    ),
    _in(
        right_ring, "consumer_drops", {RELEASE: "r.of_empty(i).arrive_drop()"}, (f"{LAPPED}OVER_ARRIVAL",),
        "consumer arrives on empty without dropping out of it", tiles=5,
    ),
    _in(
        right_ring, "wrong_role_arrives", {RELEASE: "pass", LOAD: f"{LOAD}\n{RELEASE}"}, WILD,
        "consumer arrives on empty instead of producer, whenever it has finished with a stage of full", tiles=5,
    ),
    _in(
        right_ring, "producer_starts_at_zero", {ACQUIRE: "r.of_empty(i).wait(r.phase(i))"}, HANGS, PRODUCER_TOGGLES,
        "consumer arrives once on every stage of empty before it begins", tiles=5,
    ),
    _in(
        right_ring, "consumer_starts_at_one", {AWAIT: "r.of_full(i).wait(r.phase(i) ^ 1)"},
        (f"{LAPPED}DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM", f"{ANY}DEADLOCK, RACE, UNINITIALISED_READ"),
        CONSUMER_TOGGLES,
    ),
    _in(right_ring, "producer_never_toggles", {ACQUIRE: "r.of_empty(i).wait(1)"}, WILD, PRODUCER_TOGGLES, tiles=5),
    _in(
        right_ring, "consumer_never_toggles", {AWAIT: "r.of_full(i).wait(0)"}, (f"{LAPPED}DEADLOCK, RACE, WRONG_ITEM",),
        CONSUMER_TOGGLES, tiles=5,
    ),
    _in(
        right_ring, "phase_toggles_every_tile",
        {ACQUIRE: "r.of_empty(i).wait(i & 1 ^ 1)", AWAIT: "r.of_full(i).wait(i & 1)"},
        ("stages > 1 and tiles > 1: UNINITIALISED_READ",), tiles=5,
    ),
    _in(
        right_ring, "phase_toggles_a_stage_early", {AWAIT: "r.of_full(i).wait((i + 1) // stages & 1)"},
        ("tiles >= 2 * stages > 0: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM",
         "tiles >= stages: DEADLOCK, RACE, UNINITIALISED_READ"), CONSUMER_TOGGLES, tiles=5,
    ),
    _in(
        right_ring, "counters_restart_with_every_tile",
        {"tiles: int = 3": "tiles: int = 2, k_iters: int = 2",
         "range(tiles):": "range(tiles * k_iters):\n    k = i % k_iters",
         "range(r.tiles):": "range(tiles * k_iters):\n    k = i % k_iters", "empty(i)": "empty(k)",
         "full(i)": "full(k)", "slot(i)": "slot(k)", "phase(i)": "phase(k)"},
        ("tiles > 1 and k_iters % (2 * stages) > stages: WRONG_ITEM",
         "tiles > 1 and k_iters % (2 * stages) > 0: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM"),
        "every role flips the parity of its waits exactly once in each lap of the stages",
    ),
    _in(
        right_ring, "producer_does_not_wait", {ACQUIRE: "pass"}, WILD,
        "producer waits for empty, with parity 1 in the first lap, before it uses a stage",
    ),
    _in(right_ring, "consumer_does_not_wait", {AWAIT: "pass"}, UNREADY, CONSUMER_WAITS),
    _in(
        right_ring, "waits_for_the_stage_before", {AWAIT: "r.of_full(max(i - 1, 0)).wait(r.phase(max(i - 1, 0)))"},
        ("stages == 1 and tiles > 1: DEADLOCK, RACE, WRONG_ITEM",
         "tiles > stages > 1: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM", "tiles > 1: RACE, UNINITIALISED_READ"),
        STAGE_BY_STAGE,
    ),
    _in(
        right_ring, "waits_for_the_older_of_two",
        {'@r.role("producer")': 'late = r.p.mbarriers("late", stages, 1)\n@r.role("producer")', EXPECT: TWO_BARRIERS,
         LOAD: "pass"}, UNREADY, "consumer waits for late, with parity 0 in the first lap, before it uses a stage",
    ),
    _in(right_ring, "try_ignored", {AWAIT: "r.of_full(i).try_wait(r.phase(i))"}, UNREADY,
        "consumer waits for full after the try, where that has failed"),
    _in(
        right_ring, "consumer_stops_early",
        {"tiles: int = 3": "tiles: int = 5, missing: int = 3", "range(r.tiles)": "range(tiles - missing)"},
        ("tiles >= missing > stages: DEADLOCK",),
    ),
    _in(right_ring, "producer_runs_on", {"range(tiles)": "range(tiles + 1)"}, (), tiles=5),
    _in(
        right_ring, "consumer_peels_a_step",
        {"tiles: int = 3": "tiles: int = 2, k_iters: int = 0", "range(tiles)": "range(tiles * k_iters)",
         "range(r.tiles)": "range(tiles * max(k_iters, 1))"}, ("k_iters == 0 and tiles > 0: DEADLOCK",),
    ),
    _in(
        right_ring, "producer_peels_a_step",
        {"tiles: int = 3": "tiles: int = 3, k_iters: int = 0", "range(tiles)": "range(tiles * max(k_iters, 1))",
         "range(r.tiles)": "range(tiles * k_iters)"}, ("k_iters == 0 and tiles > stages: DEADLOCK",),
    ),
    _in(
        right_ring, "expects_too_few", {EXPECT: "r.of_full(i).expect_bytes(TILE - 16)"}, (f"{ANY}DEADLOCK, RACE",),
        BYTES.format(48),
    ),
    _in(
        right_ring, "expects_half", {EXPECT: "r.of_full(i).expect_bytes(TILE // 2)"},
        (f"{LAPPED}DEADLOCK, RACE, WRONG_ITEM", f"{ANY}DEADLOCK, RACE"), BYTES.format(32),
    ),
    _in(right_ring, "expects_too_many", {EXPECT: "r.of_full(i).expect_bytes(TILE + 4)"}, HANGS, BYTES.format(68)),
    _in(
        right_ring, "expects_nothing", {EXPECT: "r.of_full(i).expect_bytes(0)"},
        (f"{LAPPED}DEADLOCK, RACE, UNINITIALISED_READ", f"{ANY}RACE, UNINITIALISED_READ"), BYTES.format(0),
    ),
    _in(
        right_ring, "two_copies_one_expected",
        {EXPECT: "r.of_full(i).expect_bytes(TILE // 2)",
         LOAD: "for half in range(2):\n    " + HALF.format("half", "r.of_full(i)"),
         "tiles: int = 3": "tiles: int = 2"},
        ("tiles > 2 * stages: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM", *UNREADY), BYTES.format(32),
    ),
    _in(
        right_ring, "expects_without_arrival", {EXPECT: "r.of_full(i).expect_tx(TILE)"}, HANGS,
        "producer arrives on full as well when it expects bytes: arrive.expect_tx",
    ),
    _in(
        right_ring, "expects_after_arrival", {EXPECT: "r.of_full(i).arrive()\nr.of_full(i).expect_tx(TILE)"}, UNREADY,
        "producer executes the arrive on full only after the expect on full",
    ),
    _in(
        right_ring, "expects_a_skipped_copy", {LOAD: f"if i < tiles - 1: {LOAD}", READ: f"if i < tiles - 1: {READ}"},
        HANGS, "producer executes the copy to full every time, after the arrive on full",
    ),
    _in(
        right_ring, "invalidated_by_the_producer",
        {LOAD: f"{LOAD}\nif i == tiles - 1:\n    for barrier in r.full: barrier.inval()"},
        (f"{ANY}INVALIDATED, INVAL_PENDING",), "producer omits the inval",
    ),
    _in(
        right_ring, "used_after_inval",
        {RELEASE: f"if i == tiles - 1:\n    r.of_full(i).inval()\n    {AWAIT}\n{RELEASE}"}, (f"{ANY}INVALIDATED",),
        "consumer executes its invals last, after all else that it does",
    ),
    _in(
        right_ring, "consumer_arrives_before_reading", {RELEASE: "pass", READ: f"{RELEASE}\n{READ}"},
        (f"{LAPPED}RACE, WRONG_ITEM",), "consumer arrives on empty only after its reads and writes of the stage",
    ),
    _in(
        right_ring, "consumer_reads_the_next_slot", {READ: "w.read(r.tile[r.slot(i + 1)], i)"},
        ("stages > 1 and tiles > 1: RACE, UNINITIALISED_READ, WRONG_ITEM",
         "stages > 1 and tiles > 0: UNINITIALISED_READ"),
        "consumer: the read of tile is for the slot 1 further: that of its own stage",
    ),
    _in(
        right_ring, "producer_arrives_before_writing",
        {EXPECT: "r.of_full(i).arrive()", LOAD: "w.write(r.tile[r.slot(i)], i)"}, UNREADY,
        "producer arrives on full only after its reads and writes of the stage",
    ),
    _in(
        right_ring, "copy_wider_than_its_slot",
        {'@r.role("producer")': 'close = r.p.smem("close", 1, stages * TILE + 16)\n@r.role("producer")',
         EXPECT: "r.of_full(i).expect_bytes(TILE + 16)",
         LOAD: "w.tma_load(close[0].part(r.slot(i) * TILE, TILE + 16), r.of_full(i), i)",
         READ: "w.read(close[0].part(r.slot(i) * TILE, TILE), i)"},
        ("tiles > stages > 1: RACE, WRONG_ITEM", "stages > 1 and tiles > 1: RACE"),
    ),
    _in(
        right_ring, "copied_beside_what_is_read",
        {'@r.role("producer")': 'other = r.p.smem("other", stages, TILE)\n@r.role("producer")',
         READ: "w.read(other[r.slot(i)], i)"}, (f"{ANY}UNINITIALISED_READ",),
        "producer: the copy to full goes to the bytes from 256 on, 256 further: they are read and never written",
    ),
    _in(
        right_ring, "epilogue_over_operands",
        {"range(tiles)": "range(tiles + 1)", RELEASE: f"{RELEASE}\nif i == tiles - 1: w.write(r.tile[0], tiles)"},
        ("tiles > 0 and tiles % stages == 0: RACE",),
    ),
    _of(
        COPIED_BY_THREADS, "cp_async_not_waited_for", {LOAD: "r.of_full(i).arrive()"}, (f"{ANY}RACE",),
        "producer arrives on full by cp.async.mbarrier.arrive.noinc: when its copies have ended", tiles=2,
    ),
]  # fmt: skip
_SMALL = [
    _in(
        small.announced, "nobody_waits_for_the_sleeper",
        {', p.mbarriers("heard", 1, 1)': "", "go, heard": "go", "heard[0].wait(i & 1 ^ 1)": "pass",
         "heard[0].arrive()": "pass"}, ("tiles > 1: DEADLOCK",),
    ),
    _in(
        small.tried_ring, "try_before_the_step",
        {"r.of_full(i + 1).try_wait(r.phase(i + 1)) if i + 1 < tiles else False": "r.of_full(i).try_wait(r.phase(i))"},
        ("stages == 1 and tiles > 1: RACE, WRONG_ITEM", "tiles > stages > 1: RACE, UNINITIALISED_READ, WRONG_ITEM",
         "tiles > 1: RACE, UNINITIALISED_READ"),
        "consumer tries full of the stage and phase for which it waits next, not of another",
    ),
    _in(
        small.two_rings, "holds_one_ring_for_the_other",
        {"a.release(i)": "pass", '_ = "the end of a lap"': "a.release(i)"}, ("stages == 1 and tiles > 1: DEADLOCK",),
        "consumer executes the wait for b_full only after the arrive on empty",
    ),
    _in(small.counted_bytes, "more_bytes_than_a_barrier_counts", {"500_000": "600_000"}, (f"{ANY}TX_RANGE",)),
    _in(
        small.initialised_by_a_role, "init_not_published", {"w.sync_threads()": "pass"}, (f"{ANY}NOT_INITIALISED",),
        f"{PUBLISH} the CTA",
    ),
    _of(
        OWN_INITS, "one_stage_forgotten", {PRODUCER_ROLE: OWN_INITS[PRODUCER_ROLE].replace("(stages)", "(stages - 1)")},
        ("tiles >= stages: NOT_INITIALISED",), "initialise all barriers: the program never initialises some stages",
    ),
    _of(
        OWN_INITS, "count_of_zero",
        {PRODUCER_ROLE: OWN_INITS[PRODUCER_ROLE].replace("empty[s].init(1)", "empty[s].init(0)")},
        ("stages > 0: INIT_COUNT",), "initialise empty with a count of 1 instead of 0",
    ),
    _in(
        small.initialised_by_a_role, "initialised_by_both", {"def consumer(w: Warp) -> None:": INIT_BY_CONSUMER},
        ("stages > 0: REINITIALISED",), "consumer omits its inits: another role makes them",
    ),
    _in(
        small.hand_over, "sync_counts_a_third_warp", {"threads = 64": "threads = 96", "32 + 32": "96"}, HANGS,
        THREADS.format(96),
    ),
    _in(
        small.hand_over, "sync_counts_one_warp", {"threads = 64": "threads = 32", "32 + 32": "32"},
        ("tiles > 1: RACE, UNINITIALISED_READ, WRONG_ITEM", f"{ANY}RACE, UNINITIALISED_READ"), THREADS.format(32),
    ),
    _in(
        small.hand_over, "warps_disagree_about_threads", {"32 + 32": "96"}, (f"{ANY}BARRIER_THREADS",),
        THREADS.format(96),
    ),
    _in(
        small.hand_over, "threads_no_multiple_of_32", {"threads = 64": "threads = 48", "32 + 32": "48"},
        (f"{ANY}BARRIER_THREADS",), THREADS.format(48),
    ),
    _in(
        small.hand_over, "everybody_arrives",
        {AGAIN: "pass", WRITTEN: "w.bar_arrive(1, threads)", READABLE: "w.bar_arrive(1, threads)", HAS_READ: "pass"},
        ("tiles > 1: RACE, UNINITIALISED_READ, WRONG_ITEM", f"{ANY}RACE, UNINITIALISED_READ"),
    ),
    _in(
        small.hand_over, "writer_is_a_lap_ahead",
        {"slots=1": "slots=max(tiles, 1)", "tile[0]": "tile[i]", AGAIN: "pass", WRITTEN: "w.bar_arrive(1, threads)",
         HAS_READ: "pass"}, ("tiles > 1: DEADLOCK",),
        "use a named barrier for each slot of tile, 1 + slot, instead of 1 for all",
        "writer waits at named barrier 1 as well: bar_sync instead of bar_arrive",
    ),
    _in(
        small.hand_over, "one_number_for_two_pairs",
        {"tiles: int = 2": "tiles: int = 1", "slots=1": "slots=2", "tile[0]": "tile[w.index]",
         '"writer")': '"writer", warps=2)', '"reader")': '"reader", warps=2)'},
        ("tiles > 1: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM", f"{ANY}DEADLOCK, RACE, UNINITIALISED_READ"),
        "give each group of warps that meets at named barrier 1 a number of its own, from 2 on",
    ),
    _in(
        small.hand_over, "sync_inside_a_condition", {AGAIN: "if i < tiles - 1: w.bar_sync(1, threads)"}, HANGS,
        "writer executes the bar_sync every time, after the bar_sync",
    ),
    _in(
        small.multicast, "peer_not_waited_for",
        {"empty=2": "empty=1", "r.of_empty(i).arrive_cluster(0)": "if w.cta == 0: r.of_empty(i).arrive_cluster(0)"},
        (f"{LAPPED}DEADLOCK, RACE, WRONG_ITEM",), EVERY_WARP,
    ),
    _in(
        small.multicast, "multicast_misses_a_cta", {"0b11": "0b01"}, HANGS,
        "loader multicasts on full to the CTAs of mask 0b11 instead of 0b1",
    ),
    _in(
        small.multicast, "peer_arrives_uncounted", {"empty=2": "empty=1"},
        (f"{LAPPED}DEADLOCK, EXITED_CTA, OVER_ARRIVAL, RACE, WRONG_ITEM", f"{ANY}DEADLOCK, EXITED_CTA"),
        "initialise empty with a count of 2 instead of 1",
    ),
    _in(
        small.multicast, "peer_counted_and_silent",
        {"r.of_empty(i).arrive_cluster(0)": "if w.cta == 0: r.of_empty(i).arrive_cluster(0)"}, HANGS,
        "consumer executes the arrive on empty in every CTA, not only in some",
    ),
    _in(
        small.multicast, "exit_under_a_remote_arrive", {"tiles + stages": "tiles", "tiles: int = 2": "tiles: int = 1"},
        (f"{ANY}EXITED_CTA",), "loader waits for every stage of empty once more before it ends",
        "every warp of the cluster meets the others (cluster_sync) before it exits",
    ),
    _in(
        small.multicast, "peer_expects_nothing",
        {"if w.cta == 1:": "if False:", AWAIT: f"if w.cta == 0: {AWAIT}", "tiles: int = 2": "tiles: int = 1"}, UNREADY,
    ),
    _in(
        small.peers, "remote_arrive_before_init",
        {"w.cluster_arrive(Order.RELAXED)": "pass", "w.cluster_wait()": "pass"}, (f"{ANY}NOT_INITIALISED",),
        f"{PUBLISH} the cluster (barrier.cluster.arrive and .wait)",
    ),
    _in(
        small.meetings, "cluster_arrive_twice",
        {"w.cluster_sync()": "w.cluster_arrive()\nif w.cta == 0: w.cluster_arrive()\nw.cluster_wait()"},
        (f"{ANY}CLUSTER_ARRIVE",), "peer omits the sync of the cluster",
    ),
    _in(
        small.meetings, "cluster_sync_by_one_cta", {"range(tiles):": "range(tiles if w.cta == 0 else tiles - 1):"},
        HANGS, "peer executes the sync of the cluster in every CTA, not only in some",
    ),
    _of(
        COMMITS, "released_before_the_mma_is_done", {RELEASE: RELEASE}, (f"{LAPPED}RACE",),
        "mma commits to empty instead of the arrive: when its MMAs have ended",
    ),
    _of(
        COMMITS, "commit_missing", {RELEASE: "pass"}, HANGS_LAPPED,
        "mma commits to empty whenever it has finished with a stage", tiles=5,
    ),
    _of(
        COMMITS, "commit_before_the_mma", {RELEASE: "pass", READ: f"{COMMITS[RELEASE]}\n{COMMITS[READ]}"},
        (f"{LAPPED}RACE, WRONG_ITEM",), "mma arrives on empty only after its reads and writes of the stage",
    ),
    _of(
        WGMMAS, "wgmma_wait_too_deep", {READ: WGMMAS[READ].replace("WGMMA, 0", "WGMMA, 1")}, (f"{LAPPED}RACE",),
        "mma executes the arrive on empty one iteration later, after the next wait for its wgmmas",
    ),
    _of(
        WGMMAS, "wgmma_released_before_its_wait", {RELEASE: "pass", READ: f"{WGMMAS[RELEASE]}\n{WGMMAS[READ]}"},
        (f"{LAPPED}RACE, WRONG_ITEM",), "mma arrives on empty only after it has waited for its wgmmas",
    ),
    _in(
        small.accumulated, "accumulator_read_early", {"w.commit(Engine.TCGEN05, full[0])": "full[0].arrive()"},
        (f"{ANY}RACE",), "mma commits to full instead of the arrive: when its MMAs have ended",
    ),
    _in(
        small.stores, "store_not_waited_for", {"w.wait_group(Engine.BULK, slots - 1)": "pass"},
        ("tiles > slots: RACE",), "epilogue waits for its bulk stores before the write to out",
    ),
    _in(
        small.stores, "store_wait_too_deep", {"slots - 1": "slots"}, ("tiles > slots: RACE",),
        "epilogue leaves none of its groups pending when it waits for them, instead of 1, which serialises them",
    ),
    _in(
        small.stores, "store_not_committed", {"w.commit(Engine.BULK)  # of this store": "pass", "slots - 1": "0"},
        ("tiles > slots: RACE",),
        "epilogue executes cp.async.bulk.commit_group after its bulk stores, before it waits for them",
    ),
    _of(
        COPIED_BY_THREADS, "cp_async_arrive_counts_itself", {LOAD: "r.of_full(i).cp_async_arrive()"}, HANGS,
        "producer arrives on full by cp.async with .noinc, so that its arrivals are counted", tiles=2,
    ),
]  # fmt: skip
RING_MISTAKES = {each.name: each for each in (*_RING, *_SMALL)}
