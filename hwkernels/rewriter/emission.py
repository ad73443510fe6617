"""The PTX that records: the text at a kernel's beginning, around a statement, and before its end.

No branch and no label is added, and no statement changes: what is stored is guarded by a predicate that only the lanes
with a stream have. Clocks before a statement are read without it: the assembler would read them without it
anyway, and then wait for the reading to choose between it and nothing.

A predicate takes 13 cycles until an instruction can be under it (the stalls of the machine code). So what is needed
under one is worked out before the statement or long after it, and what only the lanes that store would notice is done
in all lanes: hash and cursor move without a predicate, and a wait that spins stores what it has after every try.

Two readings would come too early. The result of a try is a predicate that is ready only later, so the clock after it is
read under that predicate, into a register that keeps its value otherwise. A warp issues what follows ``bar.sync``
before the barrier opens, unless the lanes of the warp have to meet first (both measured, H200).
"""

from dataclasses import dataclass, field

from hwkernels.records.encodings import FIRST_BLOCK, FULL_FLAGS, FULL_SEQUENCE, HASH_FACTOR, Flag, hash_step
from hwkernels.rewriter import layout
from hwkernels.rewriter.layout import BufferLayout
from hwkernels.rewriter.sites import RecordedSite, Run, WordAccess
from pipesim.ptx.launch.values import Shape

SYMBOL = "pipesim_buffer"
EMISSION = 3  #: in 1, the predicate after a try was between its answer and the clock; in 2, barriers were not left
P = "%pipesim_"  #: what the names of all registers of the recorder begin with
_FULL_BYTES = 8
_MASK = 0xFFFFFFFF
_LONG_CYCLES = 1 << 20  #: of a barrier: below half a millisecond, and far longer than one that opens


@dataclass(frozen=True)
class Statement:
    """A statement as the text has it: its guard ("" without one), and the operands of a try.

    ``answer``: the predicate of a try, "" if it has none; ``parity``: what it asks for, "" if it asks by state.
    ``address`` of a word of global memory, a register or a name with an offset, and the ``value`` of ``bits`` that is
    read, stored or added there.
    """

    text: str
    guard: str
    answer: str = ""
    parity: str = ""
    address: str = ""
    value: str = ""
    bits: int = 32


@dataclass
class Emitter:
    """Writes the text for one kernel. ``full``: the encoding; ``names``: how many registers it has used."""

    layout: BufferLayout
    full: bool
    stop_flag: bool
    eager: bool
    ctas: int  #: of the cluster that is recorded
    place: Shape  #: of the cluster in the grid of clusters
    apart: bool = False  #: the CTAs are all of the grid, each a cluster of its own
    names: int = 0
    predicates: int = 0
    _lines: list[str] = field(default_factory=list)

    @property
    def record_bytes(self) -> int:
        """Bytes of a record."""
        return _FULL_BYTES if self.full else 4

    def bytes_of(self, run: Run) -> int:
        """Bytes that a run stores."""
        return run.records * self.record_bytes + (4 if run.lap and not self.full else 0)

    # registers

    def _u32(self) -> str:
        self.names += 1
        return f"{P}t{self.names}"

    def _pred(self) -> str:
        self.predicates += 1
        return f"{P}p{self.predicates}"

    def _say(self, *lines: str) -> None:
        self._lines += [f"\t{line}" for line in lines]

    def _take(self) -> str:
        text = "\n".join(self._lines)
        self._lines = []
        return text

    # the kernel's beginning and end

    def declarations(self) -> str:
        """Registers, after all the rest has been written."""
        return "\n".join(
            [
                f"\t.reg .pred {P}w, {P}p<{self.predicates + 1}>;",
                f"\t.reg .b32 {P}lo, {P}hi, {P}first, {P}now, {P}seq, {P}hash, {P}value, {P}t<{self.names + 1}>;",
                f"\t.reg .b64 {P}at, {P}buffer, {P}a, {P}b, {P}word;",
            ]
        )

    def prologue(self) -> str:
        """Finds the stream of the lane: ``w`` where it has one, ``lo`` and ``hi`` the address of its next record."""
        made, lay = self._say, self.layout
        a, b, c, d = (self._u32() for _ in range(4))
        made(
            f"ld.global.u64 {P}buffer, [{SYMBOL}];",
            f"setp.ne.u64 {P}w, {P}buffer, 0;",
        )
        which = "%clusterid" if self.ctas > 1 else "%ctaid"
        for axis, at in zip("xyz" if not self.apart else "", self.place if not self.apart else (), strict=True):
            made(f"mov.u32 {a}, {which}.{axis};", f"setp.eq.and.u32 {P}w, {a}, {at}, {P}w;")
        made(
            f"mov.u32 {a}, %tid.z;", f"mov.u32 {b}, %ntid.y;", f"mov.u32 {c}, %tid.y;",
            f"mad.lo.u32 {a}, {a}, {b}, {c};", f"mov.u32 {b}, %ntid.x;", f"mov.u32 {c}, %tid.x;",
            f"mad.lo.u32 {a}, {a}, {b}, {c};",
        )  # fmt: skip
        made(f"setp.lt.and.u32 {P}w, {a}, {lay.warps * layout.LANES}, {P}w;")
        if self.apart:
            made(
                f"mov.u32 {b}, %ctaid.z;", f"mov.u32 {c}, %nctaid.y;", f"mov.u32 {d}, %ctaid.y;",
                f"mad.lo.u32 {b}, {b}, {c}, {d};", f"mov.u32 {c}, %nctaid.x;", f"mov.u32 {d}, %ctaid.x;",
                f"mad.lo.u32 {b}, {b}, {c}, {d};", f"setp.lt.and.u32 {P}w, {b}, {self.ctas}, {P}w;",
            )  # fmt: skip
        elif self.ctas > 1:
            made(f"mov.u32 {b}, %cluster_ctarank;")
        if self.ctas > 1:
            made(f"mad.lo.u32 {a}, {b}, {lay.warps * layout.LANES}, {a};")
        made(
            f"cvt.u64.u32 {P}a, {a};",
            f"add.u64 {P}a, {P}a, {P}buffer;",
            f"mov.u32 {a}, {layout.NO_STREAM};",
            f"@{P}w ld.global.u8 {a}, [{P}a+{layout.SLOTS}];",
            f"setp.ne.and.u32 {P}w, {a}, {layout.NO_STREAM}, {P}w;",
            f"add.u64 {P}a, {P}buffer, {layout.SLOTS + lay.ranks * lay.warps * layout.LANES + lay.stride - 1};",
            f"and.b64 {P}a, {P}a, -{lay.stride};",
            f"sub.u64 {P}b, {P}a, {P}buffer;",
            f"@{P}w st.global.u64 [{P}buffer+{layout.STREAMS}], {P}b;",
            f"mad.wide.u32 {P}at, {a}, {lay.stride}, {P}a;",
            f"mov.b64 {{{P}lo, {P}hi}}, {P}at;",
            f"mov.u32 {P}first, 0;",
            f"mov.u32 {P}seq, 0;" if self.full else f"mov.u32 {P}hash, 0;",
        )
        frame = lay.stride - layout.FRAME_BYTES
        made(
            f"mov.u64 {P}a, %clock64;",
            f"cvt.u32.u64 {P}now, {P}a;",
            f"mov.u64 {P}b, %globaltimer;",
            f"@{P}w st.global.v2.u64 [{P}at+{frame + layout.BEGIN_CLOCK}], {{{P}a, {P}b}};",
            f"mov.u32 {d}, %smid;",
            f"@{P}w st.global.u32 [{P}at+{frame + layout.SM}], {d};",
        )
        return self._take()

    def end(self, guard: str) -> str:
        """Before a return: the frame's second half."""
        q = self._guard_predicate(guard)
        self._end(q)
        return self._take()

    def _end(self, q: str) -> None:
        lay, a = self.layout, self._u32()
        frame = lay.stride - layout.FRAME_BYTES
        self._say(
            f"and.b32 {a}, {P}lo, -{lay.stride};",
            f"mov.b64 {P}at, {{{a}, {P}hi}};",
            f"mov.u64 {P}a, %clock64;",
            f"mov.u64 {P}b, %globaltimer;",
            f"@{q} st.global.v2.u64 [{P}at+{frame + layout.END_CLOCK}], {{{P}a, {P}b}};",
            f"@{q} st.global.v2.u32 [{P}at+{frame + layout.CURSOR}], {{{P}lo, {P}{'seq' if self.full else 'hash'}}};",
        )

    def _guard_predicate(self, guard: str) -> str:
        """The predicate of the lanes that record and execute a statement with this guard."""
        if not guard:
            return f"{P}w"
        q = self._pred()
        if guard.startswith("!"):
            self._say(f"not.pred {q}, {guard[1:].strip()};", f"and.pred {q}, {q}, {P}w;")
        else:
            self._say(f"and.pred {q}, {guard}, {P}w;")
        return q

    # sites

    def site(self, run: Run, index: int, statement: Statement) -> str:
        """A statement of a run with what records it; the run's last also moves the cursor."""
        site = run.sites[index]
        q = self._guard_predicate(statement.guard)
        if index == 0:
            self._say(f"mov.b64 {P}at, {{{P}lo, {P}hi}};")
        before = sum(each.records for each in run.sites[:index])
        if site.word is not None and site.spins:
            self._word_spin(site, statement, q)
            return self._take()
        if site.word is not None:
            self._word(site, statement, q, before)
            if index == len(run.sites) - 1:
                self._advance(run, f"@{statement.guard} " if statement.guard else "", q)
            return self._take()
        if site.spins:
            self._spin(run, site, statement, q)
            return self._take()
        first = self._u32()
        self._say(f"mov.u32 {first}, %clock;")
        flags = Flag.TRIED if site.tries else 0
        if self.eager and site.records == 2:
            self._store(q, before, first, self._tag(site, flags, before, statement.parity))
        self._say(statement.text)
        if site.records == 2:
            second = self._clock_after(site, statement, first)
        if not (self.eager and site.records == 2):
            self._store(q, before, first, self._tag(site, flags, before, statement.parity))
        if site.records == 2:
            self._store(q, before + 1, second, self._answer_tag(site, before + 1, statement))
        if index == len(run.sites) - 1:
            self._advance(run, f"@{statement.guard} " if statement.guard else "", q)
        return self._take()

    def _clock_after(self, site: RecordedSite, statement: Statement, first: str) -> str:
        """A register with the clock after a statement that may block."""
        second = self._u32()
        if site.tries and statement.answer:
            self._say(f"@{statement.answer} mov.u32 {P}now, %clock;")  # only success has a time
            return f"{P}now"
        if site.meets:
            guard = f"@{statement.guard} " if statement.guard else ""
            self._say(f"{guard}bar.warp.sync 0xffffffff;")
        self._say(f"mov.u32 {second}, %clock;")
        if site.meets and self.stop_flag and not statement.guard:
            self._leave(first, second)
        return second

    def _leave(self, first: str, second: str) -> None:
        """After a barrier that was shut for long: the end, where the host has asked for it.

        Threads that have exited are not waited for by the barriers of a CTA (measured, H200): without this, the warps
        that were there would continue as if all had come.
        """
        took, slow, both = self._u32(), self._pred(), self._pred()
        self._say(f"sub.u32 {took}, {second}, {first};", f"setp.gt.u32 {slow}, {took}, {_LONG_CYCLES};")
        stop = self._asked_to_stop(slow)
        self._say(f"and.pred {both}, {stop}, {P}w;")
        self._end(both)
        self._say(f"mov.b64 {P}at, {{{P}lo, {P}hi}};", f"@{stop} exit;")

    def _asked_to_stop(self, asks: str) -> str:
        """A predicate: the host has set the word, in the lanes that ask, of which ``asks`` says which they are."""
        flag, stop = self._u32(), self._pred()
        self._say(
            f"ld.global.u64 {P}a, [{SYMBOL}];",
            f"setp.ne.and.u64 {asks}, {P}a, 0, {asks};",
            f"mov.u32 {flag}, 0;",
            f"@{asks} ld.relaxed.sys.global.u32 {flag}, [{P}a+{layout.STOP}];",
            f"setp.ne.and.u32 {stop}, {flag}, 0, {asks};",
        )
        return stop

    def _spin(self, run: Run, site: RecordedSite, statement: Statement, q: str) -> None:
        """The first try's clock is kept until one succeeds; 0 means none."""
        none, clock, answer = self._pred(), self._u32(), statement.answer
        only = f".and.u32 {none}, {P}first, 0, {q}" if statement.guard else f".u32 {none}, {P}first, 0"
        self._say(
            f"setp.eq{only};",
            f"mov.u32 {clock}, %clock;",
            statement.text,
            f"@{answer} mov.u32 {P}now, %clock;",
            f"selp.u32 {P}first, {clock}, {P}first, {none};",
        )
        if self.stop_flag:
            self._stop(site, statement, q)
        if self.full or self.stop_flag or statement.guard:
            done = stored = self._pred()
            self._say(f"and.pred {done}, {answer}, {q};")
        else:  # a try that fails also stores: the next one does at the same place
            done, stored = answer, q
        self._store(stored, 0, f"{P}first", self._tag(site, Flag.TRIED, 0, statement.parity))
        self._store(stored, 1, f"{P}now", self._tag(site, Flag.PASSED, 1, ""))
        self._say(f"@{done} mov.u32 {P}first, 0;")
        self._advance(run, f"@{done} ", stored, statement.parity)

    def _stop(self, site: RecordedSite, statement: Statement, q: str) -> None:
        """After a try that failed: where the host has asked for the end, a record of that, and the end."""
        failed = self._pred()
        self._say(
            f"not.pred {failed}, {statement.answer};",
            f"and.pred {failed}, {failed}, {self._executes(statement.guard)};" if statement.guard else "",
        )
        stop = self._asked_to_stop(failed)
        both, now = self._pred(), self._u32()
        self._say(f"and.pred {both}, {stop}, {q};", f"mov.u32 {now}, %clock;")
        self._store(both, 0, f"{P}first", self._tag(site, Flag.TRIED, 0, statement.parity))
        self._store(both, 1, now, self._tag(site, Flag.GAVE_UP, 1, ""))
        self._end(both)
        self._say(f"mov.b64 {P}at, {{{P}lo, {P}hi}};", f"@{stop} exit;")

    # words of global memory

    def _word(self, site: RecordedSite, statement: Statement, q: str, before: int) -> None:
        """A store, a reduction or an atomic on a word.

        What an atomic returns is stored before the clock is read: a warp issues in order, and waits for it there.
        """
        first, now, value = self._u32(), self._u32(), self._u32()
        self._say(f"mov.u32 {first}, %clock;", self._address(statement))
        reads, at = site.word is not WordAccess.WRITE, before + (1 if site.word is WordAccess.WRITE else 2)
        if not reads:
            self._say(self._value(statement, value))
        self._say(statement.text)
        if reads:
            self._say(self._value(statement, value))
        self._payload(q, site, at, value)
        self._store(q, before, first, self._tag(site, 0, before, ""))
        if reads:
            self._say(f"mov.u32 {now}, %clock;")
            self._store(q, before + 1, now, self._tag(site, Flag.PASSED, before + 1, ""))

    def _word_spin(self, site: RecordedSite, statement: Statement, q: str) -> None:
        """The first try's clock is kept until the loop is left, with what the last one read."""
        none, clock = self._pred(), self._u32()
        only = f".and.u32 {none}, {P}first, 0, {q}" if statement.guard else f".u32 {none}, {P}first, 0"
        guard = f"@{statement.guard} " if statement.guard else ""
        self._say(
            f"setp.eq{only};",
            f"mov.u32 {clock}, %clock;",
            guard + self._address(statement),
            statement.text,
            guard + self._value(statement, f"{P}value"),
            f"selp.u32 {P}first, {clock}, {P}first, {none};",
        )
        if self.stop_flag:
            asks, both, now = self._pred(), self._pred(), self._u32()
            self._say(f"setp.eq.u32 {asks}, 0, 0;")
            if statement.guard:
                self._say(f"and.pred {asks}, {asks}, {self._executes(statement.guard)};")
            stop = self._asked_to_stop(asks)
            self._say(f"and.pred {both}, {stop}, {q};", f"mov.u32 {now}, %clock;")
            self._word_end(both, site, now, Flag.GAVE_UP)
            self._end(both)
            self._say(f"mov.b64 {P}at, {{{P}lo, {P}hi}};", f"@{stop} exit;")

    def word_exit(self, run: Run, guard: str) -> str:
        """Where the loop of a wait for a word is left: by a branch with this guard, or after one that is not taken."""
        (site,) = run.sites
        done, stored = self._pred(), self._pred()
        self._say(
            f"mov.u32 {P}now, %clock;",
            f"mov.b64 {P}at, {{{P}lo, {P}hi}};",
            f"setp.ne.u32 {done}, {P}first, 0;",
            f"and.pred {done}, {done}, {self._executes(guard)};" if guard else "",
            f"and.pred {stored}, {done}, {P}w;",
        )
        self._word_end(stored, site, f"{P}now", Flag.PASSED)
        self._say(f"@{done} mov.u32 {P}first, 0;")
        self._advance(run, f"@{done} ", stored)
        return self._take()

    def _word_end(self, q: str, site: RecordedSite, now: str, flag: Flag) -> None:
        """All records of a wait for a word."""
        self._store(q, 0, f"{P}first", self._tag(site, 0, 0, ""))
        self._store(q, 1, now, self._tag(site, flag, 1, ""))
        self._payload(q, site, 2, f"{P}value")

    def _payload(self, q: str, site: RecordedSite, at: int, value: str) -> None:
        """Records whose clocks are a value and the halves of an address."""
        low, high = self._u32(), self._u32()
        self._say(f"mov.b64 {{{low}, {high}}}, {P}word;")
        for n, each in enumerate((value, low, high)):
            self._store(q, at + n, each, self._tag(site, 0, at + n, ""))

    @staticmethod
    def _address(statement: Statement) -> str:
        base, _, offset = statement.address.partition("+")
        added = f"add.u64 {P}word, {base.strip()}, {offset.strip()};"
        return added if offset else f"mov.u64 {P}word, {base.strip()};"

    @staticmethod
    def _value(statement: Statement, to: str) -> str:
        move = "cvt.u32.u64" if statement.bits == 64 and not statement.value.lstrip("-").isdigit() else "mov.b32"
        return f"{move} {to}, {statement.value};"

    def _executes(self, guard: str) -> str:
        if not guard.startswith("!"):
            return guard
        q = self._pred()
        self._say(f"not.pred {q}, {guard[1:].strip()};")
        return q

    def _parity(self, operand: str) -> str:
        """A register with the parity that a wait asks for, as it is executed."""
        parity = self._u32()
        self._say(f"mov.u32 {parity}, {int(operand) & 1};" if operand.isdigit() else f"and.b32 {parity}, {operand}, 1;")
        return parity

    def _tag(self, site: RecordedSite, flags: int, index: int, parity: str) -> str:
        """A register with the tag of a run's record, "" if records have none."""
        if not self.full:
            return ""
        tag = self._u32()
        constant = site.number | int(flags) << FULL_FLAGS[0] | index << FULL_SEQUENCE[0]
        self._say(f"add.u32 {tag}, {P}seq, {constant};")
        if parity:
            bit = self._parity(parity)
            self._say(f"shl.b32 {bit}, {bit}, {FULL_FLAGS[0] + Flag.PARITY.bit_length() - 1};")
            self._say(f"or.b32 {tag}, {tag}, {bit};")
        return tag

    def _answer_tag(self, site: RecordedSite, index: int, statement: Statement) -> str:
        """The tag of the second record: of a try with its answer."""
        if not site.tries or not self.full:
            return self._tag(site, Flag.PASSED, index, "")
        tag = self._tag(site, 0, index, "")
        if statement.answer:
            bit = self._u32()
            self._say(
                f"selp.b32 {bit}, {int(Flag.PASSED) << FULL_FLAGS[0]}, 0, {statement.answer};",
                f"or.b32 {tag}, {tag}, {bit};",
            )
        return tag

    def _store(self, q: str, index: int, clock: str, tag: str) -> None:
        at = f"[{P}at+{index * self.record_bytes}]"
        if tag:
            self._say(f"@{q} st.global.v2.u32 {at}, {{{clock}, {tag}}};")
        else:
            self._say(f"@{q} st.global.u32 {at}, {clock};")

    def _advance(self, run: Run, guard: str, stored: str, parity: str = "") -> None:
        """Move the cursor past a run's records, and continue the hash, in the lanes that executed it.

        ``guard``: what is before such a statement; ``stored``: the predicate of those that store.
        """
        if self.full:
            self._say(f"{guard}add.u32 {P}seq, {P}seq, {run.records << FULL_SEQUENCE[0]};")
        else:
            self._hash(run, guard, parity)
            if run.lap:
                self._say(f"@{stored} st.global.u32 [{P}at+{run.records * self.record_bytes}], {P}hash;")
        self._say(f"{guard}add.u32 {P}lo, {P}lo, {self.bytes_of(run)};")
        if run.lap:
            self._say(f"and.b32 {P}lo, {P}lo, {~self.layout.size & 0xFFFFFFFF};")

    def _hash(self, run: Run, guard: str, parity: str) -> None:
        """The hash after a run: a step for the run, before it one for the parity of a wait that spins."""
        factor, added = HASH_FACTOR, str(run.number + 1)
        if parity:  # both steps in one
            added = self._parity(parity)
            least = hash_step((FIRST_BLOCK + 1) & _MASK, run.number)
            self._say(f"mad.lo.u32 {added}, {added}, {HASH_FACTOR}, {least};")
            factor = factor * factor & _MASK
        self._say(f"{guard}mad.lo.u32 {P}hash, {P}hash, {factor}, {added};")
