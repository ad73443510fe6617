"""Blocks, dominators, post-dominators and loops."""

import itertools
import random

import pytest

from pipesim.ptx.flow.graph import Graph, Loop, graph_of, immediate_dominators
from tests.support.ptx_text import kernel


def graph(body: str) -> Graph:
    return graph_of(kernel(body))


def test_an_empty_body():
    made = graph("")
    assert (made.blocks, made.post_dominators, made.dominators, made.loops) == ((), (), (), ())
    assert made.reachable == set()


def test_a_choice_meets_after_it():
    made = graph("@%p1 bra ELSE;\nmov.u32 %r1, 0;\nbra.uni END;\nELSE: mov.u32 %r1, 1;\nEND: ret;")
    assert [each.successors for each in made.blocks] == [(2, 1), (3,), (3,), (4,)]
    assert [each.predecessors for each in made.blocks] == [(), (0,), (0,), (1, 2)]
    assert made.post_dominators == (3, 3, 3, 4)
    assert made.dominators == (None, 0, 0, 0)
    assert made.meeting_point(0) == 4
    assert made.meeting_point(4) == 5  # after the last instruction


@pytest.mark.parametrize("end", ["trap;", "trap;\nexit;", "trap;\nbra.uni OK;", "mov.u32 %r2, 0;\ntrap;"])
def test_a_trap_does_not_move_the_meeting_point(end):
    body = f"@%p1 bra BAD;\nmov.u32 %r1, 0;\n@%p2 bra BAD;\nbra.uni OK;\nBAD: {end}\nOK: ret;"
    made = graph(body)
    ok = made.block_of[len(made.block_of) - 1]
    assert made.post_dominators[0] == 1
    assert made.post_dominators[1] in {2, ok}
    assert made.meeting_point(0) == 1


def test_loops_inside_each_other():
    made = graph("A: mov.u32 %r1, 0;\nB: @%p1 bra B;\n@%p2 bra A;\n@%p3 bra B;\nret;")
    assert made.loops == (Loop(0, frozenset({0, 1, 2, 3}), (2,)), Loop(1, frozenset({1, 2, 3}), (1, 3)))


def test_an_endless_loop_has_a_meeting_point_inside():
    made = graph("TOP: @%p1 bra ELSE;\nmov.u32 %r1, 0;\nbra JOIN;\nELSE: mov.u32 %r1, 1;\nJOIN: bra TOP;")
    assert made.post_dominators == (3, 3, 3, 4)


def test_a_jump_table_has_all_its_targets():
    made = graph("t: .branchtargets A, B, A;\nbrx.idx %r1, t;\nA: mov.u32 %r1, 0;\nB: ret;")
    assert [each.successors for each in made.blocks] == [(1, 2), (2,), (3,)]


def dominators_by_definition(root: int, rows: list[list[int]]) -> list[int | None]:
    """The dominators of a node are those without which it is not reached; the nearest is dominated by the others."""

    def reached(without: int) -> set[int]:
        seen, waiting = {root} - {without}, [root] if root != without else []
        while waiting:
            new = set(rows[waiting.pop()]) - seen - {without}
            seen |= new
            waiting += new
        return seen

    every = reached(-1)
    strict = {node: {each for each in every if each != node and node not in reached(each)} for node in every}
    return [
        next((each for each in strict[node] if strict[node] - {each} == strict[each]), None) if node in every else None
        for node in range(len(rows))
    ]


def test_dominators_are_what_their_definition_says():
    made = random.Random(15)
    for _ in range(300):
        size = made.randint(1, 9)
        rows = [[made.randrange(size) for _ in range(made.randint(0, 3))] for _ in range(size)]
        assert immediate_dominators(0, rows) == dominators_by_definition(0, rows), rows


def test_a_long_chain_does_not_recurse():
    size = 20_000
    rows = [[n + 1] for n in range(size - 1)] + [[]]
    assert immediate_dominators(0, rows) == [None, *range(size - 1)]
    assert list(itertools.chain.from_iterable(rows))[-1] == size - 1
