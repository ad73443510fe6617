"""For pytest, which loads this by itself where pipesim is installed: protocols and kernels as tests, and a fixture.

With ``--pipesim`` the files ``*_protocol.py`` and the ``*.ptx`` that have a launch file are tests; a file named on the
command line is one without it. A test fails with the finding. ``captured_launches`` are the launches of a test:

def test_my_kernel(captured_launches):
my_kernel[grid](a, b, c)
assert captured_launches.check().all_proved

Nothing of the rest of pipesim is imported before a test needs it.
"""

import math
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipesim.launches.capture import CapturedLaunches

FILES = ("*_protocol.py", "*.ptx")  #: what is collected, unless a project says otherwise
TIME_LIMIT = 60.0  #: seconds of a test
_MARKER = (
    "pipesim(**parameters): the parameters of a protocol's function; a list of values is a test for each of them. "
    "Also ctas, time_limit (seconds), max_states, strict"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--pipesim``, ``--pipesim-time-limit`` and the setting ``pipesim_files``."""
    group = parser.getgroup("pipesim", "check protocols and kernels for every schedule")
    group.addoption(
        "--pipesim", action="store_true", help="collect *_protocol.py, and *.ptx that have a launch file, as tests"
    )
    group.addoption(
        "--pipesim-time-limit",
        type=_seconds,
        default=TIME_LIMIT,
        metavar="SECONDS",
        help=f"time of each of these tests; what is not known by then is unknown, and fails (default {TIME_LIMIT:.0f})",
    )
    parser.addini("pipesim_files", f"what --pipesim collects (default {' '.join(FILES)})", "args", list(FILES))


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The tests of a protocol's file or of a kernel; None for any other file, and where they are not asked for."""
    if file_path.suffix not in (".py", ".ptx") or not _matches(file_path, parent.config):
        return None
    named = parent.session.isinitpath(file_path)
    if not named and not parent.config.getoption("--pipesim"):
        return None
    from pipesim.pytest_plugin.items import KernelFile, ProtocolFile, launches_of

    if file_path.suffix == ".py":
        return ProtocolFile.from_parent(parent, path=file_path)
    if not named and not launches_of(file_path, parent.config):
        return None
    return KernelFile.from_parent(parent, path=file_path)


@pytest.fixture
def captured_launches(tmp_path: Path) -> "Iterator[CapturedLaunches]":
    """The launches of this test, from here on: see :func:`pipesim.capture_launches`.

    The files are in ``tmp_path / "launches"``. A test that asks for it is skipped where there is no CUPTI or driver.
    """
    from pipesim.errors import MissingExtraError
    from pipesim.launches.capture import capture_launches

    with ExitStack() as stack:
        try:
            captured = stack.enter_context(capture_launches(tmp_path / "launches"))
        except MissingExtraError as error:
            pytest.skip(f"launches cannot be captured: {error.fact}")
        yield captured


def _matches(path: Path, config: pytest.Config) -> bool:
    return any(fnmatch(path.name, pattern) for pattern in config.getini("pipesim_files"))


def _seconds(text: str) -> float:
    """A number of seconds above 0; argparse reports anything else."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"{text!r}: expected a number of seconds above 0, for example 60")
    return value
