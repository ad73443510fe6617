"""CUTLASS's kernels: who arrives and waits, with which counts; what bounds a tile; which sizes are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipesim.explain.anatomy.read import anatomy
from pipesim.lang.protocol import Protocol
from pipesim.protocols.blackwell.cutlass_sm100 import cutlass_sm100
from pipesim.protocols.hopper.cutlass_sm90_cooperative import cutlass_sm90_cooperative
from pipesim.protocols.hopper.cutlass_sm90_pingpong import cutlass_sm90_pingpong
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile

H100 = load_profile("h100")
#: Copies, waits and arrivals cost next to nothing, stores little: what is left is the tensor cores' time and the
#: epilogue's.
FAST = replace(
    H100,
    values=H100.values
    | {"copy.issue": 5, "copy.bytes_per_kcycle": 10**6, "wait.issue": 5, "wait.retry": 1, "wait.poll": 1}
    | {"clock.tensor_permille": 1000, "clock.tensor_loaded_permille": 1000}
    | {"wait.wake_up": 5, "arrive.issue": 5, "transfer.latency": 500, "sync.latency": 30}
    | {"copy.store_bytes_per_kcycle": 10**6},
)

# the table of barriers


def table(protocol: Protocol, cta: int = 0) -> dict[str, tuple[int | None, dict[str, int], list[str]]]:
    """Of every barrier that is used: its count, what each role arrives in one phase (or lap), and who waits."""
    found = anatomy(protocol.flatten(), cta)
    return {
        g.name: (
            g.count,
            {s.role: s.agents * s.arrivals.high for s in g.signals if s.arrivals.high},
            sorted({w.role for w in g.waits}),
        )
        for g in found.groups
        if g.signals or g.waits
    }


def test_the_barriers_of_a_pair() -> None:
    leader, peer = (table(cutlass_sm100(cta_group=2), cta) for cta in (0, 1))
    assert leader["accum.empty"] == (256, {"epilogue": 128}, ["mma"])  # 128 of each CTA
    assert "accum.empty" not in peer
    assert (leader["clc.empty"][0], leader["epilogue_throttle"][0]) == (32 + 2 * (32 + 32 + 128), 96)
    assert peer["epilogue_throttle"] == (64, {"load": 32, "mma": 32}, ["epilogue"])  # no scheduler there
    assert leader["tmem_dealloc"] == peer["tmem_dealloc"] == (32, {"mma": 32}, ["mma"])
    assert "tmem_dealloc" not in table(cutlass_sm100())


# what bounds a tile


def period(make: Callable[..., Protocol], profile: Profile, **params: int) -> int:
    """Cycles of a tile in the steady state: eight more tiles take eight periods."""
    cycles = [simulate(make(tiles=tiles, **params).flatten(), profile).cycles for tiles in (12, 20)]
    return (cycles[1] - cycles[0]) // 8


MMA = 8 * 256  #: 8 steps of 64 by 128 by 64 on a Hopper SM, of 128 by 128 by 64 on a Blackwell SM


@pytest.mark.slow
def test_ping_pong_hides_the_shorter_of_the_two_and_cooperation_neither() -> None:
    epilogue = 4 * 800  # longer than the products
    assert epilogue < period(cutlass_sm90_pingpong, FAST, k_tiles=8, epilogue=800) < epilogue + MMA
    assert period(cutlass_sm90_cooperative, FAST, k_tiles=8, epilogue=800) > epilogue + 2 * MMA  # of 128 rows
    assert epilogue < period(cutlass_sm100, FAST, k_tiles=8, epilogue=800) < epilogue + MMA
    assert (
        period(cutlass_sm100, FAST, k_tiles=8, epilogue=800, accumulators=1) > MMA + 800 * 3
    )  # released before the last
