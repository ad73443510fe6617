"""Which statements of a kernel are recorded, and in which runs: sites that one thread passes one after the other.

A run is in one basic block: a thread that reaches its first site reaches its last. So its records lie at constant
places from the cursor, which moves once a run. A statement with a guard, and a try that spins, is a run of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from hwkernels.rewriter.options import Level
from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.flow.opcodes import is_step, is_try
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Instruction


class WordAccess(Enum):
    """What a statement does to a word of global memory; the value is how many of its records have a time."""

    WRITE = 1  #: a store, or a reduction
    READ = 2
    CHANGE = 3  #: an atomic


PAYLOAD = 3  #: records with the value of a word and the halves of its address in the places of their clocks


@dataclass(frozen=True)
class RecordedSite:
    """A statement that is recorded. ``number``: in the records; ``position``: in the kernel's own body.

    ``blocks``: it is recorded before and after. ``tries``: it asks an mbarrier, ``by_parity`` or by a state. ``spins``:
    it is a wait's try, of which the first and the one that succeeds are recorded. ``meets``: a barrier of the CTA that
    whole warps reach. ``word``: it accesses a word of global memory; one that ``spins`` is recorded where its loop is
    left, at ``exits``: the positions of branches, and whether they are taken there.
    """

    number: int
    position: int
    begin: int
    blocks: bool
    tries: bool
    spins: bool
    by_parity: bool
    meets: bool
    word: WordAccess | None = None
    exits: tuple[tuple[int, bool], ...] = ()

    @property
    def records(self) -> int:
        """How many records it makes."""
        if self.word is not None:
            return min(self.word.value, 2) + PAYLOAD
        return 2 if self.blocks or self.tries else 1


@dataclass(frozen=True)
class Run:
    """Sites of one basic block. ``lap``: the cursor is kept inside the buffer here, and the hash is stored."""

    sites: tuple[RecordedSite, ...]
    lap: bool

    @property
    def number(self) -> int:
        """What represents the run in the hash: its first site."""
        return self.sites[0].number

    @property
    def records(self) -> int:
        """How many records it makes."""
        return sum(site.records for site in self.sites)


def blocks(each: Instruction) -> bool:
    """Whether a thread may wait in it, other than in a loop of its own."""
    match each.opcode:
        case "bar" | "barrier":
            return each.has_any("sync", "red", "wait")
        case "cp":
            return each.has_any("wait_group", "wait_all")
        case "wgmma":
            return each.has("wait_group")
        case "tcgen05":
            return each.has_any("wait::ld", "wait::st")
        case "griddepcontrol":
            return each.has("wait")
        case _:
            return False


def sites_of(
    function: Function, spins: frozenset[int], parts: frozenset[int], level: Level
) -> tuple[RecordedSite, ...]:
    """The recorded statements of a body, in its order; ``spins``: the beginnings of tries that are waits.

    ``parts``: the beginnings of statements that only some lanes of a warp execute.
    """
    found: list[RecordedSite] = []
    for each in function.body:
        tries = is_try(each)
        if not (tries or is_step(each)) or (level is Level.WAITS and not (tries or blocks(each))):
            continue
        by_parity = tries and each.has("parity")
        spinning = each.begin in spins
        meets = each.opcode in ("bar", "barrier") and not each.has("cluster") and each.begin not in parts
        found.append(
            RecordedSite(len(found), each.position, each.begin, blocks(each), tries, spinning, by_parity, meets)
        )
    return tuple(found)


WORD_ACCESSES = {"ld": WordAccess.READ, "st": WordAccess.WRITE, "red": WordAccess.WRITE, "atom": WordAccess.CHANGE}


def with_words(
    function: Function, graph: Graph, sites: Sequence[RecordedSite], words: Mapping[int, bool], level: Level
) -> tuple[RecordedSite, ...] | None:
    """The sites with those of words of global memory; ``words``: where these begin, and whether a loop waits there.

    None where a loop that waits has other sites inside, or ends in a way that is not followed.
    """
    found = {site.begin: site for site in sites}
    for each in function.body:
        if each.begin not in words or (level is Level.WAITS and not words[each.begin]):
            continue
        exits: tuple[tuple[int, bool], ...] | None = ()
        if words[each.begin]:
            inside = _innermost_loop(graph, each.position)
            beside = {function.body[p].begin for p in range(len(function.body)) if graph.block_of[p] in inside}
            exits = _exits(function, graph, inside)
            if exits is None or beside & ({site.begin for site in sites} | words.keys()) != {each.begin} & words.keys():
                return None
        word, spins = WORD_ACCESSES[each.opcode], words[each.begin]
        found[each.begin] = RecordedSite(
            0, each.position, each.begin, False, False, spins, False, False, word, exits or ()
        )
    ordered = sorted(found.values(), key=lambda site: site.position)
    return tuple(replace(site, number=number) for number, site in enumerate(ordered))


def _innermost_loop(graph: Graph, position: int) -> frozenset[int]:
    """The blocks of the innermost loop around a position; none where there is no loop."""
    around = [loop.blocks for loop in graph.loops if graph.block_of[position] in loop.blocks]
    return min(around, key=len, default=frozenset())


def _exits(function: Function, graph: Graph, inside: frozenset[int]) -> tuple[tuple[int, bool], ...] | None:
    """Where a loop is left: branches, and whether they are taken then. None if anything else leads out, or nothing."""
    found: list[tuple[int, bool]] = []
    for block in inside:
        last = function.body[graph.blocks[block].end - 1]
        outside = [each for each in graph.blocks[block].successors if each not in inside]
        if not outside:
            continue
        if last.opcode != "bra" or last.guard is None or len(outside) > 1:
            return None
        after = graph.block_of[last.position + 1] if last.position + 1 < len(function.body) else graph.exit
        found.append((last.position, outside[0] != after))
    return tuple(sorted(found)) or None


def runs_of(function: Function, graph: Graph, sites: Sequence[RecordedSite]) -> tuple[Run, ...]:
    """The runs, in the order of the body; every path around a loop through a run passes one with ``lap``."""
    leaders = {block.first for block in graph.blocks}
    leaders |= {each.position + 1 for each in function.body if each.opcode == "call"}
    groups: list[list[RecordedSite]] = []
    last = len(function.body)
    for site in sites:
        alone = site.spins or function.body[site.position].guard is not None
        if alone or any(p in leaders for p in range(last + 1, site.position + 1)) or last >= site.position:
            groups.append([])
        groups[-1].append(site)
        last = len(function.body) if alone else site.position  # nothing joins a run of its own
    laps = _on_every_cycle(graph, [group[0].position for group in groups])
    return tuple(Run(tuple(group), group[0].position in laps) for group in groups)


def _on_every_cycle(graph: Graph, heads: Sequence[int]) -> frozenset[int]:
    """Some of these positions, so that no cycle of the graph that passes one of them misses those."""
    by_block: dict[int, int] = {}
    for head in sorted(heads, reverse=True):
        by_block[graph.block_of[head]] = head
    found: set[int] = set()
    waiting = [frozenset(range(len(graph.blocks)))]
    while waiting:
        for component in _cycles_in(graph, waiting.pop()):
            inside = [block for block in component if block in by_block]
            if inside:
                first = min(inside, key=by_block.__getitem__)
                found.add(by_block[first])
                waiting.append(component - {first})
    return frozenset(found)


def _cycles_in(graph: Graph, blocks: frozenset[int]) -> list[frozenset[int]]:
    """The strongly connected components of some blocks that have a cycle (Kosaraju's algorithm)."""
    order: list[int] = []
    seen: set[int] = set()
    for root in sorted(blocks):
        stack = [(root, False)]
        while stack:
            block, done = stack.pop()
            if done:
                order.append(block)
            elif block not in seen:
                seen.add(block)
                stack.append((block, True))
                stack += [(s, False) for s in graph.blocks[block].successors if s in blocks and s not in seen]
    found, taken = [], set[int]()
    for root in reversed(order):
        component: set[int] = set()
        ahead = [root]
        while ahead:
            block = ahead.pop()
            if block not in taken:
                taken.add(block)
                component.add(block)
                ahead += [p for p in graph.blocks[block].predecessors if p in blocks and p not in taken]
        if len(component) > 1 or root in graph.blocks[root].successors:
            found.append(frozenset(component))
    return found
