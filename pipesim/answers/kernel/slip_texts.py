"""What a line of PTX may have been meant to be: with another number, register, comparison, guard or barrier.

A number is one of its neighbours or one that the same instruction has elsewhere, a register one that is computed from
it or beside it, a comparison its neighbour; the address of an mbarrier is that of another one if one of the two is at
fault. Each has a cost: the lower, the likelier. What is written is only tried, never offered as it is.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from itertools import islice, product

from pipesim.ptx.prepare import Kernel
from pipesim.ptx.text.instruction import Address, Immediate, Instruction, Operand, Register, Special

Texts = Iterator[tuple[float, tuple[object, ...], str]]  #: with what it costs, and what is changed to what

_LINE = re.compile(r"(\s*)(@!?%?[\w$]+\s+)?([\w.:]+)(\s+)(.*?)(;.*)", re.DOTALL)
_TOKEN = re.compile(r"%[\w$]+(?![\w.])|(?<![\w.%$])-?(?:0x[0-9a-fA-F]+|\d+)(?![\w.$])")
_INSIDE = re.compile(r"\[([^\],]*)\]")  # no address of a box
_NEIGHBOUR = {
    "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "lo": "ls", "ls": "lo", "hi": "hs", "hs": "hi",
    "eq": "ne", "ne": "eq",
}  # fmt: skip
_EXCHANGED = {"sync": "arrive", "arrive": "sync"}  #: of named barriers
_LANES = (31, 127)  #: what masks the threads of a warp, and of a warpgroup
_SIBLINGS = 4  #: numbers of other instructions that are tried for one
_INDEXING = frozenset({"shl", "mul", "mad", "st", "ld", "mapa"})  #: what addresses are computed by, and used
_RANKS = tuple(map(Special, ("%tid.x", "%laneid", "%cluster_ctarank", "%cluster_ctaid.x", "%ctaid.x")))
_IN_SCOPE = 4  #: other variables that are tried for one
_RELATIVES = 6  #: registers that are tried for one
_MOST_SOURCES = 64  #: registers that are computed from as many, as the sums of a product, are not looked through
_DISTANCES = 8  #: to other mbarriers, the nearest
_ASTRAY = 0.8  #: less of what it costs
_OWED = -0.8  #: of the barrier that lacks as many bytes as are too many at this one
_PLACES = 8  #: other places of tiles that are tried
_OF_TILES = 1024  #: bytes to which places of tiles are aligned, or to an eighth
_SMALL = 64  #: a number below it counts, one above it is a distance in memory


def on_mbarrier(each: Instruction) -> bool:
    """Whether an instruction names an mbarrier by its address."""
    return each.opcode == "mbarrier" or not {"mbarrier::complete_tx::bytes", "commit"}.isdisjoint(each.modifiers)


class _Line:
    """A line that is one instruction, in its parts."""

    def __init__(self, text: str) -> None:
        found = _LINE.fullmatch(text)
        parts = tuple(part or "" for part in found.groups()) if found is not None else ("",) * 6
        self._indent, self.guard, self.opcode, self._space, self.operands, self._end = parts

    def having(self, *, guard: str | None = None, opcode: str = "", operands: str = "") -> str:
        """The line with another part."""
        guard = self.guard if guard is None else guard
        return f"{self._indent}{guard}{opcode or self.opcode}{self._space}{operands or self.operands}{self._end}"

    def barrier_address(self) -> list[str]:
        """What is between the brackets of an mbarrier's address: the last one, also of a copy."""
        return _INSIDE.findall(self.operands)[-1:]

    def tokens(self) -> list[tuple[int, str]]:
        """The registers and numbers of the operands, each with its place."""
        return [(found.start(), found[0]) for found in _TOKEN.finditer(self.operands)]


class LineTexts:
    """What the lines of a kernel may have been meant to be, of whose file this is the text.

    ``on``: by position the offsets of the mbarriers that an instruction was on; ``focus``: those at which the finding
    shows; ``stages``: of each its group and its stage there; ``lacks``: whether arrivals are missing; ``owed``: pairs
    of which the second mbarrier lacks the bytes that are counted on the first. ``writers``: of each register.
    """

    def __init__(
        self, kernel: Kernel, text: list[str], on: Mapping[int, Set[int]], focus: Set[int],
        stages: Mapping[int, tuple[str, int]], owed: Set[tuple[int, int]], *, lacks: bool,
    ) -> None:  # fmt: skip
        self._body, self._kept, self._uses = kernel.function.body, sorted(kernel.code.kept), kernel.code.regions.uses
        self._text, self._on, self._focus = text, on, focus
        self._stages, self._lacks, self._owed = stages, lacks, owed
        rings = Counter(group for group, _ in stages.values())
        self._lengths = frozenset(n for n in rings.values() if n > 1)  #: of the rings of barriers
        self.writers: defaultdict[str, list[int]] = defaultdict(list)
        self._readers: defaultdict[str, list[int]] = defaultdict(list)
        self._numbers: defaultdict[str, Counter[int]] = defaultdict(Counter)  # by opcode
        self._addresses: defaultdict[str, set[int]] = defaultdict(set)  # as written: the offsets that are meant
        self._guards: Counter[str] = Counter()
        self._alike: defaultdict[str, list[int]] = defaultdict(list)  # positions by opcode
        for at in self._kept:
            line = self._line(at)
            for names, ats in ((self._uses.writes[at], self.writers), (self._uses.reads[at], self._readers)):
                for name in names:
                    ats[name].append(at)
            self._alike[self._body[at].opcode].append(at)
            numbers = (int(token, 0) for _, token in line.tokens() if not token.startswith("%"))
            self._numbers[self._body[at].opcode].update(numbers)
            if at in self._on:
                self._guards.update([line.guard.strip()] if line.guard else [])
                for inside in line.barrier_address():
                    self._addresses[inside] |= self._on[at]

    def _line(self, at: int) -> _Line:
        return _Line(self._text[self._body[at].line - 1])

    def otherwise(self, at: int, *, address: bool, far: bool) -> Texts:
        """The line of an instruction otherwise. ``address``: it computes that of an mbarrier; ``far``: no registers."""
        each, line = self._body[at], self._line(at)
        if not line.opcode:
            return
        yield from self._other_instruction(each, line)
        if at in self._on or each.opcode in ("bar", "barrier"):
            yield from self._other_guard(line)
        if on_mbarrier(each) and "init" not in each.modifiers:
            less = _ASTRAY if far else 0.0  # what reaches a barrier of the finding, or leaves it
            yield from ((cost - less, what, new) for cost, what, new in self._other_barrier(at, line))
        if each.opcode == "shl" and isinstance(each.operands[-1], Immediate) and 2 in self._lengths:
            to, other = line.operands.partition(",")[0], f"; xor.b32 {{0}}, {{0}}, {1 << each.operands[-1].value};"
            yield 0.7, ("other",), f"{line.having().partition(';')[0]}{other.format(to)}"
        commas = line.operands.find(",") if self._uses.writes[at] else -1
        for start, token in line.tokens():
            if self._uses.writes[at] and not -1 < commas < start:
                continue  # what it writes
            before, rest = line.operands[:start], line.operands[start + len(token) :]
            inside = before.rfind("[") > before.rfind("]")
            if inside and on_mbarrier(each):
                continue
            if not token.startswith("%"):
                value = int(token, 0)
                for cost, new in self._numbers_for(each, value, address=address):
                    if new != value:
                        yield cost, (value, new), line.having(operands=f"{before}{new}{rest}")
            elif not far:
                twice = line.operands.count(token) > 1 and each.opcode in ("and", "or", "setp")
                beside = dict.fromkeys(self._in_scope(each, token), 0.45)
                others = (name for name in self._relatives(each, token) if name not in beside)
                for n, (name, cost) in enumerate((beside | dict.fromkeys(others, 0.4 if twice else 1.3)).items()):
                    yield cost + 0.05 * n, (token, name), line.having(operands=f"{before}{name}{rest}")

    def _other_instruction(self, each: Instruction, line: _Line) -> Texts:
        """Another comparison, the other sort of meeting, the two values of a selection exchanged."""
        words = line.opcode.split(".")

        def put(word: str, new: str) -> str:
            return line.having(opcode=".".join(new if part == word else part for part in words))

        match each.opcode:
            case "setp":
                compared = [word for word in words if word in _NEIGHBOUR]
                for word in compared:
                    yield 1.3 if word in ("eq", "ne") else 0.4, (word,), put(word, _NEIGHBOUR[word])
            case "bar" | "barrier" if "cluster" not in words:
                yield from ((0.7, (word,), put(word, _EXCHANGED[word])) for word in words if word in _EXCHANGED)
            case "and" | "or" if "pred" in words:
                yield 1.5, (each.opcode,), put(each.opcode, "or" if each.opcode == "and" else "and")
            case "selp":
                to, one, other, by = (*(part.strip() for part in line.operands.split(",")), "", "", "")[:4]
                yield 0.5, (), line.having(operands=f"{to}, {other}, {one}, {by}")

    def _other_guard(self, line: _Line) -> Texts:
        """No guard, the opposite one, or that of another instruction on barriers."""
        mine = line.guard.strip()
        if mine:
            opposite = mine.replace("@!", "@") if "!" in mine else mine.replace("@", "@!")
            yield 0.8 if self._is_elected(mine) else 0.5, ("guard",), line.having(guard="")
            yield 1.5, ("guard", "!"), line.having(guard=f"{opposite} ")
        others = [guard for guard, _ in self._guards.most_common(_RELATIVES) if guard != mine]
        yield from ((1.0, ("guard", other), line.having(guard=f"{other} ")) for other in others)

    def _is_elected(self, guard: str) -> bool:
        """Whether a guard is the predicate of elect.sync: then one lane of a warp is meant."""
        ats = self.writers.get(guard.lstrip("@!"), ()) or self.writers.get(guard.lstrip("@!%"), ())
        return any(self._body[at].opcode == "elect" for at in ats)

    def _other_barrier(self, at: int, line: _Line) -> Texts:
        """The address of another mbarrier: at a distance, or as another instruction has it."""
        here = self._on.get(at, set())
        for inside in line.barrier_address() if here else ():
            base, _, offset = inside.partition("+")
            if inside in self._addresses and (not offset or offset.strip().lstrip("-").isdecimal()):
                for n, by in enumerate(self._distances(here)):
                    new = f"{base}+{int(offset or 0) + by}"
                    yield 0.5 + 0.1 * n, (by,), line.having(operands=line.operands.replace(f"[{inside}]", f"[{new}]"))
                every = self._addresses
                others = [
                    o for o, there in every.items() if o != inside and there != here and (here | there) & self._focus
                ]
                for n, other in enumerate(others):
                    new = line.operands.replace(f"[{inside}]", f"[{other}]")
                    owed = self._body[at].opcode == "cp" and not self._owed.isdisjoint(product(here, every[other]))
                    yield (_OWED if owed else 0.5) + 0.1 * n, (inside, other), line.having(operands=new)

    def _distances(self, here: Set[int]) -> Iterator[int]:
        """The distances from these mbarriers to others, from or to those of the finding: the same stage of another
        group first, then the nearest.
        """
        first = min(here, default=0)
        group, stage = self._stages.get(first, ("", 0))

        def unlikely(to: int) -> tuple[bool, int]:
            other, there = self._stages[to]
            return other == group or there != stage, abs(to - first)

        for to in sorted(self._stages.keys() - {first}, key=unlikely)[:_DISTANCES]:
            there = {offset + to - first for offset in here}
            if there <= self._stages.keys() and (there | here) & self._focus:
                yield to - first

    def _numbers_for(self, each: Instruction, value: int, *, address: bool) -> Iterator[tuple[float, int]]:
        """Numbers that may be meant instead of one."""
        alike = [n for n, _ in self._numbers[each.opcode].most_common(_SIBLINGS + 1) if n != value][:_SIBLINGS]
        near = [value + 1, value - 1]
        match each.opcode:
            case "xor" | "mov" | "selp" if value in (0, 1):
                compared = each.opcode == "selp" and all(map(_is_bit, each.operands[1:3]))
                yield 0.6 if compared else 0.2, 1 - value
                yield from ((1.0, n) for n in (*near, *alike))
            case "xor" if value & (value - 1) == 0:  # the other one of two, in bytes
                yield 0.3, 0
            case "setp":
                cost = 0.3 if value or not {"eq", "ne"}.intersection(each.modifiers) else 0.8  # of a bit
                cost = cost if value not in self._lengths else max(cost, 0.4)  # a ring of this length
                for n in dict.fromkeys((*near, *(self._lengths if 1 < abs(value) < _SMALL else ()))):
                    wraps = n in self._lengths and value not in self._lengths and value > 1
                    yield 0.1 if wraps else cost if n in near and abs(value) < _SMALL // 2 else 0.8, n
                yield from ((1.0, n) for n in alike)
            case "cp" | "wgmma" if any("wait_group" in word for word in each.modifiers):
                yield from ((0.2 + 0.1 * n, value - 1 - n) for n in range(value))
            case "bar" | "barrier" | "mbarrier" | "and":
                lanes = _LANES if each.opcode == "and" else ()
                more = self._lacks and value in _LANES  # threads arrive with the smaller one
                yield from ((-0.2 if more and n < value else 0.2 if value in _LANES else 0.6, n) for n in lanes)
                yield from ((0.6, n) for n in alike)
                yield from ((1.2, n) for n in (*near, 2 * value, value // 2, value + 32, value - 32) if n >= 0)
            case _ if abs(value) < _SMALL:
                yield from ((0.4 if n == 0 else 0.7, n) for n in near)
                yield from ((1.0, n) for n in (*alike, value // 2, -value))
            case _:
                places = [n for n in self._numbers[each.opcode] if n != value and n % _aligned(value) == 0]
                yield from ((0.5 + 0.02 * rank, n) for rank, n in enumerate(places[:_PLACES]))
                yield from ((0.8, n) for n in alike)
                yield from ((1.2, n) for n in (0, 2 * value, value // 2))
        if address and abs(value) > 1 and each.opcode in ("add", "mov"):
            yield from ((0.9, value + by) for by in self._distances(self._focus))

    def _in_scope(self, each: Instruction, token: str) -> list[str]:
        """Other variables that an index or a parity may be: bits of counters of a wait, for another register that of
        such an instruction there, and the ranks of a thread and a CTA.
        """
        at, parity = each.position, "parity" in each.modifiers
        name = next((read for read in self._uses.reads[at] if _plain(read) == _plain(token)), "")
        if not name or not (parity or each.opcode in _INDEXING):
            return []
        place = next((n for n, part in enumerate(each.operands) if _register(part) == _plain(name)), 0)
        index = each.opcode in ("shl", "mul", "mad") or (each.opcode == "mapa" and place == 2)
        found: list[str] = []
        for rank in _RANKS if index else ():
            moves = (n for n, one in enumerate(self._body) if one.opcode == "mov" and one.operands[-1] == rank)
            found += (written for n in moves for written in self._uses.writes[n])
            if found and "cluster" in rank.name:
                break
        for other in sorted((n for n in self._kept if n != at), key=lambda n: (n > at, abs(n - at))):
            there = self._body[other]
            if parity and there.opcode == "and" and there.operands[-1] == Immediate(1):
                found += self._uses.writes[other]
            alike = (there.opcode, there.modifiers) == (each.opcode, each.modifiers)
            if alike and len(there.operands) == len(each.operands) and (parity or _numbers(there) == _numbers(each)):
                found += (n for n in self._uses.reads[other] if _plain(n) == _register(there.operands[place]))
        known = (other for other in dict.fromkeys(found) if other != name and _sort(other) == _sort(name))
        before = (other for other in known if min(self.writers[other], default=0) < at)
        return [f"%{_plain(other)}" for other in islice(before, _IN_SCOPE)]

    def _relatives(self, each: Instruction, token: str) -> list[str]:
        """Registers of the same sort from which one is computed, or that are computed from it or beside it."""
        reads, writes = self._uses.reads, self._uses.writes
        name = next((read for read in reads[each.position] if _plain(read) == _plain(token)), "")
        near: dict[str, None] = {}
        sources = {name: None}
        for _ in range(3):
            before = (s for one in sources for w in self.writers[one] for s in reads[w] if s not in near)
            sources = dict.fromkeys(islice(before, _MOST_SOURCES))
            near |= sources
        near |= dict.fromkeys(w for r in self._readers[name] for w in writes[r])
        near |= dict.fromkeys(w for s in tuple(near)[:_RELATIVES] for r in self._readers[s] for w in writes[r])
        alike = sorted(self._alike[each.opcode], key=lambda at: abs(at - each.position))[1 : _RELATIVES + 1]
        beside = [read for at in alike for read in reads[at]]
        often = Counter(read for at in self._alike[each.opcode] for read in reads[at]).most_common(_RELATIVES)
        common = [read for read, _ in often] if "pred" in each.modifiers else []
        near = dict.fromkeys((*common, *near, *beside))
        but = {name, *writes[each.position]}
        found = [other for other in near if other not in but and _sort(other) == _sort(name)]
        return [f"%{_plain(other)}" for other in found[:_RELATIVES]] if name else []


def _aligned(distance: int) -> int:
    """What other distances between tiles are multiples of as well; of one between something else what none is."""
    power = distance & -distance
    return min(power, _OF_TILES) if power >= _OF_TILES // 8 else 1 << 32


def _register(part: Operand) -> str:
    """The name of a register, also of one that is an address."""
    part = part.base if isinstance(part, Address) else part
    return _plain(part.name) if isinstance(part, Register) else ""


def _numbers(each: Instruction) -> list[Operand]:
    return [part for part in each.operands if isinstance(part, Immediate)]


def _is_bit(part: Operand) -> bool:
    return isinstance(part, Immediate) and part.value in (0, 1)


def _plain(name: str) -> str:
    """A register as the file has it: names are made unique by what follows the sign."""
    return name.lstrip("%").partition("$")[0]


def _sort(register: str) -> str:
    """The letters with which the names of one type of register begin."""
    return _plain(register).rstrip("0123456789")
