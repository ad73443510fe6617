"""What is recorded of accesses to global memory: bytes, where among an agent's operations, and what is not known."""

import pytest

from pipesim.ptx.emulate.global_memory.global_accesses import AccessKind, GlobalAccesses
from pipesim.ptx.emulation import emulate
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.prepare import on_global_memory, prepare
from pipesim.ptx.text.read import read_module
from tests.support.small_ptx import SET_UP, text_of, word

START = SET_UP.format(first=1, count=1) + """ ld.param.u64 %rd1, [words];
 ld.param.u32 %r6, [n];
 mov.u32 %r5, %ctaid.x;
 mul.wide.u32 %rd2, %r5, 512;
 mul.wide.u32 %rd3, %r2, 4;
 add.u64 %rd4, %rd1, %rd2;
 add.u64 %rd5, %rd4, %rd3;
 setp.lt.u32 %p3, %r2, 8;
"""  # fmt: skip
BASE = 1 << 40
BULK = "cp.async.bulk.global.shared::cta.bulk_group"
DECIDES = " ld.global.u32 %r9, [%rd4+64];\n setp.eq.u32 %p5, %r9, 0;\n"


def recorded(body: str, n: int | None = 7) -> GlobalAccesses:
    launch = Launch("kernel", (4, 1, 1), (32, 1, 1), parameters=(Parameter("", Pointer()), Parameter("", word(n))))
    module = read_module(text_of(START + body, ".param .u64 words, .param .u32 n"), "small.ptx")
    found = emulate(on_global_memory(prepare(module, launch))).cluster.global_accesses
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("body", "kind", "ranges", "sure"),
    [
        (" st.global.u32 [%rd5], %r2;\n", AccessKind.STORE, [(0, 128)], True),
        (" @%p3 st.global.u32 [%rd5+8], %r2;\n", AccessKind.STORE, [(8, 40)], True),
        (" @%p3 bra less;\n ld.global.nc.u32 %r9, [%rd5];\nless:\n", AccessKind.LOAD, [(32, 128)], True),
        (" st.global.v4.u32 [%rd4], {%r2, %r2, %r2, %r2};\n", AccessKind.STORE, [(0, 16)], True),
        (" red.global.add.u32 [%rd4], 1;\n", AccessKind.ATOMIC, [(0, 4)], True),
        (f" @!%p0 {BULK} [%rd4], [tile], 64;\n", AccessKind.BULK_STORE, [(0, 64)], True),
        (f"{DECIDES} @%p5 st.global.u32 [%rd4], 0;\n", AccessKind.STORE, [(0, 4)], False),
    ],
)  # fmt: skip
def test_each_access_has_its_bytes_in_terms_of_the_cta(
    body: str, kind: AccessKind, ranges: list[tuple[int, int]], sure: bool
) -> None:
    (found,) = [each for each in recorded(body) if each.kind is kind]
    assert [(low - BASE, high - BASE) for low, high in found.ranges] == ranges
    assert [(atom.name, factor) for atom, factor in found.terms] == [("blockIdx.x", 512)]
    assert found.sure is sure


def test_it_lies_between_the_operations_of_its_agent() -> None:
    found = [each.index for each in recorded(" st.global.u32 [%rd5], 0;\n bar.sync 0;\n st.global.u32 [%rd5], 1;\n")]
    assert found == [found[0], found[0] + 1]


SCATTER = """ ld.global.u32 %r9, [%rd4];
 mul.wide.u32 %rd7, %r9, 4;
 add.u64 %rd8, %rd1, %rd7;
 st.global.u32 [%rd8], 0;
"""
POLLED = """again:
 st.global.u32 [%rd4], 0;
 ld.global.u32 %r9, [%rd4+64];
 setp.eq.u32 %p5, %r9, 0;
 @%p5 bra again;
"""


@pytest.mark.parametrize("body", [SCATTER, POLLED])
def test_what_data_decides_is_left_open_with_what_decides_it(body: str) -> None:
    found = recorded(body).left_open.values()
    assert found
    assert all("byte 0 at parameter 0" in leaf.what or "byte 64 at parameter 0" in leaf.what for leaf in found)
