"""NumPy, imported where it is first used; where it is not installed, what the proof needs of it, in Python alone."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:

    class _Later(ModuleType):
        """It keeps what it was asked for, so that only the first use of each name costs anything."""

        def __getattr__(self, name: str) -> Any:
            try:
                module = import_module(self.__name__)
            except ModuleNotFoundError:
                module = import_module("pipesim.trace.plain_arrays")
            found = getattr(module, name)
            setattr(self, name, found)
            return found

    np, npt = _Later("numpy"), _Later("numpy.typing")

__all__ = ["np", "npt"]
