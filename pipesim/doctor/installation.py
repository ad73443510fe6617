"""Where pip has pipesim from: what it shall install has to be named in the same way.

A package index may not have pipesim, or another version of it than a checkout.
"""

from __future__ import annotations

import json
import re
import shlex
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NAMED = re.compile(r"'?\bpipesim\b(\[\w+\])?'?$")  #: the last word of a command of pip, with its extra


def checkout(record: str | None) -> Path | None:
    """The folder that pipesim was installed from, by ``direct_url.json`` (PEP 610); None if there is none."""
    try:
        url = urlsplit(str(json.loads(record or "null")["url"]))
        folder = Path(unquote(url.path))
        return folder if url.scheme == "file" and (folder / "pyproject.toml").is_file() else None
    except (ValueError, TypeError, KeyError, OSError):
        return None


def own_checkout() -> Path | None:
    """That of the pipesim that runs."""
    try:
        return checkout(metadata.distribution("pipesim").read_text("direct_url.json"))
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None


def as_installed(command: str, folder: Path | None) -> str:
    """A command such as ``pip install 'pipesim[gpu]'`` with the folder in place of the name, if there is one."""
    if folder is None or not command.startswith("pip install "):
        return command
    return _NAMED.sub(lambda found: shlex.quote(f"{folder}{found[1] or ''}"), command)
