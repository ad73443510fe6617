"""Calls and assignments in the text of a Python file: Gluon, CuTe DSL, Triton."""

import ast
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

from pipesim.ptx.names.paths import path_of, root_of
from pipesim.ptx.source_files import HeadingText

_LONGEST_LINE = 1 << 16
_Node = TypeVar("_Node", bound=ast.expr)


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
        return self._outermost(ast.Call)

    @cached_property
    def _expressions(self) -> dict[tuple[int, int], ast.expr]:
        """The expressions by where they begin; of several the outermost."""
        return self._outermost(ast.expr)

    def _outermost(self, kind: type[_Node]) -> dict[tuple[int, int], _Node]:
        nodes = [node for node in self._around if isinstance(node, kind)]
        return {(node.lineno, node.col_offset + 1): node for node in reversed(nodes)}

    @cached_property
    def _around(self) -> dict[ast.AST, ast.AST]:
        """What each node is a part of; the nodes that are around others come before them."""
        found: dict[ast.AST, ast.AST] = {}
        nodes: list[ast.AST] = [self._tree]
        for node in nodes:  # which grows
            parts = list(ast.iter_child_nodes(node))
            found |= dict.fromkeys(parts, node)
            nodes += parts
        return found

    @cached_property
    def _modules(self) -> frozenset[str]:
        imports = (node for node in self._around if isinstance(node, ast.Import | ast.ImportFrom))
        return frozenset(each.asname or root_of(each.name) for node in imports for each in node.names)

    @cached_property
    def _barriers(self) -> frozenset[str]:
        """The first names of what is given to functions of mbarriers."""
        named = (_text(call.args[0]) for call in self._calls.values() if call.args and "mbarrier" in _text(call.func))
        return frozenset(root_of(path) for path in map(path_of, named) if path)

    def call_at(self, line: int, column: int) -> ast.Call | None:
        """The call that begins at a place; if the column is not known, 0, the only one of an mbarrier in the line."""
        if column:
            return self._calls.get((line, column))
        found = [call for (at, _), call in self._calls.items() if at == line and "mbarrier" in _text(call.func)]
        return found[0] if len(found) == 1 else None

    def barrier_of(self, call: ast.Call) -> str:
        """The path of the barrier that a call is given; "" if none of its arguments is known to be one."""
        paths = [path_of(_text(each)) for each in [*call.args, *(each.value for each in call.keywords)]]
        if "mbarrier" in _text(call.func):
            return paths[0] if paths else ""
        found = [path for path in paths if path and root_of(path) in self._barriers]
        return found[0] if len(found) == 1 else ""

    def tile_of(self, call: ast.Call) -> str:
        """The path of what a copy writes: the argument after its barrier, or before that of ``try_cancel``."""
        if call.args and _text(call.func).endswith("try_cancel"):
            return path_of(_text(call.args[0]))
        paths = [path_of(_text(each)) for each in [*call.args, *(each.value for each in call.keywords)]]
        after = [paths[at + 1] for at, path in enumerate(paths[:-1]) if path and root_of(path) in self._barriers]
        return after[0] if len(after) == 1 else ""

    def value_at(self, line: int, column: int) -> str | None:
        """What the value that a place computes is assigned to (:meth:`target_of`)."""
        node = self._computed(line, column)
        return self.target_of(node) if node is not None else ""

    def origin_at(self, line: int, column: int) -> str:
        """What a value without a name is made of: ``a`` of ``a.load(i)``, ``tl.load(a)``, ``a.T``; or by: ``dot``."""
        call = self._computed(line, column)
        while isinstance(call, ast.Attribute):
            call = call.value
        if not isinstance(call, ast.Call):
            return call.id if isinstance(call, ast.Name) else ""
        name = _text(call.func).rpartition(".")
        if name[2].startswith("dot"):
            given = [each.value for each in call.keywords if each.arg == "acc"] or call.args[2:3]
            return path_of(_text(given[0])) if given else name[2]
        if name[0] and root_of(name[0]) not in self._modules:
            return path_of(name[0])
        return path_of(_text(call.args[0])) if "load" in name[2] and call.args else name[2]

    def operands_at(self, line: int, column: int) -> list[str]:
        """The first two arguments of a call."""
        call = self._computed(line, column)
        return [path_of(_text(each)) for each in call.args[:2]] if isinstance(call, ast.Call) else []

    def _computed(self, line: int, column: int) -> ast.expr | None:
        """The innermost call that begins at a place, else the outermost expression."""
        node = whole = self._expressions.get((line, column))
        call: ast.Call | None = None
        while node is not None:
            match node:
                case ast.Call(func=inner):
                    call = node
                case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.BinOp(left=inner):
                    pass
                case ast.Tuple(elts=[inner, *_]):
                    pass
                case _:
                    break
            node = inner
        return call or whole

    @staticmethod
    def place(line: int, column: int) -> int:
        """A number for a line's column, both from 1 on, which grows through the text."""
        return line * _LONGEST_LINE + column

    def headings(self, _: int) -> list[HeadingText]:
        """The conditions and loops of the file."""
        found: list[HeadingText] = []
        for node in self._around:
            if not isinstance(node, ast.If | ast.While | ast.For):
                continue
            tested = node.iter if isinstance(node, ast.For) else node.test
            said, counted = _text(tested), ("", "", "")
            if isinstance(node, ast.For) and isinstance(tested, ast.Call) and _text(tested.func).endswith("range"):
                given = [*map(_text, tested.args)]
                first = "0" if len(given) == 1 else given[0]
                said = f"{_text(node.target)} in {said}"
                counted = _text(node.target), first, given[2] if given[2:] else "1"
            head = self._span([node])[0], self._span([tested])[1]
            leaves = isinstance(node.body[-1], ast.Continue | ast.Break | ast.Return)
            if "static_range" not in said:
                spans = head, self._span(node.body), self._span(node.orelse)
                found.append(HeadingText(not isinstance(node, ast.If), *spans, leaves, said, *counted))
        return found

    def _span(self, nodes: Sequence[ast.stmt | ast.expr]) -> tuple[int, int]:
        if not nodes:
            return 0, 0
        last = self.place(nodes[-1].end_lineno or 0, (nodes[-1].end_col_offset or 0) + 1)
        return self.place(nodes[0].lineno, nodes[0].col_offset + 1), last

    def function_at(self, line: int) -> ast.FunctionDef | None:
        """The innermost function that has a line."""
        around = [each for each in self._around if isinstance(each, ast.FunctionDef) and _has(each, line)]
        return max(around, key=lambda each: each.lineno, default=None)

    def parameters_at(self, line: int) -> tuple[str, ...]:
        """The names of the parameters of the function that has a line, without ``constexpr`` ones."""
        found = self.function_at(line)
        given = [*found.args.posonlyargs, *found.args.args, *found.args.kwonlyargs] if found is not None else []
        return tuple(each.arg for each in given if not each.annotation or "constexpr" not in _text(each.annotation))

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

    def target_of(self, value: ast.expr) -> str | None:
        """What a value is assigned to, also after operators and methods: ``k`` of ``k = x.load(i).T``.

        ``bars[1]`` for the second of a tuple; "" if it is not assigned; None if the function returns it, as its caller
        names it.
        """
        match around := self._around.get(value):
            case ast.Attribute() | ast.BinOp():
                return self.target_of(around)
            case ast.Call(func=function) if function is value:
                return self.target_of(around)
            case ast.Tuple(elts=values) if isinstance(assignment := self._around.get(around), ast.Assign):
                target, at = assignment.targets[0], values.index(value)
                parts = target.elts if isinstance(target, ast.Tuple) else []
                return path_of(_text(parts[at])) if at < len(parts) else f"{path_of(_text(target))}[{at}]"
            case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                return path_of(_text(target))
            case ast.Return():
                return None
        return ""


def _has(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)
