"""The export to Promela: the text by itself, and SPIN's verdict on it against the search."""

import re
from dataclasses import replace
from functools import cache

import pytest

from pipesim.errors import UsageError
from pipesim.findings.catalog import NO_MOVE_SHOWS
from pipesim.formats.promela import search_depth, to_promela
from pipesim.formats.promela.rules import KINDS
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.tables import Agent
from pipesim.prove.search.breadth_first import explore
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import right_ring
from tests.support.promela_examples import EXAMPLES, MODELS, example_program, ring
from tests.support.random_programs.all_operations import random_operations
from tools import judge_spin

RANDOM_PROGRAMS = 250

needs_spin = pytest.mark.skipif(bool(judge_spin.available()), reason=judge_spin.available() or "it is here")


@cache
def models() -> tuple[tuple[Program, str], ...]:
    return tuple((random_operations(seed), to_promela(random_operations(seed))) for seed in range(RANDOM_PROGRAMS))


def spin(program: Program) -> set[str]:
    return set(judge_spin.spin(program))


def searched(program: Program) -> set[str]:
    seen = explore(program, 40_000, reduced=False)
    assert seen.complete
    return {kind.name for kind in seen.kinds}


# The text


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_model_as_it_stands(name: str) -> None:
    """Written by tools/update_golden.py."""
    golden = MODELS / f"{name}.pml"
    assert to_promela(EXAMPLES[name]()) == golden.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_random_programs_take_every_operation_and_break_every_rule() -> None:
    used = {op[0] for program, _ in models() for op in program.operations}
    assert set(Op) - used == {Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END}
    named = {name for _, text in models() for name in re.findall(r"fault\((\w+)\)", text)} - {"rule"}
    assert named == set(KINDS.values()) == {kind.name.lower() for kind in set(FaultKind) - NO_MOVE_SHOWS}


def test_every_variable_is_declared_and_every_index_in_range() -> None:
    declared = re.compile(r"^ *(?:hidden )?(?:bool|bit|byte|short|int) (\w+)(?:\[(\d+)\])?", re.MULTILINE)
    for _, text in models():
        sizes = {name: int(size or 0) for name, size in declared.findall(text)}
        moves = text[text.index("provided") :]
        for name, index in re.findall(r"\b([a-z_]+)\[(\d+)\]", declared.sub("", re.sub(r"/\*.*?\*/", "", moves))):
            assert int(index) < sizes[name], name
        for rule in re.findall(r"fault\((\w+)\)", moves):
            assert rule in sizes


def test_every_jump_has_a_target_and_every_rule_a_definition() -> None:
    jumps = 0
    for _, text in models():
        for process in text.split("active proctype")[1:]:
            targets = re.findall(r"goto (\w+)", process)
            jumps += len(targets)
            assert set(targets) <= set(re.findall(r"^(\w+):", process, re.MULTILINE))
        defined = set(re.findall(r"inline (\w+)\(", text))
        called = set(re.findall(r"(?<!proctype )\b([a-z_]+)\(", re.sub(r"/\*.*?\*/", "", text)))
        assert called - defined <= {"assert", "provided"}
    assert jumps > 20


def test_a_launch_of_too_many_agents_is_refused() -> None:
    program = ring()
    agents = tuple(Agent(0, n, 1, "r", n) for n in range(251))
    many = replace(program, agents=agents, code=((),) * 251, lines=((),) * 251)
    with pytest.raises(UsageError, match="251 agents, and SPIN takes 250 processes"):
        to_promela(many)
    to_promela(replace(many, agents=agents[:250], code=((),) * 250, lines=((),) * 250))


def test_state_tokens_of_too_many_phases_are_refused() -> None:
    def arrivals(count: int, into: int) -> Program:
        code = [(Op.INIT, 0, 1), *[(Op.ARRIVE, 0, 1, 0, into, 0)] * count]
        return example_program("tokens", [code])

    with pytest.raises(UsageError, match="may go through 2048 phases or more"):
        to_promela(arrivals(2048, 0))
    to_promela(arrivals(2047, 0))
    to_promela(arrivals(2048, -1))


# SPIN


@needs_spin
@pytest.mark.parametrize(("name", "kinds"), [("ring", set()), ("cluster", {"EXITED_CTA"}), ("matrix", set())])
def test_spin_on_the_models_as_they_stand(name: str, kinds: set[str]) -> None:
    program = EXAMPLES[name]()
    assert (spin(program), searched(program)) == (kinds, kinds)


@needs_spin
@pytest.mark.parametrize("name", ["consumer_does_not_wait", "producer_never_toggles", "store_not_waited_for",
                                  "try_ignored", "exit_under_a_remote_arrive", "wgmma_wait_too_deep",
                                  "expects_too_few"])  # fmt: skip
def test_spin_sees_every_fault_of_a_wrong_twin_and_none_of_the_right_one(name: str) -> None:
    size = {"tiles": 3} if "stages" not in BROKEN[name].__annotations__ else {"stages": 1, "tiles": 2}
    wrong = BROKEN[name](**size).flatten()
    assert spin(wrong) == searched(wrong) != set()
    assert spin(right_ring(1, 2).flatten()) == set()


@needs_spin
def test_a_wrong_translation_would_be_noticed() -> None:
    program = ring()
    text = to_promela(program)
    for right, wrong, kind in [
        ("phase[0] != 1", "phase[0] != 0", "race|wrong_item"),
        ("pending[b] = pending[b] - n;", "skip;", "invalid end state"),
        ("left[0] = 64 + 1", "left[0] = 32 + 1", "invalid end state"),
    ]:
        assert right in text
        said = judge_spin.pan(text.replace(right, wrong), search_depth(program))
        assert re.search(kind, said[: said.index("errors:")]), wrong


def test_a_program_with_too_many_operations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    program = right_ring(1, 2).flatten()
    operations = sum(map(len, program.code))
    monkeypatch.setattr("pipesim.formats.promela.text.MAX_MODEL_OPERATIONS", operations)
    assert to_promela(program).startswith("/*")
    monkeypatch.setattr("pipesim.formats.promela.text.MAX_MODEL_OPERATIONS", operations - 1)
    with pytest.raises(UsageError, match=f"has {operations} operations, and a model at most {operations - 1}"):
        to_promela(program)
