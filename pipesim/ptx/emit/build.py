"""The flat program of what the warps of a cluster did: tables with names, registers packed, lines of the source."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.model.coverage import Coverage
from pipesim.model.groups import READS_REGISTER, WRITES_REGISTER
from pipesim.model.ops import AT, Op, Operation, Space, with_operand
from pipesim.model.positions import ASYNC_ACCESS, COPY_MASK
from pipesim.model.program import Agent, Barrier, Program
from pipesim.ptx.emit.names import barrier_names, role_names, source_of, tiles_of
from pipesim.ptx.emit.record import Place, StreamRecorder
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.module import Function, Module

_REGISTER = AT["register"]


def program_of(
    name: str,
    recorder: StreamRecorder,
    initialised: dict[Place, int],
    function: Function,
    module: Module,
    launch: Launch,
    coverage: Coverage,
) -> Program:
    """The flat program; every CTA of the cluster has the same barriers and ranges, as a multicast needs."""
    ctas = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
    _complete(recorder, ctas)
    packed = [_packed(stream.code) for stream in recorder.streams]
    sources: dict[str, int] = {}
    lines = [
        tuple(sources.setdefault(source_of(function.body[at], module), len(sources)) for at in stream.positions)
        for stream in recorder.streams
    ]
    names = barrier_names(recorder.barriers, initialised, function, module)
    roles = role_names(recorder.streams)
    grid = launch.grid[0] * launch.grid[1] * launch.grid[2]
    agents = []
    seen: dict[tuple[int, str], int] = {}
    for stream, role in zip(recorder.streams, roles, strict=True):
        index = seen.get((stream.cta, role), 0)
        seen[stream.cta, role] = index + 1
        agents.append(Agent(stream.cta, stream.warp, stream.lanes, role, index))
    return Program(
        name=name,
        params={},
        agents=tuple(agents),
        barriers=tuple(Barrier(place[0], *names[place]) for place in recorder.barriers),
        accesses=tuple(recorder.accesses),
        tiles=tiles_of(recorder, function, module),
        code=tuple(tuple(code) for code, _ in packed),
        lines=tuple(lines),
        sources=tuple(sources) or ("",),
        named_barriers=tuple(recorder.named),
        registers=max((width for _, width in packed), default=0),
        ctas=ctas,
        grid=max(grid // ctas, 1),
        smem_bytes=_shared_bytes(function, launch),
        notes=(),
        launch_registers=launch.registers or next(iter(function.directives.get("maxnreg", ())), 0),
        coverage=coverage,
    )


def _shared_bytes(function: Function, launch: Launch) -> int:
    static = [v.offset + v.size for v in function.shared if v.space == "shared" and not v.external]
    return max(static, default=0) + launch.dynamic_shared


def _complete(recorder: StreamRecorder, ctas: int) -> None:
    """Add the barriers and ranges of the other CTAs at the same places, which names and multicasts refer to."""
    if ctas == 1:
        return
    for _, offset in list(recorder.barriers):
        for rank in range(ctas):
            recorder.barrier((rank, offset))
    copies = [op for stream in recorder.streams for op in stream.code if op[0] == Op.TMA_LOAD]
    loads = {op[ASYNC_ACCESS] for op in copies if op[COPY_MASK]}
    for number, access in enumerate(list(recorder.accesses)):
        if number in loads:
            for rank in range(ctas):
                recorder.access(Space(access.space), rank, access.offset, access.nbytes)


def _packed(code: Sequence[Operation]) -> tuple[list[Operation], int]:
    """The answers of tries in as few registers as are in use at once; -1 for those that nothing waits on."""
    last = {op[_REGISTER[op[0]]]: pc for pc, op in enumerate(code) if op[0] in READS_REGISTER}
    free: list[int] = []
    held: dict[int, int] = {}
    width = 0
    made: list[Operation] = []
    for pc, op in enumerate(code):
        at = _REGISTER.get(op[0])
        if at is None or op[at] < 0:
            made.append(op)
            continue
        asked = op[at]
        if op[0] in WRITES_REGISTER:
            if asked not in last:
                made.append(with_operand(op, "register", -1))
                continue
            if not free:
                free.append(width)
                width += 1
            held[asked] = free.pop(0)
            made.append(with_operand(op, "register", held[asked]))
            continue
        made.append(with_operand(op, "register", held.get(asked, -1)))
        if last.get(asked) == pc and asked in held:
            free.append(held.pop(asked))
            free.sort()
    return made, width
