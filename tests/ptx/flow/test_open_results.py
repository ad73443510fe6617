"""Registers of tensor cores that are read before a wait for what writes them."""

from pipesim.ptx.flow.graph import graph_of
from pipesim.ptx.flow.open_results import read_on_every_way, read_too_early, used_at_once
from pipesim.ptx.flow.uses import uses_of
from pipesim.ptx.text.read import read_module
from tests.support.small_ptx import text_of

PRODUCT = " wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r10, %r11, %r12, %r13}, %rd1, %rd2, 1, 1, 1, 0, 0;\n"
CLOSE = " wgmma.commit_group.sync.aligned;\n"
READ = " add.f32 %r20, %r10, %r10;\n"
LOAD = " tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11}, [%r1];\n"


def early(body: str) -> list[str]:
    """The readers found, by their opcode."""
    (function,) = read_module(text_of(body), "small.ptx").entries
    found = read_too_early(function, graph_of(function), uses_of(function))
    return [function.body[reader].opcode for _, reader in found]


def left(groups: int) -> str:
    return f" wgmma.wait_group.sync.aligned {groups};\n"


def test_accumulators_are_read_after_the_group_that_they_are_in():
    assert early(PRODUCT + CLOSE + left(0) + READ) == []
    assert early(PRODUCT + CLOSE + CLOSE + left(1) + READ) == []
    assert early(PRODUCT + PRODUCT + CLOSE + left(0) + READ) == []


def test_and_not_before():
    assert early(PRODUCT + CLOSE + READ + left(0)) == ["add"]
    assert early(PRODUCT + CLOSE + left(1) + READ) == ["add"]
    assert early(PRODUCT + left(0) + READ) == ["add"]
    assert early(PRODUCT + CLOSE + " mov.b32 %r30, %r11;\n mul.f32 %r31, %r30, %r30;\n" + left(0)) == ["mul"]


def test_a_way_round_the_wait_is_found():
    around = " setp.eq.u32 %p1, %r1, 0;\n @%p1 bra over;\n" + left(0) + "over:\n"
    assert early(PRODUCT + CLOSE + around + READ) == ["add"]
    assert early(PRODUCT + CLOSE + around + left(0) + READ) == []


def test_a_load_of_tensor_memory_has_a_wait_of_its_own():
    assert early(LOAD + " tcgen05.wait::ld.sync.aligned;\n" + READ) == []
    assert early(LOAD + READ + " tcgen05.wait::ld.sync.aligned;\n") == ["add"]
    assert early(LOAD + " tcgen05.wait::st.sync.aligned;\n" + READ) == ["add"]


def at_once(body: str) -> bool:
    """Whether the load of tensor memory in it has ended before the warp synchronises, since its registers are used."""
    (function,) = read_module(text_of(body), "small.ptx").entries
    (load,) = [p for p, each in enumerate(function.body) if each.opcode == "tcgen05"]
    return used_at_once(function, graph_of(function), uses_of(function), load)


ARRIVE = " mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
EITHER_WAY = " setp.eq.u32 %p1, %r1, 0;\n @%p1 bra over;\n"


def test_a_load_has_ended_when_its_registers_are_used():
    assert at_once(LOAD + READ + ARRIVE)
    assert at_once(LOAD + EITHER_WAY + READ + "over:\n" + READ + ARRIVE)


def test_a_load_may_go_on_where_others_hear_of_it_before_its_registers_are_used():
    assert not at_once(LOAD + ARRIVE + READ)
    assert not at_once(LOAD + EITHER_WAY + READ + "over:\n" + ARRIVE)
    assert not at_once(LOAD + " mov.b32 %r30, %r10;\n" + ARRIVE)
    assert not at_once(LOAD)


def test_a_read_on_every_way_from_a_product_is_known_as_such() -> None:
    def certain(body: str) -> bool:
        (function,) = read_module(text_of(PRODUCT + CLOSE + body), "small.ptx").entries
        return read_on_every_way(function, graph_of(function), uses_of(function), 0)

    assert certain(READ)
    assert certain(PRODUCT + READ)
    assert certain(EITHER_WAY + READ + "over:\n" + READ)
    assert not certain(EITHER_WAY + READ + "over:\n")
