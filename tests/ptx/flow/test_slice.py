"""What synchronisation depends on, and what falls away."""

import pytest

from pipesim.ptx.flow.slice import Need, Slice, slice_of
from pipesim.ptx.text.declarations import Function
from tests.support.ptx_text import kernel

PARAMS = ".param .align 64 .b8 map[128], .param .u32 n, .param .u64 p, .param .f32 beta"
TO_SHARED = "shared::cluster.global.mbarrier::complete_tx::bytes"
MULTICAST = f"{TO_SHARED}.multicast::cluster.L2::cache_hint"
SMEM = ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[1024];\n"


def sliced(body: str) -> tuple[Function, Slice]:
    function = kernel(body, PARAMS, SMEM)
    return function, slice_of(function)


def kept(body: str) -> list[str]:
    """The lines of a body, without labels, that are kept; "?" before one whose result is unknown data."""
    function, made = sliced(body)
    lines = body.splitlines()
    first = 10 + SMEM.count("\n")
    return [
        ("? " if each.position in made.opaque else "") + lines[each.line - first].strip()
        for each in function.body
        if each.position in made.kept | made.opaque.keys()
    ]


def falls_away(body: str) -> list[str]:
    """The lines that are not kept."""
    wanted = kept(body)
    return [line.strip() for line in body.splitlines() if line.strip() and line.strip() not in wanted]


def test_data_falls_away_and_addresses_stay():
    body = """ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r4, %r3, %r2;
    ld.global.f32 %f1, [%rd1];
    mul.f32 %f2, %f1, %f1;
    st.shared.f32 [%r4], %f2;
    st.global.f32 [%rd1], %f2;
    ret;"""
    assert falls_away(body) == [
        "ld.param.u64 %rd1, [p];",
        "ld.global.f32 %f1, [%rd1];",
        "mul.f32 %f2, %f1, %f1;",
        "st.global.f32 [%rd1], %f2;",
    ]


def test_branches_that_decide_whether_a_barrier_is_used_stay():
    body = """ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra END;
    mov.u32 %r2, bar;
    mbarrier.arrive.shared::cta.b64 _, [%r2];
    setp.gt.u32 %p2, %r1, 5;
    @%p2 bra MORE;
    add.u32 %r5, %r5, 1;
    MORE: add.u32 %r6, %r6, 1;
    END: ret;"""
    assert falls_away(body) == [
        "setp.gt.u32 %p2, %r1, 5;",
        "@%p2 bra MORE;",
        "add.u32 %r5, %r5, 1;",
        "MORE: add.u32 %r6, %r6, 1;",
    ]


def test_a_loop_around_a_barrier_keeps_its_counter_and_one_around_data_does_not():
    body = """mov.u32 %r9, bar;
    TOP: mbarrier.arrive.shared::cta.b64 _, [%r9];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 4;
    @%p1 bra TOP;
    DATA: add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 4;
    @%p2 bra DATA;
    ret;"""
    assert falls_away(body) == ["DATA: add.u32 %r2, %r2, 1;", "setp.lt.u32 %p2, %r2, 4;", "@%p2 bra DATA;"]


def test_a_guard_is_needed():
    body = """setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, bar;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
    ret;"""
    assert falls_away(body) == []


def test_what_is_published_through_shared_memory_is_followed_to_its_stores():
    body = """mov.u32 %r1, tile;
    ld.param.u32 %r2, [n];
    st.shared.u32 [%r1], %r2;
    bar.sync 0;
    ld.shared.u32 %r3, [%r1];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra END;
    bar.sync 1;
    END: ret;"""
    function, made = sliced(body)
    assert falls_away(body) == []
    assert {function.body[n].opcode for n in made.valued} == {"mov", "ld", "st", "setp"}


def test_an_access_whose_value_does_not_matter_is_kept_for_its_address_only():
    body = """mov.u32 %r1, tile;
    ld.shared.u32 %r3, [%r1];
    st.shared.u32 [%r1+4], %r4;
    ret;"""
    function, made = sliced(body)
    assert made.kept == {0, 1, 2, 3}
    assert [function.body[n].opcode for n in made.valued] == ["mov"]


def test_local_memory_is_followed():
    body = """.local .b32 room[4];
    mov.u64 %rd1, room;
    st.local.u32 [%rd1], %r1;
    ld.local.u32 %r2, [%rd1];
    bar.sync %r2;
    ret;"""
    assert falls_away(body) == [".local .b32 room[4];"]


def test_arguments_of_calls_are_followed_by_their_name():
    body = """.param .b32 a;
    .param .b32 other;
    st.param.b32 [other], %r5;
    st.param.b32 [a], %r1;
    ld.param.b32 %r2, [a];
    bar.sync %r2;
    ret;"""
    assert falls_away(body) == [".param .b32 a;", ".param .b32 other;", "st.param.b32 [other], %r5;"]


def test_results_of_matrix_products_are_unknown_by_themselves():
    body = """wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;
    add.f32 %f5, %f1, %f6;
    setp.gt.f32 %p1, %f5, 0f00000000;
    @%p1 bra END;
    bar.sync 0;
    END: ret;"""
    assert kept(body) == [
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;",
        "? setp.gt.f32 %p1, %f5, 0f00000000;",
        "@%p1 bra END;",
        "bar.sync 0;",
        "END: ret;",
    ]


def test_a_floating_point_parameter_that_decides_is_needed():
    body = """ld.param.f32 %f1, [beta];
    setp.eq.f32 %p1, %f1, 0f00000000;
    @%p1 bra END;
    bar.sync 0;
    END: ret;"""
    _, made = sliced(body)
    assert falls_away(body) == []
    assert [(each.need, each.offset, each.type) for each in made.wanted] == [(Need.PARAMETER, 144, "f32")]


@pytest.mark.parametrize(
    ("copy", "needed"),
    [
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], %r3, [%r4];", "r1 r3 r4"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], %r3;", "r1 r3"),
        ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], %r3, [%r4];",
         "r1 r2 r3 r4"),
        (f"cp.async.bulk.tensor.2d.{TO_SHARED} [%r1], [%rd1, {{%r2, %r3}}], [%r4];", "r1 rd1 r4"),
        (f"cp.async.bulk.tensor.2d.{MULTICAST} [%r1], [%rd1, {{%r2, %r3}}], [%r4], %r5, %rd6;",
         "r1 rd1 r4 r5"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r4];", "rd1 r4"),
        ("cp.async.cg.shared.global [%r1], [%rd2], 16, %r3;", "r1 r3"),
        ("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];", "r1"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd2], [%r1], %r3;", "r1 r3"),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {%r2, %r3}];", ""),
        ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];", "r1 r3"),
        ("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2, %r3, %r4, %r5};", "r1"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];", "r1"),
        ("atom.shared.add.u32 %r1, [%r2], %r3;", "r2"),
        ("red.shared.add.u32 [%r2], %r3;", "r2"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];", "r3"),
        ("tcgen05.st.sync.aligned.32x32b.x2.b32 [%r3], {%r1, %r2};", "r3"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], %r2;", "r1 r2"),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %r2;",
         "r1 r2"),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd2, %rd3, %r4, {%r5, %r6}, %p1;", "r1 rd2 rd3 r4"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1}, {%r2, %r3}, %rd2, %p1, 1, 1;", "rd2"),
        ("setmaxnreg.inc.sync.aligned.u32 240;", ""),
        ("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];", "r1 r2"),
        ("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2, %r3;", "r1 r2 r3"),
        ("ld.u32 %r1, [%rd2];", "rd2"),
        ("ld.global.u32 %r1, [%rd2];", ""),
    ],
)  # fmt: skip
def test_what_an_operation_depends_on(copy, needed):
    """Each register is written before by an instruction of its own; those that are kept are the needed ones."""
    names = [f"%r{n}" for n in range(1, 7)] + [f"%rd{n}" for n in range(1, 7)] + ["%p1", "%f1"]
    body = "".join(f"mov.b32 {name}, 0;\n" for name in names) + f"{copy}\nret;"
    found = [line.split()[1][1:-1] for line in kept(body) if line.startswith("mov")]
    assert sorted(found) == sorted(needed.split())


def test_the_carry_flag_is_followed():
    body = """add.cc.u32 %r1, %r2, %r3;
    addc.u32 %r4, %r5, 0;
    bar.sync %r4;
    ret;"""
    assert falls_away(body) == []


def test_opcodes_never_heard_of_are_listed_and_kept():
    _, made = sliced("novel.sync.b32 %r1, %r2;\nmov.u32 %r3, 0;\ncall outside, ();\ncall vprintf, ();\nret;")
    assert made.unread == ((12, "novel.sync.b32"), (14, "call outside"))
    assert made.kept == {0, 2, 4}


def test_what_is_wanted_of_the_launch():
    body = """mov.b64 %rd1, map;
    cvta.param.u64 %rd2, %rd1;
    mov.u32 %r1, tile;
    mov.u32 %r2, bar;
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2, {0}], [%r2];
    ld.param.u64 %rd3, [p];
    cvta.to.global.u64 %rd4, %rd3;
    mad.wide.u32 %rd5, %r9, 4, %rd4;
    ld.global.u32 %r3, [%rd5+8];
    atom.global.add.u32 %r4, [%rd4], 1;
    ld.param.u32 %r5, [n];
    bar.sync %r3, %r4;
    bar.sync %r5;
    ret;"""
    _, made = sliced(body)
    assert [tuple(each) for each in made.wanted] == [
        (Need.PARAMETER, 128, 4, "u32", (22,)),
        (Need.PARAMETER, 136, 8, "u64", (17,)),
        (Need.TENSOR_MAP, 0, 128, "1d", (16,)),
        (Need.MEMORY, 136, 4, "u32", (20,)),
        (Need.ATOMIC, 136, 4, "u32", (21,)),
    ]


def test_words_of_a_structure_that_are_loaded_together():
    function = kernel("ld.param.v2.u32 {%r1, %r2}, [s+8];\nbar.sync %r1, %r2;\nret;", ".param .align 8 .b8 s[64]")
    assert [(each.offset, each.nbytes) for each in slice_of(function).wanted] == [(8, 4), (12, 4)]
