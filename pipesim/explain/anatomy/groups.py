"""The barriers of a program: what each phase is given, by whom, and who waits for it."""

from collections import defaultdict
from dataclasses import replace

from pipesim.explain.anatomy.parts import Group, Signal, Wait
from pipesim.explain.ledger import BarrierWaits, Means, SignalLedger, SignalTally
from pipesim.model.ops import Engine

_ORDER = {means: n for n, means in enumerate(Means)}


def groups(book: SignalLedger, cta: int) -> tuple[Group, ...]:
    """The barriers of this CTA, those of one name together as far as they are used alike."""
    program = book.program
    sizes: defaultdict[str, int] = defaultdict(int)
    found: dict[object, Group] = {}
    for index, barrier in enumerate(program.barriers):
        if barrier.cta == cta:
            sizes[barrier.name] += 1
            single = _single(book, index)
            shape = _shape(single)
            found[shape] = _join(found[shape], single) if shape in found else single
    return tuple(replace(group, size=sizes[group.name]) for group in found.values())


def _single(book: SignalLedger, index: int) -> Group:
    barrier = book.program.barriers[index]
    count = book.counts.get(index)
    signals = _with_peers(_signals(book, index), barrier.cta)
    return Group(barrier.name, (barrier.stage,), 0, count, signals, _waits(book, index), _remote_signals(book, index))


def _remote_signals(book: SignalLedger, index: int) -> tuple[Signal, ...]:
    """What agents of this barrier's CTA do for its copies in other CTAs and not for it; ``to`` says where."""
    barrier = book.program.barriers[index]
    found: dict[Signal, tuple[int, ...]] = {}
    for twin in book.copies[barrier.name, barrier.stage]:
        for signal in _signals(book, twin) if twin != index else ():
            if signal.ctas == (barrier.cta,) and barrier.cta not in signal.to:
                alike = replace(signal, to=())
                found[alike] = (*found.get(alike, ()), book.program.barriers[twin].cta)
    return tuple(replace(signal, to=to) for signal, to in found.items())


def _signals(book: SignalLedger, index: int) -> list[Signal]:
    """What this barrier is given, by role, CTA and means."""
    program = book.program
    together: defaultdict[tuple[int, str, Means, Engine | None, tuple[int, ...]], list[SignalTally]] = defaultdict(list)
    for way, tally in book.given[index].items():
        agent = program.agents[way.agent]
        together[agent.cta, agent.role, way.means, way.engine, way.to].append(tally)
    phases = _phases(book, index)
    signals = []
    for (cta, role, means, engine, to), tallies in together.items():
        times = {tally.times for tally in tallies}
        even = len(times) == 1 and phases and min(times) % phases == 0
        arrivals, nbytes = tallies[0].arrivals, tallies[0].nbytes
        for tally in tallies:
            arrivals, nbytes = arrivals.join(tally.arrivals), nbytes.join(tally.nbytes)
        each = min(times) // phases if even and phases else None
        in_all = sum(tally.times for tally in tallies)
        signals.append(Signal(role, (cta,), len(tallies), means, engine, to, arrivals, nbytes, each, in_all))
    roles = {role: n for n, role in enumerate(dict.fromkeys(agent.role for agent in program.agents))}
    return sorted(signals, key=lambda s: (s.ctas, roles[s.role], _ORDER[s.means], s.to))


def _phases(book: SignalLedger, index: int) -> int | None:
    """How many phases the arrivals of the whole program make, None if they do not come out even or may be skipped."""
    count, arrivals = book.counts.get(index), 0
    for way, tally in book.given[index].items():
        if way.agent in book.branching or way.means is Means.ARRIVE_DROP or tally.arrivals.low != tally.arrivals.high:
            return None
        if way.means is not Means.CP_ASYNC:  # it raises what is pending by what it then brings
            arrivals += tally.times * tally.arrivals.high
    return arrivals // count if count and arrivals and arrivals % count == 0 else None


def _with_peers(signals: list[Signal], cta: int) -> tuple[Signal, ...]:
    """The same, own agents first, those that several other CTAs send alike as one."""
    own = [signal for signal in signals if signal.ctas == (cta,)]
    peers: dict[Signal, tuple[int, ...]] = {}
    for signal in signals:
        if signal.ctas != (cta,):
            alike = replace(signal, ctas=())
            peers[alike] = peers.get(alike, ()) + signal.ctas
    return (*own, *(replace(signal, ctas=ctas) for signal, ctas in peers.items()))


def _waits(book: SignalLedger, index: int) -> tuple[Wait, ...]:
    """Who waits for this barrier. Where some begin at parity 0, those at 1 begin a lap later: no stage is free."""
    free = all(asked.first_parity == 1 for asked in book.asked[index].values())
    roles: defaultdict[tuple[str, bool], list[BarrierWaits]] = defaultdict(list)
    for agent, asked in book.asked[index].items():
        roles[book.program.agents[agent].role, asked.blocks].append(asked)
    phases = _phases(book, index) or 0
    return tuple(
        Wait(role, len(waits), blocks, free and all(_first_free(w, phases) for w in waits), sum(w.times for w in waits))
        for (role, blocks), waits in roles.items()
    )


def _first_free(asked: BarrierWaits, phases: int) -> bool:
    """A wait for parity 1 that the barrier of a fresh CTA lets pass.

    Who waits less often than there are phases does not go round with the ring: it may come for the last phase only,
    and then the parity says nothing about how many were before.
    """
    return asked.first_parity == 1 and not (asked.blocks and asked.times < phases)


def _shape(group: Group) -> object:
    """What must be the same for two barriers to be used alike: everything but quantities and the stage."""
    sides = tuple(
        tuple((s.role, s.ctas, s.agents, s.means, s.engine, s.to) for s in side) for side in (group.signals, group.sent)
    )
    return group.name, group.count, sides, tuple((w.role, w.agents, w.blocks) for w in group.waits)


def _join(one: Group, two: Group) -> Group:
    """Two groups of the same shape as one."""
    return replace(
        one,
        stages=one.stages + two.stages,
        signals=tuple(map(_join_signals, one.signals, two.signals)),
        sent=tuple(map(_join_signals, one.sent, two.sent)),
        waits=tuple(
            replace(a, first_free=a.first_free and b.first_free, in_all=a.in_all + b.in_all)
            for a, b in zip(one.waits, two.waits, strict=True)
        ),
    )


def _join_signals(one: Signal, two: Signal) -> Signal:
    return replace(
        one,
        arrivals=one.arrivals.join(two.arrivals),
        nbytes=one.nbytes.join(two.nbytes),
        each_phase=one.each_phase if one.each_phase == two.each_phase else None,
        in_all=one.in_all + two.in_all,
    )
