"""Loops without end: where a cluster is, after a lap, exactly what it was before."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipesim.ptx.emulate.laps.lengthened import stands_of
from pipesim.ptx.emulate.laps.snapshots import known_bytes, values_of
from pipesim.ptx.emulate.values import Value, same

if TYPE_CHECKING:
    from pipesim.ptx.emulate.cluster import Cluster

_ROUNDS = 64  #: of all warps in which the same is looked for


@dataclass
class EndlessLoops:
    """Looks at a run, again after twice as many instructions, and so on."""

    cluster: "Cluster"
    _next: int = 0
    _rounds: int = 0
    _before: tuple[object, list[Value]] = field(default=(None, []))

    def repeats(self, total: int) -> bool:
        """After a round of all warps, and ``total`` instructions: whether the cluster is where it was."""
        if total > self._next:
            self._next, self._rounds, self._before = 2 * total, 0, (self._stands(), self._values())
            return False
        self._rounds += 1
        if self._rounds > _ROUNDS or self._stands() != self._before[0]:
            return False
        now, before = self._values(), self._before[1]
        return len(now) == len(before) and all(map(same, now, before))

    def _stands(self) -> object:
        named = self.cluster.named.values()
        return stands_of(self.cluster), known_bytes(self.cluster), [len(each.votes) for each in named]

    def _values(self) -> list[Value]:
        return values_of(self.cluster) + [vote for each in self.cluster.named.values() for vote in each.votes]
