"""``pipesim --help`` is fast, because nothing heavy is imported for it."""

import subprocess
import sys

import pytest

HEAVY = {"simpy", "rich", "numpy", "pyarrow", "cuda"}
#: Packages of pipesim's own that take as long: a command imports them as it is carried out.
OWN = {"pipesim.prove", "pipesim.protocols", "pipesim.ptx"}


def imported_by(code: str) -> set[str]:
    """The packages that a fresh interpreter has imported after ``code``, and those directly below them."""
    program = f"import sys\n{code}\nprint(*{{'.'.join(name.split('.')[:n]) for name in sys.modules for n in (1, 2)}})"
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return set(answer.stdout.splitlines()[-1].split())


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "code",
    [
        "import pipesim",
        "from pipesim.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from pipesim.cli.main import main\ntry: main(['verify', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_help_imports_nothing_heavy(code: str) -> None:
    assert imported_by(code) & (HEAVY | OWN) == set()


@pytest.mark.slow
def test_a_command_does_import_them() -> None:
    """The twin: heavy imports can be seen. Even so, what runs without a GPU imports no CUDA."""
    code = "from pipesim.cli.main import main; main(['run', 'producer_consumer', '-p', 'tiles=2'])"
    assert imported_by(code) & HEAVY == {"simpy", "rich", "numpy"}


def test_the_help_names_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    from pipesim.cli.main import COMMANDS, parser

    text = " ".join(parser().format_help().split())
    for command in COMMANDS:
        assert f"{command.name} {command.summary}" in text
    for code in ("0 agrees", "1 findings", "2 usage", "3 unknown", "4 outside --tolerance"):
        assert code in text
