"""The free functions of upstream's kernels: ``elect``, ``predicated``, ``tcgen05.commit``, arrivals in a pair of CTAs.

Upstream: ``gpu/sync/sync.mojo``, ``gpu/compute/mma``; PTX ISA, tcgen05.commit and mapa.
"""

from pipesim.lang.author import author_error
from pipesim.lang.legality import require_committer, require_one_lane
from pipesim.lang.recorder import NarrowedLanes, recorder
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.model.ops import Engine, Op


def elect() -> int:
    """``elect.sync``: a mask of the one lane that is elected among those that execute, for :func:`predicated`."""
    lanes = recorder().lanes
    return lanes & -lanes


class predicated:  # noqa: N801  # a context, used as a function
    """``@e`` before the instructions inside: only the lanes of the mask ``e`` execute; yields whether there are any.

    Upstream's predicates are one number a lane; a mask of lanes is that number for all of a warp. True is every lane.
    """

    __slots__ = ("_e", "_narrowed")

    def __init__(self, e: int) -> None:
        self._e = e
        self._narrowed: NarrowedLanes | None = None

    def __enter__(self) -> bool:
        rec = recorder()
        lanes = rec.lanes if self._e is True else rec.lanes & self._e
        if not lanes:
            return False
        self._narrowed = rec.narrow_to(lanes)
        self._narrowed.__enter__()
        return True

    def __exit__(self, *error: object) -> None:
        if self._narrowed is not None:
            self._narrowed.__exit__(*error)


_COMMIT, _TCGEN05 = int(Op.COMMIT), int(Engine.TCGEN05)


def mma_arrive(mbar: SharedMemBarrier) -> None:
    """One arrival on ``mbar`` when every MMA that this thread has issued is finished. One lane executes it."""
    rec = recorder()
    require_one_lane(rec, "tcgen05.commit")
    require_committer(rec)
    rec.append((_COMMIT, _TCGEN05, mbar._address()))  # noqa: SLF001  # same package


def mma_arrive_multicast(mbar: SharedMemBarrier, cta_mask: int) -> None:
    """The same at the place of ``mbar`` in every CTA of the mask."""
    rec = recorder()
    require_one_lane(rec, "tcgen05.commit")
    if not 0 < cta_mask < rec.tables.masks:
        raise author_error(
            f"{rec.who}: a commit to the CTAs of mask {cta_mask:#b}", cause=f"the cluster has {rec.tables.ctas} CTAs"
        )
    require_committer(rec)
    rec.emit(Op.COMMIT_MULTICAST, Engine.TCGEN05, mbar._address(), cta_mask)  # noqa: SLF001  # same package


def elect_mma_arrive(mbar: SharedMemBarrier, e: int) -> None:
    """:func:`mma_arrive` by the lane in the mask ``e`` (``elect()``), nothing where it is 0."""
    with predicated(e) as any_lane:
        if any_lane:
            mma_arrive(mbar)


def umma_arrive_leader_cta(mbar: SharedMemBarrier) -> None:
    """Each executing lane arrives at the place of ``mbar`` in the even CTA of the pair (address AND 0xFEFFFFFF)."""
    mbar.arrive_cluster(recorder().cta & ~1)


def umma_arrive_peer_cta(mbar: SharedMemBarrier) -> None:
    """Each executing lane arrives at the place of ``mbar`` in the odd CTA of the pair (address OR 0x01000000)."""
    mbar.arrive_cluster(recorder().cta | 1)
