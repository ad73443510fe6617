"""What is released: ``python tools/distribution.py FOLDER`` checks the wheel and the sdist in a folder.

The wheel has every tracked file of its packages, the selection of traces, and nothing else; it is smaller than 5 MB.
Its metadata have what an index shows. The sdist has every tracked file. All places that say the version say the same.
Exit code 1 with a line for each fault.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 5_000_000  #: of a wheel
_ADDED = re.compile(r"[^/]+\.dist-info/.*")  #: by the build
_MADE = re.compile(r"__pycache__|\.\w+_cache|\.venv|\.hypothesis|.*\.egg-info|dist|build|PKG-INFO")  #: as in .gitignore
_VERSION = re.compile(r"^__version__ = \"([^\"]+)\"$", re.MULTILINE)


@dataclass(frozen=True)
class Wanted:
    """What the two must hold: paths in the wheel, paths in the sdist below its folder, and the version."""

    wheel: frozenset[str]
    sdist: frozenset[str]
    version: str


def wanted(tracked: Iterable[str], settings: str, init: str) -> Wanted:
    """From the tracked files, ``pyproject.toml`` and ``pipesim/version.py``."""
    files = frozenset(tracked)
    found = _VERSION.search(init)
    assert found is not None, "pipesim/version.py says the version"
    return Wanted(frozenset(in_wheel(files, settings).values()), files, found[1])


def in_wheel(files: Iterable[str], settings: str) -> dict[str, str]:
    """Of these files those that the wheel has, each with its path there; ``settings``: the text of pyproject.toml."""
    wheel = tomllib.loads(settings)["tool"]["hatch"]["build"]["targets"]["wheel"]
    chosen = [pattern.removeprefix("/") for pattern in wheel["include"]]
    moved = [(f"{folder}/", f"{to}/") for folder, to in wheel["sources"].items()]
    found = {}
    for name in files:
        if any(name.startswith(f"{pattern}/") or fnmatchcase(name, pattern) for pattern in chosen):
            found[name] = next((to + name.removeprefix(of) for of, to in moved if name.startswith(of)), name)
    return found


def faults(wheel: Path, sdist: Path, to_hold: Wanted) -> list[str]:
    """What is wrong with them, in a sentence each."""
    with zipfile.ZipFile(wheel) as opened:
        inside = frozenset(name for name in opened.namelist() if not _ADDED.fullmatch(name))
        (metadata,) = (opened.read(name).decode() for name in opened.namelist() if name.endswith("dist-info/METADATA"))
    with tarfile.open(sdist) as archive:
        unpacked = frozenset(each.name.partition("/")[2] for each in archive if each.isfile())
    said = ("Name: pipesim", f"Version: {to_hold.version}", "License-Expression: ", "Requires-Python: ", "# pipesim")
    found = [f"{wheel.name} does not say {each!r}" for each in said if f"\n{each}" not in metadata]
    found += [f"{wheel.name} lacks {name}" for name in sorted(to_hold.wheel - inside)]
    found += [f"{wheel.name} has {name}, which is not tracked" for name in sorted(inside - to_hold.wheel)]
    found += [f"{sdist.name} lacks {name}" for name in sorted(to_hold.sdist - unpacked)]
    found += [
        f"{sdist.name} has {name}, which is not tracked" for name in sorted(unpacked - to_hold.sdist - {"PKG-INFO"})
    ]
    if wheel.stat().st_size >= MOST_BYTES:
        found.append(f"{wheel.name} has {wheel.stat().st_size:,} bytes; the limit is {MOST_BYTES:,}")
    for name in (wheel.name, sdist.name):
        if name.split("-")[1].removesuffix(".tar.gz") != to_hold.version:
            found.append(f"{name} is not of version {to_hold.version}")
    return found


def version_faults(version: str, citation: str, changelog: str) -> list[str]:
    """Places beside ``pipesim/version.py`` that say another version."""
    found = []
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff does not say version {version}")
    if f"\n## [{version}]" not in changelog:
        found.append(f"CHANGELOG.md has no section for version {version}")
    return found


def tracked_files() -> list[str]:
    """What is in the repository; in a copy without its history every file that no tool made."""
    if not (ROOT / ".git").exists():
        every = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return [path.as_posix() for path in every if not any(_MADE.fullmatch(part) for part in path.parts)]
    said = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return said.stdout.rstrip("\0").split("\0")


def main(argv: list[str] | None = None) -> int:
    """Check the only wheel and the only sdist of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where `python -m build` wrote them")
    folder = parser.parse_args(argv).folder
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    to_hold = wanted(tracked_files(), _text("pyproject.toml"), _text("pipesim/version.py"))
    found = faults(wheel, sdist, to_hold) + version_faults(
        to_hold.version, _text("CITATION.cff"), _text("CHANGELOG.md")
    )
    for each in found:
        print(each)
    if not found:
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(to_hold.wheel):,} files; {sdist.name}: complete")
    return 1 if found else 0


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
