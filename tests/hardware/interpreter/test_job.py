"""What the interpreter is given of a program is the program: every operand at its place, of random programs."""

import numpy as np
import pytest

from hwkernels.interpreter.able import barrier_base, scale, unable
from hwkernels.interpreter.job import NONE, Packed, Packing, Run, Store
from pipesim.errors import ConfigurationError
from pipesim.model.ops import OPERANDS, Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.model.tables import Access, Agent, Barrier
from pipesim.trace.sites import Record
from tests.support.random_programs import FAMILIES
from tests.support.small_programs import build

#: Where the operands of each operation stand, by the letters of ``Operation`` in interpreter.cu; barriers are apart.
PLACES: dict[Op, dict[str, str]] = {
    Op.INIT: {"c": "count"},
    Op.INVAL: {},
    Op.ARRIVE: {"c": "count", "d": "expect", "e": "register"},
    Op.ARRIVE_DROP: {"c": "count", "d": "expect", "e": "register"},
    Op.ARRIVE_NO_COMPLETE: {"c": "count", "e": "register"},
    Op.EXPECT_TX: {"c": "bytes"},
    Op.COMPLETE_TX: {"c": "bytes"},
    Op.WAIT: {"c": "parity"},
    Op.WAIT_UNLESS: {"c": "parity", "e": "register"},
    Op.TRY_WAIT: {"c": "parity", "e": "register"},
    Op.TEST_WAIT: {"c": "parity", "e": "register"},
    Op.WAIT_STATE: {"e": "register"},
    Op.TEST_STATE: {"e": "state_register", "d": "register"},
    Op.PENDING_COUNT: {"e": "state_register", "d": "register"},
    Op.CP_ASYNC_ARRIVE: {"c": "lanes", "d": "noinc"},
    Op.BAR_SYNC: {"c": "threads"},
    Op.BAR_ARRIVE: {"c": "threads"},
    Op.FENCE: {"a": "fence"},
    Op.TRANSFER_READ: {"a": "engine"},
    Op.TRANSFER_WRITE: {"a": "engine"},
    Op.COMMIT: {"a": "engine"},
    Op.WAIT_GROUP: {"a": "engine", "c": "groups"},
    Op.WORK: {"c": "cycles"},
    Op.JUMP_IF: {"e": "register", "c": "value", "d": "skip"},
}
SCALED = {"expect", "bytes"}
LETTERS = "abcdef"


def packed(program: Program, **changes: object) -> Packed:
    packing = Packing(program.ctas, max(agent.warp for agent in program.agents) + 1)
    packing.add(Run(program, **changes))  # type: ignore[arg-type]
    return packing.done()


def words_of(program: Program, found: Packed, agent: int) -> np.ndarray:
    """(operations, 8): those of one agent."""
    job, me = found.jobs[0], program.agents[agent]
    first, count, _, _ = found.words[job["agents"] :][4 * (me.cta * found.warps + me.warp) :][:4]
    begin = int(job["code"]) + 8 * int(first)
    assert count == len(program.code[agent])
    return found.words[begin : begin + 8 * int(count)].reshape(-1, 8)


def require_operands(program: Program, agent: int, op: Operation, row: np.ndarray) -> None:
    """Fails unless the words of an operation say its operands."""
    fields = dict(zip(LETTERS, map(int, row[1:7]), strict=True))
    if "barrier" in OPERANDS[Op(op[0])] and op[0] != Op.COMMIT:
        barrier = program.barriers[operand(op, "barrier")]
        names = list(dict.fromkeys((b.name, b.stage) for b in program.barriers))
        assert fields["a"] == barrier_base(program) + 8 * names.index((barrier.name, barrier.stage))
        assert fields["b"] == (0 if barrier.cta == program.agents[agent].cta else barrier.cta + 1)
    for letter, name in PLACES.get(Op(op[0]), {}).items():
        wanted = operand(op, name) * (scale(program) if name in SCALED else 1)  # type: ignore[arg-type]
        if name == "register" and wanted < 0 and op[0] not in {Op.ARRIVE, Op.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE}:
            wanted = (
                31 if op[0] != Op.WAIT_UNLESS else fields[letter]
            )  # where nobody looks; a wait that is never skipped
        assert fields[letter] == wanted & NONE, (Op(op[0]).name, name)
    if "access" in OPERANDS[Op(op[0])]:
        access = program.accesses[operand(op, "access")]
        assert (fields["c"], fields["d"]) == (access.offset * scale(program), access.nbytes * scale(program))
    if op[0] in {Op.BAR_SYNC, Op.BAR_ARRIVE}:
        assert fields["a"] == program.named_barrier(op)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("seed", range(12))
def test_every_operand_has_its_place(family: str, seed: int) -> None:
    program = FAMILIES[family](seed)
    if unable(program):
        with pytest.raises(ConfigurationError, match="cannot run"):
            packed(program)
        return
    found = packed(program)
    items: dict[int, int] = {}
    for agent, code in enumerate(program.code):
        for op, row in zip(code, words_of(program, found, agent), strict=True):
            remote = op[0] == Op.INIT and program.barriers[op[1]].cta != program.agents[agent].cta
            waits_always = op[0] == Op.WAIT_UNLESS and operand(op, "register") < 0
            assert row[0] == (Op.LOOP_NEXT if remote else Op.WAIT if waits_always else op[0])
            require_operands(program, agent, op, row)
            if "item" in OPERANDS[Op(op[0])] and program.accesses[operand(op, "access")].space is Space.SHARED:
                known = items.setdefault(operand(op, "item"), int(row[5]))
                assert known == row[5]
                assert (known == 0) == (operand(op, "item") < 0)
    assert len(set(items.values())) == len(items)  # each has a word of its own


def test_sizes_are_multiplied_where_a_copy_needs_it() -> None:
    ring = build("TMA_LOAD bytes=8 item=3", accesses=(Access(Space.SHARED, 0, 8, 8),))
    row = words_of(ring, packed(ring), 0)[0]
    assert scale(ring) == 16
    assert row.tolist() == [Op.TMA_LOAD, 256, 0, 128, 128, 1, 0, 0]
    plain = build("READ item=3", accesses=(Access(Space.SHARED, 0, 8, 8),))
    assert scale(plain) == 1


def test_a_store_has_a_place_of_its_own_and_what_it_must_leave() -> None:
    program = build(
        "TRANSFER_READ engine=BULK item=7; TRANSFER_READ engine=BULK item=-1; COMMIT engine=BULK barrier=-1"
    )
    packing = Packing(1, 1)
    packing.add(Run(program))
    packing.add(Run(program))
    found = packing.done()
    assert found.stores == ((Store(0, 64, 1), Store(64, 64, None)), (Store(128, 64, 1), Store(192, 64, None)))
    assert found.store_bytes == 256
    assert [words_of(program, found, 0)[n][6] for n in (0, 1)] == [0, 4]
    assert found.jobs["stores"].tolist() == [0, 128]


def test_runs_of_one_program_share_its_lists_and_nothing_that_changes() -> None:
    program = build("ARRIVE")
    packing = Packing(2, 3)
    for seed in (5, 6):
        packing.add(Run(program, seed, 100))
    jobs = packing.done().jobs
    assert jobs["code"][0] == jobs["code"][1]
    assert jobs["sync"][0] != jobs["sync"][1]
    assert jobs["seed"].tolist() == [5, 6]
    assert jobs["delay"].tolist() == [100, 100]


def test_records_are_numbered_from_one_with_their_parity() -> None:
    program = build("WAIT parity=1; ARRIVE")
    packing = Packing(1, 1, (((Record(0, 0, 1, 0), Record(1, 0, 1, 0)), (Record(2, 0, -1, 1),)),))
    packing.add(Run(program))
    rows = words_of(program, packing.done(), 0)
    assert rows[:, [0, 7]].tolist() == [[Op.WAIT | 1 << 8, 1 | 2 << 16], [Op.ARRIVE, 3]]


def test_an_mbarrier_of_another_cta_is_initialised_before_the_program_begins() -> None:
    program = build(
        "INIT barrier=0 count=2; INIT barrier=1 count=3",
        "WORK",
        barriers=(Barrier(0, "b", 0), Barrier(1, "b", 0)),
        ctas=2,
        agents=(Agent(0, 0, NONE, "a", 0), Agent(1, 1, NONE, "b", 0)),
    )
    found = packed(program)
    assert words_of(program, found, 0)[:, 0].tolist() == [Op.INIT, Op.LOOP_NEXT]
    job = found.jobs[0]
    assert job["init_count"] == 1
    assert found.words[job["inits"] :][:4].tolist() == [1, barrier_base(program), 3, 0]


def test_buffers_that_no_device_has_room_for_are_refused() -> None:
    huge = Access(Space.GLOBAL, 0, 0, 1 << 31)
    with pytest.raises(ConfigurationError, match=r"global memory of these runs take 2,147,483,648 bytes"):
        packed(build("WRITE item=0", accesses=(huge,)))
