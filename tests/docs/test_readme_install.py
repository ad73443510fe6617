"""README's own install brings a selection of the traces, which is enough for its main job."""

import shutil
from pathlib import Path

import pytest

from pipesim.trace import library
from tests.support.paths import ROOT, TRACES
from tools.distribution import in_wheel
from tools.docs_output import output_of


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
def test_the_main_job_compares_with_both_devices(installed):
    said = output_of("pipesim verify producer_consumer --recorded", 0)
    assert "agrees with the hardware (NVIDIA H100 80GB HBM3, NVIDIA H200)" in " ".join(said.split())


def test_the_selection_is_what_pipesim_finds_and_not_all_that_there_is(installed):
    assert 10 <= len(library.stored_traces(library.trace_folder())) < len(list(TRACES.glob("*/*.parquet"))) // 10
