"""The net under every command: whatever ends it is an error with an exit code of its own, and never a traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fixture_types import Call
from tests.support.paths import with_root

PC = "producer_consumer"


class Mute(Exception):  # noqa: N818  # it is no error of ours
    """An exception without a text: asking for it raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Leaves(Exception):  # noqa: N818
    """One that ends the process where it is asked for its text."""

    def __str__(self) -> str:
        raise SystemExit(0)


class Nameless(type):
    """A class that does not even say its name."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Hidden(Exception, metaclass=Nameless):  # noqa: N818
    """An exception of such a class."""


class Base(BaseException):
    """One that `except Exception` does not catch."""


#: What a command raises, and what the error says of it.
RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "an exception": (lambda: KeyError("empty"), "KeyError: 'empty'"),
    "without a text": (Mute, "Mute: (its text cannot be read)"),
    "that ends the process": (Leaves, "Leaves: (its text cannot be read)"),
    "without a name": (Hidden, "Hidden"),
    "no Exception": (lambda: Base("x"), "Base: x"),
    "a generator's": (GeneratorExit, "GeneratorExit"),
    "an exit without a verdict": (lambda: SystemExit(0), "SystemExit: 0"),
    "too deep": (lambda: RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth"),
    "of several lines": (lambda: ValueError("a\n::error::b\x1b[31m"), "ValueError: a ::error::b?[31m"),
    "an assertion": (AssertionError, "AssertionError"),
    "a character": (lambda: UnicodeEncodeError("ascii", "é", 0, 1, "no"), "UnicodeEncodeError: 'ascii' codec"),
}


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let every search for a protocol raise this."""

    def raising(error: BaseException) -> None:
        def find(name: str) -> None:
            raise error

        monkeypatch.setattr("pipesim.targets.find", find)

    return raising


@pytest.mark.parametrize(("make", "said"), RAISED.values(), ids=list(RAISED))
def test_an_unexpected_exception(
    call: Call, raising: Callable[[BaseException], None], make: Callable[[], BaseException], said: str
) -> None:
    raising(make())
    answer = call("run", PC)
    assert (answer.code, answer.out) == (70, "")
    fact, place, cause, correction = answer.error
    assert fact.startswith(f"pipesim: an internal error of pipesim: {said}")
    assert place.startswith(f"  at: {__file__}:")
    assert cause.startswith("  probable cause: pipesim has a mistake there")
    assert correction.startswith("  try: report it in the issues of pipesim's repository")
    assert "Traceback" not in answer.err
    assert answer.err.replace("\n", "").isprintable()


def test_the_traceback_is_there_if_it_is_asked_for(
    call: Call, raising: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    raising(ValueError("\x1b[31m::error::"))
    monkeypatch.setenv("PIPESIM_TRACEBACK", "1")
    answer = call("run", PC)
    assert answer.code == 70
    assert answer.err.startswith("Traceback (most recent call last):\n")
    assert "ValueError: ?[31m::error::\npipesim: an internal error" in answer.err
    monkeypatch.setenv("PIPESIM_TRACEBACK", "")
    assert "Traceback" not in call("run", PC).err


def test_an_error_of_the_operating_system_is_a_document(call: Call, raising: Callable[[BaseException], None]) -> None:
    raising(FileNotFoundError(2, "No such file or directory", "gone.json"))
    answer = call("run", PC, "--json")
    assert (answer.code, answer.json["exit_code"]) == (2, 2)
    assert answer.json["error"] == {
        "kind": "UsageError",
        "fact": "No such file or directory",
        "place": "gone.json",
        "cause": "the operating system refused",
        "correction": "",
    }
    raising(OSError())
    assert call("run", PC, "--json").json["error"]["fact"] == "OSError"


# Streams. A process of its own: what the interpreter does when it ends belongs to it.


def ended(words: str, *, out: str = "", err: str = "", unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    """``python -m pipesim WORDS`` with redirections of the shell."""
    environment = {**with_root(os.environ), "PYTHONUNBUFFERED": unbuffered}
    command = f"{sys.executable} -W error -m pipesim {words} {out} {err}"
    return subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, env=environment, timeout=60
    )


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
RUN = f"run {PC} -p tiles=2"
FULL, CLOSED = "2>/dev/full", "2>&-"


@pytest.mark.sampled(1, 1)
@needs_full
@pytest.mark.parametrize(
    ("words", "code", "err"),
    [
        (RUN, 0, FULL), (f"{RUN} --json", 0, CLOSED), ("run nothing", 2, CLOSED), ("run nothing --json", 2, FULL),
        ("--nonsense", 2, FULL), ("", 2, CLOSED),
    ],
)  # fmt: skip
def test_a_standard_error_that_takes_nothing_changes_no_exit_code(words: str, code: int, err: str) -> None:
    done = ended(words, err=err)
    assert (done.returncode, done.stderr) == (code, "")
    if "--json" in words:
        assert json.loads(done.stdout)["exit_code"] == code


@pytest.mark.sampled(1, 2)
@needs_full
@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [
        ("--help", ""), ("run --help", "1"), ("completion bash", "1"), ("--version", ""),
        (RUN, ""), (f"{RUN} --json", "1"), ("list", "1"), (f"export {PC} --to promela", ""),
    ],
)  # fmt: skip
def test_a_full_standard_output_is_an_error(words: str, unbuffered: str) -> None:
    done = ended(words, out=">/dev/full", unbuffered=unbuffered)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pipesim: standard output cannot be written: No space left on device\n")
    assert "Traceback" not in done.stderr


@pytest.mark.sampled(1, 2)
@needs_full
@pytest.mark.parametrize(
    ("words", "closed"),
    [("--help", ">&-"), ("list", ">&- 2>&-"), (RUN, ">&-"), (f"{RUN} --json", ">&- 2>&-"), (RUN, "<&- >&- 2>&-")],
)
def test_a_closed_standard_output_is_what_the_caller_wanted(words: str, closed: str) -> None:
    done = ended(words, out=closed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_full
@pytest.mark.slow
def test_an_error_where_nothing_can_be_written(tmp_path: Path) -> None:
    assert ended("run nothing --json", out=">/dev/full", err="2>/dev/full").returncode == 2
    (tmp_path / "mine.py").write_text("import sys\nprint('x' * 100000, file=sys.stderr)\nraise ValueError\n")
    assert ended(f"check {tmp_path}/mine.py:f", err="2>/dev/full").returncode == 2
