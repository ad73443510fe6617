"""What data decides for a whole CTA: votes of its threads, and what these make alike of words that all of them read.

Each is a free input: the kernel does what a run of it does for some answers. Which data leads to them is not asked, so
what is proved holds for all of them, and what fails with some of them may never happen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pipesim.ptx.emulate.memory import Bytes
from pipesim.ptx.emulate.values import PerLane, Uniform, Unknown, Value, join_lanes, lanes_of, leaf_of, made_alike
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.varying import FreeInputs, identity
from pipesim.ptx.launch.values import ANSWERS_OF_DATA, Launch
from pipesim.ptx.text.instruction import Immediate, Instruction, Register

#: Answers at one place, of one agent or named barrier, that are free: after as many more the greatest is to end a loop.
MOST_LAPS = 8
_MOST_ANSWERS = 1 << 10  #: of one range


def is_data(each: Instruction) -> bool:
    """Whether a floating-point number is loaded."""
    return each.modifiers[-1].startswith("f")


class DataAnswers:
    """The answers of one run, in the order in which they are asked for. ``asked``: where."""

    def __init__(self, launch: Launch, inputs: FreeInputs) -> None:
        self._inputs = inputs
        self._chosen = {(name, n): value for name, n, value in launch.contents if name.startswith(ANSWERS_OF_DATA)}
        self._numbers: Counter[str] = Counter()
        self._often: Counter[tuple[int, int, int]] = Counter()
        self.asked: set[int] = set()
        self._terms: dict[object, int] = {}  #: of values that are the same in all threads
        self._decided: dict[int, int] = {}  #: predicates of these, by their terms

    def answer(self, position: int, high: int, who: tuple[int, int]) -> int:
        """From 0 to ``high``, and 0 where nothing else is chosen. ``who``: whose laps are counted."""
        self.asked.add(position)
        self._often[position, *who] += 1
        often = self._often[position, *who]
        name = f"{ANSWERS_OF_DATA}_to_{high}" if high > 1 else ANSWERS_OF_DATA
        index, self._numbers[name] = self._numbers[name], self._numbers[name] + 1
        if often > MOST_LAPS or index >= _MOST_ANSWERS:
            return 0 if often <= 2 * MOST_LAPS else high
        usual = (0,) * _MOST_ANSWERS
        array = FreeArray(name, 0, 1, high, _MOST_ANSWERS, usual, size=1, place=(f"{name}:", 0))
        return self._inputs.element(array, index, self._chosen.get((name, index), 0))

    def loaded(self, memory: Bytes, at: tuple[int, int, int], found: Value) -> Value:
        """What is loaded of shared memory, ``at`` a CTA's bytes: the same for all until these are stored again."""
        if not isinstance(found, Unknown):
            return found
        key = at[1:]
        if key not in memory.seen:
            memory.seen[key] = Uniform(self._terms, (at, len(self._terms)), found)
        return memory.seen[key]

    def given(self, each: Instruction, address: int, found: Value) -> Value:
        """What is loaded of memory that the launch could give: of floating-point numbers it need not."""
        leaf = leaf_of(found)
        if leaf is None or not leaf.option:
            return found
        found = Unknown(replace(leaf, option="")) if is_data(each) else found
        return Uniform(self._terms, ("given", each.modifiers[-1], identity(address)), found)

    def computed(self, what: object, unknown: Unknown, *operands: Value) -> Value:
        """The result of an instruction of which nothing is known but what it is made of."""
        return made_alike(self._terms, unknown, what, operands)

    def decided(self, p: Value, mask: int, position: int, cta: int, *, ask: bool) -> Value:
        """A predicate, where data decides it for all threads; ``ask``: it may be any, else what it was before."""
        if p.__class__ is Uniform:
            if ask and p.term not in self._decided and not p.leaf.option:
                self._decided[p.term] = self.answer(position, 1, (-2, cta))
            return self._decided.get(p.term, p)
        if p.__class__ is PerLane and any(each.__class__ is Uniform for each in p.each):
            each = [self.decided(v, 1, position, cta, ask=ask) if mask >> n & 1 else 0 for n, v in enumerate(p.each)]
            return join_lanes(mask, lanes_of(each), p)
        return p

    def stored(self, each: Instruction, uses: Uses, body: Sequence[Instruction], value: Value, agent: int) -> Value:
        """What one thread stores that is one of two constants; of any other ``value`` nothing is known."""
        written = each.operands[1]
        name = written.name if isinstance(written, Register) else ""
        makers = [one for one in body if name in uses.writes[one.position]]
        if len(makers) != 1 or makers[0].opcode != "selp" or makers[0].guard is not None:
            return value
        first, second = makers[0].operands[1:3]
        if not isinstance(first, Immediate) or not isinstance(second, Immediate):
            return value
        return second.value + (first.value - second.value) * self.answer(each.position, 1, (-1, agent))
