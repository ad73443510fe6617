"""Stores in the copy engine of an SM."""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.timed.simulation import Simulation
from pipesim.trace.schema import EventKind


def stores(begins: dict[str, int], nbytes: int) -> Program:
    """Each role begins a store of so many bytes at its time."""
    p = Protocol("stores")
    for name, begin in begins.items():
        tile = p.smem(name, 1, nbytes)

        @p.role(name)
        def role(w: Warp, begin: int = begin, tile: object = tile) -> None:
            w.write(tile[0], 0)  # type: ignore[index]
            w.work(begin)
            with w.elect_one():
                w.async_read(Engine.BULK, tile[0], 0)  # type: ignore[index]
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK)
            w.work(1)

    return p.flatten({})


def done(run: Simulation, role: str) -> int:
    """When a role's store has been read."""
    assert run.faults == ()
    events = run.trace.events
    mine = [run.trace.meta.agent_name(int(a)).startswith(role) for a in events.agent]
    kinds = [run.trace.meta.sites[int(s)].kind for s in events.site]
    found = zip(events.cycle, mine, kinds, strict=True)
    return [int(cycle) for cycle, own, kind in found if own and kind is EventKind.WORK_BEGIN][-1]


#: Bytes of a store: cycles until it was read (H200; docs/hopper.md).
MEASURED = {4096: 367, 8192: 495, 16384: 751, 32768: 1263}


def test_stores_take_what_was_measured() -> None:
    """But for what begins and ends one, which is the same for all sizes."""
    h200 = load_profile("h200")
    found = {nbytes: done(simulate(stores({"one": 100}, nbytes), h200), "one") for nbytes in MEASURED}
    assert {nbytes: at - found[4096] for nbytes, at in found.items()} == {
        nbytes: at - MEASURED[4096] for nbytes, at in MEASURED.items()
    }
