"""A kernel's PTX with delays, and with waits that give up: what is launched, by others without pipesim.

A delay is a few ``nanosleep`` under a predicate, of all lanes that are there: no branch and no label, so that the
kernel reads as the same program.
Which execution of a statement it is, a register counts, which is never 0 in threads of other warps. A turn is a loop
that ends when another warp has set a word of ``pipesim_turns``. A thread that has waited
for the limit branches to the kernel's end, notes its wait in ``pipesim_waits`` and exits, and so does one that passes
a barrier of its CTA after that: threads that have exited do not hold it shut. They do hold one shut that counts
threads: where there is one, a thread notes before each barrier that it waits, and after it that it has passed.
The time that a thread has waited is added up from one failed try to the next, each of which counts little: where
processes share the GPU, the clock also advances while a kernel does not run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hwkernels.rewriter.instrument import body_begin, guard_of, header_begin, statement_of
from hwkernels.rewriter.sites import blocks
from pipesim.confirm.delays import LONGEST_NS, Delay, DelayPlace
from pipesim.errors import PtxError
from pipesim.ptx.flow.opcodes import is_try
from pipesim.ptx.prepare import Kernel
from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.text.locations import SourceText

WAITS, STOP, TURNS = "pipesim_waits", "pipesim_stop", "pipesim_turns"  #: variables of the module
MOST_CTAS = 1024  #: of which the first note where they wait
P = "%pipesim_"
_AFTER_TURN_NS = 20_000  #: that a warp sleeps once its turn has come, so that what the other has issued lands
_MOST_SLEEPS = 2_000  #: of all delays of a kernel
_LEAST_TRIES = 16  #: that fail before a thread gives up, however long each took


@dataclass(frozen=True)
class DelayedPtx:
    """``sites``: the positions of the statements that ``pipesim_waits`` names by their numbers, from 1 on.

    ``threads``: of a CTA; the word of a thread is at its CTA's number times that, plus its own number. ``table``: what
    the table of delays holds, of a text that has one. ``busy``: large copies are made while it runs.
    """

    text: str
    entry: str
    sites: tuple[int, ...]
    threads: int
    words: int
    table: bytes = b""
    busy: bool = False


def delayed_ptx(ptx: str, kernel: Kernel, delays: Sequence[Delay], limit_ns: int) -> DelayedPtx:
    """The text with these delays, and threads that give up once they have waited ``limit_ns`` (0: waits as they are).

    Raises PtxError for a delay in a function that is called, which does not see the registers of the kernel.
    """
    return Rewriting(SourceText(ptx, kernel.module.name).text, kernel, delays, limit_ns).applied(ptx)


class Rewriting:
    """The edits of one text. What makes warps late is in the methods that begin with ``_late``."""

    def __init__(self, plain: str, kernel: Kernel, delays: Sequence[Delay], limit_ns: int) -> None:
        self._plain, self._kernel, self._limit_ns = plain, kernel, limit_ns
        body = {each.begin: each for each in kernel.entry.body}
        self._at: dict[int, list[tuple[int, Delay]]] = {}
        self._ends: dict[int, list[tuple[int, DelayPlace]]] = {}
        for n, delay in enumerate(delays):
            for place in (delay.place, delay.until):
                if place is not None and place.position >= 0 and place.begin not in body:
                    raise PtxError(
                        f"{place.agent} would have to be late in a function that the kernel calls",
                        place=f"{kernel.module.name}, line {place.line}",
                        correction="have the compiler inline it: __forceinline__ in CUDA C++, noinline=False in Triton",
                    )
            self._at.setdefault(delay.place.begin, []).append((n, delay))
            if delay.until is not None:
                self._ends.setdefault(delay.until.begin, []).append((n, delay.until))
        if sum(len(_sleeps(each.ns)) for each in delays if each.until is None) > _MOST_SLEEPS:
            raise PtxError("the delays are too long to be written", correction="give a smaller --delay-us")
        self._delays = delays
        positions = {each.begin: each.position for each in reversed(kernel.function.body)}
        spins = {kernel.function.body[p].begin for p in kernel.code.regions.loops.waits}
        self._spins = spins & body.keys()
        shut = {each.begin for each in kernel.entry.body if blocks(each) and each.opcode in ("bar", "barrier")}
        bounded = [each for each in kernel.entry.body if limit_ns and each.begin in spins | shut]
        self._number = {each.begin: n for n, each in enumerate(bounded, 1)}
        shut = {each.begin for each in bounded if each.begin in shut}
        self._noted = shut if any(_is_of_some(each) for each in bounded if each.begin in shut) else set()
        self.sites = tuple(positions[each.begin] for each in bounded)
        self.words = min(MOST_CTAS, prod(kernel.launch.grid)) * prod(kernel.launch.block)

    def applied(self, ptx: str) -> DelayedPtx:
        """The text with the edits."""
        parts, at = [], 0
        for begin, end, text in sorted(self._edits(), key=lambda edit: edit[:2]):
            parts += [ptx[at:begin], text]
            at = end
        text, launch = "".join([*parts, ptx[at:]]), self._kernel.launch
        return DelayedPtx(text, self._kernel.entry.name, self.sites, prod(launch.block), self.words)

    def _edits(self) -> list[tuple[int, int, str]]:
        """What replaces the text from one position to another."""
        plain, entry = self._plain, self._kernel.entry
        found = []
        for each in (each for each in entry.body if each.begin in self._number or self._is_late_at(each)):
            end = plain.index(";", each.begin) + 1
            found.append((each.begin, end, self._around(each, plain[each.begin : end])))
        opening = body_begin(plain, entry)
        found.append((opening, opening, f"\n{self._prologue()}\n"))
        if self._limit_ns:
            ending = _body_end(plain, opening)
            found.append((ending, ending, f"{self._give_up()}\n"))
            head = plain.rindex("\n", 0, header_begin(plain, entry)) + 1
            declared = ".visible .global .align 4 .b32 "
            found.append((head, head, f"{declared}{STOP};\n{declared}{WAITS}[{self.words}];\n{self._late_variables()}"))
        return found

    def _is_late_at(self, each: Instruction) -> bool:
        return each.begin in self._at or each.begin in self._ends

    def _late_variables(self) -> str:
        return f".visible .global .align 4 .b32 {TURNS}[{len(self._delays)}];\n" if self._ends else ""

    def _late_registers(self) -> list[str]:
        names = [f"{P}n{n}, {P}u{n}" for n in range(len(self._delays))]
        return [f".reg .b32 {', '.join(names)};"] if names else []

    def _late_opening(self) -> list[str]:
        """Where the kernel begins; register a has the number of the warp, b that of its CTA (:meth:`_number_cta`)."""
        return [line for n, delay in enumerate(self._delays) for line in self._counter(n, delay)]

    def _late_before(self, each: Instruction, guard: str) -> list[str]:
        mine = self._at.get(each.begin, ())
        return [line for n, delay in mine if not delay.place.after for line in self._sleep(n, delay, guard)]

    def _late_after(self, each: Instruction, counted: str) -> list[str]:
        """``counted``: the predicate with which an execution counts."""
        lines = []
        for n, delay in self._at.get(each.begin, ()):
            if delay.place.after:
                lines += self._sleep(n, delay, counted)
            lines.append(f"{f'@{counted} ' if counted else ''}add.u32 {P}n{n}, {P}n{n}, 1;")
        for n, _ in self._ends.get(each.begin, ()):
            lines += [f"setp.eq.s32 {P}q, {P}u{n}, 0;", *only_with(counted, "q")]
            lines += [f"@{P}q st.relaxed.gpu.global.u32 [{TURNS}+{4 * n}], 1;"]
            lines.append(f"{f'@{counted} ' if counted else ''}add.u32 {P}u{n}, {P}u{n}, 1;")
        return lines

    def _prologue(self) -> str:
        registers = ", ".join(P + each for each in ("a", "b", "c", "begin", "last", "waited", "now", "site"))
        lines = [f".reg .pred {P}p, {P}p2, {P}q;", f".reg .b64 {P}at, {P}word;", f".reg .b32 {registers};"]
        lines += self._late_registers()
        if self._limit_ns:  # a CTA that begins after a hang ends
            lines += [
                f"mov.u32 {P}begin, %globaltimer_lo;",
                f"mov.u32 {P}last, {P}begin;",
                f"mov.u32 {P}waited, 0;",
                f"ld.relaxed.gpu.global.u32 {P}a, [{STOP}];",
                f"setp.ne.u32 {P}p, {P}a, 0;",
                f"@{P}p exit;",
            ]
        if self._noted:
            lines += [f".reg .b64 {P}mine;", f".reg .b32 {P}noted;", *self._own_word("mine")]
            lines.append(f"selp.b32 {P}noted, 1, 0, {P}p;")
        if late := self._late_opening():
            lines += [*_number_of("tid", "ntid", "a"), f"shr.u32 {P}a, {P}a, 5;", *self._number_cta(), *late]
        return "\n".join(f"\t{line}" for line in lines)

    def _number_cta(self) -> list[str]:
        """The number of the CTA in its cluster, or in the grid where CTAs are followed together; else [] for all."""
        launch = self._kernel.launch
        if launch.together:
            return _number_of("ctaid", "nctaid", "b")
        return [f"mov.u32 {P}b, %cluster_ctarank;"] if prod(launch.cluster) > 1 else []

    def _counter(self, n: int, delay: Delay) -> list[str]:
        """The register of a delay: in its warp minus the executions before it, in all others 1; the same of its end."""
        lines = self._only_in(delay.place, f"{P}n{n}", turn=delay.until is not None)
        lines += self._only_in(delay.until, f"{P}u{n}", turn=True) if delay.until is not None else []
        return lines + (self._sleep(n, delay, "") if delay.place.position < 0 else [])

    def _only_in(self, place: DelayPlace, register: str, *, turn: bool) -> list[str]:
        lines = [f"setp.eq.u32 {P}p, {P}a, {place.warp};"]
        if self._number_cta():
            lines.append(f"setp.eq.and.u32 {P}p, {P}b, {place.cta}, {P}p;")
        if turn and not self._kernel.launch.together:  # in the cluster that is first
            for axis, size in zip("xyz", self._kernel.launch.cluster, strict=True):
                lines += [f"mov.u32 {P}c, %ctaid.{axis};", f"setp.lt.and.u32 {P}p, {P}c, {size}, {P}p;"]
        return [*lines, f"selp.b32 {register}, {-place.nth}, 1, {P}p;"]

    def _sleep(self, n: int, delay: Delay, guard: str) -> list[str]:
        lines = [f"setp.eq.s32 {P}q, {P}n{n}, 0;", *only_with(guard, "q"), f"selp.b32 {P}site, 1, 0, {P}q;"]
        lines += sleeping_together(guard)
        lines += self._turn(n, delay) if delay.until else [f"@{P}p2 nanosleep.u32 {ns};" for ns in _sleeps(delay.ns)]
        return [*lines, f"@{P}q mov.u32 {P}n{n}, 1;"]

    def _turn(self, n: int, delay: Delay) -> list[str]:
        """Under p2: a loop until the turn has come, or the time is over."""
        loop, done = f"pipesim_turn_{n}", f"pipesim_turned_{n}"
        return [
            f"mov.u32 {P}c, %globaltimer_lo;",
            f"@!{P}p2 bra {done};",
            f"{loop}:",
            f"ld.relaxed.gpu.global.u32 {P}site, [{TURNS}+{4 * n}];",
            f"setp.ne.u32 {P}p, {P}site, 0;",
            f"@{P}p bra {done};",
            f"mov.u32 {P}now, %globaltimer_lo;",
            f"sub.u32 {P}now, {P}now, {P}c;",
            f"setp.lt.u32 {P}p, {P}now, {delay.ns};",
            f"@{P}p bra {loop};",
            f"{done}:",
            f"@{P}p2 nanosleep.u32 {_AFTER_TURN_NS};",
        ]

    def _around(self, each: Instruction, text: str) -> str:
        """A statement with its delays, and what ends a wait."""
        guard = guard_of(text)
        answer = statement_of(text, each).answer if is_try(each) and each.begin in self._spins else ""
        lines = [*self._late_before(each, guard), text, *self._late_after(each, answer or guard)]
        if each.begin in self._noted:
            at = lines.index(text)
            lines[at : at + 1] = [*self._note(self._number[each.begin], guard), text, *self._note(0, guard)]
        if each.begin in self._number and (answer or not is_try(each)):
            lines += self._bound(self._number[each.begin], answer, guard)
        return "\n\t".join(lines)

    def _note(self, number: int, guard: str) -> list[str]:
        """Where the thread is about to wait, for the host, 0: nowhere. It may never return."""
        word = f"@{P}p st.relaxed.gpu.global.u32 [{P}mine], {number};"
        return [f"setp.ne.u32 {P}p, {P}noted, 0;", *only_with(guard, "p"), word]

    def _bound(self, number: int, answer: str, guard: str) -> list[str]:
        """From a try that fails after the limit; from a barrier that another's end may have opened.

        A barrier of the CTA blocks a few instructions late (BAR.SYNC.DEFER_BLOCKING in SASS), so that the word would be
        read before it opens; lanes that meet again first have passed it. The word is read where some thread may have
        given up, since a read takes time.
        """
        lines = [f"mov.u32 {P}now, %globaltimer_lo;"]
        if answer:
            lines += [
                f"sub.u32 {P}c, {P}now, {P}last;",
                f"mov.u32 {P}last, {P}now;",
                f"min.u32 {P}c, {P}c, {self._limit_ns // _LEAST_TRIES};",
                f"@!{answer} add.u32 {P}waited, {P}waited, {P}c;",
                f"setp.gt.u32 {P}p, {P}waited, {self._limit_ns};",
                *only_with(f"!{answer}", "p"),
            ]
        else:
            lines = [f"activemask.b32 {P}c;", f"bar.warp.sync {P}c;", *lines]
            lines += [
                f"sub.u32 {P}now, {P}now, {P}begin;",
                f"setp.gt.u32 {P}p, {P}now, {self._limit_ns - self._limit_ns // 8};",
                f"mov.u32 {P}c, 0;",
                f"@{P}p ld.relaxed.gpu.global.u32 {P}c, [{STOP}];",
                f"setp.ne.u32 {P}p, {P}c, 0;",
            ]
        lines += [*only_with(guard, "p"), f"@{P}p mov.u32 {P}site, {number};"]
        return [*lines, f"@{P}p bra {_LABEL};"]

    def _own_word(self, to: str) -> list[str]:
        """The address of the thread's word of ``pipesim_waits``, and p: whether it has one."""
        return [
            *_number_of("tid", "ntid", "a"),
            *_number_of("ctaid", "nctaid", "b"),
            f"mad.lo.u32 {P}a, {P}b, {prod(self._kernel.launch.block)}, {P}a;",
            f"setp.lt.u32 {P}p, {P}a, {self.words};",
            f"mov.u64 {P}{to}, {WAITS};",
            f"mad.wide.u32 {P}{to}, {P}a, 4, {P}{to};",
        ]

    def _give_up(self) -> str:
        lines = [*self._own_word("at"), f"@{P}p st.global.u32 [{P}at], {P}site;"]
        lines += [f"st.relaxed.gpu.global.u32 [{STOP}], 1;", "fence.acq_rel.gpu;", "exit;"]
        return f"\n\tret;\n{_LABEL}:\n" + "\n".join(f"\t{line}" for line in lines)


_LABEL = "pipesim_gives_up"


def _is_of_some(each: Instruction) -> bool:
    """Whether a barrier says how many threads it waits for: those that exit do not count there."""
    return "sync" in each.modifiers and len(each.operands) > 1


def sleeping_together(guard: str) -> list[str]:
    """Of a number in register site, 0: no sleep, the largest of the lanes that are there, and p2: whether it is not 0.

    Before a copy of an elected lane all sleep: ptxas issues it once for the warp, of which no lane may be elsewhere.
    """
    together = [f"activemask.b32 {P}c;", f"redux.sync.max.u32 {P}site, {P}site, {P}c;"]
    return [*(together if guard else ()), f"setp.ne.u32 {P}p2, {P}site, 0;"]


def only_with(guard: str, predicate: str) -> list[str]:
    """The predicate, where a guard holds as well."""
    if not guard.startswith("!"):
        return [f"and.pred {P}{predicate}, {P}{predicate}, {guard};"] if guard else []
    return [f"not.pred {P}p2, {guard[1:].strip()};", f"and.pred {P}{predicate}, {P}{predicate}, {P}p2;"]


def _number_of(index: str, size: str, to: str) -> list[str]:
    """The number of a thread in its CTA, or of a CTA in the grid, x counted first."""
    return [
        f"mov.u32 {P}{to}, %{index}.z;", f"mov.u32 {P}now, %{size}.y;", f"mov.u32 {P}c, %{index}.y;",
        f"mad.lo.u32 {P}{to}, {P}{to}, {P}now, {P}c;", f"mov.u32 {P}now, %{size}.x;", f"mov.u32 {P}c, %{index}.x;",
        f"mad.lo.u32 {P}{to}, {P}{to}, {P}now, {P}c;",
    ]  # fmt: skip


def _sleeps(ns: int) -> list[int]:
    """One delay as times that a nanosleep may take."""
    whole, rest = divmod(ns, LONGEST_NS)
    return [LONGEST_NS] * whole + ([rest] if rest else [])


def _body_end(plain: str, opening: int) -> int:
    """The position of the brace that closes the kernel's body."""
    depth, at = 1, opening
    while depth:
        brace = min(found for sign in "{}" if (found := plain.find(sign, at)) >= 0)
        depth += 1 if plain[brace] == "{" else -1
        at = brace + 1
    return at - 1
