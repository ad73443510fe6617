"""Whether two clusters of a launch can meet in global memory: what is sure to, what may, and what cannot be said.

Two accesses by different clusters to the same bytes, of which one writes, are a race unless both are atomic, or
something orders them: in a kernel in which no cluster looks at what others do, nothing does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from pipesim.answers.every_cta.conditions import Evaluation, arrays_of, completed, holds, words_of
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.global_memory.grid_memory import (
    BOX,
    CHANGED,
    CONSTANT,
    DATA,
    INSIDE,
    LOST,
    MANY,
    MAYBE,
    ORDER,
    OUTSIDE,
    SCOPE,
    GlobalRace,
    GridMemory,
    MeetingInside,
)
from pipesim.answers.global_memory.memories import Chosen, Kinds, MappedMemory, Memory, PointedMemory
from pipesim.answers.global_memory.reading import MOST_INSTRUCTIONS, GlobalReading, read_global
from pipesim.answers.global_memory.spans import (
    ContestedBytes,
    Spans,
    TooManyError,
    contested,
    joined,
    met_by_any,
    met_by_each_other,
    met_by_others,
)
from pipesim.model.ops import Order, Scope
from pipesim.ptx.coverage import kind_on_global
from pipesim.ptx.emulate.global_accesses import (
    MODULE_VARIABLES,
    AccessKind,
    GlobalAccess,
    Strength,
    kind_of,
    strength_of,
)
from pipesim.ptx.emulation import Kernel, on_global_memory
from pipesim.ptx.flow.addresses import ParameterPlaces
from pipesim.ptx.flow.observations import ASKING, loads_behind
from pipesim.ptx.flow.opcodes import may_touch_global
from pipesim.ptx.flow.uses import stores_one_value
from pipesim.ptx.free.forms import Form, Terms, bounds
from pipesim.ptx.launch.image import PARAMETERS
from pipesim.ptx.launch.values import HANDED_OUT
from pipesim.ptx.text.instruction import (
    TensorAddress,
)
from pipesim.trace.arrays import np

_MOST_CLUSTERS = 1 << 22  #: 100 bytes each while they are compared
_MOST_KINDS = 24  #: of clusters that are followed
_MOST_TIMES, _MOST_BESIDE = 8, 1 << 16  #: instructions of all of them: those of the first one, and as many more


class AccessRole(Enum):
    """What an access is to those of other clusters."""

    WRITE = 0
    STRONG_WRITE = (
        1  #: atomics and stores with an order, of gpu or sys scope: any number of them may meet, and strong reads
    )
    READ = 2
    STRONG_READ = 3
    EQUAL = 4  #: stores of one value: as many as there are of one instruction may meet


def uses_global_memory(kernel: Kernel) -> bool:
    """Whether any of its instructions may."""
    return any(may_touch_global(each) or kind_on_global(each) for each in kernel.function.body)


def judge(kernel: Kernel) -> GridMemory:
    """What CTAs of a kernel do to the same bytes of global memory."""
    first = read_global(on_global_memory(kernel))
    instructions = min(MOST_INSTRUCTIONS, _MOST_TIMES * first.instructions + _MOST_BESIDE)
    every = EveryCta(first, asked=False, most=_MOST_KINDS, instructions=instructions)
    readings = [first, *every]
    cut = next((each.cut for each in readings if each.cut), "" if every.complete else "CTAs do too many things")
    if {name for each in readings for name in arrays_of(each.inputs)} - {HANDED_OUT}:
        return GridMemory(every.clusters, cut="contents decide")
    if every.clusters > _MOST_CLUSTERS:
        return GridMemory(every.clusters, cut="more CTAs than are compared")
    return _Judge(kernel, every, readings).judge(cut)


class _Judge:
    """One judgement: the memories with their accesses, compared one by one."""

    def __init__(self, kernel: Kernel, every: EveryCta[GlobalReading], readings: Sequence[GlobalReading]) -> None:
        self._body, self._every, self._readings = kernel.function.body, every, list(readings)
        self._tiles: dict[tuple[int, tuple[str, int]], int] = {}  #: kinds of tiles that are handed out
        self._races: list[GlobalRace] = []
        self._left_open: dict[int, str] = {}
        self._equal: set[int] = set()
        self._inside: list[tuple[int, MeetingInside]] = []  #: each with its kind
        self._talking: set[int] = set()  #: kinds whose warps may tell each other something by words of global memory
        self._launch, clusters = kernel.launch, every.clusters_of_kinds()
        inputs = readings[0].inputs
        self._kinds = Kinds(clusters, [Evaluation(completed(inputs, every.places(each))) for each in clusters])
        self._image = readings[0].image
        self._changes_maps = any(each.opcode == "tensormap" for each in self._body)
        self._places = ParameterPlaces(kernel.function, kernel.code.regions.uses)
        self._memories: dict[int, Memory] = {}
        self._uses, self._regions = kernel.code.regions.uses, kernel.code.regions
        observed = self._regions.observations
        self._looks, self._updates = observed.decide or any(each.unread for each in readings), observed.updates
        self._observed = observed.read

    def judge(self, cut: str) -> GridMemory:
        """Find what meets."""
        for n, reading in enumerate(tuple(self._readings)):
            if len(self._kinds.clusters[n]):
                for access in reading.accesses:
                    self._enter(n, access)
                self._equal |= {at for at in reading.alike if not stores_one_value(at, self._body, self._uses)}
                for position, leaf in reading.left_open.items():
                    why = f"{leaf.what} decides where" if leaf.what.startswith("the result of ") else DATA
                    waits = self._body[position].has_any(*ASKING) and self._regions.polls(position)
                    self._leave_open((position,), ORDER if waits else why)
        written = {key for key, memory in self._memories.items() if any(a.kind.writes for _, a in memory.accesses)}
        where: dict[int, int | None] = {position: self._static_memory(position) for position in self._left_open}
        apart = bool(written) and len({*self._memories, *where.values()}) > 1
        may_write = written | {where[position] for position in where if self._writes(position)}
        for position, key in where.items():  # what the kernel never writes may be read anywhere
            if not self._writes(position) and key is not None and may_write.isdisjoint((None, key)):
                del self._left_open[position]
        for key in written:
            self._compare(self._memories[key])
            self._look_at_strong(self._memories[key])
            self._look_inside(self._memories[key])
            self._look_at_constant_loads(self._memories[key])
        x, y, z = self._launch.cluster
        made = GridMemory(self._every.clusters * x * y * z, tuple(self._races), self._left_open, apart=apart, cut=cut)
        inside = (replace(each, told=kind in self._talking) for kind, each in self._inside)
        in_step = frozenset(position for each in self._readings for position in each.in_step)
        return replace(made, equal=frozenset(self._equal), in_step=in_step, inside=tuple(inside))

    def _leave_open(self, positions: Iterable[int], why: str) -> None:
        for position in positions:
            self._left_open.setdefault(position, why)

    # memories

    def _enter(self, kind: int, access: GlobalAccess) -> None:
        forms = (Form(0, access.terms), *access.corner)
        memory, why = None, DATA
        if any(form.in_memory for form in forms):
            kind = self._kind_of_tiles(kind, forms)
        if kind >= 0:
            why = self._outside(access.position) if access.map is None else CHANGED if self._changes_maps else BOX
            memory = self._bytes(kind, access) if access.map is None else self._tensor(access, access.map)
        if memory is None:
            self._leave_open((access.position,), why)
        else:
            memory.accesses.append((kind, access))

    def _kind_of_tiles(self, kind: int, forms: Iterable[Form]) -> int:
        """The clusters whose work a cluster of this kind may be handed out, each by its number; -1 if there is more.

        A tile is handed out once: it is the work of the cluster which does not run. Nothing else decides about the
        access, and every tile is like the one of this run.
        """
        inputs, nowhere = self._readings[kind].inputs, Evaluation({})
        words = {word for form in forms for word in words_of(form, nowhere)}
        array = inputs.arrays.get(HANDED_OUT)
        if len(words) != 1 or array is None or array.step != 1 or (word := next(iter(words)))[0] != HANDED_OUT:
            return -1
        tiles = np.arange(1, self._every.clusters, dtype=np.int64)
        made = Evaluation({}, {word: tiles - array.low})
        asked = ((Form(0, each), condition) for each, condition in inputs.conditions.items())
        try:
            for form, condition in asked:
                if word in words_of(form, nowhere) and not np.all(holds(condition, made.sum(form), form)):
                    return -1
            for form in forms:
                made.sum(form)
        except KeyError:  # it depends on something else as well
            return -1
        if (kind, word) not in self._tiles:
            self._tiles[kind, word] = len(self._kinds.clusters)
            self._kinds.clusters.append(tiles)
            self._kinds.evaluations.append(made)
            self._readings.append(self._readings[kind])
        return self._tiles[kind, word]

    def _tensor(self, access: GlobalAccess, address: Form) -> Memory | None:
        known = not address.terms and not self._changes_maps
        given = self._image.tensor_map(address.constant) if known else None
        if given is None or not access.box:
            return None
        name = self._image.place_of_map(address.constant)[0].partition(",")[0]
        return self._memories.setdefault(address.constant, MappedMemory(name, access.box, given.dims))

    def _bytes(self, kind: int, access: GlobalAccess) -> Memory | None:
        form = Form(0, access.terms)
        low, high = bounds(form)
        first, last = access.ranges[0][0], access.ranges[-1][1] - 1
        found, end = self._memory_at(low + first), self._memory_at(high + last)
        if found is None or found != end:
            values = self._kinds.values(kind, form, None)[1]
            found, end = self._memory_at(int(values.min()) + first), self._memory_at(int(values.max()) + last)
        if found is None or found != end:
            return None
        return self._memories.setdefault(found[0], PointedMemory(found[1], found[0]))

    def _memory_at(self, address: int) -> tuple[int, str] | None:
        """The first address of a memory, and its name; None where there is none."""
        if MODULE_VARIABLES <= address < PARAMETERS:
            return MODULE_VARIABLES, "the module's variables"
        return self._image.memory_at(address)

    def _static_memory(self, position: int) -> int | None:
        """The memory that an instruction accesses as far as its text says it; None if it does not."""
        each = self._body[position]
        for operand in each.operands:
            if isinstance(operand, TensorAddress):
                offset = self._places.parameter(operand.map)
                return None if offset is None else PARAMETERS + offset
        pointer = self._pointer(position)
        value = self._image.parameter(pointer, 8) if pointer >= 0 else None
        found = None if value is None else self._image.memory_at(value)
        return None if found is None else found[0]

    def _pointer(self, position: int) -> int:
        """The offset of the parameter that holds the pointer of an instruction's address, -1 if not known."""
        each = self._body[position]
        return self._places.pointer(each.operands[0 if self._writes(position) and each.opcode != "atom" else 1])

    def _outside(self, position: int) -> str:
        """Why an access of bytes is open; of one at a parameter that is a number, what to do."""
        pointer = self._pointer(position)
        if pointer < 0 or self._static_memory(position) is not None:
            return OUTSIDE
        name = self._image.place(PARAMETERS + pointer)
        parameter = f"the parameter at byte {name}" if name[0].isdigit() else name
        return f"{parameter} is not a pointer in the launch file: make it one"

    def _writes(self, position: int) -> bool:
        return kind_of(self._body[position].opcode, self._body[position].modifiers).writes

    # comparison

    def _compare(self, memory: Memory) -> None:
        """Find what meets in one memory."""
        equal: set[int] = set()
        try:
            if isinstance(memory, MappedMemory):
                memory.number(self._kinds)
            while (met := self._meeting(memory, memory.accesses, equal)) is not None:
                one, other, met = self._who(memory, met, equal)
                at = one[1].position
                if at != other[1].position or at in equal or not stores_one_value(at, self._body, self._uses):
                    break
                equal.add(at)
            self._equal |= equal
            if met is None:
                for at, loads in self._updates.items():
                    self._find_lost(memory, at, loads)
                return
            if not (one[1].sure and other[1].sure):  # there may be another one that is
                met = self._meeting(memory, [each for each in memory.accesses if each[1].sure], equal)
                one, other, met = (one, other, None) if met is None else self._who(memory, met, equal)
        except TooManyError:
            self._leave_open((each.position for _, each in memory.accesses), MANY)
            return
        if met is None or self._looks or not memory.exact or not (one[1].sure and other[1].sure):
            why = ORDER if self._looks else MAYBE
            self._leave_open((each.position for _, each in memory.accesses), why)
            return
        self._races.append(self._race(memory, one, other, met))

    def _race(self, memory: Memory, one: Chosen, other: Chosen, met: ContestedBytes) -> GlobalRace:
        ctas = self._cta(met.one, *one), self._cta(met.other, *other)
        first, second, words = one[1], other[1], memory.in_words(met.low, met.high)
        return GlobalRace(first.position, second.position, *ctas, words, second.kind.writes, first.agent)

    def _find_lost(self, memory: Memory, at: int, loads: Collection[int]) -> None:
        """Words that a cluster loads and stores at a position, as strong accesses, while another one writes them.

        That is not a data race. What the other one writes in between is lost.
        """
        mine = [each for each in memory.accesses if each[1].position == at]
        strong = [each for each in memory.accesses if self._role(each[1], ()) is AccessRole.STRONG_WRITE]
        met = met_by_any(*(memory.spans(self._kinds, part) for part in (mine, strong)))
        if met is None:
            return
        found: tuple[Chosen, Chosen, ContestedBytes] | None = next(
            (
                (one, other, met._replace(low=begin, high=end))
                for one, low, high in self._accessing(memory, met.one, met.low, met.high)
                for other, begin, end in self._accessing(memory, met.other, low, high)
                for load, *_ in self._accessing(memory, met.one, begin, end)
                if one in mine and other in strong
                if load[1].position in loads and load[1].agent == one[1].agent
            ),
            None,
        )
        sure = found is not None and found[0][1].sure and found[1][1].sure
        if found is None or self._looks or not memory.exact or not sure:
            self._leave_open({at, *loads}, LOST)
        else:
            self._races.append(replace(self._race(memory, *found), lost=True))

    def _look_at_strong(self, memory: Memory) -> None:
        """Strong accesses that meet are no race, but what is read, and what is left, depends on their order."""
        strong = [each for each in memory.accesses if self._is_strong(each[1])]
        wide = [each for each in strong if not self._strength(each[1]).is_narrow]
        groups: dict[tuple[object, ...], list[Chosen]] = defaultdict(list)
        for each in wide:
            if each[1].kind.writes:
                groups[self._commuting(each[1])].append(each)
        try:
            for key, mine in groups.items():
                apart = [each for each in wide if not key or each not in mine]
                if met_by_any(memory.spans(self._kinds, mine), memory.spans(self._kinds, apart)):
                    self._leave_open((access.position for _, access in (*mine, *apart)), ORDER)
            for kind in {kind for kind, _ in strong}:
                mine = [each for each in strong if each[0] == kind]
                parts = [self._of_strong(memory, chosen) for chosen in _by_agent(mine).values()]
                if len(parts) > 1 and contested(parts):
                    self._talking.add(kind)
                    self._leave_open((access.position for _, access in mine), INSIDE)
        except TooManyError:
            self._leave_open((access.position for _, access in strong), MANY)

    def _of_strong(self, memory: Memory, chosen: list[Chosen]) -> tuple[Spans, Spans, Spans]:
        writes = [each for each in chosen if each[1].kind.writes]
        asks = [each for each in chosen if not each[1].kind.writes or not self._commuting(each[1])]
        every, wrote, asked = (memory.spans(self._kinds, part) for part in (chosen, writes, asks))
        return every, wrote, asked

    def _commuting(self, access: GlobalAccess) -> tuple[object, ...]:
        """What strong writes have in common that leave the same in every order; () if nothing is."""
        each = self._body[access.position]
        if access.kind.is_atomic and each.has_any(*_COMMUTING) and each.position not in self._observed:
            return tuple(name for name in each.modifiers if name in _COMMUTING or name == each.modifiers[-1])
        return (each.position,) if stores_one_value(each.position, self._body, self._uses) else ()

    def _look_inside(self, memory: Memory) -> None:
        """What warps of one cluster access alike in one memory."""
        for kind in range(len(self._kinds.clusters)):
            mine = [each for each in memory.accesses if each[0] == kind]
            agents = _by_agent(mine)
            if len(agents) < 2:
                continue
            alike = isinstance(memory, PointedMemory) and self._move_together(
                kind, {access.terms for _, access in mine}
            )
            only = int(self._kinds.clusters[kind][0]) if alike else None
            try:
                met = contested([self._of_agent(memory, chosen, only) for chosen in agents.values()])
            except TooManyError:
                self._leave_open((access.position for _, access in mine), MANY)
                continue
            try:
                narrow = self._meets_narrow(memory, mine, kind, only)
            except TooManyError:
                narrow = True
            if narrow:
                self._leave_open((access.position for _, access in mine), SCOPE)
                continue
            if not met:
                continue
            cluster = int(met.owner[0])
            there = met.take(met.owner == cluster)
            ranges = tuple(zip(there.start.tolist(), there.end.tolist(), strict=True))
            positions = frozenset(access.position for _, access in mine)
            not_followed = any(self._is_followed_not(access) for _, access in mine)
            if not isinstance(memory, PointedMemory) or not_followed or self._store_what_differs(memory, mine, only):
                self._leave_open(positions, INSIDE)
                continue
            cta = self._every.first_cta_of(cluster)
            self._inside.append((kind, MeetingInside(cta, memory.name, memory.base, ranges, positions, alike)))

    def _store_what_differs(self, memory: Memory, mine: Sequence[Chosen], only: int | None) -> bool:
        """Whether warps store to the same bytes what they have made of loads at different addresses."""
        for at in {access.position for _, access in mine if access.kind is AccessKind.STORE}:
            loads, agents = loads_behind(at, self._body, self._uses), _by_agent(e for e in mine if e[1].position == at)
            loaded: dict[int, set[object]] = {agent: set() for agent, *_ in agents}
            for each in self._readings[mine[0][0]].accesses:
                if each.position in loads and each.agent in loaded:
                    loaded[each.agent].add((each.position, each.terms, each.ranges))
            first, *others = loaded.values()
            if any(each != first for each in others):
                spans = (memory.spans(self._kinds, chosen, only) for chosen in agents.values())
                if contested([(each, each, each) for each in spans]):
                    return True
        return False

    def _look_at_constant_loads(self, memory: Memory) -> None:
        """Loads of constant data (``ld.global.nc``) whose bytes the grid writes: no order makes these right.

        PTX ISA, "ld.global.nc": the data is read-only while the kernel runs.
        """
        loads = [each for each in memory.accesses if not each[1].kind.writes and self._strength(each[1]).nc]
        writes = [each for each in memory.accesses if each[1].kind.writes]
        try:
            written = _by_one(memory.spans(self._kinds, writes if loads else ()), 1)
            for each in loads:
                if met_by_others(written, _by_one(memory.spans(self._kinds, [each]), 0)):
                    self._leave_open((each[1].position,), CONSTANT)
        except TooManyError:
            self._leave_open((access.position for _, access in loads), MANY)

    def _move_together(self, kind: int, terms: Collection[Terms]) -> bool:
        """Whether addresses of these terms are equally far from each other in all clusters of a kind."""
        first, *others = (np.asarray(self._kinds.evaluations[kind].sum(Form(0, each))) for each in terms)
        return all(bool(np.all(each - first == (each - first).flat[0])) for each in others)

    def _of_agent(self, memory: Memory, chosen: list[Chosen], only: int | None) -> tuple[Spans, Spans, Spans]:
        writes = [each for each in chosen if each[1].kind.writes]
        weak = [each for each in chosen if not self._is_strong(each[1]) or each[1].position in self._updates]
        every, wrote, plain = (memory.spans(self._kinds, part, only) for part in (chosen, writes, weak))
        return every, wrote, plain

    def _meets_narrow(self, memory: Memory, mine: list[Chosen], kind: int, only: int | None) -> bool:
        """Whether strong accesses of CTA scope meet those of another CTA of the cluster, which it does not include."""
        ranks = defaultdict(list)
        for each in mine:
            ranks[self._readings[kind].ranks[each[1].agent]].append(each)
        parts = []
        for chosen in ranks.values() if len(ranks) > 1 else ():
            writes = [each for each in chosen if each[1].kind.writes]
            narrow = [e for e in chosen if self._is_strong(e[1]) and self._strength(e[1]).scope is Scope.CTA]
            every, wrote, alone = (memory.spans(self._kinds, part, only) for part in (chosen, writes, narrow))
            parts.append((every, wrote, alone))
        return any(narrow for _, _, narrow in parts) and bool(contested(parts))

    def _is_followed_not(self, access: GlobalAccess) -> bool:
        """Whether the order of an access is not that of an operation of a program."""
        strong = self._is_strong(access) and not access.kind.is_atomic
        return strong or access.kind in _WITHOUT_OPERATION

    def _meeting(self, memory: Memory, accesses: Sequence[Chosen], equal: Collection[int]) -> ContestedBytes | None:
        """Two clusters whose accesses are a race unless something orders them; the first one writes."""

        def of(*roles: AccessRole) -> Spans:
            return memory.spans(self._kinds, [each for each in accesses if self._role(each[1], equal) in roles])

        writes, strong = of(AccessRole.WRITE), of(AccessRole.STRONG_WRITE)
        found = met_by_each_other(writes) if writes else None
        found = found or met_by_others(writes, of(*set(AccessRole) - {AccessRole.WRITE}))
        found = found or met_by_any(strong, of(AccessRole.READ))
        for at in equal if found is None else ():
            parts = ([each for each in accesses if (each[1].position == at) is mine] for mine in (True, False))
            found = found or met_by_any(*(memory.spans(self._kinds, part) for part in parts))
        return found

    def _who(
        self, memory: Memory, met: ContestedBytes, equal: Collection[int]
    ) -> tuple[Chosen, Chosen, ContestedBytes]:  # fmt: skip
        """The accesses of both clusters that meet, and where they do."""
        for one, low, high in self._accessing(memory, met.one, met.low, met.high):
            for other, begin, end in self._accessing(memory, met.other, low, high):
                roles = {self._role(one[1], equal), self._role(other[1], equal)}
                alike = roles <= _STRONG or (roles == {AccessRole.EQUAL} and one[1].position == other[1].position)
                if self._role(one[1], equal) in _WRITES and not alike:
                    return one, other, ContestedBytes(met.one, met.other, begin, end)
        raise TooManyError

    def _accessing(
        self, memory: Memory, cluster: int, low: int, high: int
    ) -> Iterator[tuple[Chosen, int, int]]:  # fmt: skip
        """The accesses of a cluster to some bytes, each with those of them that it accesses first."""
        kinds = {n for n, mine in enumerate(self._kinds.clusters) if cluster in mine}
        for each in memory.accesses:
            if each[0] in kinds:
                for start, end, _ in zip(*memory.spans(self._kinds, [each], cluster), strict=True):
                    if start < high and end > low:
                        yield each, max(int(start), low), min(int(end), high)

    def _strength(self, access: GlobalAccess) -> Strength:
        return strength_of(self._body[access.position])

    def _is_strong(self, access: GlobalAccess) -> bool:
        """Whether an access is strong for threads that its scope includes."""
        strength = self._strength(access)
        return strength.volatile or strength.order is not Order.DEFAULT or access.kind.is_atomic

    def _role(self, access: GlobalAccess, equal: Collection[int]) -> AccessRole:
        """To threads of other clusters, which a scope of a CTA or a cluster does not include."""
        strong = self._is_strong(access) and not self._strength(access).is_narrow
        if access.kind.writes:
            plain = AccessRole.EQUAL if access.position in equal else AccessRole.WRITE
            return AccessRole.STRONG_WRITE if strong else plain
        return AccessRole.STRONG_READ if strong else AccessRole.READ

    def _cta(self, cluster: int, kind: int, access: GlobalAccess) -> int:
        """The number in the grid of the CTA of a cluster that makes an access."""
        rank, (x, y, _) = self._readings[kind].ranks[access.agent], self._launch.cluster
        gx, gy, _ = self._launch.grid
        return self._every.first_cta_of(cluster) + rank % x + gx * (rank // x % y + gy * (rank // (x * y)))


def _by_agent(accesses: Iterable[Chosen]) -> dict[tuple[int, ...], list[Chosen]]:
    """The accesses of each agent; what an engine performs for it is apart, each instruction by itself.

    An agent's own accesses are in its order. What it issues is not, until it has waited for it.
    """
    issued: dict[tuple[int, ...], list[Chosen]] = defaultdict(list)
    agents: dict[tuple[int, ...], list[Chosen]] = defaultdict(list)
    for each in accesses:
        _, access = each
        if access.kind in _ISSUED:
            issued[access.agent, access.position, access.index].append(each)
        else:
            agents[access.agent,].append(each)
    for (agent, position, index), found in issued.items():
        agents[(agent, position, index) if len(issued) <= _MOST_APART else (agent, position)] += found
    return agents


def _by_one(spans: Spans, owner: int) -> Spans:
    """The ranges as those of one cluster."""
    return joined([Spans(spans.start, spans.end, np.full(len(spans.owner), owner))])


_WRITES = (AccessRole.WRITE, AccessRole.STRONG_WRITE, AccessRole.EQUAL)
_STRONG = {AccessRole.STRONG_WRITE, AccessRole.STRONG_READ}


_ISSUED = (AccessKind.ASYNC_LOAD, AccessKind.BULK_LOAD, AccessKind.BULK_STORE, AccessKind.BULK_REDUCTION)
_MOST_APART = 256  #: of these that are compared with each other, not just those of different instructions

#: Accesses whose end, or whose parts, no operation of a program on global memory says.
_WITHOUT_OPERATION = (AccessKind.ASYNC_LOAD, AccessKind.BULK_LOAD, AccessKind.BULK_REDUCTION)


_COMMUTING = ("add", "min", "max", "and", "or", "xor")
