"""No command imports a module from the current folder, nor do the processes that it starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

#: What the interpreter, its workers, pipesim and the packages that it needs import by name.
NAMES = sorted(
    {*sys.stdlib_module_names, "numpy", "simpy", "rich", "pyarrow", "argcomplete", "scipy", "pytest", "triton", "torch"}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each of these names, which leaves a mark when it is run."""
    made = tmp_path_factory.mktemp("hostile")
    for name in NAMES:
        (made / f"{name}.py").write_text(f"open({str(made / 'RAN')!r}, 'a').write({name!r})\nraise SystemExit(66)\n")
    return made


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What an installation writes as the command ``pipesim``."""
    path = tmp_path_factory.mktemp("bin") / "pipesim"
    path.write_text("import sys\nfrom pipesim.__main__ import run\nif __name__ == '__main__':\n    sys.exit(run())\n")
    return str(path)


def answer_of(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    line = [sys.executable, *words]
    return subprocess.run(line, check=False, capture_output=True, text=True, cwd=folder, env=given, timeout=120)


def test_the_folder_is_hostile(folder: Path) -> None:
    assert answer_of(folder, "-c", "import numpy").returncode == 66
    (folder / "RAN").unlink()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(
            ("sweep", "producer_consumer", "-p", "tiles=1", "-p", "stages=1,2", "--jobs", "2"), marks=pytest.mark.long
        ),
        pytest.param(("verify", "producer_consumer", "cluster_multicast", "-p", "tiles=2"), marks=pytest.mark.long),
        pytest.param(("check", "producer_consumer", "-p", "tiles=2"), marks=pytest.mark.long),
        ("check", str(ROOT / "docs/examples/row_max.ptx"), "--quick"),
        pytest.param(("doctor",), marks=pytest.mark.long),
    ],
    ids=lambda words: words[0],
)
def test_nothing_of_it_is_run(folder: Path, script: str, words: tuple[str, ...]) -> None:
    answer = answer_of(folder, script, *words)
    assert not (folder / "RAN").exists(), (folder / "RAN").read_text()
    assert answer.returncode in (0, 1, 3), answer.stderr
    assert "internal error" not in answer.stdout + answer.stderr
    assert answer.stdout


@pytest.mark.long
def test_as_a_module(folder: Path, tmp_path: Path) -> None:
    """Python itself looks there for what finds a module; pipesim and its workers look for nothing there."""
    for name in ("multiprocessing", "concurrent", "numpy", "simpy", "rich"):
        (tmp_path / f"{name}.py").write_text((folder / f"{name}.py").read_text())
    words = ("-m", "pipesim", "sweep", "producer_consumer", "-p", "tiles=1", "-p", "stages=1,2", "--jobs", "2")
    answer = answer_of(tmp_path, *words)
    assert not (folder / "RAN").exists(), (folder / "RAN").read_text()
    assert answer.returncode == 0, answer.stderr
