"""Barriers of a dump by what the source calls them: by the lines of waits, arrives and copies, where these are sure.

A line of machine code is that of the last ``.loc`` before it in the PTX, which a loop that was unrolled does not
repeat: of several instructions of one kind at one place the first alone is known to be of it. In C++ that place is an
``asm``: assemblers leave the innermost places of some instructions out.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from pipesim.answers.autopsy.suppliers import WalkedWarp
from pipesim.answers.autopsy.walks import OFFSET
from pipesim.answers.views.autopsy import DumpedLaunch
from pipesim.conform.diagnose.examination import RebuiltBarrier
from pipesim.coredump.cubin import Cubin, MachineCode
from pipesim.coredump.sass.sync import SassSync
from pipesim.coredump.sass.word import SIZE
from pipesim.ptx.names.barriers import barriers_named_by_uses
from pipesim.ptx.names.resolve import Resolver
from pipesim.ptx.source_files import SourceFiles
from pipesim.ptx.text.instruction import Frame, Instruction, SourceLine

_T = TypeVar("_T")
#: The kinds that name a barrier in the source, and what a reader of PTX calls them.
_OPCODES = {
    SassSync.WAIT: "mbarrier", SassSync.ARRIVE: "mbarrier", SassSync.EXPECT: "mbarrier",
    SassSync.CP_ASYNC_ARRIVE: "mbarrier", SassSync.COPY: "cp", SassSync.TENSOR_COPY: "cp",
}  # fmt: skip


def source_names(
    cubin: Cubin, code: MachineCode, sources: SourceFiles, warps: Sequence[WalkedWarp]
) -> dict[int, tuple[str, int]]:
    """Array and element of the barriers of a kernel, by their address in shared memory."""
    touched, every = defaultdict[int, set[int]](set), set[int]()
    kinds: dict[int, SassSync] = {}
    for warp in warps:
        for event in (*warp.walk.behind, *warp.walk.ahead):
            found = {each & OFFSET for each in event.addresses or (event.address,) if each is not None}
            if event.sync.kind is SassSync.INIT:
                every |= found
            elif event.sync.kind in _OPCODES:
                touched[event.index] |= found
                kinds[event.index] = event.sync.kind
    resolver, body = Resolver(sources), dict[int, Instruction]()
    seen = set[tuple[SassSync, tuple[Frame, ...]]]()
    for index, kind in sorted(kinds.items()):
        inward = cubin.lines.lines_of(code.address + index * SIZE)[::-1]
        frames = tuple(Frame(each.file, each.line, each.function or code.name) for each in inward)
        sure = (kind, frames) not in seen and all(map(resolver.is_operand, frames[-1:]))
        source = SourceLine(*frames[0][:3], frames, sure) if frames else None
        body[index] = Instruction(_OPCODES[kind], (), (), None, 0, source, index)
        seen.add((kind, frames))
    return barriers_named_by_uses(touched, every.union(*touched.values()), body, resolver)


def with_names(launch: DumpedLaunch, names: Mapping[str, str]) -> DumpedLaunch:
    """The launch with these names of barriers, which have their address in tables alone."""

    def row(each: RebuiltBarrier) -> RebuiltBarrier:
        address, _, given = each.name.removeprefix("mbarrier ").partition(" ")
        name = names.get(each.name) or names.get(given)
        return replace(each, name=f"{address.partition('@')[0]} {name}") if name else each

    groups = (
        replace(g, deadlock=renamed(g.deadlock, names), barriers=tuple(map(row, g.barriers))) for g in launch.groups
    )
    return replace(launch, groups=tuple(groups))


def renamed(value: _T, names: Mapping[str, str]) -> _T:
    """An answer with other names in its texts."""
    if not names:
        return value
    longest = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, longest))})(?![\w@\[])")

    def made(each: Any) -> Any:
        if isinstance(each, str):
            return pattern.sub(lambda found: names[found[0]], each)
        if isinstance(each, tuple):
            parts = map(made, each)
            return type(each)(*parts) if hasattr(each, "_fields") else tuple(parts)
        if is_dataclass(each) and not isinstance(each, type):
            return replace(each, **{f.name: made(getattr(each, f.name)) for f in fields(each) if f.init})
        return each

    return made(value)  # type: ignore[no-any-return]
