"""Command lines that are refused: ``refused_lines.txt`` has each with its exit code, and below it the error."""

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipesim.model.program_json import dumps
from pipesim.targets import find
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace
from tests.cli.conftest import RING, USUAL
from tests.cli.lines import CommandLine, command_lines
from tests.cli.test_check_kernels import PLAIN_KERNELS
from tests.support.fixture_types import Call
from tests.support.paths import EXAMPLES, TRACES

PTX = TRACES / "h200" / "ptx"

MINE = """
from pipesim import Protocol


def gemm(stages: int = 2):
    p = Protocol("gemm")
    p.role("a")(lambda w: w.work(stages))
    return p


def raises(tiles: int = 2):
    return 1 // 0


def needs(x):
    pass


def nothing():
    pass


number = 3
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that a line names: made once, for no line writes one."""
    folder = tmp_path_factory.mktemp("refused")
    recorded = trace_folder() / "h100" / USUAL
    good = read_trace(recorded)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("ring.py").write_text(RING, encoding="utf-8")
        Path("mine.py").write_text(MINE, encoding="utf-8")
        for name in ("old", "empty.parquet", "my_gemm.py"):
            Path(name).touch()
        Path("folder").mkdir()
        Path("dump").mkdir()
        Path("dump/plain.ptx").write_text(PLAIN_KERNELS, encoding="utf-8")
        Path("bytes.json").write_bytes(b"\xff\xfe{}")
        Path("empty.json").write_text("{}", encoding="utf-8")
        Path("later.json").write_text('{"format": "pipesim-program", "version": 99}', encoding="utf-8")
        Path("text.parquet").write_text("time,event\n1,2\n", encoding="utf-8")
        Path("program.json").write_text(dumps(find("producer_consumer").build({"tiles": 2})), encoding="utf-8")
        shutil.copy(recorded, "good.parquet")
        Path("cut.parquet").write_bytes(recorded.read_bytes()[:5000])
        write_trace(Trace(replace(good.meta, protocol="ring"), good.events), Path("ring.parquet"))
        odd = {**good.meta.params, "old": 1}
        write_trace(Trace(replace(good.meta, params=odd), good.events), Path("odd.parquet"))
        Path("kernel.cu").symlink_to(EXAMPLES / "rowsum.cu")
        Path("kernel.table.h").symlink_to(EXAMPLES / "rowsum.table.h")
        Path("rowsum.py").symlink_to(EXAMPLES / "rowsum.py")
        for end in ("ptx", "json", "parquet"):
            Path(f"kernel.{end}").symlink_to(PTX / f"triton-gemm_tma_w4_s3.{end}")
        Path("softmax.parquet").symlink_to(PTX / "triton-softmax.parquet")
        np.save("matrix.npy", np.zeros((4096, 64), dtype=np.float32))
    return folder


@pytest.mark.sampled(50, 130)
@pytest.mark.parametrize("line", list(command_lines("refused_lines.txt")), ids=lambda line: line.words)
def test_the_line_is_refused_in_these_words(
    call: Call, line: CommandLine, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is printed, nothing is written, and every line of the error is one of its four parts."""
    monkeypatch.chdir(files)
    before = sorted(files.rglob("*"))
    answer = call(*shlex.split(line.words))
    said = [each.replace(f"{files}/", "") for each in answer.error]
    assert (answer.code, answer.out, said) == (line.code, "", line.said)
    assert said[0].startswith("pipesim: ")
    assert all(each.startswith(("  at: ", "  probable cause: ", "  try: ")) for each in said[1:])
    assert sorted(files.rglob("*")) == before
