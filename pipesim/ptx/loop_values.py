"""The condition of a branch as the source writes it, and the variables of the loops around it in an iteration.

PTX has no names, so the text is the evidence: its loops around the place of the branch, and their first values and
steps. A variable is named if the branch is in as many loops, and one register had its values in every iteration.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from pipesim.ptx.emulate.constants import special_register
from pipesim.ptx.emulate.values import lanes_in, of_lane
from pipesim.ptx.flow.graph import Loop
from pipesim.ptx.launch.values import Number
from pipesim.ptx.names.resolve import Resolver, resolver_of
from pipesim.ptx.prepare import Kernel
from pipesim.ptx.source_files import HeadingText, SourceFiles
from pipesim.ptx.text.instruction import Frame, Instruction
from pipesim.ptx.text.locations import is_library
from pipesim.ptx.text.operands import binary

_MOST_CHARACTERS = 48  #: of a condition that is repeated in a sentence
_DEEPEST = 20  #: names made of names
_SPECIAL = {"threadIdx": "tid", "blockIdx": "ctaid", "blockDim": "ntid", "gridDim": "nctaid",
            "program_id": "ctaid", "num_programs": "nctaid"}  # fmt: skip

_PLAIN = (  # what represents what, so that an expression of C++, or of kernels in Python, can be computed
    (re.compile(r"\bstatic_cast\s*<[\w\s:]+>|(?<=\d)[uUlL]+\b"), ""), (re.compile(r"!(?!=)"), " not "),
    (re.compile(r"&&"), " and "), (re.compile(r"\|\|"), " or "), (re.compile(r"(?<!/)/(?!/)"), "//"),
    (re.compile(r"\b\w+\.(program_id|num_programs)\((?:axis=)?([012])\)"), r"\1_\2"),
    (re.compile(r"\b(\w+Idx|\w+Dim)\.([xyz])"), r"\1_\2"),
)  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_LONGEST = 200  #: characters of an expression that is computed
_TOO_LARGE = 1 << 64

Values: TypeAlias = Callable[[str], int | None]  #: of a name in the source, ``blockIdx_x`` for ``blockIdx.x``


class SaidBranch(NamedTuple):
    """``condition`` with its ``outcome``, "" if that is not certain, and what the variables were."""

    condition: str = ""
    outcome: bool = False
    values: tuple[tuple[str, int], ...] = ()


@dataclass
class _Counted:
    """A loop of a kernel that may be one of the source's: the values of its variable, and the registers that agree."""

    heading: HeadingText
    place: Frame
    registers: frozenset[int]
    now: dict[int, tuple[int, int]] = field(default_factory=dict)  #: of each agent, and the step
    came_again: bool = False


class BranchTrips:
    """Which iterations of the loops around a branch the agents were in when they came there."""

    def __init__(self, kernel: Kernel, branch: Instruction, loops: Sequence[Loop]) -> None:
        """``loops``: those around the branch, the innermost first."""
        self._kernel, self._loops, self._graph = kernel, loops[::-1], kernel.code.regions.graph
        sources = kernel.module.sources
        self._source = resolver_of(sources) if sources is not None else Resolver(SourceFiles({}))
        self._frames = branch.source.frames if branch.source is not None else ()
        self._depth = max((n for n, each in enumerate(self._frames) if not is_library(each.file)), default=-1)
        self._texts: list[tuple[HeadingText, Frame]] = []
        self._heading: HeadingText | None = None
        for n, frame in enumerate(self._frames):
            at, headings = self._source.headings(frame)
            of = [each for each in headings if each.head[0] <= at < each.head[1]]
            self._heading = max(of, default=None) if n == self._depth else self._heading
            around = [each for each in headings if each.loop and (each in of or each.body[0] <= at < each.body[1])]
            self._texts += [(each, frame) for each in sorted(around)]
        self._fits = len(self._texts) == len(loops)
        block, inner = self._graph.block_of[branch.position], loops[0] if loops else None
        self._own = self._heading is not None and self._heading.loop  #: it decides about a loop itself
        self._next = self._own and inner is not None and block in inner.backs  #: about the next iteration
        self._fits &= not self._own or self._next or (inner is not None and block == inner.header)
        self._cluster: Any = None
        self._counted: list[_Counted] = []

    def watches(self) -> Iterator[tuple[int, Callable[[Any], None]]]:
        """What is called where, so that iterations are counted."""
        for n, loop in enumerate(self._loops if self._fits else ()):
            for before in self._graph.blocks[loop.header].predecessors:
                last = self._graph.blocks[before].end - 1
                falls = self._kernel.function.body[last].opcode != "bra"
                yield last + falls, partial(self._comes, n=n, back=before in loop.backs)

    def _counting(self, cluster: Any) -> list[_Counted]:
        """The loops in this run of the kernel."""
        if cluster is not self._cluster:
            self._cluster, self._counted, code = cluster, [], self._kernel.code
            for loop, text in zip(self._loops, self._texts if self._fits else (), strict=False):
                parts = [self._graph.blocks[each] for each in loop.blocks]
                written = {each for b in parts for at in range(b.first, b.end) for each in code.regions.uses.writes[at]}
                registers = frozenset(map(code.register, written)) if text[0].variable else frozenset()
                self._counted.append(_Counted(*text, registers))
        return self._counted

    def _comes(self, warp: Any, n: int, *, back: bool) -> None:
        """A warp is before the first iteration of a loop, or at the end of one."""
        loop = self._counting(warp.cluster)[n]
        if not loop.registers:
            return
        known = self._values(warp, warp.mask, loop.place, self.trip(warp))
        value, step = loop.now.get(warp.agent, (None, None))
        if back:
            value, loop.came_again = value + step if value is not None and step is not None else None, True
        else:
            value, step = value_of(loop.heading.start, known), value_of(loop.heading.step, known)
        if value is None or step is None:
            loop.registers = frozenset()
            return
        loop.now[warp.agent] = value, step
        each_lane = [
            (register, of_lane(warp.R[register], at)) for register in loop.registers for at in lanes_in(warp.mask)
        ]
        loop.registers -= {at for at, held in each_lane if not isinstance(held, int) or (held - value) % (1 << 32)}

    def _values(self, warp: Any, lanes: int, place: Frame, trip: Mapping[str, int]) -> Values:
        """Of names: those of an iteration, of the launch, and what the text makes of others."""
        given = {each.name: each.content for each in self._kernel.launch.parameters}
        left, lane = _DEEPEST, (lanes & -lanes).bit_length() - 1

        def of(name: str) -> int | None:
            nonlocal left
            base, _, axis = name.rpartition("_")
            if name in trip:
                return trip[name]
            if base in _SPECIAL:
                special = f"{_SPECIAL[base]}.{'xyz'['012xyz'.index(axis) % 3]}"
                return int(of_lane(special_register(warp.cluster, warp.cta, warp.number, special), lane))
            if isinstance(content := given.get(name), Number):
                return content.value if isinstance(content.value, int) else None
            left -= 1
            return value_of(self._source.definition(name, place), of) if left > 0 else None

        return of

    def trip(self, warp: Any) -> dict[str, int]:
        """What the variables are now, as far as it is known yet."""
        counted = self._counting(warp.cluster)
        values = [(each.heading.variable, each.now.get(warp.agent)) for each in counted]
        return {name: now[0] + now[1] * (self._next and name == values[-1][0]) for name, now in values if now}

    def said(self, warp: Any, lanes: int, trip: Mapping[str, int], past: Instruction, *, alone: bool) -> SaidBranch:
        """What is certain, after the run, of a branch that led past an instruction in an iteration.

        One that is not of a comparison ``alone`` may decide what the headings after its own have as well.
        """
        unsure = {each.heading.variable for each in self._counted if not each.registers or not each.came_again}
        trip = {name: value for name, value in trip.items() if name not in unsure}
        depth, frames = self._depth, past.source.frames if past.source is not None else ()
        if self._heading is None or len(frames) <= depth or (self._own and not trip):
            return SaidBranch()
        mine, other = self._frames[depth], frames[depth]
        at, headings = self._source.headings(other)
        if frames[:depth] != self._frames[:depth] or (mine.file, mine.function) != (other.file, other.function):
            return SaidBranch()
        later = [each for each in headings if not (each.loop or self._own) and self._heading.head < each.head < (at, 0)]
        said: list[SaidBranch] = []
        for each in (self._heading, *later):
            outcome, values = each.outcome(at), self._values(warp, lanes, mine, trip)
            found = value_of(each.condition, values)
            if outcome is not None and (found is None or bool(found) is outcome):
                short = each.condition if len(each.condition) <= _MOST_CHARACTERS else ""
                said.append(SaidBranch(short, outcome, tuple(trip.items())))
                if alone and each is self._heading:
                    break
        return said[0] if len(said) == 1 else SaidBranch()


def value_of(text: str, values: Values) -> int | None:
    """The value of an expression of whole numbers in C++ or Python; None if it is not certain.

    The text is one of a source file, which is data: it is read, and never run.
    """
    for found, instead in _PLAIN:
        text = found.sub(instead, text)
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, values) if len(text) <= _LONGEST else None
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, values: Values) -> int:
    """The value of its tree. Raises ValueError for what is not certain, or has more than 64 bits."""
    found: int | None = None
    match node:
        case ast.Constant(value=int(value)):
            found = value
        case ast.Name(id=name):
            found = values(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            found = -_value(operand, values)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            found = _value(operand, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = not _value(operand, values)
        case ast.BinOp(left=left, op=op, right=right):
            found = binary(op, _value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[compared], comparators=[right]) if type(compared) in _COMPARED:
            found = _COMPARED[type(compared)](_value(left, values), _value(right, values))
        case ast.BoolOp(op=both, values=parts):
            each = [_value(part, values) for part in parts]
            found = all(each) if isinstance(both, ast.And) else any(each)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=[_, *_] as given, keywords=[]):
            found = (min if name == "min" else max)(_value(each, values) for each in given)
    if found is None or abs(found) >= _TOO_LARGE:
        raise ValueError("not certain")
    return int(found)
