"""CUTLASS's kernels: who arrives and waits, with which counts; what bounds a tile; every schedule; and wrong twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipesim.errors import ParameterError
from pipesim.explain.anatomy.read import anatomy
from pipesim.lang.protocol import Protocol
from pipesim.model.machine import finished, initial_state, land, step
from pipesim.model.moves import can_land
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.protocols.blackwell.cutlass_sm100 import cutlass_sm100
from pipesim.protocols.hopper.cutlass_sm90_cooperative import cutlass_sm90_cooperative
from pipesim.protocols.hopper.cutlass_sm90_pingpong import cutlass_sm90_pingpong
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile
from tests.support.lanes import slow_but
from tests.support.random_schedules import outcomes

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


CONSUMERS = ["consumer0", "consumer1"]


def test_the_barriers_of_ping_pong() -> None:
    assert table(cutlass_sm90_pingpong(residual=1)) == {
        "mainloop.full": (1, {"load": 1}, CONSUMERS),
        "mainloop.empty": (128, {"consumer0": 128, "consumer1": 128}, ["load"]),  # one or the other
        "epi_load.full": (32, {"epilogue_load": 32}, CONSUMERS),
        "epi_load.empty": (128, {"consumer0": 128, "consumer1": 128}, ["epilogue_load"]),
        "load_order.group1": (32, {"load": 32}, ["epilogue_load"]),
        "math_wg_order.group0": (128, {"consumer1": 128}, ["consumer0"]),
        "math_wg_order.group1": (128, {"consumer0": 128}, ["consumer1"]),
    }


def test_the_barriers_of_the_cooperative_kernel() -> None:
    assert table(cutlass_sm90_cooperative(residual=1)) == {
        "mainloop.full": (1, {"load": 1}, ["consumer"]),
        "mainloop.empty": (256, {"consumer": 256}, ["load"]),
        "epi_load.full": (32, {"epilogue_load": 32}, ["consumer"]),
        "epi_load.empty": (256, {"consumer": 256}, ["epilogue_load"]),
        "load_order.group1": (32, {"load": 32}, ["epilogue_load"]),
    }


@pytest.mark.parametrize(("make", "count"), [(cutlass_sm90_pingpong, 2), (cutlass_sm90_cooperative, 4)])
def test_in_a_cluster_one_thread_of_a_warp_group_signals_a_cta(make: Callable[..., Protocol], count: int) -> None:
    found = anatomy(make(cluster=2).flatten())
    (empty,) = (g for g in found.groups if g.name == "mainloop.empty" or g.name == "empty")
    assert empty.count == count
    each = {(s.role, s.ctas): s.agents * s.arrivals.high for s in empty.signals}
    groups = count // 2  # that read the stage, in each of the two CTAs
    assert each == {(role, (cta,)): groups for role, _ in each for cta in (0, 1)}


def test_the_barriers_of_blackwell() -> None:
    roles = ["epilogue", "epilogue_load", "load", "mma", "scheduler"]
    assert table(cutlass_sm100(residual=1)) == {
        "mainloop.full": (1, {"load": 1}, ["mma"]),
        "mainloop.empty": (1, {"mma": 1}, ["load"]),
        "accum.full": (1, {"mma": 1}, ["epilogue"]),
        "accum.empty": (128, {"epilogue": 128}, ["mma"]),
        "clc.full": (1, {"scheduler": 1}, roles),
        "clc.empty": (256, {"epilogue": 128, "epilogue_load": 32, "load": 32, "mma": 32, "scheduler": 32},
                      ["scheduler"]),
        "clc_throttle.full": (32, {"load": 32}, ["scheduler"]),
        "clc_throttle.empty": (32, {"scheduler": 32}, ["load"]),
        "epi_load.full": (32, {"epilogue_load": 32}, ["epilogue"]),
        "epi_load.empty": (128, {"epilogue": 128}, ["epilogue_load"]),
        "load_order.group1": (32, {"load": 32}, ["epilogue_load"]),
        "epilogue_throttle": (128, {"epilogue_load": 32, "load": 32, "mma": 32, "scheduler": 32}, ["epilogue"]),
    }  # fmt: skip


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


def test_on_an_h100_the_loading_lane_bounds_ping_pong() -> None:
    step = H100["wait.issue"] + H100["expect.issue"] + 2 * H100["copy.issue"] + H100["loop.issue"]
    quick = replace(H100, values=H100.values | {"sync.latency": 30})  # else the order of the math groups does
    assert period(cutlass_sm90_pingpong, quick, k_tiles=8) == 8 * step


MMA = 8 * 256  #: 8 steps of 64 by 128 by 64 on a Hopper SM, of 128 by 128 by 64 on a Blackwell SM


@pytest.mark.parametrize("make", [cutlass_sm90_pingpong, cutlass_sm100])
def test_with_fast_loads_the_tensor_cores_bound_it(make: Callable[..., Protocol]) -> None:
    assert MMA <= period(make, FAST, k_tiles=8) < 1.15 * MMA


@pytest.mark.slow
def test_ping_pong_hides_the_shorter_of_the_two_and_cooperation_neither() -> None:
    epilogue = 4 * 800  # longer than the products
    assert epilogue < period(cutlass_sm90_pingpong, FAST, k_tiles=8, epilogue=800) < epilogue + MMA
    assert period(cutlass_sm90_cooperative, FAST, k_tiles=8, epilogue=800) > epilogue + 2 * MMA  # of 128 rows
    assert epilogue < period(cutlass_sm100, FAST, k_tiles=8, epilogue=800) < epilogue + MMA
    assert (
        period(cutlass_sm100, FAST, k_tiles=8, epilogue=800, accumulators=1) > MMA + 800 * 3
    )  # released before the last


# every schedule, and wrong twins


def edited(program: Program, change: Callable[[str, Operation, str], Operation | None]) -> Program:
    """The program with every operation changed, or left out: ``change(role, operation, name of its barrier)``."""
    code, lines = [], []
    for agent, ops in enumerate(program.code):
        kept: list[tuple[Operation, int]] = []
        for op, line in zip(ops, program.lines[agent], strict=True):
            on = op[2] if op[0] in (Op.COMMIT, Op.COMMIT_MULTICAST) else op[1] if op[0] in ON_BARRIER else -1
            new = change(program.agents[agent].role, op, program.barrier_name(on) if on >= 0 else "")
            if new is not None:
                kept.append((new, line))
        code.append(tuple(op for op, _ in kept))
        lines.append(tuple(line for _, line in kept))
    return replace(program, code=tuple(code), lines=tuple(lines))


ON_BARRIER = {Op.INIT, Op.ARRIVE, Op.WAIT, Op.WAIT_UNLESS}


def lazy(program: Program) -> str:
    """How the schedule ends in which a transfer lands only when nobody can move, a store only when nothing else can."""
    state = initial_state(program)
    while True:
        before = state
        for agent in range(len(program.agents)):
            while not finished(program, state, agent):
                made = step(program, state, agent)
                if made.faults:
                    return made.faults[0].kind.name
                if made.state is state:
                    break
                state = made.state
        if state is before:
            able = [f for f in state.flights if can_land(state, f)]
            if not able:
                ended = all(finished(program, state, agent) for agent in range(len(program.agents)))
                return "finished" if ended else "stuck"
            state = land(program, state, min(able, key=lambda f: f.engine == Engine.BULK)).state


def without(role: str, op: Op, on: str = "") -> Callable[[Program], Program]:
    """A role leaves out an operation, on the barriers of this name if one is given."""
    return lambda program: edited(
        program, lambda r, o, name: None if (r, o[0]) == (role, op) and name.startswith(on) else o
    )


def counting(on: str, count: int) -> Callable[[Program], Program]:
    """The barriers of this name are initialised with another count."""
    return lambda program: edited(
        program, lambda _, o, name: (o[0], o[1], count) if o[0] == Op.INIT and name.startswith(on) else o
    )


def no_wait_group(engine: Engine, groups: int) -> Callable[[Program], Program]:
    """Nobody waits until at most so many groups of this engine are unfinished."""
    return lambda program: edited(program, lambda _, o, __: None if o == (Op.WAIT_GROUP, engine, groups) else o)


def arriving(program: Program) -> Program:
    """The MMA warp gives a stage back with an arrive: it does not wait for its products."""
    return edited(
        program,
        lambda _, o, name: (
            (int(Op.ARRIVE), o[2], 1, 0, -1, 0) if o[0] == Op.COMMIT and name.startswith("mainloop.empty") else o
        ),
    )


def the_same(program: Program) -> Program:
    """Nothing is wrong."""
    return program


Twin = tuple[Callable[..., Protocol], dict[str, int], Callable[[Program], Program], set[str]]
SMALL = {"tiles": 4, "k_tiles": 3, "stages": 2, "block_n": 64, "residual": 1}
PAIR = {"tiles": 2, "k_tiles": 3, "stages": 2, "block_n": 32, "cluster": 2}
FOUND = {"UNINITIALISED_READ", "WRONG_ITEM", "RACE", "OVER_ARRIVAL", "BARRIER_OVERRUN", "stuck"}  #: one or another
TWINS: dict[str, Twin] = {
    "ping-pong": (cutlass_sm90_pingpong, SMALL, the_same, {"finished"}),
    "nobody unlocks the first group again":
        (cutlass_sm90_pingpong, SMALL, without("consumer1", Op.ARRIVE, "math_wg_order"), {"stuck"}),
    "the second group does not wait for its turn": (
        cutlass_sm90_pingpong, SMALL, without("consumer1", Op.WAIT, "math_wg_order"),
        FOUND,
    ),
    "the stores are not waited for before the other group's":
        (cutlass_sm90_pingpong, SMALL, no_wait_group(Engine.BULK, 0), {"RACE", "finished"}),
    "a stage is given back before its product is done":
        (cutlass_sm90_pingpong, SMALL, no_wait_group(Engine.WGMMA, 1), {"RACE", "finished"}),
    "both groups are counted, as in the cooperative kernel":
        (cutlass_sm90_pingpong, SMALL, counting("mainloop.empty", 256), {"stuck"}),
    "one warp's arrivals are not counted":
        (cutlass_sm90_pingpong, SMALL, counting("mainloop.empty", 96), FOUND),
    "ping-pong in a cluster": (cutlass_sm90_pingpong, PAIR, the_same, {"finished"}),
    "one lane speaks for warps that are not done":
        (cutlass_sm90_pingpong, PAIR, no_wait_group(Engine.WGMMA, 1), {"RACE", "finished"}),
    "the load warp exits without its tail": (
        cutlass_sm90_pingpong, PAIR | {"k_tiles": 1, "stages": 4}, without("load", Op.WAIT),
        {"EXITED_CTA", "RACE", "finished"},
    ),
    "cooperative": (cutlass_sm90_cooperative, SMALL, the_same, {"finished"}),
    "one group is counted, as in ping-pong":
        (cutlass_sm90_cooperative, SMALL, counting("mainloop.empty", 128), {"RACE", "stuck"}),
    "Blackwell": (cutlass_sm100, SMALL, the_same, {"finished"}),
    "the epilogue keeps its accumulators":
        (cutlass_sm100, SMALL, without("epilogue", Op.ARRIVE, "accum.empty"), {"stuck"}),
    "the scheduler counts an epilogue-load warp that is idle":
        (cutlass_sm100, SMALL | {"residual": 0}, counting("clc.empty", 256), {"stuck"}),
    "an arrive in place of the commit": (cutlass_sm100, SMALL, arriving, {"RACE"}),
    "C is never let in": (cutlass_sm100, SMALL, without("load", Op.ARRIVE, "load_order"), {"stuck"}),
    "a pair": (cutlass_sm100, SMALL | {"cta_group": 2, "tiles": 2}, the_same, {"finished"}),
    "the pair's epilogue is counted once": (
        cutlass_sm100, SMALL | {"cta_group": 2, "tiles": 3}, counting("accum.empty", 128),
        {"stuck"},
    ),
    "the peer's epilogue waits for a scheduler too":
        (cutlass_sm100, SMALL | {"cta_group": 2}, counting("epilogue_throttle", 128), {"stuck"}),
    "the peer does not say that it has come":
        (cutlass_sm100, SMALL | {"cta_group": 2, "tiles": 1}, without("mma", Op.ARRIVE, "tmem_dealloc"), {"stuck"}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but(list(TWINS)[:6], TWINS))
def test_right_kernels_end_in_every_schedule_and_wrong_twins_are_found(name: str) -> None:
    make, params, edit, allowed = TWINS[name]
    program = edit(make(**params).flatten())
    seen = outcomes(program, 12) | {lazy(program)}
    assert seen <= allowed
    assert (seen == {"finished"}) == (edit is the_same)


def test_a_main_loop_of_one_stage_is_refused_because_it_would_wait_for_itself() -> None:
    """A stage is given back when the next product runs: with a single stage there is no next one."""
    for make in (cutlass_sm90_pingpong, cutlass_sm90_cooperative):
        with pytest.raises(ParameterError, match="stages = 1"):
            make(stages=1)
        with pytest.raises(ParameterError, match="k_tiles = 0"):
            make(k_tiles=0)
    with pytest.raises(ParameterError, match="tiles = 0"):
        cutlass_sm100(tiles=0)
