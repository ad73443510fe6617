"""The micro-kernels: they compile, execute what they are to measure, and their cycles become values of a profile."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hwkernels.device import launch
from hwkernels.device.launch import DeviceInfo
from hwkernels.microbench import run
from hwkernels.microbench.rates import RATES, UNROLLED, InstructionKind, chain, measure
from pipesim.answers import calibrate as of_device
from pipesim.answers.calibrate import RINGS, calibrate_device
from pipesim.conform.fit.values import ValueState
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import Trace
from tests.support.synthetic import synthetic

CYCLES = {InstructionKind.FMA: 2.0, InstructionKind.SHARED_CHAIN: 30.0, InstructionKind.SHARED_LOADS: 5.0}
INFO = DeviceInfo(0, "Array GPU", 100, "9.0", "999.1", 232448, 233472)
BASE = load_profile("h200")


class Counted:
    """A GPU on which an instruction takes as long as CYCLES says, a loop 0.5 and each launch 400."""

    def __init__(self) -> None:
        self.launches: Counter[InstructionKind] = Counter()

    def cycles(self, kind, warps, rounds):
        self.launches[kind] += 1
        crowded = max(1, warps * 512 / 128 / CYCLES[kind]) if kind is InstructionKind.SHARED_LOADS else 1
        each = 0.5 + CYCLES.get(kind, 0.0) * crowded
        return np.full(warps, round(400 + each * rounds * UNROLLED), dtype=np.uint32)


def test_cycles_become_values() -> None:
    found = measure(
        Counted().cycles, frozenset({"class.fma", "shared.trip", "shared.bytes_alone", "shared.bytes_per_kcycle"})
    )
    assert found["class.fma"] == pytest.approx(2000, rel=0.01)
    assert found["shared.trip"] == pytest.approx(30_000, rel=0.01)
    assert found["shared.bytes_alone"] == pytest.approx(10, abs=1)
    assert found["shared.bytes_per_kcycle"] == pytest.approx(128_000, rel=0.01)
    assert measure(Counted().cycles, frozenset()) == {}


@pytest.mark.slow
def test_a_chain_comes_back_to_its_start_after_all_words() -> None:
    links, at, steps = chain(), 0, 0
    while steps == 0 or at:
        at, steps = int(links[at]), steps + 1
    assert steps == len(links)


def test_a_launch_has_few_instructions() -> None:
    bench = Counted()
    measure(bench.cycles, frozenset(rate.value for rate in RATES))
    assert sum(bench.launches.values()) < 300


@pytest.mark.long
def test_a_profile_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rings are simulated instead of captured: what was fitted is what they were made with."""
    info = replace(INFO, name=BASE.device)
    here = replace(BASE, sms=info.sms, values=BASE.values | {"copy.issue": 190})

    def captured(request) -> Trace:
        return synthetic("producer_consumer", request.params, here, ctas=request.ctas)[1]

    monkeypatch.setattr(launch, "require_gpu", lambda ordinal=0: info)
    monkeypatch.setattr(run, "measure_device", lambda info: {"read.bytes_per_kcycle": 51_000, "class.new": 3})
    monkeypatch.setattr(of_device, "capture_trace", captured)
    monkeypatch.setattr(of_device, "RINGS", [RINGS[0], RINGS[4]])
    monkeypatch.setattr(of_device, "_TILES", 12)
    found = calibrate_device(None, "mine")
    states = {each.name: each.state for each in found.report.values}
    assert states["read.bytes_per_kcycle"] is ValueState.MEASURED
    assert states["matrix.latency"] is ValueState.ASSUMED
    assert (found.report.base, found.profile.device, found.profile.sms) == ("h200", BASE.device, info.sms)
    assert abs(found.profile["copy.issue"] - 190) < 10
    assert "class.new" not in found.profile.values
