"""Launches of kernels that other tools compile: the PTX and the launch file of one, made without a GPU."""

from __future__ import annotations

from pipesim.launches.compiled import CompiledLaunch
from pipesim.launches.offline_triton import triton

__all__ = ["CompiledLaunch", "triton"]
