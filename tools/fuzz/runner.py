"""One case in this process: its files in a folder of its own, its command called, what it printed and left."""

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from unittest import mock

from pipesim.cli.main import main, parser
from pipesim.cli.output import complain
from pipesim.errors import PipesimError, internal_error
from tools.fuzz.cases import Answer, Case

_parser = cache(parser)  # it takes longer to make than most cases


def run(case: Case, folder: Path) -> Answer:
    """Carry out a case in an empty folder, which is the current one and that of temporary files meanwhile."""
    for name, data in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "tmp").mkdir()
    out, err = _stream(), _stream()
    with _at_home(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        began = time.perf_counter()
        code = _called(case.call) if case.call is not None else _command(list(case.words))
        seconds = time.perf_counter() - began
    return Answer(code, _text(out), _text(err), seconds, _left(case, folder))


def _stream() -> io.TextIOWrapper:
    """As the process has its own: bytes of UTF-8 below, and no lone surrogate on standard output."""
    return io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8")


def _command(words: list[str]) -> int:
    """The exit code of a command; what the net does not catch is a mistake that ends the fuzzer's case."""
    try:
        with mock.patch("pipesim.cli.main.parser", return_value=_parser()):
            return main(words)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 0


def _called(function: Callable[[], object]) -> int:
    """The exit code that a command would have which calls this; what it returns is printed."""
    try:
        print(function())  # it is what the case asks for
    except PipesimError as error:
        complain(error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001  # as the command line does
        complain(internal_error(error))
        return 70
    return 0


@contextlib.contextmanager
def _at_home(folder: Path) -> Iterator[None]:
    before, there, limit = Path.cwd(), os.environ.get("TMPDIR"), tempfile.tempdir
    os.environ["TMPDIR"] = str(folder / "tmp")
    tempfile.tempdir = None
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        tempfile.tempdir = limit
        if there is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = there


def _left(case: Case, folder: Path) -> tuple[str, ...]:
    """Files that were not there and may not be; Python's own compiled modules aside."""
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    known = {*case.files, *case.outputs}
    return tuple(name for name in found if name not in known and "__pycache__" not in name)
