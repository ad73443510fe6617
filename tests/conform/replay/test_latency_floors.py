"""Returns that come sooner after their release than any that was measured are refused, and no recorded one is."""

import json
import re
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from pipesim.conform.diagnose.diagnose import examine
from pipesim.conform.replay.conformance import conform
from pipesim.conform.replay.latency_floor import (
    LatencyFloors,
    ReleasePath,
    floors_for,
    parse_floors,
)
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.errors import ProfileError
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace
from tests.support.early_returns import Tight, returned_by, tight_returns
from tests.support.paths import TRACES
from tests.support.present import present
from tests.support.recordings import RECORDINGS, kind_of, size_of

#: Others have a fault, hung because their protocol can, or have no event.
GOOD = [name for name in RECORDINGS if not re.search("-at-|-fto0-ki1-|-t0-", name)]
#: The fast lane takes the rings of one device, the slow one its other kernels: each planted return is a replay.
FAST = {("h200", "producer_consumer"), ("h200", "cluster_multicast")}
KERNELS = [
    pytest.param(device, kernel, most, marks=marks)
    for device, kernel in sorted({kind_of(name)[:2] for name in GOOD})
    for most, marks in (
        (24_000, [] if (device, kernel) in FAST else [pytest.mark.slow if device == "h200" else pytest.mark.long]),
        (1_000_000, [pytest.mark.long]),
    )
]
#: A return earlier than the order of events allows, or than the hardware can be.
REFUSALS = {DivergenceKind.TOO_SOON, DivergenceKind.TOO_EARLY, DivergenceKind.BACKWARDS}
SLACK = 450  #: more than a blocked wait returned after the least; a return 500 cycles earlier is then impossible
#: Paths between two SMs, whose clocks are compared with an error that can hide the difference.
FAR = {ReleasePath.REMOTE_ARRIVE, ReleasePath.MULTICAST_AWAY}


def opened(name: str) -> tuple[Program, Trace, LatencyFloors]:
    trace = read_trace(TRACES / name)
    assert (trace.meta.fault, trace.meta.status) == ("", Ending.FINISHED)
    floors = present(floors_for(trace.meta.device.name))
    return find(trace.meta.protocol).build(trace.meta.params, twice=False), trace, floors


def of_kernel(device: str, kernel: str, most: int, count: int) -> list[str]:
    """Some of a kernel's recordings with no more bytes than ``most``, the same every time."""
    small = [name for name in GOOD if re.search(r"-g[1-7][-.]", name) and size_of(name) < most]
    mine = [name for name in small if kind_of(name)[:2] == (device, kernel)]
    return Random(f"{device} {kernel}").sample(mine, min(count, len(mine)))


def refused(program: Program, trace: Trace, tight: Tight, by: int) -> DivergenceKind:
    found = conform(program, returned_by(trace, tight.row, by))
    assert found.verdict is TraceVerdict.DIFFERS, (trace.meta.protocol, tight, by)
    assert found.divergence is not None
    assert found.divergence.kind in REFUSALS, (tight, by, found.divergence.claim)
    return found.divergence.kind


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(("device", "kernel", "most"), KERNELS)
def test_a_return_that_is_planted_too_early_is_refused(device: str, kernel: str, most: int) -> None:
    """By 500 cycles, which order alone lets a full wait pass, and by twice the path of its release, if clocks tell."""
    kinds = Counter[DivergenceKind]()
    random = Random(f"early {device} {kernel}")
    for name in of_kernel(device, kernel, most, 2):
        program, trace, floors = opened(name)
        tight = [t for t in tight_returns(program, trace, floors) if t.path not in FAR and t.slack <= SLACK]
        hidden = conform(program, trace).uncertainty_cycles + 10
        for path in sorted({t.path for t in tight}):
            mine = [t for t in tight if t.path is path]
            for one in {*mine[:2], *random.sample(mine, min(2, len(mine)))}:
                kinds[refused(program, trace, one, 500)] += 1
                if one.slack + hidden < 2 * one.least:
                    kinds[refused(program, trace, one, 2 * one.least)] += 1
    assert kinds[DivergenceKind.TOO_SOON] >= 1, kinds


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize(("device", "kernel", "most"), KERNELS)
def test_a_return_that_is_recorded_later_is_not_too_soon(device: str, kernel: str, most: int) -> None:
    """Up to its agent's next record a return may be late, unless other warps went on with what comes after it."""
    random, agreed = Random(f"later {device} {kernel}"), 0
    for name in of_kernel(device, kernel, most, 2):
        program, trace, floors = opened(name)
        for one in random.sample(found := tight_returns(program, trace, floors), min(6, len(found))):
            events, after = trace.events, one.row + 1
            follows = after < len(events) and (events.cta[after], events.agent[after]) == (
                events.cta[one.row], events.agent[one.row]
            )  # fmt: skip
            room = int(events.cycle[after] - events.cycle[one.row]) if follows else 1000
            found_there = conform(program, returned_by(trace, one.row, -random.randint(0, room)))
            agreed += found_there.verdict is TraceVerdict.AGREES
            kind = found_there.divergence.kind if found_there.divergence is not None else None
            assert kind in (None, DivergenceKind.TOO_EARLY), (name, one, found_there.divergence)
    assert agreed >= 4


RING = "h200/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


@pytest.fixture(scope="module")
def ring() -> tuple[Program, Trace, Tight]:
    """A ring, and the full wait that returned soonest after its copy was issued."""
    trace = read_trace(TRACES / RING)
    program = find("producer_consumer").build(trace.meta.params)
    floors = present(floors_for(trace.meta.device.name))
    return program, trace, next(t for t in tight_returns(program, trace, floors) if t.path is ReleasePath.COPY)


def test_the_divergence_says_what_is_impossible(ring: tuple[Program, Trace, Tight]) -> None:
    program, trace, tight = ring
    early = returned_by(trace, tight.row, tight.slack + 21 + 5)  # the order of stamps is known to 20 cycles
    found = present(conform(program, early).divergence)
    assert found.early is not None
    assert (found.kind, found.cycle, found.late_by) == (DivergenceKind.TOO_SOON, early.events.cycle[tight.row], 6)
    assert found.early.after_cycles + found.late_by + 20 == found.early.bound_cycles == tight.least
    assert (found.early.operation, found.early.agent) == ("a copy of 16,384 bytes", "producer")
    assert found.early.line != found.line
    assert f"{found.early.after_cycles:,} cycles after producer issued a copy of 16,384 bytes" in found.claim
    assert f"this takes {tight.least:,} cycles or more" in found.claim
    assert "NVIDIA H200" in found.early.source


def test_the_bound_is_exact(ring: tuple[Program, Trace, Tight]) -> None:
    """At the bound, less what the order of stamps is uncertain by, the return is accepted; one cycle earlier, not."""
    program, trace, tight = ring
    assert conform(program, returned_by(trace, tight.row, tight.slack + 20)).divergence is None
    assert conform(program, returned_by(trace, tight.row, tight.slack + 21)).divergence is not None


def test_no_edit_explains_an_impossible_time(ring: tuple[Program, Trace, Tight]) -> None:
    program, trace, tight = ring
    early = returned_by(trace, tight.row, 400)
    seen = present(examine(program, early, conform(program, early)))
    assert seen.diagnosis is None


def test_a_release_that_was_not_recorded_bounds_nothing(ring: tuple[Program, Trace, Tight]) -> None:
    """In a window the copies of its first waits were issued before it: those returns are counted, not judged."""
    program, _, _ = ring
    whole = read_trace(TRACES / RING.replace("-g1.", "-g1-window20..40."))
    found = conform(program, whole)
    assert found.latency is not None
    assert found.latency.unchecked > 0
    assert found.latency.checked > found.latency.unchecked


# The document.


def document(**changes: Any) -> str:
    made = {"format": "pipesim-latency-floors", "version": 1, "device": "a chip", "sm_khz": 1_000_000, "source": "here"}
    return json.dumps(made | {"paths": {"copy": [[16, 300, 9], [1024, 310, 9], [4096, 400, 9]]}} | changes)


@pytest.mark.parametrize(
    "text",
    [
        document(version=2),
        document(format="pipesim-profile"),
        document(paths={"teleport": [[0, 1, 1]]}),
        "{",
        "[]",
        "5",
    ],
)
def test_what_is_no_document_of_this_package(text: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_floors(text, "here")
    assert (caught.value.place, caught.value.correction) == ("here", "install pipesim again, of which it is a part")


def test_stamps_of_two_sms_are_as_uncertain_as_their_places_on_the_time_line() -> None:
    """A remote arrive is compared on the common time line: the same return passes once the errors are large."""
    program, trace, floors = opened("h100/cluster_multicast-c2-cw2-ob8192-sb8192-s4-t3-w600-g2.parquet")
    one = next(t for t in tight_returns(program, trace, floors) if t.path is ReleasePath.MULTICAST_AWAY)
    early = returned_by(trace, one.row, one.slack + 300)
    found = conform(program, early)
    assert present(found.divergence).kind is DivergenceKind.TOO_SOON
    vague = replace(early.events, error_ps=early.events.error_ps + np.int64(10_000_000))
    lost = conform(program, Trace(early.meta, vague))
    assert lost.divergence is None or lost.divergence.early is None or "another CTA" not in lost.divergence.claim
