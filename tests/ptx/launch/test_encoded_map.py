"""Tensor maps out of their bytes: as the driver and the CuTe DSL made them, and bytes that are none."""

import random

import pytest

from pipesim.ptx.launch.encoded_map import MAP_BYTES, decoded_map
from pipesim.ptx.launch.values import TensorMap

#: What cuTensorMapEncodeTiled and Im2col of driver 580.159 made on an H100, without the zeros at the end; the last two
#: are of the CuTe DSL's host code (FlashAttention 4), with what was on its stack behind the first 64 bytes.
ENCODED = [
    (("009190a2257f0000006000000000000000000000000000000000000000000000d7000000000000000000000000000000000000000000007f"
     "000000000000000080000000000000000004000000000000000000000000000000000000"),
     TensorMap("u8", (216,), (128,), swizzle="128B")),
    (("008a90f7127f0000c08b0700b86235f2dd0c0000300f000086a84c560140000003000000ffff0f00ff010000ff3f00008fe6ec5a5c740007"
     "0384841f0000000080b50000"),
     TensorMap("tf32", (4, 1048576, 512, 16384, 1525474960), (8, 4, 133, 133, 32),
               (133736835968, 52688, 62208, 298043738208), (5, 4, 2, 3, 8), interleave="16B")),
    (("00832e0c0a7f0000214504006eac1500bc1d0000000000000000000000000000ff030000590f00000100000000000000000000006300001f"
     "03000300bd010000806f0000000000000002000000000000000000000000000000000000"),
     TensorMap("bf16", (1024, 3930, 2), (32,), (22726368, 121792), (4, 5, 2), "64B", pixels=446)),
    (("0087ac520e7f000010c406000808000000000000000000000000000000000000978813ed370000000000000000000000000000001400000f"
     "be00000000000000f402000000000000000200000000000000"),
     TensorMap("f32_ftz", (3977480344, 56), (16, 191), (32896,), (5, 3), "64B")),
    (("401cc0b2345600003265040008000000100000001000000000000000000000003f000000010000000000000000000000000000000000003f"
     "015f00000000000000000000000000010058beb23456000030a60446ff7f0000c7a50446ff7f0000e091178ce47f0000"),
     TensorMap("bf16", (64, 2, 1, 1), (64, 2, 96, 1), (128, 256, 256), swizzle="128B")),
    (("007edc61de5500003265240020000000100000000040000000000000000000007f000000ff0100000100000000000000000000000000003f"
     "7f000000"), TensorMap("bf16", (128, 512, 2, 1), (64, 128, 1, 1), (512, 256, 262144), swizzle="128B")),
]  # fmt: skip


def whole(text: str) -> bytes:
    return bytes.fromhex(text).ljust(MAP_BYTES, b"\0")


@pytest.mark.parametrize(("text", "made"), ENCODED)
def test_a_map_comes_back_out_of_its_bytes(text: str, made: TensorMap) -> None:
    assert decoded_map(whole(text)) == made


def test_other_bytes_are_no_map() -> None:
    values = random.Random(0)
    assert all(decoded_map(values.randbytes(MAP_BYTES)) is None for _ in range(1000))
    assert decoded_map(bytes(MAP_BYTES)) is None
