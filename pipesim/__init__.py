"""pipesim verifies, explains and times the mbarrier pipelines of warp-specialised GPU kernels.

The whole tool in a few lines::

    program = pipesim.find("producer_consumer").build({"stages": 4})
    simulation = pipesim.simulate(program, pipesim.load_profile("h100"))
    comparison = pipesim.compare(program, pipesim.read_trace("trace.parquet"))

Names are imported when they are first used, so that ``import pipesim`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pipesim.conform.compare import compare
    from pipesim.lang.protocol import Protocol
    from pipesim.targets import find
    from pipesim.timed.engine import simulate
    from pipesim.timed.profile import load_profile
    from pipesim.trace.files import read_trace, write_trace

_HOMES = {
    "Protocol": "pipesim.lang.protocol",
    "compare": "pipesim.conform.compare",
    "find": "pipesim.targets",
    "load_profile": "pipesim.timed.profile",
    "read_trace": "pipesim.trace.files",
    "simulate": "pipesim.timed.engine",
    "write_trace": "pipesim.trace.files",
}

__all__ = ["Protocol", "__version__", "compare", "find", "load_profile", "read_trace", "simulate", "write_trace"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'pipesim' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
