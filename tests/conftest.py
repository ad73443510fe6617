"""The lanes, and who may use the GPU.

``pytest`` runs the fast lane, ``-m slow`` the slow one, ``-m "slow or not slow"`` both. A test is in the slow lane if
it, or a value of its parameters, is marked ``slow`` where it stands; no rule here marks any. ``tools/lanes.py`` counts
both lanes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

#: Where the driver of an NVIDIA GPU says what it is.
DRIVER = Path("/proc/driver/nvidia/version")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Where there is a GPU all its tests run in one process: those of two would slow each other down."""
    if DRIVER.exists() and config.option.dist in ("no", "load"):
        config.option.dist = "loadgroup"


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that need the GPU are one group."""
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.xdist_group("gpu"))
