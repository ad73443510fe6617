"""The reports that the golden files hold, each as a function of the width. Also run by ``tools/update_golden.py``.

Runs, checks and pairs of traces are real answers about wrong twins and stored traces. What is rare, or depends on the
times of the engine, is drawn up by hand, so that its golden file changes only if the report changes; the diagrams are
of the protocols in ``diagram_protocols``.
"""

import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

from pipesim.answers.advise.advise import advise
from pipesim.answers.autopsy.autopsy import autopsy
from pipesim.answers.check import against, check, replay_report
from pipesim.answers.compare import compare_pair
from pipesim.answers.kinds import assumption_lines, kind_lines, kind_named
from pipesim.answers.progress import Stage
from pipesim.answers.project_settings import Triage, TriagePolicy
from pipesim.answers.redundant import redundant
from pipesim.answers.run import run
from pipesim.answers.sweep.sweep import rank, smallest
from pipesim.answers.views.check import AgainstReport, CheckReport
from pipesim.answers.views.conclusion import Heading
from pipesim.answers.views.kinds import AssumptionReport
from pipesim.answers.views.run import RunReport, SimulationLine
from pipesim.answers.views.summary import (
    Failure,
    Hardware,
    ProtocolReport,
    ProtocolRow,
    ProtocolTraces,
    SummaryReport,
    TraceLine,
)
from pipesim.answers.views.sweep import (
    AdviseReport,
    Comparable,
    Configuration,
    Metric,
    Outcome,
    Resources,
    SweepReport,
    Times,
    WorkUnit,
)
from pipesim.answers.views.trace import CAPTURED_NOW, CompareReport, TraceComparison, VerifyReport
from pipesim.confirm.confirm import ConfirmOptions, confirm
from pipesim.confirm.launches import ChipOutcome, LaunchSeen
from pipesim.confirm.report import StressReport
from pipesim.confirm.stress import stress
from pipesim.conform.agreement import Agreement, Reason, ReasonKind
from pipesim.conform.diagnose.edits import Edit, EditKind
from pipesim.conform.diagnose.examination import (
    Autopsy,
    Diagnosis,
    Examination,
    Explanation,
    LaunchOutcome,
    RebuiltBarrier,
)
from pipesim.conform.result import (
    Bottleneck,
    ComparedEvent,
    Conformance,
    Divergence,
    DivergenceKind,
    EarlyReturn,
    Figure,
    LimitKind,
    Share,
    SiteTiming,
    Spread,
    Timing,
    TraceVerdict,
)
from pipesim.conform.times import AssumedKind, NoTime, TimeAssumption, TimeComparison, TimeVerdict
from pipesim.explain.anatomy.read import anatomy
from pipesim.model.barrier import BarrierWord
from pipesim.model.ending import Ending
from pipesim.model.finding import BlockedAgent, Deadlock, FaultKind, FaultReport, Supplier, Verdict
from pipesim.protocols.catalog import BUILT_IN
from pipesim.protocols.hopper.producer_consumer import producer_consumer
from pipesim.prove.any_size.family import ProvedRange
from pipesim.prove.check import How
from pipesim.ptx.extract import extract
from pipesim.ptx.kernel import EditableKernel
from pipesim.ptx.text.read import read_module
from pipesim.report.findings.brief import brief_of
from pipesim.report.findings.divergence import divergence_lines
from pipesim.report.findings.examination import examination_lines
from pipesim.report.findings.finding import finding_lines
from pipesim.report.pages import kinds as kind_page
from pipesim.report.pages.checks.against import against_lines
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.pages.checks.redundant import redundant_lines
from pipesim.report.pages.programs.autopsy import autopsy_lines
from pipesim.report.pages.programs.confirm import confirm_lines
from pipesim.report.pages.programs.stress import stress_lines
from pipesim.report.pages.protocols.advise import advise_lines
from pipesim.report.pages.protocols.pair import pair_lines
from pipesim.report.pages.protocols.run import run_lines, walk_lines
from pipesim.report.pages.protocols.show import list_lines, protocol_lines, show_lines
from pipesim.report.pages.protocols.summary import summary_lines
from pipesim.report.pages.protocols.sweep import sweep_lines
from pipesim.report.pages.protocols.verify import compare_lines, verify_lines
from pipesim.report.sentences.check import MOST_CELLS
from pipesim.report.text.console import paint, text_of
from pipesim.targets import Target, find, target_of
from pipesim.timed.profile import PERIOD, WHOLE_RUN, StatedError, load_profile
from pipesim.trace.activity import cut as keep
from pipesim.trace.files import read_trace
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import AgentInfo, BarrierGroup, Device, EventKind, Site, Trace, TraceMeta
from tests.support.diagram_protocols import PROTOCOLS
from tests.support.machine_chip import Scripted
from tests.support.mistakes import BROKEN
from tests.support.paths import ROOT
from tests.support.planted_ptx import PLANTED

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
ROLES = (("load", 1), ("mma", 2))
HEADING = Heading("ring", {"stages": 4, "tiles": 64, "tile_bytes": 16384, "mma_warps": 2, "work": 600}, 1, ROLES)

SITES = (
    Site("load_wait_enter_empty", "load", EventKind.WAIT_ENTER, "empty"),
    Site("load_wait_return_empty", "load", EventKind.WAIT_RETURN, "empty"),
    Site("load_copy_full", "load", EventKind.COPY, "full"),
    Site("mma_wait_enter_full", "mma", EventKind.WAIT_ENTER, "full"),
    Site("mma_wait_return_full", "mma", EventKind.WAIT_RETURN, "full"),
    Site("mma_work_begin", "mma", EventKind.WORK_BEGIN),
    Site("mma_work_end", "mma", EventKind.WORK_END),
    Site("mma_arrive_empty", "mma", EventKind.ARRIVE, "empty"),
)


def ring(
    period: int, latency: int, *, source: str = "simulation", tiles: int = 64, mmas: int = 2, start: int = 0
) -> Trace:
    """A ring of four stages, drawn up by hand: a tile lands ``latency`` after its copy, then each takes ``period``."""
    buffer = EventBuffer()
    for i in range(tiles):
        stage, parity = i % 4, (i // 4) & 1
        free = start + (40 + i * 110 if i < 4 else latency + (i - 3) * period)
        enter = start + i * 110 if i < 4 else max(free - period, start + 440) + 70
        for site, cycle in ((0, enter), (1, free), (2, free + 20)):
            buffer.append(3, 0, site, stage, parity, i, 16384 if site == 2 else 0, cycle)
        for mma in range(mmas):
            full = start + latency + i * period
            enter = start if i == 0 else full - 40
            for site, cycle in (
                (3, enter),
                (4, full),
                (5, full + 10),
                (6, full + period - 60),
                (7, full + period - 55),
            ):
                buffer.append(3, 1 + mma, site, stage, parity, i, 0, cycle + 8 * mma)
    agents = (AgentInfo("load", 0, 0), *(AgentInfo("mma", n, 1 + n) for n in range(mmas)))
    groups = (BarrierGroup("full", 4, 1), BarrierGroup("empty", 4, mmas))
    meta = TraceMeta(source, "ring", dict(HEADING.params), 1, Device(H100, sm_khz=1_755_000), agents, groups, SITES)
    if source == "hardware":
        cost = {"median": 8_400, "low": 8_251, "high": 8_449}
        meta = replace(meta, memory="shared", extra={"cost_millicycles_per_record": cost})
    return Trace(meta, buffer.events(1_755_000))


def cut(trace: Trace, status: str) -> Trace:
    """The trace up to the moment at which load and the last mma wait, and the first mma has done its second tile."""
    events = trace.events
    at = events.cycle - events.cycle.min()
    kept = (at <= 2_694) & ~((events.agent == 1) & (at > 2_660))
    return Trace(replace(trace.meta, status=Ending(status)), events.select(kept))


def timing(measured: int, mmas: int = 2) -> Timing:
    """Numbers that fit :func:`ring` with a period of 755 cycles and a measured one of ``measured``."""
    shares = [Share("load", "waiting for empty", 931, 924)]
    shares += [Share(f"mma/{n}", "waiting for full", 9 + n, 13 + n) for n in range(mmas)]
    shares += [Share(f"mma/{n}", "work", 888 - n, 885 - 2 * n) for n in range(mmas)]
    shares += [Share("load", "everything else", 69, 76)]
    shares += [Share(f"mma/{n}", "everything else", 103, 102 + n) for n in range(mmas)]
    return Timing(
        figures=(
            Figure("period", 744_000, 755_000, 1000 * measured, 3_012),
            Figure("prologue", None, 1_204_000, 1_231_400, 23_400),
            Figure("epilogue", None, 700_000, 700_000),
            Figure("whole run", None, 48_769_000, None, None),
        ),
        sites=(
            SiteTiming("load", "wait_enter", "empty", Spread(685, 685), Spread(683, 702)),
            SiteTiming("load", "copy", "full", Spread(50, 50), Spread(52, 61)),
            SiteTiming("mma", "wait_return", "full", Spread(10, 10), Spread(12, 14)),
            SiteTiming("mma", "work_begin", "", Spread(685, 685), Spread(684, 1_690)),
        ),
        shares=tuple(shares),
        matched=1_790,
        bias_cycles=27,
        spread_cycles=9,
    )


#: What the invented profile of the examples states of the kernel in them.
STATED = StatedError("ring", PERIOD, (1, 1), {"stages": (2, 8)}, 57, 17, 126)


def time_of(measured: int) -> TimeComparison:
    """What the numbers of :func:`timing` come to."""
    off = round(1000 * (755 - measured) / measured)
    verdict = TimeVerdict.WITHIN_STATED_ERROR if abs(off) <= STATED.worst_permille else TimeVerdict.OFF
    return TimeComparison(verdict, "h100", PERIOD, 755_000, 1000 * measured, off, STATED)


def untimed(why: NoTime) -> TimeComparison:
    return TimeComparison(TimeVerdict.NOT_COMPARED, "h100", why=why)


#: Everything that a time can assume, of one role's work also how long it took.
ASSUMED = (
    TimeAssumption(AssumedKind.DEVICE, "NVIDIA B200"),
    TimeAssumption(AssumedKind.TCGEN05),
    TimeAssumption(AssumedKind.MATRIX),
    TimeAssumption(AssumedKind.MULTICAST),
    TimeAssumption(AssumedKind.REMOTE),
    TimeAssumption(AssumedKind.VALUE, "transfer.latency"),
    TimeAssumption(AssumedKind.VALUE, "matrix.latency"),
    TimeAssumption(AssumedKind.VALUE, "sync.latency"),
    TimeAssumption(AssumedKind.VALUE, "read.issue"),
    TimeAssumption(AssumedKind.WORK, "softmax", 900, 1_303),
    TimeAssumption(AssumedKind.WORK, "scheduler", 700),
)


def block(device: str, source: str, period: int, /, **changes: object) -> TraceComparison:
    """One device's block of the good report."""
    good = TraceComparison(
        source=source,
        device=device,
        driver="580.82.07",
        runs=5,
        agreement=Agreement.CONFORMS,
        conformance=Conformance(TraceVerdict.AGREES, 1_792, 1, 0, 2),
        dropped=0,
        clock_error_ps=5_700,
        order_error_cycles=2,
        overhead_permille=12,
        noise_permille=4,
        sm_khz=1_755_000,
        timing=timing(period),
        time=time_of(period),
        simulated=ring(755, 1204),
        measured=ring(period, 1231, source="hardware", start=9_000),
    )
    return replace(good, **changes)  # type: ignore[arg-type]


def simulation(profile: str = "h100", device: str = H100) -> SimulationLine:
    return SimulationLine(profile, device, None, 755_000, "mma work", Ending.FINISHED)


PROOF = CheckReport(HEADING, Verdict.PROVED, How.CERTIFICATE, 1_100, 96, 0, (), ())

DEADLOCK = Deadlock(
    blocked=(
        BlockedAgent("mma/1", "full[0]", 1, 1, 1, 1, 1, 16384, "my_gemm.py:47", (
            Supplier("load", "arrival and bytes", "my_gemm.py:31", "my_gemm.py:31", 0, "empty[0]"),
        )),
        BlockedAgent("load", "empty[0]", 1, 1, 1, 1, 2, 0, "my_gemm.py:30", (
            Supplier("mma/0", "arrival", "", "my_gemm.py:41", 2, "", 2, "tiles"),
            Supplier("mma/1", "arrival", "my_gemm.py:52", "my_gemm.py:52", 0, "full[0]"),
        )),
    ),
    finished=("mma/0",),
    cycle=("mma/1", "load"),
)  # fmt: skip

MISSING_LAST = Deadlock(
    blocked=(
        BlockedAgent("load", "empty[0]", 1, 3, 3, 1, 2, 0, "kernels/attention/backward/pipeline.py:128", (
            Supplier("mma/0", "arrival", "", "kernels/attention/backward/pipeline.py:141", 2, "", 2, "tiles"),
        )),
        BlockedAgent("mma/1", "full[2]", 0, 4, 4, 0, 1, 8192, "kernels/attention/backward/pipeline.py:150", ()),
        BlockedAgent("store", "named barrier 1", -1, 0, 0, 32, 64, 0, "kernels/attention/backward/pipeline.py:177", (
            Supplier("load", "arrival", "", "", -1, "empty[0]"),
            Supplier("mma/1", "arrival", "kernels/attention/backward/pipeline.py:163", "", -1, "full[2]"),
        )),
        BlockedAgent("mma/0", "done[0]", 0, 0, 0, 0, 1, -64, "", (
            Supplier("mma/0", "expectation", "kernels/attention/backward/pipeline.py:170", "", -1, "done[0]"),
        )),
    ),
    finished=(),
)  # fmt: skip


MOMENTS = (
    ComparedEvent(411, "mma/1", 38_086, "arrive empty[0]", "same"),
    ComparedEvent(412, "mma/1", 38_100, "wait full[1] parity 1 returns", "blocked until phase 18 completes"),
    ComparedEvent(413, "load", 38_314, "expect full[1] 16,384 bytes", ""),
)
DIVERGENCE = Divergence(
    DivergenceKind.TOO_EARLY,
    "mma/1 returns from its wait for full[1] parity 1 before phase 18 can have completed: 1 of 1 arrivals and "
    "16,384 bytes missing; the next operation that could supply it came 214 cycles later",
    cta=3,
    agent="mma/1",
    iteration=37,
    event=412,
    events=1_792,
    cycle=38_100,
    barrier="full[1]",
    phase_wanted=18,
    phase_now=18,
    late_by=214,
    line="my_gemm.py:47",
    moments=MOMENTS,
)

LATENCY_SOURCE = (
    "the experiment `latency` on the NVIDIA H200, less 20.5 %, the most by which 73 recordings were below it"
)


def without_a_phase(kind: DivergenceKind, claim: str, **changes: object) -> Divergence:
    """A divergence that is not about a phase that comes too early."""
    plain = replace(DIVERGENCE, kind=kind, claim=claim, phase_wanted=-1, phase_now=-1, late_by=0)
    return replace(plain, **changes)  # type: ignore[arg-type]


#: Those whose page has something that no other one has; TOO_EARLY is in that of ``verify_divergence``.
DIVERGENCES = {
    DivergenceKind.MISSING_EVENT: without_a_phase(
        DivergenceKind.MISSING_EVENT,
        "the records of mma/1 end where the protocol continues with: arrive empty[3]",
        event=1_792,
        cycle=-1,
        barrier="",
        moments=(
            ComparedEvent(1_791, "load", 99_000, "copy 16,384 bytes → full[3]", "same"),
            ComparedEvent(1_792, "mma/1", -1, "no more records", "arrive empty[3]"),
        ),
    ),
    DivergenceKind.TOO_SOON: without_a_phase(
        DivergenceKind.TOO_SOON,
        "mma/1 returns from its wait for full[1] 120 cycles after load issued a copy of 16,384 bytes, which "
        "phase 18 needs; this takes 486 cycles or more in 33,792 measurements (timestamps ±20)",
        late_by=346,
        moments=(
            *MOMENTS[:-2],
            replace(MOMENTS[-2], model="no return within 486 cycles of a copy of 16,384 bytes"),
            MOMENTS[-1],
        ),
        early=EarlyReturn("a copy of 16,384 bytes", "load", "my_gemm.py:28", 120, 486, 33_792, LATENCY_SOURCE),
    ),
    DivergenceKind.BARRIER_WORD: Divergence(
        DivergenceKind.BARRIER_WORD,
        "full[1] was left with parity 1, 1 of 2 arrivals pending, 0 bytes missing; the protocol leaves parity 0, 2 of "
        "2 arrivals pending, 0 bytes missing; full[2], empty[0] are otherwise too",
        cta=3,
        agent="",
        iteration=-1,
        event=1_792,
        events=1_792,
        cycle=-1,
        barrier="full[1]",
    ),
    DivergenceKind.NOT_FINISHED: without_a_phase(
        DivergenceKind.NOT_FINISHED,
        "the kernel timed out: 2 of 3 agents blocked",
        event=413,
        barrier="full[0]",
        moments=(*MOMENTS[:1], ComparedEvent(413, "load", 38_314, "", "")),
        stuck=DEADLOCK,
    ),
}


def verify_good(width: int) -> list[str]:
    blocks = (
        block(H100, "traces/h100/ring-s4-t16k-w600.parquet", 753),
        block(H200, "/home/user1/a/rather/long/way/down/to/traces/h200/ring-s4-t16k-w600.parquet", 741,
              timing=timing(741, mmas=6), overhead_permille=None, noise_permille=None, order_error_cycles=0),
    )  # fmt: skip
    simulations = (simulation(), simulation("h200", H200))
    return verify_lines(VerifyReport(HEADING, PROOF, simulations, blocks), width)


def times_off(width: int) -> list[str]:
    """The order of events is right and the time is not; the profile states nothing of such a launch of this kernel."""
    off = replace(time_of(469), verdict=TimeVerdict.OUTSIDE, stated=None, beyond={"stages": (2, 8), "CTAs": (1, 66)})
    blocks = (block(H100, "ring.parquet", 469, time=off), block(H200, "ring.parquet", 753))
    return verify_lines(VerifyReport(HEADING, PROOF, (simulation(),), blocks), width)


def times_without_a_number(width: int) -> list[str]:
    """Nothing that was recorded can be compared in time, and what is simulated is another device."""
    lacks = TimeComparison(TimeVerdict.OUTSIDE, "h100", assumed=ASSUMED)
    return compare_lines(
        CompareReport(HEADING, (block("NVIDIA B200", "b.parquet", 753, time=lacks, timing=None),)), width
    )


def verify_divergence(width: int) -> list[str]:
    wrong = block(
        H100,
        CAPTURED_NOW,
        753,
        agreement=Agreement.DIFFERS,
        reason=Reason(ReasonKind.DIVERGES),
        conformance=Conformance(TraceVerdict.DIFFERS, 1_792, 1, 0, 2, DIVERGENCE),
        timing=None,
    )
    return verify_lines(VerifyReport(HEADING, PROOF, (simulation(),), (wrong,)), width)


def verify_lost(width: int) -> list[str]:
    good = ring(753, 1231, source="hardware", start=9_000)
    wrong = Trace(replace(good.meta, wrong_tiles=2), good.events)
    partial = Conformance(TraceVerdict.UNKNOWN, 1_700, 2, 92, 2)
    lossy = block(H100, CAPTURED_NOW, 753, conformance=partial, dropped=92, timing=None, driver="", sm_khz=0,
                  simulated=None, clock_error_ps=740, measured=wrong, agreement=Agreement.UNKNOWN,
                  time=untimed(NoTime.NOT_RECORDED),
                  reason=Reason(ReasonKind.RECORDS_LOST, 92))  # fmt: skip
    return compare_lines(CompareReport(HEADING, (lossy,)), width)


def verify_window(width: int) -> list[str]:
    """A window in the middle: its events conform, what lies outside it is named."""
    seen = Conformance(TraceVerdict.AGREES, 896, 1, 0, 2, window=(16, 48), iterations=64)
    whole = timing(753)
    numbers = replace(whole, figures=(whole.figures[0], *(replace(f, measured=None) for f in whole.figures[1:])))
    window = block(H100, "traces/h100/window.parquet", 753, conformance=seen, timing=numbers,
                   simulated=keep(ring(755, 1204), 16, 48),
                   measured=keep(ring(753, 1231, source="hardware", start=9_000), 16, 48))  # fmt: skip
    return verify_lines(VerifyReport(HEADING, PROOF, (simulation(),), (window,)), width)


def hang(width: int) -> list[str]:
    stopped = cut(ring(755, 1204, source="hardware"), "deadline")
    found = replace(DIVERGENCES[DivergenceKind.NOT_FINISHED], event=38, events=39, cycle=2_682, moments=())
    conformance = Conformance(TraceVerdict.DIFFERS, 39, 1, 0, 2, found)
    stuck = block(H100, "hang-0007.parquet", 753, timing=None, measured=stopped, conformance=conformance,
                  agreement=Agreement.HANGS_TOO, time=untimed(NoTime.UNFINISHED))  # fmt: skip
    return compare_lines(CompareReport(HEADING, (stuck,)), width)


EXPLANATION = Explanation(
    Edit(EditKind.PHASE_NOT_TOGGLED, 2, 36, "full"),
    "mma/1 does not toggle its phase when it reaches full[0] after tile 36",
    "mma/1",
    "full[0]",
    36,
    "my_gemm.py:47",
    hazards=(),
    trap=None,
    stuck=DEADLOCK,
)
RACE = FaultReport(
    FaultKind.RACE, f"load: {FaultKind.RACE.value} in tile[0]", "load", "TMA_LOAD full[0] tile[0]", "my_gemm.py:31"
)
TRAP = FaultReport(
    FaultKind.OVER_ARRIVAL,
    f"load: {FaultKind.OVER_ARRIVAL.value} on full[0]: 1 arrive, 0 pending",
    "load",
    "ARRIVE full[0] count=1 expect=16,384",
    "my_gemm.py:31",
)
BARRIERS = (
    RebuiltBarrier("full[0]", 9, 1, 1, 0, ("mma/0", "mma/1"), BarrierWord(1, 1, 0, 1), agrees=True),
    RebuiltBarrier("full[1]", 9, 0, 1, -8_192, (), BarrierWord(1, 0, -8_192, 1), agrees=True),
    RebuiltBarrier("full[2]", 8, 1, 1, 0, (), BarrierWord(1, 1, 0, 0), agrees=True),
    RebuiltBarrier("empty[0]", 8, 1, 2, 0, ("load",), BarrierWord(2, 1, 0, 0), agrees=True),
)
AUTOPSY = Autopsy(
    3, Ending.DEADLINE, 35_937, 18_211_000, BARRIERS, DEADLOCK, DEADLOCK.blocked, (), None, "", agree=True
)


def examination(found: Examination, shown: Deadlock | None = None) -> Callable[[int], list[str]]:
    return lambda width: examination_lines(found, shown, width)


def disagreeing() -> Autopsy:
    """A trap, words that say something else, and records that do not fit."""
    wrong = replace(BARRIERS[2], tx=16_384, in_flight=16_384, read=BarrierWord(1, 0, 4_096, 1), agrees=False)
    claim = "mma/0 returns from its wait for full[2] parity 0 before phase 8 can have completed"
    return replace(AUTOPSY, status=Ending.TRAP, barriers=(*BARRIERS[:2], wrong), deadlock=None,
                   waiting=DEADLOCK.blocked[:1], stopped=("load", "mma/0"), trap=TRAP, contradiction=claim,
                   agree=False)  # fmt: skip


MADE = "phase_not_toggled@36"
EXAMINATIONS = {
    "one_edit": Examination(
        LaunchOutcome.HANG, Diagnosis((EXPLANATION,), 1_322, MADE, named=True),
        (LaunchOutcome.RIGHT, LaunchOutcome.HANG), AUTOPSY,
    ),
    "edit_that_races": Examination(
        LaunchOutcome.RIGHT,
        Diagnosis((replace(EXPLANATION, hazards=(RACE,) * 3, stuck=None),), 1_322, MADE, named=True),
        (LaunchOutcome.RIGHT, LaunchOutcome.WRONG_DATA), None,
    ),
    "edit_that_traps": Examination(
        LaunchOutcome.TRAP, Diagnosis((replace(EXPLANATION, trap=TRAP, stuck=None),), 1_322, "no_acquire@4"),
        (LaunchOutcome.TRAP,), disagreeing(),
    ),
    "no_edit": Examination(LaunchOutcome.WRONG_DATA, Diagnosis((), 1_322), (), None),
    "no_edit_needed": Examination(LaunchOutcome.HANG, Diagnosis((), 0), (), replace(AUTOPSY, agree=None)),
    "not_manifest": Examination(LaunchOutcome.RIGHT, Diagnosis((), 0, MADE, manifest=False), (), None),
}  # fmt: skip


def divergence(kind: DivergenceKind) -> Callable[[int], list[str]]:
    return lambda width: divergence_lines(DIVERGENCES[kind], width)


def missing_last(width: int) -> list[str]:
    return finding_lines((MISSING_LAST,), width)


RECORDED = "producer_consumer-al1-cw2"
CONFIGURATION, OTHERWISE = f"h100/{RECORDED}-s4-tb16384-t64-w600-g1", f"h200/{RECORDED}-s2-tb16384-t64-w200-g1"
RIGHT = f"h200/{RECORDED}-s3-tb4096-t24-w200-g1"


def pair(a: str, b: str) -> Callable[[int], list[str]]:
    """Two stored traces."""
    files = [f"traces/{name}.parquet" for name in (a, b)]

    def lines(width: int) -> list[str]:
        one, two = (read_trace(ROOT / file) for file in files)
        return pair_lines(compare_pair(one, two, (files[0], files[1])), width)

    return lines


def protocol_alone(width: int) -> list[str]:
    rows = (
        ProtocolRow("producer_consumer", "One load warp fills a ring of tiles, consumer warps read each tile and work.",
                    {"stages": 4, "tiles": 64, "tile_bytes": 16384, "consumer_warps": 2, "work": 600},
                    (("producer", 1), ("consumer", 2)), (("full", 4, 1), ("empty", 4, 2)),
                    traces=(ProtocolTraces(H100, 17, usual=True), ProtocolTraces(H200, 1, usual=False))),
        ProtocolRow("attention", "Six roles.", {"blocks": 4},
                    (("load", 1), ("mma", 1), ("softmax0", 4), ("softmax1", 4), ("correction", 4), ("store", 1)),
                    tuple((f"{name}_{side}", 2, count) for name in ("q", "kv", "s0", "s1", "o0")
                          for side, count in (("full", 1), ("empty", None))), 2),
        ProtocolRow("handshake", "Two warps, one barrier.", {}),
    )  # fmt: skip
    return [line for row in rows for line in protocol_lines(row, width)]


def shown(name: str, cta: int = 0) -> Callable[[int], list[str]]:
    return lambda width: show_lines(anatomy(PROTOCOLS[name]().flatten(), cta), width)


def show_ring(width: int) -> list[str]:
    defaults = {"stages": 4, "tiles": 64, "tile_bytes": 16384, "consumer_warps": 2, "work": 600, "arrive_lanes": 32}
    return show_lines(anatomy(producer_consumer(**defaults).flatten(defaults)), width)


@cache
def attention() -> RunReport:
    return run(find("attention_sm100").build(), load_profile("h100"))


@cache
def twin(name: str, **sizes: int) -> Target:
    """A wrong twin; its lines are numbered by hand, so that moving its code changes nothing."""
    program = BROKEN[name](**sizes).flatten()
    program = replace(program, sources=tuple(f"ring.py:{10 + n}" for n in range(len(program.sources))))
    return replace(target_of(program), spelling="ring.json")


def sentences(lines: Iterable[str]) -> list[str]:
    """Those of a report of any width: a line is one, but where dots, a full stop or columns part it."""
    no_sentence = re.compile(r"[█░▒▓]|──|\\$|^  (?:again|as a timeline): ")
    parts = (re.split(r" · | {3,}|(?<=[.?!]) ", line.strip()) for line in lines if not no_sentence.search(line))
    return [each for part in parts for each in part if each]


def assert_short(report: CheckReport) -> None:
    """No sentence has more than two lines of 100 cells, no brief more than 2 kB, and none lacks what it has to have."""
    said = sentences(text_of(check_lines(report, 1_000)).splitlines())
    assert [each for each in said if cell_len(each) > MOST_CELLS] == []
    brief = brief_of(report)
    assert len(json.dumps({"report": {"brief": asdict(brief)}}, indent=2)) <= 2_000
    if report.refutations:
        assert all((brief.said, brief.kind, brief.basis, brief.claim))
        assert len(brief.claim) <= 300


@cache
def checked_twin(name: str, **sizes: int) -> CheckReport:
    """What ``check`` says of a wrong twin."""
    return check(twin(name, **sizes), {}, max_states=2_000)


def compared_twins() -> AgainstReport:
    """A twin whose consumer arrives too early as the newer version of one with a wrong count."""
    triage = Triage(TriagePolicy(), lambda _: "", lambda _: "")
    names = "empty_count_too_high", "consumer_arrives_before_reading"
    reports = [triage.of(checked_twin(name, tiles=3), ()) for name in names]
    old, new = (twin(name, tiles=3).build() for name in names)
    return against(reports[0], reports[1], old, new)


def simulated(name: str, max_steps: int = 10_000, **sizes: int) -> Callable[[int], list[str]]:
    """What ``run`` says of a wrong twin."""
    return lambda width: run_lines(run(twin(name, **sizes).build(), load_profile("h100"), max_steps=max_steps), width)


def checked(name: str, **sizes: int) -> Callable[[int], list[str]]:
    return lambda width: check_lines(checked_twin(name, **sizes), width)


def explained(name: str) -> Callable[[int], list[str]]:
    """The page of one kind or assumption."""
    report = kind_named(name)
    if isinstance(report, AssumptionReport):
        return lambda width: kind_page.assumption_lines(report, width)
    return lambda width: kind_page.kind_lines(report, width)


def redundant_ring(width: int) -> list[str]:
    """What ``check --redundant`` says of a ring that has more than it needs; its lines are numbered by hand."""
    made = find(f"{ROOT}/docs/examples/ring_more.py:ring").build()
    program = replace(made, sources=tuple(f"ring.py:{n + 1}" for n in range(len(made.sources))))
    return redundant_lines(redundant(replace(target_of(program), spelling="ring.json"), {}), width)


def planted_kernel(name: str) -> Target:
    """A small kernel in PTX."""
    kernel = next(each for each in PLANTED if each.name == name)
    read = extract(read_module(kernel.text, f"{name}.ptx"), kernel.launch)
    editable = EditableKernel(Path(f"{name}.ptx"), None, (), kernel.text)
    return replace(target_of(read.program), kernel=read, editable=editable)


@cache
def stress_report() -> StressReport:
    """Of a right kernel, of which launches show nothing; nothing is launched."""
    target = planted_kernel("right")
    chip, options = Scripted(LaunchSeen(ChipOutcome.SAME)), ConfirmOptions()
    return stress(target, check(target, {}, quick=True), chip, options, many=10_000, seed=7)


def confirmed(width: int) -> list[str]:
    """A kernel that is lapped, as a chip shows it; nothing is launched."""
    target = planted_kernel("lapped")
    chip = Scripted(LaunchSeen(ChipOutcome.HANG, ((0, 2, 3),)))
    return confirm_lines(confirm(target, check(target, {}, quick=True), chip, ConfirmOptions()), width)


def walked_race(width: int) -> list[str]:
    program = twin("consumer_arrives_before_reading").build()
    return walk_lines(
        replay_report(program, checked_twin("consumer_arrives_before_reading").refutations[0].replay), width
    )


def summed(name: str, **known: object) -> ProtocolReport:
    """A protocol that is right, but for what is ``known`` otherwise."""
    proved = replace(checked_twin("expects_half"), verdict=Verdict.PROVED, refutations=(), doubts=())
    line = SimulationLine("h100", "NVIDIA H100", None, None, "", Ending.FINISHED)
    right = ProtocolReport(
        name, (name,), "What it is in one sentence.", None, proved, line, 12_345, (), (), Hardware.NO_KERNEL, (), (),
    )  # fmt: skip
    return replace(right, **known)  # type: ignore[arg-type]


def with_times(lines: tuple[TraceLine, ...], *times: TimeComparison) -> tuple[TraceLine, ...]:
    """The lines with these times, in turn."""
    return tuple(replace(line, time=times[n % len(times)]) for n, line in enumerate(lines))


def making(*pipelines: str) -> Heading:
    """The heading of a protocol whose roles make these structs."""
    return replace(HEADING, pipelines=pipelines)


def of_traces(name: str, **agreements: int) -> tuple[TraceLine, ...]:
    """So many traces of each agreement on both devices, the first of which is not known to agree."""
    whys = {
        Agreement.DIFFERS: (Reason(ReasonKind.DIVERGES), "producer does not wait for empty[1] for tile 7"),
        Agreement.UNKNOWN: (Reason(ReasonKind.RECORDS_LOST, 2), ""),
    }
    return tuple(
        TraceLine(file, f"traces/{file}", device, has, 9, *whys.get(has, ()))
        for device in ("h100", "h200")
        for has, number in ((Agreement[kind.upper()], number) for kind, number in agreements.items())
        for file in (f"{device}/{name}-{has.name.lower()}-{n}.parquet" for n in range(number))
    )


def summary(width: int) -> list[str]:
    """Everything that can be said of one of several protocols."""
    right = summed("right").proof
    assert right is not None
    wrong = checked_twin("expects_half")
    any_tiles = replace(right, ranges=(ProvedRange("tiles", 0, 12, 6, 4),))
    any_of_both = replace(
        right, ranges=(*any_tiles.ranges, ProvedRange("k_iters", 0, 9, 3, 1), ProvedRange("other", 0, 9))
    )
    unknown = replace(right, verdict=Verdict.UNKNOWN)
    good = SimulationLine("h100", "NVIDIA H100", None, 1_105_400, "the consumers", Ending.FINISHED)
    recorded = Hardware.RECORDED
    whole = TimeComparison(TimeVerdict.OUTSIDE, "h100", WHOLE_RUN, 48_769_000, 60_000_000, -187, assumed=ASSUMED[2:])
    rows = (
        summed(
            "ring", proof=any_tiles, simulation=good, hardware=recorded,
            traces=with_times(of_traces("ring", conforms=3), time_of(753), time_of(741), time_of(469)),
            heading=making("ProducerConsumerPipeline", "LoadOrderBarrier"),
        ),
        summed("gemm_of_a_rather_long_name", proof=any_of_both, heading=making("InputTilePipeline", "InputProducer")),
        summed(
            "hangs", hardware=recorded,
            traces=with_times(
                of_traces("hangs", conforms=1, hangs_too=2, fault_named=1), whole, *[untimed(NoTime.UNFINISHED)] * 3
            ),
            heading=making("InputTilePipeline"),
        ),
        summed(
            "refuted", heading=making("ProducerConsumerPipeline", "EpiLoadPipeline"), proof=wrong,
            findings=tuple(shown.finding for shown in wrong.refutations),
        ),
        summed(
            "not_decided", arguments=("not_decided", "-p", "tiles=3"), proof=unknown, heading=making("InputProducer"),
        ),
        summed(
            "stuck", simulation=replace(good, outcome=Ending.DEADLOCK, period_millicycles=None), findings=(DEADLOCK,),
        ),
        summed("long", simulation=replace(good, outcome=Ending.UNKNOWN, period_millicycles=None)),
        summed(
            "my.py:other", arguments=("my.py:other",), hardware=recorded,
            traces=of_traces("other", conforms=11, differs=1, unknown=1), heading=making("InputTilePipeline"),
        ),
        summed("not_there", hardware=Hardware.NOT_RECORDED),
        summed(
            "raises", proof=None, simulation=None,
            failures=(
                Failure(Stage.CHECK, "", "KeyError: 'empty'", "ring.py:12"),
                Failure(Stage.SIMULATE, "", "a process ended"),
            ),
        ),
    )  # fmt: skip
    return summary_lines(SummaryReport("h100", rows, ("conv_epilogue",)), width)


def summary_good(width: int) -> list[str]:
    """All is well, and no hardware was asked for."""
    rows = tuple(summed(name, hardware=Hardware.LEFT_OUT) for name in ("one", "another"))
    return summary_lines(SummaryReport("h200", rows), width)


def swept(width: int) -> list[str]:
    """A sweep over two parameters with configurations that are refused, not correct, and not reached."""
    return sweep_lines(sweep_example(), width)


def sweep_example() -> SweepReport:
    """Drawn up by hand: more stages help until the consumers are busy; the last configuration was not reached."""
    found = []
    for stages in (1, 2, 3, 12):
        for nbytes in (8192, 16384):
            params = {"stages": stages, "tile_bytes": nbytes}
            if stages * nbytes > 180_000:
                found.append(Configuration(params, Outcome.REFUSED, "ring needs 196,608 bytes; a CTA has 180,000"))
            elif stages == 12:
                found.append(Configuration(params, Outcome.NOT_REACHED, "the time limit of 5 s was reached"))
            elif (stages, nbytes) == (3, 16384):
                found.append(Configuration(params, Outcome.REFUTED, "deadlock"))
            else:
                late = Bottleneck(LimitKind.LOADS, "mma", 430, "full")
                limit = late if stages == 1 else Bottleneck(LimitKind.ROLE, "mma", 12, "full")
                times = Times(
                    90_000 // stages + nbytes, 600_000 // stages + 20 * nbytes, 64 * nbytes, WorkUnit.BYTES, limit
                )
                found.append(Configuration(params, Outcome.USABLE, "", Resources(stages * nbytes, 96, 12_288), times))
    order = rank(found, Metric.THROUGHPUT)
    return SweepReport(
        "ring", "h200", H200, {"stages": (1, 2, 3, 12), "tile_bytes": (8192, 16384)}, {"work": 600}, None,
        Metric.THROUGHPUT, WorkUnit.BYTES, chosen=True, proved=True, configurations=tuple(found), ranked=order,
        smallest=smallest(order, 300), within_permille=300, comparable=Comparable.OTHER_WORK,
        command="pipesim run ring --profile h200 -p work=600 -p stages=2 -p tile_bytes=16384", reused=2,
        interrupted="the time limit of 5 s was reached",
    )  # fmt: skip


@cache
def advice() -> AdviseReport:
    """A ring that leaves no room for another stage."""
    params = {"stages": 7, "tile_bytes": 32768, "tiles": 24, "work": 100}
    return advise(find("producer_consumer"), params, load_profile("h200"))


EXAMPLES: dict[str, Callable[[int], list[str]]] = {
    "advise": lambda width: advise_lines(advice(), width),
    "autopsy": lambda width: autopsy_lines(autopsy(ROOT / "tests" / "coredump" / "dumps" / "ring.elf.xz"), width),
    "sweep": swept,
    "verify_good": verify_good,
    "verify_divergence": verify_divergence,
    "times_off": times_off,
    "times_without_a_number": times_without_a_number,
    "verify_lost": verify_lost,
    "verify_window": verify_window,
    "hang": hang,
    **{f"divergence_{kind.name.lower()}": divergence(kind) for kind in DIVERGENCES},
    **{f"examination_{name}": examination(found) for name, found in EXAMINATIONS.items() if name != "no_edit_needed"},
    "examination_no_edit_needed": examination(EXAMINATIONS["no_edit_needed"], DEADLOCK),
    "pair_same": pair(CONFIGURATION, f"{CONFIGURATION}-device"),
    "pair_changed": pair(CONFIGURATION, OTHERWISE),
    "pair_differs": pair(RIGHT, f"{RIGHT}-phase_not_toggled-at-7"),
    "missing_last": missing_last,
    "run_deadlock": simulated("empty_count_too_high", tiles=9),
    "run_budget": simulated("waits_for_the_stage_before", max_steps=20),
    "run_trap": simulated("every_lane_arrives"),
    "run_silent_fault": simulated("consumer_does_not_wait"),
    "run_attention_sm100": lambda width: run_lines(attention(), width),
    "list_one": protocol_alone,
    "list": lambda width: list_lines([(name, find(name).summary) for name in sorted(BUILT_IN)], width),
    "show_ring": show_ring,
    "show_attention_sm100": shown("attention_sm100"),
    "show_pair_gemm_peer": shown("pair_gemm", 1),
    "check_named_barrier": checked("sync_inside_a_condition"),
    "check_deadlock": checked("empty_count_too_high", tiles=3),
    "check_race": checked("consumer_arrives_before_reading"),
    "check_lap": checked("nobody_waits_for_the_sleeper"),
    "check_cluster": checked("exit_under_a_remote_arrive"),
    "check_against": lambda width: against_lines(compared_twins(), width),
    "check_redundant": redundant_ring,
    "check_walked": walked_race,
    "confirm": confirmed,
    "stress": lambda width: stress_lines(stress_report(), width),
    "assumption": explained("commits"),
    "kind": explained("over_arrival"),
    "kinds": lambda width: kind_page.kind_list_lines(kind_lines(), assumption_lines(), width),
    "summary": summary,
    "summary_good": summary_good,
}

WIDTH = 80  #: of the golden files; the laws of layout hold at every width


@cache
def render(name: str, width: int, encoding: str = "utf-8") -> str:
    """The example's text, as a file of this encoding would hold it."""
    stream = io.BytesIO()
    text = io.TextIOWrapper(stream, encoding=encoding, newline="\n", write_through=True)
    console = Console(
        file=text, width=width, height=100, color_system=None, force_terminal=False, highlight=False, _environ={}
    )
    paint(console, EXAMPLES[name](width))
    return stream.getvalue().decode(encoding)
