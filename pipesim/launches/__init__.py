"""Launches of kernels that other tools compile: their PTX and launch files, caught on a GPU or made without one.

An observed process imports ``pipesim.launches.observe``, and so this package: each name is imported where it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipesim.launches.files.launch_file import CompiledLaunch
    from pipesim.launches.offline import triton

__all__ = ["CompiledLaunch", "triton"]

if not TYPE_CHECKING:  # a type checker sees the imports above, and reports a name that is not among them

    def __getattr__(name: str) -> object:
        if name == "CompiledLaunch":
            from pipesim.launches.files.launch_file import CompiledLaunch

            return CompiledLaunch
        if name == "triton":
            from pipesim.launches.offline import triton

            return triton
        raise AttributeError(f"module 'pipesim.launches' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
