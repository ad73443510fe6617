"""What is known about one kind of finding or warning: its file has all of it (docs/adding-a-finding.md)."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from enum import Enum

from pipesim.model.finding import Advisory, Fault, FaultKind
from pipesim.model.ops import Op
from pipesim.model.program import Program

_NAMES = ("Engine", "Fence", "Protocol", "Scope", "Space", "Warp")  #: what examples import


class Certainty(Enum):
    """How sure it is that something is wrong. The value is what ``pipesim explain`` says."""

    SCHEDULE = "a schedule that PTX permits shows it"
    MEMORY_MODEL = "the memory model of PTX permits it; a schedule alone does not show it"
    LETTER = "PTX does not promise what is meant; the measured hardware does it"
    WARNING = "no rule of PTX is broken"


class Owner(Enum):
    """Whose the line of a finding is. The value is what reports say."""

    USER = "user"
    LIBRARY = "library"  #: the headers of the compiler and of a library, or an installed package
    COMPILER = "compiler"  #: no line of the source: an instruction that the compiler added


class Evidence(Enum):
    """Where a finding of a kind is seen."""

    SCHEDULE = "in the last move of one schedule"
    RUN = "in what a whole run leaves, unread or under way: no single move shows it"
    ALL_SCHEDULES = "where several schedules are compared with each other: each of them is right by itself"
    LANES = "in what a program that was read from PTX assumes: no move shows it"
    CODE = "in the code of the warps, whatever the schedule: no move shows it"
    MEMORY_MODEL = "in the order of accesses: each sees what it should, and only the memory model says it need not"


@dataclass(frozen=True)
class ExampleEdit:
    """An edit of a right text that injects a fault, with its name."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class ProtocolExample:
    """A protocol named after the kind, wrong as it is and right with ``right=1``: a line that says what happens, an
    empty line, and the body of its function, without its first and last statement.
    """

    written: str
    cluster: int = 1

    def text(self, name: str) -> str:
        """The protocol's file."""
        happens, body = self.written.split("\n\n", 1)
        names = [each for each in _NAMES if f"{each}." in body or each in ("Protocol", "Warp")]
        given = f'"{name}"' if self.cluster == 1 else f'"{name}", cluster={self.cluster}'
        head = f'def {name}(right: int = 0) -> Protocol:\n    """{happens}"""\n    p = Protocol({given})\n'
        gap = "\n" * body.startswith("    @")
        return f"from pipesim import {', '.join(names)}\n\n\n{head}{gap}{body}\n    return p\n"


@dataclass(frozen=True)
class EditedText:
    """A right text and the edit that injects the fault."""

    right: str
    edit: ExampleEdit

    @property
    def wrong(self) -> str:
        """The text with the edit, wherever it applies."""
        return self.right.replace(self.edit.old, self.edit.new)


@dataclass(frozen=True)
class FlatExample(EditedText):
    """Operations, an agent a line: for what no description of whole warps has."""


@dataclass(frozen=True)
class PtxExample(EditedText):
    """Instructions of a kernel of this number of warps; with several CTAs its parameter ``out`` is a pointer, or they
    are a ``cluster``.
    """

    warps: int = 2
    ctas: int = 1
    cluster: int = 1


#: Of a fault: a text with numbers of it as ``{fault.found:,}`` and the other agent as ``{other}``, or what makes one.
Words = str | Callable[[Program, Fault], str]


def said(words: Words, program: Program, fault: Fault) -> str:
    """The words of this fault."""
    if callable(words):
        return words(program, fault)
    return words.format(fault=fault, other=program.agent_name(fault.other_agent))


@dataclass(frozen=True)
class FindingKind:
    """One kind.

    ``kind`` is what the engines report, or the name of what they do not; ``headline`` is the title of the latter.
    ``what`` it is, the section of ``ptx`` that says so ("" if none does), how it ``shows`` on hardware, how it is
    ``corrected``, and the smallest ``example``. ``switches``: the options of ``check`` without which it is not one.
    ``causes_itself``: it does not need another fault to occur, so that it is first where several are found.
    ``concerns_init``: an init may be its cause.

    ``detail`` is what a report adds to the title of a fault, ``correction`` what corrects it where the program leaves
    no doubt. ``note`` says what is assumed without the switch, with ``{role}`` and ``{place}``. ``look`` finds
    warnings that the operations of a program show by themselves: of one that has the
    operation ``of``, and several CTAs for one ``across_ctas``.
    """

    kind: FaultKind | str
    headline: str = ""
    _: KW_ONLY
    what: str
    ptx: str = ""
    shows: str
    corrected: str
    certainty: Certainty
    example: ProtocolExample | FlatExample | PtxExample
    evidence: Evidence = Evidence.SCHEDULE
    switches: tuple[str, ...] = ()
    causes_itself: bool = False
    concerns_init: bool = False
    detail: Words = ""
    correction: Words = ""
    note: str = ""
    look: Callable[[Program], Iterable[Advisory]] | None = None
    of: Op | None = None
    across_ctas: bool = False

    @property
    def name(self) -> str:
        """As JSON and the command line name it: ``over_arrival``."""
        return self.kind.name.lower() if isinstance(self.kind, FaultKind) else self.kind

    @property
    def title(self) -> str:
        """What reports call it."""
        return self.kind.value if isinstance(self.kind, FaultKind) else self.headline

    @property
    def traps(self) -> bool:
        """True if the hardware ends the launch at it."""
        return isinstance(self.kind, FaultKind) and self.kind.traps

    @property
    def warns(self) -> bool:
        """True for a warning, which a proved protocol can have."""
        return self.certainty is Certainty.WARNING
