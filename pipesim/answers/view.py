"""What the reports show, as plain data. Whoever fills it computes; whoever paints it only chooses words and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipesim.conform.diagnose.examined import Examination
from pipesim.conform.result import Conformance, Timing
from pipesim.model.finding import Advisory, Deadlock, FaultReport, Finding, Verdict
from pipesim.prove.counterexample.activity import Span
from pipesim.prove.counterexample.words import DoubtLine, Line
from pipesim.prove.repair.correction import Correction
from pipesim.trace.schema import Trace


@dataclass(frozen=True)
class Heading:
    """What was run: the protocol, its parameters in their order, CTAs of the launch, and (role, warps) of each role.

    ``cluster``: CTAs in a cluster of the launch.
    """

    protocol: str
    params: Mapping[str, int]
    grid: int
    roles: tuple[tuple[str, int], ...]
    cluster: int = 1


@dataclass(frozen=True)
class Shown:
    """What is wrong, and the schedule that shows it. ``at``: the parameters that were lowered to make it small.

    ``replay`` is the schedule as ``check --replay`` and ``run --schedule`` take it, ``command`` what is between the
    two, the protocol and its parameters, "" where a command line cannot name it. ``standing`` says of every agent, in
    the program's order, what it waits for at the end; "" where the schedule ends with a fault. With each of the
    ``corrections`` alone the protocol is proved, at these parameters and at those that were asked for. ``cause`` names
    the doubt that led to the schedule, "" if a search did.
    """

    finding: Finding
    schedule: tuple[Line, ...]
    at: Mapping[str, int]
    replay: str
    command: str = ""
    standing: Mapping[str, str] = field(default_factory=dict)
    corrections: tuple[Correction, ...] = ()
    cause: str = ""


@dataclass(frozen=True)
class Range:
    """The values of a trip count that are proved, the other parameters being as they are.

    ``least`` to ``checked`` each by a run of its own (-1: none). ``lap``: beyond ``first`` this many iterations more
    are a lap more, so that every value from ``least`` on is proved; 0 if it is not known to be so, and ``why``.
    ``fails``: the least value met that is not proved, -1 if none was.
    """

    parameter: str
    least: int
    checked: int
    first: int = -1
    lap: int = 0
    fails: int = -1
    why: str = ""


@dataclass(frozen=True)
class CheckReport:
    """The whole of ``pipesim check``. ``how``: what the verdict rests on; ``states`` were searched, 0 if none."""

    heading: Heading
    verdict: Verdict
    how: str
    operations: int
    phases: int
    states: int
    doubts: tuple[DoubtLine, ...]
    refutations: tuple[Shown, ...]
    said: str
    ranges: tuple[Range, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    also: tuple[str, ...] = ()  #: other ways in which schedules of the smallest size end


@dataclass(frozen=True)
class WalkReport:
    """The whole of ``pipesim run --schedule``: what each of ``agents`` does at which move, and what is wrong."""

    heading: Heading
    moves: int
    agents: tuple[str, ...]
    spans: tuple[Span, ...]
    findings: tuple[Finding, ...]
    said: str


@dataclass(frozen=True)
class SimulationLine:
    """One simulation in one line.

    ``outcome`` is the value of the engine's outcome: "finished", "deadlock", "fault" or "unknown". ``seconds`` is the
    time of computing, None to leave it out; ``bound_by`` names what limits the period ("" if unknown). ``steady`` is
    False where the iterations were too few for a period: what was read lies below the bound.
    """

    profile: str
    device: str
    seconds: float | None
    period_millicycles: int | None
    bound_by: str
    outcome: str
    steady: bool = True


@dataclass(frozen=True)
class HardwareBlock:
    """One trace of one device, compared with the model.

    ``source`` is the trace's file or "captured now". ``overhead_permille`` is what recording adds to the period,
    ``noise_permille`` half the run-to-run range of the period; both None if not measured. ``clock_error_ps`` bounds a
    time on the common time line, ``order_error_cycles`` the order of two timestamps of one SM. ``simulated`` may be
    None where nothing was simulated. ``examination`` is there if something failed, or was made to.
    """

    source: str
    device: str
    driver: str
    runs: int
    conformance: Conformance
    dropped: int
    clock_error_ps: int
    order_error_cycles: int
    overhead_permille: int | None
    noise_permille: int | None
    sm_khz: int
    timing: Timing | None
    simulated: Trace | None
    measured: Trace
    examination: Examination | None = None


@dataclass(frozen=True)
class VerifyReport:
    """The whole of ``pipesim verify``; ``pipesim diff`` is the same without simulations. ``ok`` None means unknown."""

    heading: Heading
    simulations: tuple[SimulationLine, ...]
    hardware: tuple[HardwareBlock, ...]
    verdict: str
    ok: bool | None
    advisories: tuple[Advisory, ...] = ()
    proof: CheckReport | None = None


@dataclass(frozen=True)
class RunReport:
    """One simulated run. ``cycles`` is its length, ``steps`` what the engine executed.

    ``shares`` is (agent, what) → thousandths of the agent's time, in the order of the rows to print.
    """

    heading: Heading
    simulation: SimulationLine
    cycles: int
    steps: int
    shares: Mapping[tuple[str, str], int]
    trace: Trace
    deadlock: Deadlock | None = None
    faults: tuple[FaultReport, ...] = ()
    advisories: tuple[Advisory, ...] = ()


@dataclass(frozen=True)
class ProtocolRow:
    """One built-in protocol: its one-line summary and its parameters with their defaults, in order.

    ``roles`` are (role, warps) and ``barriers`` (group, barriers, count of a phase) of one CTA with those defaults; a
    count is None where no agent initialises the group, or not all of it alike. ``ctas`` is the size of its cluster.
    """

    name: str
    summary: str
    params: Mapping[str, int]
    roles: tuple[tuple[str, int], ...] = ()
    barriers: tuple[tuple[str, int, int | None], ...] = ()
    ctas: int = 1


@dataclass(frozen=True)
class PeriodRow:
    """One configuration of one protocol on one device. Periods are in 1/1000 cycle; None: no such number."""

    name: str
    device: str
    stages: int | None
    tile_bytes: int | None
    warps: int | None
    work: int | None
    grid: int
    ring_law: int | None
    simulated: int | None
    measured: int | None
    error_permille: int | None
    noise_permille: int | None
