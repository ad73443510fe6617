"""``--set``: words of a launch given on the command line."""

import pytest

from pipesim.errors import ParameterError
from pipesim.ptx.launch.settings import with_settings
from pipesim.ptx.launch.values import Array, Content, Field, Launch, Number, Parameter, Pointer, Struct, TensorMap
from tests.support.ptx_text import kernel

FUNCTION = kernel("ret;", ".param .u32 n, .param .u64 p, .param .align 8 .b8 s[24], .param .align 64 .b8 m[128]")
BEHIND = (Field(0, Array("u32", (1, 2))), Field(8, Pointer()))
INSIDE = (Field(8, Number("f32", 0.0)), Field(16, Pointer()))
GIVEN: tuple[Content, ...] = (Number("s32", None), Pointer(contents=BEHIND), Struct(24, INSIDE), TensorMap())


def after(*settings: str) -> list[Content]:
    parameters = tuple(Parameter(name, each) for name, each in zip("npsm", GIVEN, strict=True))
    launch = Launch("k", (1, 1, 1), (32, 1, 1), parameters=parameters)
    return [each.content for each in with_settings(launch, FUNCTION, settings).parameters]


@pytest.mark.parametrize(
    ("setting", "number", "content"),
    [
        ("0=5", 0, Number("s32", 5)),
        ("n=-1", 0, Number("s32", -1)),
        ("0x0=0x10", 0, Number("s32", 16)),
        ("n=u16:3", 0, Number("u16", 3)),
        ("n=f32:1.5", 0, Number("f32", 1.5)),
        ("s=1.5", 2, Struct(24, (Field(0, Number("f32", 1.5)), *INSIDE))),
        ("8=7", 1, Number("u64", 7)),
        ("8:4=9", 1, Pointer(contents=(Field(0, Array("u32", (1, 9))), Field(8, Pointer())))),
        ("p:16=9", 1, Pointer(contents=(*BEHIND, Field(16, Number("u32", 9))))),
        ("p:16=9,8", 1, Pointer(contents=(*BEHIND, Field(16, Number("u32", 9)), Field(20, Number("u32", 8))))),
        ("p:16=u16:9,8", 1, Pointer(contents=(*BEHIND, Field(16, Number("u16", 9)), Field(18, Number("u16", 8))))),
        ("p:8:4=9", 1,
         Pointer(contents=(Field(0, Array("u32", (1, 2))), Field(8, Pointer(contents=(Field(4, Number("u32", 9)),)))))),
        ("16=4", 2, Struct(24, (Field(0, Number("u32", 4)), *INSIDE))),
        ("s=u64:4", 2, Struct(24, (Field(0, Number("u64", 4)), *INSIDE))),
        ("24=1.5", 2, Struct(24, (Field(8, Number("f32", 1.5)), Field(16, Pointer())))),
        ("s+8=1.5", 2, Struct(24, (Field(8, Number("f32", 1.5)), Field(16, Pointer())))),
        ("params+24=1.5", 2, Struct(24, (Field(8, Number("f32", 1.5)), Field(16, Pointer())))),
        ("32:0=1", 2, Struct(24, (INSIDE[0], Field(16, Pointer(contents=(Field(0, Number("u32", 1)),)))))),
        ("--box m=bf16:64,128", 3, TensorMap("bf16", box=(64, 128))),
        ("--box 64=u4_align8:64,4,3,2,1", 3, TensorMap("u4_align8", box=(64, 4, 3, 2, 1))),
        ("--box 8:128=f32:8", 1, Pointer(contents=(*BEHIND, Field(128, TensorMap("f32", box=(8,)))))),
        ("20=0x100000000", 2, Struct(24, (Field(4, Number("u64", 1 << 32)), *INSIDE))),
    ],
)  # fmt: skip
def test_a_word_is_set(setting, number, content):
    assert after(setting) == [*GIVEN[:number], content, *GIVEN[number + 1 :]]


@pytest.mark.parametrize(
    ("setting", "fact"),
    [
        ("0", "--set 0: expected a place and a value"),
        ("=4", "--set =4: expected a place and a value"),
        ("n=", "--set n=: expected a place and a value"),
        ("x=1", "the launch file names no parameter x; in order they are n at 0, p at 8, s at 16, m at 64"),
        ("4096=1", "the kernel has no parameter 4096"),
        ("n=abc", "'abc' is not a number"),
        ("n+4=1", "the launch file names no parameter n+4"),
        ("n=q7:1", "q7 is not a type"),
        ("n=1.5", "1.5 is not a whole number"),
        ("n=0x100000000", "4294967296 does not fit s32"),
        ("2=1", "byte 2 is inside of a value"),
        ("n:0=1", "the launch file has a value at this place, not a pointer"),
        ("p:x=1", "expected a place and a value"),
        ("p:x=1,2", "'1,2' is not a number"),
        ("p:4=1,y", "'y' is not a number"),
        ("s:0=1", "no pointer is known at byte 0"),
        ("36=1", "there is nothing that can be given at this place"),
        ("m=1", "there is no word at this place"),
        ("--box m", "--box m: expected a place and sizes"),
        ("--box m=64,128", "the launch file does not say the type of this map's elements"),
        ("--box m=half:64", "half is not the type of an element"),
        ("--box m=f16:64,0", "expected 1 to 5 sizes from 1 to 65,536"),
        ("--box m=f16:1,1,1,1,1,1", "expected 1 to 5 sizes from 1 to 65,536"),
        ("--box n=f16:64", "there is no tensor map at this place"),
        ("--box 16=f16:64", "byte 0 is after its end"),
        ("--box x=f16:64", "the launch file names no parameter x; in order they are n at 0"),
    ],
)
def test_what_cannot_be_set(setting, fact):
    with pytest.raises(ParameterError) as raised:
        after(setting)
    assert fact in raised.value.fact
    assert raised.value.correction


def test_sizes_of_a_launch_may_be_given_in_several_dimensions() -> None:
    launch = Launch("k", (1, 1, 1), (32, 1, 1))
    found = with_settings(launch, kernel("ret;"), ["grid=8,4", "cluster=2", "block.y=2"])
    assert (found.grid, found.cluster, found.block) == ((8, 4, 1), (2, 1, 1), (32, 2, 1))
    with pytest.raises(ParameterError, match="expected a count"):
        with_settings(launch, kernel("ret;"), ["grid=8,0"])
