"""What a cubin says of its kernel's parameters, without a GPU; and what it is not believed."""

from dataclasses import replace

import pytest

from hwkernels.capture.arguments import check_arguments, parse_argument, sizes_in_cubin
from hwkernels.device.compile import CompiledKernel, compile_source
from pipesim.errors import ParameterError
from tests.support.paths import EXAMPLES

ROWSUM = EXAMPLES / "rowsum.cu"


@pytest.fixture
def compiled(tmp_path):
    def compiled(text: str, entry: str = "") -> CompiledKernel:
        (tmp_path / "k.cu").write_text(text)
        return compile_source(tmp_path / "k.cu", {}, (), entry)

    return compiled


@pytest.fixture(scope="module")
def builds() -> dict[str, CompiledKernel]:
    return {name: compile_source(ROWSUM, {"PIPESIM_TRACE": str(int(name == "traced"))}) for name in ("plain", "traced")}


def test_of_several_kernels_the_named_one(compiled):
    text = "template <class T> __global__ void k(T t) {}\n__global__ void l(int *a, int b) { *a = b; }"
    assert sizes_in_cubin(compiled(text, "k<short>")) == (2,)
    assert sizes_in_cubin(compiled(text, "l")) == (8, 4)


@pytest.mark.slow
def test_a_cubin_that_cannot_be_read_says_nothing(builds):
    plain = builds["plain"]
    assert sizes_in_cubin(plain) == (8, 8, 4)
    assert sizes_in_cubin(replace(plain, entry="other")) is None
    cut = {sizes_in_cubin(replace(plain, cubin=plain.cubin[:size])) for size in range(0, len(plain.cubin) - 1000, 97)}
    assert cut == {None}
    assert sizes_in_cubin(replace(plain, cubin=b"text" + plain.cubin[4:])) is None


@pytest.mark.parametrize("byte", [0x17, 0x19])
def test_sizes_that_do_not_add_up_are_not_believed(builds, byte):
    """An entry of the section under another number, as another version of the compiler might write it."""
    cubin = bytearray(builds["plain"].cubin)
    entry = bytes((0x04, 0x17, 12, 0)) if byte == 0x17 else bytes((0x03, 0x19, 20, 0))
    at = cubin.index(entry)
    cubin[at + 1] = 0x7F
    assert sizes_in_cubin(replace(builds["plain"], cubin=bytes(cubin))) is None


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ("zero:8 zero:8", "the kernel takes 3 arguments, but 2 were given"),
        ("zero:8 zero:8 i32:1 i32:1", "the kernel takes 3 arguments, but 4 were given"),
        ("zero:8 zero:8 i64:1", "argument 2 of the kernel has 4 bytes, and i64:1 has 8"),
        ("zero:8 u32:1 i32:1", "argument 1 of the kernel has 8 bytes, and u32:1 has 4"),
    ],
)
def test_arguments_are_held_against_the_builds(builds, words, fact):
    def given(text):
        return [parse_argument(word, n) for n, word in enumerate(text.split())]

    check_arguments(given("zero:8 zero:8 i32:1"), builds)
    with pytest.raises(ParameterError) as caught:
        check_arguments(given(words), builds)
    assert caught.value.fact == fact
