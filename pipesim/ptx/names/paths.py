"""Expressions of C++, Python and Mojo as paths: ``&s->empty[i]`` and ``s.empty.index(i)`` are both ``s.empty[i]``.

The name of a C++ kernel out of its mangled one, with the template arguments that tell it apart.

The subset of the Itanium C++ ABI ("External Names") in which compilers write the kernels of templates: nested names,
substitutions, template arguments that are types, literals and packs. Of what is not in it only the name is read.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_MOST, _MOST_WITH_ARGUMENTS = 120, 100  #: characters of a kernel's name; generated names say all their parameters
_PARTS = re.compile(r"_Z(N?)(?=\d)", re.ASCII)
_LENGTH = re.compile(r"\d{1,4}", re.ASCII)
_REFERENCE = re.compile(r"S([0-9A-Z]*)_", re.ASCII)
_LITERAL = re.compile(r"(n?)(\d*)E", re.ASCII)
_DEEPEST_NESTING = 60  #: of types in types
_BUILTIN = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short", "i": "int",
    "t": "unsigned short", "j": "unsigned", "l": "long", "m": "unsigned long", "x": "long long", "f": "float",
    "y": "unsigned long long", "d": "double", "Dn": "nullptr_t", "Dh": "half", "DF16_": "half", "DF16b": "bf16",
}  # fmt: skip
_AROUND = {"P": "{}*", "R": "{}&", "O": "{}&&", "K": "{}", "V": "{}"}
_PLAIN = re.compile(r"(?<=[<\s])<(?:int|long)(?:, (?:int|long))*>(?:, |(?=>))")
_NUMBERS = ("cute::C<", "cute::constant<", "std::integral_constant<")


def kernel_name(entry: str, *, arguments: bool = False) -> str:
    """A kernel's name as its author wrote it, if it is mangled; with ``arguments`` also those of its template.

    Namespaces are left out of the arguments, and what is too long is cut off.
    """
    start = _PARTS.match(entry)
    if start is None:
        return _shorten(entry)
    reader = _MangledReader(entry, start.end())
    try:
        parts = [reader.identifier()]
        while start[1] and (length := _LENGTH.match(entry, reader.at)):
            assert length
            parts.append(reader.identifier())
    except _NotRead:
        return _shorten(entry)
    name = "::".join(parts)
    reader.known = ["::".join(parts[: n + 1]) for n in range(len(parts))]
    if not arguments or entry[reader.at : reader.at + 1] != "I":
        return _shorten(name)
    try:
        return _shorten(f"{name}<{', '.join(map(_short, reader.arguments()))}>", _MOST_WITH_ARGUMENTS)
    except _NotRead:
        return _shorten(name)


def _shorten(name: str, most: int = _MOST) -> str:
    return name if len(name) <= most else name[: most - 3] + "..."


def _short(name: str) -> str:
    """A type without namespaces; CuTe's tuples are in brackets, and those of plain types alone are left out."""
    name = re.sub(r"\btuple<", "<", re.sub(r"\w+::", "", name))
    count = 1
    while count:
        name, count = _PLAIN.subn("", name)
    return name.replace("<>", "")


class _NotRead(ValueError):  # noqa: N818  # no error of a user
    """What is written there is not in the subset."""


@dataclass
class _MangledReader:
    """Reads from ``at`` on. ``known``: what a substitution may refer to, in the order of the text."""

    text: str
    at: int
    known: list[str] = field(default_factory=list)
    _depth: int = 0

    def _takes(self, *words: str) -> str:
        """Go past one of these words, if one is there."""
        found = next((word for word in words if self.text.startswith(word, self.at)), "")
        self.at += len(found)
        return found

    def identifier(self) -> str:
        length = _LENGTH.match(self.text, self.at)
        end = length.end() + int(length[0]) if length is not None else 0
        if length is None or end > len(self.text):
            raise _NotRead
        self.at = end
        return self.text[length.end() : end]

    def arguments(self) -> list[str]:
        """``I … E``, packs instead."""
        if not self._takes("I"):
            raise _NotRead
        found: list[str] = []
        packs = 0
        while packs or not self._takes("E"):
            if self._takes("J"):
                packs += 1
            elif packs and self._takes("E"):
                packs -= 1
            else:
                found.append(self._literal() if self._takes("L") else self.type())
        return found

    def _literal(self) -> str:
        if self.text.startswith("_Z", self.at):
            raise _NotRead
        kind = self.type()
        value = _LITERAL.match(self.text, self.at)
        if value is None:
            raise _NotRead
        self.at = value.end()
        said = ("-" if value[1] else "") + value[2]
        return {"0": "false", "1": "true"}.get(said, said) if kind == "bool" else said

    def type(self) -> str:
        """A type; compound ones can be referred to from then on."""
        self._depth += 1
        if self._depth > _DEEPEST_NESTING or self.at >= len(self.text):
            raise _NotRead
        try:
            if around := self._takes(*_AROUND):
                made = _AROUND[around].format(self.type())
                self.known.append(made)
                return made
            builtin = self._takes(*sorted(_BUILTIN, key=len, reverse=True))
            return _BUILTIN[builtin] if builtin else self._named()
        finally:
            self._depth -= 1

    def _named(self) -> str:
        """A class: its name, or names in an ``N … E``, each with its template arguments."""
        nested, made, is_new = bool(self._takes("N")), "", False
        while not (nested and self._takes("E")):
            if (refers := _REFERENCE.match(self.text, self.at)) is not None:
                number = int(refers[1], 36) + 1 if refers[1] else 0
                if made or number >= len(self.known):
                    raise _NotRead
                made, self.at, is_new = self.known[number], refers.end(), False
            elif self.text.startswith("I", self.at) and made:
                made = _with_arguments(made, self.arguments())
                is_new = True
            elif self._takes("St"):
                made = f"std::{self.identifier()}"
                is_new = True
            else:
                made = f"{made}::{self.identifier()}" if made else self.identifier()
                is_new = True
            if is_new:
                self.known.append(made)
            if not nested and not self.text.startswith("I", self.at):
                break
        return made


def _with_arguments(name: str, arguments: list[str]) -> str:
    return arguments[-1] if f"{name}<" in _NUMBERS else f"{name}<{', '.join(arguments)}>"


_NAME = r"[A-Za-z_]\w*"
_PATH = re.compile(rf"{_NAME}(?:\.{_NAME}|\[[^\[\]]*\])*\Z")
_CAST = re.compile(r"\((?:const |volatile |unsigned )*[\w:]+(?: const| long| int)* ?[*&]+\) ?(?=[\w&*(])")
_CALL = re.compile(r"[A-Za-z_][\w:.]*+\s*+(?:<[^()]*+)?(?<=[\w> ])(?=\()")
_ELEMENT = re.compile(r"\.(?:at|index)\(([^()]+)\)")
_GETTER = re.compile(rf"\.{_NAME}\(\s*\)\Z")
_QUALIFIER = re.compile(rf"\A(?:{_NAME}::)+(?={_NAME})")
_OWN = re.compile(r"(?<=\])\.\w+\Z|\.barrier_\Z")  #: what an element of a class calls its only member
_MOST_PARTS = 2  #: of a path, where these are enough to tell it from the others
_DEEPEST = 12  #: conversions around each other


def matching(text: str, at: int, end: int = 1 << 30) -> int:
    """Where the bracket that opens at a place is closed; -1 if it is not before an end."""
    depth = 0
    for place in range(at, min(end, len(text))):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
            if not depth:
                return place
    return -1


def split_at_commas(text: str) -> list[str]:
    """The arguments of a call, without those of the calls in it."""
    found, depth, begin = [], 0, 0
    for at, each in enumerate(text):
        depth += (each in "([{") - (each in ")]}")
        if each == "," and not depth:
            found.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return [*found, last] if found or last else []


def path_of(expression: str) -> str:
    """What an expression that is an object's address, or a conversion of it, refers to: a path, else ""."""
    text, elements = " ".join(expression.split()).replace("->", "."), []
    for _ in range(_DEEPEST):
        text = _CAST.sub("", text.strip().lstrip("&* "), count=1) if text[:1] in "&*( " else text
        text = _ELEMENT.sub(r"[\1]", text)
        if (
            text.startswith("(")
            and (closes := matching(text, 0)) > 0
            and text[closes + 1 : closes + 2] in ("", ".", "[")
        ):
            text = (path_of(text[1:closes]) if text[closes + 1 :] else text[1:closes]) + text[closes + 1 :]
        elif (call := _CALL.match(text)) is not None and matching(text, call.end()) == len(text) - 1:
            given = split_at_commas(text[call.end() + 1 : -1])
            method = call[0].rpartition(".")[0]
            text = given[0] if given and not method else method or ("" if given else "this")
        elif _GETTER.search(text):
            text = _GETTER.sub("", text)
        elif (plus := _top_level_plus(text)) > 0:
            elements.append(text[plus + 1 :].strip())
            text = text[:plus]
        else:
            break
    text = _QUALIFIER.sub("", text.strip())
    address = expression.lstrip().startswith("&")
    text = _without_last(text) if address and elements else text
    text += "".join(f"[{each}]" for each in reversed(elements))
    return text if _PATH.match(text) else ""


def _top_level_plus(text: str) -> int:
    depth = 0
    for at, each in enumerate(text):
        depth += (each in "([{") - (each in ")]}")
        if each == "+" and not depth and text[at : at + 2] != "++":
            return at
    return -1


def _without_last(text: str) -> str:
    return text[: text.rindex("[")] if text.endswith("]") else text


def root_of(path: str) -> str:
    """The first name of a path."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def put_in(path: str, given: str) -> str:
    """A path whose root is the parameter that ``given`` was the argument of; "" if that is none."""
    inner, rest = path_of(given), path[len(root_of(path)) :]
    if not inner:
        return ""
    pointer = given.lstrip().startswith("&") and rest.startswith("[")
    return (_without_last(inner) if pointer else inner) + rest


def group_of(path: str) -> tuple[str, int]:
    """The array that a path is an element of, and its index where that is a number, else -1.

    Numbers in brackets are part of the array's name, but for the last one, if no other index follows it.
    """
    parts = list(_subscripts(path))
    literal = [at for at, (_, index) in enumerate(parts) if index.isdigit()]
    last = parts[-1][1] if parts and path.endswith("]") and literal == [len(parts) - 1] else ""
    name = "".join(
        each + (f"[{index}]" if index.isdigit() and not (last and at == len(parts) - 1) else "")
        for at, (each, index) in enumerate(parts)
    )
    return name, int(last) if last else -1


def _subscripts(path: str) -> Iterator[tuple[str, str]]:
    at = 0
    for found in re.finditer(r"\[([^\[\]]*)\]", path):
        yield path[at : found.start()], found[1].strip()
        at = found.end()
    if at < len(path):
        yield path[at:], ""


def short_names(paths: Mapping[str, str]) -> dict[str, str]:
    """The names of arrays without what is not needed to tell them apart: the first parts, and an element's member."""
    own = {name: group_of(_OWN.sub("", path))[0] for name, path in paths.items()}
    count = Counter(own.values())
    names = {name: own[name] if count[own[name]] == 1 else name for name in paths}
    ends = {name: "+".join(map(_end, each.split("+"))) for name, each in names.items()}
    count = Counter(ends.values())
    return {name: ends[name] if count[ends[name]] == 1 else names[name] for name in paths}


def _end(name: str) -> str:
    return ".".join(name.split(".")[-_MOST_PARTS:])
