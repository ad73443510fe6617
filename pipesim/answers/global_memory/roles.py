"""What an access to global memory is to those of other clusters and warps: weak or strong, and what it leaves."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from pipesim.answers.global_memory.memories import Chosen
from pipesim.model.ops import Order
from pipesim.ptx.emulate.global_memory.global_accesses import AccessKind, GlobalAccess, Strength, strength_of
from pipesim.ptx.flow.observations import Observations
from pipesim.ptx.flow.uses import Uses, stores_one_value
from pipesim.ptx.text.instruction import Instruction


class AccessRole(Enum):
    """What an access is to those of other clusters."""

    WRITE = 0
    STRONG_WRITE = (
        1  #: atomics and stores with an order, of gpu or sys scope: any number of them may meet, and strong reads
    )
    READ = 2
    STRONG_READ = 3
    EQUAL = 4  #: stores of one value: as many as there are of one instruction may meet


WRITES = (AccessRole.WRITE, AccessRole.STRONG_WRITE, AccessRole.EQUAL)
STRONG = {AccessRole.STRONG_WRITE, AccessRole.STRONG_READ}
_ISSUED = (AccessKind.ASYNC_LOAD, AccessKind.BULK_LOAD, AccessKind.BULK_STORE, AccessKind.BULK_REDUCTION)
_MOST_APART = 256  #: of these that are compared with each other, not just those of different instructions

#: Accesses whose end, or whose parts, no operation of a program on global memory says.
_WITHOUT_OPERATION = (AccessKind.ASYNC_LOAD, AccessKind.BULK_LOAD, AccessKind.BULK_REDUCTION)
_COMMUTING = ("add", "min", "max", "and", "or", "xor")


@dataclass(frozen=True)
class Roles:
    """The roles of the accesses of a kernel's instructions."""

    body: tuple[Instruction, ...]
    uses: Uses
    observations: Observations

    def strength(self, access: GlobalAccess) -> Strength:
        """Of its instruction."""
        return strength_of(self.body[access.position])

    def is_strong(self, access: GlobalAccess) -> bool:
        """Whether an access is strong for threads that its scope includes."""
        strength = self.strength(access)
        return strength.volatile or strength.order is not Order.DEFAULT or access.kind.is_atomic

    def of(self, access: GlobalAccess, equal: Collection[int] = ()) -> AccessRole:
        """To threads of other clusters, which a scope of a CTA or a cluster does not include.

        ``equal``: the positions of stores that all store the same.
        """
        strong = self.is_strong(access) and not self.strength(access).is_narrow
        if access.kind.writes:
            plain = AccessRole.EQUAL if access.position in equal else AccessRole.WRITE
            return AccessRole.STRONG_WRITE if strong else plain
        return AccessRole.STRONG_READ if strong else AccessRole.READ

    def has_no_operation(self, access: GlobalAccess) -> bool:
        """Whether the order of an access is not that of an operation of a program."""
        strong = self.is_strong(access) and not access.kind.is_atomic
        return strong or access.kind in _WITHOUT_OPERATION

    def stores_one_value(self, at: int) -> bool:
        """Whether every thread that executes this instruction stores the same."""
        return stores_one_value(at, self.body, self.uses)

    def commuting(self, access: GlobalAccess) -> tuple[object, ...]:
        """What strong writes have in common that leave the same in every order; () if nothing is."""
        each = self.body[access.position]
        if access.kind.is_atomic and each.has_any(*_COMMUTING) and each.position not in self.observations.read:
            return tuple(name for name in each.modifiers if name in _COMMUTING or name == each.modifiers[-1])
        return (each.position,) if self.stores_one_value(each.position) else ()


def by_agent(accesses: Iterable[Chosen]) -> dict[tuple[int, ...], list[Chosen]]:
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
