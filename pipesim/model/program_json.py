"""The JSON form of the flat program (documented in ``docs/flat-program.md``): ``dumps`` and ``loads`` are inverse."""

import json
from collections.abc import Callable
from reprlib import repr as brief  # of a value that may be as long as its file
from typing import Any, NoReturn

from pipesim.bounds import MAX_ACCESSES, MAX_JSON_BYTES, MAX_OPERATIONS, MAX_TABLE
from pipesim.errors import ProgramFormatError
from pipesim.inputs import InputKind
from pipesim.model.coverage import WHOLE, Coverage, coverage_from
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
    head = {"format": FORMAT} | {name: getattr(program, name) for name in _ALWAYS}
    head |= {name: value for name in _ELSE_NOTHING if (value := getattr(program, name)) and value != WHOLE}
    lines = [f"  {json.dumps(key)}: {json.dumps(value, default=_plain)}," for key, value in head.items()]
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
    data = {"pipelines": [], "launch_registers": 0, **_ELSE_NOTHING, **data}  # earlier versions left these out
    members: dict[str, Any] = {name: _integer(_part(data, name)) for name in _NUMBER}
    members |= {name: tuple(map(_integer, _part(data, name, list))) for name in _NUMBERS}
    members |= {name: tuple(map(_text, _part(data, name, list))) for name in _TEXTS}
    for name, (make, parts) in _ROWS.items():
        members[name] = tuple(
            make(*[read(value) for read, value in zip(parts.values(), row, strict=True)]) for row in _rows(data, name)
        )
    params = {name: _integer(value) for name, value in _part(data, "params", dict).items()}
    return Program(name=_text(_part(data, "name")), params=params, code=code, lines=lines, coverage=coverage, **members)


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
    parts = _ROWS[name][1]
    most = MAX_ACCESSES if name == "accesses" else MAX_TABLE
    if len(rows) > most:
        raise ValueError(f"it has {len(rows):,} {name}; at most {most:,} are read")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(parts):
            raise ValueError(f"an entry of {name!r} is a list of {', '.join(parts)}, not {brief(row)}")
    return rows


def _plain(part: Any) -> object:
    """How a row of a side table and a coverage are written: a memory by its name."""
    if isinstance(part, Coverage):
        return part.document()
    if isinstance(part, Work):
        return [part.line, part.name, dict(part.amounts)]
    return [each.name if isinstance(each, Space) else each for each in vars(part).values()]


def _amounts(value: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, dict):
        raise ValueError(f"the amounts of a work are an object, not {brief(value)}")
    return tuple((kind, _integer(amount)) for kind, amount in value.items())


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


def _tuple(*parts: int) -> tuple[int, ...]:
    return parts


Reader = Callable[[object], object]
#: The side tables: what their rows become, and what the parts of a row are called and read by.
_ROWS: dict[str, tuple[Callable[..., object], dict[str, Reader]]] = {
    "agents": (Agent, {"cta": _integer, "warp": _integer, "lanes": _integer, "role": _text, "index": _integer}),
    "barriers": (Barrier, {"cta": _integer, "name": _text, "stage": _integer}),
    "named_barriers": (_tuple, {"cta": _integer, "id": _integer}),
    "accesses": (Access, {"space": _space, "cta": _integer, "offset": _integer, "bytes": _integer}),
    "tiles": (Tile, {"name": _text, "space": _space, **dict.fromkeys(("cta", "offset", "bytes", "slots"), _integer)}),
    "work": (Work, {"line": _integer, "name": _text, "amounts": _amounts}),
    "unsure": (_tuple, {"agent": _integer, "operation": _integer, "why": _integer}),
}
_TEXTS = ("loops", "sources", "notes", "pipelines")
_NUMBER = ("ctas", "grid", "smem_bytes", "registers", "version", "launch_registers", "architecture")
_NUMBERS = ("cut", "silent", "stored", "filled")
#: What is always written, in this order, and what most programs do not have.
_ALWAYS = (
    *("version", "name", "params", "ctas", "grid", "smem_bytes", "registers"),
    *("agents", "barriers", "named_barriers", "accesses", "tiles"),
    *(*_TEXTS, "launch_registers"),
)
_ELSE_NOTHING = {"architecture": 0, "work": [], "coverage": {}} | {name: [] for name in (*_NUMBERS, "unsure")}
