"""The JSON form of the flat program (documented in ``docs/flat-program.md``): ``dumps`` and ``loads`` are inverse."""

from __future__ import annotations

import json
from typing import Any

from pipesim.errors import ProgramFormatError
from pipesim.model.ops import Op, Operation, Space
from pipesim.model.program import PROGRAM_VERSION, Access, Agent, Barrier, Program, Tile

FORMAT = "pipesim-program"


def dumps(program: Program) -> str:
    """The program as JSON text: stable order, one operation a line, codes by name."""
    head = {
        "format": FORMAT,
        "version": program.version,
        "name": program.name,
        "params": program.params,
        "ctas": program.ctas,
        "grid": program.grid,
        "smem_bytes": program.smem_bytes,
        "registers": program.registers,
        "agents": [[a.cta, a.warp, a.lanes, a.role, a.index] for a in program.agents],
        "barriers": [[b.cta, b.name, b.stage] for b in program.barriers],
        "named_barriers": [list(n) for n in program.named_barriers],
        "accesses": [[a.space.name, a.cta, a.offset, a.nbytes] for a in program.accesses],
        "tiles": [[t.name, t.space.name, t.cta, t.offset, t.nbytes, t.slots] for t in program.tiles],
        "loops": list(program.loops),
        "sources": list(program.sources),
        "notes": list(program.notes),
        "pipelines": list(program.pipelines),
        "launch_registers": program.launch_registers,
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    agents = []
    for code, where in zip(program.code, program.lines, strict=True):
        rows = [
            "    " + json.dumps([line, Op(operation[0]).name, *operation[1:]])
            for line, operation in zip(where, code, strict=True)
        ]
        agents.append("   [\n" + ",\n".join(rows) + "\n   ]" if rows else "   []")
    return "{\n" + "\n".join(lines) + '\n  "code": [\n' + ",\n".join(agents) + "\n  ]\n}\n"


def loads(text: str, place: str = "") -> Program:
    """The program that ``text`` describes; ProgramFormatError names what is wrong with it, and ``place``, its file."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProgramFormatError(
            "this is not a flat program: it is not JSON",
            place=place,
            cause=str(error),
            correction="write one with `pipesim run NAME --save-program FILE`",
        ) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ProgramFormatError(f'this JSON is not a flat program: it has no "format": "{FORMAT}"', place=place)
    version = data.get("version")
    if type(version) is not int or version < 1:
        raise ProgramFormatError(f"a flat program has a version number, not {version!r}", place=place)
    if version > PROGRAM_VERSION:
        raise ProgramFormatError(
            f"this flat program is of version {version}; this pipesim reads up to {PROGRAM_VERSION}",
            place=place,
            correction="upgrade pipesim",
        )
    try:
        return _program(data)
    except ProgramFormatError as error:
        raise ProgramFormatError(error.fact, place=f"{place}: {error.place}" if place else error.place) from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProgramFormatError(
            "this flat program is damaged", place=place, cause=f"{type(error).__name__}: {error}"
        ) from None


def _program(data: dict[str, Any]) -> Program:
    code: list[tuple[Operation, ...]] = []
    lines: list[tuple[int, ...]] = []
    for rows in data["code"]:
        code.append(tuple((int(Op[row[1]]), *row[2:]) for row in rows))
        lines.append(tuple(_integer(row[0]) for row in rows))
    return Program(
        name=_text(data["name"]),
        params={_text(k): _integer(v) for k, v in data["params"].items()},
        agents=tuple(
            Agent(_integer(c), _integer(w), _integer(m), _text(r), _integer(i)) for c, w, m, r, i in data["agents"]
        ),
        barriers=tuple(Barrier(_integer(c), _text(n), _integer(s)) for c, n, s in data["barriers"]),
        accesses=tuple(Access(Space[s], _integer(c), _integer(o), _integer(n)) for s, c, o, n in data["accesses"]),
        tiles=tuple(
            Tile(_text(name), Space[s], _integer(c), _integer(o), _integer(n), _integer(k))
            for name, s, c, o, n, k in data["tiles"]
        ),
        code=tuple(code),
        lines=tuple(lines),
        sources=tuple(_text(s) for s in data["sources"]),
        named_barriers=tuple((_integer(c), _integer(i)) for c, i in data["named_barriers"]),
        loops=tuple(_text(name) for name in data["loops"]),
        registers=_integer(data["registers"]),
        ctas=_integer(data["ctas"]),
        grid=_integer(data["grid"]),
        smem_bytes=_integer(data["smem_bytes"]),
        version=_integer(data["version"]),
        notes=tuple(_text(s) for s in data["notes"]),
        pipelines=tuple(_text(s) for s in data.get("pipelines", [])),  # earlier versions of pipesim left them out
        launch_registers=_integer(data.get("launch_registers", 0)),
    )


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} should be an integer")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} should be text")
    return value
