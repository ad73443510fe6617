"""What the records of each agent must say, by their place: from a program and its kernel's table.

Records of format 2 leave out what the program says already: :mod:`hwkernels.source_recorder.by_position` reads them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hwkernels.records.encodings import HASH_START, hash_step, wait_block
from hwkernels.source_recorder.table import Table
from pipesim.model.groups import BY_ANSWER, TRIES
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.trace.schema import OPTIONAL, EventKind
from pipesim.trace.sites import Record, SiteTable, site_table

_ASKS = (EventKind.WAIT_ENTER, EventKind.TRY)


@dataclass(frozen=True)
class Stream:
    """The records of one agent, in program order, with the sites numbered as in the kernel's table.

    ``optional``: of each, whether a successful try before makes it unnecessary. ``waits``, ``laps``: the sites of a
    wait or a try, and those that end a lap, as WAIT_SITES and LAP_SITES of ``table.cuh``.
    """

    records: tuple[Record, ...]
    optional: tuple[bool, ...]
    waits: frozenset[int]
    laps: frozenset[int]

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[np.int64]]:
        """Site, stage, parity and value of each record."""
        names = ("site", "stage", "parity", "value")
        rows = np.array([[getattr(r, name) for name in names] for r in self.records], dtype=np.int64)
        return dict(zip(names, rows.reshape(-1, len(names)).T, strict=True))

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint32]:
        """(n + 1,): the running hash before the first record and after each."""
        found = [HASH_START]
        for record in self.records:
            asks = record.site in self.waits
            block = wait_block(record.site, record.stage, record.parity) if asks else record.site
            found.append(hash_step(found[-1], block))
        return np.array(found, dtype=np.uint32)

    @cached_property
    def words(self) -> npt.NDArray[np.int64]:
        """What each word of a positional stream is: the clock of this record, or -n - 1: the hash after n records."""
        found: list[int] = []
        for place, record in enumerate(self.records):
            found += [-place - 2, place] if record.site in self.laps else [place]
        return np.array([*found, -len(self.records) - 1], dtype=np.int64)


def wait_sites(table: Table) -> frozenset[int]:
    """The sites of the table that say what is waited for: WAIT_SITES of ``table.cuh``."""
    return frozenset(number for number, site in enumerate(table.sites) if site.kind in _ASKS)


def lap_sites(table: Table) -> frozenset[int]:
    """The site of each role that ends a lap of its loop: LAP_SITES of ``table.cuh``.

    The last in the table, but no COPY, of which an iteration may have several; the first of a role that has no other.
    """
    last: dict[str, int] = {}
    for number, site in enumerate(table.sites):
        if site.kind is not EventKind.COPY or site.role not in last:
            last[site.role] = number
    return frozenset(last.values())


def streams(program: Program, table: Table) -> tuple[tuple[Stream, ...], ...]:
    """By CTA of the program and agent of the table; a launch of more CTAs repeats them.

    The program must have the agents of the table, and no site that the table lacks.
    """
    known = site_table(program, frozenset(site.key for site in table.sites if site.kind in OPTIONAL))
    numbers = {site.key: number for number, site in enumerate(table.sites)}
    renumbered = [numbers[site.key] for site in known.sites]
    found: list[list[Stream]] = [[] for _ in range(program.ctas)]
    for agent, info in enumerate(program.agents):
        found[info.cta].append(_stream(program, known, agent, renumbered, table))
    return tuple(map(tuple, found))


def is_static(program: Program) -> bool:
    """Whether the order of what its agents do depends on no data: none tries, or jumps by an answer."""
    return not any(op[0] in TRIES or op[0] in BY_ANSWER for code in program.code for op in code)


def can_skip_waits_only(program: Program) -> bool:
    """Whether all that the result of a try decides is that a wait is not needed."""
    return not any(op[0] == Op.JUMP_IF for code in program.code for op in code)


def most_words(described: Iterable[Iterable[Stream]]) -> int:
    """The words of the longest positional stream."""
    return max((len(stream.words) for agents in described for stream in agents), default=0)


def _stream(program: Program, known: SiteTable, agent: int, numbers: list[int], table: Table) -> Stream:
    records: list[Record] = []
    optional: list[bool] = []
    for op, of_op in zip(program.code[agent], known.records[agent], strict=True):
        records += [Record(numbers[r.site], r.stage, r.parity, r.value) for r in of_op]
        optional += [op[0] in BY_ANSWER] * len(of_op)
    return Stream(tuple(records), tuple(optional), wait_sites(table), lap_sites(table))
