"""The body of a function: statements between braces become instructions (PTX ISA, "Instruction Statements")."""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from pipesim.ptx.text.declarations import Declaration, DeclarationError, Variable, parse_declarations, variable
from pipesim.ptx.text.instruction import CodeLabel, Guard, Instruction, Operand, Register, SourceLine, Vector
from pipesim.ptx.text.locations import LOC, Locations, SourceText
from pipesim.ptx.text.operands import NAME, Names, NameScope, OperandError, label, operand, split

STATEMENT = re.compile(
    rf"\s*(?:(?P<label>{NAME})\s*:(?!:)"
    rf"|(?P<guard>@\s*!?\s*{NAME}\s+)?(?P<opcode>[a-z]\w*+)(?P<modifiers>(?:\s*\.[\w:]++)*+)\s*+(?P<operands>[^;]*+);"
    r"|(?P<loc>\.loc\b)|(?P<directive>\.[a-z]\w*)|(?P<open>\{)|(?P<close>\})|(?P<nothing>;)|(?P<end>\Z))"
)
_REST = re.compile(r'((?:[^;{}"]++|"[^"\n]*"|\{[^{};]*\})*);')
_MOST_REGISTERS = 1 << 24
_DEEPEST = 128  #: blocks inside each other
_VARIABLES = frozenset({"local", "shared", "param", "global", "const"})
_LISTS = frozenset({"branchtargets", "calltargets"})
_TARGETS = frozenset({"bra", "brx"})  #: their names are labels, and those after the arguments of a call


@dataclass
class Body:
    """What a body has: its instructions, labels and declarations, as in :class:`Function`."""

    names: Names = field(default_factory=Names)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    pragmas: list[tuple[int, str]] = field(default_factory=list)
    unread: list[tuple[int, str]] = field(default_factory=list)
    end: int = 0  #: the position after its last brace


@dataclass
class BodyReader:
    """Reads one body. ``mnemonics`` may be shared by the functions of a file."""

    source: SourceText
    locations: Locations
    mnemonics: dict[tuple[str, str], tuple[str, tuple[str, ...]]]
    body: Body = field(default_factory=Body)
    _place: SourceLine | None = None
    _unresolved: list[tuple[int, NameScope]] = field(default_factory=list)
    _lists: list[tuple[str, tuple[str, ...], int, NameScope]] = field(default_factory=list)

    def read(self, position: int, formals: list[Declaration]) -> Body:
        """The body whose opening brace ends before ``position``. Raises PtxError."""
        scope: NameScope | None = NameScope(None, self.body.names)
        assert scope is not None
        for each in formals:
            scope.declare(each.name, register=each.space == "reg", kind=each.type)
        match, text = STATEMENT.match, self.source.text
        while scope is not None:
            found = match(text, position)
            if found is None:
                raise self.source.error(_skip_blanks(text, position), "a statement cannot be read")
            position = found.end()
            match found.lastgroup:
                case "operands":
                    self._instruction(found, scope)
                case "loc":
                    position = self._loc(found.start("loc"))
                case "label":
                    self._label(found, scope)
                case "open":
                    scope = self._block(found.start("open"), scope)
                case "close":
                    scope = scope.parent
                case "directive":
                    position = self._directive(found.start("directive"), scope)
                case "end":
                    raise self.source.error(position, "a function's body is not closed", correction="end it with }")
                case _:
                    pass
        self._resolve()
        self.body.end = position
        return self.body

    def _instruction(self, found: re.Match[str], scope: NameScope) -> None:
        guard, opcode, modifiers, text = found.group("guard", "opcode", "modifiers", "operands")
        key = (opcode, modifiers)
        mnemonic = self.mnemonics.get(key)
        if mnemonic is None:
            mnemonic = self.mnemonics[key] = spelled(opcode, modifiers)
        try:
            operands = self._operands(opcode, text.strip(), scope)
            where = Guard(*_guard(guard, scope)) if guard else None
        except OperandError as error:
            begin = found.start("guard") if guard else found.start("opcode")
            raise self.source.error(begin, str(error)) from None
        body = self.body.instructions
        line = self.source.line(found.start("opcode"))
        begin = found.start("guard") if guard else found.start("opcode")
        body.append(Instruction(*mnemonic, operands, where, line, self._place, len(body), begin))

    def _operands(self, opcode: str, text: str, scope: NameScope) -> tuple[Operand, ...]:
        parts = split(text)
        if opcode not in _TARGETS and opcode != "call":
            known = scope.parsed
            return tuple([known.get(part) or operand(part, scope) for part in parts])
        self._unresolved.append((len(self.body.instructions), scope))
        last = len(parts) - 1
        if opcode == "call":
            after = next((n + 1 for n, part in enumerate(parts) if not part.startswith("(")), len(parts))
            names = {n for n in range(after, len(parts)) if not parts[n].startswith("(")}
        else:
            names = {last}
        return tuple(label(part) if n in names else operand(part, scope) for n, part in enumerate(parts))

    def _loc(self, position: int) -> int:
        found = LOC.match(self.source.text, position)
        if found is None:
            raise self.source.error(position, ".loc has no file and line")
        if not self.source.in_inline_asm(position):  # there LLVM counts the lines of the asm's own text
            self._place = self.locations.place_of(found)
        return found.end()

    def _label(self, found: re.Match[str], scope: NameScope) -> None:
        name = scope.label(found["label"])
        if name is None:
            raise self.source.error(found.start("label"), f"the label {found['label'][:60]} is declared twice")
        self.body.labels[name] = len(self.body.instructions)

    def _block(self, position: int, scope: NameScope) -> NameScope:
        if scope.depth >= _DEEPEST:
            raise self.source.error(position, f"more than {_DEEPEST} blocks are nested")
        return scope.block()

    def _directive(self, position: int, scope: NameScope) -> int:
        """Read a statement that begins with a dot; the position after it."""
        text = self.source.text
        found = _REST.match(text, position)
        if found is None:
            raise self.source.error(position, "a directive is not closed", correction="end it with ;")
        statement = found[1].strip()
        word = re.split(r"[\s.]", statement[1:], maxsplit=1)[0]
        words = set(re.findall(r"\.(\w+)", statement.partition("=")[0]))
        try:
            if word == "reg":
                self._registers(statement, scope)
            elif words & _VARIABLES and word != "callprototype":
                self._variables(statement, scope, self.source.line(position))
            elif word in _LISTS:
                names = tuple(part for part in split(statement[len(word) + 1 :].strip()) if part)
                self._lists.append((self._owner(position), names, position, scope))
            elif word == "pragma":
                self.body.pragmas.append((self.source.line(position), statement[len(word) + 1 :].strip().strip('"')))
            elif word == "callprototype":
                self._owner(position)
            else:
                self.body.unread.append((self.source.line(position), f".{word}"))
        except DeclarationError as error:
            raise self.source.error(position, str(error)) from None
        return found.end()

    def _registers(self, statement: str, scope: NameScope) -> None:
        for each in _registers(statement):
            if each.many is not None and each.many > _MOST_REGISTERS:
                raise DeclarationError(f"{each.many:,} registers are declared")
            letters = "xyzw"[: next((int(word[1]) for word in ("v2", "v4") if word in each.words), 0)]
            if each.many is not None:
                scope.declare_family(each.name, each.many, each.type, letters)
                continue
            whole = scope.declare(each.name, register=True, kind=each.type)
            parts = [scope.declare(f"{each.name}.{part}", register=True, kind=each.type) for part in letters]
            if parts:
                scope.names.vectors[whole] = Vector(tuple(map(Register, parts)))

    def _variables(self, statement: str, scope: NameScope, line: int) -> None:
        for each in parse_declarations(statement):
            name = scope.declare(each.name, register=False)
            self.body.variables.append(variable(each, name, 0, line))

    def _owner(self, position: int) -> str:
        """The label to which a list or prototype belongs, which is then no place in the body."""
        name, where = next(reversed(self.body.labels.items()), ("", -1))
        if where != len(self.body.instructions):
            raise self.source.error(position, "a list of targets or a prototype has no label")
        del self.body.labels[name]
        return name

    def _resolve(self) -> None:
        """Give the targets of branches their names in the whole function."""
        for owner, names, position, scope in self._lists:
            self.body.targets[owner] = tuple(self._target(name, scope, position) for name in names)
        body = self.body.instructions
        for at, scope in self._unresolved:
            each = body[at]
            known = self.body.targets if each.opcode == "brx" else self.body.labels
            for part in each.operands:
                if isinstance(part, CodeLabel) and each.opcode in _TARGETS and scope.target(part.name) not in known:
                    name = part.name[:60]
                    raise self.source.error_at(each.line, f"the branch's target {name} is not in the function")
            if each.opcode in _TARGETS and not any(isinstance(part, CodeLabel) for part in each.operands):
                raise self.source.error_at(each.line, "the branch has no target")
            body[at] = each._replace(operands=tuple(_resolve_operand(part, scope) for part in each.operands))

    def _target(self, name: str, scope: NameScope, position: int) -> str:
        found = scope.target(name)
        if found is None:
            raise self.source.error(position, f"the label {name[:60]} is not in the function")
        return found


def spelled(opcode: str, modifiers: str) -> tuple[str, tuple[str, ...]]:
    """An opcode with its modifiers, each without its dot."""
    return opcode, tuple("".join(modifiers.split())[1:].split(".")) if modifiers else ()


@lru_cache(maxsize=1024)
def _registers(statement: str) -> tuple[Declaration, ...]:
    """What a declaration of registers declares: inlined assembly repeats the same ones over and over."""
    return tuple(parse_declarations(statement))


def _guard(text: str, scope: NameScope) -> tuple[str, bool]:
    """The register of ``@!p``, and whether it is negated."""
    name = text[1:].strip()
    negated = name.startswith("!")
    name = name.lstrip("!").strip()
    found = scope.lookup(name)
    if found is None or not found[1]:
        raise OperandError(f"the guard {name[:60]} is not a register that is declared here")
    return found[0], negated


def _resolve_operand(operand: Operand, scope: NameScope) -> Operand:
    return CodeLabel(scope.target(operand.name) or operand.name) if isinstance(operand, CodeLabel) else operand


def _skip_blanks(text: str, position: int) -> int:
    """The first character after blanks."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position
