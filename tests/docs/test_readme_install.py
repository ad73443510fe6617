"""The tour's blocks hold after README's own install, which brings a selection of the traces."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pipesim.trace import library
from tests.support.paths import ROOT, TRACES
from tools.distribution import in_wheel
from tools.docs_output import output_of

BLOCK = re.compile(r"<!-- output of(?:, exit (\d))?: (.+?) -->\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall((ROOT / "docs" / "tour.md").read_text(encoding="utf-8"))
#: What depends on the traces that are installed.
OF_TRACES = [
    block for block in BLOCKS
    if block[1].startswith(("pipesim verify", "pipesim diff", "pipesim list")) and "--traces" not in block[1]
]  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The traces that the wheel contains, where pipesim finds those that came with it."""
    traces = [path.relative_to(ROOT).as_posix() for path in TRACES.rglob("*.parquet")]
    for source, to in in_wheel(traces, (ROOT / "pyproject.toml").read_text(encoding="utf-8")).items():
        path = tmp_path / Path(to).relative_to("pipesim/trace/recorded")
        path.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / source, path)
    monkeypatch.setattr(library, "_folder_of", lambda package: tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("exit_code", "command", "shown"), OF_TRACES, ids=[block[1] for block in OF_TRACES])
def test_a_block_is_what_an_installed_pipesim_prints(installed, exit_code, command, shown):
    assert output_of(command, int(exit_code) if exit_code else None) == shown


def test_the_selection_is_what_pipesim_finds_and_not_all_that_there_is(installed):
    assert 10 <= len(library.stored_traces(library.trace_folder())) < len(list(TRACES.glob("*/*.parquet"))) // 10
