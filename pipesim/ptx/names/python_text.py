"""Calls and assignments in the text of a Python file: Gluon, CuTe DSL, Triton."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from pipesim.ptx.names.paths import path_of, root_of


class PythonText:
    """A file's syntax tree. Nothing is found in a text that is not Python."""

    def __init__(self, lines: Sequence[str]) -> None:
        try:
            self._tree: ast.Module = ast.parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._tree = ast.Module([], [])

    @cached_property
    def _calls(self) -> dict[tuple[int, int], ast.Call]:
        """The calls by where they begin; of several the outermost."""
        found: dict[tuple[int, int], ast.Call] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call):
                found.setdefault((node.lineno, node.col_offset + 1), node)
        return found

    @cached_property
    def _barriers(self) -> frozenset[str]:
        """The first names of what is given to functions of mbarriers."""
        named = (_text(call.args[0]) for call in self._calls.values() if call.args and "mbarrier" in _text(call.func))
        return frozenset(root_of(path) for path in map(path_of, named) if path)

    def call_at(self, line: int, column: int) -> ast.Call | None:
        """The call that begins at a place."""
        return self._calls.get((line, column))

    def barrier_of(self, call: ast.Call) -> str:
        """The path of the barrier that a call is given; "" if none of its arguments is known to be one."""
        paths = [path_of(_text(each)) for each in [*call.args, *(each.value for each in call.keywords)]]
        if "mbarrier" in _text(call.func):
            return paths[0] if paths else ""
        found = [path for path in paths if path and root_of(path) in self._barriers]
        return found[0] if len(found) == 1 else ""

    def tile_of(self, call: ast.Call) -> str:
        """The path of what a copy writes: the argument after its barrier."""
        paths = [path_of(_text(each)) for each in [*call.args, *(each.value for each in call.keywords)]]
        after = [paths[at + 1] for at, path in enumerate(paths[:-1]) if path and root_of(path) in self._barriers]
        return after[0] if len(after) == 1 else ""

    def function_at(self, line: int) -> ast.FunctionDef | None:
        """The innermost function that has a line."""
        around = [each for each in ast.walk(self._tree) if isinstance(each, ast.FunctionDef) and _has(each, line)]
        return max(around, key=lambda each: each.lineno, default=None)

    def argument(self, call: ast.Call, function: ast.FunctionDef, name: str) -> str:
        """The text that a call gives to a parameter; "" if it is not known."""
        for each in call.keywords:
            if each.arg == name:
                return _text(each.value)
        names = [each.arg for each in function.args.args]
        at = names.index(name) if name in names else len(call.args)
        if at < len(call.args) and not any(isinstance(each, ast.Starred) for each in call.args):
            return _text(call.args[at])
        return ""

    def is_result(self, function: ast.FunctionDef, name: str) -> bool:
        """Whether the function returns the object of this name, and nothing else."""
        results = [each for each in ast.walk(function) if isinstance(each, ast.Return) and each.value is not None]
        return len(results) == 1 and isinstance(results[0].value, ast.Name) and results[0].value.id == name

    def target_of(self, call: ast.Call) -> str:
        """What the result of a call is assigned to: ``full``, or ``bars[1]`` for the second of a tuple; else ""."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and _has(node, call.lineno):
                target, value = node.targets[0], node.value
                if value is call:
                    return path_of(_text(target))
                if isinstance(value, ast.Tuple) and call in value.elts:
                    at = value.elts.index(call)
                    each = target.elts[at] if isinstance(target, ast.Tuple) and at < len(target.elts) else None
                    return path_of(_text(each)) if each is not None else f"{path_of(_text(target))}[{at}]"
        return ""


def _has(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)
