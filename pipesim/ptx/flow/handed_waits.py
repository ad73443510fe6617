"""Waits for a word of global memory whose answer one thread hands to all threads of its CTA through shared memory.

``while (true) { if (threadIdx.x == 0) got = atomicCAS(lock, 0, 1); __syncthreads(); if (got == 0) break;
__syncthreads(); }``, as Triton writes ``while tl.atomic_cas(...)``: a round that is not the last one leaves all as it
was. So the loop is a wait of that thread, and what all do in its last round is done once. That one thread asks, and
that all threads of the CTA are in the loop, shows when it is followed.
"""

from collections.abc import Iterator, Sequence

from pipesim.ptx.flow.graph import Graph, Loop, reached
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.flow.voted_waits import PLAIN, HandedWait, invariant, made_of
from pipesim.ptx.text.instruction import Address, Guard, Immediate, Instruction, Register, Symbol

_BITS = ("b32", "u32", "s32")
_AS_IT_IS = ("mov", "setp", "selp", "bra")
_BESIDE = PLAIN | {"add", "sub", "shl", "shr", "mad", "mul", "lop3", "fence", "membar", "nanosleep"}


def handed_waits(body: Sequence[Instruction], graph: Graph, uses: Uses) -> Iterator[HandedWait]:
    """All of a kernel."""
    for loop in graph.loops if any(_is_of_all(each) for each in body) else ():
        positions = graph.positions(loop.blocks)
        asked = [p for p in positions if _asks(body[p])]
        stores, loads = ([p for p in positions if _is_shared(body[p], opcode)] for opcode in ("st", "ld"))
        if len(asked) == len(stores) == len(loads) == 1:
            found = _handed(body, graph, uses, loop, positions, asked[0], stores[0], loads[0])
            if found is not None:
                yield found


def _handed(
    body: Sequence[Instruction], graph: Graph, uses: Uses, loop: Loop, positions: frozenset[int],
    asked: int, store: int, load: int,
) -> HandedWait | None:  # fmt: skip
    exits = graph.exits(loop.blocks)
    others, given = positions - {asked, store, load}, body[store].operands[-1]
    if not _is_one_word(body, graph, asked, store, load) or _misses(graph, loop, load):
        return None
    plain = all(body[p].opcode in _BESIDE or _is_of_all(body[p]) for p in others)
    if len(exits) != 1 or not plain or not isinstance(given, Register) or len(uses.writes[load]) != 1:
        return None
    left = body[exits[0]]
    made = {name for p in others for name in uses.writes[p]}
    of_word, of_load = (made_of(uses.writes[p], others, uses) for p in (asked, load))
    same = invariant(made, others, uses)
    three = asked, store, load
    needed = {name for p in (store, load) for name in uses.reads[p]} - {given.name} | {*uses.reads[asked]}
    needed |= {guard.register for p in three if (guard := body[p].guard) is not None}
    if any(not of_word.isdisjoint(uses.writes[p]) and body[p].opcode not in _AS_IT_IS for p in others):
        return None
    if not _compares(body, uses, others, left.guard, uses.writes[load][0]):
        return None
    if given.name not in of_word or left.guard is None or left.guard.register not in of_load or of_word & of_load:
        return None
    if not made <= of_word | of_load | same or not needed.isdisjoint((made | {*uses.writes[asked]}) - same):
        return None
    if _reaches(body, graph, positions, store, load) or _reaches(body, graph, positions, load, store):
        return None  # another round may overwrite what a thread has yet to load
    result = uses.writes[load][0]
    return HandedWait(loop=positions, asks=asked, learns=load, given=given.name, result=result, store=store)


def _is_one_word(body: Sequence[Instruction], graph: Graph, asked: int, store: int, load: int) -> bool:
    """Whether the answer has 32 bits and one place in shared memory for all threads, who asks stores it, and all load
    it.
    """
    place, into = body[load].operands[1], body[store].operands[0]
    fixed = isinstance(place, Address) and place == into and isinstance(place.base, Symbol)
    mine = asked < store and graph.block_of[asked] == graph.block_of[store] and body[asked].guard == body[store].guard
    return (
        fixed
        and mine
        and body[load].guard is None
        and all(body[p].modifiers[-1] in _BITS for p in (asked, store, load))
    )


def _misses(graph: Graph, loop: Loop, load: int) -> bool:
    """Whether a round may go by the load."""
    here = graph.block_of[load]
    around = reached([loop.header], lambda block: graph.blocks[block].successors if block != here else ())
    ways = (graph.blocks[block].successors for block in around if block != here)
    return any(not loop.blocks.issuperset(after) or loop.header in after for after in ways)


def _compares(
    body: Sequence[Instruction], uses: Uses, others: frozenset[int], guard: Guard | None, loaded: str
) -> bool:
    """Whether the loop is left as what is loaded compares with a constant, the same for all threads."""
    made = [body[p] for p in others if guard is not None and guard.register in uses.writes[p]]
    if len(made) != 1 or made[0].opcode != "setp" or made[0].guard is not None or len(made[0].operands) != 3:
        return False
    one, constant = made[0].operands[1:]
    return one == Register(loaded) and isinstance(constant, Immediate) and made[0].modifiers[-1] in _BITS


def _reaches(body: Sequence[Instruction], graph: Graph, loop: frozenset[int], first: int, last: int) -> bool:
    """Whether a way in the loop leads from one position to another one without a barrier of all threads."""
    after = graph.after(first)
    free = reached(after, lambda p: graph.after(p) if p in loop and not _is_of_all(body[p]) else ())
    return last in free


def _asks(each: Instruction) -> bool:
    return is_word(each) and each.opcode in ("ld", "atom")


def _is_shared(each: Instruction, opcode: str) -> bool:
    return each.opcode == opcode and each.has_any("shared", "shared::cta")


def _is_of_all(each: Instruction) -> bool:
    """Whether it is a barrier of all threads of a CTA."""
    alone = each.guard is None and len(each.operands) <= 1
    return alone and each.opcode in ("bar", "barrier") and each.has("sync") and not each.has_any("warp", "cluster")
