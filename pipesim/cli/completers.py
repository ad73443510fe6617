"""What the shell may complete: built-in protocols, files, parameters of the protocol that is named, profiles.

Nothing of a user's is run for it: the parameters of ``file.py`` are read from its text.
"""

import argparse
import ast
from pathlib import Path


def protocols(prefix: str = "", **_: object) -> list[str]:
    """A target: the built-in names, Python files and their functions, programs' files."""
    from pipesim.protocols.catalog import BUILT_IN

    file, colon, _function = prefix.rpartition(":")
    if colon and file.endswith(".py"):
        return [f"{file}:{name}" for name in _functions(Path(file))]
    return [*sorted(BUILT_IN), *_files(prefix, ".py", ".json")]


def built_in(**_: object) -> list[str]:
    """The built-in names."""
    from pipesim.protocols.catalog import BUILT_IN

    return sorted(BUILT_IN)


def parameters(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """``NAME=`` for each parameter of the protocols that stand before it on the line."""
    named = getattr(parsed_args, "protocol", None)
    given = {text.partition("=")[0] for text in getattr(parsed_args, "param", None) or ()}
    found = [name for text in ([named] if isinstance(named, str) else named or ()) for name in _parameters(text)]
    return [f"{name}=" for name in dict.fromkeys(found) if name not in given]


def profiles(prefix: str = "", **_: object) -> list[str]:
    """The profiles that came with pipesim, and JSON files."""
    from pipesim.timed.profile import profile_names

    return [*profile_names(), *_files(prefix, ".json")]


def _parameters(text: str) -> list[str]:
    """The parameters of a built-in protocol or of a function in a file, [] for what is neither."""
    from pipesim.protocols.catalog import BUILT_IN
    from pipesim.targets import find

    if text in BUILT_IN:
        return list(find(text).defaults)
    file, _, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
    functions = _functions(Path(file)) if file.endswith(".py") else {}
    if name:
        return functions.get(name, [])
    return next(iter(functions.values())) if len(functions) == 1 else []


def _functions(file: Path) -> dict[str, list[str]]:
    """The functions of a Python file whose parameters all have defaults, with their parameters; {} if it has none."""
    from pipesim.bounds import MAX_SOURCE_BYTES
    from pipesim.errors import UsageError
    from pipesim.inputs import InputKind

    try:
        tree = ast.parse(InputKind("Python file", MAX_SOURCE_BYTES, UsageError, "give a smaller one").read_text(file))
    except (UsageError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        node.name: [argument.arg for argument in node.args.args]
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and len(node.args.defaults) == len(node.args.args)
    }


def _files(prefix: str, *suffixes: str) -> list[str]:
    """The files with these suffixes, and the folders, that a word may become.

    argcomplete quotes them for the shell; a name with a control character, which would end a word there, is left out.
    """
    folder = prefix.rpartition("/")[0]
    try:
        entries = sorted(Path(folder or ("/" if prefix.startswith("/") else ".")).iterdir())
    except OSError:
        return []
    lead = prefix[: prefix.rfind("/") + 1]
    hidden = prefix[len(lead) :].startswith(".")
    return [
        f"{lead}{entry.name}" + ("/" if entry.is_dir() else "")
        for entry in entries
        if (hidden or not entry.name.startswith("."))
        and entry.name.isprintable()
        and (entry.is_dir() or entry.suffix in suffixes)
    ]
