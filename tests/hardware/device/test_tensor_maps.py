"""Tensor maps say no to what the copy engine cannot do."""

from dataclasses import replace

import pytest

from hwkernels.device.tensor_maps import check
from pipesim.errors import ParameterError
from pipesim.ptx.launch.values import TensorMap

MAP = TensorMap("bf16", (256, 128), (64, 128), (512,), swizzle="128B")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"strides": ()}, "a tensor of 2 dimensions with 0 strides and a box of 2"),
        ({"dims": (8,) * 6, "strides": (16,) * 5, "box": (8,) * 6}, "a tensor of 6 dimensions"),
        ({"dims": (256, 0)}, "dimension 1 has 0 elements"),
        ({"box": (64, 257)}, "the box has 257 elements in dimension 1"),
        ({"strides": (510,)}, "dimension 1 has a stride of 510 bytes"),
        ({"box": (4, 128)}, "the box's rows have 8 bytes, which is not a multiple of 16"),
        ({"box": (128, 128)}, "the box's rows have 256 bytes, more than the 128 of the swizzle"),
    ],
)
def test_what_the_copy_engine_cannot_do_is_refused(change, said):
    with pytest.raises(ParameterError, match=said):
        check(replace(MAP, **change))
