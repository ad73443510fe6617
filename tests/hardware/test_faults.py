"""Faults by name: the kernel's list is ours, every one compiles, and those that mean nothing are refused."""

from __future__ import annotations

import re

import pytest

from hwkernels.capture.faults import FAULTS, KernelFault, check_fault, expected_bytes, parse_fault
from hwkernels.capture.request import SOURCE, CaptureRequest, check_request, compile_kernel
from hwkernels.capture.subprocess_capture import capture_apart, dump_request, load_request, run_apart
from pipesim.errors import HardwareError, KernelHangError, ParameterError, PipesimError

PARAMS = {"stages": 3, "tiles": 12, "tile_bytes": 4096, "consumer_warps": 2, "work": 0, "arrive_lanes": 1}


def test_the_kernel_has_the_same_list():
    names = re.findall(
        r"\bFAULT_(\w+)[,\n ]", re.search(r"enum Fault : unsigned \{(.*?)\}", SOURCE.read_text(), re.DOTALL)[1]
    )
    assert [name.lower() for name in names] == ["none", *FAULTS]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_is_another_kernel(kind):
    wrong, right = (
        compile_kernel(CaptureRequest(PARAMS, fault=fault), traced=True, memory="host")
        for fault in (KernelFault(kind, 5), None)
    )
    assert wrong.log == ""
    assert wrong.cubin != right.cubin


def test_a_fault_is_spelled_kind_at_iteration():
    assert parse_fault("no_acquire@0") == KernelFault("no_acquire", 0)
    assert str(KernelFault("wrong_parity", 12)) == "wrong_parity@12"
    assert [KernelFault(kind, 1).number for kind in FAULTS] == list(range(1, 11))


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


def test_bytes_that_are_expected_instead():
    assert [expected_bytes(KernelFault(kind, 1), 4096) for kind in ("expect_more", "expect_less", "no_acquire")] == [
        4112, 2048, 4096
    ]  # fmt: skip
    assert expected_bytes(KernelFault("expect_less", 1), 4112) == 2048
    assert expected_bytes(None, 64) == 64


def test_a_run_with_a_fault_has_no_window():
    check_request(CaptureRequest(PARAMS, window=(2, 5)))
    with pytest.raises(ParameterError, match="recorded completely"):
        check_request(CaptureRequest(PARAMS, window=(2, 5), fault=KernelFault("no_acquire", 3)))


@pytest.mark.parametrize("window", [(3,), (5, 5), (-1, 3), (12, 14)])
def test_windows_out_of_range(window):
    with pytest.raises(ParameterError, match="window"):
        check_request(CaptureRequest(PARAMS, window=window))


def test_a_request_survives_the_way_to_another_process():
    request = CaptureRequest(PARAMS, grid=3, clock="both", window=(), fault=KernelFault("no_acquire", 3), seed=5)
    assert load_request(dump_request(request)) == request
    assert load_request(dump_request(CaptureRequest(PARAMS, window=(1, 4)))) == CaptureRequest(PARAMS, window=(1, 4))


def test_a_process_that_leaves_no_trace_says_why(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # no GPU, also where there is one
    with pytest.raises(HardwareError, match="the process of no_acquire@3 left no trace") as caught:
        capture_apart(CaptureRequest(PARAMS, fault=KernelFault("no_acquire", 3)))
    assert caught.value.cause


CHILD = """
import sys
from hwkernels.capture.subprocess_capture import answer
from pipesim.errors import *

def work(text):
    raise {error}

sys.exit(answer(sys.argv[1], work))
"""


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
        run_apart("child", "{}", "it", 1)
    assert (type(caught.value), str(caught.value)) == (type(error), str(error))


def test_a_failure_of_the_machine_names_the_process(tmp_path, monkeypatch):
    (tmp_path / "child.py").write_text(CHILD.format(error="HardwareError('no GPU')"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(HardwareError, match="the process of it left no trace") as caught:
        run_apart("child", "{}", "it", 1)
    assert caught.value.cause == "no GPU"
