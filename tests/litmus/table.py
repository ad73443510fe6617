"""The table of litmus tests (``litmus.txt``), and the PTX of what a thread does."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("litmus.txt")
WORDS = ("x", "y", "z")  #: each at an address of its own, a multiple of 16
_WIDE = {0: 0, 1: 1, 2: 1 << 32, 3: 1 << 32 | 1}  #: values of 64 bits by the lowest bits of their halves


@dataclass(frozen=True)
class LitmusStep:
    """One instruction of a thread. ``place``: word and offset, "" if it accesses none; ``given``: its operands.

    ``found``: what it returns in the outcome, of 64 bits the lowest bit of each half; None if it returns nothing.
    ``waits``: whether a program repeats it until then.
    """

    opcode: str
    place: tuple[str, int] = ("", 0)
    given: tuple[str, ...] = ()
    found: int | None = None
    waits: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The opcode and its modifiers."""
        return tuple(self.opcode.split("."))

    @property
    def size(self) -> int:
        """The bytes that it accesses."""
        return 8 if self.parts[-1] in ("b64", "v2") else 4

    @property
    def waits_for(self) -> int:
        """The value that a program waits for."""
        return _WIDE[self.found or 0] if self.size == 8 else self.found or 0

    def ptx(self, result: str, address: str, value: str) -> str:
        """As an instruction of PTX; ``value`` is what it stores if the table says ``r``."""
        kind, *modifiers = self.parts
        wide = "v2.u32" if "v2" in modifiers else "u64" if self.size == 8 else "u32"
        kept = [each for each in modifiers if each not in ("b64", "v2")]
        given = ", ".join(value if each == "r" else each for each in self.given)
        match kind:
            case "ld" | "st":
                path = ".".join((kind, *(["global", "nc"] if "nc" in kept else [*kept, "global"]), wide))
                stored = f"{{{given}, {given}}}" if "v2" in modifiers else given
                return f"{path} {result}, [{address}];" if kind == "ld" else f"{path} [{address}], {stored};"
            case "atom" | "red":
                *order, operation = kept
                path = ".".join((kind, *order, "global", operation, "u32" if operation == "add" else "b32"))
                return f"{path} {f'{result}, ' if kind == 'atom' else ''}[{address}], {given};"
            case "bar":
                return "bar.sync 0;"
            case "cbar":
                return f"barrier.cluster.arrive{''.join('.' + m for m in kept)}.aligned; barrier.cluster.wait.aligned;"
        return f"{self.opcode};"


@dataclass(frozen=True)
class Litmus:
    """One test: the CTA of each thread, whether these are a cluster, and values of words at the end of the outcome."""

    name: str
    ctas: tuple[int, ...]
    cluster: bool
    forbidden: bool
    threads: tuple[tuple[LitmusStep, ...], ...]
    final: tuple[tuple[str, int], ...]

    @property
    def family(self) -> str:
        """The pattern that it is a variant of."""
        return re.split(r"[.+](?=\D)", self.name)[0]


def litmus_tests() -> Iterator[Litmus]:
    """All tests of the table."""
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, place, said, does = line.split(" | ")
            does, _, final = does.partition(" => ")
            threads = tuple(tuple(map(_step, each.split("; "))) for each in does.split(" || "))
            ends = tuple((word[0], int(word[2:])) for word in final.split())
            ctas = tuple(map(int, place.lstrip("c")))
            yield Litmus(name, ctas, place[0] == "c", said == "forbidden", threads, ends)


def _step(text: str) -> LitmusStep:
    opcode, *rest = text.split()
    if not rest:
        return LitmusStep(opcode)
    word, _, offset = rest[0].partition("+")
    returns = opcode.split(".")[0] in ("ld", "atom") or opcode == "bulk.ld"
    given, found = (rest[1:-1], int(rest[-1].rstrip("!"))) if returns else (rest[1:], None)
    return LitmusStep(opcode, (word, int(offset or 0)), tuple(given), found, text.endswith("!"))
