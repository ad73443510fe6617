"""Every operation stands wherever one must stand: a place that was forgotten is an error here, not silence."""

import ast
from pathlib import Path
from typing import get_args

import pytest

from pipesim.explain.operation_words import operation_in_short, operation_in_words
from pipesim.formats.promela import to_promela
from pipesim.model import groups
from pipesim.model.groups import LOOP_MARKS
from pipesim.model.machine import initial_state, step
from pipesim.model.ops import AT, OPERANDS, Op, OperandName, Operation, Space, describe
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.model.tables import Access, Agent, Barrier, Tile
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.check import check
from pipesim.timed.costs import Prices
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import OPTIONAL
from pipesim.trace.sites import RECORDED, kinds, optional_kinds

ROOT = Path(__file__).parents[2]
EVERY = list(Op)

#: A value for each operand with which every operation is one of :func:`program`.
VALUES: dict[OperandName, int] = {
    "barrier": 0, "count": 1, "expect": 0, "register": 0, "semantics": 0, "bytes": 16, "parity": 1, "state_register": 0,
    "lanes": 32, "noinc": 0, "named_barrier": 0, "threads": 32, "fence": 0, "access": 0, "item": 0, "cta_mask": 1,
    "engine": 0, "groups": 0, "cycles": 8, "value": 0, "skip": 0, "loop": 0, "trips": 1, "registers": 24,
}  # fmt: skip


def example(op: Op) -> Operation:
    """One operation of this kind."""
    return (int(op), *(VALUES[name] for name in OPERANDS[op]))


def program(*code: Operation) -> Program:
    """One agent with these operations after the init of the barrier and, for the mark of a loop, its begin."""
    begun = [example(Op.LOOP_BEGIN)] if any(op[0] in LOOP_MARKS - {Op.LOOP_BEGIN} for op in code) else []
    code = (*begun, example(Op.INIT), *code)
    return Program(
        "made", {}, (Agent(0, 0, 1, "only", 0),), (Barrier(0, "bar", 0),), (Access(Space.SHARED, 0, 0, 16),),
        (Tile("tile", Space.SHARED, 0, 0, 16, 1),), (code,), ((0,) * len(code),), ("made.py:1",),
        named_barriers=((0, 1),), loops=("trips",), registers=1,
    )  # fmt: skip


def test_names_of_operands_are_those_of_the_table() -> None:
    assert set(get_args(OperandName)) == set(AT) == set(VALUES)
    assert set(OPERANDS) == set(Op)


@pytest.mark.parametrize("op", EVERY)
def test_the_machine_has_a_rule(op: Op) -> None:
    made = program(example(op))
    state = initial_state(made)
    for _ in made.code[0][:-1]:
        before = step(made, state, 0)
        assert not before.faults
        state = before.state
    assert step(made, state, 0) is not None


@pytest.mark.parametrize("op", EVERY)
def test_json_and_words(op: Op) -> None:
    made = program(example(op))
    assert loads(dumps(made)) == made
    assert describe(example(op)).startswith(op.name)
    assert operation_in_words(made, example(op)).strip()
    assert operation_in_short(made, example(op)).strip()


@pytest.mark.parametrize("op", EVERY)
def test_the_simulation_has_a_price(op: Op) -> None:
    assert Prices(program(example(op)), load_profile("h100"), traced=True)(example(op)).busy >= 0


def test_what_has_no_price_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipesim.timed.costs.ISSUE_ONLY", frozenset())
    with pytest.raises(AssertionError, match="SETMAXNREG has no price"):
        Prices(program(), load_profile("h100"), traced=False)(example(Op.SETMAXNREG))


@pytest.mark.parametrize("op", EVERY)
def test_the_proof_and_the_model_of_spin_know_it(op: Op) -> None:
    made = program(example(op))
    assert check(made, max_states=500).verdict is not None
    assert "proctype" in to_promela(made)


@pytest.mark.parametrize("op", EVERY)
def test_an_author_can_write_it(op: Op) -> None:
    if op is Op.JUMP_IF:
        pytest.skip("only programs that no author of Python wrote jump")
    sources = (path.read_text() for path in (ROOT / "pipesim" / "lang").glob("*.py"))
    assert any(f"Op.{op.name}" in source for source in sources)


@pytest.mark.parametrize("op", EVERY)
def test_the_description_of_the_format_lists_it(op: Op) -> None:
    operands = ", ".join(f"`{name}`" for name in OPERANDS[op])
    assert f"| `{op.name}` | {int(op)} | {operands} |" in (ROOT / "docs" / "flat-program.md").read_text()


@pytest.mark.parametrize("op", EVERY)
def test_what_is_recorded_leaves_events(op: Op) -> None:
    always, seldom = kinds(example(op)), optional_kinds(example(op))
    assert bool(always or seldom) == (op in RECORDED)
    assert not (always and seldom)
    assert set(seldom) <= OPTIONAL
    assert not set(always) & OPTIONAL


# groups and operands


def test_what_others_cannot_notice_is_a_list() -> None:
    """Not what is left over: a new operation that nobody has classified must not be skipped by a proof."""
    marks = {Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END}
    assert {Op.FENCE, Op.ENGINE_WORK, Op.WORK, *marks} == groups.NO_EFFECT
    assert groups.NO_EFFECT | {Op.JUMP_IF, Op.PENDING_COUNT} == groups.PRIVATE
    source = (ROOT / "pipesim" / "model" / "groups.py").read_text(encoding="utf-8")
    assert "\nNO_EFFECT = _group(" in source
    assert "\nPRIVATE = NO_EFFECT | _group(" in source


def test_every_operation_is_on_something_or_private() -> None:
    shared = (groups.ON_BARRIER, groups.MEETINGS, groups.TOUCHES_MEMORY, groups.ON_ENGINE, groups.TAKES_REGISTERS)
    families = (*shared, groups.PRIVATE)
    assert frozenset().union(*families) == groups.EVERY
    assert groups.PRIVATE.isdisjoint(groups.ON_BARRIER | groups.MEETINGS | groups.TOUCHES_MEMORY | groups.MAY_BLOCK)


def test_the_certificate_has_a_rule_for_all_that_others_can_notice() -> None:
    """Else a program that uses it could be called proved without a look at it."""
    rules = Certificate(program())._by_op()
    assert set(rules) >= groups.EVERY - groups.PRIVATE
    assert set(rules) & groups.PRIVATE == {Op.JUMP_IF, Op.PENDING_COUNT}, "these read registers that it does not follow"


def test_no_group_has_two_names() -> None:
    members: dict[frozenset[int], str] = {}
    for name, group in vars(groups).items():
        if isinstance(group, frozenset):
            assert group, name
            assert group not in members, f"{name} and {members[group]}"
            members[group] = name
    assert len(members) > 40


def test_a_position_is_that_of_all_its_operations() -> None:
    assert groups.position("parity") == groups.PARITY == 2
    assert groups.position("barrier", Op.COMMIT) == groups.COMMIT_BARRIER == 2
    with pytest.raises(ValueError, match=r"barrier is at \[1, 2\]"):
        groups.position("barrier", Op.ARRIVE, Op.COMMIT)


def listed(source: str) -> list[int]:
    """The lines that list several operations, or put one into a group or take it out; a table (a dict) is no list."""

    def named(node: ast.expr) -> int:
        if not isinstance(node, ast.Set | ast.Tuple | ast.List):
            return 0
        return sum(isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "Op"
                   for e in node.elts)  # fmt: skip

    if "Op." not in source:  # most files: there is nothing to look for in their tree
        return []
    nodes = list(ast.walk(ast.parse(source)))
    changed = (
        side
        for node in nodes
        if isinstance(node, ast.BinOp)
        for side in (node.left, node.right)
        if isinstance(side, ast.Set)
    )
    several = (node for node in nodes if isinstance(node, ast.expr) and named(node) > 1)
    return sorted({node.lineno for node in several} | {side.lineno for side in changed if named(side)})


@pytest.mark.slow
def test_nothing_but_the_groups_lists_operations() -> None:
    """A set of several operations, written out, belongs into ``model/groups.py``."""
    found = {
        path.relative_to(ROOT).as_posix(): listed(path.read_text())
        for part in ("pipesim", "hwkernels")
        for path in sorted((ROOT / part).rglob("*.py"))
        if path != Path(groups.__file__)
    }
    assert len(found) > 100
    assert {path: lines for path, lines in found.items() if lines} == {}


def by_place(source: str) -> list[int]:
    """The lines that read operands of an operation by the number of their position, or by their order."""
    found: set[int] = set()
    if not any(word in source for word in ("op[", "operation[", "Op.")):
        return []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=ast.Name(id="op" | "operation"), slice=ast.Constant(value=int(at))) if at:
                found.add(node.lineno)
            case ast.MatchSequence(patterns=[first, _, *_]) if "Op." in ast.unparse(first):
                found.add(node.lineno)
            case ast.Compare(comparators=[ast.Tuple(elts=[ast.Attribute(value=ast.Name(id="Op")), *_])]):
                if not isinstance(node.ops[0], ast.In | ast.NotIn):
                    found.add(node.lineno)
            case _:
                pass
    return sorted(found)


@pytest.mark.slow
def test_no_operand_is_read_by_a_number() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in sorted((ROOT / "pipesim").rglob("*.py"))
        if (lines := by_place(path.read_text()))
    }
    assert found == {}
