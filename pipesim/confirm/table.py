"""A kernel's PTX with delays that a table in global memory gives: one kernel for thousands of launches.

Each warp has a row: its delays in the order of its path. A register has the number of the statement at which it is late
next, another how often it executes that before, a third for how long it sleeps; then come the next ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from pipesim.confirm.delays import LONGEST_NS, MOST_OF_A_WARP, DelayPlace
from pipesim.confirm.rewrite import DelayedPtx, P, Rewriting, only_with, sleeping_together
from pipesim.errors import PtxError
from pipesim.ptx.prepare import Kernel
from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.text.locations import SourceText
from pipesim.trace.arrays import np, npt

TABLE = "pipesim_delays"  #: the variable
_WORDS = 4  #: of a delay: statement, executions before, ns, unused
_BEGIN = 1  #: the number of the kernel's beginning


@dataclass(frozen=True)
class TablePtx:
    """``rows``: by CTA and warp, of launches whose table is ``nbytes`` long; ``kernel``: with a table of no delays."""

    kernel: DelayedPtx
    warps: int
    ctas: int
    numbers: Mapping[int, int]  #: where statements begin in the text, and the number before them; after: one more

    @property
    def rows(self) -> int:
        """One more than warps: of CTAs that have none."""
        return self.warps * self.ctas + 1

    @property
    def nbytes(self) -> int:
        """Of a table."""
        return self.rows * (MOST_OF_A_WARP + 1) * _WORDS * 4

    def table(self, path: Mapping[tuple[int, int], Sequence[tuple[DelayPlace, int]]]) -> npt.NDArray[np.uint32]:
        """The table of the delays of each warp in the order of its path: places with ``nth`` since the one before."""
        made = np.zeros((self.rows, MOST_OF_A_WARP + 1, _WORDS), dtype=np.uint32)
        for (cta, warp), delays in path.items():
            for n, (place, ns) in enumerate(delays[:MOST_OF_A_WARP]):
                number = self.numbers[place.begin] + place.after if place.position >= 0 else _BEGIN
                made[cta * self.warps + warp, n, :3] = number, place.nth, min(ns, LONGEST_NS)
        return made.reshape(-1)

    def with_table(self, table: npt.NDArray[np.uint32]) -> DelayedPtx:
        """The kernel to be launched with this table."""
        return replace(self.kernel, table=table.tobytes())

    def text_with(self, table: npt.NDArray[np.uint32]) -> str:
        """The text of the kernel in which the variable begins with this table."""
        declared = _declared(self.nbytes // 4)
        return self.kernel.text.replace(declared, f"{declared} = {{{', '.join(map(str, table))}}}", 1)


def table_ptx(ptx: str, kernel: Kernel, begins: Sequence[int], limit_ns: int) -> TablePtx:
    """The text with a table for statements that begin at these positions of it."""
    launch = kernel.launch
    own = [each for each in kernel.entry.body if each.begin in set(begins)]
    numbers = {each.begin: 2 * n for n, each in enumerate(own, 1)}
    ctas = launch.together or prod(launch.cluster)
    warps = -(-prod(launch.block) // 32)
    none = TablePtx(DelayedPtx("", "", (), 0, 0), warps, ctas, numbers)
    made = _Table(SourceText(ptx, kernel.module.name).text, kernel, none, limit_ns)
    return replace(none, kernel=made.applied(ptx))


def _declared(words: int) -> str:
    return f".visible .global .align 16 .b32 {TABLE}[{words}]"


class _Table(Rewriting):
    """The edits."""

    def __init__(self, plain: str, kernel: Kernel, table: TablePtx, limit_ns: int) -> None:
        super().__init__(plain, kernel, (), limit_ns)
        if not limit_ns:
            raise PtxError("waits need a limit", correction="give one")
        self._table = table

    def _is_late_at(self, each: Instruction) -> bool:
        return each.begin in self._table.numbers

    def _late_variables(self) -> str:
        return f"{_declared(self._table.nbytes // 4)};\n"

    def _late_registers(self) -> list[str]:
        return [f".reg .b32 {P}next, {P}left, {P}ns;", f".reg .b64 {P}row;"]

    def _late_opening(self) -> list[str]:
        number_cta, rows = bool(self._number_cta()), self._table.rows
        lines = [f"mad.lo.u32 {P}a, {P}b, {self._table.warps}, {P}a;"] if number_cta else []
        return [
            *lines,
            f"min.u32 {P}a, {P}a, {rows - 1};",
            f"mov.u64 {P}row, {TABLE};",
            f"mul.wide.u32 {P}word, {P}a, {self._table.nbytes // rows};",
            f"add.u64 {P}row, {P}row, {P}word;",
            *self._read_next(""),
            *self._is_next(_BEGIN, ""),
            *self._sleep_now(""),
        ]

    def _read_next(self, guard: str) -> list[str]:
        return [
            f"{guard}ld.global.v4.u32 {{{P}next, {P}left, {P}ns, {P}c}}, [{P}row];",
            f"{guard}add.u64 {P}row, {P}row, {_WORDS * 4};",
        ]

    def _is_next(self, number: int, guard: str) -> list[str]:
        return [f"setp.eq.u32 {P}p, {P}next, {number};", *only_with(guard, "p")]

    def _sleep_now(self, guard: str, *otherwise: str) -> list[str]:
        """If p holds and no execution is left."""
        lines = [f"setp.eq.and.u32 {P}q, {P}left, 0, {P}p;", *otherwise, f"selp.b32 {P}site, {P}ns, 0, {P}q;"]
        return [*lines, *sleeping_together(guard), f"@{P}p2 nanosleep.u32 {P}site;", *self._read_next(f"@{P}q ")]

    def _late_before(self, each: Instruction, guard: str) -> list[str]:
        number = self._table.numbers.get(each.begin)
        return [*self._is_next(number, guard), *self._sleep_now(guard)] if number else []

    def _late_after(self, each: Instruction, counted: str) -> list[str]:
        number = self._table.numbers.get(each.begin)
        if not number:
            return []
        count = f"@{P}p add.u32 {P}left, {P}left, -1;"
        late = self._sleep_now(counted, count)
        return [*self._is_next(number, counted), count, *self._is_next(number + 1, counted), *late]
