"""The fused ring of Hopper's attention: order of tiles, slots and phases, the fewest slots, and wrong twins of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from pipesim.errors import ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines.modular.attention.fa4 import BF16, FA4Config
from pipesim.protocols.hopper.attention_sm90_fused import FusedAttention, attention_sm90_fused
from pipesim.protocols.hopper.staged_attention import Turns, give_back
from pipesim.prove.check import check
from tests.support.program_edits import Edit, no_wait_group, reordered, the_same


def made(
    kind: type[FusedAttention] = FusedAttention, *, blocks: int = 5, stages: int = 3, num_consumer: int = 1
) -> Program:
    """The protocol's roles, or those of a twin, also with sizes that the protocol refuses."""
    p = Protocol("attention_sm90_fused")
    config = FA4Config(BF16, 64, 64, stages, use_fused_kv=True)
    attention = kind.for_protocol(p, config, blocks=blocks, turns=Turns.for_consumers(num_consumer, 1), softmax=900)
    attention.roles(p)
    return p.flatten({})


def test_one_slot_is_too_few_where_a_second_block_comes() -> None:
    """A consumer that holds V waits for a K whose slot is V's."""
    for blocks in (0, 1):
        assert check(made(stages=1, blocks=blocks)).verdict is Verdict.PROVED
    found = check(made(stages=1, blocks=2))
    assert found.verdict is Verdict.REFUTED
    (shown,) = found.refutations
    assert shown.end is Ending.DEADLOCK
    assert shown.deadlock is not None
    assert {(b.agent.partition("/")[0], b.barrier) for b in shown.deadlock.blocked} == {
        ("producer", "kv.empty[0]"), ("consumer", "kv.full[0]")
    }  # fmt: skip
    with pytest.raises(ParameterError, match="stages = 1") as refused:
        attention_sm90_fused(stages=1)
    assert "holds V" in refused.value.cause


class Primed(FusedAttention):
    """Consumers free every slot first, as upstream's kernel for Hopper has it; but this producer begins at phase 1."""

    def consumer(self, w: Warp) -> None:
        for slot in range(self.config.num_kv_stages):
            give_back(w, self.rings()[0].consumer_mbar(0, slot))
        super().consumer(w)


class OfTheOther(FusedAttention):
    """The product with V reads the slot after it, where K of the next block lies."""

    def multiply_values(self, w: Warp, slot: int, n: int) -> None:
        super().multiply_values(w, (slot + 1) % self.config.num_kv_stages, n)


def _releases(code: Sequence[Operation]) -> list[int]:
    return [n for n, op in enumerate(code) if op[0] == Op.ARRIVE]


def _with_the_slot_of_k(code: Sequence[Operation]) -> list[int]:
    """V is given back by the number of the K that was given back before it."""
    order = list(range(len(code)))
    releases = _releases(code)
    for k, v in zip(releases[1:-1:2], releases[2:-1:2], strict=True):
        order[v] = k
    return order


def _without_v(code: Sequence[Operation]) -> list[int]:
    """The V that is held is never given back."""
    held = set(_releases(code)[2:-1:2])
    return [n for n in range(len(code)) if n not in held]


def _phase_0(program: Program) -> Program:
    """The producer begins at phase 0, as the constructor of a StagedPipeline leaves it."""
    at = next(n for n, agent in enumerate(program.agents) if agent.role == "producer")
    code = list(program.code)
    code[at] = tuple((*op[:2], 1 - op[2], *op[3:]) if op[0] == Op.WAIT else op for op in code[at])
    return replace(program, code=tuple(code))


def _consumers(order: Callable[[Sequence[Operation]], list[int]]) -> Edit:
    return lambda program: reordered(program, "consumer", order)


TWINS: dict[str, tuple[type[FusedAttention], Edit, set[FaultKind | Ending]]] = {
    "primed": (Primed, the_same, {FaultKind.OVER_ARRIVAL, Ending.DEADLOCK}),
    "V of another slot": (OfTheOther, the_same, {FaultKind.WRONG_ITEM}),
    "V under the number of K": (FusedAttention, _consumers(_with_the_slot_of_k), {Ending.DEADLOCK}),
    "V is kept": (FusedAttention, _consumers(_without_v), {Ending.DEADLOCK}),
    "V is given back too early": (FusedAttention, no_wait_group(Engine.WGMMA, 0), {FaultKind.RACE}),
    "phase 0": (FusedAttention, _phase_0, {Ending.DEADLOCK}),
}


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_twin_is_refuted(name: str, stages: int) -> None:
    kind, edit, expected = TWINS[name]
    found = check(edit(made(kind, stages=stages)))
    assert found.verdict is Verdict.REFUTED
    assert {shown.kind for shown in found.refutations} == expected
