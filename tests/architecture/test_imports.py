"""No file cycle: imports for types and imports inside functions count, because a reader follows them, too."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipesim", "hwkernels")


def module_of(path: Path, root: Path) -> str:
    """``pipesim.model`` for its ``__init__.py``."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node: a twentieth of what ``ast.walk`` goes through."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in getattr(tree, part, ()):
            yield node
            yield from statements(node)


def imported(tree: ast.Module, known: frozenset[str], here: str, *, package: bool) -> Iterator[str]:
    """The modules of ``known`` that a file imports anywhere."""
    for node in statements(tree):
        names: list[str] = []
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                base = here.split(".")[: len(here.split(".")) - node.level + package] if node.level else []
                module = ".".join([*base, *([node.module] if node.module else [])])
                # a name is a module of the package, or something that the package itself defines
                names = [f"{module}.{alias.name}" for alias in node.names]
                names = [name if name in known else module for name in names]
            case _:
                pass
        yield from (name for name in names if name in known and name != here)


@cache
def graph(root: Path, packages: tuple[str, ...]) -> dict[str, set[str]]:
    """For each module what it imports."""
    files = {module_of(path, root): path for package in packages for path in (root / package).rglob("*.py")}
    known = frozenset(files)
    return {
        module: set(imported(ast.parse(path.read_text()), known, module, package=path.name == "__init__.py"))
        for module, path in files.items()
    }


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """The modules of one cycle, in its order; none if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.slow
def test_no_file_imports_itself_through_others() -> None:
    assert cycle(graph(ROOT, PACKAGES)) == []
