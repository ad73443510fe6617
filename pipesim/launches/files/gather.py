"""The records of a spool folder, made into PTX files, launch files, and a report of all kernels that were launched."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path

from pipesim.answers.views.launches import (
    INDEX_FORMAT,
    INDEX_VERSION,
    NOT_LISTED,
    CaughtKernel,
    CaughtLaunch,
    LaunchesReport,
)
from pipesim.errors import OutputExistsError, PipesimError, UsageError, internal_error
from pipesim.launches.files.found_ptx import Codes, FoundCode
from pipesim.launches.files.launch_file import DescribedLaunch, KernelText, describe_launch, kernel_text
from pipesim.launches.observe.limits import Limits
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import CountRecord, LaunchRecord, SpoolRecords, StepRecord
from pipesim.process.files import require_free, write_whole
from pipesim.process.program import without_secrets
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Content, Launch, Pointer, Struct
from pipesim.ptx.names.paths import kernel_name
from pipesim.version import __version__

INDEX = "launches.json"


def require_folder(folder: Path, *, force: bool) -> None:
    """Before a program runs: raise if the files could not be written after it.

    OutputExistsError if the folder has something in it and ``force`` is not given; UsageError if it is not a folder, or
    cannot be made or written to.
    """
    at = folder
    while not at.exists() and at != at.parent:
        at = at.parent
    if not at.is_dir():
        raise UsageError(f"{at} is not a folder", correction="name another one")
    if not os.access(at, os.W_OK):
        raise UsageError(f"cannot write to the folder {at}", correction="name another folder")
    if at == folder and not force and any(not each.name.startswith(".") for each in folder.iterdir()):
        raise OutputExistsError(
            f"{folder} is not empty", correction="name another folder, or add --force to overwrite files in it"
        )


def write_launches(report: LaunchesReport, texts: Mapping[str, str], folder: Path, *, force: bool = False) -> None:
    """Write the files and the index; the folder is made. OutputExistsError unless ``force``, before any is written."""
    every = {**texts, INDEX: index_json(report)}
    for name in every:
        require_free(folder / name, force=force)
    for name, text in every.items():
        write_whole(folder / name, text.encode("utf-8"), force=force, private=True)


def index_json(report: LaunchesReport) -> str:
    """What was launched and which files have it, as JSON (docs/launches.md)."""
    head = {"format": INDEX_FORMAT, "version": INDEX_VERSION, "pipesim": __version__}
    head |= {"command": report.command, "status": report.status}
    kernels = [_members(each) | {"caught": [_members(one) for one in each.caught]} for each in report.kernels]
    data = {**head, "devices": report.devices, "kernels": kernels, "notes": report.notes}
    return json.dumps(data, indent=1) + "\n"


def _members(each: CaughtKernel | CaughtLaunch) -> dict[str, object]:
    return {field.name: getattr(each, field.name) for field in fields(each) if field.name not in NOT_LISTED}


_MOST = 48  #: characters of a name
_RESERVED = frozenset(
    {"launches", "sequence", "con", "prn", "aux", "nul"}
)  #: the index, and names that Windows has taken
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


class FileNames:
    """Gives each kernel and PTX a name of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set(_RESERVED)

    def name_of(self, kernel: str, text: str) -> str:
        """The name, without a suffix, of a kernel's files; ``text``: its PTX."""
        safe = _UNSAFE.sub("_", kernel_name(kernel)).strip("_") or "kernel"
        digest = sha256(f"{kernel}\0{text}".encode("utf-8", "surrogateescape")).hexdigest()
        name = safe if len(safe) <= _MOST else f"{safe[:_MOST]}-{digest[:8]}"
        if name.lower() in self._taken:  # another kernel, or another PTX of this one
            name = f"{safe[:_MOST]}-{digest[:8]}"
        length = 16
        while name.lower() in self._taken:
            name, length = f"{safe[:_MOST]}-{digest[:length]}", length + 8
        self._taken.add(name.lower())
        return name


def launch_file_name(name: str, number: int) -> str:
    """``NAME.json`` of the first launch (0), ``NAME-2.json`` of the second."""
    return f"{name}.json" if number == 0 else f"{name}-{number + 1}.json"


_NO_BARRIER = "no barrier"
SEQUENCE = "sequence.json"  #: the launches in their order
_NOT_RECORDED = "no launch of it was recorded"

Texts = dict[str, str]  #: the text of each file, by its name


@dataclass
class _Kernel:
    """One row: a kernel with one PTX, or one without PTX for one reason."""

    name: str
    code: FoundCode
    kernel: KernelText | None = None
    records: list[LaunchRecord] = field(default_factory=list)
    counts: list[CountRecord] = field(default_factory=list)
    launches: "dict[Launch, _DistinctLaunch]" = field(default_factory=dict)  #: by what it is without alignments
    reasons: dict[tuple[object, ...], tuple[LaunchRecord, DescribedLaunch]] = field(default_factory=dict)
    seen: dict[LaunchRecord, Launch | None] = field(default_factory=dict)  #: by records without addresses, and without
    #: who made them, the launch


@dataclass
class _DistinctLaunch:
    """A launch, and the record that it was made of first."""

    record: LaunchRecord
    launch: Launch
    notes: tuple[str, ...]


def gather(
    spool: Path,
    dump: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
    *,
    folder: str = "",
    command: Sequence[str] = (),
    status: int | None = None,
    patterns: Sequence[str] = (),
    made_of: dict[str, LaunchRecord] | None = None,
) -> tuple[LaunchesReport, Texts]:
    """The report on the records of a spool folder, and the files that it names, none of which is written yet.

    ``dump``: PTX texts of a compiler's dump by kernel (:func:`pipesim.launches.files.embedded_ptx.dumped_ptx`).
    ``folder``, ``command`` and ``status`` are for the report. Of kernels that match none of the ``patterns``, if there
    are some, only the number is said. ``made_of`` gets the record of each launch file. UsageError if the folder cannot
    be read.
    """
    records = read_spool(spool)
    every = _kernels(records, Codes(spool, dump or {}))
    wanted = Limits(tuple(patterns))
    kernels = [each for each in every if wanted.wants(each.name)]
    notes = tuple(records.notes)
    if len(every) > len(kernels):
        notes = (*notes, f"kernels that match no pattern: {len(every) - len(kernels):,}")
    names, texts = FileNames(), Texts()
    rows = tuple(_row(each, names, texts) for each in kernels)
    for kernel, row in zip(kernels, rows, strict=True):
        for made, caught in zip(kernel.launches.values(), row.caught, strict=False):
            if made_of is not None:
                made_of[caught.file] = made.record
    if records.steps:
        texts[SEQUENCE] = _sequence(records, kernels, rows)
    devices = tuple(dict.fromkeys(each.device for each in records.processes if each.device))
    return LaunchesReport(folder, without_secrets(command), status, devices, rows, notes), texts


def _sequence(records: SpoolRecords, kernels: Sequence[_Kernel], rows: Sequence[CaughtKernel]) -> str:
    """The launches in their order, as ``pipesim check --sequence`` reads them."""
    by_process: dict[str, list[LaunchRecord]] = {}
    for record in records.launches:
        by_process.setdefault(record.process, []).append(record)
    files: dict[tuple[str, Launch], tuple[_Kernel, dict[str, object]]] = {}
    for kernel, row in zip(kernels, rows, strict=True):
        for made, caught in zip(kernel.launches, row.caught, strict=False):
            files[kernel.name, made] = kernel, {"ptx": row.ptx, "launch": caught.file}
    steps: list[dict[str, object]] = []
    begin: dict[tuple[str, int], int] = {}  # the lowest address of an allocation, by its end
    for each in records.steps:
        for _, _, end, address in each.buffers:
            begin[each.process, end] = min(address, begin.get((each.process, end), address))
    numbers: dict[tuple[str, object], str] = {key: f"a{n + 1}" for n, key in enumerate(begin)}

    def named(kind: str, of: StepRecord, handle: str) -> str:
        """What differs in each run by its number: handles are addresses, but for those of CUDA's own streams."""
        if len(handle) < 3:
            return handle
        return numbers.setdefault((of.process, kind + handle), f"{kind}{len(numbers) + 1}")

    for each in records.steps:
        own = named("s", each, each.stream)
        if each.act:
            at = {"stream": own} if each.act != "synchronize" else {}
            steps.append({each.act: named("e", each, each.event) if at else own, **at})
            continue
        stream = {"stream": own, "programmatic": each.programmatic}
        mine = by_process.get(each.process, [])
        plain = _without_addresses(mine[each.launch]) if 0 <= each.launch < len(mine) else None
        seen = [kernel.seen[plain] for kernel in kernels if kernel.name == each.kernel and plain in kernel.seen]
        found = files.get((each.kernel, seen[0])) if plain is not None and seen and seen[0] is not None else None
        if found is None or found[0].kernel is None:
            steps.append({"kernel": each.kernel} | stream)
            continue
        formals = found[0].kernel.entry.params
        keys = ((n, at, (each.process, end), address) for n, at, end, address in each.buffers)
        places = {str(formals[n].offset + at): f"{numbers[k]}+{address - begin[k]}" for n, at, k, address in keys}
        steps.append(found[1] | stream | {"buffers": places})
    head = {"format": INDEX_FORMAT, "version": INDEX_VERSION}
    listed = ",\n".join(f"  {json.dumps(each)}" for each in steps)
    return f'{json.dumps(head)[:-1]}, "sequence": [\n{listed}\n]}}\n'


def _kernels(records: SpoolRecords, codes: Codes) -> list[_Kernel]:
    """The rows in the order of the first launch of each."""
    rows: dict[tuple[str, str], _Kernel] = {}
    by_image: dict[tuple[str, str, str], _Kernel] = {}
    for record in records.launches:
        code = codes.code_of(record)
        digest = sha256(code.text.encode("utf-8", "replace")).hexdigest() if code.text else f"{code.reason}"
        row = rows.get((record.kernel, digest))
        if row is None:
            row = rows[record.kernel, digest] = _open_kernel(record.kernel, code)
        by_image.setdefault((record.process, record.kernel, record.image), row)
        row.records.append(record)
        _describe(row, record, ordered=bool(records.steps))  # what has no barrier is in a sequence as well
    for count in records.counts:
        found = by_image.get((count.process, count.kernel, count.image))
        if found is None:
            code = FoundCode(reason=_NOT_RECORDED)
            found = rows.setdefault((count.kernel, _NOT_RECORDED), _Kernel(count.kernel, code))
        found.counts.append(count)
    return list(rows.values())


def _open_kernel(name: str, code: FoundCode) -> _Kernel:
    if not code.text:
        return _Kernel(name, code)
    try:
        kernel = kernel_text(code.text, "its PTX", name)
        _ = kernel.has_barriers  # its calls can be inlined
    except PipesimError as error:
        return _Kernel(name, code._replace(reason=f"its PTX cannot be read: {error.fact}"))
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one kernel must not lose the others
        return _Kernel(name, code._replace(reason=internal_error(error).fact))
    return _Kernel(name, code, kernel)


def _without_addresses(record: LaunchRecord) -> LaunchRecord:
    """What two processes record of the same launch: the words that are addresses are 0, their alignments stay."""
    record = replace(record, memory=())
    if record.parameters is None:
        return replace(record, process="", place="", image="", code="", origin="")
    parameters = []
    for each in record.parameters:
        data = bytearray(each.data)
        for pointer in each.pointers:
            data[pointer.at : pointer.at + 8] = bytes(8)
        parameters.append(replace(each, data=bytes(data)))
    return replace(record, parameters=tuple(parameters), process="", place="", image="", code="", origin="")


def _describe(row: _Kernel, record: LaunchRecord, *, ordered: bool) -> None:
    plain_record = _without_addresses(record)
    if row.kernel is None or not (row.kernel.has_barriers or ordered) or plain_record in row.seen:
        return
    row.seen[plain_record] = None
    try:
        made = describe_launch(record, row.kernel)
    except Exception as error:  # noqa: BLE001  # a mistake of ours in one kernel must not lose the others
        made = DescribedLaunch(None, internal_error(error).fact)
    if made.compiled is None:
        row.reasons.setdefault((made.reason, record.grid, record.block, record.cluster), (record, made))
        return
    launch = made.compiled.launch
    plain = row.seen[plain_record] = _with_alignments(launch, None)
    known = row.launches.get(plain)
    if known is None:
        row.launches[plain] = _DistinctLaunch(record, launch, made.notes)
    else:
        known.launch = _with_alignments(known.launch, launch)


def _with_alignments(launch: Launch, other: Launch | None) -> Launch:
    """The launch with the smaller alignment of each pointer in both, which differ in nothing else; None: all 1."""
    given = other.parameters if other is not None else (None,) * len(launch.parameters)
    parameters = [
        each._replace(content=_align(each.content, peer.content if peer is not None else None))
        for each, peer in zip(launch.parameters, given, strict=True)
    ]
    return replace(launch, parameters=tuple(parameters))


def _align(content: Content, peer: Content | None) -> Content:
    match content:
        case Pointer(align=align):
            return replace(content, align=min(align, peer.align) if isinstance(peer, Pointer) else 1)
        case Struct(fields=fields):
            others = peer.fields if isinstance(peer, Struct) else (None,) * len(fields)
            pairs = zip(fields, others, strict=True)
            made = (each._replace(content=_align(each.content, other and other.content)) for each, other in pairs)
            return replace(content, fields=tuple(made))
        case _:
            return content


def _row(row: _Kernel, names: FileNames, texts: Texts) -> CaughtKernel:
    """What the report says about a kernel; the texts of its files are added to ``texts``."""
    caught: list[CaughtLaunch] = []
    ptx = ""
    if row.launches:
        name = names.name_of(row.name, row.code.text)
        ptx = f"{name}.ptx"
        texts[ptx] = row.code.text
        for number, made in enumerate(row.launches.values()):
            file = launch_file_name(name, number)
            texts[file] = launch_json(made.launch)
            caught.append(_launch(made.record, file, "", made.notes))
    caught += [_launch(record, "", made.reason, made.notes) for record, made in row.reasons.values()]
    kernel = row.kernel
    reason = row.code.reason
    if kernel is not None and not kernel.has_barriers and not row.launches:
        reason = _NO_BARRIER
    counted = {count.process for count in row.counts}
    known = bool(row.counts) and all(record.process in counted for record in row.records)
    left_out = sum(each.left_out for each in row.counts)
    others = max([*(each.distinct for each in row.counts), len(row.records), 1])
    return CaughtKernel(
        row.name,
        row.code.origin,
        kernel.arch if kernel is not None else "",
        ptx,
        kernel.has_barriers if kernel is not None else None,
        sum(each.launches for each in row.counts) if known else None,
        len(caught) + left_out if caught else others,
        left_out,
        tuple(caught),
        reason,
    )


def _launch(record: LaunchRecord, file: str, reason: str, notes: tuple[str, ...]) -> CaughtLaunch:
    return CaughtLaunch(file, record.grid, record.block, record.cluster, record.via, reason, notes)
