"""The optional rules: what a proof without them rests on or notes, and what they find, with its correction."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import pipesim
from pipesim import Protocol
from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.cli.main import main
from pipesim.model.coverage import LENIENT, STRICTEST, Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Engine, Fence, Space
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier
from pipesim.protocols.catalog import BUILT_IN
from pipesim.prove.assumed import MOST, assumed_by
from pipesim.prove.check import How
from pipesim.prove.check import check as prove
from pipesim.prove.memory_order.may_fail import reads_may_be_unfenced
from pipesim.prove.repair.kinds import RepairKind
from pipesim.report.sentences.check import check_sentence
from pipesim.targets import find, target_of
from pipesim.testing import assert_verified
from tests.support.lanes import slow_but
from tests.support.mistakes import BROKEN_FILE, MEMORY
from tests.support.mistakes.memory_mistakes import MEMORY_MISTAKES
from tests.support.small_programs import build

ASSUMING = "that reads complete before the arrive that follows them (--strict-proxies, "
PROXIES, INIT, TENSOR = (
    Strictness({Assumption.PROXIES}),
    Strictness({Assumption.INIT}),
    Strictness({Assumption.TENSOR_MEMORY}),
)

#: Those whose reads and writes through the two proxies have a fence in between, or do not meet.
RESTS_ON_NOTHING = {"attention_sm90", "attention_sm90_fused"}
FAST = {"attention_sm90", "producer_consumer"}  #: what the fast lane checks


def rests_on_reads(program: Program) -> bool:
    return any(each.kind is Assumption.PROXIES for each in assumed_by(program))


def judged(protocol: Callable[..., Protocol], how: Strictness = LENIENT, **params: int) -> CheckReport:
    return check(target_of(protocol).with_strictness(how), params)


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("name", slow_but(FAST, [name for name in sorted(BUILT_IN) if name != "conv_epilogue"]))
def test_which_ready_made_protocols_rest_on_the_assumption(name: str) -> None:
    program = find(name).build({})
    strict = prove(program.with_strictness(PROXIES))
    assert rests_on_reads(program) == (name not in RESTS_ON_NOTHING)
    assert {shown.kind for shown in strict.refutations} == (
        {FaultKind.READ_NOT_FENCED} - ({FaultKind.READ_NOT_FENCED} if name in RESTS_ON_NOTHING else set())
    )
    assert not rests_on_reads(program.with_strictness(PROXIES)), "the strict rule assumes nothing"
    assert {Assumption.INIT, Assumption.TENSOR_MEMORY}.isdisjoint(each.kind for each in assumed_by(program))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["read_not_fenced", "product_not_fenced"])
def test_a_proof_says_that_it_rests_on_reads(name: str) -> None:
    lenient, strict = judged(MEMORY[name], tiles=4), judged(MEMORY[name], PROXIES, tiles=4)
    assert (lenient.verdict, lenient.scope.kinds[0]) == (Verdict.PROVED, Assumption.PROXIES)
    assert all(len(each.lines) == 2 for each in lenient.scope.assuming if each.kind is Assumption.PROXIES)
    assert ASSUMING in check_sentence(lenient)
    assert (strict.verdict, strict.scope.kinds) == (Verdict.REFUTED, ())
    for right in MEMORY_MISTAKES[name].corrected:
        program = right(**({"stages": 2, "tiles": 4} if name == "read_not_fenced" else {"tiles": 4})).flatten()
        assert not rests_on_reads(program)
        assert prove(program.with_strictness(STRICTEST)).verdict is Verdict.PROVED


def _read_and_overwritten(architecture: int, *, tensor: bool = False, after: str = "", before: str = "") -> Program:
    """A warp reads a tile and arrives; another waits, and copies over it."""
    reads = f"WAIT barrier=0 parity=0; READ access=0 item=1; {after} ARRIVE barrier=1"
    copies = "ARRIVE barrier=0 expect=64; TMA_LOAD barrier=0 access=0 bytes=64 item={}; ".format
    inits = "INIT barrier=0 count=1; INIT barrier=1 count=1; FENCE fence=0; BAR_SYNC named_barrier=0 threads=64; "
    last = "WAIT barrier=0 parity=1; " + ("COMMIT engine=TCGEN05 barrier=2; WAIT barrier=2 parity=0" if tensor else "")
    return build(
        "BAR_SYNC named_barrier=0 threads=64; " + reads,
        f"INIT barrier=2 count=1; {inits}{copies(1)} WAIT barrier=1 parity=0; {before} {copies(2)} {last}",
        barriers=3,
        architecture=architecture,
    ).with_strictness(LENIENT)


_FENCE = "FENCE fence=1;"


@pytest.mark.parametrize(
    ("program", "finding"),
    [
        (_read_and_overwritten(90), False),
        (_read_and_overwritten(0), False),
        (_read_and_overwritten(0, tensor=True), True),
        (_read_and_overwritten(100), True),
        (_read_and_overwritten(120), True),
        (_read_and_overwritten(100, after=_FENCE), False),
        (_read_and_overwritten(100, before=_FENCE), False),
    ],
    ids=["sm_90", "not known", "tcgen05", "sm_100", "sm_120", "the reader fences", "the thread of the copy fences"],
)
def test_on_blackwell_what_a_thread_has_read_is_fenced_before_a_copy(program: Program, *, finding: bool) -> None:
    """On sm_90 it is assumed. The fence may be the reader's, or come after the wait for it."""
    found = prove(program)
    assert {each.kind for each in found.refutations} == ({FaultKind.READ_NOT_FENCED} if finding else set())
    assert found.verdict is (Verdict.REFUTED if finding else Verdict.PROVED)
    fenced = program.architecture == 100 and not finding
    assert finding or rests_on_reads(program) != fenced
    assert loads(dumps(program)).architecture == program.architecture


def test_an_engine_that_reads_and_the_address_of_tensor_memory_need_no_fence_on_blackwell() -> None:
    """What tcgen05.mma reads goes through the proxy of the copies; an address of tcgen05.alloc is read long before."""
    begin, rest = "INIT count=1; FENCE fence=0; ", "ARRIVE expect=64; TMA_LOAD bytes=64 item=2; WAIT parity={}"
    over = "COMMIT engine=TCGEN05 barrier=-1; WAIT_GROUP engine=TCGEN05; "
    product = f"ARRIVE expect=64; TMA_LOAD bytes=64 item=1; WAIT; TRANSFER_READ engine=TCGEN05 item=1; {over}"
    alloc = f"TRANSFER_WRITE engine=TCGEN05 item=1; {over} READ item=1; "
    written = "WRITE item=1; FENCE fence=1; READ item=1; "
    for body, parity, found in ((product, 1, set()), (alloc, 0, set()), (written, 0, {FaultKind.READ_NOT_FENCED})):
        program = build(begin + body + rest.format(parity), architecture=100).with_strictness(LENIENT)
        assert {each.kind for each in prove(program).refutations} == found


def test_it_is_said_of_the_sizes_that_are_claimed_too() -> None:
    """With two tiles no slot is filled twice; the claim is for any number of tiles."""
    report = judged(MEMORY["read_not_fenced"], stages=2, tiles=2)
    assert not rests_on_reads(MEMORY["read_not_fenced"](stages=2, tiles=2).flatten())
    assert Assumption.PROXIES in report.scope.kinds
    assert "for any number of tiles" in check_sentence(report)


@pytest.mark.slow
def test_a_long_program_whose_fences_are_the_writers_assumes_nothing() -> None:
    """The operations alone do not show it, and the run is longer than what is followed: its laps are left out."""
    program = MEMORY_MISTAKES["product_not_fenced"].corrected[1](tiles=900).flatten()
    assert reads_may_be_unfenced(program)
    assert sum(map(len, program.code)) > MOST
    assert not rests_on_reads(program)
    assert rests_on_reads(MEMORY["product_not_fenced"](tiles=900).flatten())


def test_a_family_is_judged_by_the_strict_rule() -> None:
    wrong = judged(MEMORY["read_not_fenced"], PROXIES, stages=2, tiles=2)
    (found,) = wrong.ranges
    assert (wrong.verdict, found.lap, found.fails, found.refuted) == (Verdict.PROVED, 0, 3, FaultKind.READ_NOT_FENCED)
    assert check_sentence(wrong).startswith("proved: no schedule of")

    def fenced(tiles: int = 2) -> Protocol:
        return MEMORY_MISTAKES["read_not_fenced"].corrected[0](stages=2, tiles=tiles)

    (every,) = judged(fenced, PROXIES).ranges
    assert every.lap > 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("read_not_fenced", ["consumer executes fence.proxy.async after its reads, before it signals any other agent"]),
        ("product_not_fenced", ["mma executes fence.proxy.async after its reads, before it signals any other agent"]),
    ],
)
def test_the_finding_names_both_accesses_and_a_fence_that_is_proved(name: str, said: list[str]) -> None:
    (shown,) = judged(MEMORY[name], PROXIES).refutations
    assert shown.finding.kind is FaultKind.READ_NOT_FENCED
    assert "was read by" in shown.finding.claim
    assert ".py:" in shown.finding.line
    assert [each.said for each in shown.corrections][:1] == said
    assert {each.repair.kind for each in shown.corrections} == {RepairKind.FENCE}


def test_what_a_search_has_proved_is_assumed_where_the_operations_alone_cannot_exclude_it() -> None:
    """Two of three arrivals complete the phase: which fence comes before the copy depends on the schedule."""
    p = Protocol("contested")
    tile, full, start = p.smem("tile", 1, 128), p.mbarriers("full", 1, 2), p.mbarriers("start", 1, 1)

    def arriver(n: int) -> None:
        @p.role(f"arriver{n}")
        def role(w: pipesim.Warp) -> None:
            if n == 0:
                start[0].wait(0)
                w.read(tile[0], 0)
            w.bar_sync(1, 96)
            if n == 2:
                w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                full[0].arrive()

    for n in range(3):
        arriver(n)

    @p.role("load")
    def load(w: pipesim.Warp) -> None:
        with w.elect_one():
            start[0].expect_bytes(128)
            w.tma_load(tile[0], start[0], 0)
            full[0].wait(0)
            w.tma_load(tile[0], start[0], 1)

    program = p.flatten()
    lenient, strict = (check(target_of(program).with_strictness(how), {}) for how in (LENIENT, PROXIES))
    assert (lenient.verdict, lenient.how) == (Verdict.PROVED, How.SEARCH)
    assert lenient.scope.kinds == (Assumption.PROXIES, Assumption.EXIT), "nobody waits for the last copy"
    assert FaultKind.READ_NOT_FENCED in {shown.finding.kind for shown in strict.refutations}


# inits


@pytest.mark.slow
def test_an_init_without_a_fence_is_a_note_in_a_kernel_of_one_cta() -> None:
    lenient, strict = judged(MEMORY["init_not_fenced"]), judged(MEMORY["init_not_fenced"], INIT)
    assert lenient.verdict is Verdict.PROVED
    assert [each.what for each in lenient.scope.assuming if each.kind is Assumption.INIT] == [
        "producer initialises full without a fence before it is used"
    ]
    assert strict.verdict is Verdict.REFUTED
    assert judged(MEMORY["init_behind_a_relaxed_arrive"]).verdict is Verdict.REFUTED, "of a cluster it is a finding"


def initialising(*, other: bool) -> Callable[..., Protocol]:
    """One warp initialises a barrier; it, or ``other`` warp that waits for an arrive, lets a copy signal it."""

    def alone() -> Protocol:
        p = Protocol("alone")
        tile, full, ready = p.smem("tile", 1, 128), p.mbarriers("full", 1), p.mbarriers("ready", 1)

        @p.init
        def init() -> None:
            """Only ``ready``: the role does the rest."""
            ready[0].init(1)

        def copies(w: pipesim.Warp) -> None:
            full[0].expect_bytes(128)
            w.tma_load(tile[0], full[0], 0)
            full[0].wait(0)
            w.read(tile[0], 0)

        @p.role("only")
        def only(w: pipesim.Warp) -> None:
            with w.elect_one():
                full[0].init(1)
                if other:
                    ready[0].arrive()
                else:
                    copies(w)

        @p.role("later")
        def later(w: pipesim.Warp) -> None:
            with w.elect_one():
                if other:
                    ready[0].wait(0)
                    copies(w)

        return p

    return alone


def test_program_order_is_as_strong_as_a_barrier_of_the_cta_and_an_arrive_is_not() -> None:
    """PTX ISA, "fence.mbarrier_init": asked for between an init and its use by the asynchronous proxy in any case."""
    own, strict, other = (
        judged(initialising(other=False)), judged(initialising(other=False), INIT), judged(initialising(other=True))
    )  # fmt: skip
    assert (own.verdict, own.scope.kinds) == (Verdict.PROVED, (Assumption.INIT,))
    for refuted in (strict, other):
        assert {shown.finding.kind for shown in refuted.refutations} == {FaultKind.UNPUBLISHED_INIT}


_COPY = "ARRIVE barrier=0 expect=64; TMA_LOAD barrier=0 access=0 bytes=64 item=1"


@pytest.mark.parametrize(("first", "finding"), [(_COPY, False), ("COMMIT engine=TCGEN05 barrier=1", True)])
def test_a_copy_on_the_barrier_itself_lets_nobody_know_of_its_init(first: str, *, finding: bool) -> None:
    """Others learn of the init by the barrier of the CTA after it; of a commit before that they may."""
    begin, meet = "BAR_SYNC named_barrier=1 threads=64; ", "BAR_SYNC named_barrier=0 threads=64; "
    owner = f"INIT barrier=1 count=1; FENCE fence=0; {begin} INIT barrier=0 count=1; {first}; {meet}"
    last = "WAIT barrier=1 parity=0;" if finding else "WAIT barrier=0 parity=0; "
    other = f"{begin} {meet} {last} {_COPY}; WAIT barrier=0 parity={int(not finding)}"
    program = build(owner, other, barriers=2, named_barriers=((0, 1), (0, 2))).with_strictness(LENIENT)
    found = prove(program)
    assert {each.kind for each in found.refutations} == ({FaultKind.UNPUBLISHED_INIT} if finding else set())
    assert found.verdict is (Verdict.REFUTED if finding else Verdict.PROVED)


# tensor memory


def tensor(item: int, *, written: bool) -> Callable[..., Protocol]:
    def reads(tiles: int = 1) -> Protocol:
        p = Protocol("tensor")
        acc, full = p.tmem("acc", slots=1, nbytes=16384), p.mbarriers("full", 2, 1)

        @p.role("epilogue")
        def epilogue(w: pipesim.Warp) -> None:
            with w.elect_one():
                for _ in range(tiles):
                    w.read(acc[0], item)
                full[0].arrive()

        @p.role("mma")
        def mma(w: pipesim.Warp) -> None:
            with w.elect_one():
                full[0].wait(0)
                if written:
                    w.async_write(Engine.TCGEN05, acc[0], 0)
                    w.commit(Engine.TCGEN05, full[1])
                    full[1].wait(0)

        return p

    return reads


@pytest.mark.sampled(1, 4)
@pytest.mark.parametrize(
    ("item", "written", "noted"), [(-1, False, True), (-1, True, True), (0, False, True), (0, True, False)]
)
def test_a_read_of_tensor_memory_that_nothing_has_written(item: int, *, written: bool, noted: bool) -> None:
    """A finding where the reader names the item that an operation writes later; otherwise a note."""
    lenient = judged(tensor(item, written=written))
    strict = judged(tensor(item, written=written), TENSOR)
    assert {shown.finding.kind for shown in strict.refutations} == {FaultKind.UNINITIALISED_READ}
    if not noted:
        assert lenient.verdict is Verdict.REFUTED
        return
    assert lenient.verdict is Verdict.PROVED
    said = [each.what for each in lenient.scope.assuming if each.kind is Assumption.TENSOR_MEMORY]
    assert said == ["epilogue reads acc[0], where nothing has been written"]


# the interfaces


READ = "mine.py:read_not_fenced"
INIT_TWIN = "mine.py:init_not_fenced"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(BROKEN_FILE, "utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
def test_the_switches_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for twin, switch in ((READ, "--strict-proxies"), (INIT_TWIN, "--strict-init")):
        assert main(["check", twin]) == 0
        capsys.readouterr()
        assert main(["check", twin, switch]) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert f"{switch}" in said.partition("again: ")[2], "the line that shows it again asks for the rule as well"
    pytest.importorskip("numpy", reason="what is simulated")
    assert main(["verify", READ, "--no-hardware"]) == 0
    assert main(["verify", READ, "--no-hardware", "--strict-proxies"]) == 1
    capsys.readouterr()


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
def test_the_schedule_of_a_finding_shows_it_again_with_the_switch(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["-p", "tiles=3", "--strict-proxies"]
    assert main(["check", READ, *asked, "--json"]) == 1
    replay = json.loads(capsys.readouterr().out)["report"]["refutations"][0]["replay"]
    for command in (["check", READ, "--replay"], ["run", READ, "--schedule"]):
        assert main([*command, replay, *asked]) == 1
        assert main([*command, replay, *asked[:-1]]) == 3
    capsys.readouterr()


@pytest.mark.slow
def test_the_switches_in_python() -> None:
    ring = MEMORY["read_not_fenced"]
    assert pipesim.check(ring).verdict is Verdict.PROVED
    assert pipesim.check(ring, strict=("proxies",)).verdict is Verdict.REFUTED
    assert pipesim.check(MEMORY["init_not_fenced"], strict=("init",)).verdict is Verdict.REFUTED
    assert pipesim.check(tensor(-1, written=False), strict=("tensor-memory",)).verdict is Verdict.REFUTED
    assert pipesim.verify(ring, hardware=False, strict=("proxies",)).verdict is Verdict.REFUTED
    assert_verified(ring)
    with pytest.raises(AssertionError, match=r"no fence\.proxy\.async between a read and the later write"):
        assert_verified(ring, strict=("proxies",))
    assert_verified(ring, strict=("init", "tensor-memory"))


# inits of a cluster's CTAs


def _copies_in_a_cluster(*, elsewhere: bool) -> Program:
    """Two CTAs, each with a barrier without a fence; a copy that is counted in its own CTA, or in both."""
    tile = tuple(Access(Space.SHARED, cta, 0, 64) for cta in range(2))
    mask = 3 if elsewhere else 0
    load = f"TMA_LOAD barrier={{0}} access={{0}} bytes=64 item=1 cta_mask={mask}"
    meet = "CLUSTER_ARRIVE; CLUSTER_WAIT"
    agents = []
    for cta in range(2):
        issues = load.format(cta) if not elsewhere or not cta else ""
        agents.append(
            f"INIT barrier={cta}; BAR_SYNC named_barrier={cta} threads=32; {meet}; ARRIVE barrier={cta} expect=64;"
            f" {issues}; WAIT barrier={cta} parity=0; READ access={cta} item=1; {meet}"
        )
    return build(
        *agents,
        barriers=tuple(Barrier(cta, "ready", 0) for cta in range(2)),
        accesses=tile,
        agents=tuple(Agent(cta, 0, ALL_LANES, "load", 0) for cta in range(2)),
        named_barriers=((0, 0), (1, 0)),
        ctas=2,
    )


def test_an_init_without_a_fence_is_a_note_where_only_its_own_cta_copies() -> None:
    own, elsewhere = (_copies_in_a_cluster(elsewhere=which).with_strictness(LENIENT) for which in (False, True))
    assert prove(own).verdict is Verdict.PROVED
    assert prove(own.with_strictness(STRICTEST)).verdict is Verdict.REFUTED
    assert [each.kind for each in assumed_by(own)] == [Assumption.INIT]
    assert [each.kind for each in prove(elsewhere).refutations] == [FaultKind.UNPUBLISHED_INIT]
