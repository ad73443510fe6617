"""Corrections of a kernel: of its program as far as it can be followed, past a hang as well, and of lines of its file.

A kernel is followed as far as its warps go. Where they hang it is followed further by completing what they wait for,
so that changes can be tried on all that it does. What its program does not say (registers that a wait makes readable,
operands of memory that is read too early) is asked of the file with lines changed, which is read again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice

from pipesim.answers.kernel.changes import (
    barriers_after_branches,
    carried,
    for_groups,
    numbers,
    one_lane,
    tensor_waits,
    with_masks,
    without_early_ends,
)
from pipesim.answers.kernel.led_past import not_past
from pipesim.answers.kernel.lines import KernelLines, LineChange
from pipesim.answers.kernel.slip_sentences import changed_token, slip_repair, slip_sentence
from pipesim.answers.kernel.slips import LIKELY, Slip, Slips
from pipesim.answers.progress import Unit
from pipesim.errors import PipesimError
from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.groups import BY_PARITY, ON_BARRIER, PARITY_WAITS, SIGNALS, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import Op, Operation, Space, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.tables import Access, SourceInstruction
from pipesim.prove.check import check
from pipesim.prove.refutation import Refutation, is_of_any_kind, lines_of
from pipesim.prove.repair.behind import Hidden
from pipesim.prove.repair.changes.numbers import lanes
from pipesim.prove.repair.correctable import correctable, with_places
from pipesim.prove.repair.correction import MOST, OTHER_PARITY, ChangedToken, Correction, corrections, only_line
from pipesim.prove.repair.edits import apply_repair
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.side_effects import leaves_more
from pipesim.prove.repair.sites import is_at, members, operations_of
from pipesim.prove.repair.wording.added_line import AddedLine, beside
from pipesim.prove.repair.wording.sentences import sentence
from pipesim.ptx.branch_decisions import BranchPast
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.emit.record import FirstParities
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.kernel import EditableKernel, KernelReading

_MOST_READ = 24  #: changes of lines with which the kernel is read again
_MOST_NUMBERS = 4  #: of these, for what a hang hides
_MOST_TRIED = 240_000  #: operations of all programs that are tried for one finding
_MOST_SLIPS = 160_000  #: instructions and operations of all kernels that are read with a slip put right
_MOST_UNLIKELY = 60_000  #: the same, of those that are tried last
_MOST_OF_SLIPS = 80  #: that are tried together, also of a small kernel
_LEAST_SLIPS = 8  #: that are tried of a large kernel
_INSTRUCTION = 2  #: operations that it costs as much to read
_LONGER = 3  #: times as many instructions may be executed with a change
_MORE_COST = 0.3  #: of a second slip that is offered beside the first
_EFFECTS_OF_RACES = frozenset({FaultKind.UNINITIALISED_READ, FaultKind.WRONG_ITEM})  #: which names both accesses
_AT_THE_END = frozenset({FaultKind.INVAL_PENDING, FaultKind.EXITED_CTA, FaultKind.UNDER_WAY_AT_EXIT})
_LAST_OF_LINES = 6  #: The least likely corrections that are tried
_FIRST = 3  #: of the program, before the kernel is read again, which takes longer


def corrections_of_kernel(
    kernel: EditableKernel, program: Program, refuted: Refutation, unit: Unit, led_past: Sequence[BranchPast] = ()
) -> tuple[Correction, ...]:
    """The first changes with which the whole kernel is proved; () if there are none among those that are tried."""
    trial = _Trial(kernel, program, unit)
    if trial.misses(program):
        return ()  # any change would be proved
    refuted_in = KernelLines(kernel, kernel.read()) if program.coverage.blocked else trial.lines
    wait = refuted_in.wait_of(refuted.fault) if refuted.fault is not None else None
    for change in islice(_lines(trial.lines, refuted, wait, led_past, program), _MOST_READ):
        if trial.proves(change):
            source = change.source or trial.lines.source_of(change.lines)
            line, call = trial.lines.place_of(change.lines, source), trial.lines.call_of(change.lines, source)
            offered = Correction(change.repair, change.said, line, source, call=call)
            return (offered, *(trial.with_lanes(change.repair) if change.repair.kind is RepairKind.COUNT else ()))
    if not is_of_any_kind(refuted) or refuted.kind in _AT_THE_END:
        return trial.of_program(refuted) or trial.of_slips(trial.slips(refuted, led_past))
    if likely := trial.of_program(refuted, _FIRST):
        return likely
    slips = trial.slips(refuted, led_past)
    likely = trial.of_slips([slip for slip in slips if slip.cost <= LIKELY])
    unlikely = [slip for slip in slips if slip.cost > LIKELY]
    likely = likely or trial.of_program(refuted) or trial.of_slips(unlikely, _MOST_UNLIKELY)
    return likely or trial.after_branches(refuted)


class _Trial:
    """A kernel, read as far as it can be followed, on which changes are tried."""

    def __init__(self, kernel: EditableKernel, program: Program, unit: Unit) -> None:
        self._kernel, self._unit, self._strictness = kernel, unit, program.strictness
        self._read = 0
        self._reading = kernel.read(past_hangs=True)
        self._limits = EmulationLimits(_LONGER * self._reading.instructions)
        self.lines = KernelLines(kernel, self._reading, in_rows=True)

    @cached_property
    def _program(self) -> Program:
        """The program on which changes are tried that are not of lines."""
        placed = self.lines.program.with_strictness(self._strictness)
        made = correctable(placed, expects=False)
        if check(made, max_states=1).verdict is not Verdict.REFUTED:  # what is wrong is what is read
            made = correctable(placed, expects=True)
        return with_places(made, self.lines.statements, self._kernel.ptx.name) if self.lines.several_a_line else made

    def misses(self, program: Program) -> bool:
        """Whether accesses to global memory, which the program has, are not among what is read."""
        known, read = ({each.space for each in made.accesses} for made in (program, self._reading.program))
        return Space.GLOBAL in known - read

    def proves(self, change: LineChange) -> bool:
        """Whether the kernel is proved with these lines."""
        again = self._with(change.lines)
        return again is not None and check(again.program, max_states=1).verdict is Verdict.PROVED

    def _with(self, lines: Mapping[int, str], first: FirstParities | None = None) -> KernelReading | None:
        self._unit(self._read, 0)
        self._read += 1
        try:
            again = self._kernel.read(lines, first, limits=self._limits)
        except PipesimError:
            return None
        if again.program.coverage.stopped:
            return None
        return again._replace(program=again.program.with_strictness(self._strictness))

    def slips(self, refuted: Refutation, led_past: Sequence[BranchPast]) -> list[Slip]:
        """The slips at single instructions that the kernel could have, the likeliest first."""
        plain = self._reading if refuted.deadlock is not None else self._kernel.read()
        return Slips(self._kernel.prepared(), plain, refuted, self._kernel.text.split("\n"), led_past).ranked()

    def of_slips(self, ranked: Sequence[Slip], work: int = _MOST_SLIPS) -> tuple[Correction, ...]:
        """The first slip with which the kernel is proved; a second one that is about as likely and does something else.

        None with which an access to memory is not executed any more, or less is copied and used: what is left out is
        not wrong.
        """
        ready, before = self._kernel.prepared(), self._reading.program
        most = work // (_INSTRUCTION * len(ready.function.body) + sum(map(len, before.code)))
        found: dict[object, tuple[float, Correction]] = {}
        known: set[int] = set()  # lines
        accessing = _accessing(self._reading)
        for slip in ranked[: min(max(most, _LEAST_SLIPS), _MOST_OF_SLIPS)]:
            if found and slip.cost > next(iter(found.values()))[0] + _MORE_COST:
                break
            if not known.isdisjoint(line for line, _ in slip.lines):
                continue
            reading = self._with(dict(slip.lines))
            if reading is None or reading.program.code in found or not accessing <= _accessing(reading):
                continue
            again = reading.program
            if len(again.code) != len(before.code) or _does_less(before, again):  # lanes of a warp are followed apart
                continue
            repair = slip_repair(before, again)
            if (
                repair.serialises
                or _unused(again) > _unused(before)
                or check(again, max_states=1).verdict is not Verdict.PROVED
            ):
                continue
            if leaves_more(before, again):
                continue
            source = ready.function.body[slip.position]
            outer = source_of(source, ready.module)
            inside = self.lines.source_of([number for number, _ in slip.lines])
            line = self.lines.place_of([slip.lines[0][0]], inside or outer)
            said = slip_sentence(self.lines, slip, before, again)
            known.update(number for number, _ in slip.lines)
            token = changed_token(slip, self._kernel, ready.function.body)
            if token is None and (changed := self._line_of_change(before, again)):
                line = outer = changed  # not where the compiler computes an address
            offered = Correction(repair, said, line, outer, token=token)
            found[again.code] = slip.cost, offered
            if len(found) == MOST:
                break
        return tuple(correction for _, correction in found.values())

    def _line_of_change(self, before: Program, after: Program) -> str:
        """The one line of the operations that no agent executes in the other program, "" of several; of reads, which
        are in parts as others write them, only where nothing else is.
        """
        found, reads = set[str](), set[str]()
        for agent, (code, now) in enumerate(zip(before.code, after.code, strict=True)):
            one, other = ([_without_item(p, op) for op in ops] for p, ops in ((before, code), (after, now)))
            left = Counter(other)
            for pc, op in enumerate(one):
                if not left[op] or (len(one) == len(other) and op != other[pc]):
                    (reads if op[0][0] == Op.READ else found).add(self.lines.line_at(agent, pc))
                left[op] -= 1
        found = found or reads
        return found.pop() if len(found) == 1 else ""

    def of_program(self, refuted: Refutation, last: int = _LAST_OF_LINES) -> tuple[Correction, ...]:
        """Single changes of the program with which it is proved, or the kernel if it is read again with them."""
        program = self._program
        if program.coverage.blocked or program.coverage.stopped:
            return ()
        found = check(program, max_states=1).refutations
        of_bytes = (FaultKind.RACE, refuted.kind) if refuted.kind in _EFFECTS_OF_RACES else (refuted.kind,)
        alike = [each for kind in of_bytes for each in found if each.kind is kind] or list(found)
        fault = refuted.fault
        sides = operations_of(fault) if fault is not None else ()
        if not alike and sides and all(pc < len(program.code[agent]) for agent, pc in sides):  # only a search shows it
            alike = [refuted]
        if not alike:
            return ()
        offered = corrections(program, alike[0], program, self._unit, _MOST_TRIED, self._holds, last)
        return tuple(map(self._in_source, offered))

    def _in_source(self, found: Correction) -> Correction:
        """With the author's lines alone, those of the functions that are called."""
        after = apply_repair(self._program, found.repair)
        added = beside(found.added, self.lines.line_in_function)
        source = only_line(self._program, after, self.lines.line_at) if after is not None else ""
        at = next(iter(self._lines_at(found.repair.role, found.repair.at)), "")
        at = at or source or (added.line if added is not None else "")
        line = at or self._first_changed(found.repair, after) or found.line.partition(", ")[0]
        other = after is not None and found.repair.kind is RepairKind.PHASES and self._all_waits_differ(after, source)
        token = ChangedToken("", OTHER_PARITY, (source,)) if other else None
        said = sentence(self._inside(found.repair))
        return replace(found, said=said, line=line, source=source, added=added, token=token)

    def _all_waits_differ(self, after: Program, source: str) -> bool:
        """Whether each wait by parity of a line of the source is for the other one in the other program."""
        return bool(source) and all(
            op != now
            for agent, (code, new) in enumerate(zip(self._program.code, after.code, strict=True))
            for pc, (op, now) in enumerate(zip(code, new, strict=True))
            if op[0] in BY_PARITY and self.lines.line_at(agent, pc) == source
        )

    def _first_changed(self, repair: Repair, after: Program | None) -> str:
        """The line of the first operation that is another one with it, on its barriers if there is one."""
        program, first = self._program, ""
        for agent in members(program, repair.role):
            code = after.code[agent] if after is not None else ()
            for pc, (site, now) in enumerate(zip(program.instructions[agent], code, strict=False)):
                if now == program.code[agent][pc]:
                    continue
                if repair.group and site.about == repair.group:
                    return self.lines.line_at(agent, pc)
                given = len(code) > len(program.code[agent]) and now[0] in SIGNALS
                first = first or self.lines.line_at(agent, pc - given)
        return first

    def _inside(self, repair: Repair) -> Repair:
        """With the lines in the functions that are called, where an instruction has one such line."""

        def inside(at: SourceInstruction) -> SourceInstruction:
            lines = self._lines_at(repair.role, at)
            return at._replace(line="".join((*lines, *at.line.partition(", ")[1:]))) if len(lines) == 1 else at

        also = tuple(map(self._inside, repair.also))
        return replace(repair, at=inside(repair.at), past=inside(repair.past), also=also)

    def _lines_at(self, role: str, at: SourceInstruction) -> list[str]:
        """The lines in the functions that are called, of an instruction or several in a role."""
        every, program = set(at.line.split("\n")), self._program
        found = (
            self.lines.line_at(agent, pc)
            for agent in members(program, role)
            for pc, site in enumerate(program.instructions[agent])
            if (at.op and is_at(site, at)) or (len(every) > 1 and site.line in every and at.op in (0, site.op))
        )
        return list(dict.fromkeys(found))

    def with_lanes(self, count: Repair) -> tuple[Correction, ...]:
        """Of a count that is a warp's lanes too high, or too low: that all lanes arrive, or one, if it is proved so."""
        program, name = self._program, count.group
        every = [each for each, _ in lanes(program) if each.group.partition("[")[0] == name and each.at.op]
        meant = [each for each in every if count.value * each.value == count.was * each.was]
        after = apply_repair(program, replace(meant[0], also=tuple(meant[1:]))) if meant else None
        if after is None or check(after, max_states=1).verdict is not Verdict.PROVED or leaves_more(program, after):
            return ()
        repair = replace(meant[0], role=",".join(dict.fromkeys(each.role for each in meant)))
        return (self._in_source(Correction(repair, sentence(repair), "")),)

    def after_branches(self, refuted: Refutation) -> tuple[Correction, ...]:
        """A barrier of all threads after an ``if`` in which bytes are accessed in a race, if it is proved so."""
        fault = refuted.fault if refuted.kind is FaultKind.RACE else None
        for change in barriers_after_branches(self.lines, fault):
            if self.proves(change):
                added = AddedLine((int(Op.BAR_SYNC), 0, 0, WARP), 0, (), change.source)
                return (Correction(change.repair, change.said, change.source, added=added),)
        return ()

    def _holds(self, repair: Repair) -> bool:
        """Whether the kernel is proved that is read again with a change of which its program does not show enough."""
        first = None
        if repair.kind is RepairKind.PHASES and repair.was < 0:
            first = self.lines.first_parities(self._program, repair)
        changes = chain(for_groups(self.lines, self._program, repair), with_masks(self.lines, self._program, repair))
        for lines in filter(None, changes) if first is None else ({},):
            if (again := self._with(lines, first)) is not None:
                proved = check(again.program, max_states=1).verdict is Verdict.PROVED
                return proved and not leaves_more(self._program, again.program)
        return False


def _without_item(program: Program, op: Operation) -> tuple[Operation, Access | None]:
    """An operation of whichever item, with its place."""
    if op[0] not in TOUCHES_MEMORY:
        return op, None
    return with_operand(with_operand(op, "item", -1), "access", -1), program.accesses[operand(op, "access")]


def _accessing(reading: KernelReading) -> set[int]:
    """The lines at which memory is accessed."""
    pairs = zip(reading.program.code, reading.lines, strict=True)
    return {line for code, lines in pairs for op, line in zip(code, lines, strict=True) if op[0] in TOUCHES_MEMORY}


def _does_less(before: Program, after: Program) -> bool:
    """Whether as many copies bring fewer bytes, or less is both brought and used: then a hang ends with the work.

    Where one role has an iteration too many, the others keep theirs. What is not copied is written.
    """
    (copies, nbytes, written, uses), (copies_now, nbytes_now, written_now, uses_now) = map(_work, (before, after))
    less = nbytes_now < nbytes or (not copies and written_now < written)
    if _told(after) < _told(before):
        return True
    return less and (uses_now < uses or (copies_now == copies and nbytes_now < nbytes))


def _told(program: Program) -> set[tuple[int, int]]:
    """The CTAs that write to another one, each with that one."""
    pairs = ((program.agents[n].cta, op) for n, code in enumerate(program.code) for op in code)
    writes = ((cta, program.accesses[operand(op, "access")].cta) for cta, op in pairs if op[0] in WRITES_MEMORY)
    return {(one, other) for one, other in writes if one != other}


def _work(program: Program) -> tuple[int, int, int, int]:
    """How many copies bring how many bytes, how much is written by others, and how many accesses use it."""
    copied = [operand(op, "bytes") for op in program.operations if op[0] == Op.TMA_LOAD]
    written = sum(op[0] in WRITES_MEMORY for op in program.operations) - len(copied)
    uses = sum(op[0] in TOUCHES_MEMORY for op in program.operations) - len(copied)
    return len(copied), sum(copied), written, uses - written * (not copied)


def _unused(program: Program) -> int:
    """How many barriers are initialised, and neither waited for nor signalled."""
    every = [(op[0] == Op.INIT, operand(op, "barrier")) for op in program.operations if op[0] in ON_BARRIER]
    return len({bar for init, bar in every if init} - {bar for init, bar in every if not init})


def _lines(
    kernel: KernelLines,
    refuted: Refutation,
    wait: tuple[int, int] | None,
    led_past: Sequence[BranchPast],
    asked: Program,
) -> Iterator[LineChange]:
    """The changes of lines that are tried: what was led past at times, numbers, waits that are left out or restart.

    ``wait``: the line and the barrier of a wait that returned with an earlier phase.
    """
    at_times = [past for past in led_past if past.agent in kernel.agents_at(kernel.instruction(past.past).line)]
    yield from not_past(kernel, at_times)
    yield from without_early_ends(kernel, refuted.fault)
    yield from numbers(kernel)
    yield from not_past(kernel, [past for past in led_past if past not in at_times])
    yield from tensor_waits(kernel)
    yield from one_lane(kernel, refuted.fault)
    if wait is not None:
        yield from carried(kernel, *wait)
    blocked = {each.barrier for each in refuted.deadlock.blocked} if refuted.deadlock is not None else set()
    for group in kernel.groups() if asked.coverage.blocked else ():
        if any(kernel.program.barrier_name(n) in blocked for n in group):
            for line in kernel.lines_of(PARITY_WAITS, group):
                yield from carried(kernel, line, min(group))


def hidden_in_kernel(kernel: EditableKernel, program: Program, refuted: Refutation, unit: Unit) -> Hidden | None:
    """What a hang hides: the kernel is read again with a number that its operations need, by which the hang is gone.

    What was not read because of the hang is read then.
    """
    lines = KernelLines(kernel, kernel.read(past_hangs=True))  # what did not come has no number
    waits = set(lines_of(program, refuted))
    for tried, change in enumerate(islice(numbers(lines), _MOST_NUMBERS)):
        unit(tried, 0)
        try:
            again = kernel.read(change.lines).program.with_strictness(program.strictness)
        except PipesimError:
            continue
        found = check(again, max_states=1)
        if any(each.deadlock and not waits.isdisjoint(lines_of(again, each)) for each in found.refutations):
            continue  # it hangs there still, or for the change
        for left in found.refutations[:1]:
            first = Correction(change.repair, change.said, f"{kernel.ptx}:{min(change.lines)}")
            blocked = again.coverage.blocked or again.coverage.stopped
            return Hidden(first, again, left, () if blocked else corrections(again, left, again, unit))
    return None


def computed_at(kernel: EditableKernel, fault: Fault) -> str:
    """The lines that compute the stage and parity of the wait that returned with an earlier phase, as a clause; "" if
    they are not known.
    """
    read = KernelLines(kernel, kernel.read())
    wait = read.wait_of(fault)
    lines = read.computing(wait[0]) if wait is not None else ()
    if wait is None or not lines:
        return ""
    which = "the wait" if fault.kind is FaultKind.STALE_WAIT else f"its wait at {read.places(wait[:1])}"
    return f"; stage and parity of {which} come from {read.places(lines)}"
