"""Waits for a word of global memory whose end all threads of a CTA vote on, as CUTLASS's ``Semaphore::wait`` is one.

``while (__syncthreads_and(state != wanted)) { if (threadIdx.x == 0) state = acquire(lock); }``: of each round the vote
of the thread that loads decides, as those of the others stay as they are. So the loop is a wait of that thread, and
the barrier at which all vote is one that all reach when it has ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipesim.ptx.flow.graph import Graph, reached
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.instruction import Instruction, Register


@dataclass(frozen=True, kw_only=True)
class SharedWait:
    """A loop in which all threads of a CTA wait for what one of them ``asks`` of a word, by position.

    ``loop``: its positions. All learn at ``learns`` what that thread has of ``given``, in the register ``result``.
    ``before``: loads of the same word of which the loop alone reads the result, which look at the word before it.
    """

    loop: frozenset[int]
    asks: int
    learns: int
    given: str
    result: str
    before: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class VotedWait(SharedWait):
    """They vote at a barrier. ``ends``: the result with which the loop is left, at the position ``exit``."""

    exit: int
    ends: bool


@dataclass(frozen=True, kw_only=True)
class HandedWait(SharedWait):
    """All load what the thread that asks leaves in shared memory, by a ``store``."""

    store: int


def voted_waits(body: Sequence[Instruction], graph: Graph, uses: Uses) -> Iterator[VotedWait]:
    """All of a kernel."""
    if not any(_is_vote(each) for each in body):
        return
    for loop in graph.loops:
        positions, exits = graph.positions(loop.blocks), graph.exits(loop.blocks)
        votes = [p for p in positions if _is_vote(body[p])]
        loads = [p for p in positions if is_word(body[p]) and body[p].opcode == "ld"]
        if len(exits) == len(votes) == len(loads) == 1:
            found = _voted(body, graph, uses, positions, loads[0], votes[0], exits[0])
            if found is not None:
                yield found


def _voted(
    body: Sequence[Instruction], graph: Graph, uses: Uses, loop: frozenset[int], load: int, barrier: int, left: int
) -> VotedWait | None:
    result, vote, branch = uses.writes[barrier], body[barrier].operands[-1], body[left]
    others = loop - {load, barrier}
    made = {name for p in others for name in uses.writes[p]}
    plain = all(body[p].opcode in PLAIN for p in others) and len(result) == 1
    if (
        not plain
        or not isinstance(vote, Register)
        or branch.guard is None
        or branch.opcode != "bra"
        or not set(uses.needs[load]).isdisjoint(made)
    ):
        return None
    of_load = made_of(uses.writes[load], others, uses)
    of_vote = made_of(result, others, uses)
    if vote.name not in of_load or branch.guard.register not in of_vote or of_load & of_vote:
        return None
    if not made <= of_load | of_vote | invariant(made, others, uses):
        return None
    stays = graph.blocks[graph.block_of[left]].successors
    ends = _value_that_leaves(body, graph, uses, loop, barrier, left, stays)
    if ends is None:
        return None
    names = set(uses.writes[load])
    before = frozenset(
        p
        for p, each in enumerate(body)
        if p not in loop and names == set(uses.writes[p]) and each.mnemonic == body[load].mnemonic
        and each.operands[1:] == body[load].operands[1:]
    )  # fmt: skip
    alone = all(p in loop for p in range(len(body)) if not names.isdisjoint(uses.reads[p]))
    before = before if alone else frozenset()
    return VotedWait(
        loop=loop, asks=load, learns=barrier, given=vote.name, result=result[0], before=before, exit=left, ends=ends
    )


def made_of(names: Sequence[str], loop: frozenset[int], uses: Uses) -> set[str]:
    """All that a loop makes of some registers."""
    return {*reached(names, lambda name: [made for p in loop if name in uses.reads[p] for made in uses.writes[p]])}


def invariant(made: set[str], loop: frozenset[int], uses: Uses) -> set[str]:
    """What each iteration of a loop makes of the same."""
    found, before = set[str](), -1
    while len(found) > before:
        before = len(found)
        for p in loop:
            if all(name not in made or name in found for name in uses.reads[p]):
                found |= set(uses.writes[p])
    return found


def _value_that_leaves(
    body: Sequence[Instruction], graph: Graph, uses: Uses, loop: frozenset[int], barrier: int, left: int,
    after: Sequence[int],
) -> bool | None:  # fmt: skip
    """The result of the vote with which the loop is left, where the branch tests it alone."""
    name, value, guard = uses.writes[barrier][0], True, body[left].guard
    assert guard is not None
    for p in range(barrier + 1, left + 1):
        each = body[p]
        if p == left or each.guard is not None:
            break
        if name not in uses.reads[p]:
            continue
        numbers = [operand.value for operand in each.operands if hasattr(operand, "value")]
        if each.opcode == "selp" and numbers[:2] in ([1, 0], [0, 1]):
            value = value is (numbers[:2] == [1, 0])
        elif each.opcode == "setp" and numbers == [0] and each.has_any("eq", "ne") and not each.operands[3:]:
            value = value is each.has("ne")
        elif each.opcode == "not":
            value = not value
        elif each.opcode != "mov":
            return None
        name = uses.writes[p][0]
    if name != guard.register or graph.block_of[barrier] != graph.block_of[left]:
        return None
    target = [b for b in after if b == graph.exit or graph.blocks[b].first != left + 1]
    leaves = bool(target) and (target[0] == graph.exit or graph.blocks[target[0]].first not in loop)
    return (value is not guard.negated) is leaves  # the branch is taken with the guard true


PLAIN = frozenset({"setp", "selp", "mov", "bra", "and", "or", "xor", "not", "cvt", "cvta"})


def _is_vote(each: Instruction) -> bool:
    return each.opcode in ("bar", "barrier") and each.has("red") and each.has_any("and", "or") and each.guard is None
