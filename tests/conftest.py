"""The lanes, and who may use the GPU.

``pytest`` runs the fast lane, ``-m slow`` the slow one, ``-m "slow or not slow"`` both. A test is in the slow lane if
it, or a value of its parameters, is marked ``slow`` where it stands; no rule here marks any. ``tools/lanes.py`` counts
both lanes.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

#: Where the driver of an NVIDIA GPU says what it is.
DRIVER = Path("/proc/driver/nvidia/version")


class OneProcessOnTheGpu(LoadScopeScheduling):  # type: ignore[misc]  # its base is untyped
    """All files ``test_gpu*.py`` go to one process: the GPU tests of two would slow each other down."""

    def _split_scope(self, nodeid: str) -> str:
        return "gpu" if Path(nodeid.partition("::")[0]).name.startswith("test_gpu") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Only where there is a GPU: keeping groups together costs time with thousands of tests."""
    return OneProcessOnTheGpu(config, log) if DRIVER.exists() else None


def pytest_collection_finish() -> None:
    """What collection made lives to the end: without it each full garbage collection walks nine thousand tests."""
    gc.collect()
    gc.freeze()
