"""``wgmma.cuh`` on the CPU: its descriptors bit by bit, and what the fields of K-major and MN-major operands mean.

The layouts are those of CUTLASS (``mma_sm90_desc.hpp``), in units of 16 bytes: K-major with 128-byte swizzle is
``((8,n),2):((8,SBO),1)``, MN-major ``((8,n),(8,k)):((1,LBO),(8,SBO))``.
"""

import re

from hwkernels.device.sources import source_file

HEADER = (source_file("wgmma.cuh")).read_text()


def field(descriptor: int, low: int, width: int) -> int:
    return descriptor >> low & (1 << width) - 1


def descriptor(address: int, leading: int, stride: int) -> int:
    """``wgmma_descriptor`` of the header, its expression evaluated here."""
    (body,) = re.findall(r"wgmma_descriptor\(unsigned address.*?return (.*?);", HEADER, re.DOTALL)
    body = re.sub(r"\(unsigned long long\)", "", body).replace("1ull", "1").replace("\n", " ")
    return int(eval(body, {"address": address, "leading": leading, "stride": stride}))  # our own header


def test_a_descriptor_has_its_fields_where_ptx_has_them():
    made = descriptor(0x12340, 8192, 1024)
    assert field(made, 0, 14) == 0x12340 >> 4
    assert field(made, 16, 14) == 8192 >> 4
    assert field(made, 32, 14) == 1024 >> 4
    assert field(made, 49, 3) == 0  # the base offset of tiles at multiples of 1,024
    assert field(made, 62, 2) == 1  # 128-byte swizzle
    rest = made & ~(0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 3 << 62)
    assert rest == 0


def test_units_of_16_bytes_may_be_added_to_a_descriptor():
    """As ``gemm_sm90.cu`` goes from one 16 of K to the next."""
    for at in (0, 0x400, 0x2F000):
        for step in (32, 64, 96):
            assert descriptor(at, 16, 1024) + step // 16 == descriptor(at + step, 16, 1024)
