"""The JSON form: one pinned text, round trips, and damage of every kind that ends in one error."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.bounds import MAX_ACCESSES
from pipesim.errors import ProgramFormatError
from pipesim.model import program_json
from pipesim.model.ops import OPERANDS, Op, Space
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier, Tile
from pipesim.protocols.hopper.producer_consumer import producer_consumer

TINY = """{
  "format": "pipesim-program",
  "version": 1,
  "name": "tiny",
  "params": {"tiles": 1},
  "ctas": 1,
  "grid": 132,
  "smem_bytes": 72,
  "registers": 1,
  "agents": [[0, 0, 4294967295, "load", 0], [0, 1, 1, "mma", 0]],
  "barriers": [[0, "full", 0]],
  "named_barriers": [[0, 1]],
  "accesses": [["SHARED", 0, 8, 64]],
  "tiles": [["tile", "SHARED", 0, 8, 64, 1]],
  "loops": ["tiles"],
  "sources": ["a.py:1", "\\u00e9.py:2"],
  "notes": ["by hand"],
  "pipelines": ["EpiLoadPipeline"],
  "launch_registers": 168,
  "code": [
   [
    [0, "INIT", 0, 1],
    [0, "TMA_LOAD", 0, 0, 64, 7, 0],
    [1, "ARRIVE", 0, 1, 64, -1, 0]
   ],
   []
  ]
}
"""

TINY_PROGRAM = Program(
    name="tiny",
    params={"tiles": 1},
    agents=(Agent(0, 0, (1 << 32) - 1, "load", 0), Agent(0, 1, 1, "mma", 0)),
    barriers=(Barrier(0, "full", 0),),
    accesses=(Access(Space.SHARED, 0, 8, 64),),
    tiles=(Tile("tile", Space.SHARED, 0, 8, 64, 1),),
    code=(((1, 0, 1), (30, 0, 0, 64, 7, 0), (3, 0, 1, 64, -1, 0)), ()),
    lines=((0, 0, 1), ()),
    sources=("a.py:1", "é.py:2"),
    named_barriers=((0, 1),),
    loops=("tiles",),
    registers=1,
    grid=132,
    smem_bytes=72,
    notes=("by hand",),
    pipelines=("EpiLoadPipeline",),
    launch_registers=168,
)


def test_the_text_of_a_tiny_program_is_pinned() -> None:
    assert dumps(TINY_PROGRAM) == TINY
    assert loads(TINY) == TINY_PROGRAM


def test_a_flattened_protocol_comes_back_as_it_was() -> None:
    for params in ({"tiles": 0}, {"stages": 1, "tiles": 3}, {"tiles": 9, "consumer_warps": 3, "arrive_lanes": 32}):
        program = producer_consumer(**params).flatten(params)
        text = dumps(program)
        assert loads(text) == program
        assert dumps(loads(text)) == text
        assert all(type(v) is int for code in loads(text).code for op in code for v in op)


def test_a_commit_to_peers_comes_back_and_one_to_nobody_is_refused() -> None:
    commit = (int(Op.COMMIT_MULTICAST), 3, 0, 1)
    program = replace(TINY_PROGRAM, code=((commit,),), lines=((0,),), agents=TINY_PROGRAM.agents[:1])
    assert loads(dumps(program)).code == ((commit,),)
    with pytest.raises(ProgramFormatError, match="an empty mask signals no CTA"):
        replace(program, code=(((*commit[:3], 0),),))


def operand(draw: st.DrawFn, name: str, sizes: dict[str, int], left: int) -> int:
    if name in sizes:
        return draw(st.integers(0, sizes[name] - 1))
    if name == "skip":
        return draw(st.integers(0, left))
    if name == "semantics":
        return draw(st.sampled_from([0, 1, 8, 27, 36]))
    return draw(st.integers(0, 1))


PRINTABLE = st.characters(exclude_categories=["C", "Z"])


@st.composite
def programs(draw: st.DrawFn) -> Program:
    names = st.text(PRINTABLE, min_size=1, max_size=6)
    texts = st.text(PRINTABLE, max_size=6)
    sizes = {"barrier": 3, "access": 2, "named_barrier": 2, "register": 4, "state_register": 4, "loop": 2, "lanes": 1}
    agents = draw(st.integers(0, 3))
    code = []
    for _ in range(agents):
        kinds = draw(
            st.lists(st.sampled_from(sorted(set(Op) - {Op.COMMIT_MULTICAST, Op.LOOP_NEXT, Op.LOOP_END})), max_size=8)
        )
        code.append(
            tuple(
                (int(op), *(operand(draw, n, sizes, len(kinds) - i - 1) + 32 * (n == "lanes") for n in OPERANDS[op]))
                for i, op in enumerate(kinds)
            )
        )  # fmt: skip
    sources = tuple(draw(st.lists(texts, min_size=1, max_size=3)))
    return Program(
        name=draw(names),
        params=draw(
            st.dictionaries(
                st.from_regex("[a-z_]{1,3}", fullmatch=True), st.integers(-(1 << 63) + 1, (1 << 63) - 1), max_size=3
            )
        ),
        agents=tuple(Agent(0, i, draw(st.integers(1, ALL_LANES)), draw(names), i) for i in range(agents)),
        barriers=tuple(Barrier(0, draw(names), i) for i in range(3)),
        accesses=tuple(Access(draw(st.sampled_from(Space)), 0, draw(st.integers(0, 99)), 8) for _ in range(2)),
        tiles=(Tile(draw(names), Space.SHARED, 0, 0, 8, 2),),
        code=tuple(code),
        lines=tuple(tuple(draw(st.integers(0, len(sources) - 1)) for _ in c) for c in code),
        sources=sources,
        named_barriers=((0, 0), (0, 15)),
        loops=(draw(names), ""),
        registers=4,
        smem_bytes=draw(st.integers(0, 1 << 20)),
        notes=tuple(draw(st.lists(texts, max_size=2))),
        pipelines=tuple(draw(st.lists(names, max_size=2))),
        launch_registers=draw(st.integers(0, 256)),
    )


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(programs())
def test_random_programs_come_back_as_they_were(program: Program) -> None:
    assert loads(dumps(program)) == program


DAMAGED = {
    "": "this is not a flat program: it is not JSON",
    "\x00\x01": "this is not a flat program: it is not JSON",
    "{": "this is not a flat program: it is not JSON",
    "[" * 100_000: "this flat program is larger than pipesim reads",
    "null": 'this JSON is not a flat program: it has no "format": "pipesim-program"',
    "[]": 'this JSON is not a flat program: it has no "format": "pipesim-program"',
    '{"traceEvents": []}': 'this JSON is not a flat program: it has no "format": "pipesim-program"',
    '{"format": "pipesim-program"}': "a flat program has a version number, not None",
    '{"format": "pipesim-program", "version": "1"}': "a flat program has a version number, not '1'",
    '{"format": "pipesim-program", "version": true}': "a flat program has a version number, not True",
    '{"format": "pipesim-program", "version": 0}': "a flat program has a version number, not 0",
    '{"format": "pipesim-program", "version": 2}': "this flat program is of version 2; this pipesim reads up to 1",
    '{"format": "pipesim-program", "version": 1}': "this flat program is damaged",
}


@pytest.mark.parametrize("text", DAMAGED, ids=lambda t: repr(t[:40]))
def test_what_is_no_program_is_one_error_with_its_place(text: str) -> None:
    with pytest.raises(ProgramFormatError) as caught:
        loads(text, "some/file.json")
    assert (caught.value.fact, caught.value.place) == (DAMAGED[text], "some/file.json")


def changed(**parts: Any) -> str:
    return json.dumps({**json.loads(TINY), **parts})


#: What makes no sense in a file that is JSON, with its cause.
SENSELESS = {
    changed(agents=[[0, 0, 1, "load"], [0, 1, 1, "mma", 0]]): (
        "an entry of 'agents' is a list of cta, warp, lanes, role, index, not [0, 0, 1, 'load']"
    ),
    changed(agents=7): "'agents' is 7, not a list",
    changed(params=[]): "'params' is [], not an object",
    changed(params={"tiles": 1.5}): "1.5 should be an integer",
    changed(name=None): "None should be text",
    changed(tiles=[["t", "CACHE", 0, 0, 8, 1]]): (
        "there is no memory 'CACHE'; there are SHARED, GLOBAL, TENSOR, REGISTERS"
    ),
    changed(code=[[[0, "JUMP", 1]], []]): (
        "an operation is a list of a source, a name and operands, not [0, 'JUMP', 1]"
    ),
    changed(code=[[[0, ["INIT"], 1]], []]): (
        "an operation is a list of a source, a name and operands, not [0, ['INIT'], 1]"
    ),
    changed(code=["INIT", []]): "an agent's code is a list of operations, not 'INIT'",
    changed(code=[[["a", "INIT", 0, 1]], []]): "'a' should be an integer",
    changed(sources=["x" * 100_000, 5]): "5 should be text",
    changed(sources=[["x" * 100_000]]): "['xxxxxxxxxxxx...xxxxxxxxxxxxx'] should be text",
    changed(accesses=[["SHARED", 0, n, 8] for n in range(MAX_ACCESSES + 1)]): (
        "it has 16,385 accesses; at most 16,384 are read"
    ),
    changed(loops=5): "'loops' is 5, not a list",
    '{"format": "pipesim-program", "version": 1}': "it has no 'code'",
}


@pytest.mark.parametrize("text", SENSELESS, ids=lambda t: repr(t[-40:]))
def test_a_damaged_program_is_one_error_of_four_parts(text: str) -> None:
    with pytest.raises(ProgramFormatError) as caught:
        loads(text, "p.json")
    error = caught.value
    assert (error.fact, error.place) == ("this flat program is damaged", "p.json")
    assert error.cause == SENSELESS[text]
    assert error.correction == "write one with `pipesim run NAME --save-program FILE`"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (TINY.replace('"grid"', '"ctas"'), "the key 'ctas' is there twice in one object"),
        (TINY.replace('"load"', '"\\ud800"'), "a text in it holds half of a UTF-16 pair, which is not a character"),
        (TINY.replace("132", "NaN"), "NaN is not JSON"),
    ],
)
def test_what_json_leaves_open_is_refused(text: str, cause: str) -> None:
    with pytest.raises(ProgramFormatError, match="this is not a flat program: it is not JSON") as caught:
        loads(text, "p.json")
    assert caught.value.cause == cause


def test_a_program_of_too_many_operations_is_neither_read_nor_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_json, "MAX_OPERATIONS", 3)
    assert loads(dumps(TINY_PROGRAM)) == TINY_PROGRAM
    monkeypatch.setattr(program_json, "MAX_OPERATIONS", 2)
    with pytest.raises(ProgramFormatError) as caught:
        loads(TINY)
    assert caught.value.cause == "it has 3 operations; at most 2 are read"
    with pytest.raises(ProgramFormatError, match="tiny has 3 operations; the file of a program has at most 2"):
        dumps(TINY_PROGRAM)


def test_a_wrong_operation_in_a_file_is_named_with_file_agent_and_line() -> None:
    with pytest.raises(ProgramFormatError) as caught:
        loads(TINY.replace('"ARRIVE", 0, 1', '"ARRIVE", 4, 1'), "p.json")
    assert str(caught.value) == (
        "ARRIVE: barrier 4 is outside the table of 1\n"
        "  at: p.json: é.py:2 (load of tiny, operation 2 of agent 0)\n"
        "  probable cause: the operation there is ARRIVE barrier=4 count=1 expect=64 register=-1 semantics=0\n"
        "  try: give barrier a value of 0"
    )
    assert caught.value.exit_code == 2
