"""The site's reference of the Python API, from the docstrings; ``tools/site_hooks.py`` adds it to the site.

Every name that ``pipesim``, ``pipesim.testing`` and ``pipesim.errors`` make public, with its signature and its methods.
"""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any

import pipesim
from pipesim import errors, testing

HEAD = """# Reference of the Python API

What is public, from the docstrings. [The Python API](api.md) introduces it with examples, and says what *public*
promises; the pipeline structs are in [pipelines](pipelines.md).
"""
_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_OBJECT = re.compile(r" at 0x[0-9a-f]+")
_QUOTED = re.compile(r"(: |-> )'([^']*)'")  # an annotation that is text until it is asked for
_MOST = 100  #: characters of a signature in one line


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    lines += ["\n## pipesim\n", *_named(pipesim, sorted(name for name in pipesim.__all__ if name != "__version__"))]
    lines += ["\n## pipesim.testing\n", *_named(testing, ["assert_verified"])]
    lines += ["\n## pipesim.errors\n", "| error | when | exit code |", "|---|---|---|"]
    own = [value for value in vars(errors).values() if inspect.isclass(value) and value.__module__ == errors.__name__]
    lines += [_error(kind) for kind in own if issubclass(kind, errors.PipesimError)]
    return "\n".join(lines) + "\n"


def _named(module: ModuleType, names: list[str]) -> Iterator[str]:
    for name in names:
        value = getattr(module, name)
        yield f"### {name}\n"
        if inspect.isclass(value):
            yield from _class(name, value)
        elif callable(value):
            yield f"```text\n{_signature(name, value)}\n```\n"
            yield f"{_text(value)}\n"
        else:
            yield f"{_text(type(value))}\n"


def _class(name: str, kind: type) -> Iterator[str]:
    if not issubclass(kind, Enum) and not issubclass(kind, errors.PipesimError):
        yield f"```text\n{_signature(name, kind)}\n```\n"
    yield f"{_text(kind)}\n"
    if issubclass(kind, Enum):
        yield "\n".join(f"- `{each.name}`" for each in kind) + "\n"
        return
    shared = (base for base in kind.__mro__[1:] if base.__name__ == "BlockReport")  # public by its heirs alone
    members = {each: value for base in (*shared, kind) for each, value in vars(base).items()}
    rows = [_member(each, value) for each, value in members.items() if not each.startswith("_")]
    rows = [row for row in rows if row]
    if rows:
        yield "| member | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _member(name: str, value: Any) -> str:
    """A row for a method or a property with a docstring."""
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if not inspect.isfunction(function) or not function.__doc__:
        return ""
    shown = name if isinstance(value, property) else f"{name}{_parameters(function)}"
    said = " ".join(_plain(inspect.cleandoc(function.__doc__)).split()).replace("|", "\\|")
    return f"| `{shown}` | {said} |"


def _parameters(function: Any) -> str:
    """The names of the parameters, with ``=`` where one may be left out."""
    found = []
    for each in list(inspect.signature(function).parameters.values()):
        if each.name in ("self", "cls"):
            continue
        star = "*" * (each.kind is each.VAR_POSITIONAL) + "**" * (each.kind is each.VAR_KEYWORD)
        found.append(f"{star}{each.name}{'=' if each.default is not each.empty else ''}")
    return f"({', '.join(found)})"


def _signature(name: str, value: Any) -> str:
    try:
        said = _OBJECT.sub("", f"{name}{inspect.signature(value)}")
    except ValueError:
        return name
    said = _QUOTED.sub(r"\1\2", said)
    if len(said) <= _MOST:
        return said
    head, arrow, result = said.rpartition(" -> ")
    inside = (head if arrow else said).partition("(")[2].removesuffix(")")
    return f"{name}(\n" + "".join(f"    {each},\n" for each in _apart(inside)) + f"){arrow}{result if arrow else ''}"


def _apart(text: str) -> Iterator[str]:
    """The parameters of a signature: commas inside brackets do not part them."""
    depth, begin = 0, 0
    for n, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            yield text[begin:n].strip()
            begin = n + 1
    yield text[begin:].strip()


def _text(value: Any) -> str:
    return _plain(inspect.getdoc(value) or "")


def _plain(text: str) -> str:
    """A docstring in Markdown: references as code."""
    return _ROLE.sub(lambda found: f"`{found[1].removeprefix('pipesim.')}`", text).replace("``", "`")


def _error(kind: type[errors.PipesimError]) -> str:
    said = " ".join(_text(kind).split())
    return f"| `{kind.__name__}` | {said} | {kind.exit_code} |"
