"""Corrections of described pipelines of one cluster: what was meant comes first, and what serialises says so.

Every wrong description is the text of a right one with one change.
"""

from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.model.finding import Verdict
from tests.support.kernel_files import described
from tests.support.paths import ROOT

PING = """
from pipesim import Engine, Fence, Order, Protocol, Scope
def ping(tiles: int = 6, stages: int = 3):
    p = Protocol("ping")
    a, c = p.smem("a", stages, 8192), p.smem("c", 2, 4096)
    full, empty = p.mbarriers("full", stages, count=1), p.mbarriers("empty", stages, count=4)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                slot, lap = i % stages, i // stages
                empty[slot].wait(lap % 2 ^ 1)
                full[slot].expect_bytes(8192)
                w.tma_load(a[slot], full[slot], i)

    @p.role("math", warps=8)
    def math(w):
        group = w.index // 4
        for t in w.loop(tiles // 2, "turns"):
            i = 2 * t + group
            slot, lap = i % stages, i // stages
            if group or t:
                w.bar_sync(1 + group, 256)
            full[slot].wait(lap % 2)
            w.read(a[slot].part(w.index % 4 * 2048, 2048), i)
            w.sync_warp()
            with w.elect_one():
                empty[slot].arrive()
            if not (group and t + 1 == tiles // 2):
                w.bar_arrive(2 - group, 256)
            w.work(cycles=300)
            if w.index % 4 == 0:
                with w.elect_one():
                    w.wait_group(Engine.BULK)
            w.bar_sync(3 + group, 128)
            w.write(c[group].part(w.index % 4 * 1024, 1024), i)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(3 + group, 128)
            if w.index % 4 == 0:
                with w.elect_one():
                    w.async_read(Engine.BULK, c[group], i)
                    w.commit(Engine.BULK)
        if w.index % 4 == 0:
            with w.elect_one():
                w.wait_group(Engine.BULK)
    return p
"""
PAIR = """
from pipesim import Engine, Fence, Order, Protocol, Scope, Warp, mma_arrive, mma_arrive_multicast
def pair(tiles: int = 3, stages: int = 3, ksteps: int = 4):
    p = Protocol("pair", architecture=100, cluster=2)
    a = p.smem("a", stages, 16384)
    acc = p.tmem("acc", 2, 65536)
    full, empty = p.mbarriers("full", stages, count=2), p.mbarriers("empty", stages, count=1)
    acc_full, acc_empty = p.mbarriers("acc_full", 2, count=1), p.mbarriers("acc_empty", 2, count=8)

    @p.role("load")
    def load(w):
        w.cluster_sync()
        with w.elect_one():
            for n in w.loop(tiles * ksteps, "steps"):
                slot, lap = n % stages, n // stages
                empty[slot].wait(lap % 2 ^ 1)
                full[slot].arrive_and_expect_bytes(16384, 0)
                w.tma_load(a[slot], full[slot].mapa(0), n)
        w.cluster_sync()

    @p.role("mma")
    def mma(w):
        w.cluster_sync()
        if w.cta == 0:
            with w.elect_one():
                for t in w.loop(tiles, "tiles"):
                    which, turn = t % 2, t // 2
                    acc_empty[which].wait_acquire(turn % 2 ^ 1, Scope.CLUSTER)
                    w.fence(Fence.TCGEN05_AFTER)
                    for k in range(ksteps):
                        n = t * ksteps + k
                        slot, lap = n % stages, n // stages
                        full[slot].wait_acquire(lap % 2, Scope.CLUSTER)
                        w.mma(Engine.TCGEN05, reads=[(a[slot], n), (a[slot].mapa(1), n)],
                              writes=[(acc[which], t), (acc[which].mapa(1), t)], cycles=128)
                        mma_arrive_multicast(empty[slot], 3)
                    mma_arrive_multicast(acc_full[which], 3)
        w.cluster_sync()

    @p.role("epilogue", warps=4)
    def epilogue(w):
        w.cluster_sync()
        for t in w.loop(tiles, "tiles"):
            which, lap = t % 2, t // 2
            acc_full[which].wait(lap % 2)
            w.fence(Fence.TCGEN05_AFTER)
            w.read(acc[which].part(w.index * 16384, 16384), t)
            w.work(cycles=200)
            w.fence(Fence.TCGEN05_BEFORE)
            w.sync_warp()
            with w.elect_one():
                acc_empty[which].mapa(0).arrive(order=Order.RELEASE, scope=Scope.CLUSTER)
        w.cluster_sync()
    return p
"""
#: A ring of slots with a barrier for each of them, or with one for all.
RING = """
from pipesim import Protocol

def ring(slots: int = 4, tiles: int = 8, bars: int = 4):
    p = Protocol("ring")
    tile = p.smem("tile", slots, 4096)
    full, empty = p.mbarriers("full", bars, count=1), p.mbarriers("empty", bars, count=1)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[i % bars].wait(i // bars % 2 ^ 1)
                full[i % bars].expect_bytes(4096)
                w.tma_load(tile[i % slots], full[i % bars], i)

    @p.role("math")
    def math(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                full[i % bars].wait(i // bars % 2)
                w.read(tile[i % slots], i)
                w.work(cycles=300)
                empty[i % bars].arrive()

    return p
"""
AHEAD = """
from pipesim import Engine, Protocol
def ahead(blocks: int = 6, stages: int = 2):
    p = Protocol("ahead")
    k, v = p.smem("k", stages, 4096), p.smem("v", stages, 4096)
    k_full, k_empty = p.mbarriers("k_full", stages, count=1), p.mbarriers("k_empty", stages, count=1)
    v_full, v_empty = p.mbarriers("v_full", stages, count=1), p.mbarriers("v_empty", stages, count=1)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for j in w.loop(blocks, "blocks"):
                for tile, full, empty in ((k, k_full, k_empty), (v, v_full, v_empty)):
                    empty[j % stages].wait(j // stages % 2 ^ 1)
                    full[j % stages].expect_bytes(4096)
                    w.tma_load(tile[j % stages], full[j % stages], j)

    @p.role("math", warps=4, align=4)
    def math(w):
        def multiply(tile, full, j):
            full[j % stages].wait(j // stages % 2)
            w.mma(Engine.WGMMA, reads=[(tile[j % stages], j)], cycles=100)
            w.commit(Engine.WGMMA)

        def free(empty, j):
            if w.index == 0:
                with w.elect_one():
                    empty[j % stages].arrive()

        multiply(k, k_full, 0)
        w.wait_group(Engine.WGMMA)
        free(k_empty, 0)
        for j in w.loop(blocks, "blocks"):
            if j + 1 < blocks:
                multiply(k, k_full, j + 1)
            multiply(v, v_full, j)
            w.wait_group(Engine.WGMMA)
            if j + 1 < blocks:
                free(k_empty, j + 1)
            free(v_empty, j)

    return p
"""
SHARED = """
from pipesim import Engine, Protocol, mma_arrive
def shared(blocks: int = 5, stages: int = 2):
    p = Protocol("shared")
    q, v = p.smem("q", 2, 4096), p.smem("v", stages, 4096)
    o = p.tmem("o", 2, 8192)
    q_full, done = p.mbarriers("q_full", 2, count=1), p.mbarriers("done", 1, count=1)
    v_full, v_empty = p.mbarriers("v_full", stages, count=1), p.mbarriers("v_empty", stages, count=1)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for g in range(2):
                q_full[g].expect_bytes(4096)
                w.tma_load(q[g], q_full[g], g)
            for j in w.loop(blocks, "blocks"):
                v_empty[j % stages].wait(j // stages % 2 ^ 1)
                v_full[j % stages].expect_bytes(4096)
                w.tma_load(v[j % stages], v_full[j % stages], j)

    @p.role("mma")
    def mma(w):
        with w.elect_one():
            for j in w.loop(blocks, "blocks"):
                v_full[j % stages].wait(j // stages % 2)
                for g in range(2):
                    q_full[g].wait(0)
                    w.mma(Engine.TCGEN05, reads=[(v[j % stages], j)], writes=[(o[g], j)], cycles=100)
                    if g == 1:
                        mma_arrive(v_empty[j % stages])
                    w.mma(Engine.TCGEN05, reads=[(q[g], g)], writes=[(o[g], j)], cycles=100)
            mma_arrive(done[0])

    @p.role("epilogue")
    def epilogue(w):
        done[0].wait(0)
        w.read(o[0])

    return p
"""
STAGED = """
from pipesim import Engine, Fence, Protocol
def staged(slices: int = 8):
    p = Protocol("staged")
    out = p.smem("out", 2, 4096)

    @p.role("math", warps=4)
    def math(w):
        for n in w.loop(slices, "slices"):
            if w.index == 0:
                with w.elect_one():
                    w.wait_group(Engine.BULK, groups=1)
            w.bar_sync(1, 128)
            w.write(out[n % 2].part(w.index * 1024, 1024), n)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(2, 128)
            if w.index == 0:
                with w.elect_one():
                    w.async_read(Engine.BULK, out[n % 2], n)
                    w.commit(Engine.BULK)
        if w.index == 0:
            with w.elect_one():
                w.wait_group(Engine.BULK)

    return p
"""
SUMS = """
from pipesim import Protocol, Scope
def sums(rounds: int = 4):
    p = Protocol("sums", cluster=2)
    parts, got = p.smem("parts", 2, 256), p.mbarriers("got", 1, count=2)

    @p.role("norm")
    def norm(w):
        for r in w.loop(rounds, "rounds"):
            for cta in range(2):
                w.write(parts[w.cta].mapa(cta), r)
                with w.elect_one():
                    got[0].arrive_cluster(cta)
            got[0].wait_acquire(r & 1, Scope.CLUSTER)
            for cta in range(2):
                w.read(parts[cta], r)
            w.cluster_sync()

    return p
"""
ENDS = """
from pipesim import Fence, Protocol
def ends(tiles: int = 6, stages: int = 2):
    p = Protocol("ends")
    tile, full, empty = p.smem("tile", stages, 4096), p.mbarriers("full", stages), p.mbarriers("empty", stages)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for s in range(stages):
                full[s].init(1)
                empty[s].init(1)
            w.fence(Fence.MBARRIER_INIT)
        w.sync_threads()
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[i % stages].wait(i // stages % 2 ^ 1)
                full[i % stages].expect_bytes(4096)
                w.tma_load(tile[i % stages], full[i % stages], i)
        w.sync_threads()  # all are done
        with w.elect_one():
            for s in range(stages):
                full[s].inval()
                empty[s].inval()

    @p.role("math")
    def math(w):
        w.sync_threads()
        for i in w.loop(tiles, "tiles"):
            full[i % stages].wait(i // stages % 2)
            w.read(tile[i % stages], i)
            with w.elect_one():
                empty[i % stages].arrive()
        w.sync_threads()

    return p
"""
IN_PLACE = """
from pipesim import Engine, Fence, Protocol
def in_place(slices: int = 6, slots: int = 2):
    p = Protocol("in_place")
    cd, full = p.smem("cd", slots, 4096), p.mbarriers("full", slots, count=1)

    @p.role("math", warps=2)
    def math(w):
        for n in w.loop(slices, "slices"):
            slot = n % slots
            full[slot].wait(n // slots % 2)
            w.write(cd[slot].part(w.index * 2048, 2048), 100 + n)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_arrive(1 + slot, 96)

    @p.role("copies")
    def copies(w):
        def load(n):
            with w.elect_one():
                full[n % slots].expect_bytes(4096)
                w.tma_load(cd[n % slots], full[n % slots], n)

        for n in range(slots):
            load(n)
        for n in w.loop(slices, "slices"):
            w.bar_sync(1 + n % slots, 96)
            with w.elect_one():
                w.async_read(Engine.BULK, cd[n % slots], 100 + n)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
            if n + slots < slices:
                load(n + slots)

    return p
"""
DONE = "        w.sync_threads()  # all are done\n"
INVALS = """        with w.elect_one():
            for s in range(stages):
                full[s].inval()
                empty[s].inval()
"""
EARLIER = """            if w.index == 0:
                with w.elect_one():
                    w.wait_group(Engine.BULK, groups=1)
"""
MEETS = "            w.bar_sync(1, 128)\n"
ROOM = "                empty[i % bars].wait(i // bars % 2 ^ 1)\n"
AFTER = 20 * " "  #: after the products of a tile
WAITS = "load waits for empty, with parity 1 in the first lap, before it uses a stage"
MISTAKES = {
    "does not wait for a free slot": (RING, ROOM, "", WAITS),
    "does not wait with one barrier for all slots": (RING.replace("bars: int = 4", "bars: int = 1"), ROOM, "",
                                                     WAITS + ", which serialises load and math"),
    "copies on the other barrier, of which there is one": (
        RING.replace("bars: int = 4", "bars: int = 1"), "full[i % bars], i)", "empty[i % bars], i)",
        "load completes its copy on full, not on empty"),
    "frees what products still read": (AHEAD, "j)\n            w.wait_group(Engine.WGMMA",
        "j)\n            w.wait_group(Engine.WGMMA, groups=1 if j + 1 < blocks else 0",
        "math executes the arrive on v_empty one iteration later, after the next wait for its wgmmas"),
    "frees what the other product reads": (SHARED, "g == 1", "g == 0",
                                           "mma executes the commit on v_empty only after its last use of v"),
    "waits for its store after the others were told": (
        STAGED, EARLIER + MEETS, MEETS + EARLIER,
        "math executes the wait for its bulk stores before the bar_sync"),
    "has one named barrier for all slots": (
        IN_PLACE.replace("1 + n % slots", "1"), "1 + slot", "1",
        "use a named barrier for each slot of cd, 1 + slot, instead of 1 for all"),
    "meets once after all rounds": (
        SUMS, "            w.cluster_sync()", "        w.cluster_sync()",
        "norm executes the sync of the cluster at the end of each iteration of rounds, not once after it"),
    "invalidates before all have met": (ENDS, DONE + INVALS, INVALS + DONE,
                                        "load executes its invals last, after all else that it does"),
    "writes while the store reads": (PING, "            w.bar_sync(3 + group, 128)\n            w.write",
                                     "            w.write", "math executes bar_sync at named barriers 3 and 4"),
    "counts both groups": (PING, "count=4)", "count=8)", "initialise empty with a count of 4 instead of 8"),
    "stores the other buffer": (PING, "async_read(Engine.BULK, c[group]", "async_read(Engine.BULK, c[t % 2]",
                                "math: the transfer from c"),
    "frees the stage in one CTA": (PAIR, "mma_arrive_multicast(empty[slot], 3)",
                                   "mma_arrive_multicast(empty[slot], 1)",
                                   "mma multicasts on empty to the CTAs of mask 0b11 instead of 0b1"),
    "hands the sum over after each product": (
        PAIR, AFTER + "mma_arrive_multicast(acc_full", AFTER + "    mma_arrive_multicast(acc_full",
        "mma commits to acc_full once for each stage, after its last use of it, not after each"),
}  # fmt: skip


@pytest.mark.sampled(0, 4)
@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_meant_comes_first(name: str, tmp_path: Path) -> None:
    text, right, wrong, said = MISTAKES[name]
    assert right in text
    found = check(described(tmp_path, text.replace(right, wrong)), {})
    assert found.verdict is Verdict.REFUTED
    first = [shown.corrections[0].said for shown in found.refutations if shown.corrections]
    said_first = {each.partition(" (")[0] for each in first} - {"the same as of the finding below"}
    assert said_first == {said}
    assert all(shown.at.get("blocks") != 0 for shown in found.refutations)  # it fails otherwise


@pytest.mark.parametrize("text", [PING, PAIR, RING, AHEAD, SHARED, STAGED, SUMS, ENDS, IN_PLACE])
def test_the_right_one_is_proved(text: str, tmp_path: Path) -> None:
    assert check(described(tmp_path, text), {}, quick=True).verdict is Verdict.PROVED


@pytest.mark.long
@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (8, "correction arrives once on stage 0 of S1_cons before it begins"),
        (1, "initialise S1_cons with a count of 128 instead of 256, which is right at this size alone"),
    ],
)
def test_a_large_pipeline_is_corrected_as_at_a_few_iterations(blocks: int, said: str, tmp_path: Path) -> None:
    right = "for wg in (0, 1):  # there is no O"
    text = (ROOT / "pipesim" / "protocols" / "blackwell" / "attention_sm100.py").read_text()
    assert right in text
    found = check(described(tmp_path, text.replace(right, right.replace(", 1", ","))), {"kv_blocks": blocks})
    assert [each.said for each in found.refutations[0].corrections] == [said]
