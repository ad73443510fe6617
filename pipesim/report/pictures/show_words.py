"""The anatomy of a protocol in words: what a phase is given, who waits, who writes and reads, and the conclusion."""

from collections.abc import Sequence
from itertools import groupby

from pipesim.explain.anatomy.parts import (
    Anatomy,
    Group,
    Meeting,
    Other,
    RolePart,
    Signal,
    TilePart,
    Totals,
    TouchKind,
    Use,
    Wait,
)
from pipesim.explain.ledger import Extent, Means
from pipesim.lang.legality import SPACE_WORDS
from pipesim.model.ops import Engine
from pipesim.model.rules.warp_shape import SM_REGISTERS
from pipesim.model.tables import NAMED_BARRIERS
from pipesim.protocols.limits import MAX_SMEM, MAX_TMEM
from pipesim.report.pictures.lanes import span
from pipesim.report.text.words import count, number

_ENGINES = {Engine.BULK: "bulk store", Engine.CP_ASYNC: "cp.async", Engine.WGMMA: "wgmma", Engine.TCGEN05: "tcgen05"}
_LATER = {
    Means.ARRIVE_EXPECT: " expecting {}",
    Means.ARRIVE_DROP: " and drops out",
    Means.ARRIVE_NO_COMPLETE: " without completing",
}


def role_parts(role: RolePart) -> list[str]:
    """Which warps, and what ``setmaxnreg`` gives them."""
    first, last = role.warps[0], role.warps[-1]
    if len(role.warps) == 1:
        warps = f"warp {first}"
    elif role.warps == tuple(range(first, last + 1)):
        warps = f"{len(role.warps)} warps, {first} to {last}"
    else:
        warps = f"warps {', '.join(map(str, role.warps))}"
    parts = [warps]
    if role.agents != len(role.warps):
        parts.append(f"{role.agents} sets of lanes")
    if role.registers is not None:
        low, high = role.registers
        parts.append(f"setmaxnreg {low}" if low == high else f"setmaxnreg {low} to {high}")
    return parts


def given_parts(group: Group, roles: Sequence[RolePart], cta: int) -> list[str]:
    """The count of a group, and what each of its phases is given."""
    parts = ["no role initialises it" if group.count is None else f"count {number(group.count)}"]
    for _, signals in groupby(group.signals, key=lambda s: (s.role, s.ctas, s.agents)):
        parts.append(_phase_signals(list(signals), roles, cta))
    return parts if group.signals or not used(group) else [*parts, "no role signals it"]


def used(group: Group) -> bool:
    """Whether any agent does anything with a group but initialise it."""
    return bool(group.signals or group.waits or group.sent)


def sent_parts(group: Group, roles: Sequence[RolePart], cta: int) -> list[str]:
    """What this CTA's agents do for the barriers of other CTAs."""
    return [
        f"to {ctas_words(s.to)}: {who(s.role, s.agents, s.ctas, roles, cta)}: {signal_words(s, to=())}"
        for s in group.sent
    ]


def waits_words(group: Group, roles: Sequence[RolePart], cta: int) -> str:
    """Who waits for the phases of a group."""
    if not used(group):
        return "no role uses it"
    return ", ".join(_waits(wait, roles, cta) for wait in group.waits) or "no role waits for it"


def _waits(wait: Wait, roles: Sequence[RolePart], cta: int) -> str:
    name = who(wait.role, wait.agents, (cta,), roles, cta)
    remarks = ["only tests"] if not wait.blocks else []
    remarks += ["the first wait on each passes immediately"] if wait.first_free else []
    return f"{name} ({', '.join(remarks)})" if remarks else name


def _phase_signals(signals: list[Signal], roles: Sequence[RolePart], cta: int) -> str:
    first = signals[0]
    words = ", ".join(signal_words(signal, to=signal.to) for signal in signals)
    return f"{who(first.role, first.agents, first.ctas, roles, cta)}: {words}"


def signal_words(signal: Signal, to: tuple[int, ...]) -> str:
    """What one agent gives one phase: ``1 arrival expecting 16 KiB``, ``2 copies of 8 KiB to CTAs 0 and 1``."""
    times = signal.each_phase if signal.each_phase is not None else 1
    match signal.means:
        case Means.COPY:
            words = f"{'copy' if times == 1 else f'{times} copies'} of {span(signal.nbytes)}"
        case Means.EXPECT | Means.COMPLETE:
            verb = "expects" if signal.means is Means.EXPECT else "completes"
            words = f"{verb} {'' if times == 1 else f'{times} × '}{span(signal.nbytes)}"
        case Means.COMMIT:
            assert signal.engine is not None
            words = count(times, f"{_ENGINES[signal.engine]} commit")
        case Means.CP_ASYNC | Means.CP_ASYNC_NOINC:
            noinc = ".noinc" if signal.means is Means.CP_ASYNC_NOINC else ""
            words = f"{_arrivals(times, signal.arrivals, f'cp.async{noinc} arrival')}"
        case _:
            later = _LATER.get(signal.means, "").format(span(signal.nbytes))
            words = f"{_arrivals(times, signal.arrivals, 'arrival')}{later}"
    if to:
        words += f" to {ctas_words(to)}"
    if signal.agents > 1 or len(signal.ctas) > 1 or (times > 1 and signal.nbytes.low != signal.nbytes.high):
        words += " each"
    return words if signal.each_phase is not None else f"{words} ({count(signal.in_all, 'time')} in all)"


def _arrivals(times: int, at_once: Extent, noun: str) -> str:
    low, high = at_once
    if low != high:
        return f"{number(low)} to {number(high)} {noun}s"
    return count(high, noun) if times == 1 else count(times, noun) if high == 1 else f"{times} × {count(high, noun)}"


def who(role: str, agents: int, ctas: tuple[int, ...], roles: Sequence[RolePart], cta: int) -> str:
    """``producer``, ``consumer ×2``, ``1 of consumer ×2``; of other CTAs ``mma of CTA 1``."""
    has = next((r.agents for r in roles if r.name == role), agents)
    name = f"{role} ×{has}" if has > 1 else role
    name = name if agents == has else f"{agents} of {name}"
    return name if ctas == (cta,) else f"{name} of {ctas_words(ctas)}"


def ctas_words(ctas: tuple[int, ...]) -> str:
    """``CTA 1``, ``CTAs 0 and 1``, ``CTAs 0 to 3``."""
    if len(ctas) == 1:
        return f"CTA {ctas[0]}"
    if len(ctas) > 2 and ctas == tuple(range(ctas[0], ctas[-1] + 1)):
        return f"CTAs {ctas[0]} to {ctas[-1]}"
    return f"CTAs {', '.join(map(str, ctas[:-1]))} and {ctas[-1]}"


def tile_parts(tile: TilePart) -> list[str]:
    """Where a tile lies and how large it is."""
    where = SPACE_WORDS[tile.space]
    return [f"{number(tile.slots)} × {span(Extent(tile.nbytes, tile.nbytes))} in {where}"] if tile.name else [where]


def use_parts(uses: Sequence[Use], verb: str, roles: Sequence[RolePart], cta: int) -> list[str]:
    """``written by producer (bulk copy of 16 KiB)``."""
    parts = []
    for _, same in groupby(uses, key=lambda u: (u.role, u.ctas, u.agents)):
        ways = list(same)
        name = who(ways[0].role, ways[0].agents, ways[0].ctas, roles, cta)
        parts.append(f"{verb} {name} ({', '.join(_use(use) for use in ways)})")
    return parts or [f"{verb} no role"]


def _use(use: Use) -> str:
    engine = "" if use.engine is None else _ENGINES[use.engine]
    if use.how is TouchKind.TRANSFER_WRITE and use.engine is Engine.BULK:
        engine = "bulk transfer"
    words = f"{engine or use.how.value} of {span(use.nbytes)}"
    return f"{words} to {ctas_words(use.to)}" if use.to else words


def meeting_label(meeting: Meeting) -> str:
    """``barrier 1``, ``warp 2`` where its lanes meet, or ``cluster``."""
    if meeting.number is None:
        return "cluster"
    warp = meeting.number - NAMED_BARRIERS
    return f"barrier {meeting.number}" if warp < 0 else f"warp {warp}"


def meeting_parts(meeting: Meeting, roles: Sequence[RolePart], cta: int) -> list[str]:
    """How many threads, and who comes how often."""
    low, high = meeting.threads
    parts = [count(high, "thread") if low == high else f"{number(low)} to {number(high)} threads"]
    for (waits, times), members in groupby(meeting.members, key=lambda m: (m.waits, m.times)):
        names = ", ".join(who(m.role, m.agents, (cta,), roles, cta) for m in members)
        often = count(times.low, "time") if times.low == times.high else f"{times.low} to {times.high} times"
        parts.append(f"{'waits' if waits else 'only arrives'} {often}: {names}")
    return parts


def total_parts(totals: Totals) -> list[str]:
    """The totals of the CTA, and the limits of the hardware."""
    barriers = f" ({number(totals.barrier_bytes)} in barriers)" if totals.barrier_bytes else ""
    parts = [f"shared memory {number(totals.smem_bytes)} of {number(MAX_SMEM)} bytes{barriers}"]
    if totals.tmem_bytes:
        parts.append(f"tensor memory {number(totals.tmem_bytes)} of {number(MAX_TMEM)} bytes")
    parts.append(f"{count(32 * totals.warps, 'thread')} in {count(totals.warps, 'warp')}")
    if totals.register_warps:
        rest = totals.warps - totals.register_warps
        others = f", excluding {count(rest, 'warp')} without setmaxnreg" if rest else ""
        parts.append(f"registers {number(totals.registers)} of {number(SM_REGISTERS)}{others}")
    return parts


def other_parts(others: Sequence[Other]) -> list[str]:
    """Which CTAs are the same, and what is not in the rest."""
    same = tuple(other.cta for other in others if not other.differs)
    parts = [f"the same in {ctas_words(same)}, with its ranks"] if same else []
    for differs, some in groupby(
        sorted((o for o in others if o.differs), key=lambda o: (o.differs, o.cta)), key=lambda o: o.differs
    ):
        ctas = tuple(other.cta for other in some)
        parts.append(f"not the same in {ctas_words(ctas)}: {', '.join(differs)} (see --rank {ctas[0]})")
    return parts


def place_words(anatomy: Anatomy) -> str:
    """Which CTA of what cluster is shown."""
    if anatomy.talk:
        return f"CTA {anatomy.cta} of {anatomy.ctas} that talk by words of global memory"
    return f"CTA {anatomy.cta} of a cluster of {anatomy.ctas}"
