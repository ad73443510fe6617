"""Triton's driver object without a GPU: it compiles for a target and notes each launch (Triton 3.4 and newer)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

MAX_SHARED = 232_448  #: bytes that a CTA of sm_90 and sm_100 may have
_SMS = {90: 132, 100: 148}


class Noted(NamedTuple):
    """A launch that would have run: the compiled kernel's source and metadata, the grid, and the arguments."""

    source: Any
    metadata: Any
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]


class OfflineDriver:
    """Stands for ``triton.runtime.driver.active``: everything that a launch asks of it, and no device."""

    def __init__(self, target: Any) -> None:
        self.noted: list[Noted] = []
        self._target = target
        properties = {"max_shared_mem": MAX_SHARED, "multiprocessor_count": _SMS.get(target.arch, 132), "warpSize": 32}
        properties |= {"max_num_regs": 65536, "mem_clock_rate": 1, "mem_bus_width": 1, "sm_clock_rate": 1}
        self.utils = SimpleNamespace(
            load_binary=lambda *_: (None, None, 0, 0, 1024),
            unload_module=lambda *_: None,
            get_device_properties=lambda _device: properties,
            cuOccupancyMaxActiveClusters=lambda *_: 1,
        )

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        """What Triton calls to launch a compiled kernel: three sizes of the grid, six of the launch, arguments."""

        def launch(x: int, y: int, z: int, *rest: Any) -> None:
            self.noted.append(Noted(source, metadata, (x, y, z), rest[6:]))

        return launch

    def get_current_target(self) -> Any:
        """The target that was asked for."""
        return self._target

    def get_current_device(self) -> int:
        """A number of its own for each architecture: a kernel remembers its target by the device."""
        return int(self._target.arch)

    def set_current_device(self, _device: int) -> None:
        """There is one."""

    def get_current_stream(self, _device: int = 0) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
        """Of the target."""
        arch: int = self._target.arch
        return divmod(arch, 10)

    def get_active_torch_device(self) -> Any:
        """PyTorch's device whose tensors have no memory."""
        import torch

        return torch.device("meta")

    def map_python_to_cpp_type(self, kind: str) -> str:
        """As in the source of a launcher; nothing compiles one."""
        return kind


@contextmanager
def offline(arch: int) -> Iterator[OfflineDriver]:
    """Within it, Triton compiles for an architecture (90, 100) and notes launches; then its own driver is back."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    mine = OfflineDriver(GPUTarget("cuda", arch, 32))
    before = driver._active  # noqa: SLF001  # reading the property would look for a GPU
    driver.set_active(mine)
    try:
        yield mine
    finally:
        driver._active = before  # noqa: SLF001
