"""Modules that are changed once they are imported: those that are there already, and those that will be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Changes = Mapping[str, Callable[[Any], None]]  #: what is done with a module, by its name


def watch_imports(changes: Changes) -> Callable[[], None]:
    """Change the modules of these names; the function that is returned ends watching, and changes nothing back."""
    for name, change in changes.items():
        module = sys.modules.get(name)
        if module is not None:
            change(module)
    watch = _Watch(changes)
    sys.meta_path.insert(0, watch)

    def end() -> None:
        sys.meta_path[:] = [each for each in sys.meta_path if each is not watch]

    return end


class _Watch(MetaPathFinder):
    """Finds nothing itself, but sees each import of such a module and changes the module after it was made."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._inside = False

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """The spec that the others find, with a loader that changes the module at its end."""
        if self._inside or name not in self._changes:
            return None
        self._inside = True
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            return None
        finally:
            self._inside = False
        if spec is not None and spec.loader is not None:
            spec.loader = _ChangingLoader(spec.loader, self._changes[name])
        return spec


class _ChangingLoader(Loader):
    """A loader that loads as another does, and then calls a function with the module."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other loader."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """As the other loader; then the change, which must never harm the import."""
        self._loader.exec_module(module)
        self._then(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
