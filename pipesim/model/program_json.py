"""The JSON form of the flat program (documented in ``docs/flat-program.md``): ``dumps`` and ``loads`` are inverse."""

import json
from reprlib import repr as brief  # of a value that may be as long as its file
from typing import Any, NoReturn

from pipesim.bounds import MAX_ACCESSES, MAX_JSON_BYTES, MAX_OPERATIONS, MAX_TABLE
from pipesim.errors import ProgramFormatError
from pipesim.inputs import InputKind
from pipesim.model.coverage import WHOLE, coverage_from
from pipesim.model.ops import Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import PROGRAM_VERSION, Access, Agent, Barrier, Tile, Work

FORMAT = "pipesim-program"
PROGRAM = InputKind(
    "flat program", MAX_JSON_BYTES, ProgramFormatError, "write one with `pipesim run NAME --save-program FILE`"
)
_EDITED = "the file was edited, or another program wrote it"
_OPERATIONS = {op.name: int(op) for op in Op}
_KINDS: dict[type, str] = {list: "a list", dict: "an object"}
#: What the rows of the side tables have.
_ROWS = {
    "agents": "cta warp lanes role index",
    "barriers": "cta name stage",
    "named_barriers": "cta id",
    "accesses": "space cta offset bytes",
    "tiles": "name space cta offset bytes slots",
    "work": "line name amounts",
    "unsure": "agent operation why",
}


def dumps(program: Program) -> str:
    """The program as JSON text: stable order, one operation a line, codes by name.

    ProgramFormatError for one that is larger than :func:`loads` reads.
    """
    operations = sum(map(len, program.code))
    if operations > MAX_OPERATIONS:
        raise ProgramFormatError(
            f"{program.name} has {operations:,} operations; the file of a program has at most {MAX_OPERATIONS:,}",
            correction="choose smaller parameters",
        )
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
    if program.architecture:
        head["architecture"] = program.architecture
    if program.work:
        head["work"] = [[w.line, w.name, dict(w.amounts)] for w in program.work]
    if program.coverage != WHOLE:
        head["coverage"] = program.coverage.document()
    for name in ("cut", "silent", "stored", "filled"):
        if agents := getattr(program, name):
            head[name] = list(agents)
    if program.unsure:
        head["unsure"] = [list(each) for each in program.unsure]
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
    data = PROGRAM.parse_json(text, place)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        _refuse(f'this JSON is not a flat program: it has no "format": "{FORMAT}"', place)
    version = data.get("version")
    if type(version) is not int or version < 1:
        _refuse(f"a flat program has a version number, not {brief(version)}", place)
    if version > PROGRAM_VERSION:
        raise ProgramFormatError(
            f"this flat program is of version {version}; this pipesim reads up to {PROGRAM_VERSION}",
            place=place,
            cause="a newer pipesim wrote it",
            correction="upgrade pipesim",
        )
    try:
        return _program(data)
    except ProgramFormatError as error:
        where = f"{place}: {error.place}" if place and error.place else place or error.place
        _refuse(error.fact, where, cause=error.cause or _EDITED, correction=error.correction or PROGRAM.correction)
    except ValueError as error:
        _refuse("this flat program is damaged", place, cause=str(error))


def _refuse(fact: str, place: str, *, cause: str = _EDITED, correction: str = "") -> NoReturn:
    raise ProgramFormatError(fact, place=place, cause=cause, correction=correction or PROGRAM.correction) from None


def _program(data: dict[str, Any]) -> Program:
    """ValueError for a part that is missing or of another form; what the parts say is the program's to check."""
    code, lines = _code(data)
    coverage = coverage_from(data.get("coverage", {}))
    if any(not 0 <= each.agent < len(code) or each.at < 0 for each in coverage.dependent):
        raise ValueError("'dependent' of 'coverage' names an agent or an operation that there is not")
    return Program(
        name=_text(_part(data, "name")),
        params={name: _integer(value) for name, value in _part(data, "params", dict).items()},
        agents=tuple(
            Agent(_integer(cta), _integer(warp), _integer(lanes), _text(role), _integer(index))
            for cta, warp, lanes, role, index in _rows(data, "agents")
        ),
        barriers=tuple(Barrier(_integer(c), _text(n), _integer(s)) for c, n, s in _rows(data, "barriers")),
        accesses=tuple(
            Access(_space(s), _integer(c), _integer(o), _integer(n)) for s, c, o, n in _rows(data, "accesses")
        ),
        tiles=tuple(
            Tile(_text(name), _space(s), _integer(c), _integer(o), _integer(n), _integer(k))
            for name, s, c, o, n, k in _rows(data, "tiles")
        ),
        code=code,
        lines=lines,
        sources=_texts(data, "sources"),
        named_barriers=tuple((_integer(c), _integer(i)) for c, i in _rows(data, "named_barriers")),
        loops=_texts(data, "loops"),
        registers=_integer(_part(data, "registers")),
        ctas=_integer(_part(data, "ctas")),
        grid=_integer(_part(data, "grid")),
        smem_bytes=_integer(_part(data, "smem_bytes")),
        version=_integer(_part(data, "version")),
        notes=_texts(data, "notes"),
        pipelines=_texts({"pipelines": [], **data}, "pipelines"),  # earlier versions of pipesim left them out
        launch_registers=_integer(data.get("launch_registers", 0)),
        architecture=_integer(data.get("architecture", 0)),
        coverage=coverage,
        cut=_integers(data, "cut"),
        silent=_integers(data, "silent"),
        stored=_integers(data, "stored"),
        filled=_integers(data, "filled"),
        unsure=tuple((_integer(a), _integer(p), _integer(w)) for a, p, w in _rows({"unsure": [], **data}, "unsure")),
        work=_work({"work": [], **data}),
    )


def _code(data: dict[str, Any]) -> tuple[tuple[tuple[Operation, ...], ...], tuple[tuple[int, ...], ...]]:
    """The operations of each agent, and their lines."""
    agents = _part(data, "code", list)
    operations = sum(len(rows) for rows in agents if isinstance(rows, list))
    if operations > MAX_OPERATIONS:
        raise ValueError(f"it has {operations:,} operations; at most {MAX_OPERATIONS:,} are read")
    code: list[tuple[Operation, ...]] = []
    lines: list[tuple[int, ...]] = []
    for rows in agents:
        if not isinstance(rows, list):
            raise ValueError(f"an agent's code is a list of operations, not {brief(rows)}")
        for row in rows:
            if not isinstance(row, list) or len(row) < 2 or not isinstance(row[1], str) or row[1] not in _OPERATIONS:
                raise ValueError(f"an operation is a list of a source, a name and operands, not {brief(row)}")
        code.append(tuple((_OPERATIONS[row[1]], *row[2:]) for row in rows))
        lines.append(tuple(_integer(row[0]) for row in rows))
    return tuple(code), tuple(lines)


def _part(data: dict[str, Any], name: str, kind: type = object) -> Any:
    """A part of a program, which is of this type."""
    if name not in data:
        raise ValueError(f"it has no {name!r}")
    if not isinstance(data[name], kind):
        raise ValueError(f"{name!r} is {brief(data[name])}, not {_KINDS[kind]}")
    return data[name]


def _rows(data: dict[str, Any], name: str) -> list[list[Any]]:
    """The rows of a side table, each with as many parts as it has."""
    rows: list[list[Any]] = _part(data, name, list)
    parts = _ROWS[name]
    most = MAX_ACCESSES if name == "accesses" else MAX_TABLE
    if len(rows) > most:
        raise ValueError(f"it has {len(rows):,} {name}; at most {most:,} are read")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(parts.split()):
            raise ValueError(f"an entry of {name!r} is a list of {parts.replace(' ', ', ')}, not {brief(row)}")
    return rows


def _texts(data: dict[str, Any], name: str) -> tuple[str, ...]:
    return tuple(_text(each) for each in _part(data, name, list))


def _integers(data: dict[str, Any], name: str) -> tuple[int, ...]:
    """The numbers of a list that most programs do not have."""
    return tuple(_integer(each) for each in _part({name: [], **data}, name, list))


def _work(data: dict[str, Any]) -> tuple[Work, ...]:
    found = []
    for line, name, amounts in _rows(data, "work"):
        if not isinstance(amounts, dict):
            raise ValueError(f"the amounts of a work are an object, not {brief(amounts)}")
        pairs = tuple((kind, _integer(value)) for kind, value in amounts.items())
        found.append(Work(_integer(line), _text(name), pairs))
    return tuple(found)


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{brief(value)} should be an integer")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{brief(value)} should be text")
    return value


def _space(value: object) -> Space:
    if not isinstance(value, str) or value not in Space.__members__:
        raise ValueError(f"there is no memory {brief(value)}; there are {', '.join(Space.__members__)}")
    return Space[value]
