"""Which events an operation leaves in a trace, and the site table of a program: the bridge from programs to traces.

The simulator records by it, replay reads by it, and the table of a CUDA kernel is compared with it.

Some operations leave events only where a kernel chooses to record them (:data:`~pipesim.trace.schema.OPTIONAL`): the
sites that a trace has for them are named by :func:`optional_of`, those that a program could have by
:func:`optional_sites`. What sets the barriers up, to the first meeting of all threads, is never recorded.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipesim.errors import ConfigurationError
from pipesim.model.groups import (
    ARRIVALS,
    BARRIER,
    BY_PARITY,
    COMMITS,
    COUNT,
    EXPECT,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY,
    PARITY_WAITS,
    SETS_UP,
    TRIES,
)
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.waits import wait_purposes
from pipesim.trace.schema import (
    ESTIMATED_WORK,
    OF_WORK,
    OPTIONAL,
    AgentInfo,
    BarrierGroup,
    EventKind,
    Site,
    SiteKey,
    TraceMeta,
)

_KINDS: dict[int, tuple[EventKind, ...]] = {
    **dict.fromkeys(PARITY_WAITS, (EventKind.WAIT_ENTER, EventKind.WAIT_RETURN)),
    **dict.fromkeys(TRIES, (EventKind.TRY,)),
    **dict.fromkeys(ARRIVALS, (EventKind.ARRIVE,)),  # one that expects bytes: see :func:`kinds`
    Op.TMA_LOAD: (EventKind.COPY,),
    Op.WORK: (EventKind.WORK_BEGIN, EventKind.WORK_END),
}
#: What an operation leaves where its kernel records it, but for a commit on an mbarrier (:func:`optional_kinds`).
_OPTIONAL_KINDS: dict[int, tuple[EventKind, ...]] = {
    Op.CP_ASYNC_ARRIVE: (EventKind.CP_ASYNC_ARRIVE,),
    Op.BAR_ARRIVE: (EventKind.BAR_ARRIVE,),
    Op.BAR_SYNC: (EventKind.BAR_ENTER, EventKind.BAR_RETURN),
    Op.WAIT_GROUP: (EventKind.GROUP_ENTER, EventKind.GROUP_RETURN),
    **dict.fromkeys(COMMITS, (EventKind.GROUP_COMMIT,)),
}
_ASKS = frozenset({EventKind.WAIT_ENTER, EventKind.TRY})  #: kinds whose site says what is waited for
ENGINE_NAMES = {int(engine): engine.name.lower() for engine in Engine}  #: as a site of a group names its engine
#: Operations that leave events, or can.
RECORDED = frozenset(_KINDS) | frozenset(_OPTIONAL_KINDS)
_NO_CYCLES = (Op.WORK, 0)  #: what a kernel's PTX says about instructions there
NO_SITES: frozenset[SiteKey] = frozenset()
ANY_VALUE = -2  #: of a record of which nothing says what it must be
#: By agent and operation that represents an access to a word of global memory: the word, and events with their values.
WordRecords = Mapping[tuple[int, int], tuple[str, tuple[tuple[EventKind, int], ...]]]


class Record(NamedTuple):
    """What one event of one operation must say: its site, stage, parity and value.

    The value is -1 of a try, whose answer the hardware decides, and ANY_VALUE of a word.
    """

    site: int
    stage: int
    parity: int
    value: int


@dataclass(frozen=True)
class SiteTable:
    """Sites, barrier groups and agents of a program, in the order in which a trace lists them."""

    sites: tuple[Site, ...]
    barriers: tuple[BarrierGroup, ...]
    agents: tuple[AgentInfo, ...]
    records: tuple[tuple[tuple[Record, ...], ...], ...]  #: by agent and operation; () for what leaves no event


def kinds(operation: Operation) -> tuple[EventKind, ...]:
    """The events that an operation leaves in every trace, in order."""
    if operation[0] == Op.ARRIVE:
        return (EventKind.EXPECT,) if operation[EXPECT] else (EventKind.ARRIVE,)
    return _KINDS.get(operation[0], ())


def optional_kinds(operation: Operation) -> tuple[EventKind, ...]:
    """The events that an operation leaves only where its kernel records it, in order."""
    if operation[0] in COMMITS and operand(operation, "barrier") >= 0:
        return (EventKind.COMMIT,)
    return _OPTIONAL_KINDS.get(operation[0], ())


def optional_of(meta: TraceMeta) -> frozenset[SiteKey]:
    """The sites of a trace at which it records what others need not."""
    kinds = OPTIONAL | OF_WORK if meta.extra.get(ESTIMATED_WORK) else OPTIONAL
    return frozenset(site.key for site in meta.sites if site.kind in kinds)


def optional_sites(program: Program) -> frozenset[SiteKey]:
    """All sites that a kernel of this program can have beside those that each has."""
    found: set[SiteKey] = set()
    for agent, code in enumerate(program.code):
        role, set_up = program.agents[agent].role, set_up_meeting(code)
        if program.counts_instructions:
            found |= {(role, kind, "") for kind in OF_WORK}
        for pc, op in enumerate(code):
            if op[0] in _OPTIONAL_KINDS and pc != set_up:
                found |= {(role, kind, _optional_group(program, op)) for kind in optional_kinds(op)}
    return frozenset(found)


def with_roles_of_first_cta(program: Program) -> Program:
    """A program whose warps have the same role in every CTA, as a trace names them: that of the first CTA.

    Programs that are read from PTX name roles by what warps do, which may differ between the CTAs of a cluster.
    ConfigurationError if the CTAs have not the same warps.
    """
    of_cta = [[agent for agent in program.agents if agent.cta == cta] for cta in range(program.agent_ctas)]
    places = [[(agent.warp, agent.lanes) for agent in agents] for agents in of_cta]
    if any(other != places[0] for other in places):
        raise ConfigurationError(
            f"the CTAs of {program.name} have different agents",
            cause="the lanes of a warp part in one of them and not in another",
            correction="a trace names the agents of all CTAs alike: record one CTA",
        )
    names = {(agent.warp, agent.lanes): (agent.role, agent.index) for agent in of_cta[0]}
    agents = (replace(a, role=names[a.warp, a.lanes][0], index=names[a.warp, a.lanes][1]) for a in program.agents)
    return replace(program, agents=tuple(agents))


def set_up_meeting(code: tuple[Operation, ...]) -> int:
    """The position of the bar.sync at which the CTA meets when its barriers are set up, -1 if there is none."""
    for pc, op in enumerate(code):
        if op[0] == Op.BAR_SYNC:
            return pc
        if (op[0] not in SETS_UP and op != _NO_CYCLES) or op[0] == Op.CLUSTER_WAIT:
            return -1
    return -1


class SiteBook:
    """Numbers the sites of a program while its operations are visited, agent by agent, in program order.

    :meth:`records` is called for each operation that can leave an event; the sites are numbered by first appearance.
    ``also``: the optional sites at which records are made. ``only``: of the others, those at which they are, if not at
    all of them: operations at the rest happen unseen.
    """

    def __init__(
        self, program: Program, also: frozenset[SiteKey] = NO_SITES, only: frozenset[SiteKey] | None = None
    ) -> None:
        self._program = program
        self._also = also
        self._only = only
        self._works_shown = not program.counts_instructions  # else they are estimates, and shown where asked for
        self._index: dict[SiteKey, int] = {}
        self._known: dict[tuple[str, int, Operation], tuple[Record, ...]] = {}
        self._stage = -1
        self._setting_up = False

    def begin(self, agent: int, pc: int = 0) -> None:
        """The operations of an agent begin, at its first operation or at another."""
        self._role = self._program.agents[agent].role
        self._stage = -1  # work is on the stage that was last waited for
        self._setting_up = bool(self._also) and set_up_meeting(self._program.code[agent]) >= pc

    @property
    def place(self) -> tuple[int, bool]:
        """What of the operations so far decides the records of the operations to come."""
        return self._stage, self._setting_up

    @place.setter
    def place(self, place: tuple[int, bool]) -> None:
        self._stage, self._setting_up = place

    def records(self, operation: Operation) -> tuple[Record, ...]:
        """What the events of this operation must say, in order."""
        if operation[0] in _OPTIONAL_KINDS:
            return self._optional_records(operation) if self._also else ()
        if operation[0] == Op.WORK and not (self._works_shown or (self._role, EventKind.WORK_END, "") in self._also):
            return ()
        if operation[0] in BY_PARITY:
            self._stage = self._program.barriers[operation[BARRIER]].stage
        key = (self._role, self._stage, operation[:4])  # what follows, such as the item of a copy, is not recorded
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _records(
                self._program, self._role, operation, self._stage, self._index, self._only
            )
        return found

    def _optional_records(self, operation: Operation) -> tuple[Record, ...]:
        if operation[0] == Op.BAR_SYNC and self._setting_up:
            self._setting_up = False
            return ()
        key = (self._role, -1, operation)
        found = self._known.get(key)
        if found is None:
            group = _optional_group(self._program, operation)
            sites = [(self._role, kind, group) for kind in optional_kinds(operation)]
            found = self._known[key] = tuple(
                Record(self._index.setdefault(site, len(self._index)), *_optional_says(self._program, operation))
                for site in sites
                if site in self._also
            )
        return found

    def word_records(self, word: str, events: tuple[tuple[EventKind, int], ...]) -> tuple[Record, ...]:
        """What the events of an access to a word of global memory must say."""
        sites = [((self._role, kind, word), value) for kind, value in events]
        return tuple(
            Record(self._index.setdefault(site, len(self._index)), -1, -1, value)
            for site, value in sites
            if site in self._also
        )

    def table(self, records: tuple[tuple[tuple[Record, ...], ...], ...] = ()) -> SiteTable:
        """The tables of the operations so far."""
        meant = wait_purposes(self._program)
        return SiteTable(
            sites=tuple(
                Site(_name(role, kind, group), role, kind, group, meant.get((role, group)) if kind in _ASKS else None)
                for role, kind, group in self._index
            ),
            barriers=barrier_groups(self._program),
            agents=tuple(AgentInfo(a.role, a.index, a.warp) for a in self._program.agents if a.cta == 0),
            records=records,
        )


def site_table(
    program: Program,
    also: frozenset[SiteKey] = NO_SITES,
    only: frozenset[SiteKey] | None = None,
    words: WordRecords | None = None,
) -> SiteTable:
    """The table of ``program``: a site for each (role, kind of event, barrier group), in order of first appearance.

    ``also``: the optional sites at which records are made; ``only``: of the others, those at which they are, None: all.
    ``words``: the accesses to words of global memory, all others of which happen unseen; None: they are barriers.
    """
    book = SiteBook(program, also, only)
    by_agent = []
    for agent, code in enumerate(program.code):
        book.begin(agent)
        records: list[tuple[Record, ...]] = []
        for pc, op in enumerate(code):
            if words is not None and (agent, pc) in words:
                records.append(book.word_records(*words[agent, pc]))
            elif words is not None and program.is_access_to_word(op):
                records.append(())
            else:
                records.append(book.records(op) if op[0] in RECORDED else ())
        by_agent.append(tuple(records))
    return book.table(tuple(by_agent))


def iterations(table: SiteTable) -> int:
    """The most that an agent of the program passes one of its sites: the iterations that a window can keep."""
    counts = (Counter(record.site for records in agent for record in records) for agent in table.records)
    return max((most for passes in counts for most in passes.values()), default=0)


def barrier_groups(program: Program) -> tuple[BarrierGroup, ...]:
    """The groups of mbarriers of CTA 0, each with its stages and the count of its init (0 if it has none)."""
    counts: dict[int, int] = {}
    for code in program.code:
        for op in [op for op in code if op[0] == Op.INIT]:  # few of many
            counts.setdefault(op[BARRIER], op[COUNT])
    groups: dict[str, list[int]] = {}
    for number, barrier in enumerate(program.barriers):
        if barrier.cta == 0:
            groups.setdefault(barrier.name, []).append(counts.get(number, 0))
    return tuple(BarrierGroup(name, len(found), found[0]) for name, found in groups.items())


def _records(
    program: Program,
    role: str,
    operation: Operation,
    last_stage: int,
    index: dict[SiteKey, int],
    only: frozenset[SiteKey] | None,
) -> tuple[Record, ...]:
    on_barrier = operation[0] in ON_BARRIER
    barrier = program.barriers[operation[BARRIER]] if on_barrier else None
    group = barrier.name if barrier else ""
    stage = barrier.stage if barrier else last_stage
    parity = operation[PARITY] if operation[0] in BY_PARITY else -1
    return tuple(
        Record(index.setdefault((role, kind, group), len(index)), stage, parity, _value(kind, operation))
        for kind in kinds(operation)
        if only is None or (role, kind, group) in only
    )


def _value(kind: EventKind, operation: Operation) -> int:
    if kind is EventKind.TRY:
        return -1
    if kind is EventKind.COPY:
        return operand(operation, "bytes")
    if kind is EventKind.EXPECT:
        return operand(operation, "expect")
    return operation[COUNT] if kind is EventKind.ARRIVE else 0


def _optional_group(program: Program, operation: Operation) -> str:
    """What such a site is on: a group of mbarriers, a named barrier's number, or an engine."""
    if operation[0] in ON_NAMED_BARRIER:
        return str(program.named_barriers[operand(operation, "named_barrier")][1])
    if operation[0] in ON_BARRIER and operand(operation, "barrier") >= 0:
        return program.barriers[operand(operation, "barrier")].name
    return ENGINE_NAMES[operand(operation, "engine")]


def _optional_says(program: Program, operation: Operation) -> tuple[int, int, int]:
    """Stage, parity and value of its events."""
    if operation[0] in ON_NAMED_BARRIER:
        return -1, -1, operand(operation, "threads")
    if operation[0] == Op.WAIT_GROUP:
        return -1, -1, operand(operation, "groups")
    barrier = operand(operation, "barrier")
    stage = program.barriers[barrier].stage if barrier >= 0 else -1
    return stage, -1, operand(operation, "lanes") if operation[0] == Op.CP_ASYNC_ARRIVE else 0


def _name(role: str, kind: EventKind, group: str) -> str:
    return "_".join(part for part in (role, kind.name.lower(), identifier(group)) if part)


def identifier(group: str) -> str:
    """The name of a barrier group as a kernel may spell it: ``pipe_full`` of ``pipe.full``, ``b_4_full`` of
    ``b[4].full``.
    """
    return "_".join(re.findall(r"\w+", group))
