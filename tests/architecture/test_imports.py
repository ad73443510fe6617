"""No file cycle: imports for types and imports inside functions count, because a reader follows them, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipesim", "hwkernels")


def module_of(path: Path, root: Path) -> str:
    """``pipesim.model`` for its ``__init__.py``."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, known: frozenset[str], here: str, *, package: bool) -> Iterator[str]:
    """The modules of ``known`` that a file imports anywhere."""
    for node in ast.walk(tree):
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


def graph(root: Path, packages: tuple[str, ...]) -> dict[str, set[str]]:
    """For each module what it imports."""
    files = {module_of(path, root): path for package in packages for path in (root / package).rglob("*.py")}
    known = frozenset(files)
    return {
        module: set(imported(ast.parse(path.read_text()), known, module, package=path.name == "__init__.py"))
        for module, path in files.items()
    }


def reached(edges: dict[str, set[str]], start: str) -> set[str]:
    """All modules that one comes to from ``start``."""
    found: set[str] = set()
    left = [start]
    while left:
        for other in edges[left.pop()] - found:
            found.add(other)
            left.append(other)
    return found


def cycles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """The strongly connected components of several modules."""
    reach = {module: reached(edges, module) for module in edges}
    return {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in edges
        if module in reach[module]
    }


def test_no_file_imports_itself_through_others() -> None:
    found = cycles(graph(ROOT, PACKAGES))
    assert found == set(), sorted(map(sorted, found))


def test_a_cycle_is_seen_wherever_the_import_stands(tmp_path: Path) -> None:
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.two import Two\n"
    )
    (package / "two.py").write_text("def two() -> None:\n    from . import three\n")
    (package / "three.py").write_text("import made.one\n")
    (package / "four.py").write_text("from made import one\n")
    names = {f"made.{name}" for name in ("one", "two", "three")}
    assert cycles(graph(tmp_path, ("made",))) == {frozenset(names)}
