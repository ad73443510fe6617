"""CUTLASS's kernels: who arrives and waits, with which counts; what bounds a tile; which sizes are refused."""

from pipesim.explain.anatomy.read import anatomy
from pipesim.lang.protocol import Protocol
from pipesim.protocols.blackwell.cutlass_sm100 import cutlass_sm100

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
