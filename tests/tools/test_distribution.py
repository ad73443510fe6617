"""``tools/distribution.py`` sees what a wheel or an sdist lacks, what it should not have, and another version."""

import io
import re
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import pipesim
from tests.support.paths import ROOT
from tools import distribution as tool

TRACKED = [
    "pipesim/__init__.py", "pipesim/a.py", "hwkernels/b.cu", "traces/h100/t.parquet", "traces/h100/u.parquet",
    "README.md", "tests/test_a.py",
]  # fmt: skip
SETTINGS = """
[tool.hatch.build.targets.wheel]
include = ["/pipesim", "/hwkernels", "/traces/*/t.parquet"]
[tool.hatch.build.targets.wheel.sources]
"traces" = "pipesim/trace"
"""
RIGHT = [
    "pipesim/__init__.py",
    "pipesim/a.py",
    "hwkernels/b.cu",
    "pipesim/trace/h100/t.parquet",
    "p-1.2.dist-info/METADATA",
]
METADATA = (
    "Metadata-Version: 2.4\nName: pipesim\nVersion: {}\nLicense-Expression: A\nRequires-Python: >=3\n\n# pipesim\n"
)
WANTED = tool.wanted(TRACKED, SETTINGS, '"""It."""\n__version__ = "1.2"\n')


def built(folder: Path, wheel: list[str], sdist: list[str], version: str = "1.2") -> tuple[Path, Path]:
    """A wheel and an sdist of these files."""
    made = folder / f"p-{version}-py3-none-any.whl", folder / f"p-{version}.tar.gz"
    with zipfile.ZipFile(made[0], "w") as opened:
        for name in wheel:
            opened.writestr(name, METADATA.format(version) if name.endswith("METADATA") else "x")
    with tarfile.open(made[1], "w:gz") as archive:
        for name in [*sdist, "PKG-INFO"]:
            entry = tarfile.TarInfo(f"p-{version}/{name}")
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
    return made


@pytest.mark.parametrize(
    ("wheel", "sdist", "fault"),
    [
        (RIGHT[1:], TRACKED, "p-1.2-py3-none-any.whl lacks pipesim/__init__.py"),
        ([*RIGHT, "tests/a.py"], TRACKED, "p-1.2-py3-none-any.whl has tests/a.py, which is not tracked"),
        ([*RIGHT[:3], RIGHT[4]], TRACKED, "p-1.2-py3-none-any.whl lacks pipesim/trace/h100/t.parquet"),
        (RIGHT, TRACKED[:-1], "p-1.2.tar.gz lacks tests/test_a.py"),
        (RIGHT, [*TRACKED, "notes"], "p-1.2.tar.gz has notes, which is not tracked"),
    ],
)
def test_a_fault_is_seen(tmp_path: Path, wheel: list[str], sdist: list[str], fault: str) -> None:
    assert tool.faults(*built(tmp_path, wheel, sdist), WANTED) == [fault]


def test_the_version_is_said_in_one_place_and_the_others_agree() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md")]
    assert tool.version_faults(pipesim.__version__, *texts) == []
    assert len(tool.version_faults("9.9", *texts)) == 2
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r"^version = ", settings, re.MULTILINE)
    assert metadata.version("pipesim") == pipesim.__version__


def test_the_repository_has_what_is_wanted() -> None:
    found = tool.wanted(
        tool.tracked_files(),
        (ROOT / "pyproject.toml").read_text("utf-8"),
        (ROOT / "pipesim/version.py").read_text("utf-8"),
    )
    assert {"pipesim/py.typed", "hwkernels/source_recorder/recorder.cuh"} <= found.wheel
    assert {"action.yml", ".ci/run", "tools/docs_output.py"} <= found.sdist
