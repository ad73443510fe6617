"""Arrays in memory, cut to what reading a kernel asks for."""

from dataclasses import replace
from functools import partial

from pipesim.ptx import emulation
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.extract import extract, with_contents_read
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Parameter, Pointer, Struct
from pipesim.ptx.text.read import read_module

#: Trips are word 3 at the second pointer of a structure, the first one leads to data; the count is data as well.
KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 8 .b8 given[24], .param .u64 more)
{
    .reg .b64 %rd<5>; .reg .b32 %r<5>; .reg .pred %p<2>;
    .shared .align 4 .b32 word;
    ld.param.u64 %rd1, [given];
    ld.param.u64 %rd2, [given+8];
    ld.global.u32 %r2, [%rd1+400];
    st.shared.u32 [word], %r2;
    ld.global.u32 %r1, [%rd2+12];
again:
    bar.sync 0;
    sub.s32 %r1, %r1, 1;
    setp.gt.s32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""


def launch(trips: int) -> Launch:
    words = Array("s32", (9, 9, 9, trips, 9, 9))
    second = Pointer(256, (Field(0, words), Field(1024, Array("u8", (1, 2, 3))), Field(2048, Number("u32", 5))))
    first = Pointer(256, (Field(0, Array("u32", tuple(range(200)))),))
    given = Struct(24, (Field(0, first), Field(8, second), Field(16, Array("u32", (1, 2)))))
    return Launch("k", (1, 1, 1), (64, 1, 1), parameters=(Parameter("given", given), Parameter("more", Pointer(8))))


def test_an_array_ends_after_the_last_word_that_decides():
    module = read_module(KERNEL, "k.ptx")
    made = with_contents_read(module, launch(3))
    second = Pointer(256, (Field(0, Array("s32", (9, 9, 9, 3))), Field(2048, Number("u32", 5))))
    given = Struct(24, (Field(0, Pointer(256)), Field(8, second), Field(16, Array("u32", (1, 2)))))
    assert made == replace(launch(3), parameters=(Parameter("given", given), Parameter("more", Pointer(8))))
    assert extract(module, made).program == extract(module, launch(3)).program
    assert with_contents_read(module, made) == made


def test_nothing_is_left_out_of_a_kernel_that_is_not_followed_to_its_end(monkeypatch):
    monkeypatch.setattr(emulation, "EmulationLimits", partial(EmulationLimits, instructions=20_000))
    assert with_contents_read(read_module(KERNEL, "k.ptx"), launch(1 << 30)) == launch(1 << 30)
