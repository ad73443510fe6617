"""What limits a run, by one rule that reads events alone: the same for a simulated and for a recorded trace.

In the middle of the run each role is taken by its agent that waits least for others. If that one waits hardly at all,
its role limits the run: no other role can be faster. If every role waits, time passes on the way between them: loads
are too late where the role that waits least waits for copies, else the signals between roles are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from pipesim.conform.steady import one_cta
from pipesim.trace.activity import WAITS_FROM, waited_for
from pipesim.trace.schema import Column, EventKind, Events, Trace

#: A role that waits for others in less than this many thousandths of the time limits the run.
BUSY_PERMILLE = 200
_FIRST, _LAST = 250, 875  #: of the recorded time, in thousandths: before and after are prologue and tail
_PASSES = 120  #: cycles of a wait that does not block, at most: 95 on Hopper (profiles, wait.issue), with its records
_OTHERS = frozenset({EventKind.WAIT_ENTER, EventKind.BAR_ENTER})  #: a wait for a group is for the agent's own transfers


class LimitKind(Enum):
    """What limits a run. The value is a phrase for a report."""

    ROLE = "a role that is always busy"
    LOADS = "loads that arrive late"
    SIGNALS = "signals between roles"


@dataclass(frozen=True)
class Bottleneck:
    """What limits a run: ``role`` waits least for others, ``waits_permille`` of the time, longest for ``group``.

    ``group`` is "" for a role that never waits.
    """

    limit: LimitKind
    role: str
    waits_permille: int
    group: str = ""

    @property
    def name(self) -> tuple[LimitKind, str]:
        """What two runs have in common that are limited by the same: the role, or the group of barriers."""
        return self.limit, self.role if self.limit is LimitKind.ROLE else self.group


def bottleneck(trace: Trace) -> Bottleneck | None:
    """What limits the run of a trace; None where fewer than two roles, or not its only one, were recorded for long."""
    events = one_cta(trace)
    if len(events) == 0:
        return None
    begin, end = int(events.cycle.min()), int(events.cycle.max())
    if not trace.meta.window:
        begin, end = (begin + (end - begin) * part // 1000 for part in (_FIRST, _LAST))
    kinds = np.array([int(site.kind) for site in trace.meta.sites], dtype=np.int64)
    passing = _shortest_wait(events, kinds)
    found: dict[str, tuple[int, str]] = {}  # role → waits of its agent that waits least, longest for
    for agent, info in enumerate(trace.meta.agents):
        waits = _waits(trace, events.select(np.flatnonzero(events.agent == agent)), (begin, end), passing)
        if waits is None:
            continue
        total = 1000 * sum(waits.values()) // max(end - begin, 1)
        longest = max(waits, key=lambda group: waits[group], default="")
        if info.role not in found or total < found[info.role][0]:
            found[info.role] = total, longest
    if len(found) < min(2, len({info.role for info in trace.meta.agents})):
        return None
    role, (total, group) = min(found.items(), key=lambda each: each[1][0])
    if total < BUSY_PERMILLE:
        return Bottleneck(LimitKind.ROLE, role, total, group)
    copied = {site.barrier for site in trace.meta.sites if site.kind is EventKind.COPY}
    return Bottleneck(LimitKind.LOADS if group in copied else LimitKind.SIGNALS, role, total, group)


def _shortest_wait(events: Events, kinds: Column) -> int:
    """Cycles of the shortest wait: what a wait takes that does not block. In a window all of them may have blocked."""
    follows = np.flatnonzero(
        (events.agent[1:] == events.agent[:-1]) & (kinds[events.site[:-1]] == EventKind.WAIT_ENTER)
    )
    return int((events.cycle[follows + 1] - events.cycle[follows]).min(initial=_PASSES))


def _waits(trace: Trace, mine: Events, span: tuple[int, int], passing: int) -> dict[str, int] | None:
    """Cycles that one agent waits for others within the span, by what it waits for; None if it does not run through it.

    An agent that ends before the span does, or begins after it, has another part in the run.
    """
    begin, end = span
    if len(mine) < 2 or int(mine.cycle[0]) > begin + (end - begin) // 2:
        return None
    if int(mine.cycle[-1]) < begin + (end - begin) // 2:
        return None
    waits: dict[str, int] = {}
    for at, (first, last) in enumerate(zip(mine.cycle[:-1].tolist(), mine.cycle[1:].tolist(), strict=True)):
        site = trace.meta.sites[int(mine.site[at])]
        blocked = min(last, end) - max(first + passing, begin)
        if site.kind in WAITS_FROM and site.kind in _OTHERS and blocked > 0:
            group = waited_for(site)
            waits[group] = waits.get(group, 0) + blocked
    return waits
