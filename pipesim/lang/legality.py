"""What PTX has no instruction for, rejected while a role is recorded, with the author's line."""

from pipesim.lang.author import author_error
from pipesim.lang.recorder import Recorder
from pipesim.lang.tiles import Slot
from pipesim.model.ops import IN_ORDER, Engine, Space

WARP = 32
_COPIES = frozenset({Engine.BULK, Engine.CP_ASYNC})


def require_one_lane(rec: Recorder, what: str) -> None:
    """Raise ProtocolError if several lanes would execute an instruction that acts once for each."""
    if rec.executing_lanes != 1:
        raise author_error(
            f"{rec.who}: {rec.executing_lanes} lanes execute {what}",
            cause="it acts once for each lane that executes it",
            correction="put it inside `with w.elect_one():`",
        )


def _require_all_lanes(rec: Recorder, instruction: str, cause: str, correction: str) -> None:
    if rec.executing_lanes != WARP:
        raise author_error(
            f"{rec.who}: {rec.executing_lanes} of {WARP} lanes execute {instruction}",
            cause=cause,
            correction=correction,
        )


def require_mma(rec: Recorder, engine: Engine) -> None:
    """A matrix engine; wgmma is executed by whole warps, tcgen05.mma by one lane."""
    if engine not in IN_ORDER:
        raise author_error(f"{rec.who}: {engine.name} is not a matrix engine", correction="use WGMMA or TCGEN05")
    if engine == Engine.WGMMA:
        rec.require_whole("wgmma")
    if engine == Engine.TCGEN05:
        require_one_lane(rec, "tcgen05.mma")
    else:
        _require_all_lanes(
            rec,
            "wgmma",
            "all threads of a warp group execute a wgmma together",
            "put it outside `with w.elect_one():`, with only the arrive in one lane",
        )


def require_cluster(rec: Recorder, instruction: str) -> None:
    """Several CTAs of a cluster, whose barrier it is, and whole warps."""
    rec.require_whole(instruction)
    if rec.tables.alone:
        raise author_error(
            f"{rec.who}: {instruction} in a grid in which each CTA is a cluster of its own",
            correction="use w.sync_threads() within a CTA, and p.grid_barrier(name) between CTAs",
        )


def require_global(slot: object, *, word: bool) -> None:
    """A slot of global memory; a word has 4 or 8 bytes, at a multiple of them (PTX ISA, "atom")."""
    if not isinstance(slot, Slot) or slot.space != Space.GLOBAL:
        raise author_error(
            f"expected a slot of global memory, not {getattr(slot, 'name', type(slot).__name__)}",
            correction='name one, for example flags[0] of flags = p.gmem("flags", slots=4, nbytes=4)',
        )
    if word and (slot.nbytes not in (4, 8) or slot.offset % slot.nbytes):
        raise author_error(
            f"{slot.name} of {slot.nbytes} bytes is not a word", correction="declare words alone, each of 4 or 8 bytes"
        )


def require_register_request(rec: Recorder) -> None:
    """``setmaxnreg.sync.aligned`` is executed by whole warps."""
    rec.require_whole("setmaxnreg")
    together = "all threads of a warp group execute a setmaxnreg together"
    _require_all_lanes(rec, "setmaxnreg", together, "put it outside `with w.elect_one():`")


def require_whole_warp(rec: Recorder, instruction: str) -> None:
    """A named barrier counts whole warps: it waits for every thread of the executing warp that has not exited, and
    ``.aligned``, which ``bar`` implies, requires that all of them execute the instruction (PTX ISA, barrier).
    """
    _require_all_lanes(
        rec,
        instruction,
        "a named barrier counts whole warps: the lanes that execute it wait for the other lanes of their "
        "warp, which do not arrive there",
        "put it outside `with w.elect_one():` or `with w.lanes(n):`, where all lanes execute",
    )


def require_ordinary(rec: Recorder, name: str, space: Space, rank: int) -> None:
    """Ordinary loads and stores reach shared memory of the whole cluster, tensor memory and registers of one CTA.

    Those of tensor memory (``tcgen05.ld``, ``tcgen05.st``) are for whole warps, and registers are each lane's own.
    """
    if space not in (Space.SHARED, Space.GLOBAL):
        rec.require_whole(f"an access to {name}, which is {SPACE_WORDS[space]},")
    if space not in (Space.SHARED, Space.GLOBAL) and rank != rec.cta:
        raise author_error(
            f"{rec.who} of CTA {rec.cta} reads or writes {name} of CTA {rank}, which is {SPACE_WORDS[space]}",
            cause=f"{SPACE_WORDS[space]} of another CTA cannot be addressed",
            correction="have an agent of that CTA do it",
        )


def require_transfer(rec: Recorder, engine: Engine, name: str, space: Space, rank: int) -> None:
    """A transfer of this engine may touch this memory of the CTA of this rank, by the lanes that execute now."""
    if engine == Engine.WGMMA:
        rec.require_whole("wgmma")
    if engine in _COPIES and space in (Space.TENSOR, Space.REGISTERS):
        raise author_error(
            f"{rec.who}: a {_ENGINES[engine]} copy of {name}, which is {SPACE_WORDS[space]}",
            cause="it copies between global and shared memory",
            correction="copy through a tile of shared memory",
        )
    if engine == Engine.WGMMA and (space == Space.TENSOR or rank != rec.cta):
        raise author_error(
            f"{rec.who} of CTA {rec.cta}: a wgmma on {name} of CTA {rank}, which is {SPACE_WORDS[space]}",
            cause="a wgmma works on shared memory and registers of its own CTA",
            correction="use tcgen05, or operands of its own CTA",
        )
    if engine == Engine.TCGEN05:
        require_one_lane(rec, "a tcgen05 operation")
        if space == Space.REGISTERS:
            raise author_error(
                f"{rec.who}: a tcgen05 operation on {name}, which is {SPACE_WORDS[space]}",
                cause="it works on shared and tensor memory",
                correction="give it a tile of tensor memory",
            )


def require_one_copy(rec: Recorder, name: str) -> None:
    """One lane issues a bulk copy into the tile of this name."""
    if rec.executing_lanes != 1:
        raise author_error(
            f"{rec.who}: {rec.executing_lanes} lanes issue the same copy into {name}",
            cause="a bulk copy is issued once by each lane that executes it",
            correction="put it inside `with w.elect_one():`",
        )


def require_multicast(rec: Recorder, cta_mask: int) -> None:
    """A multicast names CTAs of the cluster; the mask 0 is that of an ordinary copy."""
    if not 0 <= cta_mask < rec.tables.masks:
        raise author_error(
            f"{rec.who}: a multicast to the CTAs of mask {cta_mask:#b}", cause=f"the cluster has {rec.tables.ctas} CTAs"
        )


def require_load(rec: Recorder, name: str, space: Space, rank: int, bar_rank: int) -> None:
    """A bulk copy lands in shared memory, and is counted in the CTA where it lands or by the leader of its pair."""
    if space != Space.SHARED:
        raise author_error(
            f"{rec.who}: a bulk copy into {name}, which is {SPACE_WORDS[space]}",
            cause="it copies into shared memory",
            correction="load into a tile of shared memory",
        )
    if bar_rank not in (rank, rank & ~1):
        raise author_error(
            f"{rec.who} of CTA {rec.cta}: a copy into {name} of CTA {rank} is counted on a barrier of CTA {bar_rank}",
            cause="a copy signals the CTA that it lands in, or the even CTA of that pair",
            correction="name the barrier of the CTA that the copy lands in",
        )


def require_commit(rec: Recorder, engine: Engine, *, on_barrier: bool) -> None:
    """tcgen05 commits to an mbarrier, every other engine closes a group."""
    if engine == Engine.WGMMA:
        rec.require_whole("wgmma.commit_group")
    if on_barrier == (engine == Engine.TCGEN05):
        return
    raise author_error(
        f"{rec.who}: a commit of {engine.name} {'to' if on_barrier else 'without'} an mbarrier",
        cause="tcgen05.commit arrives on an mbarrier" + (": other engines close groups" if on_barrier else ""),
        correction=f"w.commit(Engine.{engine.name}) and w.wait_group(Engine.{engine.name})"
        if on_barrier
        else "name it: w.commit(Engine.TCGEN05, mbar)",
    )


def require_groups(rec: Recorder, engine: Engine) -> None:
    """tcgen05 has no groups to wait for."""
    if engine == Engine.WGMMA:
        rec.require_whole("wgmma.wait_group")
    if engine == Engine.TCGEN05:
        raise author_error(
            f"{rec.who}: a wait for groups of TCGEN05",
            cause="tcgen05 has no groups",
            correction="commit to an mbarrier and wait for that",
        )


def note_tcgen05(rec: Recorder) -> None:
    """Remember which lanes have issued tcgen05 operations that no lane has committed yet."""
    rec.uncommitted |= rec.lanes


def require_committer(rec: Recorder) -> None:
    """``tcgen05.commit`` is for what the executing thread itself has issued; that is committed now."""
    others = rec.uncommitted & ~rec.lanes
    if others:
        lane = (others & -others).bit_length() - 1
        raise author_error(
            f"{rec.who}: lane {rec.lanes.bit_length() - 1} commits the tcgen05 operations of lane {lane}",
            cause="tcgen05.commit makes the barrier track what the executing thread has issued",
            correction="issue and commit with the same lane",
        )
    rec.uncommitted = 0


SPACE_WORDS = {
    Space.SHARED: "shared memory",
    Space.GLOBAL: "global memory",
    Space.TENSOR: "tensor memory",
    Space.REGISTERS: "registers",
}
_ENGINES = {Engine.BULK: "bulk", Engine.CP_ASYNC: "cp.async"}
