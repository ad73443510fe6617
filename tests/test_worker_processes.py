"""Which process runs the tests that need the GPU, and which values of a test the fast lane has."""

import pytest
from xdist.remote import Producer

from tests import conftest
from tests.support.paths import ROOT


@pytest.mark.parametrize("dist", ["load", "worksteal", "loadscope", "loadfile", "loadgroup", "each"])
def test_every_way_to_hand_out_tests_but_each_is_that_one(pytestconfig, monkeypatch, dist):
    monkeypatch.setattr(pytestconfig.option, "dist", dist)
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    made = conftest.pytest_xdist_make_scheduler(pytestconfig, Producer("test"))
    assert (type(made).__name__ if made is not None else "") == ("OneProcessOnTheGpu" if dist != "each" else "")


def test_what_the_fast_lane_leaves_out_are_tests():
    for name in conftest.fast_values():
        file, _, test = name.partition("::")
        assert f"def {test.rpartition('::')[2]}(" in (ROOT / file).read_text(), name


def test_of_the_values_that_are_named_the_others_are_slow(monkeypatch):
    monkeypatch.setattr(conftest, "fast_values", lambda: {"a": "-", "b": "0,2-3", "c": "4"})
    lanes = [{str(n)} for n in range(6)]
    left = {name: conftest.left_to_the_slow_lane(name, lanes) for name in "abcd"}
    assert left == {"a": lanes, "b": [{"1"}, {"4"}, {"5"}], "c": [*lanes[:4], {"5"}], "d": []}
