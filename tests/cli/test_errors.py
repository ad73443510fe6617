"""Errors that a person can act on: fact, place, probable cause, correction on standard error, and never a traceback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fixture_types import Call

User = Callable[[str], None]


def refused(answer: Any, code: int = 2) -> list[str]:
    """The lines of an error: nothing on standard output, no traceback, the name of the program first."""
    assert (answer.code, answer.out) == (code, "")
    assert "Traceback" not in answer.err
    lines = answer.error
    assert lines[0].startswith("pipesim: ")
    assert all(line.startswith(("  at: ", "  probable cause: ", "  try: ")) for line in lines[1:])
    return [lines[0].removeprefix("pipesim: "), *(line.strip() for line in lines[1:])]


class TestTooLarge:
    """What does not fit the chip: the limit itself is tested where it is kept, here that it arrives."""

    @pytest.mark.slow
    def test_bytes_of_one_phase(self, call: Call, user: User, tmp_path: Path) -> None:
        user(
            "from pipesim import Protocol\ndef f(nbytes: int = 1 << 20):\n    p = Protocol('f')\n"
            "    bar = p.mbarriers('bar', 1, count=1)\n    @p.role('load')\n    def load(w):\n"
            "        with w.elect_one():\n            bar[0].expect_bytes(nbytes)\n    return p\n"
        )
        fact, place, *_ = refused(call("run", "mine.py:f"))
        assert fact == "load expects 1,048,576 bytes in one phase of bar[0]"
        assert place == f"at: {tmp_path / 'mine.py'}:8"
        assert call("run", "mine.py:f", "-p", f"nbytes={(1 << 20) - 1}").code == 0


class TestTraces:
    """A trace that cannot be trusted is nothing to compare with: 3. One that was never there is a wrong word: 2."""

    def test_a_trace_cannot_make_us_run_a_file(self, call: Call, user: User) -> None:
        user(
            "from pathlib import Path\nPath('it_ran').touch()\nfrom pipesim import Protocol\ndef f():\n"
            "    p = Protocol('mine.py:f')\n    @p.role('r')\n    def r(w):\n        w.work(1)\n    return p\n"
        )
        call("run", "mine.py:f", "--save-trace", "t.parquet")
        Path("it_ran").unlink()
        assert refused(call("diff", "t.parquet"))[0] == "the trace is of protocol mine.py:f, which is not built in"
        assert not Path("it_ran").exists()
