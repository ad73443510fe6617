"""A kernel's PTX as the command line names it: launch file, words set, coverage in reports and in a program's file."""

import json
import shlex
from pathlib import Path

import pytest

from pipesim.cli.main import main
from pipesim.errors import LaunchFileError, ParameterError, PtxError
from pipesim.model.finding import FaultKind
from pipesim.model.program_json import dumps, loads
from pipesim.prove.check import check
from pipesim.targets import find
from tests.ptx.emulate.test_warps import PARAM, READ_TWO, SPIN, UNTIL
from tests.support.small_ptx import program_of, text_of, word


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A kernel of two warps with a parameter that the launch file leaves open."""
    path = tmp_path / "small.ptx"
    path.write_text(text_of(READ_TWO + UNTIL, PARAM))
    launch = {
        "format": "pipesim-launch", "version": 1, "entry": "kernel", "grid": [1, 1, 1], "block": [64, 1, 1],
        "cluster": [1, 1, 1], "dynamic_shared_bytes": 0, "registers_per_thread": 0,
        "parameters": [{"name": "laps", "kind": "value", "type": "u32", "value": None}],
        "policies": {"tile_counter": 0, "launch_control": 1},
    }  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(launch))
    return path


def test_an_open_word_makes_the_verdict_unknown_and_is_named(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(kernel)]) == 3
    said = capsys.readouterr().out
    assert "byte 0 of the parameters, which --set laps=VALUE gives" in said.replace("\n               ", " ")
    assert "was not followed to its end" in said


def test_what_is_wrong_before_the_open_word_is_refuted_and_the_verdict_names_what_was_not_read(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.write_text(text_of(READ_TWO + " st.shared.u32 [tile], 7;\n ld.shared.u32 %r30, [tile];\n" + UNTIL, PARAM))
    assert main(["check", str(kernel), "--quick"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "refuted: a schedule of kernel fails; not read: warps 0 to 1 beyond small.ptx:26, for every CTA" in said


def test_a_word_that_is_set_decides(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(kernel), "--set", "laps=0"]) == 0
    assert "proved" in capsys.readouterr().out


@pytest.mark.slow
def test_a_simulation_of_what_was_not_followed_says_nothing_of_the_kernel(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numpy", reason="what is simulated")
    assert main(["run", str(kernel)]) == 3
    assert capsys.readouterr().out.endswith("? unknown: kernel was not followed to its end\n")
    assert main(["run", str(kernel), "--set", "laps=0"]) == 0


def test_the_line_that_shows_a_finding_again_names_the_launch(
    kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kernel.parent)
    kernel.write_text(text_of(READ_TWO + UNTIL + SPIN.format(0, "", 0), PARAM))
    kernel.with_suffix(".json").rename("other.json")
    assert main(["check", kernel.name, "--launch", "other.json", "--set", "laps=0"]) == 1
    said = capsys.readouterr().out
    again = shlex.split(said[said.index("  again: ") :].partition("  as a timeline: ")[0].replace("\\\n", ""))[2:]
    assert again[:6] == ["check", "small.ptx", "--launch", "other.json", "--set", "laps=0"]
    assert main(again) == 1
    assert "fails in this schedule" in capsys.readouterr().out


def test_a_kernel_without_its_launch_file_is_an_error(kernel: Path) -> None:
    kernel.with_suffix(".json").unlink()
    with pytest.raises(LaunchFileError, match="there is no launch file"):
        find(str(kernel))
    garbage = kernel.with_name("garbage.ptx")
    garbage.write_text("garbage {")
    with pytest.raises(PtxError, match="this is not PTX"):
        find(str(garbage))
    with pytest.raises(ParameterError, match="takes no launch file"):
        find("producer_consumer", launch="small.json")


def test_the_only_kernel_of_a_file_needs_no_name_in_the_launch_file(kernel: Path) -> None:
    launch = kernel.with_suffix(".json")
    launch.write_text(launch.read_text().replace('"kernel"', '""', 1))
    assert find(str(kernel)).name == "kernel"
    text = kernel.read_text()
    kernel.write_text(text + text[text.index(".visible") :].replace(".entry kernel", ".entry other"))
    with pytest.raises(LaunchFileError, match="has 2 kernels, and the launch file names none") as raised:
        find(str(kernel))
    assert raised.value.cause == "it has kernel, other"


def test_more_bytes_than_an_mbarrier_counts_are_a_finding_of_a_kernel(kernel: Path) -> None:
    expects = " @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {};\n"
    for nbytes, kinds in (((1 << 20) - 1, set()), (1 << 20, {FaultKind.TX_RANGE})):
        kernel.write_text(text_of(READ_TWO + expects.format(nbytes), PARAM))
        found = check(find(str(kernel)).build()).refutations
        assert {each.kind for each in found} == kinds
        assert [(each.fault.found, each.fault.expected) for each in found if each.fault] == [(1 << 20, 0)][: len(kinds)]


def test_coverage_is_part_of_a_programs_file() -> None:
    program = program_of(READ_TWO + UNTIL, params=PARAM, values=[word(None)])
    assert program.coverage.stopped
    again = loads(dumps(program))
    assert again == program
    assert again.coverage == program.coverage
    whole = find("producer_consumer").build({"tiles": 1})
    assert whole.coverage.extracted == ()
    assert '"extracted"' not in dumps(whole)
