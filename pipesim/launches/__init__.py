"""Launches of kernels that other tools compile: their PTX and launch files, caught on a GPU or made without one."""

from __future__ import annotations

from pipesim.launches.files.compiled import CompiledLaunch
from pipesim.launches.offline.triton import triton

__all__ = ["CompiledLaunch", "triton"]
