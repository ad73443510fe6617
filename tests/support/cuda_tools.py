"""NVIDIA's command line tools, as their Python packages install them."""

import importlib.metadata
from pathlib import Path


def nvdisasm() -> Path:
    """The disassembler of cubins."""
    return _installed("nvidia-cuda-nvdisasm", "nvdisasm")


def _installed(distribution: str, name: str) -> Path:
    files = importlib.metadata.files(distribution) or []
    return next(Path(str(file.locate())) for file in files if file.name == name)
