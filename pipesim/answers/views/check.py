"""What ``check`` answers: the verdict for every schedule, and schedules that fail; in short; with ``--against``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from pipesim.answers.views.conclusion import Basis, Conclusion, Heading, VerdictScope, of_verdict
from pipesim.explain.sync_changes import SyncComparison
from pipesim.findings.kind import Owner
from pipesim.findings.waivers import Identity, Waiver, place_of
from pipesim.model.ending import Ending
from pipesim.model.finding import Advisory, Deadlock, FaultKind, Finding, Verdict
from pipesim.process.limits import Limit
from pipesim.prove.any_size.family import ProvedRange
from pipesim.prove.check import How
from pipesim.prove.counterexample.activity import Span
from pipesim.prove.counterexample.late import Late
from pipesim.prove.counterexample.words import DoubtLine, Line
from pipesim.prove.repair.correction import Correction


class CheckStep(Enum):
    """The verdict, and what follows it, each in its own time. The value is a phrase for a report."""

    VERDICT = "the verdict"
    CTAS = "other CTAs"  #: of which some have no verdict, or findings that are not explained
    SMALLEST = "the smallest size"
    SCHEDULE = "a shorter schedule"
    CORRECTIONS = "likely corrections"
    HIDDEN = "what a finding hides"
    OTHERS = "other schedules"
    LEFTOVERS = "what is left at the end"
    SIZES = "other sizes"


class CutBy(Enum):
    """Why a step was left out, or ended before it was complete. The value is a phrase for a report."""

    NOT_ASKED = "not asked for"
    WORK = "work limit"  #: the same under any load of the machine
    TIME = "time limit"
    MEMORY = "memory limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class LeftOut:
    """A step that did not finish: ``done`` of its ``of`` units of work did (0: it is not known how many)."""

    step: CheckStep
    why: CutBy
    done: int = 0
    of: int = 0


class Level(Enum):
    """What a finding is to a machine that reads it. The value is what SARIF says."""

    ERROR = "error"  #: it fails the check
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Origin:
    """Whose a finding is. ``call``: the kernel's line that calls the function in which it is, whose text identifies it;
    "" if it is in the kernel itself.
    """

    owner: Owner = Owner.USER
    call: str = ""


@dataclass(frozen=True)
class CtaKindVerdict:
    """CTAs that do the same: how many, the first of them, and the verdict on what they do.

    ``differs``: what is so for them, and not for those of the kind before, at this ``line``. ``contents``: what
    elements of free arrays hold where they do. ``ctas`` is 0 where that depends on the contents.
    """

    cta: int
    ctas: int
    verdict: Verdict
    differs: str = ""
    line: str = ""
    contents: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Counterexample:
    """What is wrong, and the schedule that shows it. ``at``: the parameters that were lowered to make it small.

    ``replay`` is the schedule as ``check --replay`` and ``run --schedule`` take it, ``command`` what is between the
    two, the protocol and its parameters, "" where a command line cannot name it. ``standing`` says about every agent,
    in the program's order, what it waits for at the end; "" where the schedule ends with a fault. With each of the
    ``corrections`` alone the protocol is proved, at these parameters and at those that were asked for. ``cause`` names
    the doubt that led to the schedule, "" if a search did. ``unfinished``: the steps that would make it smaller or
    shorter, of those that were left out. ``basis``: how sure it is, and ``late`` what has to be late for it. Of the
    verdict alone ``schedule`` and ``standing`` are empty. ``names``: the barriers and tiles that it is about.
    ``after``: the change without which it does not show, as another finding hides it; with both changes the protocol is
    proved. ``elsewhere``: it is beside those before it, at other lines. ``kinds``: the CTAs that it was found in, where
    not all do the same; ``settings``: the CTA and the policies of its schedule, where they are others than asked for.
    ``identity`` and the waiver that it is
    ``waived`` by: once they were looked up (:mod:`pipesim.answers.project_settings`).
    """

    finding: Finding
    schedule: tuple[Line, ...]
    at: Mapping[str, int]
    replay: str
    command: str = ""
    standing: Mapping[str, str] = field(default_factory=dict)
    corrections: tuple[Correction, ...] = ()
    cause: str = ""
    unfinished: tuple[CheckStep, ...] = ()
    basis: Basis = Basis.POSSIBLE
    late: Late | None = None
    origin: Origin = field(default_factory=Origin)
    names: tuple[str, ...] = ()
    after: Correction | None = None
    elsewhere: bool = False
    kinds: tuple[CtaKindVerdict, ...] = ()
    settings: Mapping[str, int] = field(default_factory=dict)
    identity: Identity | None = None
    waived: Waiver | None = None

    @property
    def place(self) -> str:
        """The author's line that it is reported at."""
        return place_of(self.finding)

    @property
    def proved_with(self) -> str:
        """What is known about each of its corrections."""
        alone = f" in CTA {self.kinds[0].cta:,}" if self.kinds else ""  # other CTAs are not read with the change
        return f"proved{alone} with {'both changes' if self.after is not None else 'this change'}"


@dataclass(frozen=True)
class NearbyValues:
    """Values of a word of a kernel's parameters with which every CTA does the same, the other words being as they are.

    From ``least`` to ``most`` in steps of ``step``; ``most`` is -1 where nothing that was followed depends on the word,
    and ``least`` where every other value may do something else.
    """

    parameter: str
    least: int = 0
    most: int = -1
    step: int = 1

    @property
    def is_every(self) -> bool:
        """Whether it may have any value."""
        return self.most < 0


@dataclass(frozen=True)
class ProvedTogether:
    """Small values of several trip counts together, each of which may have any value while the others stay.

    ``tried``: the combinations that are proved, one by one.
    ``fails``: the combination that is not proved, by parameter, empty if all are; ``refuted``: that a schedule of it
    fails. ``every``: the values of words of a kernel's parameters of which each combination is proved, () if that is
    not known.
    """

    parameters: tuple[str, ...]
    tried: int
    fails: Mapping[str, int]
    refuted: bool = False
    every: tuple[ProvedRange, ...] = ()


def _what(shown: Counterexample) -> tuple[FaultKind | str, str]:
    """What is found, and at which line; which wait does not end may be another one in another launch."""
    return shown.finding.kind, "" if isinstance(shown.finding, Deadlock) else shown.place


#: Findings that are about where arguments lead, and not about barriers and memory of a CTA.
_OF_ARGUMENTS = {FaultKind.GLOBAL_RACE, FaultKind.ILLEGAL_OPERAND, FaultKind.BEFORE_GRID_WAIT}


@dataclass(frozen=True)
class CheckReport:
    """The verdict on a protocol for every schedule, or on the one schedule that was replayed.

    ``how``: what the verdict rests on; None for one schedule, of ``replayed`` moves. ``states`` were searched, 0 if
    none. ``also``: other ways in which schedules of the smallest size end.
    ``left_out``: the steps that did not finish. ``cut``: the limit of all steps together that was reached.
    ``scope``: for what the verdict holds, what it assumes and what is not judged.
    ``nearby``: words of a kernel's parameters with other values for which the verdict is the same, but for global
    memory.
    ``kinds``: where not all CTAs do the same, those that were looked at. ``undecided``: some CTAs
    or sizes of a kernel have no verdict. ``open_word``: an element of a free array for which it was
    not found whether all contents were looked at.
    ``fail_on``: findings that are less sure do not fail the check. ``unused``: waivers that match no finding.
    ``guessed``: what of the launch is guessed and may decide what was found, so that the verdict is unknown.
    """

    heading: Heading
    verdict: Verdict
    how: How | None
    operations: int
    phases: int
    states: int
    doubts: tuple[DoubtLine, ...]
    refutations: tuple[Counterexample, ...]
    ranges: tuple[ProvedRange, ...] = ()
    together: ProvedTogether | None = None
    nearby: tuple[NearbyValues, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    also: tuple[FaultKind | Ending, ...] = ()
    replayed: int | None = None
    left_out: tuple[LeftOut, ...] = ()
    scope: VerdictScope = field(default_factory=VerdictScope)
    kinds: tuple[CtaKindVerdict, ...] = ()
    undecided: bool = False
    open_word: str = ""
    cut: Limit | None = None
    fail_on: Basis = Basis.LETTER
    unused: tuple[Waiver, ...] = ()
    guessed: str = ""

    @property
    def conclusion(self) -> Conclusion:
        """As the verdict is; a program of which each finding is waived, or not sure enough to fail, agrees."""
        if self.verdict is Verdict.REFUTED and self.refutations and not self.failing:
            return Conclusion.UNKNOWN if self.undecided else Conclusion.AGREES
        proved_in_part = self.verdict is Verdict.PROVED and self.undecided
        return Conclusion.UNKNOWN if proved_in_part else of_verdict(self.verdict)

    @property
    def failing(self) -> tuple[Counterexample, ...]:
        """The findings that fail the check."""
        return tuple(shown for shown in self.refutations if self.level(shown) is Level.ERROR)

    @property
    def waived(self) -> tuple[Counterexample, ...]:
        """The findings that a waiver or a baseline sets aside."""
        return tuple(shown for shown in self.refutations if shown.waived is not None)

    def level(self, shown: Counterexample) -> Level:
        """What one of its findings is to a machine."""
        if shown.waived is None and shown.basis.fails(self.fail_on):
            return Level.ERROR
        return Level.NOTE if shown.waived is not None or shown.basis is Basis.LETTER else Level.WARNING

    def with_guess(self, guessed: str, other: Callable[[], object]) -> "CheckReport":
        """The report on a launch of which this is guessed ("": nothing): what a guess may decide refutes nothing.

        That is where arguments lead, whether CTAs talk, whose number is guessed, and what is not in the report on the
        ``other`` launch, of other guesses.
        """
        kinds = {each.finding.kind for each in self.failing}
        if not (guessed and kinds and self.verdict is Verdict.REFUTED):
            return self
        if not (kinds <= _OF_ARGUMENTS or self.scope.words):
            report = other()
            again = report.refutations if isinstance(report, CheckReport) else ()
            if {_what(each) for each in self.failing} & {_what(each) for each in again}:
                return self
        return replace(self, verdict=Verdict.UNKNOWN, how=How.GUESSED, guessed=guessed)

    @property
    def quick(self) -> bool:
        """True if the verdict alone was asked for."""
        return any(each.why is CutBy.NOT_ASKED for each in self.left_out)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, one a counterexample."""
        return tuple(found.finding for found in self.refutations)


@dataclass(frozen=True)
class WalkReport:
    """One schedule move by move: what each of ``agents`` does at which move, and what is wrong where it ends.

    ``ended``: every agent has finished.
    """

    heading: Heading
    moves: int
    agents: tuple[str, ...]
    spans: tuple[Span, ...]
    findings: tuple[Finding, ...]
    ended: bool = False

    @property
    def conclusion(self) -> Conclusion:
        """One schedule shows a fault, or nothing."""
        return Conclusion.WRONG if self.findings else Conclusion.UNKNOWN


@dataclass(frozen=True)
class Brief:
    """The verdict and its sentence; of the first finding its kind, how sure it is, and what to do.

    ``findings``: how many there are; without one all that follows is empty. ``places``: at most two source lines,
    ``file:number``, that of the finding first. ``replay`` is a command line, "" where it has no room or no name.
    """

    verdict: str
    said: str
    findings: int = 0
    kind: str = ""
    basis: str = ""
    claim: str = ""
    places: tuple[str, ...] = ()
    correction: str = ""
    replay: str = ""


@dataclass(frozen=True)
class AgainstReport:
    """``new`` compared with ``old``. The findings are numbers in the refutations of the report that has them.

    ``appeared``: those of ``new`` that ``old`` has not; ``gone``: those of ``old`` that ``new`` has not; ``unchanged``:
    pairs, of ``new`` and of ``old``. ``synchronisation``: what is done otherwise, also where both are proved.
    """

    old: CheckReport
    new: CheckReport
    appeared: tuple[int, ...]
    gone: tuple[int, ...]
    unchanged: tuple[tuple[int, int], ...]
    synchronisation: SyncComparison

    @property
    def conclusion(self) -> Conclusion:
        """Wrong if a new finding fails a check; unknown if the new version is, as it may have one; else it agrees."""
        if not self.new.guessed and any(self.new.level(shown) is Level.ERROR for shown in self.new_findings):
            return Conclusion.WRONG
        return of_verdict(Verdict.UNKNOWN) if self.new.verdict is Verdict.UNKNOWN else Conclusion.AGREES

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The new findings."""
        return tuple(shown.finding for shown in self.new_findings)

    @property
    def new_findings(self) -> tuple[Counterexample, ...]:
        """Those of the new version that the old one has not, each with its schedule."""
        return tuple(self.new.refutations[n] for n in self.appeared)

    @property
    def gone_findings(self) -> tuple[Counterexample, ...]:
        """Those of the old version that the new one has not."""
        return tuple(self.old.refutations[n] for n in self.gone)

    @property
    def unchanged_findings(self) -> tuple[Counterexample, ...]:
        """Those that both have, as the new version has them."""
        return tuple(self.new.refutations[n] for n, _ in self.unchanged)
