"""Words of global memory by which CTAs talk: what was done to each in one run, and what is known of them then."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pipesim.model.tables import Tile

#: The setting that is the order in which CTAs execute atomics, each digit a CTA, from 1 on.
TURNS = "turns"
#: The setting with which strong accesses to data that CTAs share have to be ordered as weak ones have.
STRONG_DATA = "strong_data"
#: The setting that is what some waits see of words: of each the number of its agent and 11, and how many writes.
SEES = "sees"
MANY_WARPS = "too many warps execute its atomics"
Passes = Callable[[int], "bool | None"]  #: whether a wait ends with a value of its word, None if that depends on more
Range = tuple[int, int]  #: first byte, the one after the last


class WordAct(Enum):
    """What an event does to its word."""

    WAIT = 0  #: a loop that ends with a value
    READ = 1  #: a load, or an atomic that changes nothing
    STORE = 2
    ADD = 3  #: an atomic that adds a known number
    CHANGE = 4  #: any other atomic

    @property
    def writes(self) -> bool:
        """Whether the word may have another value after it."""
        return self not in (WordAct.WAIT, WordAct.READ)


@dataclass(frozen=True)
class WordEvent:
    """One access to a word. ``before`` and ``after``: its values here.

    ``observed``: the answer of an atomic is used. ``passes``: whether a wait ends with a value, None if that depends on
    more. ``position``: of the instruction in the kernel, or of the operation in a description. ``decided_by``: the
    numbers in the registers of which a wait's end depends besides, None if not all are known. ``version``: how many
    writes made the value, where what its agent does next may depend on it; -1 elsewhere. ``unread``: nothing is made of
    what a load returns.
    """

    number: int
    agent: int
    position: int
    address: int
    act: WordAct
    before: int
    after: int
    written: int  #: order and scope
    observed: bool = False
    passes: Passes | None = None
    decided_by: tuple[int, ...] | None = None
    version: int = -1
    unread: bool = False


@dataclass(frozen=True)
class WordWrite:
    """A write: its first operation in the program and its last, what is added, and the value after it; ``observed``:
    whether its answer is used.
    """

    agent: int
    pc: int
    last: int
    act: WordAct
    added: int
    after: int
    observed: bool = False


@dataclass(frozen=True)
class WordWait:
    """A wait for a word, or a read that waits for nothing: its first operation and its last, the next one without any.

    ``writes``: how many of the writes have made the value; ``position``: of the instruction. ``asks``: its agent may do
    something else after another value, which is another program.
    """

    agent: int
    pc: int
    last: int
    writes: int
    position: int
    passes: Passes | None
    asks: bool = False


class Look(NamedTuple):
    """What a wait or a load of an agent saw, where that may decide more than its end: after how many writes, and which
    ``others`` it may see. ``event``: its number. ``tries``: it is an atomic that changes the word with some values:
    0 where it has done so, else one more. ``word``: the number of its word, ``pc``: of its operation.
    """

    event: int
    agent: int
    version: int
    others: tuple[int, ...]
    tries: bool = False
    word: int = -1
    pc: int = -1


class WeakLoad(NamedTuple):
    """A weak load of a word, by agent and operation, and ``writes`` of others that have to be ordered with it, where no
    access of the program says so.
    """

    agent: int
    pc: int
    writes: tuple[int, ...]


class Swaps(Enum):
    """Who may change places in an order of atomics, so that one order is as good as another."""

    NONE = 0
    CTAS = 1
    WARPS = 2  #: those of a CTA, and whole CTAs: each comes once
    ALL = 3  #: CTAs that each come once


@dataclass
class GlobalWord:
    """A word by which CTAs talk. ``writes``: in the order of the run; ``first``: its value before them.

    ``chained``: the program has them in this order. ``unset``: it may hold anything before the first write. ``weak``:
    what else has to be ordered.
    """

    name: str
    first: int
    size: int
    chained: bool
    writes: list[WordWrite] = field(default_factory=list)
    waits: list[WordWait] = field(default_factory=list)
    unset: bool = False
    weak: list[WeakLoad] = field(default_factory=list)

    @property
    def acts(self) -> list[WordWrite | WordWait]:
        """All that is done to it."""
        return [*self.writes, *self.waits]

    def since(self, writes: int) -> int:
        """Of the first ``writes`` writes the last store, after which only atomics came; 0 without one."""
        return next((k for k in range(writes - 1, -1, -1) if self.writes[k].act is WordAct.STORE), 0)


@dataclass(frozen=True)
class WordsOfRun:
    """The words of one run. ``why_not``: why they are not judged, "" if they are; ``stuck_at``: words for which agents
    wait in the end, for this many writes more (``missing``; 0 where that is not known). ``set_within``: for each of
    these the memory of which the grid has to write something if nothing else than the grid is to end the wait: the word
    where it is read at system scope, by which a host or a peer may set it, else all memory of its pointer.
    ``open_data``: a position at which it is not known what of the data that CTAs share is accessed, -1 if all is
    known; ``strong_data``: whether that is since strong accesses meet there; ``tiles``: names of the data.

    ``sequence``: CTA and word of each write, in order (where several warps of a CTA take turns the number of CTAs and
    the agent's); ``observed``: words with atomics whose answer is used, of which
    the order of the writes is that of the program; ``zeros``: names of words taken to
    be 0 at first; ``loops``: positions of the loops that are waits now; ``off_turn``: the order was not possible;
    ``swaps``: who may change places in that order, if what each ``does`` in its turn is the same in
    all. ``narrow``: why the kernel may do more than orders of all accesses show, each of which it may have,
    as where several CTAs access a word with a scope of one. ``places``: of the words. ``followed``: positions at which
    nothing else is accessed. ``met``: how many words were known. ``looks``: what waits saw, in
    the order of the run.
    """

    words: tuple[GlobalWord, ...] = ()
    why_not: str = ""
    stuck_at: tuple[Range, ...] = ()
    missing: int = 0
    open_data: int = -1
    strong_data: bool = False
    tiles: tuple[Tile, ...] = ()
    sequence: tuple[tuple[int, int], ...] = ()
    observed: frozenset[int] = frozenset()
    zeros: tuple[str, ...] = ()
    loops: tuple[int, ...] = ()
    off_turn: bool = False
    swaps: Swaps = Swaps.NONE
    set_within: tuple[Range, ...] = ()
    narrow: str = ""
    places: tuple[Range, ...] = ()
    followed: frozenset[int] = frozenset()
    met: int = 0
    looks: tuple[Look, ...] = ()
    does: object = None

    @property
    def seen(self) -> tuple[tuple[int, int], ...]:
        """What each agent saw, in its order."""
        return tuple(sorted(((each.agent, each.version) for each in self.looks), key=lambda each: each[0]))

    @property
    def order(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The CTAs that write each word with such atomics, in order."""
        by_word: dict[int, list[int]] = {}
        for cta, word in self.sequence:
            if word in self.observed:
                by_word.setdefault(word, []).append(cta)
        return tuple(sorted((word, tuple(ctas)) for word, ctas in by_word.items()))

    @property
    def stuck(self) -> bool:
        """Whether an agent waits in the end."""
        return bool(self.stuck_at)
