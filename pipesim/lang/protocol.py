"""``Protocol``: one kernel's barriers, tiles and roles, as its author writes them; ``flatten`` runs the roles."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import cycle

from pipesim.bounds import MAX_WARP
from pipesim.errors import ProtocolError
from pipesim.lang.author import (
    UnansweredError,
    author_error,
    author_line,
    first_line,
    name_of,
    require_plain,
    run,
    whole,
)
from pipesim.lang.flatten import (
    ALL_LANES,
    ANOTHER,
    OTHERS,
    InitBody,
    KernelDescription,
    Prologue,
    Role,
    RoleBody,
    assemble,
)
from pipesim.lang.global_words import GridProgram, GridRun, GridWords
from pipesim.lang.grid_barrier import GridBarrier
from pipesim.lang.recorder import PartRecorder, Recorder, Tables, recording
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.ops import Op, Space
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import executes_as_warp_group
from pipesim.model.tables import MAX_ARCHITECTURE, MAX_CLUSTER, MAX_THREAD_REGISTERS, WARP_GROUP, Access

TILE_ALIGNMENT = 128
MOST_TALKING = 8  #: CTAs of a grid
_MOST_RECORDINGS = 1_000


class Protocol(KernelDescription):
    """The description of one CTA's (or one cluster's) pipelines, or of CTAs that talk by words of global memory.

    ``cluster`` is the number of CTAs that the description spans; every CTA has the same memory, barriers and roles.
    ``grid``: that of CTAs which are clusters of their own, and have global memory in common (:meth:`gmem`); of these
    ``resident`` are on the device at a time, and each other one begins when those before it have ended; 0: all.
    ``registers``: of each thread at the launch (``.maxnreg``, or what the cubin says), from which ``setmaxnreg`` takes;
    0: not known, then the proof assumes as many as the warps hold in the end.
    ``architecture``: 90 for sm_90, 100 for sm_100; 0: not known, and of those with ``tcgen05`` if a role uses that.
    """

    def __init__(
        self,
        name: str,
        *,
        cluster: int = 1,
        grid: int = 1,
        resident: int = 0,
        registers: int = 0,
        architecture: int = 0,
    ) -> None:
        name, cluster = name_of("protocol", name), whole("the number of CTAs in a cluster", cluster)
        if not 1 <= cluster <= MAX_CLUSTER:
            raise author_error(f"{name}: a cluster of {cluster} CTAs", correction=f"use 1 to {MAX_CLUSTER}")
        grid, resident = whole("the number of CTAs", grid), whole("the number of CTAs on the device", resident)
        if not 1 <= grid <= MOST_TALKING or not 0 <= resident < max(grid, 1) or (grid > 1 and cluster > 1):
            raise author_error(
                f"{name}: a grid of {grid} CTAs, {resident} of them at a time, in clusters of {cluster}",
                correction=f"use 1 to {MOST_TALKING} CTAs, each its own cluster, and fewer at a time, or 0 for all",
            )
        self.name = name
        self._line = author_line()
        self.grid, self.resident = grid, resident
        self._global_bytes = 0
        self._global_line = ""
        self._first_values: dict[int, int] = {}  #: of words of global memory, by offset
        self._first_items: dict[str, int] = {}  #: of data in global memory, by name
        self._declared: dict[str, str] = {}  #: lines of the mbarriers
        self.cluster = cluster
        self.launch_registers = whole("the registers of a thread", registers)
        if not 0 <= self.launch_registers <= MAX_THREAD_REGISTERS:
            raise author_error(
                f"{name}: {registers} registers a thread",
                correction=f"use 1 to {MAX_THREAD_REGISTERS}, or 0 if it is not known",
            )
        self.architecture = whole("the architecture", architecture)
        if not 0 <= self.architecture <= MAX_ARCHITECTURE:
            raise author_error(f"{name}: architecture {architecture}", correction="use 90, or 100 for sm_100")
        self.roles, self.tiles, self.storages = [], [], []
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
        tile = self._tiles(name, Space.SHARED, -(-self._smem // TILE_ALIGNMENT) * TILE_ALIGNMENT, slots, nbytes)
        self._smem = tile.offset + tile.slots * tile.nbytes
        return tile

    def tmem(self, name: str, slots: int, nbytes: int) -> TileArray:
        """``slots`` tiles of ``nbytes`` in tensor memory, one after the other, after what was asked for before."""
        tile = self._tiles(name, Space.TENSOR, self._tmem, slots, nbytes)
        self._tmem += tile.slots * tile.nbytes
        return tile

    def registers(self, name: str, slots: int, nbytes: int) -> TileArray:
        """``slots`` tiles of ``nbytes`` in the registers of a CTA's threads, such as the accumulators of wgmma."""
        tile = self._tiles(name, Space.REGISTERS, self._in_registers, slots, nbytes)
        self._in_registers += tile.slots * tile.nbytes
        return tile

    def gmem(self, name: str, slots: int, nbytes: int, *, item: int | None = None, value: int = 0) -> TileArray:
        """``slots`` parts of ``nbytes`` in global memory, which all CTAs of the grid have in common.

        Of data the launch has written ``item``, None if nothing says what is there. A slot of 4 or 8 bytes may be a
        word, by which CTAs talk; at the launch it is ``value``. ProtocolError without a grid.
        """
        if self.grid == 1:
            raise author_error(
                f"{self.name} has global memory, but no grid of CTAs that share it",
                correction='say how many there are: Protocol("name", grid=2)',
            )
        tile = self._tiles(name, Space.GLOBAL, -(-self._global_bytes // TILE_ALIGNMENT) * TILE_ALIGNMENT, slots, nbytes)
        self._global_bytes = tile.offset + tile.slots * tile.nbytes
        self._global_line = self._global_line or author_line()
        for slot in tile if value else ():
            self._first_values[slot.offset] = whole(f"the value of {slot.name}", value) & (1 << 8 * slot.nbytes) - 1
        if item is not None:
            self._first_items[tile.name] = whole(f"the item of {name}", item)
        return tile

    def grid_barrier(self, name: str) -> GridBarrier:
        """A barrier of all CTAs of the grid: a counter in global memory, which each lap raises by their number."""
        return GridBarrier(self.gmem(name, 1, 4)[0], self.grid)

    def _tiles(self, name: str, space: Space, offset: int, slots: int, nbytes: int) -> TileArray:
        name = self._fresh_name(name)
        slots, nbytes = whole(f"the number of slots of {name}", slots), whole(f"the bytes of a slot of {name}", nbytes)
        if slots < 1 or nbytes < 1:
            raise author_error(f"{name}: {slots} slots of {nbytes} bytes", correction="both must be at least 1")
        tile = TileArray(name, space, offset, nbytes, slots)
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
            raise author_error(f"{name}: {size} mbarriers", correction="ask for at least 1")
        self._smem = -(-self._smem // 8) * 8 + 8 * size
        storage = BarrierStorage(name, size, self._barriers_per_cta[0], self._barriers_per_cta)
        self._barriers_per_cta[0] += size
        self.storages.append(storage)
        self._declared[name] = author_line()
        if count is not None:
            count = whole(f"the count of {name}", count)
            if not 1 <= count <= MAX_COUNT:
                raise author_error(f"{name}: a count of {count} arrivals", correction=f"use 1 to {MAX_COUNT:,}")
            self._counts[name] = count
        return storage

    def init(self, body: InitBody) -> InitBody:
        """Decorator: one thread of each CTA runs ``body``; then come the fence and the CTA (or cluster) barrier."""
        if self._init is not None:
            raise author_error(f"{self.name} has two inits", correction="initialise every barrier in one")
        require_plain(body, "the init", "def init():")
        self._init = body
        self._init_line = first_line(body) or author_line()
        return body

    def role(
        self, name: str, warps: int = 1, *, align: int = 0, lanes_apart: bool = False
    ) -> Callable[[RoleBody], RoleBody]:
        """Decorator: ``warps`` warps of each CTA run the function, each with its own :class:`Warp`.

        Warps are numbered in the order in which roles are declared. ``align``: those of this role begin at a multiple
        of it, and numbers before it stay unused: the warps of a load warp's group that do nothing, as in the kernels of
        CUTLASS and Modular. Without it a role of 4, 8, 12 … warps begins at a multiple of 4 if it executes ``wgmma`` or
        ``setmaxnreg``, which are for warp groups; ``align=1`` does not move it.

        ``lanes_apart``: the lanes of each warp run independently, which PTX allows wherever no ``.sync`` or
        ``.aligned`` instruction holds them together; they meet at ``w.sync_warp()``. The function runs once for each
        of three agents: ``name`` is the lane that ``w.elect_one()`` elects, ``name_lane1`` one that it does not elect,
        ``name_others`` the other 30.
        """
        name = name_of("role", name)
        warps, align = (
            whole(f"the number of warps of role {name}", warps),
            whole(f"the alignment of role {name}", align),
        )
        taken = {part for role in self.roles for part, _ in role.parts}
        if taken & {name, *((f"{name}{ANOTHER}", f"{name}{OTHERS}") if lanes_apart else ())}:
            raise author_error(f"{self.name} has two roles named {name}", correction="rename one")
        if warps < 1:
            raise author_error(f"role {name} has {warps} warps", correction="give it at least one")
        if not 0 <= align <= MAX_WARP:
            raise author_error(f"role {name} begins at a multiple of {align} warps", correction="use 4, or 1")

        def add(body: RoleBody) -> RoleBody:
            require_plain(body, f"role {name}", f"def {name}(w):", None)
            self.roles.append(Role(name, warps, 0, body, bool(lanes_apart), align))
            self._number_warps(())
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
            raise author_error(f"{self.name} has two objects named {name}", correction="rename one")
        return name

    def _number_warps(self, recorders: Sequence[Recorder]) -> bool:
        """Give each role its first warp, as far as these recordings show what it needs; True if one has another now."""
        before, following = list(self.roles), 0
        agents = zip(cycle([role.name for role, *_ in self._agents()]), recorders, strict=False)
        multiply = {name for name, rec in agents if any(map(executes_as_warp_group, rec.code))}
        for n, role in enumerate(before):
            by_itself = WARP_GROUP if role.name in multiply and role.warps % WARP_GROUP == 0 else 1
            align = role.align or by_itself
            first = -(-following // align) * align
            self.roles[n] = replace(role, first_warp=first)
            following = first + role.warps
        return self.roles != before

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
        if self.grid > 1:
            return self.flatten_grid(params, twice=twice, most=most).program
        return self._flat(params or {}, {}, twice=twice, most=most)[0]

    def flatten_grid(
        self,
        params: Mapping[str, int] | None = None,
        turns: tuple[int, ...] = (),
        resident: int | None = None,
        *,
        twice: bool = True,
        most: int | None = None,
    ) -> GridProgram:
        """The CTAs of the grid as one program, in a run in which they write words in the order of ``turns``.

        ``resident``: CTAs on the device at a time, if not as the protocol says. What is recorded depends on the answers
        of atomics: with those of the run roles are recorded again, until it has no others.
        """
        answers: dict[tuple[int, ...], int] = {}
        for _ in range(_MOST_RECORDINGS):
            program, recorders = self._flat(params or {}, answers, twice=False, most=most)
            memory = self._words(program, recorders)
            made = GridRun(program, memory, turns, self.resident if resident is None else resident).made()
            others = [(at, old) for at, old in made.answers.items() if memory.observed.get(at, old) != old]
            for atomic, old in others:
                answers[atomic] = old
                if memory.observed[atomic] is not None:
                    break  # with another answer here the rest may be another one
            if not others:
                self._require_answered(recorders, made)
                if twice:
                    self._flat(params or {}, answers, twice=True, most=most)
                return made
        raise ProtocolError(
            f"{self.name}: more than {_MOST_RECORDINGS:,} answers of atomics decide what its roles do", place=self._line
        )

    def _require_answered(self, recorders: Sequence[Recorder], made: GridProgram) -> None:
        """ProtocolError for a role that asks for an answer that nothing gives."""
        asks = (recorders[n] for n in sorted(made.ended) if None in recorders[n].observed.values())
        if (rec := next(asks, None)) is not None:
            raise ProtocolError(
                f"{rec.who} of CTA {rec.cta} asks for the answer of an atomic that its CTA never executes",
                place=self._global_line or self._line,
            )

    def _flat(
        self, params: Mapping[str, int], answers: Mapping[tuple[int, ...], int], *, twice: bool, most: int | None
    ) -> tuple[Program, list[Recorder]]:
        """The program of one recording, with these answers of atomics."""
        tables = Tables(self.ctas, self.grid > 1)
        first = self._record(tables, answers, most=most)
        if self._number_warps(first):
            tables = Tables(self.ctas, self.grid > 1)
            first = self._record(tables, answers, most=most)
        self._prologue.require_initialised(first)
        if twice:
            self._require_deterministic(first, tables, answers)
        for tile in (each for each in self.tiles if each.name in self._first_items):
            tables.access(tile.space, 0, tile.offset, tile.slots * tile.nbytes)
        return assemble(self, first, tables, dict(params), self._prologue.notes, self.smem_bytes), first

    def _words(self, program: Program, recorders: Sequence[Recorder]) -> GridWords:
        """What roles do to words of global memory, and what is there before."""
        whole_tiles = ((Access(each.space, 0, each.offset, each.slots * each.nbytes), each.name) for each in self.tiles)
        written = [
            (int(Op.WRITE), program.accesses.index(access), self._first_items[name])
            for access, name in whole_tiles
            if name in self._first_items
        ]
        memory = GridWords(
            words={(n, pc): each for n, rec in enumerate(recorders) for pc, each in rec.words.items()},
            observed={atomic: old for rec in recorders for atomic, old in rec.observed.items()},
            first_values=self._first_values,
            first=written,
            line=self._global_line or self._line,
        )
        memory.require_apart(program)
        return memory

    def _require_intact(self) -> None:
        """ProtocolError if an attribute was assigned what it cannot be."""
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

    def _require_deterministic(
        self, first: Sequence[Recorder], tables: Tables, answers: Mapping[tuple[int, ...], int]
    ) -> None:
        # The same tables, so that another tile or barrier is another number; no lines, which cost as much as the rest.
        second = self._record(tables, answers, located=[len(rec.code) for rec in first])
        for one, two in zip(first, second, strict=True):
            if one.code != two.code:
                at = next(
                    (i for i, (a, b) in enumerate(zip(one.code, two.code, strict=False)) if a != b),
                    min(len(one.code), len(two.code)),
                )
                line = one.lines[at] if at < len(one.code) else two.lines[at - two.located]
                raise ProtocolError(
                    f"{one.who} is not deterministic: recorded twice, it differs at operation {at}",
                    place=tables.lines()[line],
                    cause="the role depends on state that changes between two calls",
                )

    def _record(
        self,
        tables: Tables,
        answers: Mapping[tuple[int, ...], int],
        located: Sequence[int] = (),
        most: int | None = None,
    ) -> list[Recorder]:
        recorders: list[Recorder] = []
        for cta in range(self.ctas):
            for role, name, lanes, index in self._agents():
                who = name if role.warps == 1 else f"{name}/{index}"
                known = located[len(recorders)] if located else 0
                kind = PartRecorder if role.lanes_apart else Recorder
                rec = kind(tables, who, cta, ALL_LANES, known, most, lanes)
                rec.answers, rec.agent = answers, len(recorders)
                warp = Warp(rec, index, role.first_warp + index, 32 * self.warps)
                with suppress(UnansweredError), recording(rec):
                    self._prologue.record(rec, warp.warp)
                    run(lambda body=role.body, w=warp: body(w), rec.who)  # type: ignore[misc]  # bound right now
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
    def _prologue(self) -> Prologue:
        line = self._init_line or next(iter(self._declared.values()), self._line)
        return Prologue(
            self.name, self.cluster, self.warps, self.storages, self._counts, self._declared, self._init, line
        )


#: What a protocol holds, by the type that it has until code outside assigns another.
_ATTRIBUTES = {
    "name": str, "_line": str, "_declared": dict, "cluster": int, "launch_registers": int, "architecture": int,
    "roles": list, "tiles": list, "storages": list, "_init_line": str, "_counts": dict, "_smem": int, "_tmem": int,
    "_in_registers": int, "_barriers_per_cta": list, "grid": int, "resident": int, "_first_values": dict,
    "_first_items": dict,
}  # fmt: skip
_LISTS = {"roles": Role, "tiles": TileArray, "storages": BarrierStorage}
