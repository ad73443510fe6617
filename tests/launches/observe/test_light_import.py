"""A process is observed with the standard library and a few small modules of pipesim; the rest is not imported."""

import subprocess
import sys

import pytest

from pipesim import launches
from tests.support.paths import ROOT

#: Of pipesim, by the first names of a module; with a dot at the end a whole folder.
LIGHT = (
    "pipesim.bounds", "pipesim.errors", "pipesim.inputs", "pipesim.version", "pipesim.launches.images.",
    "pipesim.launches.observe.",
)  # fmt: skip


def printed(program: str) -> set[str]:
    """The words that a fresh interpreter prints, without the packages that are installed beside it."""
    line = [sys.executable, "-S", "-W", "error", "-c", program]
    return set(subprocess.run(line, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split())


def imported_by(code: str) -> set[str]:
    return printed(f"{code}\nimport sys\nprint(*sys.modules)")


def test_the_observer_imports_nothing_else() -> None:
    found = imported_by("import pipesim.launches.observe")
    folders = {"pipesim", "pipesim.launches", "pipesim.launches.images", "pipesim.launches.observe"}
    ours = {name for name in found if name.partition(".")[0] == "pipesim"}
    assert {name for name in ours - folders if not name.startswith(LIGHT)} == set()
    assert {name.partition(".")[0] for name in found} - {*sys.stdlib_module_names, "pipesim", "__main__"} == set()


def test_the_public_names_are_there_before_they_are_used() -> None:
    assert set(launches.__all__) <= printed("from pipesim import launches; print(*dir(launches))")
    assert [getattr(launches, name).__name__ for name in launches.__all__] == launches.__all__
    with pytest.raises(AttributeError, match=r"module 'pipesim\.launches' has no attribute 'nothing'"):
        launches.nothing  # type: ignore[attr-defined]  # noqa: B018  # the access is the test
