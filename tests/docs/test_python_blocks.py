"""Every line of Python in the tutorial and the API's page runs, is typed, and prints what the page says."""

from pathlib import Path

import pytest
from mypy import api as mypy

from tools import python_blocks

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", python_blocks.PAGES)
def test_every_block_runs_and_prints_what_the_page_shows(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert python_blocks.filled(text, name) == text, "run python tools/docs_output.py"


@pytest.mark.long  # of the examples, mypy's usual run says the same
def test_a_users_files_pass_mypy_strict_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    """The pages' Python and the examples, by mypy's own strict rules: no configuration of this project is read."""
    files = sorted((ROOT / "docs" / "examples").glob("*.py"))
    for name in python_blocks.PAGES:
        page = tmp_path / f"page_{Path(name).stem}.py"
        page.write_text(python_blocks.as_file((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
        files.append(page)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from pipesim import Protocol, Recorder, Warp\n\n\ndef body(w: Warp) -> None:\n    w.work(cycles='many')\n",
        encoding="utf-8",
    )
    cache = ROOT / ".mypy_cache" / "users_files"
    options = ["--strict", "--config-file=", "--no-error-summary", "--cache-dir", str(cache)]
    said, error, code = mypy.run([*options, *map(str, files), str(wrong)])
    assert (code, error) == (1, "")
    unknown, mistyped = (line for line in said.splitlines() if ": error: " in line)
    assert 'wrong.py:1: error: Module "pipesim" has no attribute "Recorder"' in unknown
    assert "wrong.py:5: error:" in mistyped
    assert 'has incompatible type "str"; expected "int"' in mistyped
