"""What a program says of the kernel that it was read from, what a verdict assumes, and what is not judged."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from enum import Enum
from reprlib import repr as brief
from typing import Any

from pipesim.errors import UsageError
from pipesim.model.dependent_launch import EarlierUse, LaunchAct, LaunchEvent
from pipesim.model.finding import FaultKind


class Assumption(Enum):
    """What a verdict may rest on. The value is its name: ``--strict-NAME``, ``pipesim explain NAME``, and in JSON.

    Those of :data:`RULES` are rules of PTX that the measured hardware does not need: with the switch what breaks them
    is a finding. The others are facts about the launch, about other kernels or about the compiler that a program does
    not show: with the switch a proof that needs one is unknown. Words for each: :mod:`pipesim.findings.assumptions`.
    """

    PROXIES = "proxies"  #: reads complete before the arrive that follows them, without a proxy fence
    INIT = "init"  #: an init is visible to copies and commits of its CTA, without a fence
    TENSOR_MEMORY = "tensor-memory"  #: tensor memory may be read where nothing has been written
    TENSOR_FENCES = "tensor-fences"  #: threads that synchronise order their accesses to tensor memory, without a fence
    LANES = "lanes"  #: lanes of a warp that parted are together again, where PTX does not say so
    COMMITS = "commits"  #: commits of one thread complete in the order in which they were issued
    EXIT = "exit"  #: what is under way when its CTA ends still reads the CTA's memory, and completes
    PATTERN = "pattern"  #: roles keep repeating the pattern seen in the sizes that were checked
    REGISTERS = "registers"  #: the registers of a thread at the launch
    TIME_OUTS = "time-outs"  #: a wait with a time limit does not time out
    LOOPS = "loops"  #: a loop ends on which no synchronisation depends
    GLOBAL_LOOPS = "global-loops"  #: a loop ends that waits for global memory
    GLOBAL_WORDS = "global-words"  #: a word of global memory is read before another warp changes it
    RESIDENCY = "residency"  #: that many CTAs are on the device at the same time
    TRAPS = "traps"  #: a trap is not reached
    POLICIES = "policies"  #: what cluster launch control, a counter or a lock answers
    EQUAL_STORES = "equal-stores"  #: warps or lanes that store to the same bytes store equal values
    EXITED_THREADS = "exited-threads"  #: threads that have ended count at a barrier of all threads
    GENERIC_ADDRESSES = "generic-addresses"  #: of a generic address given to .shared the low 32 bits count
    TENSOR_LANES = "tensor-lanes"  #: of an address of tensor memory in lanes 0 to 31 a warp means its own 32 lanes
    BUFFERS = "buffers"  #: pointers and tensor maps of a launch lead to different memory
    TENSOR_LOADS = "tensor-loads"  #: tcgen05.ld has ended where its registers are read, without tcgen05.wait::ld
    EARLIER_KERNELS = "earlier-kernels"  #: no earlier kernel writes what is loaded before griddepcontrol.wait

    @property
    def switch(self) -> str:
        """``--strict-proxies``."""
        return f"--strict-{self.value}"


Strictness = frozenset[Assumption]  #: the assumptions that may not be made

#: What is a rule of the machine or of the memory model: where it is strict, what breaks it is a finding.
RULES = Strictness(
    {
        Assumption.PROXIES,
        Assumption.INIT,
        Assumption.TENSOR_MEMORY,
        Assumption.TENSOR_FENCES,
        Assumption.LANES,
        Assumption.COMMITS,
        Assumption.EXIT,
    }
)
LENIENT = Strictness()  #: what the commands check for if nothing is asked
#: Of a program by itself, for which no rules were chosen: those that are part of the machine and of the fences.
BY_ITSELF = Strictness({Assumption.INIT, Assumption.TENSOR_MEMORY})
STRICTEST = Strictness(Assumption)


def switches(strict: Strictness) -> tuple[str, ...]:
    """How a command line says it."""
    if strict == STRICTEST:
        return ("--strict",)
    return tuple(each.switch for each in Assumption if each in strict)


def strictness_from(strict: Collection[str] | bool) -> Strictness:  # noqa: FBT001 - a keyword of every caller
    """What ``strict=True`` (all) or ``strict=("proxies", "init")`` of the Python API means; UsageError if unknown."""
    if isinstance(strict, bool):
        return STRICTEST if strict else LENIENT
    known = {each.value: each for each in Assumption}
    named = [strict] if isinstance(strict, str) else list(strict)
    if unknown := [str(name) for name in named if name not in known]:
        raise UsageError(
            f"strict: no assumption is called {', '.join(map(repr, unknown))}",
            correction=f"use True for all, or some of: {', '.join(known)}",
        )
    return Strictness(known[name] for name in named)


@dataclass(frozen=True)
class Assumed:
    """One place where something is assumed: which assumption, what in words, and the source lines that it is about."""

    kind: Assumption
    what: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forbidden:
    """One place at which a kernel does what PTX forbids, whatever the schedule: a finding of this kind.

    ``place`` is ``kernel.cu:12 (kernel.ptx:345)`` or ``kernel.ptx:345``, of an ``instruction`` that this agent executes
    (-1: whichever does); ``what`` is wrong, and what corrects it. ``unless``: the name of the assumption with which it
    is not a finding, "" if there is none.
    """

    kind: FaultKind
    place: str
    instruction: str
    what: str
    correction: str = ""
    agent: int = -1
    unless: str = ""

    @property
    def line(self) -> str:
        """The author's line, as operations of the program have it."""
        return self.place.partition(" (")[0]


#: The kinds that it can be, by name.
_FORBIDDEN = (
    FaultKind.TENSOR_ALLOCATION,
    FaultKind.READ_BEFORE_WAIT,
    FaultKind.ILLEGAL_OPERAND,
    FaultKind.WGMMA_FENCE,
    FaultKind.TENSOR_MAP_FENCE,
    FaultKind.GLOBAL_RACE,
)
FORBIDDEN = {each.name: each for each in _FORBIDDEN}


class NotJudgedKind(Enum):
    """What no verdict is about. The value is what a report calls several of it, :attr:`one` what it calls one."""

    DESCRIPTION = "what the description leaves out, such as global memory"  #: of a protocol that was described by hand
    UNDECLARED = "what the description leaves out, such as global memory that it does not declare"  #: of one with some
    GLOBAL_STORES = "stores to global memory"
    GLOBAL_LOADS = "loads of global memory"
    GLOBAL_ATOMICS = "atomics on global memory"
    TENSOR_MAPS = "instructions that change tensor maps, or order what changes them"
    DEPENDENT_LAUNCH = "instructions of programmatic dependent launch"
    WORDS = "whether CTAs hang that wait for each other by words of global memory, and what these order"
    WORD_ORDERS = "other orders of atomics whose answers decide what CTAs do"
    SHARED_DATA = "data that CTAs share, where it is not known what they access"
    OTHER_SIZES = "global memory at other values than those of the launch file"
    LEFT_OUT = "accesses and instructions that were left out"
    INFERRED_BYTES = "byte counts inferred"
    LANES_MEET = "exchanges between lanes (such as shfl.sync) of which data decides which lanes take part"
    DATA_LAPS = "places in loops where data decides, beyond the eighth answer"
    NEVER_WRAPPED = "barriers that complete too few phases to use a stage again"

    @property
    def one(self) -> str:
        """``store to global memory``."""
        return _ONE_NOT_JUDGED.get(self, self.value)


#: What a kernel does to global memory, where it is not judged.
_ACCESSES = (NotJudgedKind.GLOBAL_STORES, NotJudgedKind.GLOBAL_LOADS, NotJudgedKind.GLOBAL_ATOMICS)
ON_GLOBAL = (*_ACCESSES, NotJudgedKind.TENSOR_MAPS)

_ONE_NOT_JUDGED = {
    NotJudgedKind.GLOBAL_STORES: "store to global memory",
    NotJudgedKind.GLOBAL_LOADS: "load of global memory",
    NotJudgedKind.GLOBAL_ATOMICS: "atomic on global memory",
    NotJudgedKind.TENSOR_MAPS: "instruction that changes tensor maps, or orders what changes them",
    NotJudgedKind.DEPENDENT_LAUNCH: "instruction of programmatic dependent launch",
    NotJudgedKind.WORD_ORDERS: "other order of atomics whose answers decide what CTAs do",
    NotJudgedKind.LEFT_OUT: "access or instruction that was left out",
    NotJudgedKind.INFERRED_BYTES: "byte count inferred",
    NotJudgedKind.LANES_MEET: "exchange between lanes (such as shfl.sync) of which data decides which lanes take part",
    NotJudgedKind.DATA_LAPS: "place in a loop where data decides, beyond the eighth answer",
    NotJudgedKind.NEVER_WRAPPED: "barrier that completes too few phases to use a stage again",
}


@dataclass(frozen=True)
class NotJudged:
    """How many of a kind, and the names of those that have one; ``count`` 0 where there is nothing to count."""

    kind: NotJudgedKind
    count: int = 0
    names: tuple[str, ...] = ()


def never_wrapped(found: Sequence[tuple[str, int]], barriers: Collection[tuple[str, int]]) -> NotJudged:
    """Barriers that were used once, by group and stage: ``full[0]``, or ``done`` if it is the only one of its group.

    ``barriers``: of all CTAs, as ``found``: those that represent the same of several CTAs are named once.
    """
    stages = Counter(group for group, _ in set(barriers))
    names = dict.fromkeys(group if stages[group] == 1 else f"{group}[{stage}]" for group, stage in sorted(found))
    return NotJudged(NotJudgedKind.NEVER_WRAPPED, len(found), tuple(names))


@dataclass(frozen=True)
class Coverage:
    """Sentences, each with its place, in the words of reports.

    ``stopped``: agents that were not followed to their end, so that nothing is proved; what a schedule of what was
    read shows is refuted. ``blocked``: agents that waited when no agent could continue: the same. ``left_out``:
    accesses and instructions that the program does not have; no verdict is about them. ``unread``: those of them that
    may touch shared memory which others use, so that nothing can be proved. ``perhaps``: accesses that may not happen;
    a fault is not certain that needs one by a word of the launch, or two. ``inferred``: sizes that were worked out.
    ``unsized``: tensor maps without a box by which there are copies, so that nothing is proved; last what gives them.
    ``assumed``: what the verdict rests on beyond the program. ``undefined``: what PTX leaves undefined, such as
    registers that are read before what writes them is complete, so that nothing can be proved. ``partial``: places,
    each with a warp, where only some of its lanes execute what PTX has all execute, which is a finding. ``forbidden``:
    others in the code. ``weakened``: an order that the kernel has and the program has not, so that what is refuted of
    it may be right in the kernel. ``fences``: those that may run and are left out: its schedules are the kernel's, and
    only what a fence prevents is not certain. ``reductions``: the same where what bytes hold in the end is not known.
    ``ahead``: where lanes signal that others of their warp, which wait before that in the program, do not hold up: no
    deadlock of the warp is certain.
    ``extracted``: what was read, in numbers. ``on_global``: what is said of global memory. ``not_judged``: what the
    verdict is not about, counted. ``ctas``: the CTAs of the grid that were followed, () where all are the same.
    ``dependent``: accesses to global memory, and their order with ``griddepcontrol``, of a kernel that waits for
    earlier ones or of which the launch says their use.
    """

    stopped: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()
    unsized: tuple[str, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    undefined: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    forbidden: tuple[Forbidden, ...] = ()
    weakened: tuple[str, ...] = ()
    fences: tuple[str, ...] = ()
    reductions: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()
    on_global: tuple[str, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    ctas: tuple[int, ...] = ()
    dependent: tuple[LaunchEvent, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every agent was followed to its end."""
        return not self.stopped and not self.blocked

    @property
    def unordered(self) -> tuple[str, ...]:
        """What makes some order of the kernel unknown."""
        return (*self.weakened, *self.fences, *self.reductions)

    def names_of(self, kind: NotJudgedKind) -> tuple[str, ...]:
        """The names of all of a kind that are not judged."""
        return tuple(name for each in self.not_judged if each.kind is kind for name in each.names)

    def judging(self, kind: NotJudgedKind) -> "Coverage":
        """The same without what is not judged of a kind."""
        return replace(self, not_judged=tuple(each for each in self.not_judged if each.kind is not kind))

    @property
    def rejoined(self) -> tuple[str, ...]:
        """The places where lanes of a warp that parted are taken to meet again, which PTX does not promise."""
        made = (each for each in self.assumed if each.kind is Assumption.LANES)
        return tuple(each.lines[0] if each.lines else each.what.partition(" ")[0] for each in made)

    def document(self) -> dict[str, object]:
        """Its JSON form: members that are not empty."""
        plain: dict[str, object] = {each.name: list(getattr(self, each.name)) for each in fields(self)}
        plain["assumed"] = [[each.kind.value, each.what, list(each.lines)] for each in self.assumed]
        plain["forbidden"] = [[each.kind.name, *astuple(each)[1:]] for each in self.forbidden]
        plain["not_judged"] = [[each.kind.name, each.count, list(each.names)] for each in self.not_judged]
        plain["dependent"] = [each.row() for each in self.dependent]
        return {name: value for name, value in plain.items() if value}


WHOLE = Coverage()  #: of a program that describes all there is


def coverage_from(data: object) -> Coverage:
    """What :meth:`Coverage.document` made; ValueError says what is wrong with anything else."""
    names = {each.name for each in fields(Coverage)}
    if not isinstance(data, dict) or not data.keys() <= names:
        raise ValueError(f"'coverage' is an object with some of {', '.join(sorted(names))}, not {brief(data)}")
    return Coverage(**{name: tuple(_member(name, value)) for name, value in data.items()})


def _member(name: str, value: object) -> Iterable[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name!r} of 'coverage' is a list, not {brief(value)}")
    for each in value:
        match name, each:
            case "assumed", [str(kind), str(what), [*some]] if kind in _ASSUMPTIONS:
                yield Assumed(_ASSUMPTIONS[kind], what, tuple(map(str, some)))
            case "forbidden", [str(kind), str(), str(), str(), str(), int(), str()] if kind in FORBIDDEN:
                yield Forbidden(FORBIDDEN[kind], *each[1:])
            case "not_judged", [str(kind), int(count), [*some]] if kind in NotJudgedKind.__members__:
                yield NotJudged(NotJudgedKind[kind], count, tuple(map(str, some)))
            case "ctas", int():
                yield each
            case "dependent", [str(act), int(), int(), str(), str(), str(), str(use), bool(), bool(), int(), int()]:
                yield LaunchEvent._make((LaunchAct(act), *each[1:6], EarlierUse(use), *each[7:]))
            case (("assumed" | "forbidden" | "not_judged" | "ctas" | "dependent"), _):
                raise ValueError(f"an entry of {name!r} of 'coverage' cannot be {brief(each)}")
            case _, str():
                yield each
            case _:
                raise ValueError(f"an entry of {name!r} of 'coverage' is a text, not {brief(each)}")


_ASSUMPTIONS = {each.value: each for each in Assumption}
