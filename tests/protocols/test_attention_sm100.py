"""Flash attention 4 as a protocol: its barrier table, the sizes that it has, and its period."""

from dataclasses import replace
from typing import Any

import pytest

from pipesim.errors import ParameterError
from pipesim.explain.anatomy.parts import Group
from pipesim.explain.anatomy.read import anatomy
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.protocols.blackwell.attention_sm100 import attention_sm100
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile, load_profile

SPLIT = {"fused": 0, "qk_stages": 2}
ONE_Q = {**SPLIT, "num_qo": 1, "kv_stages": 3}


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


S, C = ("softmax0", "softmax1"), "correction"
COMMIT = ("mma commit",)


def test_one_q_tile_has_no_barrier_for_a_second_and_both_groups_wait_for_both_sums() -> None:
    found = table(**ONE_Q)
    assert "Q1Sync[0]" not in found
    assert found["O_prod[0]"] == (2, 1, COMMIT, (C, *S))


# the configurations


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


@pytest.mark.slow
def test_a_slow_softmax_bounds_it_by_the_way_from_its_scores_to_its_values() -> None:
    """S0, softmax, the last slice of P V; group 1 is on its own way meanwhile."""
    assert period(softmax=3000, correction=0) == PRODUCT + 3000 + PRODUCT // 2 + 1, (
        "and one poll, the shortest there is"
    )
    assert period(softmax=5000, correction=0) - period(softmax=3000, correction=0) == 2000


@pytest.mark.slow
def test_a_slow_correction_bounds_it_twice_for_it_serves_both_groups() -> None:
    assert period(softmax=0, correction=5000) - period(softmax=0, correction=3000) == 2 * 2000


# its least sizes


def test_a_fused_ring_of_one_slot_waits_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it is refused: V is held while the next K is waited for, in the same slot."""
    monkeypatch.setattr("pipesim.protocols.blackwell.attention_sm100.require", lambda *_, **__: None)
    ends = [simulate(program(kv_blocks=2, kv_stages=n), load_profile("h100")).outcome for n in (1, 2)]
    assert ends == [Ending.DEADLOCK, Ending.FINISHED]
