"""What is offered for mistakes in ready-made protocols, in words; each offer is proved, and nothing else is offered."""

from collections.abc import Callable, Sequence

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.model.finding import Verdict
from pipesim.model.ops import Engine, Fence, Op, Operation
from pipesim.model.program import Program
from pipesim.protocols.hopper.attention_sm90 import attention_sm90
from pipesim.protocols.hopper.cluster_multicast import cluster_multicast
from pipesim.protocols.hopper.cutlass_sm90_cooperative import cutlass_sm90_cooperative
from pipesim.protocols.hopper.cutlass_sm90_pingpong import cutlass_sm90_pingpong
from pipesim.prove.check import check
from pipesim.prove.repair.edits import apply_repair
from pipesim.prove.repair.kinds import RepairKind
from tests.support.lanes import long_but, slow_but
from tests.support.offered import offered_for_program, without_places
from tests.support.program_edits import Edit, no_wait_group, reordered, without

MATH = {"tiles": 2, "k_tiles": 2, "stages": 2, "block_n": 64, "residual": 1}
WAITS = "{} waits for {}, with parity 1 in the first lap, before {}"
ATTENTION = {"kv_blocks": 3, "stages": 2, "block_n": 64}


def at_home_only(program: Program) -> Program:
    """Consumers do not arrive at the other CTA."""

    def remote(code: Sequence[Operation], at: int) -> bool:
        home = next(program.barrier_name(op[1]) for op in code if op[0] == Op.WAIT).partition("@")[2]
        return code[at][0] == Op.ARRIVE and not program.barrier_name(code[at][1]).endswith(f"@{home}")

    return reordered(program, "consumer", lambda code: [at for at in range(len(code)) if not remote(code, at)])


def not_fenced(program: Program) -> Program:
    """No role has a proxy fence."""
    fence = (int(Op.FENCE), int(Fence.PROXY_ASYNC))
    return reordered(program, "", lambda code: [at for at, op in enumerate(code) if op[:2] != fence])


Corrected = tuple[Callable[..., Protocol], dict[str, int], Edit, set[str], set[str]]
#: A protocol, its sizes, the mistake, the kinds that are found, and what is offered.
CORRECTED: dict[str, Corrected] = {
    "the loads of C do not wait": (
        cutlass_sm90_cooperative, MATH, without("epilogue_load", Op.WAIT, "epi_load.empty"), {"RACE"},
        {WAITS.format("epilogue_load", "epi_load.empty", "all the work that it signals on epi_load.full")},
    ),
    "the load warp does not wait": (
        cutlass_sm90_cooperative, MATH, without("load", Op.WAIT, "mainloop.empty"), {"OVER_ARRIVAL"},
        {WAITS.format("load", "mainloop.empty", "the work that it signals on mainloop.full")},
    ),
    "a stage is given back before its product is done": (
        cutlass_sm90_cooperative, MATH, no_wait_group(Engine.WGMMA, 1), {"RACE"},
        {"consumer executes the arrive on mainloop.empty only after the read of c",
         "consumer waits for its wgmmas, leaving no more than 1 pending, before the arrive on mainloop.empty"},
    ),
    "the last product is not waited for": (
        cutlass_sm90_cooperative, MATH, no_wait_group(Engine.WGMMA, 0), {"RACE"},
        {"consumer leaves none of its groups pending when it waits for them, instead of 1, which serialises them"},
    ),
    "the stores are not waited for": (
        cutlass_sm90_cooperative, MATH, no_wait_group(Engine.BULK, 1), {"RACE"},
        {"consumer waits for its bulk stores, leaving no more than 1 pending, before the bar_sync"},
    ),
    "one of two groups gives nothing back": (
        cutlass_sm90_pingpong, MATH, without("consumer1", Op.ARRIVE, "mainloop.empty"), {"DEADLOCK"},
        {"each of consumer0 and consumer1 executes the arrive on mainloop.empty, not only some of their warps"},
    ),
    "both groups store without a fence": (
        cutlass_sm90_pingpong, MATH, not_fenced, {"MISSING_PROXY_FENCE"},
        {
            ("each of consumer0 and consumer1 executes fence.proxy.async after its writes, "
            "before it signals any other agent")
        },
    ),
    "K is never given back": (
        attention_sm90, ATTENTION, without("consumer", Op.ARRIVE, "k.empty"), {"DEADLOCK"},
        {"consumer arrives on k.empty whenever it has finished with a stage of k.full"},
    ),
    "V is given back once in the end": (
        attention_sm90, ATTENTION, without("consumer", Op.ARRIVE, "v.empty"), {"DEADLOCK"},
        {"consumer arrives on v.empty after its last use of each stage of k.full"},
    ),
    "the other CTA is not told": (
        cluster_multicast, {}, at_home_only, {"DEADLOCK"},
        {"consumer arrives on empty of every CTA of the cluster, not only of its own"},
    ),
    "consumers do not wait": (
        cluster_multicast, {}, without("consumer", Op.WAIT, "full"), {"RACE", "UNINITIALISED_READ"},
        {"consumer waits for full, with parity 0 in the first lap, before all the work that it signals on empty"},
    ),
}  # fmt: skip
FAST = {"the other CTA is not told", "both groups store without a fence", "the load warp does not wait"}
#: The same rule and the same protocol as one of the fast ones.
AS_FAST = {"the loads of C do not wait"}
#: Kinds of corrections that no mistake of tests/support/mistakes gets.
ONLY_HERE = {"the other CTA is not told": RepairKind.PEERS}


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("name", long_but(CORRECTED.keys() - AS_FAST, slow_but(FAST, CORRECTED)))
def test_what_is_offered_for_a_twin_is_proved(name: str) -> None:
    make, params, edit, kinds, sentences = CORRECTED[name]
    program = edit(make(**params).flatten())
    assert {refuted.kind.name for refuted in check(program, 3000).refutations} == kinds
    offered = offered_for_program(program)
    assert {without_places(each.said) for each in offered} == sentences
    for each in offered:
        right = apply_repair(program, each.repair)
        assert right is not None
        assert check(right, 1).verdict is Verdict.PROVED
        assert each.repair.kind is ONLY_HERE.get(name, each.repair.kind)
        assert ".py:" in each.line
