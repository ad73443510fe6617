"""The records that an observed process has written into a spool folder, as plain data: bounded, and never evaluated.

A spool folder has one ``NAME.jsonl`` for each process, a JSON object in each line, and files of code beside it:
``KEY.ptx``, or ``KEY.entry``, an entry of a fat binary, and ``KEY.records``, the buffer of a launch. A line is complete
when it ends with a newline, so that the records of a process that was killed can be read. What is damaged becomes a
note with its file and line.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipesim import bounds
from pipesim.errors import LaunchFileError, UsageError
from pipesim.inputs import InputKind, json_value
from pipesim.launches.records.record import (
    CopiedMemory,
    CountRecord,
    InstrumentedRecord,
    LaunchRecord,
    ObservedProcess,
    RecordedRecord,
    SeenMap,
    SeenParameter,
    SeenPointer,
    SpoolRecords,
    StepRecord,
)
from pipesim.ptx.launch import file as launch_file
from pipesim.ptx.launch.members import Members

CORRECTION = "run the program again; other programs must not write into the folder"
_MAP_BYTES = 128
_MAP_MEMBERS = ("at", *(name for name in launch_file.KINDS["tensor_map"] if name != "kind"))


def seen_parameter(data: Any, place: str) -> SeenParameter:
    """A parameter of a launch; what is known about its words lies within it and does not overlap."""
    given = Members(data, place, ("bytes", "pointers", "maps"))
    held = bytes_of(given, "bytes", launch_file.MOST_SPACE)
    pointers = tuple(_each(given, "pointers", lambda each: _pointer(each, len(held))))
    maps = tuple(_each(given, "maps", lambda each: _map(each, len(held))))
    taken: set[int] = set()
    for start, size in [(each.at, 8) for each in pointers] + [(each.at, _MAP_BYTES) for each in maps]:
        word = set(range(start, start + size))
        if word & taken:
            raise given.error("pointers", "two of them overlap", correction=CORRECTION)
        taken |= word
    return SeenParameter(held, pointers, maps)


def _pointer(given: Members, size: int) -> SeenPointer:
    align = given.whole("align", 1, low=1, high=1 << 12)
    if align & (align - 1):
        raise given.error("align", f"{align} is not a power of two", correction=CORRECTION)
    contents = bytes_of(given, "contents", bounds.MAX_RECORD_BYTES) if "contents" in given.data else None
    return SeenPointer(given.whole("at", high=size - 8), align, contents)


def _map(given: Members, size: int) -> SeenMap:
    at = given.whole("at", high=size - _MAP_BYTES)
    words = {name: value for name, value in given.data.items() if name != "at"}
    return SeenMap(at, launch_file.read_tensor_map(Members(words, given.place, _MAP_MEMBERS)))


def _each(given: Members, name: str, read: Callable[[Members], Any]) -> Iterator[Any]:
    known = _MAP_MEMBERS if name == "maps" else ("at", "align", "contents")
    for number, each in enumerate(given.items(name, [])):
        yield read(Members(each, given.place_of(f"{name}[{number}]"), known))


def bytes_of(given: Members, name: str, most: int) -> bytes:
    """A member that is hexadecimal digits, of at most ``most`` bytes."""
    text = given.text(name)
    if len(text) > 2 * most:
        raise given.error(name, f"more than {most:,} bytes", correction=CORRECTION)
    if not text.isascii() or not (text.isalnum() or not text):
        raise given.error(name, "expected hexadecimal digits", correction=CORRECTION)
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise given.error(name, "expected an even number of hexadecimal digits", correction=CORRECTION) from None


def name_of(given: Members, name: str) -> str:
    """A member that is a kernel's name."""
    text = given.text(name)
    if not text or len(text) > bounds.MAX_KERNEL_NAME or not text.isprintable() or not text.isascii():
        raise given.error(name, "expected a name of ASCII characters", correction=CORRECTION)
    return text


def line_of(given: Members, name: str, text: object) -> str:
    """A text in one line; characters that no terminal should see become question marks."""
    if not isinstance(text, str):
        raise given.error(name, "expected text", correction=CORRECTION)
    return "".join(c if c.isprintable() else "?" for c in text[: bounds.MAX_TEXT])


RECORDS_VERSION = 1
MOST_NOTES = 32  #: damaged lines that are named
_LINES = InputKind("file of records", bounds.MAX_SPOOL_BYTES, UsageError, CORRECTION)
_BUFFER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\.records")
_MEMORY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\.memory)?")
_CODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\.(ptx|entry)")


def read_spool(folder: Path) -> SpoolRecords:
    """Read the records of a folder. What cannot be read is a note; UsageError if the folder cannot be listed."""
    found = _SpoolContents()
    try:
        paths = sorted((path for path in folder.iterdir() if path.suffix == ".jsonl"), key=_by_process)
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be read", cause=error.strerror or str(error)) from error
    if len(paths) > bounds.MAX_SPOOL_FILES:
        found.note(f"{len(paths) - bounds.MAX_SPOOL_FILES:,} of {len(paths):,} processes were left out")
    for path in paths[: bounds.MAX_SPOOL_FILES]:
        try:
            _read(path, found)
        except UsageError as error:
            found.note(f"{path.name}: {error.cause or error.fact}")
    if found.damaged > MOST_NOTES:
        found.note(f"{found.damaged - MOST_NOTES:,} more records cannot be read")
    return found.records


def _by_process(path: Path) -> tuple[int, str]:
    """Files are named after the process's number: earlier ones first, as far as numbers say it."""
    number = re.match(r"\d{1,18}", path.name)
    return int(number[0]) if number else 0, path.name


def is_code_file(name: str) -> bool:
    """Whether a record may name this as its file of code: a plain name, of a file in the folder itself."""
    return _CODE.fullmatch(name) is not None


@dataclass
class _SpoolContents:
    records: SpoolRecords = field(default_factory=SpoolRecords)
    damaged: int = 0
    lines: int = 0

    def note(self, text: str) -> None:
        if text not in self.records.notes:
            self.records.notes.append(text)


def _read(path: Path, found: _SpoolContents) -> None:
    if path.is_symlink():
        raise UsageError(f"{path.name} is a link", cause="it is a link")
    lines = _LINES.read_bytes(path).split(b"\n")
    for number, line in enumerate(lines[:-1], 1):  # what follows the last newline was not written to its end
        if not line.strip():
            continue
        found.lines += 1
        if found.lines > bounds.MAX_RECORDS:
            found.note(f"{path.name}: more than {bounds.MAX_RECORDS:,} records; the rest was left out")
            return
        place = f"{path.name}:{number}"
        try:
            _take(json_value(line.decode("utf-8"), bounds.MAX_RECORD_BYTES), path.stem, place, found)
        except (LaunchFileError, ValueError) as error:  # UnicodeDecodeError and BoundError are ValueErrors
            found.damaged += 1
            if found.damaged <= MOST_NOTES:
                where = error.place if isinstance(error, LaunchFileError) and error.place else place
                said = error.fact if isinstance(error, LaunchFileError) else str(error)
                found.note(f"{where}: a record cannot be read: {said}")


def _take(data: Any, process: str, place: str, found: _SpoolContents) -> None:
    kind = Members(data, place, tuple(data) if isinstance(data, dict) else ()).text("kind", among=tuple(_KINDS))
    _KINDS[kind](Members(data, place, ("kind", *_MEMBERS[kind])), process, found)


def _process(given: Members, _process: str, found: _SpoolContents) -> None:
    if given.whole("version") != RECORDS_VERSION:
        raise given.error("version", f"expected {RECORDS_VERSION}", correction=CORRECTION)
    argv = tuple(line_of(given, "argv", each) for each in given.items("argv", []))
    device, arch = (line_of(given, name, given.text(name, "")) for name in ("device", "arch"))
    found.records.processes.append(ObservedProcess(given.whole("pid"), argv, device, arch))


def _launch(given: Members, process: str, found: _SpoolContents) -> None:
    found.records.launches.append(launch_record(given, process))


def launch_record(given: Members, process: str = "") -> LaunchRecord:
    """The launch of a record, whose members are :data:`LAUNCH_MEMBERS`. Raises LaunchFileError."""
    code = given.text("code", "")
    if code and not is_code_file(code):
        raise given.error("code", "expected the name of a file in the folder", correction=CORRECTION)
    parameters = None
    known = given.data.get("parameters_known", True)
    if known is not True and known is not False:
        raise given.error("parameters_known", "expected true or false", correction=CORRECTION)
    if known:
        places = enumerate(given.items("parameters", []))
        parameters = tuple(seen_parameter(each, given.place_of(f"parameters[{n}]")) for n, each in places)
        if sum(len(each.data) for each in parameters) > launch_file.MOST_SPACE:
            raise given.error("parameters", f"more than {launch_file.MOST_SPACE:,} bytes", correction=CORRECTION)
    return LaunchRecord(
        name_of(given, "kernel"),
        line_of(given, "image", given.text("image", "")),
        code,
        line_of(given, "origin", given.text("origin", "")),
        line_of(given, "why_not", given.text("why_not", "")),
        launch_file.read_shape(given, "grid", launch_file.MOST_GRID),
        launch_file.read_shape(given, "block", launch_file.MOST_THREADS),
        launch_file.read_shape(given, "cluster", launch_file.MOST_CLUSTER, default=(1, 1, 1)),
        given.whole("dynamic_shared", 0, high=launch_file.MOST_SHARED),
        given.whole("registers", 0, high=launch_file.MOST_REGISTERS),
        given.text("via", "launch", ("launch", "graph")),
        parameters,
        process,
        given.place,
        tuple(_copied(given, each) for each in given.items("memory", [])),
        line_of(given, "in_graph", given.text("in_graph", "")),
    )


def _copied(given: Members, row: object) -> CopiedMemory:
    match row:
        case [int(start), int(nbytes), str(file)] if min(start, nbytes) > 0 and _MEMORY.fullmatch(file):
            return CopiedMemory(start, nbytes, file)
        case _:
            raise given.error("memory", "expected an address, bytes and a file of the folder", correction=CORRECTION)


def _count(given: Members, process: str, found: _SpoolContents) -> None:
    kernel, image = name_of(given, "kernel"), line_of(given, "image", given.text("image", ""))
    launches, distinct, left_out = (given.whole(name, 0) for name in ("launches", "distinct", "left_out"))
    found.records.counts.append(CountRecord(kernel, image, launches, distinct, left_out, process))


def _step(given: Members, process: str, found: _SpoolContents) -> None:
    buffers = given.items("buffers", [])
    if not all(isinstance(row, list) and len(row) == 4 and all(type(n) is int for n in row) for row in buffers):
        raise given.error("buffers", "expected four numbers of each", correction=CORRECTION)
    texts = {name: line_of(given, name, given.text(name, "")) for name in ("kernel", "stream", "act", "event")}
    rows, launch = tuple(map(tuple, buffers)), given.whole("launch", -1, low=-1)
    programmatic = given.data.get("programmatic") is True
    step = StepRecord(launch=launch, buffers=rows, programmatic=programmatic, process=process, **texts)
    found.records.steps.append(step)


def _add_instrumented(given: Members, _process: str, found: _SpoolContents) -> None:
    code = given.text("code")
    if code and not is_code_file(code):
        raise given.error("code", "expected the name of a file in the folder", correction=CORRECTION)
    registers, spills, stack = (_pair(given, name) for name in ("registers", "spills", "stack"))
    warnings = tuple(line_of(given, "warnings", each) for each in given.items("warnings", []))
    made = InstrumentedRecord(name_of(given, "kernel"), code, registers, spills, stack, warnings)
    found.records.instrumented.append(made)


def _pair(given: Members, name: str) -> tuple[int, int]:
    """Two numbers, before and after."""
    values = given.items(name, [0, 0])
    if len(values) != 2 or not all(type(each) is int and 0 <= each < 1 << 31 for each in values):
        raise given.error(name, "expected two numbers", correction=CORRECTION)
    return values[0], values[1]


def _add_recorded(given: Members, process: str, found: _SpoolContents) -> None:
    file = given.text("file", "")
    if file and _BUFFER.fullmatch(file) is None:
        raise given.error("file", "expected the name of a file in the folder", correction=CORRECTION)
    launch = Members(given.data.get("launch"), given.place_of("launch"), LAUNCH_MEMBERS)
    reason = line_of(given, "reason", given.text("reason", ""))
    found.records.recorded.append(RecordedRecord(launch_record(launch, process), file, reason))


def _note(given: Members, _process: str, found: _SpoolContents) -> None:
    found.note(line_of(given, "text", "; ".join(line.strip() for line in given.text("text").splitlines())))


LAUNCH_MEMBERS = (
    "kernel", "image", "code", "origin", "why_not", "grid", "block", "cluster", "dynamic_shared", "registers", "via",
    "parameters", "parameters_known", "memory", "in_graph",
)  # fmt: skip

_KINDS: dict[str, Callable[[Members, str, _SpoolContents], None]] = {
    "process": _process,
    "launch": _launch,
    "count": _count,
    "step": _step,
    "note": _note,
    "instrumented": _add_instrumented,
    "recorded": _add_recorded,
}
_MEMBERS = {
    "process": ("version", "pid", "argv", "device", "arch"),
    "launch": LAUNCH_MEMBERS,
    "count": ("kernel", "image", "launches", "distinct", "left_out"),
    "step": ("kernel", "launch", "buffers", "stream", "programmatic", "act", "event"),
    "note": ("text",),
    "instrumented": ("kernel", "code", "registers", "spills", "stack", "warnings"),
    "recorded": ("launch", "file", "reason"),
}
