"""What operations refer to by number, entered as roles first use it: accesses, source lines, named barriers, loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType, FrameType

from pipesim.lang.author_line import IS_INSIDE, getframe, line_of
from pipesim.model.ops import Space

Amounts = tuple[tuple[str, int], ...]
Bytes = tuple[Space, int, int, int]  #: the fields of an ``Access``; a plain tuple is made and found much sooner


@dataclass
class Tables:
    """The side tables that the recordings of all agents share while a protocol is flattened."""

    ctas: int = 1  #: CTAs in the cluster
    accesses: dict[Bytes, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    named_barriers: dict[tuple[int, int], int] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    pipelines: dict[str, None] = field(default_factory=dict)  #: structs that roles have made, in that order
    #: of an instruction its source line; the code is kept, because another would be given its id
    places: dict[tuple[int, int], tuple[int, CodeType]] = field(default_factory=dict)
    #: works, each with the name of a source: that of its line, and what tells it from others of that line
    works: dict[tuple[int, str, Amounts], int] = field(default_factory=dict)

    def access(self, space: Space, cta: int, offset: int, nbytes: int) -> int:
        """Index of an access, entered on first sight."""
        return self.accesses.setdefault((space, cta, offset, nbytes), len(self.accesses))

    def source(self, line: str) -> int:
        """Index of a source line, entered on first sight."""
        return self.sources.setdefault(line, len(self.sources))

    def working(self, source: int, name: str, amounts: Amounts) -> int:
        """Index of a source line whose operations do this work, entered on first sight."""
        known = self.works.get((source, name, amounts))
        if known is None:
            line = self.lines()[source]
            known = self.works[source, name, amounts] = self.source(f"{line}\0{len(self.works)}")
        return known

    def lines(self) -> list[str]:
        """The source lines by their index; a line that does several works is there for each of them."""
        return [line.split("\0")[0] for line in self.sources]

    def source_here(self, depth: int) -> int:
        """Index of the author's line, at least this many calls up.

        Found again by the instruction: by the id of its code, because the hash of code is computed every time.
        """
        frame: FrameType = getframe(depth)
        while IS_INSIDE[frame.f_globals.get("__name__", "")] and (caller := frame.f_back) is not None:
            frame = caller
        code = frame.f_code
        place = id(code), frame.f_lasti
        try:
            return self.places[place][0]
        except KeyError:
            source = self.source(line_of(code, frame.f_lasti))
            self.places[place] = source, code
            return source

    def named_barrier(self, cta: int, number: int) -> int:
        """Index of a named barrier of a CTA, entered on first sight."""
        return self.named_barriers.setdefault((cta, number), len(self.named_barriers))

    def loop(self, trip: str) -> int:
        """Index of a loop's iteration parameter, entered on first sight."""
        return self.loops.setdefault(trip, len(self.loops))
