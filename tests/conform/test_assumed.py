"""Which assumed values of a profile a program's time rests on: those that change what an iteration costs."""

from dataclasses import replace

import pytest

from pipesim.conform.times import AssumedKind, assumed_of
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

VALUES = (
    "class.alu", "class.fresh_copies", "copy.device_bytes_per_kcycle", "copy.device_fresh_bytes_per_kcycle",
    "copy.store_bytes_per_kcycle", "transfer.latency",
)  # fmt: skip
H200 = replace(load_profile("h200"), assumed=VALUES)


def looping(
    *, loads: bool = False, fresh: int = 0, stores: bool = False, waits: bool = False, grid: int = 1, alu: int = -1
) -> Program:
    """One agent's loop: a load, a store that it may wait for, a multiplication with ``alu`` instructions beside it."""
    p = Protocol("looping")
    tile, more, sums = p.smem("tile", 1, 16_384), p.smem("more", 1, 4_096), p.registers("sums", 1, 512)
    full = p.mbarriers("full", 1)
    p.init(lambda: full[0].init(1))

    @p.role("does")
    def does(w: Warp) -> None:
        for i in w.loop(6, "tiles"):
            with w.elect_one():
                if loads:
                    full[0].expect_bytes(16_384)
                    w.tma_load(tile[0], full[0], i)
                    if fresh:
                        w.compute("looping/load", fresh_copies=fresh)
                    full[0].wait(i & 1)
                if stores:
                    w.async_read(Engine.BULK, more[0], 0)
                    w.commit(Engine.BULK)
                    if waits:
                        w.wait_group(Engine.BULK)
            if alu >= 0:
                w.mma(Engine.WGMMA, reads=[], writes=[(sums[0], 0)], cycles=100)
                w.compute("looping/product", mma=65_536, products=1, **({"alu": alu} if alu else {}))

    return replace(p.flatten({}), grid=grid)


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (looping(loads=True), []),
        (looping(loads=True, grid=132), ["copy.device_bytes_per_kcycle"]),
        (looping(loads=True, fresh=1), ["class.fresh_copies"]),
        (looping(loads=True, fresh=1, grid=132), ["class.fresh_copies", "copy.device_fresh_bytes_per_kcycle"]),
        (looping(alu=0), []),
        (looping(alu=60), ["class.alu"]),
        (looping(stores=True), []),
        (looping(stores=True, waits=True), ["copy.store_bytes_per_kcycle", "transfer.latency"]),
        (looping(stores=True, loads=True), ["copy.store_bytes_per_kcycle"]),
    ],
)
def test_what_is_named_is_what_matters(program: Program, names: list[str]) -> None:
    """A store that nobody awaits delays the loads; with one CTA the device's rate is not what limits it."""
    trace = simulate(program, H200).trace
    found = [each.name for each in assumed_of(program, H200, trace) if each.kind is AssumedKind.VALUE]
    assert found == names


def test_a_value_that_matters_changes_the_run() -> None:
    """The twin: with another value the whole run takes another time, and not with others."""
    program = looping(loads=True, fresh=1, grid=132)
    base = simulate(program, H200).cycles
    halved = {name: replace(H200, values=H200.values | {name: H200[name] // 2}) for name in VALUES}
    changed = {name for name, other in halved.items() if simulate(program, other).cycles != base}
    assert changed == {"class.fresh_copies", "copy.device_fresh_bytes_per_kcycle"}
