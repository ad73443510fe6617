"""What of a formula can be carried out when, if the order in which its copy engines are used is not known before.

An instruction can be carried out as soon as the uses that it depends on have been granted: of each user the first so
many, the same under every profile. All instructions that depend on the same uses are a block.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipesim.timed.recurrence.formula import READ, VALUES, WRITTEN, Do, Formula, Instruction

Granted = tuple[int, ...]  #: of each user how many of its uses have been granted


@dataclass(frozen=True)
class CopyUse:
    """One use of a copy engine: the value of its time, and the other operands of its instruction."""

    when: int
    engine: int
    landing: int
    price: int

    def instruction(self, *, cold: bool) -> Instruction:
        """What it does; ``cold``: it is the first of its engine."""
        return (Do.COPY, self.when, self.engine, self.landing, self.price, cold)


@dataclass
class FormulaBlock:
    """Instructions that can be carried out together, and by user how many uses get their time by them."""

    instructions: list[Instruction] = field(default_factory=list)
    timed: Counter[int] = field(default_factory=Counter)


class QueuePlan:
    """The blocks of a formula by what must have been granted before, and the uses of each user in its order.

    ``users``: the agents that use copy engines. ``values``: how many there are, with those of uses. ``shared``: those
    of more than one block, of uses, and of the result.
    """

    def __init__(self, formula: Formula) -> None:
        instructions = _without_order(formula)
        self.users = sorted({each[1] for each in instructions if each[0] == Do.COPY})
        self.uses: list[list[CopyUse]] = [[] for _ in self.users]
        self.blocks: dict[Granted, FormulaBlock] = defaultdict(FormulaBlock)
        self.values = formula.values
        self._none: Granted = (0,) * len(self.users)
        self._needs: dict[int, Granted] = {}  # of each value as it is now
        self._changes = _written_again(formula, instructions)
        for each in instructions:
            if each[0] == Do.COPY:
                self._copy(*each[1:])
            else:
                self._other(each)
        self.shared = self._shared(formula)

    def _copy(self, agent: int, engine: int, landing: int, price: int, _: int) -> None:
        """A use of a copy engine: its time is known when that of its agent is, its landing when it is granted."""
        user, granted = self.users.index(agent), self._needs.get(agent, self._none)
        self.uses[user].append(CopyUse(self._saved(agent), engine, landing, price))
        self.blocks[granted].timed[user] += 1
        self._needs[landing] = (*granted[:user], len(self.uses[user]), *granted[user + 1 :])

    def _other(self, instruction: Instruction) -> None:
        """An instruction is carried out once all values that it reads are there."""
        what, *operands = instruction
        read = [place for place in READ[Do(what)] if operands[place] >= 0]
        written = [operands[place] for place in WRITTEN[Do(what)]]
        granted = self._all(self._needs.get(operands[place], self._none) for place in read)
        for place in read:
            value = operands[place]
            if value in self._changes and value not in written and self._needs.get(value, self._none) != granted:
                operands[place] = self._saved(value)  # by then it may be another one
        self.blocks[granted].instructions.append((what, *operands))
        self._needs.update(dict.fromkeys(written, granted))

    def _saved(self, value: int) -> int:
        """A value as it is now, as one that stays."""
        saved, granted = self.values, self._needs.get(value, self._none)
        self.values += 1
        self.blocks[granted].instructions.append((Do.SAVE, saved, value))
        self._needs[saved] = granted
        return saved

    def _all(self, several: Iterable[Granted]) -> Granted:
        """What is granted when each of these is."""
        return tuple(map(max, zip(self._none, *several, strict=True)))

    def _shared(self, formula: Formula) -> set[int]:
        where: dict[int, set[Granted]] = defaultdict(set)
        for granted, block in self.blocks.items():
            for what, *operands in block.instructions:
                for place in VALUES[Do(what)]:
                    where[operands[place]].add(granted)
        used = {use.when for uses in self.uses for use in uses}
        return formula.results | used | {value for value, blocks in where.items() if len(blocks) > 1}


def _without_order(formula: Formula) -> list[Instruction]:
    """The instructions of a formula without those that say in which order copy engines are used."""
    return formula.all_read([each for each in formula.instructions if each[0] != Do.IN_TURN or not each[4]])


def _written_again(formula: Formula, instructions: Iterable[Instruction]) -> set[int]:
    """Values that are another time later."""
    times = Counter(range(formula.agents))
    for what, *operands in instructions:
        times.update({operands[place] for place in WRITTEN[Do(what)]})
    return {value for value, count in times.items() if count > 1}
