"""Every kind: its right example is proved, its wrong one has just this finding, with the correction that fits."""

import re
from functools import cache
from pathlib import Path

import pytest

from pipesim.answers.check import against, check
from pipesim.answers.project_settings import Triage, TriagePolicy
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Basis
from pipesim.findings.catalog import KINDS
from pipesim.findings.kind import FindingKind, FlatExample, ProtocolExample, PtxExample
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import Deadlock, FaultKind, Verdict
from pipesim.report.findings.brief import brief_of
from pipesim.targets import Target, find, target_of
from tests.support.report_examples import assert_short
from tests.support.small_programs import build
from tests.support.small_ptx import SET_UP, kernel_target

#: What is offered for the example of a kind, without places; of a warning words of its note.
CASES = {
    "deadlock": "initialise full with a count of 1 instead of 2",
    "lapped_waiter": "producer: warps that neither use a stage nor arrive for it do not wait for empty",
    "over_arrival": "producer: put the arrive on full inside elect_one(): all 32 lanes execute it",
    "not_initialised": "after the inits come fence.mbarrier_init and a barrier of all threads of the CTA or cluster",
    "reinitialised": "producer omits its inits: another role makes them",
    "invalidated": "producer executes its invals last, after all else that it does",
    "inval_pending": "initialise full with a count of 1 instead of 2",
    "init_count": "",
    "arrive_count": "producer omits the arrive on full",
    "no_complete": "producer omits the arrive_no_complete on full",
    "stale_state": "producer omits its second arrive on full",
    "stale_wait": "consumer carries stage and phase of full on instead of beginning again (parity 0 in the first lap)",
    "tx_range": "",
    "tx_edge": "",
    "exited_cta": "every warp of the cluster meets the others (cluster_sync) before it exits",
    "cluster_arrive": "peer omits the sync of the cluster",
    "barrier_threads": "64 threads at named barrier 1 instead of 96",
    "barrier_overrun": "128 threads at named barrier 1 instead of 96",
    "race": "",
    "uninitialised_read": "",
    "wrong_item": "consumer: the read of tile is for the slot to which what it reads was written",
    "two_outcomes": "",
    "lanes_apart": "let all lanes of the warp meet there: __syncwarp(), which is bar.warp.sync",
    "under_way_at_exit": (
        "wait for its group, or for the phase of the mbarrier on which it arrives, before the CTA ends"
    ),
    "warp_shape": "let all four warps of the group execute the same instruction equally often, like math/0",
    "too_many_registers": "math asks for 168 registers a thread instead of 240: no more than are left",
    "tensor_allocation": "",
    "before_grid_wait": (
        "execute griddepcontrol.wait before it, in the same thread or in one that it waits for, or give the buffer "
        '"earlier": "none" in the launch file if no earlier kernel uses it'
    ),
    "global_race": "",
    "wgmma_fence": "execute wgmma.fence before it, after that access",
    "tensor_map_fence": "execute fence.proxy.tensormap::generic.acquire before the copy",
    "read_before_wait": "",
    "illegal_operand": "use one of 0 to 15",
    "tensor_fence": "",
    "missing_proxy_fence": "epilogue executes fence.proxy.async after its writes, before it signals any other agent",
    "read_not_fenced": "consumer executes fence.proxy.async after its reads, before it signals any other agent",
    "weak_order": "consumer: let the wait acquire instead of .relaxed",
    "narrow_scope": "peer: let the arrive release at cluster scope instead of .cta",
    "absent_cta": "",
    "unpublished_init": (
        "consumer executes fence.mbarrier_init after its inits, before the barrier of the CTA or cluster"
    ),
    "unread_data": "data in tile[0] (item 0, counted by full[0]), unread",
    "unscoped_arrive": "without a scope",
    "register_requests": "registers a thread",
    "cp_async_count": "without .noinc",
}
#: Kinds whose wrong example has the same operations as the right one, in the same order: other bytes, or what a flat
#: program does not have.
SAME_OPERATIONS = {
    *("uninitialised_read", "lanes_apart", "tensor_allocation", "illegal_operand", "wgmma_fence", "before_grid_wait"),
    "global_race",
}
FINDINGS = [kind for kind in KINDS if not kind.warns]
WARNINGS = [kind for kind in KINDS if kind.warns]


def target(kind: FindingKind, folder: Path, *, right: bool) -> Target:
    match kind.example:
        case ProtocolExample() as protocol:
            file = folder / f"{kind.name}.py"
            file.write_text(protocol.text(kind.name), "utf-8")
            return find(f"{file}:{kind.name}")
        case FlatExample() as flat:
            return target_of(build(*(flat.right if right else flat.wrong).splitlines(), smem_bytes=64))
        case PtxExample() as ptx:
            text = SET_UP.format(first=64, count=1) + (ptx.right if right else ptx.wrong)
            return kernel_target(text, ptx.warps, ptx.ctas, ptx.cluster)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


@cache
def checked(kind: FindingKind, folder: Path, *, right: bool, switched: bool = True) -> CheckReport:
    switches = Strictness(each for each in Assumption if switched and each.switch in kind.switches)
    asked = target(kind, folder, right=right).with_strictness(switches)
    return check(asked, {} if asked.program else {"right": int(right)})


def corrections(report: CheckReport) -> str:
    said = [each.said for shown in report.refutations for each in shown.corrections]
    said += [shown.finding.correction for shown in report.refutations if shown.finding.correction and not said]
    return "; ".join(dict.fromkeys(re.sub(r" \([\w.]+:\d+\)", "", each) for each in said))


@pytest.mark.parametrize("kind", FINDINGS, ids=lambda kind: kind.name)
def test_the_example_of_a_finding_has_just_this_one_and_is_corrected(kind: FindingKind, folder: Path) -> None:
    wrong, right = checked(kind, folder, right=False), checked(kind, folder, right=True)
    kinds = {each.kind if isinstance(each, Deadlock) else each.kind.name.lower() for each in wrong.findings}
    assert (wrong.verdict, kinds) == (Verdict.REFUTED, {kind.name})
    assert (right.verdict, right.findings) == (Verdict.PROVED, ())
    assert corrections(wrong) == CASES[kind.name]
    assert_short(wrong)
    short = brief_of(wrong)
    assert (short.verdict, short.kind, short.findings) == ("refuted", kind.name, len(wrong.refutations))
    assert bool(short.correction) == bool(CASES[kind.name])
    if kind.switches:
        assert checked(kind, folder, right=False, switched=False).verdict is Verdict.PROVED


@pytest.mark.parametrize("kind", FINDINGS, ids=lambda kind: kind.name)
def test_the_wrong_example_against_the_right_one_has_this_finding_and_another_synchronisation(
    kind: FindingKind, folder: Path
) -> None:
    """The other way round the finding is gone, and against itself it is unchanged."""
    triage = Triage(TriagePolicy(Basis.LETTER), lambda _: "", lambda _: "")
    wrong, right = (triage.of(checked(kind, folder, right=each), ()) for each in (False, True))
    asked = target(kind, folder, right=True)
    programs = [
        target(kind, folder, right=each).build({} if asked.program else {"right": int(each)}) for each in (False, True)
    ]
    new, old = against(right, wrong, programs[1], programs[0]), against(wrong, right, programs[0], programs[1])
    assert (len(new.appeared), new.gone, new.unchanged) == (len(wrong.refutations), (), ())
    assert ((), new.appeared, ()) == (old.appeared, old.gone, old.unchanged)
    assert (new.conclusion.ok, old.conclusion.ok) == (False, True)
    assert bool(new.synchronisation.changes) == bool(old.synchronisation.changes) == (kind.name not in SAME_OPERATIONS)
    same = against(wrong, wrong, programs[0], programs[0])
    assert (same.appeared, same.gone, len(same.unchanged)) == ((), (), len(wrong.refutations))
    assert (same.synchronisation.changes, same.conclusion.ok) == ((), True)


@pytest.mark.parametrize("kind", WARNINGS, ids=lambda kind: kind.name)
def test_the_example_of_a_warning_is_proved_with_it_and_corrected_without(kind: FindingKind, folder: Path) -> None:
    wrong, right = checked(kind, folder, right=False), checked(kind, folder, right=True)
    assert (wrong.verdict, right.verdict) == (Verdict.PROVED, Verdict.PROVED)
    (note,) = [note for note in wrong.advisories if note.kind == kind.name]
    assert CASES[kind.name] in note.claim
    assert kind.name not in {note.kind for note in right.advisories}


def test_every_kind_of_fault_is_explained_once_and_every_kind_has_a_case() -> None:
    names = [kind.name for kind in KINDS]
    assert {kind.kind for kind in KINDS if isinstance(kind.kind, FaultKind)} == set(FaultKind)
    assert sorted(names) == sorted(CASES)
    assert all(kind.title and not kind.title.endswith(".") for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_example_is_small_and_named_after_its_kind(kind: FindingKind, folder: Path) -> None:
    if isinstance(kind.example, ProtocolExample):
        assert sum(map(len, target(kind, folder, right=False).build().code)) <= 60
    else:
        assert kind.example.wrong != kind.example.right
