"""Help: without a command, of each command, with examples that are run here; and commands that do not exist."""

import shlex
from pathlib import Path

import pytest

from pipesim.cli.main import COMMANDS, EXAMPLES, parse, parser
from tests.support.fixture_types import Call
from tests.support.paths import ROOT

#: Examples that are parsed only: they need a GPU, a shell, or minutes.
NOT_RUN = {
    "pipesim mcp": "a client: test_mcp.py",
    "pipesim check kernel.ptx": "a launch file: tests/cli/test_skill.py",
    "pipesim hang -- ./program": "a GPU",
    "pipesim verify --all": "minutes",
    "pipesim new --ptx libgemm.so --entry gemm": "a library",
    **{line: "a GPU" for each in COMMANDS if each.name == "capture" for line, _ in each.examples},
    "pipesim launches -- python train.py": "a GPU",
    "pipesim launches --check --once -- python train.py": "a GPU",
    "pipesim launches --kernels 'gemm*' --out gemm -- pytest test_gemm.py": "a GPU",
    **{line: "a GPU" for each in COMMANDS if each.name in {"record", "hang"} for line, _ in each.examples},
    **{
        line: "a GPU, or a finding"
        for each in COMMANDS
        if each.name in ("confirm", "stress")
        for line, _ in each.examples
    },
    **{line: "ptxas" for each in COMMANDS if each.name == "instrument" for line, _ in each.examples},
    **{line: "recordings, or a GPU" for each in COMMANDS if each.name == "calibrate" for line, _ in each.examples},
    "pipesim doctor --for capture --for launches": "a GPU",
    **{
        line: "a file of its own"
        for each in COMMANDS
        if each.name in ("decode", "autopsy")
        for line, _ in each.examples
    },
    'eval "$(pipesim completion bash)"': "a shell",
    'eval "$(pipesim completion zsh)"': "a shell",
    "pipesim completion fish | source": "a shell",
}
TYPED = [command for command, _ in EXAMPLES] + [line for command in COMMANDS for line, _ in command.examples]


def words_of(line: str) -> list[str]:
    """The words of an example after ``pipesim``, without what is the shell's."""
    inside = line.partition("$(")[2].partition(")")[0] or line
    program, *words = shlex.split(inside.partition("|")[0])
    assert program == "pipesim"
    return words


def test_without_a_command_the_help_is_printed(call: Call) -> None:
    answer = call()
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == call("help").out == call("--help").out
    assert call("help").code == call("--help").code == 0


@pytest.mark.sampled(20, 40)
@pytest.mark.parametrize("typed", TYPED)
def test_an_example_can_be_parsed(typed: str) -> None:
    words = words_of(typed)
    assert parse(parser(), words).command == words[0]


@pytest.mark.long
def test_every_other_example_runs(call: Call) -> None:
    """In one folder, in an order in which each finds the files that it names."""
    ahead = [
        "pipesim new my_kernel.py",
        "pipesim run gemm_sm90 --save-trace gemm.parquet",
        "pipesim run my_kernel.py --save-trace my_kernel.parquet",
        "pipesim new mine.py",
        "pipesim run mine.py --save-trace mine.parquet",
        "pipesim run producer_consumer --save-trace before.parquet",
        "pipesim run producer_consumer --save-trace after.parquet",
    ]
    kernel = ROOT / "tests" / "ptx" / "kernels" / "scale_ws_s3-sm_90a.ptx"
    Path("kernel.ptx").write_text(kernel.read_text(encoding="utf-8"), encoding="utf-8")
    for typed in ahead:
        assert call(*words_of(typed)).code == 0
    run = [typed for typed in dict.fromkeys(TYPED) if typed not in NOT_RUN]
    assert len(run) > 15
    for typed in run:
        again = ["--force"] if typed in ahead else []  # it has been typed, above
        answer = call(*words_of(typed), *again)
        assert (typed, answer.code, answer.err) == (typed, 0, "")
    assert Path("my_kernel.svg").is_file()
    assert Path("my_kernel.pml").is_file()
