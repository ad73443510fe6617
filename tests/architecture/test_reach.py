"""Every module is reached from a command, the public API or the pytest plugin: what only tests or tools use fails."""

import re
from functools import cache
from pathlib import Path

from tests.architecture.test_imports import PACKAGES, ROOT, graph, module_of

#: Where a user comes in.
ENTRIES = ("pipesim.__main__", "pipesim", "pipesim.testing", "pipesim.pytest_plugin")

#: Modules that nothing reaches by an import, each with the reason why they are there.
STARTED_OTHERWISE = {
    "hwkernels.capture.__main__": "`capture` starts it as a process of its own",
    "hwkernels.trials.run": "owners of a GPU start it: python -m hwkernels.trials.run",
    "pipesim.cli.protocols.template": "`pipesim new` copies it as text",
    "pipesim.launches.observe.site.sitecustomize": "an observed process imports it as it starts",
}


@cache
def by_name(root: Path, packages: tuple[str, ...]) -> dict[str, set[str]]:
    """For each module the modules whose whole name it has as a string: what is imported when it is first used."""
    files = {module_of(path, root): path for package in packages for path in (root / package).rglob("*.py")}
    return {
        module: set(re.findall(r"""["']([\w.]+)["']""", path.read_text())) & files.keys()
        for module, path in files.items()
    }


def unreached(root: Path, packages: tuple[str, ...], entries: tuple[str, ...]) -> set[str]:
    """The modules that no import, at the top of a file or inside a function, leads to. A module brings its packages."""
    edges, names = graph(root, packages), by_name(root, packages)
    left, found = list(entries), set(entries)
    while left:
        module = left.pop()
        parts = module.split(".")
        packages_of_it = {".".join(parts[:length]) for length in range(1, len(parts))} & edges.keys()
        for other in (edges[module] | names[module] | packages_of_it) - found:
            found.add(other)
            left.append(other)
    return set(edges) - found


def test_every_module_is_reached() -> None:
    assert unreached(ROOT, PACKAGES, (*ENTRIES, *STARTED_OTHERWISE)) == set()


def test_every_exception_is_needed() -> None:
    for name in STARTED_OTHERWISE:
        others = tuple(other for other in STARTED_OTHERWISE if other != name)
        assert name in unreached(ROOT, PACKAGES, (*ENTRIES, *others)), name
