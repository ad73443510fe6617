"""``Protocol``: one kernel's barriers, tiles and roles, as its author writes them; ``flatten`` runs the roles."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipesim.errors import PipesimError, ProtocolError
from pipesim.model.flatten import assemble
from pipesim.model.ops import Fence, Op, Scope, Space, semantics
from pipesim.model.program import MAX_CLUSTER, Program
from pipesim.model.recording import Recorder, Tables, author_line, is_inside, recording
from pipesim.model.shared_mem_barrier import BarrierStorage
from pipesim.model.warp import TileArray, Warp

RoleBody = Callable[[Warp], None]
InitBody = Callable[[], None]

TILE_ALIGNMENT = 128
ALL_LANES = (1 << 32) - 1


@dataclass(frozen=True)
class Role:
    """A role: ``warps`` warps of every CTA run ``body``, starting at warp ``first_warp``."""

    name: str
    warps: int
    first_warp: int
    body: RoleBody


class Protocol:
    """The description of one CTA's (or one cluster's) pipelines.

    ``cluster`` is the number of CTAs that the description spans; every CTA has the same memory, barriers and roles.
    """

    def __init__(self, name: str, *, cluster: int = 1) -> None:
        if not 1 <= cluster <= MAX_CLUSTER:
            raise ProtocolError(
                f"{name}: a cluster of {cluster} CTAs", place=author_line(), correction=f"use 1 to {MAX_CLUSTER}"
            )
        self.name = name
        self.cluster = cluster
        self.roles: list[Role] = []
        self.tiles: list[TileArray] = []
        self.storages: list[BarrierStorage] = []
        self._init: InitBody | None = None
        self._counts: dict[str, int] = {}
        self._smem = 0
        self._tmem = 0
        self._barriers_per_cta = [0]

    # what the kernel has

    def smem(self, name: str, slots: int, nbytes: int) -> TileArray:
        """``slots`` tiles of ``nbytes`` in shared memory, aligned to 128 bytes, after what was asked for before."""
        self._fresh_name(name)
        if slots < 1 or nbytes < 1:
            raise ProtocolError(
                f"{name}: {slots} slots of {nbytes} bytes", place=author_line(), correction="both must be at least 1"
            )
        offset = -(-self._smem // TILE_ALIGNMENT) * TILE_ALIGNMENT
        self._smem = offset + slots * nbytes
        tile = TileArray(name, Space.SHARED, offset, nbytes, slots)
        self.tiles.append(tile)
        return tile

    def tmem(self, name: str, slots: int, nbytes: int) -> TileArray:
        """``slots`` tiles of ``nbytes`` in tensor memory, one behind the other, after what was asked for before."""
        self._fresh_name(name)
        if slots < 1 or nbytes < 1:
            raise ProtocolError(
                f"{name}: {slots} slots of {nbytes} bytes", place=author_line(), correction="both must be at least 1"
            )
        tile = TileArray(name, Space.TENSOR, self._tmem, nbytes, slots)
        self._tmem += slots * nbytes
        self.tiles.append(tile)
        return tile

    def mbarriers(self, name: str, size: int, count: int | None = None) -> BarrierStorage:
        """``size`` mbarriers of 8 bytes. With ``count`` the usual prologue initialises them if no init is given."""
        self._fresh_name(name)
        if size < 1:
            raise ProtocolError(f"{name}: {size} mbarriers", place=author_line(), correction="ask for at least 1")
        self._smem = -(-self._smem // 8) * 8 + 8 * size
        storage = BarrierStorage(name, size, self._barriers_per_cta[0], self._barriers_per_cta)
        self._barriers_per_cta[0] += size
        self.storages.append(storage)
        if count is not None:
            self._counts[name] = count
        return storage

    def init(self, body: InitBody) -> InitBody:
        """Decorator: one thread of each CTA runs ``body``; then come the fence and the CTA (or cluster) barrier."""
        if self._init is not None:
            raise ProtocolError(
                f"{self.name} has two inits", place=author_line(), correction="initialise every barrier in one"
            )
        self._init = body
        return body

    def role(self, name: str, warps: int = 1) -> Callable[[RoleBody], RoleBody]:
        """Decorator: ``warps`` warps of each CTA run the function, each with its own :class:`Warp`."""
        if any(role.name == name for role in self.roles):
            raise ProtocolError(f"{self.name} has two roles named {name}", place=author_line(), correction="rename one")
        if warps < 1:
            raise ProtocolError(
                f"role {name} has {warps} warps", place=author_line(), correction="give it at least one"
            )

        def add(body: RoleBody) -> RoleBody:
            if inspect.isgeneratorfunction(body) or inspect.iscoroutinefunction(body):
                raise ProtocolError(
                    f"role {name} is a generator or a coroutine",
                    place=author_line(),
                    cause="a role is recorded by calling it once, from start to end: nothing in it suspends",
                    correction="write it as a plain function, without yield, async or await",
                )
            self.roles.append(Role(name, warps, self.warps, body))
            return body

        return add

    @property
    def warps(self) -> int:
        """Warps of one CTA."""
        return sum(role.warps for role in self.roles)

    @property
    def smem_bytes(self) -> int:
        """Shared memory of one CTA: tiles and barriers."""
        return self._smem

    def _fresh_name(self, name: str) -> None:
        if name in {t.name for t in self.tiles} | {s.name for s in self.storages}:
            raise ProtocolError(
                f"{self.name} has two things named {name}", place=author_line(), correction="rename one"
            )

    # flattening

    def flatten(self, params: Mapping[str, int] | None = None) -> Program:
        """Run every role once for each of its warps, twice over to see that it is deterministic; the flat program."""
        if not self.roles:
            raise ProtocolError(
                f"{self.name} has no roles", correction="mark at least one function with @protocol.role(...)"
            )
        tables = Tables(self.cluster)
        first, notes = self._record(tables)
        second, _ = self._record(tables)  # the same tables, so that another tile or barrier is another number
        for one, two in zip(first, second, strict=True):
            if one.code != two.code:
                at = next(
                    (i for i, (a, b) in enumerate(zip(one.code, two.code, strict=False)) if a != b),
                    min(len(one.code), len(two.code)),
                )
                where = one if at < len(one.code) else two
                raise ProtocolError(
                    f"{one.who} is not deterministic: recorded twice, it differs at operation {at}",
                    place=list(tables.sources)[where.lines[at]],
                    cause="the role depends on something that changes between two calls",
                )
        return assemble(self, first, tables, dict(params or {}), notes)

    def _record(self, tables: Tables) -> tuple[list[Recorder], tuple[str, ...]]:
        notes: tuple[str, ...] = ()
        recorders = []
        for cta in range(self.cluster):
            for role in self.roles:
                for index in range(role.warps):
                    rec = Recorder(tables, role.name if role.warps == 1 else f"{role.name}/{index}", cta, ALL_LANES)
                    warp = Warp(rec, index, role.first_warp + index, 32 * self.warps)
                    with recording(rec):
                        if warp.warp == 0:
                            notes = self._record_init(rec)
                        self._record_sync(warp)
                        _run(lambda body=role.body, w=warp: body(w), rec.who)  # type: ignore[misc]  # bound now, on purpose
                    recorders.append(rec)
        return recorders, notes

    def _record_init(self, rec: Recorder) -> tuple[str, ...]:
        """One lane initialises; without an init, the barriers that named a count are initialised as usual."""
        with rec.narrowed(1):
            if self._init is not None:
                _run(self._init, f"the init of {self.name}")
                rec.emit(Op.FENCE, Fence.MBARRIER_INIT, semantics(scope=Scope.CLUSTER))
                return ("the flattener adds fence.mbarrier_init and the CTA barrier after the init",)
            missing = [s.name for s in self.storages if s.name not in self._counts]
            if missing:
                raise ProtocolError(
                    f"nobody initialises {', '.join(missing)}",
                    correction="mark a function @protocol.init, or name the count: protocol.mbarriers(name, size, 1)",
                )
            for storage in self.storages:
                for index in range(storage.size):
                    storage[index].init(self._counts[storage.name])
            rec.emit(Op.FENCE, Fence.MBARRIER_INIT, semantics(scope=Scope.CLUSTER))
        return ("no init was given: the flattener adds the usual prologue (init, fence.mbarrier_init, CTA barrier)",)

    def _record_sync(self, warp: Warp) -> None:
        if self.cluster > 1:
            warp.cluster_sync()
        else:
            warp.sync_threads()


def _run(body: Callable[[], None], who: str) -> None:
    """Run an author's function; whatever it raises that is not ours is reported with the author's line."""
    try:
        body()
    except PipesimError:
        raise
    except Exception as error:
        raise ProtocolError(f"{who} raised {type(error).__name__}: {error}", place=_raised_at(error)) from error


def _raised_at(error: BaseException) -> str:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        if not is_inside(trace.tb_frame.f_globals.get("__name__", "")):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
