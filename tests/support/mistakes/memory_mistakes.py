"""Mistakes of memory order: what is in its place on a machine with one memory, and not on a GPU.

A schedule cannot show them: each access sees what it should. Orders, scopes and fences are missing or misplaced (PTX
ISA, memory consistency model and async proxy).
"""

from pipesim.model.coverage import Assumption, Strictness
from tests.support.mistakes import small
from tests.support.mistakes.edited import Mistake
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.ring_mistakes import ACQUIRE, AWAIT, COPIED_BY_THREADS, READ, RELEASE, WGMMAS

LAPPED, ANY = "tiles > stages: ", "tiles > 0: "
RELAXED_ARRIVE, RELAXED_WAIT = "r.of_empty(i).arrive(order=Order.RELAXED)", "r.of_full(i).wait_relaxed(r.phase(i))"
ACQ_REL, PROXY = "w.fence(Fence.ACQ_REL, Scope.CTA)", "w.fence(Fence.PROXY_ASYNC)"
IN_PLACE = f"{READ}\nw.write(r.tile[r.slot(i)], i)"
FENCED_WRITER = {f"{PROXY}  # of the reads": "pass", "w.write(tile[0], i)": f"{PROXY}\nw.write(tile[0], i)"}
COPIED_AND_MULTIPLIED = {**COPIED_BY_THREADS, **WGMMAS, READ: f"{PROXY}\n{WGMMAS[READ]}"}
SCOPED = {
    ACQUIRE: "r.of_empty(i).wait_acquire(r.phase(i) ^ 1, Scope.CLUSTER)",
    "arrive_cluster(0)": "arrive_cluster(0, scope=Scope.CLUSTER)",
}
READS = Strictness({Assumption.PROXIES})
TENSOR = Strictness({Assumption.TENSOR_FENCES})
AFTER, BEFORE = "w.fence(Fence.TCGEN05_AFTER)", "w.fence(Fence.TCGEN05_BEFORE)"
MMA, LOAD, GIVE = "w.mma(Engine.TCGEN05, writes=[(acc[0], i)])", "w.read(acc[0], i)", "empty[0].arrive()"
TENSOR_FENCES = {MMA: f"{AFTER}\n{MMA}", LOAD: f"{AFTER}\n{LOAD}", GIVE: f"{BEFORE}\n{GIVE}"}
RELAXED_TENSOR = {
    **TENSOR_FENCES, "full[0].wait(i & 1)": "full[0].wait_relaxed(i & 1)",
    GIVE: f"{BEFORE}\nempty[0].arrive(order=Order.RELAXED)",
}  # fmt: skip


def _fenced_by_another(fence: str) -> dict[str, str]:
    return {
        "w.fence(Fence.MBARRIER_INIT)": "pass",
        "w.sync_threads()  # the producer": "w.sync_threads()\nw.bar_sync(1, 64)",
        "w.sync_threads()  # the consumer": f"w.sync_threads()\nw.fence(Fence.{fence})\nw.bar_sync(1, 64)",
    }


_MEMORY = [
    Mistake("store_not_fenced", small.written_and_stored, {PROXY: "pass"}, (f"{ANY}MISSING_PROXY_FENCE",)),
    Mistake(  # the fence comes after the barrier that lets the other warp store
        "fence_too_late", small.written_and_stored,
        {PROXY: "pass", "w.bar_sync(1, 64)  # written": f"w.bar_sync(1, 64)\n{PROXY}"}, (f"{ANY}MISSING_PROXY_FENCE",),
        rights=({"w.bar_sync(1, 64)  # written": f"w.bar_sync(1, 64)\n{PROXY}"},
                {PROXY: "pass", "w.async_read(": f"{PROXY}\nw.async_read("}),
    ),
    Mistake(
        "copy_over_a_written_tile", right_ring, {READ: IN_PLACE}, (f"{LAPPED}MISSING_PROXY_FENCE",),
        rights=({READ: f"{IN_PLACE}\n{PROXY}"},),
    ),
    Mistake(
        "read_not_fenced", right_ring, {}, (f"{LAPPED}READ_NOT_FENCED",), rights=({READ: f"{READ}\n{PROXY}"},),
        rules=READS,
    ),
    Mistake(
        "product_not_fenced", small.multiplied_and_filled, {f"{PROXY}  # of the reads": "pass"},
        ("tiles > 1: READ_NOT_FENCED",), rights=({}, FENCED_WRITER), rules=READS,
    ),
    Mistake(
        "cp_async_not_fenced", right_ring, {**COPIED_AND_MULTIPLIED, READ: WGMMAS[READ]},
        (f"{ANY}MISSING_PROXY_FENCE",), sizes={"tiles": 2}, rights=(COPIED_AND_MULTIPLIED,),
    ),
    Mistake(
        "release_relaxed", right_ring, {RELEASE: RELAXED_ARRIVE}, (f"{LAPPED}WEAK_ORDER",),
        rights=({RELEASE: "r.of_empty(i).arrive(order=Order.RELEASE)"}, {RELEASE: f"{ACQ_REL}\n{RELAXED_ARRIVE}"}),
    ),
    Mistake(
        "wait_relaxed", right_ring, {AWAIT: RELAXED_WAIT}, (f"{ANY}WEAK_ORDER",), sizes={"tiles": 1},
        rights=({AWAIT: "r.of_full(i).wait_acquire(r.phase(i))"}, {AWAIT: f"{RELAXED_WAIT}\n{ACQ_REL}"}),
    ),
    Mistake(
        "release_of_cta_scope", small.multicast,
        {**SCOPED, "arrive_cluster(0)": "arrive_cluster(0, scope=Scope.CTA)"}, (f"{LAPPED}NARROW_SCOPE",),
        rights=(SCOPED,),
    ),
    Mistake(
        "acquire_of_cta_scope", small.multicast,
        {**SCOPED, ACQUIRE: "r.of_empty(i).wait_acquire(r.phase(i) ^ 1, Scope.CTA)"}, (f"{LAPPED}NARROW_SCOPE",),
        rights=(SCOPED,),
    ),
    Mistake(
        "init_not_fenced", small.initialised_by_a_role, {"w.fence(Fence.MBARRIER_INIT)": "pass"},
        (f"{ANY}UNPUBLISHED_INIT",), rules=Strictness({Assumption.INIT}),
    ),
    Mistake(  # it orders the inits of its own thread
        "init_fenced_by_another", small.initialised_by_a_role, _fenced_by_another("MBARRIER_INIT"),
        (f"{ANY}UNPUBLISHED_INIT",), rules=Strictness({Assumption.INIT}),
        rights=({}, _fenced_by_another("PROXY_ASYNC")),
    ),
    Mistake(
        "init_behind_a_relaxed_arrive", small.peers, {"w.fence(Fence.MBARRIER_INIT)": "pass"},
        (f"{ANY}UNPUBLISHED_INIT",), sizes={"tiles": 2},
    ),
    Mistake(
        "tensor_memory_not_fenced", small.accumulated, {}, (f"{ANY}TENSOR_FENCE",), rules=TENSOR,
        rights=(TENSOR_FENCES, RELAXED_TENSOR),
    ),
    Mistake(  # the load is not ordered before the arrive
        "no_fence_before_the_arrive", small.accumulated, {**TENSOR_FENCES, GIVE: GIVE}, ("tiles > 1: TENSOR_FENCE",),
        rules=TENSOR, rights=(TENSOR_FENCES,),
    ),
    Mistake(  # before the load: it orders nothing that comes later
        "fence_before_the_load", small.accumulated,
        {**TENSOR_FENCES, LOAD: f"{AFTER}\n{BEFORE}\n{LOAD}", GIVE: GIVE}, ("tiles > 1: TENSOR_FENCE",),
        rules=TENSOR, rights=(TENSOR_FENCES,),
    ),
    Mistake(  # after the product: it orders nothing that came earlier
        "fence_after_the_product", small.accumulated, {**TENSOR_FENCES, MMA: f"{MMA}\n{AFTER}"},
        ("tiles > 1: TENSOR_FENCE",), rules=TENSOR, rights=(TENSOR_FENCES,),
    ),
]  # fmt: skip
MEMORY_MISTAKES = {each.name: each for each in _MEMORY}
