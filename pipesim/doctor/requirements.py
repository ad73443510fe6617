"""What a package says that it needs (PEP 508), as far as pipesim's own metadata goes, and where pip has pipesim from.

A package index may not have pipesim, or another version of it than a checkout.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipesim.answers.views.doctor import MachinePart, Purpose

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*([^;]*)(?:;(.*))?")
_BOUND = re.compile(r"\s*(>=|<)\s*(\d+(?:\.\d+)*)\s*")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]")

_NAMED = 4  #: packages that are listed as missing

Installed = Callable[[str], str | None]  #: the version of a package, None if it is not installed


@dataclass(frozen=True)
class Requirement:
    """A package, the versions that will do, and the extra that it belongs to ("" for every installation)."""

    name: str
    bounds: tuple[tuple[str, tuple[int, ...]], ...] = ()
    extra: str = ""

    def allows(self, version: str) -> bool:
        """Whether this version will do; one that is not written in numbers will."""
        number = numbers(version)
        return not number or all(number >= least if how == ">=" else number < least for how, least in self.bounds)

    def __str__(self) -> str:
        bounds = ",".join(f"{how}{'.'.join(map(str, version))}" for how, version in self.bounds)
        return f"{self.name}{bounds}"


def requirement(text: str) -> Requirement:
    """``numpy>=1.26; extra == "gpu"``."""
    found = _REQUIREMENT.fullmatch(text.strip())
    assert found is not None, text
    bounds = tuple((each[1], numbers(each[2])) for part in found[2].split(",") if (each := _BOUND.fullmatch(part)))
    extra = _EXTRA.search(found[3] or "")
    return Requirement(found[1], tuple(sorted(bounds, reverse=True)), extra[1] if extra else "")


def numbers(version: str) -> tuple[int, ...]:
    """``1.26.4.dev0`` as (1, 26, 4)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def packages_part(
    name: str, needed: Iterable[Requirement], installed: Installed, use: tuple[Purpose, ...], fix: str
) -> MachinePart:
    """Several packages that are installed together: by ``fix``, if one is missing or of another version."""
    have, lacking = [], []
    for each in needed:
        version = installed(each.name)
        if version is None:
            lacking.append(f"{each} is not installed")
        elif not each.allows(version):
            lacking.append(f"{each} is needed, and {version} is installed")
        else:
            have.append(f"{each.name} {version}")
    more = len(lacking) - _NAMED
    said = [*lacking[:_NAMED], f"{more} more"] if more > 1 else lacking  # those of the tests are twenty
    return MachinePart(name, " · ".join(have), "; ".join(said), fix if lacking else "", use)


_ITSELF = re.compile(r"'?\bpipesim\b(\[\w+\])?'?$")  #: the last word of a command of pip, with its extra


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
    return _ITSELF.sub(lambda found: shlex.quote(f"{folder}{found[1] or ''}"), command)
