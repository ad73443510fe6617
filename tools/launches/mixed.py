"""The kernel of ``mixed.cu``: compiled by NVRTC through ``cuda.core``, and launched with parameters of every kind."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver

SOURCE = Path(__file__).with_name("mixed.cu")
TRIPS = (5, 3)
WORDS = 32 + 8 + 2 + 1 + 1 + 2 + 1 + 2  #: of the parameters: map, shape, trips, n, f, d, c, out


class Shape(ctypes.Structure):
    """The structure that the kernel takes by value."""

    _fields_ = [
        ("rows", ctypes.c_int),
        ("small", ctypes.c_short),
        ("flag", ctypes.c_char),
        ("data", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("wide", ctypes.c_uint64),
    ]


def checked(result: tuple[Any, ...]) -> Any:
    """What a call of the driver gives."""
    if int(result[0]) != 0:
        raise RuntimeError(str(result[0]))
    return result[1] if len(result) == 2 else result[1:]


class Mixed:
    """The kernel with its arguments, on the current device."""

    def __init__(self) -> None:
        import torch
        from cuda.core import Device, Program, ProgramOptions

        torch.cuda.init()
        Device(0).set_current()
        program = Program(SOURCE.read_text(), "c++", ProgramOptions(arch="sm_90a", std="c++17"))
        self._made = program.compile("cubin")
        self.kernel = self._made.get_kernel("mixed")
        self.data = torch.zeros(64, 64, device="cuda", dtype=torch.bfloat16)
        self.trips = torch.tensor(TRIPS, device="cuda", dtype=torch.int32)
        self.out = torch.zeros(1 + WORDS, device="cuda", dtype=torch.int32)
        self.map = self._map()
        self.shape = Shape(7, -3, b"\x01", self.data.data_ptr() + 512, 0.5, 1 << 40 | 5)
        torch.cuda.synchronize()

    def _map(self) -> Any:
        return checked(
            driver.cuTensorMapEncodeTiled(
                driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2,
                self.data.data_ptr(),
                [driver.cuuint64_t(64), driver.cuuint64_t(64)],
                [driver.cuuint64_t(128)],
                [driver.cuuint32_t(32), driver.cuuint32_t(16)],
                [driver.cuuint32_t(1), driver.cuuint32_t(1)],
                driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B,
                driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
                driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        )

    def parameters(self) -> list[bytes]:
        """The bytes of each argument, as this program gives them."""
        map_bytes = ctypes.string_at(self.map.getPtr(), 128)
        return [
            map_bytes,
            bytes(self.shape),
            struct.pack("<Q", self.trips.data_ptr()),
            struct.pack("<i", -11),
            struct.pack("<f", 0.1),
            struct.pack("<d", 1 / 3),
            struct.pack("<B", 200),
            struct.pack("<Q", self.out.data_ptr()),
        ]

    def launch(self, count: int = 1) -> None:
        """Launch it so many times on torch's stream."""
        import torch

        held = [ctypes.create_string_buffer(each, len(each)) for each in self.parameters()]
        array = (ctypes.c_void_p * len(held))(*(ctypes.addressof(each) for each in held))
        function = driver.CUfunction(int(self.kernel.handle))
        stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
        for _ in range(count):
            checked(
                (*driver.cuLaunchKernel(function, len(TRIPS), 1, 1, 64, 1, 1, 0, stream, ctypes.addressof(array), 0), 0)
            )

    def run(self) -> bytes:
        """Launch it, and give the words that it wrote: the sum, and no addresses, which are others in each process."""
        import torch

        self.launch()
        torch.cuda.synchronize()
        return bytes(self.words()[:4])

    def words(self) -> bytes:
        """What the kernel wrote: the sum, then the words of its parameters."""
        return bytes(np.asarray(self.out.cpu()).tobytes())
