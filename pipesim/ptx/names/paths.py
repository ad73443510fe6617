"""Expressions of C++, Python and Mojo as paths: ``&s->empty[i]`` and ``s.empty.index(i)`` are both ``s.empty[i]``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

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
