"""What an emulation takes for granted or leaves out, by position in the kernel's body."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Notes:
    """Positions, with words where there is more than one thing to say.

    ``time_outs``: waits whose time-out is not followed; ``traps``: branches to a trap that are not; ``left_out``:
    accesses; ``passed_over``: branches on values that are not known; ``joins``: where lanes that parted meet again;
    ``unread``: instructions that are not known; ``policies``: what other CTAs would decide; ``inferred``: sizes;
    ``equal_stores``: stores by several warps to the same bytes; ``generic``: accesses to ``.shared`` that give a
    generic address; ``fences``: those of which it is not known whether they run, which therefore order nothing;
    ``undefined``: what PTX leaves undefined.
    """

    time_outs: set[int] = field(default_factory=set)
    traps: set[int] = field(default_factory=set)
    left_out: dict[int, str] = field(default_factory=dict)
    passed_over: set[int] = field(default_factory=set)
    joins: set[int] = field(default_factory=set)
    unread: dict[int, str] = field(default_factory=dict)
    policies: dict[int, str] = field(default_factory=dict)
    inferred: dict[int, str] = field(default_factory=dict)
    equal_stores: set[int] = field(default_factory=set)
    generic: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    polls: set[int] = field(default_factory=set)
    fences: set[int] = field(default_factory=set)
    undefined: dict[int, str] = field(default_factory=dict)
