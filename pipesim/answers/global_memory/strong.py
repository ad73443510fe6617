"""Strong accesses of clusters to the same bytes: no data race, but updates may be lost, and their order may decide."""

from collections import defaultdict
from collections.abc import Collection

from pipesim.answers.global_memory.memories import Chosen, Kinds, Memory
from pipesim.answers.global_memory.roles import AccessRole, Roles, by_agent
from pipesim.answers.global_memory.spans import ContestedBytes, contested, met_by_any
from pipesim.ptx.emulate.global_memory.global_accesses import GlobalAccess


def lost_update(
    memory: Memory, kinds: Kinds, roles: Roles, at: int, loads: Collection[int]
) -> tuple[bool, tuple[Chosen, Chosen, ContestedBytes] | None]:
    """Words that a cluster loads and stores at a position, as strong accesses, while another one writes them: whether
    there may be some, and both accesses where that is so. TooManyError.

    That is not a data race. What the other one writes in between is lost.
    """
    mine = [each for each in memory.accesses if each[1].position == at]
    strong = [each for each in memory.accesses if roles.of(each[1]) is AccessRole.STRONG_WRITE]
    met = met_by_any(*(memory.spans(kinds, part) for part in (mine, strong)))
    if met is None:
        return False, None
    found = (
        (one, other, met._replace(low=begin, high=end))
        for one, low, high in memory.accessing(kinds, met.one, met.low, met.high)
        for other, begin, end in memory.accessing(kinds, met.other, low, high)
        for load, *_ in memory.accessing(kinds, met.one, begin, end)
        if one in mine and other in strong
        if load[1].position in loads and load[1].agent == one[1].agent
    )
    return True, next(found, None)


def order_decides(memory: Memory, kinds: Kinds, roles: Roles) -> set[int]:
    """The positions of strong accesses of several clusters to the same bytes, of which what is read, or what is left,
    depends on their order. TooManyError.
    """
    wide = [each for each in strong_accesses(memory, roles) if not roles.strength(each[1]).is_narrow]
    groups: dict[tuple[object, ...], list[Chosen]] = defaultdict(list)
    found = set[int]()
    for each in wide:
        if each[1].kind.writes:
            groups[roles.commuting(each[1])].append(each)
    for key, mine in groups.items():
        apart = [each for each in wide if not key or each not in mine]
        if met_by_any(memory.spans(kinds, mine), memory.spans(kinds, apart)):
            found |= {access.position for _, access in (*mine, *apart)}
    return found


def order_decides_inside(memory: Memory, kinds: Kinds, roles: Roles) -> dict[int, set[int]]:
    """The same of the warps of one cluster, by its kind. TooManyError."""
    found: dict[int, set[int]] = {}

    def asks(each: GlobalAccess) -> bool:
        return not each.kind.writes or not roles.commuting(each)

    for kind in {kind for kind, _ in strong_accesses(memory, roles)}:
        mine = [each for each in strong_accesses(memory, roles) if each[0] == kind]
        parts = [memory.parts(kinds, chosen, asks) for chosen in by_agent(mine).values()]
        if len(parts) > 1 and contested(parts):
            found[kind] = {access.position for _, access in mine}
    return found


def strong_accesses(memory: Memory, roles: Roles) -> list[Chosen]:
    """Those to a memory."""
    return [each for each in memory.accesses if roles.is_strong(each[1])]
