"""Names that a user's kernel is compiled with: what it lets others define, what it defines, what it lacks.

A kernel, its table and its protocol must not disagree about a number. So a parameter of the protocol goes to the
compiler wherever the kernel asks for it by its name in capitals: in a table, in an ``#ifndef``, or by using a name that
no file defines. What the kernel defines itself holds where no parameter has the name.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from hwkernels.device.compile import SOURCE
from pipesim.bounds import MAX_SOURCE_BYTES, MAX_SOURCES
from pipesim.errors import CompileError, UsageError

_IFNDEF = re.compile(r"^\s*#\s*ifndef\s+([A-Za-z_]\w*)", re.MULTILINE)
_DEFINE = re.compile(
    r"^\s*#\s*define\s+([A-Za-z_]\w*)[ \t]+(0[xX][0-9a-fA-F]+|\d+)[uUlL]*[ \t]*(?://.*|/\*.*)?$", re.MULTILINE
)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_UNDEFINED = re.compile(r'identifier "([A-Za-z_]\w*)" is undefined')


def own_text(source: Path) -> str:
    """The source and the headers beside it that it includes, directly or not; "" if there is no such file.

    UsageError for a file that is not an ordinary one, which the compiler would wait for, and for too many or too long.
    """
    found: dict[Path, str] = {}
    left = [source.resolve()]
    while left:
        path = left.pop()
        if path in found or not _is_there(path):
            continue
        found[path] = SOURCE.read_bytes(path).decode("utf-8", errors="replace")
        if len(found) > MAX_SOURCES or sum(map(len, found.values())) > MAX_SOURCE_BYTES:
            raise UsageError(
                f"{source.name} includes more than {MAX_SOURCES} files, or {MAX_SOURCE_BYTES:,} characters",
                place=str(source),
                correction="include less",
            )
        left += [(path.parent / name).resolve() for name in _INCLUDE.findall(found[path]) if "\0" not in name]
    return "\n".join(found.values())


def _is_there(path: Path) -> bool:
    """Whether there is something but a folder. A name that no file can have is none."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:
        return False


def defaults(text: str) -> dict[str, int]:
    """The whole numbers that a kernel defines names to; of a name with several the first."""
    found: dict[str, int] = {}
    for name, value in _DEFINE.findall(text):
        found.setdefault(name, int(value, 0) if value.lower().startswith("0x") else int(value))
    return found


def asked_for(text: str, params: Mapping[str, int]) -> dict[str, str]:
    """The protocol's parameters that a kernel lets others define: ``#ifndef STAGES`` asks for ``stages``."""
    asked = set(_IFNDEF.findall(text))
    return {name: str(value) for name, value in macros_of(params).items() if name in asked}


def lacking_parameters(error: CompileError, params: Mapping[str, int]) -> dict[str, str]:
    """The protocol's parameters among the names that the compiler does not know; {} if there are also others."""
    names = undefined_names(error)
    known = macros_of(params)
    return {name: str(known[name]) for name in names} if names and all(name in known for name in names) else {}


def undefined_names(error: CompileError) -> list[str]:
    """The names that the compiler does not know, in its order."""
    return list(dict.fromkeys(_UNDEFINED.findall(str(error))))


def macros_of(params: Mapping[str, int]) -> dict[str, int]:
    """Parameters by the names that a kernel, and a table that it includes, gives them: in capitals."""
    return {name.upper() if name == name.lower() else name: value for name, value in params.items()}
