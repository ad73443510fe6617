"""Protocols: memory, prologue, roles, and everything that makes flattening refuse one."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipesim.errors import ConfigurationError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence, Op, Scope, Space, semantics
from pipesim.model.program import Program
from pipesim.model.tables import Access, Agent, Barrier, Tile

HERE = Path(__file__).read_text(encoding="utf-8").splitlines()


def line(mark: str) -> str:
    return f"{__file__}:{next(i for i, text in enumerate(HERE, 1) if text.endswith(f'# {mark}'))}"


def small(body: Callable[[Warp], object]) -> Protocol:
    p = Protocol("small")

    @p.role("r")
    def r(w: Warp) -> None:
        body(w)

    return p


def test_the_whole_of_a_small_program() -> None:
    p = Protocol("pair")
    tile = p.smem("tile", slots=1, nbytes=64)
    bars = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        bars[0].init(1)  # init

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            bars[0].expect_bytes(64)  # expect
            w.tma_load(tile[0], bars[0], 7)  # copy

    @p.role("mma", warps=2)
    def mma(w: Warp) -> None:
        bars[0].wait(0)  # wait
        w.read(tile[0].part(32 * w.index, 32), 7)  # read

    program = p.flatten({"n": 1})
    everyone = (1 << 32) - 1
    fence = (Op.FENCE, Fence.MBARRIER_INIT, semantics(scope=Scope.CLUSTER))
    sync = (Op.BAR_SYNC, 0, 96, 32)
    assert (program.name, program.params, program.smem_bytes) == ("pair", {"n": 1}, 72)
    assert program.agents == (
        Agent(0, 0, everyone, "load", 0), Agent(0, 1, everyone, "mma", 0), Agent(0, 2, everyone, "mma", 1),
    )  # fmt: skip
    assert program.barriers == (Barrier(0, "full", 0),)
    assert program.tiles == (Tile("tile", Space.SHARED, 0, 0, 64, 1),)
    assert program.accesses == tuple(Access(Space.SHARED, 0, o, n) for o, n in ((0, 64), (0, 32), (32, 32)))
    assert program.code == (
        ((Op.INIT, 0, 1), fence, sync, (Op.ARRIVE, 0, 1, 64, -1, 0), (Op.TMA_LOAD, 0, 0, 64, 7, 0)),
        (sync, (Op.WAIT, 0, 0, 0), (Op.READ, 1, 7)),
        (sync, (Op.WAIT, 0, 0, 0), (Op.READ, 2, 7)),
    )
    assert all(type(v) is int for op in program.operations for v in op)
    assert [program.line(0, pc) for pc in (0, 3, 4)] == [line("init"), line("expect"), line("copy")]
    assert [program.line(2, pc) for pc in (1, 2)] == [line("wait"), line("read")]
    assert (program.named_barriers, program.registers, program.ctas, program.grid) == (((0, 0),), 0, 1, 1)
    assert program.notes == ("the flattener adds fence.mbarrier_init and the CTA barrier after the init",)


def test_without_an_init_the_counts_make_the_usual_prologue() -> None:
    p = Protocol("implicit")
    p.mbarriers("full", 2, count=1)
    p.mbarriers("empty", 1, count=32)
    p.role("r")(lambda w: w.work(1))
    program = p.flatten()
    assert [op[0] for op in program.code[0]] == [Op.INIT, Op.INIT, Op.INIT, Op.FENCE, Op.BAR_SYNC, Op.WORK]
    assert program.code[0][:3] == ((Op.INIT, 0, 1), (Op.INIT, 1, 1), (Op.INIT, 2, 32))
    assert program.notes[0].startswith("no init was given")


def _two_inits(p: Protocol) -> None:
    p.init(lambda: None)
    p.init(lambda: None)


REFUSED: dict[str, Callable[[Protocol], Any]] = {
    "p has two inits": _two_inits,
    "p has two roles named r": lambda p: (p.role("r")(lambda _: None), p.role("r")),
    "role r has 0 warps": lambda p: p.role("r", warps=0),
    "p has two objects named x": lambda p: (p.smem("x", 1, 1), p.mbarriers("x", 1)),
    "x: 0 mbarriers": lambda p: p.mbarriers("x", 0),
    "x: 0 slots of 8 bytes": lambda p: p.smem("x", 0, 8),
    "x: 1 slots of -8 bytes": lambda p: p.smem("x", 1, -8),
    "there is no x[2]": lambda p: p.smem("x", 2, 8)[2],
    "there is no x[-1]": lambda p: p.smem("x", 2, 8)[-1],
    "8 bytes at 4 of x[0], which has 8": lambda p: p.smem("x", 2, 8)[0].part(4, 8),
    "0 bytes at 0 of x[0], which has 8": lambda p: p.smem("x", 2, 8)[0].part(0, 0),
    "barrier 1 of x, which has 1": lambda p: p.mbarriers("x", 1)[1],
    "q: a cluster of 0 CTAs": lambda _: Protocol("q", cluster=0),
    "q: a cluster of 17 CTAs": lambda _: Protocol("q", cluster=17),
}


@pytest.mark.parametrize("fact", REFUSED)
def test_a_wrong_description_is_refused_with_the_authors_line(fact: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        REFUSED[fact](Protocol("p"))
    assert caught.value.fact == fact
    assert caught.value.place.startswith(f"{__file__}:")


def test_a_protocol_without_roles() -> None:
    with pytest.raises(ProtocolError, match="empty has no roles"):
        Protocol("empty").flatten()


def test_an_exception_in_a_role_is_reported_with_role_and_line() -> None:
    def body(_: Warp) -> None:
        int("ten")  # boom

    with pytest.raises(ProtocolError) as caught:
        small(body).flatten()
    assert (caught.value.fact, caught.value.place) == (
        "r raised ValueError: invalid literal for int() with base 10: 'ten'",
        line("boom"),
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_role_that_suspends_is_no_role() -> None:
    def generator(w: Warp) -> Iterator[int]:
        yield w.warp

    async def coroutine(_: Warp) -> None: ...

    for body in (generator, coroutine):
        with pytest.raises(ProtocolError, match="role r is a generator or a coroutine") as caught:
            Protocol("p").role("r")(body)  # type: ignore[arg-type]  # suspends
        assert caught.value.place == line("suspends")


def test_errors_of_ours_pass_as_they_are_and_an_exit_is_no_error() -> None:
    def raises(error: BaseException) -> Callable[[Warp], None]:
        def body(_: Warp) -> None:
            raise error

        return body

    for error in (ConfigurationError("too big"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            small(raises(error)).flatten()
        assert caught.value is error


def test_an_exception_in_the_init_names_the_init() -> None:
    p = Protocol("p")
    p.init(lambda: int("ten"))  # type: ignore[arg-type]  # in the init
    p.role("r")(lambda _: None)
    with pytest.raises(ProtocolError) as caught:
        p.flatten()
    assert (caught.value.fact, caught.value.place) == (
        "the init of p raised ValueError: invalid literal for int() with base 10: 'ten'", line("in the init"),
    )  # fmt: skip


def test_a_role_that_changes_between_two_recordings_is_refused() -> None:
    counter, turns = itertools.count(), itertools.count()

    def body(w: Warp) -> None:
        w.work(1)
        w.work(next(counter))  # changes

    def longer(w: Warp) -> None:
        for _ in range(next(turns)):
            w.work(1)  # more and more

    for wrong, operation, mark in ((body, 3, "changes"), (longer, 2, "more and more")):
        with pytest.raises(ProtocolError) as caught:
            small(wrong).flatten()
        assert caught.value.fact == f"r is not deterministic: recorded twice, it differs at operation {operation}"
        assert caught.value.place == line(mark)


def test_a_role_that_changes_only_which_tile_it_touches() -> None:
    """The operations would look alike: the first tile each recording touches would be number 0 in both."""
    turns = itertools.count()
    p = Protocol("p")
    tile = p.smem("tile", 2, 64)
    p.role("r")(lambda w: w.write(tile[next(turns) % 2], 1))
    with pytest.raises(ProtocolError, match="not deterministic"):
        p.flatten()
    p = Protocol("p")
    p.role("r")(lambda w: w.bar_arrive(next(turns) % 2 + 1, 64))
    with pytest.raises(ProtocolError, match="not deterministic"):
        p.flatten()


@pytest.mark.parametrize(
    "call",
    [
        lambda bar, n: bar.expect_bytes(n),
        lambda bar, n: bar.expect_bytes_relaxed(n),
        lambda bar, n: bar.expect_tx(n),
        lambda bar, n: bar.arrive_and_expect_bytes(n, 0),
        lambda bar, n: bar.complete_transaction(0, n),
    ],
)
def test_a_negative_number_of_bytes_is_refused(call: Callable[[SharedMemBarrier, int], object]) -> None:
    def flatten(nbytes: int) -> Program:
        p = Protocol("p")
        bars = p.mbarriers("b", 1, count=1)

        @p.role("r")
        def r(w: Warp) -> None:
            with w.elect_one():
                call(bars[0], nbytes)

        return p.flatten()

    with pytest.raises(ProtocolError) as caught:
        flatten(-1)
    assert caught.value.fact == "r: -1 bytes are expected or completed on a barrier"
    assert caught.value.cause.startswith("the transaction count of an instruction is 0 or more")
    assert "(" not in caught.value.place
    assert caught.value.correction.startswith("give the number of bytes that the copy brings")
    assert len(flatten(1).code[0]) == len(flatten(0).code[0])  # the twins
