"""The memory that a launch gives a kernel."""

import pytest

from pipesim.errors import LaunchFileError
from pipesim.ptx.launch.image import GRID_WORKSPACE, PARAMETERS, Image
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Parameter, Pointer, Struct, TensorMap
from tests.support.ptx_text import kernel

MAP = TensorMap("bf16", (64, 64), (64, 64), (128,))
PARAMS = ".param .align 64 .b8 map[128], .param .u32 n, .param .u64 p, .param .align 64 .b8 s[192], .param .f32 x"


def image(*contents):
    parameters = tuple(Parameter(name, each) for name, each in zip("anpsx", contents, strict=True))
    return Image(Launch("k", (1, 1, 1), (32, 1, 1), parameters=parameters), kernel("ret;", PARAMS))


def test_words_of_the_parameters_are_known_where_the_file_gives_them():
    made = image(MAP, Number("u32", 7), Pointer(), Struct(192, (Field(0, Number("s32", -1)),)), Number("f32", 0.5))
    assert made.parameter(128, 4) == 7
    assert made.parameter(128, 2) == 7
    assert made.parameter(192, 4) == 0xFFFFFFFF
    assert made.parameter(192, 8) is None  # half of it is not known
    assert made.parameter(0, 8) is None  # a tensor map has no words
    assert made.parameter(384, 4) == 0x3F000000
    assert made.parameter(4096, 4) is None
    assert made.describe(PARAMETERS + 128) == "byte 128 of the parameters"
    assert made.describe(5) == ""
    assert made.describe_unknown(PARAMETERS + 128) == "byte 128 of the parameters, which --set n=VALUE gives"
    assert made.describe_unknown(5) == ""
    assert [made.place(PARAMETERS + offset) for offset in (0, 128, 132)] == ["a", "n", "132"]
    two = [Parameter("a", content) for content in (MAP, Number("u32", 7), Pointer(), Struct(192, ()), Number("f32", 1))]
    shared = Image(Launch("k", (1, 1, 1), (32, 1, 1), parameters=tuple(two)), kernel("ret;", PARAMS))
    assert shared.place(PARAMETERS) == "0"  # a name that several have is none of one place


def test_a_value_that_is_left_open_is_unknown():
    made = image(MAP, Number("u32", None), Pointer(), Struct(192, ()), Number("f32", None))
    assert made.parameter(128, 4) is None
    assert made.parameter(384, 4) is None


def test_pointers_lead_to_memory_of_their_own():
    inner = Pointer(4096, (Field(4, Array("u16", (1, 2))),))
    made = image(MAP, Number("u32", 0), Pointer(contents=(Field(8, inner),)), Struct(192, ()), Number("f32", 0))
    first = made.parameter(136, 8)
    assert first is not None
    assert first % 256 == 0
    second = made.load(first + 8, 8)
    assert second is not None
    assert second % 4096 == 0
    assert second != first
    assert made.load(second + 4, 4) == 2 << 16 | 1
    assert made.load(second, 4) is None
    assert made.load(first + 16, 4) is None
    assert made.describe(second + 4) == "byte 4 at parameter 2 (p), byte 8"
    assert made.describe_unknown(first + 16) == "byte 16 at parameter 2 (p), which --set p:16=VALUE gives"
    assert made.describe_unknown(second) == "byte 0 at parameter 2 (p), byte 8, which --set p:8:0=VALUE gives"


def test_tensor_maps_are_found_by_their_address():
    fields = (Field(64, MAP),)
    made = image(MAP, Number("u32", 0), Pointer(contents=fields), Struct(192, fields), Number("f32", 0))
    behind = made.parameter(136, 8)
    assert behind is not None
    assert [made.tensor_map(at) for at in (PARAMETERS, PARAMETERS + 192 + 64, behind + 64)] == [MAP] * 3
    assert made.tensor_map(PARAMETERS + 64) is None


def test_a_bf16_value():
    made = Image(
        Launch("k", (1, 1, 1), (32, 1, 1), parameters=(Parameter("", Number("bf16", 1.5)),)),
        kernel("ret;", ".param .b16 h"),
    )
    assert made.parameter(0, 2) == 0x3FC0


@pytest.mark.parametrize(
    ("contents", "fact"),
    [
        ((), "the launch file has 0 parameters, and k has 1"),
        ((Number("u32", 1), Number("u32", 1)), "the launch file has 2 parameters, and k has 1"),
        ((Number("u64", 1),), "parameter 0 has 8 bytes in the launch file and 4 in k"),
    ],
)
def test_a_launch_of_another_kernel(contents, fact):
    launch = Launch("k", (1, 1, 1), (32, 1, 1), parameters=tuple(Parameter("", each) for each in contents))
    with pytest.raises(LaunchFileError, match=fact):
        Image(launch, kernel("ret;", ".param .u32 n"))


def test_the_workspace_of_grid_sync_is_no_memory_of_a_parameter():
    launch = Launch("k", (1, 1, 1), (32, 1, 1), parameters=tuple(Parameter("", Pointer()) for _ in range(8)))
    made = Image(launch, kernel("ret;", ", ".join(f".param .u64 p{n}" for n in range(8))))
    assert made.describe(GRID_WORKSPACE + 4) == "byte 4 at the workspace of grid.sync()"
    assert made.place(GRID_WORKSPACE + 4) == ""
