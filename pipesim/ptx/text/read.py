"""Read a PTX file: directives, variables and functions become a :class:`Module` (PTX ISA 8.0 to 9.4, "Directives").

It reads what compilers write and what authors write in inline assembly. An opcode or modifier needs no entry anywhere:
whoever asks what an instruction does decides whether it is known. A newer version of PTX is read as well.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from pipesim.ptx.text.body import Body, BodyReader
from pipesim.ptx.text.declarations import (
    Declaration,
    DeclarationError,
    Function,
    Module,
    Param,
    Variable,
    laid_out,
    parse_declarations,
    variable,
    with_shared,
)
from pipesim.ptx.text.locations import DebugStrings, Locations, SourceText, source_files, with_own_lines
from pipesim.ptx.text.operands import NAME, integer, split

_TOP = re.compile(r"\s*(?:(?P<word>\.[a-z]\w*)|(?P<line>@@[^\n]*)|(?P<nothing>;)|(?P<end>\Z))")
_LINKAGE = r"(?:\.(?:visible|extern|weak|common)\b\s*|\.attribute\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)*"
_FUNCTION = re.compile(rf"{_LINKAGE}\.(entry|func)\b")
_VARIABLE = re.compile(rf"{_LINKAGE}\.(shared|global|const|tex|local|param)\b")
_STATEMENT = re.compile(r'((?:[^;{}"]++|"[^"\n]*"|\{[^;"]*\})*);')
_HEADER = re.compile(r'((?:[^;{}"]++|"[^"\n]*")*)([;{])')
_BRACE = re.compile(r'[{}]|"[^"\n]*"')
_SECTION = re.compile(r"\.section\b[^{}\n]*\s*\{[^{}]*\}")
_VERSION = re.compile(r"\.version\s+(\d{1,4})\.(\d{1,4})")
_SIGNATURE = re.compile(
    rf"\s*(?:\((?P<results>[^()]*)\))?\s*(?P<name>{NAME})\s*(?:\((?P<params>[^()]*)\))?(?P<rest>.*)", re.DOTALL
)
_DIRECTIVE = re.compile(r'\.(\w+)\s*(?:\([^()]*\)|"[^"]*"|([^."]*))')


@lru_cache(maxsize=1)  # which two steps of one command ask for
def read_module(text: str, name: str, only: str = "") -> Module:
    """The module that a text spells; ``name`` is its file's, for messages. Raises PtxError with the line.

    With ``only``, the bodies of all other kernels are passed over: their functions have none, as if they were declared.
    """
    return _Reader(SourceText(text, name), only).read()


@dataclass
class _Reader:
    source: SourceText
    only: str = ""
    version: tuple[int, int] = (0, 0)
    target: tuple[str, ...] = ()
    address_size: int = 64
    functions: list[Function] = field(default_factory=list)
    globals: list[Variable] = field(default_factory=list)
    unread: list[tuple[int, str]] = field(default_factory=list)
    _mnemonics: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def read(self) -> Module:
        text, position = self.source.text, 0
        self.files, self.strings = source_files(text), DebugStrings(text)
        while True:
            found = _TOP.match(text, position)
            if found is None:
                if not self.target:
                    raise self.source.error(position, "this is not PTX", correction=_WANTED)
                raise self.source.error(position, "a statement is expected")
            position = found.end()
            if found.lastgroup == "end":
                break
            if found.lastgroup == "word":
                position = self._statement(found["word"], found.start("word"))
        if not self.target:
            raise self.source.error(0, "this is not PTX", cause="it has no .version and .target", correction=_WANTED)
        return Module(
            self.source.name,
            self.version,
            self.target,
            self.address_size,
            with_shared(self.functions, self.globals),
            tuple(self.globals),
            self.files,
            tuple(self.unread),
        )

    def _statement(self, word: str, position: int) -> int:
        """Read one statement of the module; the position after it."""
        text = self.source.text
        if word in _LINES:
            return self._line(word, position)
        if not self.target:
            raise self.source.error(
                position, "this is not PTX", cause="it does not begin with .version", correction=_WANTED
            )
        if word == ".section":
            found = _SECTION.match(text, position)
            if found is None:
                raise self.source.error(position, "a section is not closed", correction="end it with }")
            return found.end()
        if (function := _FUNCTION.match(text, position)) is not None:
            return self._function(position, function)
        found = _STATEMENT.match(text, position)
        if found is None:
            raise self.source.error(position, f"the directive {word} is not closed", correction="end it with ;")
        if _VARIABLE.match(text, position) is not None:
            self._variables(found[1], position)
        elif word not in _SKIPPED:
            self.unread.append((self.source.line(position), word))
        return found.end()

    def _line(self, word: str, position: int) -> int:
        """A directive that ends with its line."""
        end = self.source.text.find("\n", position)
        end = end if end >= 0 else len(self.source.text)
        text = self.source.text[position:end]
        match word:
            case ".version":
                found = _VERSION.match(text)
                if found is None:
                    raise self.source.error(position, ".version has no number")
                self.version = int(found[1]), int(found[2])
                return position + found.end()
            case ".target":
                self.target = tuple(part for part in split(text.removeprefix(word).rstrip("; \t\r").strip()) if part)
                if not self.target:
                    raise self.source.error(position, ".target names no architecture")
            case ".address_size":
                self.address_size = integer(text.removeprefix(word).rstrip("; \t\r").strip()) or 0
                if self.address_size not in {32, 64}:
                    raise self.source.error(position, ".address_size is neither 32 nor 64")
            case _:  # .file and .loc are read by themselves
                pass
        return end

    def _variables(self, text: str, position: int) -> None:
        try:
            items = parse_declarations(text)
        except DeclarationError as error:
            raise self.source.error(position, str(error)) from None
        line = self.source.line(position)
        self.globals += [variable(each, each.name, 0, line) for each in items]

    def _function(self, position: int, begin: re.Match[str]) -> int:
        header = _HEADER.match(self.source.text, begin.end())
        signature = _SIGNATURE.fullmatch(_plain(header[1])) if header is not None else None
        if header is None or signature is None:
            raise self.source.error(position, "a function's header cannot be read")
        name, entry = signature["name"], begin[1] == "entry"
        try:
            results = [parse_declarations(part)[0] for part in split((signature["results"] or "").strip())]
            params = [parse_declarations(part)[0] for part in split((signature["params"] or "").strip())]
        except DeclarationError as error:
            raise self.source.error(position, f"{error!s} (a parameter of {name[:60]})") from None
        body, end = Body(), header.end()
        passed = entry and self.only not in {"", name}
        if header[2] == "{" and passed:
            end = self._body_end(header.end())
        elif header[2] == "{":
            locations = Locations(self.files, self.strings, name)
            body = BodyReader(self.source, locations, self._mnemonics).read(end, [*results, *params])
            end = body.end
        self.unread += body.unread
        self.functions.append(
            Function(
                name,
                entry,
                _formals(params),
                _formals(results),
                body.names.registers,
                tuple(each for each in body.variables if each.space == "shared"),
                tuple(each for each in body.variables if each.space in {"local", "param"}),
                body.labels,
                body.targets,
                with_own_lines(body.instructions),
                self._directives(signature["rest"], position),
                self.source.line(begin.start(1)),
                tuple(body.pragmas),
                declared_only=passed or header[2] == ";",
            )
        )
        self.globals += [each for each in body.variables if each.space in {"global", "const"}]
        return end

    def _body_end(self, position: int) -> int:
        """The position after the brace that closes the body which begins here."""
        depth = 1
        for found in _BRACE.finditer(self.source.text, position):
            depth += {"{": 1, "}": -1}.get(found[0], 0)
            if not depth:
                return found.end()
        raise self.source.error(len(self.source.text), "a function's body is not closed", correction="end it with }")

    def _directives(self, text: str, position: int) -> dict[str, tuple[int, ...]]:
        found = {}
        for name, values in _DIRECTIVE.findall(text):
            numbers = [integer(part) for part in split(values.strip())]
            if any(number is None for number in numbers):
                raise self.source.error(position, f"the directive .{name} has a value that is not a number")
            found[name] = tuple(number for number in numbers if number is not None)
        return found


_LINES = frozenset({".version", ".target", ".address_size", ".file", ".loc"})
_SKIPPED = frozenset({".pragma", ".alias"})
_WANTED = "give a .ptx file, as nvcc --ptx, Triton or NVRTC write it"


def _plain(text: str) -> str:
    """A header without the attributes of its parameters, which have brackets of their own."""
    return re.sub(r"\.attribute\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", " ", text)


def _formals(items: list[Declaration]) -> tuple[Param, ...]:
    return tuple(
        each._replace(in_register=item.space == "reg") for each, item in zip(laid_out(items), items, strict=True)
    )
