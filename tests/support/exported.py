"""What a package exports by importing it."""

from inspect import ismodule
from types import ModuleType


def exported(package: ModuleType) -> set[str]:
    """The public names of a package, without its modules."""
    return {name for name, value in vars(package).items() if not name.startswith("_") and not ismodule(value)}
