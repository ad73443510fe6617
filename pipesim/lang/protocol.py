"""``Protocol``: one kernel's barriers, tiles and roles, as its author writes them; ``flatten`` runs the roles."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.author_values import name_of, whole
from pipesim.lang.flatten import assemble
from pipesim.lang.lanes_apart import PartRecorder
from pipesim.lang.raised import NOT_OURS, hint, in_words, raised_at
from pipesim.lang.recorder import Recorder, recording
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.side_tables import Tables
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.ops import Fence, Op, Scope, Space, semantics
from pipesim.model.positions import BARRIER
from pipesim.model.program import MAX_CLUSTER, MAX_THREAD_REGISTERS, Program

RoleBody = Callable[[Warp], None]
InitBody = Callable[[], None]

TILE_ALIGNMENT = 128
ALL_LANES = (1 << 32) - 1
#: After a role's name, where its lanes are apart: a lane that is not elected, and the others that are not.
ANOTHER, OTHERS = "_lane1", "_others"


@dataclass(frozen=True)
class Role:
    """A role: ``warps`` warps of every CTA run ``body``, starting at warp ``first_warp``.

    ``lanes_apart``: the lanes of each warp run independently.
    """

    name: str
    warps: int
    first_warp: int
    body: RoleBody
    lanes_apart: bool = False

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """The agents of a warp: what each is called, and the bit mask of its lanes. The first has the elected lane.

        The others do all the same. One of them is an agent of its own, so that what two of them do to each other is
        found; the rest can be one agent, because any two lanes are like that one and one of the rest.
        """
        if not self.lanes_apart:
            return ((self.name, ALL_LANES),)
        return (self.name, 1), (f"{self.name}{ANOTHER}", 2), (f"{self.name}{OTHERS}", ALL_LANES - 3)


class Protocol:
    """The description of one CTA's (or one cluster's) pipelines.

    ``cluster`` is the number of CTAs that the description spans; every CTA has the same memory, barriers and roles.
    ``registers``: of each thread at the launch (``.maxnreg``, or what the cubin says), from which ``setmaxnreg`` takes;
    0: not known, then the proof assumes as many as the warps hold in the end.
    """

    def __init__(self, name: str, *, cluster: int = 1, registers: int = 0) -> None:
        name, cluster = name_of("protocol", name), whole("the number of CTAs in a cluster", cluster)
        if not 1 <= cluster <= MAX_CLUSTER:
            raise ProtocolError(
                f"{name}: a cluster of {cluster} CTAs", place=author_line(), correction=f"use 1 to {MAX_CLUSTER}"
            )
        self.name = name
        self._line = author_line()
        self._declared: dict[str, str] = {}  #: lines of the mbarriers
        self.cluster = cluster
        self.launch_registers = whole("the registers of a thread", registers)
        if not 0 <= self.launch_registers <= MAX_THREAD_REGISTERS:
            raise ProtocolError(
                f"{name}: {registers} registers a thread",
                place=author_line(),
                correction=f"use 1 to {MAX_THREAD_REGISTERS}, or 0 if it is not known",
            )
        self.roles: list[Role] = []
        self.tiles: list[TileArray] = []
        self.storages: list[BarrierStorage] = []
        self._init: InitBody | None = None
        self._init_line = ""
        self._counts: dict[str, int] = {}
        self._smem = 0
        self._tmem = 0
        self._in_registers = 0
        self._barriers_per_cta = [0]

    # what the kernel has

    def smem(self, name: str, slots: int, nbytes: int) -> TileArray:
        """``slots`` tiles of ``nbytes`` in shared memory, aligned to 128 bytes, after what was asked for before."""
        name = self._fresh_name(name)
        slots, nbytes = _shape(name, slots, nbytes)
        offset = -(-self._smem // TILE_ALIGNMENT) * TILE_ALIGNMENT
        self._smem = offset + slots * nbytes
        tile = TileArray(name, Space.SHARED, offset, nbytes, slots)
        self.tiles.append(tile)
        return tile

    def tmem(self, name: str, slots: int, nbytes: int) -> TileArray:
        """``slots`` tiles of ``nbytes`` in tensor memory, one after the other, after what was asked for before."""
        name = self._fresh_name(name)
        slots, nbytes = _shape(name, slots, nbytes)
        tile = TileArray(name, Space.TENSOR, self._tmem, nbytes, slots)
        self._tmem += slots * nbytes
        self.tiles.append(tile)
        return tile

    def registers(self, name: str, slots: int, nbytes: int) -> TileArray:
        """``slots`` tiles of ``nbytes`` in the registers of a CTA's threads, such as the accumulators of wgmma."""
        name = self._fresh_name(name)
        slots, nbytes = _shape(name, slots, nbytes)
        tile = TileArray(name, Space.REGISTERS, self._in_registers, nbytes, slots)
        self._in_registers += slots * nbytes
        self.tiles.append(tile)
        return tile

    def mbarriers(self, name: str, size: int, count: int | None = None) -> BarrierStorage:
        """``size`` mbarriers of 8 bytes. With ``count`` the usual prologue initialises them if no init is given.

        Without an init, those without a count are initialised by a role: in one lane, then a fence, then a barrier that
        every user passes.
        """
        name = self._fresh_name(name)
        size = whole(f"the number of mbarriers of {name}", size)
        if size < 1:
            raise ProtocolError(f"{name}: {size} mbarriers", place=author_line(), correction="ask for at least 1")
        self._smem = -(-self._smem // 8) * 8 + 8 * size
        storage = BarrierStorage(name, size, self._barriers_per_cta[0], self._barriers_per_cta)
        self._barriers_per_cta[0] += size
        self.storages.append(storage)
        self._declared[name] = author_line()
        if count is not None:
            count = whole(f"the count of {name}", count)
            if not 1 <= count <= MAX_COUNT:
                raise ProtocolError(
                    f"{name}: a count of {count} arrivals", place=author_line(), correction=f"use 1 to {MAX_COUNT:,}"
                )
            self._counts[name] = count
        return storage

    def init(self, body: InitBody) -> InitBody:
        """Decorator: one thread of each CTA runs ``body``; then come the fence and the CTA (or cluster) barrier."""
        if self._init is not None:
            raise ProtocolError(
                f"{self.name} has two inits", place=author_line(), correction="initialise every barrier in one"
            )
        _require_plain(body, "the init", "def init():")
        self._init = body
        self._init_line = _line_of(body) or author_line()
        return body

    def role(self, name: str, warps: int = 1, *, lanes_apart: bool = False) -> Callable[[RoleBody], RoleBody]:
        """Decorator: ``warps`` warps of each CTA run the function, each with its own :class:`Warp`.

        ``lanes_apart``: the lanes of each warp run independently, which PTX allows wherever no ``.sync`` or
        ``.aligned`` instruction holds them together; they meet at ``w.sync_warp()``. The function runs once for each
        of three agents: ``name`` is the lane that ``w.elect_one()`` elects, ``name_lane1`` one that it does not elect,
        ``name_others`` the other 30.
        """
        name = name_of("role", name)
        warps = whole(f"the number of warps of role {name}", warps)
        taken = {part for role in self.roles for part, _ in role.parts}
        if taken & {name, *((f"{name}{ANOTHER}", f"{name}{OTHERS}") if lanes_apart else ())}:
            raise ProtocolError(f"{self.name} has two roles named {name}", place=author_line(), correction="rename one")
        if warps < 1:
            raise ProtocolError(
                f"role {name} has {warps} warps", place=author_line(), correction="give it at least one"
            )

        def add(body: RoleBody) -> RoleBody:
            _require_plain(body, f"role {name}", f"def {name}(w):", None)
            self.roles.append(Role(name, warps, self.warps, body, bool(lanes_apart)))
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

    def _fresh_name(self, name: str) -> str:
        name = name_of("tile or an array of mbarriers", name)
        if name in {t.name for t in self.tiles} | {s.name for s in self.storages}:
            raise ProtocolError(
                f"{self.name} has two objects named {name}", place=author_line(), correction="rename one"
            )
        return name

    # flattening

    def flatten(
        self, params: Mapping[str, int] | None = None, *, twice: bool = True, most: int | None = None
    ) -> Program:
        """Run every role once for each of its warps, twice over to see that it is deterministic; the flat program.

        Not ``twice`` where the same roles have been seen to be: many sizes of one protocol, say. ``most``: operations
        of all agents together, beyond which TooManyOperationsError is raised; None bounds each agent alone.
        """
        self._require_intact()
        if not self.roles:
            raise ProtocolError(
                f"{self.name} has no roles",
                place=self._line,
                correction="mark at least one function with @protocol.role(...)",
            )
        tables = Tables(self.cluster)
        first = self._record(tables, most=most)
        self._require_initialised(first)
        if twice:
            self._require_deterministic(first, tables)
        return assemble(self, first, tables, dict(params or {}), self._notes)

    def _require_intact(self) -> None:
        """ProtocolError if somebody has assigned to an attribute what it cannot be."""
        held = vars(self)
        wrong = [name for name, kind in _ATTRIBUTES.items() if type(held.get(name)) is not kind]
        for name, kind in _LISTS.items():
            wrong += [name] * (name not in wrong and any(type(each) is not kind for each in held[name]))
        if wrong:
            raise ProtocolError(
                f"the attribute {wrong[0]} of a protocol was changed from outside",
                place=str(held.get("_line", "")),
                correction="use the methods of Protocol alone",
            )
        name_of("protocol", self.name)

    def _require_deterministic(self, first: Sequence[Recorder], tables: Tables) -> None:
        # The same tables, so that another tile or barrier is another number; no lines, which cost as much as the rest.
        second = self._record(tables, located=[len(rec.code) for rec in first])
        for one, two in zip(first, second, strict=True):
            if one.code != two.code:
                at = next(
                    (i for i, (a, b) in enumerate(zip(one.code, two.code, strict=False)) if a != b),
                    min(len(one.code), len(two.code)),
                )
                line = one.lines[at] if at < len(one.code) else two.lines[at - two.located]
                raise ProtocolError(
                    f"{one.who} is not deterministic: recorded twice, it differs at operation {at}",
                    place=list(tables.sources)[line],
                    cause="the role depends on state that changes between two calls",
                )

    def _record(self, tables: Tables, located: Sequence[int] = (), most: int | None = None) -> list[Recorder]:
        recorders: list[Recorder] = []
        for cta in range(self.cluster):
            for role, name, lanes, index in self._agents():
                who = name if role.warps == 1 else f"{name}/{index}"
                known = located[len(recorders)] if located else 0
                kind = PartRecorder if role.lanes_apart else Recorder
                rec = kind(tables, who, cta, ALL_LANES, known, most, lanes)
                warp = Warp(rec, index, role.first_warp + index, 32 * self.warps)
                with recording(rec):
                    if self._has_prologue:
                        if warp.warp == 0:
                            self._record_init(rec)
                        self._record_sync(rec)
                    _run(lambda body=role.body, w=warp: body(w), rec.who)  # type: ignore[misc]  # bound now, on purpose
                recorders.append(rec)
                most = None if most is None else most - len(rec.code)
        return recorders

    def _agents(self) -> Iterator[tuple[Role, str, int, int]]:
        """The agents of a CTA: of which role, under which name, with which lanes of which of its warps."""
        for role in self.roles:
            for name, lanes in role.parts:
                for index in range(role.warps):
                    yield role, name, lanes, index

    @property
    def _has_prologue(self) -> bool:
        """True but where the roles alone initialise: then fence and barrier are theirs as well, or forgotten."""
        return self._init is not None or bool(self._counts) or not self.storages

    @property
    def _notes(self) -> tuple[str, ...]:
        """What the flattener has added to the author's description."""
        if self._init is not None:
            return ("the flattener adds fence.mbarrier_init and the CTA barrier after the init",)
        if self._has_prologue:
            return (
                "no init was given: the flattener adds the usual prologue (init, fence.mbarrier_init, CTA barrier)",
            )
        return ("no init was given, and a role initialises the mbarriers: the flattener adds no prologue",)

    def _record_init(self, rec: Recorder) -> None:
        """One lane initialises; without an init, the barriers that named a count are initialised as usual."""
        with rec.narrowed(1):
            if self._init is not None:
                with rec.naming(""):  # a pipeline that only initialises its barriers is no role's
                    _run(self._init, f"the init of {self.name}")
            else:
                for storage in self.storages:
                    for index in range(storage.size if storage.name in self._counts else 0):
                        storage[index].init(self._counts[storage.name], line=self._declared[storage.name])
            self._record_fence(rec)

    def _require_initialised(self, recorders: Sequence[Recorder]) -> None:
        """Raise ProtocolError if no agent initialises anything of a storage that has no count, and there is no init.

        One that is initialised in part is a fault of the modelled program: only its schedules can tell.
        """
        uncounted = [s for s in self.storages if s.name not in self._counts]
        if self._init is not None or not uncounted:
            return
        inits = {op[BARRIER] % self._barriers_per_cta[0] for rec in recorders for op in rec.code if op[0] == Op.INIT}
        missing = [s.name for s in uncounted if inits.isdisjoint(range(s.first, s.first + s.size))]
        if missing:
            raise ProtocolError(
                f"no role initialises {', '.join(missing)}",
                place=self._declared[missing[0]],
                correction="mark a function @protocol.init, name the count: protocol.mbarriers(name, size, 1), or "
                "initialise in a role",
            )

    def _record_fence(self, rec: Recorder) -> None:
        rec.emit(Op.FENCE, Fence.MBARRIER_INIT, semantics(scope=Scope.CLUSTER), line=self._set_up_line)

    def _record_sync(self, rec: Recorder) -> None:
        line = self._set_up_line
        if self.cluster > 1:
            rec.emit(Op.CLUSTER_ARRIVE, semantics(scope=Scope.CLUSTER), line=line)
            rec.emit(Op.CLUSTER_WAIT, semantics(scope=Scope.CLUSTER), line=line)
        else:
            rec.emit(Op.BAR_SYNC, rec.tables.named_barrier(rec.cta, 0), 32 * self.warps, rec.counted, line=line)

    @property
    def _set_up_line(self) -> str:
        """What the flattener adds to the set-up stands at the author's init, or where the first mbarriers are named."""
        return self._init_line or next(iter(self._declared.values()), self._line)


def _shape(name: str, slots: int, nbytes: int) -> tuple[int, int]:
    slots, nbytes = whole(f"the number of slots of {name}", slots), whole(f"the bytes of a slot of {name}", nbytes)
    if slots < 1 or nbytes < 1:
        raise ProtocolError(
            f"{name}: {slots} slots of {nbytes} bytes", place=author_line(), correction="both must be at least 1"
        )
    return slots, nbytes


def _require_plain(body: Callable[..., object], who: str, head: str, *arguments: object) -> None:
    """An author's function can be called with these arguments and does not suspend; else ProtocolError."""
    if inspect.isgeneratorfunction(body) or inspect.iscoroutinefunction(body):
        raise _suspends(who, author_line())
    try:
        inspect.signature(body).bind(*arguments)
    except TypeError as error:
        raise ProtocolError(
            f"{who} cannot be called: {error}", place=author_line(), correction=f"write {head}"
        ) from None
    except ValueError:
        pass  # a function that is not written in Python tells nothing about its arguments


def _line_of(body: Callable[..., object]) -> str:
    """Where an author's function begins, at its decorator; "" for what is not written in Python."""
    code = getattr(body, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def _suspends(who: str, place: str) -> ProtocolError:
    return ProtocolError(
        f"{who} is a generator or a coroutine",
        place=place,
        cause="a role is recorded by calling it once, from start to end: it cannot suspend",
        correction="write it as a plain function, without yield, async or await",
    )


def _run(body: Callable[[], object], who: str) -> None:
    """Run an author's function; whatever it raises that is not ours is reported with the author's line."""
    try:
        returned = body()
    except (*NOT_OURS, SystemExit):
        raise
    except BaseException as error:
        raise ProtocolError(
            f"{who} raised {in_words(error)}", place=raised_at(error), correction=hint(error)
        ) from error
    if inspect.isgenerator(returned) or inspect.iscoroutine(returned):
        returned.close()
        code = returned.gi_code if inspect.isgenerator(returned) else returned.cr_code
        raise _suspends(f"what {who} returns", f"{code.co_filename}:{code.co_firstlineno}")


#: What a protocol holds, by the type that it has until somebody outside assigns another.
_ATTRIBUTES = {
    "name": str, "_line": str, "_declared": dict, "cluster": int, "launch_registers": int, "roles": list, "tiles": list,
    "storages": list, "_init_line": str, "_counts": dict, "_smem": int, "_tmem": int, "_in_registers": int,
    "_barriers_per_cta": list,
}  # fmt: skip
_LISTS = {"roles": Role, "tiles": TileArray, "storages": BarrierStorage}
