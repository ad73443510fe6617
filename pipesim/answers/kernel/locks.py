"""Corrections of locks in a kernel whose CTAs talk by words of global memory.

A lock is a word that a compare-and-swap takes, or an exchange in a loop; who writes what it held before gives it back.
Where that is missing, at another word, of another value, before the data, or without order, lines of the file are
written otherwise, and the kernel is read again with 2, 3 and 4 CTAs together.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from pipesim.answers.every_cta.together import Together, programs_together
from pipesim.answers.kernel.lines import LAST_OPERAND, LineChange
from pipesim.answers.progress import Unit
from pipesim.errors import PipesimError
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Fence, Op, Order, Scope, semantics
from pipesim.model.program import Program
from pipesim.model.words import SEES, STRONG_DATA, TURNS, WordAct, WordEvent
from pipesim.prove.check import check
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.correction import MOST, Correction
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.wording.added_line import AddedLine
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emit.word_barriers import word_name
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import MOST_TOGETHER, extract
from pipesim.ptx.kernel import EditableKernel
from pipesim.ptx.text.instruction import Instruction

K = RepairKind
_MOST_TRIED, _LEAST_TRIED = 8, 2
_MOST_OPERATIONS = 40_000  #: of all programs that are tried
_FENCE = "fence.acq_rel.gpu"
_FENCE_OP = (int(Op.FENCE), int(Fence.ACQ_REL), semantics(Order.ACQ_REL, Scope.GPU))
_ADDRESS = re.compile(r"\[([^\]+]+?)\s*(?:\+\s*(-?\d+))?\s*\]")
_GIVE = (
    "{{ .reg .pred %gives; .reg .b32 %who; mov.u32 %who, %tid.x; setp.eq.u32 %gives, %who, {thread}; "
    "@%gives st.release.gpu{space}.u{bits} [{address}], {value}; }}"
)


def corrections_of_locks(
    kernel: EditableKernel, asked: Program, refuted: Refutation, unit: Unit
) -> tuple[Correction, ...]:
    """The first changes of what is done to a lock with which all numbers of CTAs together are proved."""
    locks, found = _Locks(kernel, asked), list[Correction]()
    most = max(_LEAST_TRIED, min(_MOST_TRIED, _MOST_OPERATIONS // max(1, sum(map(len, asked.code)))))
    for n, change in enumerate(islice(locks.changes(refuted), most)):
        if found and change.repair.kind not in (K.GIVEN, K.AWAITED):
            break
        unit(n, 0)
        if _is_proved(kernel, change, asked):
            found.append(_correction(change))
    return tuple(found[:MOST])


def _correction(change: LineChange) -> Correction:
    """A fence is a line that is added before the author's line, or after it."""
    if change.repair.kind is not K.STRONGER:
        return Correction(change.repair, change.said, change.source, change.source)
    before = all(text.startswith(_FENCE) for text in change.lines.values())
    added = AddedLine(_FENCE_OP, -1, (), change.source, before)
    return Correction(change.repair, change.said, change.source, added=added)


def _is_proved(kernel: EditableKernel, change: LineChange, asked: Program) -> bool:
    """Whether the kernel is, in all the numbers of CTAs that are followed together, with these lines."""
    sets = tuple(each for each in kernel.sets if each.partition("=")[0] not in _SETTINGS)
    known = Together()
    try:
        ready = replace(kernel, sets=sets).prepared(change.lines)
        made = extract(ready.module, ready.launch)
        for _, each in programs_together(made, known, asked.strictness):
            if check(each.program.with_strictness(asked.strictness), max_states=1).verdict is not Verdict.PROVED:
                return False
    except PipesimError:
        return False
    return bool(known.sizes) and not known.not_judged


_SETTINGS = ("together", TURNS, SEES, STRONG_DATA)


class _Lock(NamedTuple):
    """A lock that a thread of a CTA has taken, what the CTA writes after that, and which write gives it back."""

    taken: WordEvent
    thread: int
    later: list[WordEvent]
    given: WordEvent | None


class _Locks:
    """What a kernel does to its locks, in the run that the refuted program was made of."""

    def __init__(self, kernel: EditableKernel, asked: Program) -> None:
        self._kernel, self._asked, self._ready = kernel, asked, kernel.prepared()
        self._cluster = emulate(self._ready, EmulationLimits(instructions=MOST_TOGETHER)).cluster
        assert self._cluster.words is not None
        self._words = self._cluster.words

    @cached_property
    def _locks(self) -> list[_Lock]:
        events, streams, found = self._words.events, self._cluster.recorder.streams, []
        for n, e in enumerate(events):
            if self._takes(e):
                mine = [o for o in events[n + 1 :] if streams[o.agent].cta == streams[e.agent].cta and o.act.writes]
                until = next((k for k, o in enumerate(mine) if o.address == e.address and self._takes(o)), len(mine))
                lanes = next(step.lanes for step in streams[e.agent].path if step.position == e.position)
                thread = 32 * streams[e.agent].warp + (lanes & -lanes).bit_length() - 1
                back = (o for o in mine[:until] if o.address == e.address and o.after == e.before)
                found.append(_Lock(e, thread, mine[:until], next(back, None)))
        return found

    def _takes(self, e: WordEvent) -> bool:
        """Whether it takes a lock: it is tried until the answer is the one with which the word changes."""
        tried = self._at(e).has("cas") or self._ready.code.regions.loops.polls(e.position)
        return e.act is WordAct.CHANGE and e.after != e.before and e.observed and tried

    def changes(self, refuted: Refutation) -> Iterator[LineChange]:
        """The lines that may be meant."""
        if not self._locks and refuted.kind is FaultKind.WEAK_ORDER:
            for e in {each.position: each for each in self._words.events if each.act.writes}.values():
                at, who = self._at(e), self._asked.agents[e.agent].role
                said = f"executes {_FENCE} before it writes {self._word(e)}"
                yield self._change(at, {at.line: f"{_FENCE}; {self._kernel.line(at.line)}"}, K.STRONGER, who, said)
        if not self._locks or len({(each.thread, each.taken.position) for each in self._locks}) > 1:
            return
        lock = next((each for each in self._locks if each.given is None), self._locks[0])
        taken, given, who = lock.taken, lock.given, self._asked.agents[lock.taken.agent].role
        word, take = self._word(taken), self._at(taken)
        text = self._kernel.line
        if given is not None and refuted.kind in (FaultKind.WEAK_ORDER, FaultKind.NARROW_SCOPE):
            back, after = self._at(given), f"{text(take.line)} {_FENCE};"
            for at, line, said in (
                (take, after, "after it takes"),
                (back, f"{_FENCE}; {text(back.line)}", "before it gives back"),
            ):
                yield self._change(at, {at.line: line}, K.STRONGER, who, f"executes {_FENCE} {said} {word}")
        elif given is not None and refuted.deadlock is None:
            at = self._at(given)
            branch = (each for each in reversed(self._ready.entry.body) if each.opcode == "bra" and each.line < at.line)
            for each in (at, *islice(branch, 1)):  # or before the branch of the threads that do not give it back
                new = {each.line: f"bar.sync 0; {text(each.line)}"}
                yield self._change(at, new, K.SYNC, who, f"executes bar.sync before it gives back {word}")
            yield from self._gives(lock, who, f"gives {word} back only", {at.line: f"// {text(at.line)}"})
        elif given is None:
            for e in lock.later:
                at, array = self._at(e), self._cluster.image.pointer_to(e.address)[0]
                if e.address == taken.address:
                    line = LAST_OPERAND.sub(str(taken.before), text(at.line))
                    yield self._change(at, {at.line: line}, K.GIVEN, who, f"gives {word} back as {taken.before}")
                elif e.after == taken.before and array == self._cluster.image.pointer_to(taken.address)[0]:
                    by, other = taken.address - e.address, self._word(e)
                    yield self._change(at, self._moved(at, by), K.GIVEN, who, f"gives {word} back, not {other}")
                    yield self._change(take, self._moved(take, -by), K.AWAITED, who, f"takes {other}, not {word}")
            yield from self._gives(lock, who, f"gives {word} back", {})

    def _gives(self, lock: _Lock, who: str, said: str, gone: dict[int, str]) -> Iterator[LineChange]:
        """It is given back after a barrier of the CTA, the last one first, or at the end."""
        take, value = self._at(lock.taken), lock.taken.before
        address = _ADDRESS.search(self._kernel.line(take.line))
        if address is None or self._ready.launch.block[1:] != (1, 1):
            return  # %tid.x names the thread
        space, bits = ".global" * take.has("global"), take.modifiers[-1].lstrip("bsu")
        give = _GIVE.format(thread=lock.thread, space=space, bits=bits, address=address[0][1:-1], value=value)
        own = [each for each in self._ready.entry.body if each.guard is None and each.line > max(take.line, *gone, 0)]
        for each in reversed([one for one in own if one.opcode in ("bar", "barrier") and one.has("sync")]):
            new = {each.line: f"{self._kernel.line(each.line)} {give}"}
            yield self._change(each, gone | new, K.WORD_ADDED, who, f"{said} after the bar.sync")
        ends = [each for each in own if each.opcode in ("ret", "exit")]
        for each in ends if len(ends) == 1 else ():
            new = {each.line: f"bar.sync 0; {give} {self._kernel.line(each.line)}"}
            yield self._change(each, gone | new, K.WORD_ADDED, who, f"{said} at its end, after a bar.sync")

    def _at(self, event: WordEvent) -> Instruction:
        return self._ready.function.body[event.position]

    def _word(self, event: WordEvent) -> str:
        return word_name(self._cluster, event.address, self._words.sizes[event.address])

    def _moved(self, at: Instruction, by: int) -> dict[int, str]:
        """The line with its address ``by`` bytes further."""
        return {at.line: _ADDRESS.sub(lambda m: f"[{m[1]}+{int(m[2] or 0) + by}]", self._kernel.line(at.line), count=1)}

    def _change(self, at: Instruction, lines: dict[int, str], kind: RepairKind, who: str, does: str) -> LineChange:
        source = source_of(at, self._ready.module)
        said = f"{who} {does} ({source}; {self._kernel.ptx.name}, line {at.line})"
        return LineChange(lines, Repair(kind, who, ""), said, source)
