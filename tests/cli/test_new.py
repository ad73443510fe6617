"""``pipesim new``: a file that runs at once, under a name that Python and the template allow."""

import json
import runpy
from pathlib import Path

import pytest

from pipesim.cli.protocols.new import TEMPLATE
from tests.support.fat_binaries import PLAIN, container, entry
from tests.support.fixture_types import Call
from tests.support.lanes import slow_after

FINISHED = "✓ finished: no deadlock and no fault in this schedule"


@pytest.mark.slow
def test_it_runs_at_once_and_says_what_to_do_next(call: Call) -> None:
    answer = call("new", "gemm.py")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("wrote gemm.py: ")
    commands = [line.split()[1:] for line in answer.out.splitlines() if line.startswith("  pipesim ")]
    assert [words[0] for words in commands] == ["check", "check", "run", "verify"]
    for words in commands:
        said = call(*words)
        assert (said.code, said.err) == (0, "")
        assert words[0] != "check" or "✓ proved" in said.out
        assert said.out.startswith("gemm   stages ")
    text = Path("gemm.py").read_text(encoding="utf-8")
    assert "my_kernel" not in text
    assert text.count("gemm") == TEMPLATE.read_text(encoding="utf-8").count("my_kernel")
    runpy.run_path("gemm.py", run_name="__main__")


@pytest.mark.slow
def test_a_file_is_overwritten_only_if_asked(call: Call) -> None:
    Path("gemm.py").write_text("mine", encoding="utf-8")
    assert call("new", "gemm.py").err.startswith("pipesim: gemm.py exists already\n")
    assert Path("gemm.py").read_text(encoding="utf-8") == "mine"
    assert call("new", "gemm.py", "--force").code == 0
    assert call("run", "gemm.py:gemm", "-p", "tiles=4").code == 0


class TestTemplate:
    """The template itself, which is a module of the package."""

    @pytest.mark.slow
    @pytest.mark.parametrize("params", [{"stages": 1, "out_stages": 1}, {"tiles": 0}, {"compute_warps": 8}])
    def test_it_finishes_with_any_parameters(self, call: Call, params: dict[str, int]) -> None:
        words = [word for name, value in params.items() for word in ("-p", f"{name}={value}")]
        assert call("run", f"{TEMPLATE}:my_kernel", *words).verdict == FINISHED

    @pytest.mark.sampled(0, 3)
    @pytest.mark.parametrize(
        ("line", "finding"),
        slow_after(
            1,
            [
                ("w.wait_group(", "two concurrent accesses to the same bytes"),
                ("stage.arrive()  #", "deadlock"),
                ("stage.mbar().arrive()  #", "deadlock"),
                ("stage.mbar().expect_bytes", "deadlock"),
                ("w.tma_load(", "deadlock"),
                ("w.write(", "uninitialised bytes are read"),
            ],
        ),
    )
    def test_each_line_that_matters_is_missed(self, call: Call, line: str, finding: str) -> None:
        text = TEMPLATE.read_text(encoding="utf-8")
        (whole,) = (found for found in text.splitlines() if found.strip().startswith(line))
        Path("k.py").write_text(text.replace(whole.strip(), "pass"), encoding="utf-8")
        answer = call("run", "k.py:my_kernel", "-p", "work=0", "-p", "out_stages=1")
        assert answer.code == 1
        assert finding in " ".join(answer.out.split())


TWO_KERNELS = b"""\
.version 8.5
.target sm_90
.address_size 64
.visible .entry _Z4gemmPf(.param .u64 out) { ret; }
.visible .entry other(.param .u64 out) { ret; }
"""


def test_new_writes_the_ptx_and_a_launch_file(call: Call) -> None:
    Path("libgemm.so").write_bytes(bytes(64) + container(entry(1, 90, TWO_KERNELS)))
    assert "--entry NAME" in call("new", "--ptx", "libgemm.so").err
    answer = call("new", "--ptx", "libgemm.so", "--entry", "_Z4gemmPf")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(
        "wrote gemm.ptx: from libgemm.so, compute_90\nwrote gemm.json: a launch of _Z4gemmPf\n"
    )
    assert Path("gemm.ptx").read_bytes() == TWO_KERNELS
    launch = json.loads(Path("gemm.json").read_text(encoding="utf-8"))
    launch["block"] = [32, 1, 1]
    Path("gemm.json").write_text(json.dumps(launch), encoding="utf-8")
    assert call("check", "gemm.ptx").code == 0
    assert "gemm.ptx exists already" in call("new", "--ptx", "libgemm.so", "--entry", "_Z4gemmPf").err
    assert call("new", "mine.json", "--ptx", "libgemm.so", "--entry", "other").code == 0
    assert Path("mine.ptx").exists()


def test_run_reads_a_compiled_file_and_asks_for_its_threads(call: Call) -> None:
    Path("a.out").write_bytes(PLAIN)
    answer = call("run", "a.out")
    assert (answer.code, "fill needs --set block=THREADS" in answer.err) == (2, True)
