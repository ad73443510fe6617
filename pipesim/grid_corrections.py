"""Corrections of what CTAs do to words of global memory: which word, which value, and in which order with the data.

What is meant is read off the data: who reads an item after a wait has it from an agent that writes a word after the
item. In the program that is proved a word is barriers, which the values of one run have made; so a change is made of
what the roles record, of which there is another run then, with values of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby

from pipesim.errors import PipesimError
from pipesim.lang.global_words import GridProgram, Place, WordAccess
from pipesim.model.edits import Insertion, Listing, insert_operations, listing, reorder_operations, with_listings
from pipesim.model.groups import MEETINGS, READS_MEMORY, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import Op, Order, Scope, Space, operand, semantics, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import SourceInstruction
from pipesim.model.words import WordAct
from pipesim.prove.atomic_orders import judged
from pipesim.prove.repair.edits import apply_repair
from pipesim.prove.repair.kinds import NOWHERE, Ranked, Repair, RepairKind
from pipesim.prove.repair.sites import members

K = RepairKind
_MOST_OPERATIONS = 8_000  #: of a program of which accesses to words are corrected
_SHOWN = 4  #: values or words in a sentence
_LOCK = 0  #: the ``was`` of a write that gives a lock back
_ADDED = {True: (WordAct.WAIT, semantics(Order.ACQUIRE, Scope.GPU)),
          False: (WordAct.STORE, semantics(Order.RELEASE, Scope.GPU))}  # fmt: skip


def of_words(made: GridProgram) -> Iterator[Ranked]:
    """The corrections of accesses to words, with their ranks."""
    if made.instructions > _MOST_OPERATIONS:
        return
    known = _Handovers(made)
    data = dict.fromkeys(site for place in known.uses for site in (known.site(place),))
    for tile in dict.fromkeys(past.about for past in data):
        yield 7, Repair(K.TWO_SETS, "", tile, at=next(each for each in data if each.about == tile))
    for line, array in dict.fromkeys((known.site(place).line, known.array(place)) for place in known.words):
        here = [place for place in known.words if known.site(place).line == line]
        roles = known.roles(here)
        waits = {known.words[place].act is WordAct.WAIT for place in here}
        takes = any(known.words[place].spins for place in here)
        for wait in waits:
            at = SourceInstruction(int(Op.WAIT if wait else Op.ARRIVE), line, array)
            barrier = len(waits) == 2
            for past in (*data, *known.meetings) if not takes else ():
                moved = Repair(K.WORD_MOVE, roles, array, int(barrier), at=at, past=past)
                if any(_is_late(made.recorded, agent, moved) for agent in members(made.recorded, roles)):
                    yield 1 + (past in known.meetings), moved
                if barrier and wait and past.op in READS_MEMORY:
                    yield 7, Repair(K.MEET_AGAIN, roles, array, at=at, past=past)
            if said := _difference(known, known.meant(at, roles)):
                kind, meant = K.AWAITED if wait or takes else K.GIVEN, NOWHERE._replace(about=said)
                yield 2, Repair(kind, roles, array, int(takes), at=at, past=meant)
            if not barrier:
                yield from ((3, Repair(K.VALUE, roles, array, by, at=at)) for by in (1, -1))
    for past in data:
        roles = known.roles(place for place in known.uses if known.site(place) == past)
        for wait in (True, False):
            for array in dict.fromkeys(known.array_of[word] for _, word, _ in known.missing(past, wait=wait)):
                alone = not any(known.array(p) == array and (a.act is WordAct.WAIT) is wait
                                for p, a in known.words.items())  # fmt: skip
                yield 3 if alone else 7, Repair(K.WORD_ADDED, roles, array, int(wait), at=past)
    for place, word, _ in known.not_given_back():
        past = known.site(place)
        yield 2 + (past in data), Repair(K.WORD_ADDED, known.roles([place]), known.array_of[word], was=_LOCK, at=past)


def changed_grid(made: GridProgram, repair: Repair, ctas: int, resident: int) -> Program | None:
    """The program of a grid in which its roles do something else; None if they do not, or if that is not known."""
    try:
        base, edited = _with_change(made, repair) or (made, apply_repair(made.editable(), repair))
        if edited is None or base.edited(edited, made.turns, resident) is None:
            return None
        program = edited
        return judged(lambda turns, most: base.edited(program, turns, most or resident) or base, made.turns, ctas)
    except PipesimError:
        return None


def ordered_grid(
    make: Callable[[tuple[int, ...], int], GridProgram], repair: Repair, turns: tuple[int, ...], ctas: int
) -> Program | None:
    """The program of a grid in which answers of atomics decide what CTAs do, with more order in a CTA, which changes
    no answer; None of other changes.
    """

    def ordered(turns: tuple[int, ...], resident: int) -> GridProgram:
        made = make(turns, resident)
        edited = apply_repair(made.editable(), repair)
        return (edited and made.edited(edited, turns, resident)) or made

    return judged(ordered, turns, ctas) if repair.kind in (K.STRONGER, K.SYNC) else None


def _with_change(made: GridProgram, repair: Repair) -> tuple[GridProgram, Program] | None:
    """What the roles do with a change of it, and the same to be edited no more; None if it changes nothing."""
    known, program = _Handovers(made), made.editable()
    agents = members(made.recorded, repair.role)
    match repair.kind:
        case K.VALUE:
            was = {place: known.words[place] for place in known.at_line(repair.at, repair.role)}
            made = made.with_accesses({p: replace(each, value=each.value + repair.value) for p, each in was.items()})
        case K.AWAITED | K.GIVEN:
            made = made.with_accesses(known.meant(repair.at, repair.role))
        case K.WORD_MOVE:
            program = with_listings(program, {n: _moved(program, made.recorded, n, repair) for n in agents})
        case K.WORD_ADDED:
            act, how = _ADDED[bool(repair.value)]
            of_lock = [each for each in known.not_given_back() if known.site(each[0]) == repair.at]
            missing = of_lock if repair.was == _LOCK else known.missing(repair.at, wait=bool(repair.value))
            new = {place: WordAccess(known.name_of[word], word, known.size_of[word], act, value, how)
                   for place, word, value in missing
                   if known.array_of[word] == repair.group}  # fmt: skip
            made = replace(made, more=tuple(dict.fromkeys(new.values())))
            program = _with_new(made, new, after=not repair.value)
        case K.MEET_AGAIN:
            made, program = _meeting_again(made, known, repair)
        case K.TWO_SETS:
            program = _in_two_sets(program, repair.group)
        case _:
            return None
    if repair.kind in (K.VALUE, K.AWAITED, K.GIVEN):
        program = made.editable()
    return made, program


# what is handed over


class _Handovers:
    """The accesses to words of a grid, and to the data that is handed over by them."""

    def __init__(self, made: GridProgram) -> None:
        self.words, self._program = made.memory.words, made.recorded
        self._first = made.memory.first_values
        known = list(self.words.values())
        self.name_of = {each.offset: each.name for each in known}
        self.size_of = {each.offset: each.size for each in known}
        self.array_of = {each.offset: each.name.partition("[")[0] for each in known}
        self.uses: dict[Place, tuple[int, int]] = {}  # of data: first cell and the end
        self._sources: defaultdict[Place, list[Place]] = defaultdict(list)  # what others do before it
        self._targets: defaultdict[Place, list[Place]] = defaultdict(list)
        self._accesses: defaultdict[int, list[int]] = defaultdict(list)  # to words, by agent
        for agent, pc in sorted(self.words):
            self._accesses[agent].append(pc)
        self._read_data()

    def _read_data(self) -> None:
        program, items, before = self._program, defaultdict[int, list[Place]](list), dict[Place, int]()
        for agent, code in enumerate(program.code):
            last: dict[tuple[int, int], int] = {}  # item of bytes that the agent has written
            for pc, op in enumerate(code):
                if op[0] in TOUCHES_MEMORY and program.accesses[operand(op, "access")].space is Space.GLOBAL:
                    cells = self.uses[agent, pc] = program.cells[operand(op, "access")]
                    item = operand(op, "item")
                    items[item].append((agent, pc))
                    if op[0] in WRITES_MEMORY:
                        before[agent, pc] = last.get(cells, -1)
                        last[cells] = item
        for place, (first, end) in self.uses.items():
            op = program.code[place[0]][place[1]]
            reads = op[0] in READS_MEMORY
            wanted = operand(op, "item") if reads else before[place]
            for other in items[wanted] if wanted >= 0 else ():
                begin, stop = self.uses[other]
                writes = program.code[other[0]][other[1]][0] in WRITES_MEMORY
                if (reads or other[0] != place[0]) and writes is reads and begin < end and first < stop:
                    self._sources[place].append(other)
                    self._targets[other].append(place)

    @cached_property
    def meetings(self) -> tuple[SourceInstruction, ...]:
        """Where warps of a CTA meet that access words."""
        code = self._program.code
        places = ((n, pc) for n in self._accesses for pc, op in enumerate(code[n]) if op[0] in MEETINGS)
        return tuple(dict.fromkeys(map(self.site, places)))

    def site(self, place: Place) -> SourceInstruction:
        """The instruction there; of an access to a word without what it is about."""
        return self._program.instructions[place[0]][place[1]]

    def cta(self, agent: int) -> int:
        """The CTA of an agent."""
        return self._program.agents[agent].cta

    def array(self, place: Place) -> str:
        """The array of the word that is accessed there."""
        return self.array_of[self.words[place].offset]

    def roles(self, places: Iterable[Place]) -> str:
        """The roles that do something at these places, with commas between."""
        return ",".join(dict.fromkeys(self._program.agents[agent].role for agent, _ in places))

    def at_line(self, at: SourceInstruction, roles: str) -> list[Place]:
        """The waits at a line, or the writes to words, of these roles."""
        agents = members(self._program, roles)
        return [(n, pc) for (n, pc), each in self.words.items()
                if n in agents and self._program.line(n, pc) == at.line
                and (each.act is WordAct.WAIT) is (at.op == Op.WAIT)]  # fmt: skip

    def _beside(self, place: Place, *, wait: bool) -> Place:
        """The place, or where another warp of the CTA does the same with the item, if that one waits or writes."""
        agents, item = self._program.agents, self._item(place)
        able = {n for (n, _), each in self.words.items() if (each.act is WordAct.WAIT) is wait}
        others = (other for other in self.uses if other[0] in able and self._item(other) == item
                  and agents[other[0]].cta == agents[place[0]].cta)  # fmt: skip
        return place if place[0] in able else next(others, place)

    def _item(self, place: Place) -> tuple[int, int]:
        op = self._program.code[place[0]][place[1]]
        return op[0], operand(op, "item")

    def _nearest(self, place: Place, array: str, *, wait: bool) -> WordAccess | None:
        """The next write to a word after a use of data, or the last wait before it: of this array, if any is."""
        agent, pc = self._beside(place, wait=wait)
        places = (n for other, n in (*self.words, *self.uses) if other == agent)
        order = sorted((n for n in places if n != pc and (n < pc) is wait), reverse=wait)
        found = [n for n in order if (agent, n) in self.words and (self.words[agent, n].act is WordAct.WAIT) is wait]
        found = [n for n in found if self.array((agent, n)) == array] or found
        used = next((n for n in order if (agent, n) in self.uses and found and (n < found[0]) is wait), -1)
        slot = f"[{self._slot(place)}]"  # of several in a row that of the slot
        row = (n for n in found if (n > used) is wait and self.words[agent, n].name.endswith(slot))
        return self._made((agent, next(row, found[0]))) if found else None

    def _slot(self, place: Place) -> int:
        return self._program.slot_of(operand(self._program.code[place[0]][place[1]], "access"))

    def _made(self, place: Place) -> WordAccess:
        """The access; one that adds with the value that the word has when all have added as often."""
        access, (agent, pc) = self.words[place], place
        if access.act is not WordAct.ADD:
            return access
        mine = [n for n in self._accesses[agent] if n <= pc and self.words[agent, n].offset == access.offset]
        adds: defaultdict[int, list[int]] = defaultdict(list)
        for (other, _), each in sorted(self.words.items()):
            if each.offset == access.offset and each.act is WordAct.ADD:
                adds[other].append(each.value)
        often = sum(self.words[agent, n].act is WordAct.ADD for n in mine)
        whole = self._first.get(access.offset, 0) + sum(sum(each[:often]) for each in adds.values())
        return replace(access, value=whole)

    def _needed(self, places: Iterable[Place], array: str, *, wait: bool) -> dict[int, int]:
        """The words that uses of data have to wait for, or by which they publish, with their values."""
        found: dict[int, int] = {}
        for place in places:
            for other in (self._sources if wait else self._targets)[place]:
                access = self._nearest(other, array, wait=not wait)
                if access is not None:
                    found[access.offset] = max(access.value, found.get(access.offset, 0))
        return found

    def meant(self, at: SourceInstruction, roles: str) -> dict[Place, WordAccess]:
        """The accesses at a line that are to another word, or with another value, than the data asks for."""
        found: dict[Place, WordAccess] = {}
        wait, mine = at.op == Op.WAIT, self.at_line(at, roles)
        for run, uses in self._runs(mine, wait=wait):
            needed = self._needed(uses, at.about, wait=wait)
            rest = [word for word in needed if word not in {self.words[place].offset for place in run}]
            others = sum(self.words[place].offset not in needed for place in run)
            for place in run if len(rest) in (0, others) else ():
                was = self.words[place]
                word = was.offset if was.offset in needed or not rest else rest.pop(0)
                if word in needed:
                    found[place] = self._with_word(was, word, needed[word])
        for _, several in groupby(mine, key=lambda place: place[0]):  # also where the data does not tell
            order = list(several)
            words = [found[place].offset if place in found else -1 for place in order]
            for period in range(1, len(words)):
                if -1 not in words[:period] and all(w in (-1, words[n % period]) for n, w in enumerate(words)):
                    every = ((place, words[n % period]) for n, place in enumerate(order) if place not in found)
                    found |= {p: self._with_word(self.words[p], word, self.words[p].value) for p, word in every}
                    break
        return found | {place: now for place, now in self._of_locks() if place in mine}

    def _kept(self) -> Iterator[tuple[Place, int, int]]:
        """Where an agent takes a lock and does not give it back, up to where, and where it writes a word of that array
        meanwhile which gives back no other lock, -1 if nowhere.
        """
        for agent, mine in self._accesses.items():
            done = {pc: self.words[agent, pc] for pc in mine}
            free = {(each.offset, each.compare) for each in done.values() if each.spins}
            for pc in (pc for pc in mine if done[pc].spins):
                taken, stop = done[pc], len(self._program.code[agent])
                end = next((n for n in mine if n > pc and done[n].spins and done[n].offset == taken.offset), stop)
                given = [n for n in mine if pc < n < end and done[n].act.writes and not done[n].spins]
                if all((done[n].offset, done[n].value) != (taken.offset, taken.compare) for n in given):
                    array = [n for n in given if self.array_of[done[n].offset] == self.array_of[taken.offset]]
                    yield (agent, pc), end, next((n for n in array if (done[n].offset, done[n].value) not in free), -1)

    def _of_locks(self) -> Iterator[tuple[Place, WordAccess]]:
        """The writes that may be meant to give a lock back, as they do; or the lock taken that is given back."""
        for place, _, at in self._kept():
            taken, given = self.words[place], self.words.get((place[0], at))
            if given is not None:
                yield (place[0], at), self._with_word(given, taken.offset, taken.compare or 0)
                yield place, self._with_word(taken, given.offset, taken.value)

    def not_given_back(self) -> list[tuple[Place, int, int]]:
        """The last use of data while a lock is held, and the last meeting after that, with its word and value."""
        found = []
        for (agent, pc), end, _ in self._kept():
            code = self._program.code[agent]
            used = max((n for other, n in self.uses if other == agent and pc < n < end), default=-1)
            meets = max((n for n in range(used, end) if code[n][0] in MEETINGS), default=-1) if used >= 0 else -1
            taken = self.words[agent, pc]
            found += [((agent, n), taken.offset, taken.compare or 0) for n in (meets, used) if n >= 0]
        return found

    def _with_word(self, was: WordAccess, word: int, value: int) -> WordAccess:
        value = was.value if was.act is WordAct.ADD else value
        return replace(was, offset=word, name=self.name_of[word], size=self.size_of[word], value=value)

    def _runs(self, places: Sequence[Place], *, wait: bool) -> Iterator[tuple[list[Place], list[Place]]]:
        """Accesses to words in a row, with the uses of data after them, or before, up to the next of that sort."""
        for agent, mine in groupby(places, key=lambda place: place[0]):
            turn = [pc for pc in self._accesses[agent] if (self.words[agent, pc].act is WordAct.WAIT) is wait]
            uses = [pc for n, pc in self.uses if n == agent]
            runs: dict[tuple[int, ...], list[Place]] = {}
            for _, pc in mine:
                far = sorted((n for n in uses if (n > pc) is wait), reverse=not wait)
                beyond = (n for n in turn if far and ((n > far[0]) is wait) and n != far[0])
                edge = (min if wait else max)(beyond, default=-1)
                near = tuple(n for n in far if edge < 0 or (n < edge) is wait)
                runs.setdefault(near, []).append((agent, pc))
            yield from ((run, [(agent, pc) for pc in near]) for near, run in runs.items())

    def missing(self, at: SourceInstruction, *, wait: bool) -> list[tuple[Place, int, int]]:
        """The uses of data at an instruction before which nothing waits, or after which nothing is written, each with
        the word and the value.
        """
        found = []
        for place in (place for place in self.uses if self.site(place) == at):
            mine = [(self.words[place[0], pc]) for pc in self._accesses[place[0]] if (pc < place[1]) is wait]
            for word, value in self._needed([place], "", wait=wait).items():
                if not any(each.offset == word and (each.act is WordAct.WAIT) is wait
                           and (each.value >= value or not wait) for each in mine):  # fmt: skip
                    found.append((place, word, value))
        return found


def _difference(known: _Handovers, meant: dict[Place, WordAccess]) -> str:
    """What is waited for, or written, instead of what, "" if nothing is."""
    changed = [place for place, now in meant.items() if now != known.words[place]]
    if not changed:
        return ""
    by = {now.value - known.words[place].value for place, now in meant.items()}
    same = all(meant[place].offset == known.words[place].offset for place in changed)
    array = known.array_of[meant[changed[0]].offset]
    if same and len(by) == 1:
        (step,) = by
        return f"a value of {array} that is {abs(step):,} {'larger' if step > 0 else 'smaller'}"
    mine = {place: now for place, now in meant.items() if place[0] == changed[0][0]}

    def several(accesses: Iterable[WordAccess]) -> str:
        said = [f"{each.value:,}" if same else each.name + f" ({each.value:,})" * (by != {0}) for each in accesses]
        said = said if same and len(set(said)) > 1 else list(dict.fromkeys(said))
        return ", ".join([*said[:_SHOWN], *["…"] * (len(said) > _SHOWN)])

    now, was = several(mine.values()), several(known.words[place] for place in mine)
    alike = len({(now.name, now.value) for now in meant.values()}) == 1
    where = f", in CTA {known.cta(changed[0][0])}" if len({place[0] for place in changed}) > 1 and not alike else ""
    turn = " in turn" * ("," in now)
    return f"{f'the values {now} of {array}' if same else now}{turn}, not {was}{where}"


# edits


def _is_late(program: Program, agent: int, repair: Repair) -> bool:
    """True if the agent reaches the data first before its first wait, or last after its last write."""
    lines = [program.line(agent, pc) for pc in range(len(program.code[agent]))]
    if not {repair.at.line, repair.past.line} <= set(lines):
        return False
    if repair.at.op == Op.WAIT:
        return lines.index(repair.past.line) < lines.index(repair.at.line)
    return lines[::-1].index(repair.past.line) < lines[::-1].index(repair.at.line)


def _moved(program: Program, recorded: Program, agent: int, repair: Repair) -> Listing:
    """All that is at the line of a wait before the data, all at that of a write after it."""
    before, step = listing(program, agent), 1 if repair.at.op == Op.WAIT else -1
    order: list[int] = []
    since, moved = -1, False
    for pc in range(len(before.code))[::step]:
        line = recorded.line(agent, pc)
        if line == repair.past.line and (since < 0 or moved):
            since, moved = len(order), False
        if line == repair.at.line and since >= 0:
            order.insert(since, pc)
            since, moved = since + 1, True
        else:
            order.append(pc)
    return reorder_operations(before, order[::step])


def _with_new(made: GridProgram, new: dict[Place, WordAccess], *, after: bool) -> Program:
    program, by_agent = made.editable(), defaultdict[int, list[Insertion]](list)
    for (agent, pc), access in new.items():
        by_agent[agent].append(Insertion(pc + after, made.operation(access), program.lines[agent][pc]))
    return with_listings(program, {n: insert_operations(listing(program, n), each) for n, each in by_agent.items()})


def _meeting_again(made: GridProgram, known: _Handovers, repair: Repair) -> tuple[GridProgram, Program]:
    """What is at the line of a barrier of the grid once more after the data that is read after it."""
    program, new = made.editable(), dict[int, Listing]()
    waits = {known.words[place].offset: known.words[place] for place in reversed(known.at_line(repair.at, ""))}
    most = 2 * len(known.at_line(repair.at, ""))
    made = replace(made, more=tuple(replace(w, value=w.value * n) for w in waits.values() for n in range(1, most + 1)))
    program = made.editable()
    accesses = list(made.accesses)
    for agent in members(made.recorded, repair.role):
        before, block, last = listing(program, agent), list[int](), -1
        order: list[int] = []
        for pc in (*range(len(before.code)), -1):
            line = made.recorded.line(agent, pc) if pc >= 0 else repair.at.line
            if line == repair.at.line and last >= 0:
                order[last:last] = block
                last = -1
            if line == repair.at.line:
                block = [*block, pc] if order and order[-1:] == block[-1:] else [pc]
            order += [pc] * (pc >= 0)
            if line == repair.past.line:
                last = len(order)
        repeated = reorder_operations(before, order)
        turns, code = Counter[int](), list(repeated.code)
        for n, op in enumerate(code):
            bar = operand(op, "barrier") - len(made.recorded.barriers) if op[0] == Op.WAIT else -1
            if bar >= 0 and accesses[bar].offset in waits:
                word = accesses[bar].offset
                turns[word] += 1
                code[n] = made.operation(replace(waits[word], value=waits[word].value * turns[word]))
        new[agent] = Listing(tuple(code), repeated.lines)
    return made, with_listings(program, new)


def _in_two_sets(program: Program, name: str) -> Program:
    """Every second use of each of the bytes of a tile elsewhere."""
    tile = next(each for each in program.tiles if each.name == name)
    places = [n for n, each in enumerate(program.accesses) if each.space is Space.GLOBAL
              and tile.offset <= each.offset < tile.offset + tile.nbytes * tile.slots]  # fmt: skip
    end = max(each.offset + each.nbytes for each in program.accesses if each.space is Space.GLOBAL)
    there = {n: len(program.accesses) + k for k, n in enumerate(places)}
    new = (replace(program.accesses[n], offset=program.accesses[n].offset - tile.offset + end) for n in places)
    wide = replace(program, accesses=(*program.accesses, *new))
    found: dict[int, Listing] = {}
    for agent, before in enumerate(map(listing, [program] * len(program.code), range(len(program.code)))):
        turns, code = Counter[tuple[int, int]](), list(before.code)
        for pc, op in enumerate(code):
            if op[0] in TOUCHES_MEMORY and (at := operand(op, "access")) in there:
                turns[before.lines[pc], at] += 1
                code[pc] = with_operand(op, "access", there[at]) if turns[before.lines[pc], at] % 2 == 0 else op
        found[agent] = Listing(tuple(code), before.lines)
    return with_listings(wide, found)
