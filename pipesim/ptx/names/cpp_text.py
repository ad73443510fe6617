"""Statements, calls and parameters in the text of a C++ or Mojo file, as far as names are found by them.

This is not a parser: what it does not find is reported as not found, and a name that follows from it is not given.
"""

import re
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from pipesim.ptx.names.paths import matching, path_of, split_at_commas
from pipesim.ptx.source_files import HeadingText

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_WINDOW = 4000  #: characters of a statement on each side of a place
_FUNCTION = 20000  #: characters between the head of a function and a line of it
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?=[(<])")
_NO_CALL = frozenset({"for", "if", "while", "switch", "return", "sizeof", "decltype", "asm", "volatile", "alignas"})
_HEAD_END = re.compile(r"\s*(?:const|noexcept|override|final|&|\s)*(?:->[^;{}]*)?(\{|:(?!:))")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\(([^()]*)\)[^;{}()]*)?\{")
_NOTHING = frozenset({"nullptr", "NULL", ""})
_PARAMETER = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=.*)?\Z", re.DOTALL)
_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|typename|__grid_constant__)\b")
_TYPES = frozenset({"bool", "char", "short", "int", "long", "float", "double"})
_HEADING = re.compile(r"\b(if(?:\s+constexpr)?|while|for)\s*(?=\()")
_FIRST = re.compile(r"(?:[\w:]+\s+)*([A-Za-z_]\w*)\s*=(?!=)\s*(.+)\Z", re.DOTALL)
_COUNTED = re.compile(r"(\+\+|--)?\s*([A-Za-z_]\w*)\s*(?:(\+\+|--)|([+-])=\s*([^;]+))?\Z")
_ELSE = re.compile(r"\s*else\b")
_LEAVES = re.compile(r"\b(?:continue|break|return\b[^;]*)\s*;\s*\}?\Z")
_OPERAND = re.compile(r'"[^"\n]*"\s*\(')


class Call(NamedTuple):
    """``receiver.name(arguments)``; the receiver is "" of a function, and ``begin`` is where the name is."""

    name: str
    receiver: str
    arguments: tuple[str, ...]
    begin: int
    end: int


class Head(NamedTuple):
    """The names of a function's parameters in order, and where its body begins."""

    parameters: tuple[str, ...]
    body: int


class CppText:
    """A file's lines; ``lines_end``: a statement ends with its line, as in Mojo."""

    def __init__(self, lines: Sequence[str], *, lines_end: bool = False) -> None:
        text = "\n".join(lines)
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self.text = _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), text)
        self._bare = _COMMENT.sub(lambda m: '"' + " " * (len(m[0]) - 2) + '"' if m[0][0] == '"' else m[0], self.text)
        self._ends = ";\n" if lines_end else ";"

    def place(self, line: int, column: int) -> int:
        """The index of a line's column, both from 1 on; the nearest one of a text that has no such place."""
        begin = self._starts[min(max(line, 1), len(self._starts) - 1) - 1]
        return min(begin + max(column - 1, 0), len(self.text))

    def statement(self, at: int) -> tuple[int, int]:
        """Where the statement around a place begins and ends."""
        bare, depth = self._bare, 0
        while at and bare[at : at + 1] in ("{", "}", " "):  # of a constructor without statements
            at -= 1
        begin = at
        for begin in range(at - 1, max(at - _WINDOW, -1), -1):
            each = bare[begin]
            if each in ")]}":
                if each == "}" and not depth and bare[begin + 1 : begin + 80].lstrip()[:1] not in (",", ")", ";", "."):
                    break
                depth += 1
            elif each in "([{":
                if each == "{" and not depth:
                    break
                depth = max(depth - 1, 0)
            elif each in self._ends and not depth:
                break
        end, depth = at, 0
        for end in range(at, min(at + _WINDOW, len(bare))):
            each = bare[end]
            if each in self._ends and depth <= 0:
                break
            if each == "{" and depth <= 0 and bare[begin:end].rstrip()[-1:] == ")":
                break
            depth += (each in "([{") - (each in ")]}")
        return begin + 1, end

    def calls(self, span: tuple[int, int]) -> list[Call]:
        """The calls of a statement, in the order of the text."""
        found, bare = [], self._bare
        for match in _CALL.finditer(bare, *span):
            opens = self._after_template(match.end())
            closes = matching(bare, opens, span[1]) if opens >= 0 and bare[opens] == "(" else -1
            if match[1] in _NO_CALL or closes < 0:
                continue
            arguments = tuple(split_at_commas(self.text[opens + 1 : closes]))
            found.append(Call(match[1], self._receiver(match.start()), arguments, match.start(), closes))
        return found

    def _after_template(self, at: int) -> int:
        """Where the bracket after template arguments is; -1 for a comparison."""
        if self._bare[at] == "(":
            return at
        depth = 0
        for place in range(at, min(at + 600, len(self._bare))):
            each = self._bare[place]
            depth += (each == "<") - (each == ">" and self._bare[place - 1] != "-")
            if each in ";{" and depth:
                return -1
            if not depth:
                rest = self._bare[place + 1 : place + 80]
                return place + 1 + len(rest) - len(rest.lstrip()) if rest.lstrip()[:1] == "(" else -1
        return -1

    def _receiver(self, at: int) -> str:
        """The object before the name of a method."""
        bare = self._bare
        head = bare[max(at - 200, 0) : at].rstrip()
        if not head.endswith((".", "->")):
            return ""
        end = begin = at - (len(bare[max(at - 200, 0) : at]) - len(head)) - (1 if head.endswith(".") else 2)
        while begin > 0:
            each = bare[begin - 1]
            if each in ")]":
                depth = 0
                while begin > 0:
                    begin -= 1
                    depth += (bare[begin] in ")]") - (bare[begin] in "([")
                    if not depth:
                        break
            elif each.isalnum() or each in "_.:" or bare[begin - 2 : begin] == "->":
                begin -= 2 if each == ">" else 1
            else:
                break
        return self.text[begin:end].strip()

    def head(self, at: int, names: Collection[str]) -> Head | None:
        """The head of the function around a place, which has one of these names; None if it is not found."""
        first = max(at - _FUNCTION, 0)
        if not names:
            return self._lambda_head(at)
        for match in reversed(list(_CALL.finditer(self._bare, first, at))):
            opens = match.end()
            if match[1] not in names or self._bare[opens] != "(":
                continue
            if match[1] == "operator":
                opens = self._bare.find("(", opens + 1)
            closes = matching(self._bare, opens, at + _WINDOW)
            tail = _HEAD_END.match(self._bare, closes + 1) if closes > 0 else None
            if tail is None or (tail[1] == "{" and 0 <= matching(self._bare, tail.end() - 1, at) < at):
                continue
            given = split_at_commas(self.text[opens + 1 : closes])
            return Head(tuple(map(_name_of, given)), closes + 1)
        return None

    def _lambda_head(self, at: int) -> Head | None:
        for match in reversed(list(_LAMBDA.finditer(self._bare, max(at - _FUNCTION, 0), at))):
            if matching(self._bare, match.end() - 1, at + _FUNCTION) > at:
                return Head(tuple(map(_name_of, split_at_commas(match[1] or ""))), match.end())
        return None

    def meaning(self, name: str, head: Head, at: int) -> str:
        """What a local variable was made of, where that is one object; else ""."""
        pattern = re.compile(rf"\b{re.escape(name)}\s*(?:=(?!=)\s*([^;]+);|[({{]([^;]+)[)}}]\s*;)")
        found = [(each[1] or each[2]).strip() for each in pattern.finditer(self.text, head.body, at)]
        return found[0] if len({path_of(each) for each in found} - _NOTHING) == 1 else ""

    def declares(self, name: str, head: Head, at: int) -> bool:
        """Whether a function declares a variable of this name before a place."""
        pattern = re.compile(rf"[\w>&*]\s+[&*]*{re.escape(name)}\s*[=;({{\[,]")
        return any(
            not re.search(r"\b(?:return|else)\s+\Z", self._bare[match.start() - 8 : match.end()])
            for match in pattern.finditer(self._bare, head.body, at)
        )

    def is_index(self, name: str, at: int) -> bool:
        """Whether the last declaration up to a statement makes it an ``int``, no address: the ``i`` of ``FULL(i)``."""
        kinds = re.compile(rf"\b(?!return\b|else\b)(\w+)\s+[&*]*{re.escape(name)}\s*[=;,)({{\[]")
        *_, kind = "", *kinds.findall(self._bare, max(at - _FUNCTION, 0), self.statement(at)[1])
        return bool(kind == "int")

    def headings(self, at: int) -> list[HeadingText]:
        """The conditions and loops before a place, as far as a function reaches."""
        bare, found = self._bare, list[HeadingText]()
        for match in _HEADING.finditer(bare, max(at - _FUNCTION, 0), at + len("while")):
            closes = matching(bare, match.end(), at + _FUNCTION)
            parts = [" ".join(part.split()) for part in bare[match.end() + 1 : closes].split(";")]
            if closes < 0 or (match[1] == "for" and len(parts) != 3):
                continue  # of a range, or not closed
            body, condition = self._block(closes + 1), parts[1] if match[1] == "for" else parts[-1]
            other = _ELSE.match(bare, body[1])
            spans = (match.start(), closes + 1), body, self._block(other.end()) if other is not None else (0, 0)
            leaves, loop = _LEAVES.search(bare, *body) is not None, match[1] in ("for", "while")
            counted = self._counted(match.start(), body, parts) if loop else ("", "", "")
            found.append(HeadingText(loop, *spans, leaves, condition, *counted))
        return found

    def _counted(self, at: int, body: tuple[int, int], parts: Sequence[str]) -> tuple[str, str, str]:
        """The variable of a loop that steps at the end of each iteration, its first value and the step."""
        first = _FIRST.match(parts[0].partition(",")[0]) if len(parts) > 1 else None
        name = first or re.match(r"(\w+) ?[<>!]", parts[0])
        if name is None:
            return "", "", ""
        made = self._changes(name[1], at - _FUNCTION if first is None else body[0], body[1])
        changes, start = list[str](), first[2] if first is not None else ""
        if first is not None and not made:
            changes = split_at_commas(parts[2])
        elif first is None and len(made) == 2 and made[0].end() < at < made[1].start():
            changes, start = [self._bare[made[1].start() : body[1]].rstrip("; }\n")], self._given(made[0])
        steps = [step for each in changes if (step := step_of(name[1], each))]
        return (name[1], start, steps[0]) if len(steps) == 1 else ("", "", "")

    def _block(self, at: int) -> tuple[int, int]:
        """From a place to the end of the statement or block that follows."""
        depth = 0
        for end in range(at, min(at + _FUNCTION, len(self._bare))):
            depth += (self._bare[end] in "([{") - (self._bare[end] in ")]}")
            if depth <= 0 and self._bare[end] in ";}":
                return at, end + 1
        return at, at

    def _changes(self, name: str, begin: int, end: int) -> list[re.Match[str]]:
        """Where a part of the text gives a variable a value."""
        change = rf"(?<![.\w]){name}\s*(?:([-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--|&)\s*{name}\b"
        return list(re.compile(change).finditer(self._bare, begin, end))

    def definition(self, name: str, at: int) -> str:
        """What a variable or a constant is made of, where it is given a value only once; else ""."""
        found = self._changes(re.escape(name), max(at - _FUNCTION, 0), at + _FUNCTION)
        return self._given(found[0]) if len(found) == 1 else ""

    def _given(self, change: re.Match[str]) -> str:
        """What a variable is made of there; "" if it is changed only."""
        text = self._bare[change.end() : self._bare.find(";", change.end())]
        return split_at_commas(text + ",")[0] if change[0].endswith("=") and not change[1] else ""

    def asm_operand(self, span: tuple[int, int], bracket: int) -> str:
        """The operand of an ``asm`` in its first (0) or last (-1) square brackets; "" if none is there."""
        text = self.text[slice(*span)]
        found = re.search(r"\basm\b[^(]*\(", text)
        if found is None:
            return ""
        colon = re.search(r'"\s*:', text[found.end() :])
        head = text[: found.end() + colon.start() + 1] if colon else text
        memory = re.findall(r"\[\s*%(\d+)", "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', head)))
        operands = list(_OPERAND.finditer(text, len(head)))
        number = int(memory[bracket]) if memory else len(operands)
        if number >= len(operands):
            return ""
        begin = operands[number].end()
        return text[begin : matching(text, begin - 1)]


def _name_of(parameter: str) -> str:
    """The name in a parameter's declaration, "" if it has a type only."""
    found = _PARAMETER.search(parameter)
    kind = _QUALIFIERS.sub("", parameter[: found.start()]).strip() if found is not None else ""
    return found[1] if found is not None and kind and not kind.endswith("::") and found[1] not in _TYPES else ""


def receiver_path(call: Call) -> str:
    """The object whose method is called, as a path."""
    return path_of(call.receiver) if call.receiver else ""


def step_of(variable: str, change: str) -> str:
    """What a statement adds to a variable; "" if that is another one, or not known."""
    found = _COUNTED.match(change.strip())
    if found is None or found[2] != variable or sum(map(bool, found.group(1, 3, 4))) != 1:
        return ""
    return f"{found[4]}({found[5]})" if found[4] else f"{(found[1] or found[3])[0]}1"
