"""Tensor maps as arguments of a user's kernel: how a command line spells them, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, SourceSubject
from hwkernels.capture.arguments import parse_argument, require_parameters
from hwkernels.capture.map_argument import parse_map, tensor_map
from hwkernels.capture.request import check_request
from hwkernels.capture.subprocess_capture import dump, load
from hwkernels.twins import buffers
from pipesim.errors import ParameterError
from pipesim.ptx.launch.values import TensorMap
from tests.support.paths import EXCHANGE


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    np.save(tmp_path / "m.npy", np.zeros((96, 32), dtype=np.float32))
    return tmp_path / "m.npy"


def request_of(*words: str) -> CaptureRequest:
    arguments = tuple(parse_argument(text, n) for n, text in enumerate(words))
    subject = SourceSubject(
        str(EXCHANGE / "exchange.cu"), str(EXCHANGE / "exchange.table.h"), "exchange", (4,), (160,), arguments,
        cluster=2, smem_bytes=25600, nbytes=(8192, 4096),
    )  # fmt: skip
    return CaptureRequest(subject, {"stages": 3, "math_warps": 4, "tile_bytes": 8192})


def test_a_map_of_a_files_array_has_its_dimensions_and_type(matrix: Path) -> None:
    asked = request_of(f"map:{matrix},box=32x16,swizzle=128", "out:64:sums")
    check_request(asked)
    assert load(dump(asked, None))[0] == asked
    held, described, output = asked.subject.kernel_arguments(asked)
    assert isinstance(held, buffers.Input)
    assert (held.given, held.data.nbytes) == (False, 96 * 32 * 4)
    assert described == buffers.MapOf(held.name, TensorMap("f32", (32, 96), (32, 16), (128,), swizzle="128B"))
    assert isinstance(output, buffers.Bytes)


def test_a_map_of_an_output_says_all_itself() -> None:
    asked = request_of("map:sums,type=bf16,dims=64x8,strides=256,box=64x4", "out:2048:sums")
    check_request(asked)
    described, output = asked.subject.kernel_arguments(asked)
    assert described == buffers.MapOf("sums", TensorMap("bf16", (64, 8), (64, 4), (256,)))
    assert isinstance(output, buffers.Bytes)


def test_a_map_is_a_parameter_of_128_bytes(matrix: Path) -> None:
    argument = parse_argument(f"map:{matrix},box=32x16", 0)
    require_parameters((128,), (argument,), traced=False)
    with pytest.raises(ParameterError, match="argument 0 of the kernel has 8 bytes"):
        require_parameters((8,), (argument,), traced=False)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("m.npy", "the base or the box is missing"),
        ("m.npy,box=32x16,box=1", "'box=1' is none of"),
        ("m.npy,box=32x16,colour=1", "'colour=1' is none of"),
        ("m.npy,box=32by16", "'32by16' is not a list"),
        ("m.npy,box=32x16,swizzle=96", "swizzle=96 is none of none, 32, 64, 128"),
        ("m.npy,box=32x16,type=f64", "type=f64 is none of"),
        ("sums,box=32x16", "nothing says the dimensions and the type of sums"),
    ],
)
def test_what_is_no_map(text: str, cause: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_map(text)
    assert cause in caught.value.cause


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("{m},box=64x16,swizzle=128", "the box's rows have 256 bytes, more than the 128"),
        ("{m},box=32x257", "the box has 257 elements in dimension 1"),
        ("{m},box=32x16,dims=32x97", "has 12,416 bytes, argument 0 has 12,288"),
        ("{m},box=32", "a tensor of 2 dimensions with 1 strides and a box of 1"),
        ("none,box=8x8,type=u8,dims=16x16", "there is no output none"),
    ],
)
def test_a_map_that_cannot_be(matrix: Path, text: str, fact: str) -> None:
    with pytest.raises(ParameterError, match=fact):
        check_request(request_of(f"map:{text.format(m=matrix)}"))


def test_an_array_of_another_type_asks_for_one(tmp_path: Path) -> None:
    array = np.zeros((4, 4))
    np.save(tmp_path / "a.npy", array)
    spelled = parse_map(f"{tmp_path / 'a.npy'},box=4x4")
    with pytest.raises(ParameterError, match="a tensor map of float64 is not known"):
        tensor_map(spelled, "argument 0", array, array.nbytes)
