"""``pipesim`` is the one import home: what is public is listed, documented, typed, and imported when it is used."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import hwkernels
import pipesim
import pipesim.pipelines

ROOT = Path(__file__).resolve().parents[2]


def test_dir_lists_every_public_name() -> None:
    assert set(pipesim.__all__) <= set(dir(pipesim))
    assert all(getattr(pipesim, name) is not None for name in pipesim.__all__)


def test_dir_lists_them_before_they_are_used() -> None:
    code = "import pipesim; print([n for n in dir(pipesim) if n in pipesim.__all__])"
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    assert ast.literal_eval(answer.stdout) == sorted(pipesim.__all__)


def test_a_type_checker_is_given_every_name_that_the_program_is() -> None:
    """The imports under TYPE_CHECKING, the table of homes and ``__all__`` are one list."""
    tree = ast.parse((ROOT / "pipesim" / "__init__.py").read_text(encoding="utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    typed = {
        alias.name: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert typed == pipesim._HOMES
    assert {*typed, "__version__"} == set(pipesim.__all__)


@pytest.mark.parametrize("name", [n for n in pipesim.__all__ if not n.startswith("_")])
def test_every_public_name_says_what_it_is(name: str) -> None:
    found = getattr(pipesim, name)
    assert found.__module__ == pipesim._HOMES[name], "it is not defined where the table says"
    assert inspect.getdoc(found)


def test_importing_pipesim_imports_its_version_alone() -> None:
    code = "import sys, pipesim; print([n for n in sys.modules if n.startswith('pipesim')])"
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    assert ast.literal_eval(answer.stdout) == ["pipesim.version", "pipesim"]


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'pipesim' has no attribute 'nothing'"):
        pipesim.nothing  # type: ignore[attr-defined]  # noqa: B018  # the access is the test


@pytest.mark.parametrize("package", [pipesim, hwkernels])
def test_the_packages_say_that_they_are_typed(package: object) -> None:
    assert Path(package.__file__).with_name("py.typed").is_file()  # type: ignore[attr-defined]
