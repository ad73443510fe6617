"""Flash attention 4 as a protocol: its barrier table, its period, every configuration of upstream, and wrong twins."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipesim.errors import ParameterError
from pipesim.explain.anatomy.parts import Group
from pipesim.explain.anatomy.read import anatomy
from pipesim.model.ending import Ending
from pipesim.model.machine import finished, initial_state, land, step
from pipesim.model.moves import can_land
from pipesim.model.ops import Engine, Op
from pipesim.model.program import Program
from pipesim.pipelines.modular.attention.fa4 import BF16
from pipesim.protocols.blackwell.attention_sm100 import attention_sm100
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile

SPLIT = {"fused": 0, "qk_stages": 2}
ONE_Q = {**SPLIT, "num_qo": 1, "kv_stages": 3}
PAIR = {**SPLIT, "pair_cta": 1}


def program(**params: int) -> Program:
    return find("attention_sm100").build(params)


# the barriers


def said(group: Group) -> tuple[int, int | None, tuple[str, ...], tuple[str, ...]]:
    """How many, count, who signals, who waits."""
    return (
        len(group.stages),
        group.count,
        tuple(dict.fromkeys(f"{s.role} {s.means.name.lower()}" for s in group.signals)),
        tuple(sorted(w.role for w in group.waits)),
    )


def table(cta: int = 0, **params: int) -> dict[str, Any]:
    return {f"{g.name}[{g.stages[0]}]": said(g) for g in anatomy(program(**params), cta).groups}


S, C, M, L = ("softmax0", "softmax1"), "correction", "mma", "load"
TMA = ("load arrive_expect", "load copy")
COMMIT = ("mma commit",)
COMMON = {
    **{f"S{g}_cons[0]": (1, 256, (f"{S[g]} arrive", "correction arrive"), (M,)) for g in (0, 1)},
    **{f"S{g}_cons[1]": (1, 128, (f"{S[g]} arrive",), (M,)) for g in (0, 1)},
    **{f"C{g}_prod[0]": (1, 128, (f"{S[g]} arrive",), (C,)) for g in (0, 1)},
    **{f"C{g}_cons[0]": (1, 128, ("correction arrive",), (S[g],)) for g in (0, 1)},
    **{f"S{g}_prod[0]": (1, 1, COMMIT, (S[g],)) for g in (0, 1)},
    **{f"O_prod[{g}]": (1, 1, COMMIT, (C, S[g])) for g in (0, 1)},
}


def test_the_barriers_of_the_fused_kernel_are_those_of_the_table() -> None:
    assert table() == {
        **COMMON,
        "Q1Sync[0]": (1, 1, TMA, (M,)),
        "KV_prod[0]": (5, 1, TMA, (M,)),
        "KV_cons[0]": (5, 1, COMMIT, (L,)),
    }


def test_split_rings_have_barriers_of_their_own_and_k_a_pair_for_each_slice() -> None:
    assert table(**SPLIT, kv_stages=2) == {
        **COMMON,
        "Q1Sync[0]": (2, 1, TMA, (M,)),
        "K_prod[0]": (4, 1, TMA, (M,)),
        "K_cons[0]": (4, 1, COMMIT, (L,)),
        "V_prod[0]": (2, 1, TMA, (M,)),
        "V_cons[0]": (2, 1, COMMIT, (L,)),
    }


def test_one_q_tile_has_no_barrier_for_a_second_and_both_groups_wait_for_both_sums() -> None:
    found = table(**ONE_Q)
    assert "Q1Sync[0]" not in found
    assert found["O_prod[0]"] == (2, 1, COMMIT, (C, *S))
    assert found.items() >= {(name, row) for name, row in COMMON.items() if not name.startswith("O_prod")}


def test_a_pair_counts_both_ctas_at_the_leader() -> None:
    leader, peer = table(**PAIR), table(1, **PAIR)
    assert [leader[f"S0_cons[{q}]"][1] for q in (0, 1)] == [512, 256]
    assert leader["S0_cons[0]"][3] == (M,)
    assert peer["S0_cons[0]"] == (1, 512, (), ()), "nobody arrives at the peer's"
    assert peer["S0_prod[0]"] == (1, 1, COMMIT, (S[0],)), "the leader's MMA warp commits to both"
    (group,) = (g for g in anatomy(program(**PAIR)).groups if g.name == "S0_cons" and g.stages == (0,))
    assert {(s.role, s.ctas) for s in group.signals} == {(role, (cta,)) for role in (S[0], C) for cta in (0, 1)}


# the configurations


#: keys of a tile, slots, slices of K, and whether K and V share a ring: upstream's choice for a B200
UPSTREAM = [
    ({"depth": 64, "block_n": 192, "fused": 0, "kv_stages": 4}, (192, 4, 1, 0)),
    ({}, (128, 5, 1, 1)),
    ({**PAIR, "kv_stages": 5}, (128, 5, 2, 0)),
    (ONE_Q, (128, 3, 2, 0)),
    ({**SPLIT, "kv_stages": 6, "element_bytes": 1}, (128, 6, 2, 0)),
]


@pytest.mark.parametrize(("params", "chosen"), UPSTREAM, ids=["depth 64", "depth 128", "pair", "one Q", "fp8"])
def test_upstreams_configurations_fit(params: dict[str, int], chosen: tuple[int, ...]) -> None:
    built = program(**params, kv_blocks=2)
    mine = {**find("attention_sm100").defaults, **params}
    assert (mine["block_n"], mine["kv_stages"], mine["qk_stages"], mine["fused"]) == chosen
    assert built.smem_bytes <= 227 * 1024


@pytest.mark.parametrize(
    "params",
    [
        {"kv_stages": 1}, {"qk_stages": 2}, {"pair_cta": 1, "num_qo": 1}, {"pv_stages": 3}, {"element_bytes": 3},
        {"fused": 2},
    ],
)  # fmt: skip
def test_what_upstream_does_not_have_is_refused(params: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        attention_sm100(**params)
    assert BF16.nbytes == find("attention_sm100").defaults["element_bytes"]


# its period


def at_once() -> Profile:
    """A chip on which nothing takes time but what the protocol says: matrix products and work."""
    chip = load_profile("h100")
    values = {name: 10**12 if "bytes" in name else int(name == "wait.poll") for name in chip.values}
    return replace(chip, values=values | {"clock.tensor_permille": 1000, "clock.tensor_loaded_permille": 1000})


def period(**params: int) -> int:
    """Cycles of a block, or of two with one Q tile, in the middle of a long run."""
    steps = 2 if params.get("num_qo") == 1 else 1
    ends = [simulate(program(**params, kv_blocks=n * steps), at_once()).cycles for n in (8, 12)]
    assert (ends[1] - ends[0]) % 4 == 0
    return (ends[1] - ends[0]) // 4


PRODUCT = 2 * 128 * 128 * 128 // 8192  #: cycles of one of the four products of a block


@pytest.mark.parametrize(
    "params", [{}, {**SPLIT, "kv_stages": 2}, ONE_Q, PAIR], ids=["fused", "split", "one Q", "pair"]
)
def test_four_products_bound_the_period_where_the_softmax_is_quick(params: dict[str, int]) -> None:
    assert period(**params, softmax=600, correction=200) == 4 * PRODUCT


def test_a_slow_softmax_bounds_it_by_the_way_from_its_scores_to_its_values() -> None:
    """S0, softmax, the last slice of P V; group 1 is on its own way meanwhile."""
    assert period(softmax=3000, correction=0) == PRODUCT + 3000 + PRODUCT // 2 + 1, (
        "and one poll, the shortest there is"
    )
    assert period(softmax=5000, correction=0) - period(softmax=3000, correction=0) == 2000


def test_a_slow_correction_bounds_it_twice_for_it_serves_both_groups() -> None:
    assert period(softmax=0, correction=5000) - period(softmax=0, correction=3000) == 2 * 2000


# any schedule, and wrong twins


def schedule(program: Program, seed: int) -> str:
    """One random schedule: the first fault, or how it ended. An agent runs on for a while, so that it gets ahead."""
    rng = random.Random(seed)
    state = initial_state(program)
    while True:
        todo: list[Any] = [a for a in range(len(program.agents)) if not finished(program, state, a)]
        todo += [flight for flight in state.flights if can_land(state, flight)]
        rng.shuffle(todo)
        for chosen in todo:
            steps = rng.choice((1, 8, 40)) if isinstance(chosen, int) else 1
            moved = False
            for _ in range(steps):
                if isinstance(chosen, int) and finished(program, state, chosen):
                    break
                made = step(program, state, chosen) if isinstance(chosen, int) else land(program, state, chosen, -1)
                moved |= made.state is not state
                state = made.state
                if made.faults:
                    return made.faults[0].kind.name
                if made.blocked >= 0:
                    break
            if moved:
                break
        else:
            ended = all(finished(program, state, a) for a in range(len(program.agents)))
            return "finished" if ended and not state.flights else "stuck"


def outcomes(program: Program, schedules: int = 12) -> set[str]:
    return {schedule(program, seed) for seed in range(schedules)}


@pytest.mark.parametrize(
    "params",
    [
        {}, {"kv_stages": 2}, {**SPLIT, "kv_stages": 1}, {**ONE_Q, "kv_blocks": 5}, {"num_qo": 1, "kv_stages": 2},
        {**PAIR, "kv_stages": 2},
    ],
)  # fmt: skip
def test_no_schedule_of_the_right_one_goes_wrong(params: dict[str, int]) -> None:
    assert outcomes(program(**{"kv_blocks": 4, **params}), 6) == {"finished"}


def edited(program: Program, role: str, edit: Callable[[list[int], tuple[Any, ...]], list[int]]) -> Program:
    """The program with the operations of a role's agents put in another order, or fewer of them."""
    code, lines = list(program.code), list(program.lines)
    changed = False
    for agent, one in enumerate(program.agents):
        if one.role == role:
            order = edit(list(range(len(code[agent]))), code[agent])
            changed |= order != list(range(len(code[agent])))
            code[agent] = tuple(program.code[agent][pc] for pc in order)
            lines[agent] = tuple(program.lines[agent][pc] for pc in order)
    assert changed
    return replace(program, code=tuple(code), lines=tuple(lines))


def on(program: Program, name: str, op: Op) -> Callable[[tuple[int, ...]], bool]:
    """Whether an operation is of this kind, on a barrier of this name (``S0_cons[1]``)."""
    barrier = next(b for b in range(len(program.barriers)) if program.barrier_name(b) == name)
    at = 2 if op == Op.COMMIT else 1
    return lambda operation: operation[0] == op and operation[at] == barrier


def places(code: tuple[Any, ...], wanted: Callable[[tuple[int, ...]], bool]) -> list[int]:
    return [pc for pc, operation in enumerate(code) if wanted(operation)]


def with_count(program: Program, name: str, count: int) -> Program:
    wanted = on(program, name, Op.INIT)
    code = tuple(
        tuple((op[0], op[1], count) if wanted(op) else op for op in agent) for agent in program.code
    )  # fmt: skip
    return replace(program, code=code)


def moved(order: list[int], pc: int, to: int) -> list[int]:
    order.remove(pc)
    order.insert(order.index(to), pc)
    return order


RIGHT = {"kv_blocks": 4, "kv_stages": 3}


def test_the_dummy_arrivals_are_needed() -> None:
    right = program(**RIGHT)
    arrive = on(right, "S1_cons[0]", Op.ARRIVE)
    wrong = edited(right, "correction", lambda order, code: [pc for pc in order if pc != places(code, arrive)[0]])
    assert outcomes(right) == {"finished"}
    assert outcomes(wrong) == {"stuck"}


@pytest.mark.parametrize(("count", "ends"), [(257, {"stuck"}), (255, {"OVER_ARRIVAL"}), (128, {"RACE", "WRONG_ITEM"})])
def test_another_count_of_the_barrier_that_softmax_and_correction_share_is_found(count: int, ends: set[str]) -> None:
    """128 forgets one of the two groups: O is added to before it is corrected."""
    right = program(**RIGHT)
    found = outcomes(with_count(right, "S0_cons[0]", count))
    assert found - {"finished", "OVER_ARRIVAL"} if count == 128 else found == ends
    assert found & ends
    assert outcomes(with_count(right, "S0_cons[0]", 256)) == {"finished"}


def test_v_must_be_held_until_the_late_product_of_group_1() -> None:
    """The commit that frees V, made before that product is issued, does not wait for it."""
    right = program(**RIGHT)
    late = on(right, "O_prod[1]", Op.COMMIT)

    def early(order: list[int], code: tuple[Any, ...]) -> list[int]:
        before = on(right, "S1_cons[0]", Op.WAIT)
        for wait, commit in zip(places(code, before), places(code, late), strict=True):
            order = moved(order, commit + 1, wait)  # what frees V follows the commit for O
        return order

    assert {Engine(code[pc + 1][1]) for code in right.code for pc in places(code, late)} == {Engine.TCGEN05}
    assert outcomes(right) == {"finished"}
    assert outcomes(edited(right, "mma", early)) & {"RACE", "WRONG_ITEM"}


@pytest.mark.slow
def test_a_slice_of_p_is_written_before_it_is_handed_over() -> None:
    """P lies where the scores were: with both slices handed over behind the first, the MMA would read scores as P."""
    right = program(**RIGHT)
    first, second = (on(right, f"S0_cons[{q}]", Op.ARRIVE) for q in (0, 1))

    def early(order: list[int], code: tuple[Any, ...]) -> list[int]:
        for one, two in zip(places(code, first), places(code, second), strict=True):
            order = moved(order, two, one)
        return order

    assert outcomes(right, 30) == {"finished"}
    assert outcomes(edited(right, "softmax0", early), 30) >= {"WRONG_ITEM"}


def test_the_second_q_tile_is_waited_for() -> None:
    right = program(**RIGHT)
    wait = on(right, "Q1Sync[0]", Op.WAIT)
    wrong = edited(right, "mma", lambda order, code: [pc for pc in order if pc not in places(code, wait)])
    assert outcomes(wrong) & {"RACE", "UNINITIALISED_READ"}


def test_the_wait_for_the_factors_place_is_needed_both_ways() -> None:
    """Without it softmax relies on the order of two commits of the MMA warp, which PTX does not promise."""
    right = program(**RIGHT)
    wait = on(right, "C0_cons[0]", Op.WAIT)
    without = edited(right, "softmax0", lambda order, code: [pc for pc in order if pc not in places(code, wait)])
    assert "WRONG_ITEM" in outcomes(without, 30)
    other = on(right, "C0_prod[0]", Op.WAIT)
    wrong = edited(right, "correction", lambda order, code: [pc for pc in order if pc not in places(code, other)])
    assert outcomes(wrong) & {"RACE", "UNINITIALISED_READ", "WRONG_ITEM"}, "the other way it is needed"


def test_a_fused_ring_of_one_slot_waits_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it is refused: V is held while the next K is waited for, in the same slot."""
    monkeypatch.setattr("pipesim.protocols.blackwell.attention_sm100.require", lambda *_, **__: None)
    ends = [simulate(program(kv_blocks=2, kv_stages=n), load_profile("h100")).outcome for n in (1, 2)]
    assert ends == [Ending.DEADLOCK, Ending.FINISHED]


def test_a_run_without_blocks_only_sets_registers() -> None:
    empty = program(kv_blocks=0)
    assert simulate(empty, load_profile("h100")).outcome is Ending.FINISHED
    assert not any(op[0] in (Op.WAIT, Op.TMA_LOAD, Op.ARRIVE) for code in empty.code for op in code)
