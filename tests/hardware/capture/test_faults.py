"""Faults by name: the kernel's list is ours, every one compiles, and those that mean nothing are refused."""

import os
import signal
import subprocess
import sys

import pytest

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.request import check_request
from hwkernels.capture.subprocess_capture import run_in_subprocess
from hwkernels.twins.fault import KernelFault, parse_fault
from hwkernels.twins.hopper.producer_consumer import check_fault
from pipesim.errors import KernelHangError, ParameterError, PipesimError
from pipesim.trace.schema import FAULTS
from tests.support.paths import ROOT

PARAMS = {"stages": 3, "tiles": 12, "tile_bytes": 4096, "consumer_warps": 2, "work": 0, "arrive_lanes": 1}
SUBJECT = TwinSubject("producer_consumer")


def request(**changes) -> CaptureRequest:
    return CaptureRequest(SUBJECT, PARAMS, **changes)


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_is_another_kernel(kind):
    builds = SUBJECT.compile(request(fault=KernelFault(kind, 5)), "host")
    wrong, right = builds["traced"], builds["right"]
    assert f"-DPIPESIM_FAULT={FAULTS.index(kind) + 1}" in wrong.options
    assert not any("FAULT" in option for option in right.options)
    assert wrong.log == ""
    assert wrong.cubin != right.cubin


@pytest.mark.parametrize(
    ("text", "fact"),
    [("sabotage@3", "there is no fault 'sabotage'"), ("no_acquire", "'no_acquire' does not name an iteration"),
     ("no_acquire@", "'no_acquire@' does not name"), ("no_acquire@-1", "'no_acquire@-1' does not"),
     ("", "no fault ''")],
)  # fmt: skip
def test_what_is_no_fault(text, fact):
    with pytest.raises(ParameterError, match=fact):
        parse_fault(text)


@pytest.mark.parametrize(
    ("fault", "changes", "fact"),
    [
        ("no_acquire@12", {}, "after the last of 12 tiles"),
        ("swapped_stages@11", {}, "no other stage"),
        ("swapped_stages@3", {"stages": 1}, "no other stage"),
        ("phase_not_toggled@9", {}, "no lap after it"),
        ("expect_less@3", {"tile_bytes": 16}, "needs tiles of 32 bytes"),
    ],
)
def test_where_a_fault_means_nothing(fault, changes, fact):
    with pytest.raises(ParameterError, match=fact):
        check_fault(parse_fault(fault), PARAMS | changes)
    check_fault(parse_fault(fault.split("@")[0] + "@3"), PARAMS)  # the twin


@pytest.mark.parametrize("window", [(3,), (5, 5), (-1, 3), (12, 14)])
def test_windows_out_of_range(window):
    with pytest.raises(ParameterError, match="window"):
        check_request(request(window=window))


CHILD = """
import sys
from hwkernels.capture.subprocess_capture import answer
from pipesim.errors import *

def work(text):
    raise {error}

sys.exit(answer(sys.argv[1], work))
"""


#: A process that asks for a capture, by a module of its own which says so on a FIFO that it holds open, and waits.
ASKS = """
import sys
from hwkernels.capture.subprocess_capture import run_in_subprocess
sys.path.insert(0, sys.argv[1])
run_in_subprocess("{}", "a kernel", 600, "waits")
"""
WAITS = """
import signal, sys
from hwkernels.capture.subprocess_capture import answer

def work(text):
    held = open(FIFO, "wb", buffering=0)
    held.write(b"x")
    signal.pause()

sys.exit(answer(sys.argv[1], work))
"""


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_other_process_ends_with_the_one_that_asked(tmp_path, number):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "waits.py").write_text(f"FIFO = {str(fifo)!r}\n{WAITS}")
    asks = subprocess.Popen([sys.executable, "-c", ASKS, str(tmp_path)], cwd=ROOT)
    with fifo.open("rb") as held:
        assert held.read(1) == b"x"
        asks.send_signal(number)
        assert asks.wait(60) == -number
        assert held.read() == b""  # the end of the file: no process has it open for writing


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize(
    "error",
    [
        ParameterError("a fact", place="here", cause="a cause", correction="a correction"),
        KernelHangError("it hangs"),
    ],
)
def test_what_the_other_process_raises_is_raised_here(tmp_path, monkeypatch, error):
    parts = {name: getattr(error, name) for name in ("fact", "place", "cause", "correction")}
    (tmp_path / "child.py").write_text(CHILD.format(error=f"{type(error).__name__}(**{parts})"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PipesimError) as caught:
        run_in_subprocess("{}", "it", 1, "child")
    assert (type(caught.value), str(caught.value)) == (type(error), str(error))
