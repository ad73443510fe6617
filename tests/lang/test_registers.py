"""Register packing: the packed program does what the recorded one does, with a register for each live value."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.lang.flatten import pack_registers
from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.groups import READS_REGISTER
from pipesim.model.machine import initial_state, step
from pipesim.model.ops import OPERANDS, Op, Operation, describe
from pipesim.model.program import Program
from pipesim.model.tables import Agent, Barrier

BARRIERS = 2


@st.composite
def recordings(draw: st.DrawFn) -> list[Operation]:
    """A straight line as the recorder leaves it: every result in a register of its own, read or not, jumps forward."""
    code: list[Operation] = []
    states: list[int] = []
    answers: list[int] = []
    hidden: list[tuple[int, int]] = []  # (end of a jump's reach, first result that it may skip)
    fresh = 0
    for _ in range(draw(st.integers(0, 40))):
        until = [first for end, first in hidden if end <= len(code)]
        for first in until:  # what a jump may have skipped is nobody's to read afterwards
            states = [r for r in states if r < first]
            answers = [r for r in answers if r < first]
        hidden = [(end, first) for end, first in hidden if end > len(code)]
        bar = draw(st.integers(0, BARRIERS - 1))
        kind = draw(st.sampled_from(["arrive", "try", "state", "pending", "unless", "wait", "jump", "tx"]))
        if kind == "arrive":
            code.append((Op.ARRIVE, bar, 1, 0, fresh, 0))
            states.append(fresh)
            fresh += 1
        elif kind == "try":
            code.append((draw(st.sampled_from([Op.TRY_WAIT, Op.TEST_WAIT])), bar, draw(st.integers(0, 1)), fresh, 0))
            answers.append(fresh)
            fresh += 1
        elif kind in ("state", "pending") and states:
            held = draw(st.sampled_from(states))
            code.append((Op.TEST_STATE, bar, held, fresh, 0) if kind == "state" else (Op.PENDING_COUNT, held, fresh))
            answers.append(fresh)
            fresh += 1
        elif kind == "unless" and answers:
            code.append((Op.WAIT_UNLESS, bar, draw(st.integers(0, 1)), draw(st.sampled_from(answers)), 0))
        elif kind == "wait" and states:
            code.append((Op.WAIT_STATE, bar, draw(st.sampled_from(states)), 0))
        elif kind == "jump" and answers:
            skip = draw(st.integers(0, 4))
            code.append((Op.JUMP_IF, draw(st.sampled_from(answers)), draw(st.integers(0, 1)), skip))
            hidden.append((len(code) + skip, fresh))
        else:
            code.append((Op.EXPECT_TX, bar, 0, 0))
    longest = max((pc + 1 + op[3] for pc, op in enumerate(code) if op[0] == Op.JUMP_IF), default=0)
    code += [(Op.WORK, 1)] * (longest - len(code))
    return [(int(op[0]), *op[1:]) for op in code]


def program(code: list[Operation], registers: int) -> Program:
    return Program(
        name="packed", params={}, agents=(Agent(0, 0, 1, "r", 0),),
        barriers=tuple(Barrier(0, "b", i) for i in range(2)), accesses=(), tiles=(),
        code=(tuple(code),), lines=((0,) * len(code),), sources=("x:1",), registers=registers,
    )  # fmt: skip


def results(code: list[Operation]) -> int:
    return 1 + max((op[1 + OPERANDS[Op(op[0])].index("register")] for op in code
                    if "register" in OPERANDS[Op(op[0])] and Op(op[0]) not in READS_REGISTER), default=-1)  # fmt: skip


def read_by(operation: Operation, registers: tuple[int, ...]) -> list[int]:
    """The values that an operation reads from registers."""
    names = OPERANDS[Op(operation[0])]
    return [
        registers[value]
        for name, value in zip(names, operation[1:], strict=True)
        if name == "state_register" or (name == "register" and Op(operation[0]) in READS_REGISTER)
    ]


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(recordings(), st.integers(1, 3))
def test_the_packed_program_does_what_the_recorded_one_does(code: list[Operation], count: int) -> None:
    packed, width = pack_registers(code)
    one, two = program(code, results(code)), program(packed, width)
    word = BarrierState(count, count, 0, 0, LIVE)
    a, b = (initial_state(p)._replace(barriers=(word,) * BARRIERS) for p in (one, two))
    while a.pcs[0] < len(code):
        pc = a.pcs[0]
        assert read_by(code[pc], a.registers[0]) == read_by(packed[pc], b.registers[0]), describe(code[pc])
        left, right = step(one, a, 0), step(two, b, 0)
        assert left._replace(state=left.state._replace(registers=())) == right._replace(
            state=right.state._replace(registers=())
        )
        if left.blocked >= 0:  # whoever could release it is not here: let it pass
            a, b = (s._replace(pcs=(pc + 1,)) for s in (a, b))
        else:
            a, b = left.state, right.state


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(recordings())
def test_no_more_registers_than_live_values(code: list[Operation]) -> None:
    packed, width = pack_registers(code)
    written = {}
    last_read: dict[int, int] = {}
    for pc, op in enumerate(code):
        for name, value in zip(OPERANDS[Op(op[0])], op[1:], strict=True):
            if name == "state_register" or (name == "register" and Op(op[0]) in READS_REGISTER):
                last_read[value] = pc
            elif name == "register":
                written[value] = pc
    live = [sum(1 for r, end in last_read.items() if written[r] <= pc <= end) for pc in range(len(code))]
    assert width == max(live, default=0)
    assert [op[0] for op in packed] == [op[0] for op in code]


def test_packing_that_merged_two_live_values_would_be_seen() -> None:
    """Twin: the same run with both answers in register 0 skips a wait that should block."""
    code: list[Operation] = [
        (Op.TRY_WAIT, 0, 0, 0, 0), (Op.TRY_WAIT, 0, 1, 1, 0), (Op.WAIT_UNLESS, 0, 0, 0, 0),
        (Op.WAIT_UNLESS, 0, 0, 1, 0),
    ]  # fmt: skip
    code = [(int(op[0]), *op[1:]) for op in code]
    right = program(pack_registers(code)[0], 2)
    merged = replace(right, code=(tuple((*op[:3], 0, *op[4:]) for op in right.code[0]),))
    ends = []
    for p in (right, merged):
        state = initial_state(p)._replace(barriers=(BarrierState(1, 1, 0, 0, LIVE),) * BARRIERS)
        for _ in range(3):
            made = step(p, state, 0)
            state = made.state
        ends.append(made.blocked)
    assert ends == [0, -1]
