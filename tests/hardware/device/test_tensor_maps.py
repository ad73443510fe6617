"""Tensor maps say no to what the copy engine cannot do; the swizzle is CUTLASS's ``Swizzle<B, 4, 3>``."""

from dataclasses import replace

import pytest

from hwkernels.device.tensor_maps import Swizzle, TensorMap, matrix, swizzle_offset
from pipesim.errors import ParameterError

MAP = TensorMap(0x1000, (256, 128), (512,), (64, 128))


def test_a_column_of_pieces_lies_in_all_banks():
    """Eight rows' pieces of one column touch each of the 32 banks once; without the swizzle they share four."""
    banks = {swizzle_offset(128 * row + 48, Swizzle.B128) % 128 for row in range(8)}
    assert len(banks) == 8
    assert len({swizzle_offset(128 * row + 48, Swizzle.NONE) % 128 for row in range(8)}) == 1


def test_pieces_of_a_row_are_exchanged_by_its_number():
    for row in range(16):
        for piece in range(8):
            assert swizzle_offset(128 * row + 16 * piece, Swizzle.B128) == 128 * row + 16 * (piece ^ row % 8)


def test_what_a_map_says():
    assert (MAP.row_bytes, MAP.box_bytes) == (128, 16384)
    assert matrix(0x1000, 128, 256, 128) == MAP
    assert matrix(0x1000, 128, 64, 128, pitch=256).strides == (512,)
    assert TensorMap(0x1000, (64, 4, 2), (128, 512), (64, 4, 1)).box_bytes == 512


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"element": "FLOAT4"}, "a tensor map of FLOAT4"),
        ({"strides": ()}, "a tensor of 2 dimensions with 0 strides and a box of 2"),
        ({"shape": (8,) * 6, "strides": (16,) * 5, "box": (8,) * 6}, "a tensor of 6 dimensions"),
        ({"address": 0x1008}, "0x1008 is not a positive multiple of 16"),
        ({"address": 0}, "0x0 is not a positive multiple of 16"),
        ({"shape": (256, 0)}, "dimension 1 has 0 elements"),
        ({"box": (64, 257)}, "the box has 257 elements in dimension 1"),
        ({"strides": (510,)}, "dimension 1 has a stride of 510 bytes"),
        ({"box": (4, 128)}, "the box's rows have 8 bytes, which is not a multiple of 16"),
        ({"box": (128, 128)}, "the box's rows have 256 bytes, more than the 128 of the swizzle"),
    ],
)
def test_what_the_copy_engine_cannot_do_is_refused(change, said):
    with pytest.raises(ParameterError, match=said):
        replace(MAP, **change)
