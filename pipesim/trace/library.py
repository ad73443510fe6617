"""The stored recordings: where they are, what they are called, and which of them fit a protocol.

Only the recording of a GPU without an injected fault is evidence: simulated traces that lie among them, and runs
with an injected fault, are never found; windows of a run only where the device has no whole one.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipesim.errors import EvidenceError, ForeignFileError, NoTraceError
from pipesim.trace.files import read_meta
from pipesim.trace.schema import READ_FROM, TraceMeta

_NEAREST = 3  #: how many other configurations an error names
_KNOWN_CHIPS = re.compile(r"\bH(?:100|200)\b", re.IGNORECASE)


@dataclass(frozen=True)
class StoredTrace:
    """A trace file of a folder with its description; its events are not read."""

    path: Path
    meta: TraceMeta


def trace_folder() -> Path:
    """The recordings that came with pipesim: the installed package's, else the checkout's. EvidenceError if neither."""
    return _folder_of(Path(__file__).resolve().parents[1])


def stored_traces(folder: Path, named: str = "*") -> tuple[StoredTrace, ...]:
    """Every trace of a protocol below a folder, sorted by device, then file name; other files are ignored.

    So are traces of kernels that are known by their PTX alone, which have no protocol, and Parquet files of other
    programs, which :func:`foreign_files` names. Raises EvidenceError if there is no such folder, and TraceFormatError,
    naming the file, for a damaged one: a recording is never skipped silently. ``named``: the file names that are looked
    at, a pattern; those of :func:`trace_name` begin with the protocol.
    """
    found = [
        StoredTrace(path, meta)
        for path, meta in _read(folder, named)
        if meta is not None and READ_FROM not in meta.extra
    ]
    return tuple(sorted(found, key=lambda trace: (trace.meta.device.name, trace.path.name, trace.path.as_posix())))


def foreign_files(folder: Path) -> tuple[Path, ...]:
    """The Parquet files below a folder that are no traces, by name. Raises as :func:`stored_traces` does."""
    return tuple(path for path, meta in _read(folder) if meta is None)


def _read(folder: Path, named: str = "*") -> Iterator[tuple[Path, TraceMeta | None]]:
    """Every Parquet file below a folder with its description, None if it is not a trace."""
    if not folder.is_dir():
        raise EvidenceError(
            "there is no such folder of traces", place=str(folder), correction="check the path of the folder"
        )
    for path in sorted(folder.rglob(f"{named}.parquet")):
        if path.is_file():
            try:
                yield path, read_meta(path)
            except ForeignFileError:
                yield path, None


def find_traces(protocol: str, params: Mapping[str, int], grid: int, folder: Path | None = None) -> list[Path]:
    """The recordings of this protocol with exactly these parameters and this grid, sorted by device, then file name.

    ``folder`` is searched with all that is below it (:func:`trace_folder` if not given, whose files are called as
    :func:`trace_name` says: most need not be opened). Raises NoTraceError, which names the nearest recordings there are
    and the command that makes this one, and whatever :func:`stored_traces` raises.
    """
    named = f"{_in_a_path(protocol)}-*" if folder is None else "*"
    folder = trace_folder() if folder is None else folder
    everything = stored_traces(folder, named) or stored_traces(folder)
    stored = [trace for trace in everything if trace.meta.source == "hardware" and not trace.meta.fault]
    found = [trace for trace in stored if not _differences(trace.meta, protocol, params, grid)]
    if not found:
        raise _no_trace(stored, protocol, params, grid, folder)
    whole = {trace.meta.device.name for trace in found if not trace.meta.window}
    return [trace.path for trace in found if not trace.meta.window or trace.meta.device.name not in whole]


def trace_name(meta: TraceMeta) -> str:
    """Where a recording belongs below the folder: ``h100/producer_consumer-s4-t64-tb16384-g1.parquet``.

    The parameters stand in the order of their names, each under an abbreviation (see :func:`abbreviations`), then the
    grid. What timestamped the records, where they went, the window and the fault follow where they are not as usual.
    """
    short = abbreviations(meta.params)
    parts = [_in_a_path(meta.protocol) or "protocol"]
    parts += [f"{_in_a_path(short[name])}{meta.params[name]}" for name in sorted(meta.params)]
    parts.append(f"{_grid_letters(short)}{meta.grid}")
    if meta.clock != "clock":
        parts.append(_in_a_path(meta.clock))
    if meta.memory == "device":
        parts.append(meta.memory)
    if meta.window:
        parts.append(f"window{meta.window[0]}..{meta.window[1]}")
    if meta.fault:
        parts.append(_in_a_path(meta.fault.replace("@", "-at-")))
    return f"{device_slug(meta.device.name)}/{'-'.join(parts)}.parquet"


def _in_a_path(name: str) -> str:
    """A name as a part of a file's name: whatever it holds, it names no other folder and needs no quotes in a shell."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")


def device_slug(name: str) -> str:
    """The folder of a device: ``h100`` and ``h200`` for every variant of these, else its name in lower-case words."""
    chip = _KNOWN_CHIPS.search(name)
    slug = chip.group() if chip else re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return slug.lower() or "unknown"


def abbreviations(names: Iterable[str]) -> dict[str, str]:
    """A distinct abbreviation for each parameter name, whatever order they come in.

    It is the initials of its words (``tile_bytes``: tb), or where they are taken the shortest beginning of the name
    that is not (``stages``: s, ``start``: st). ``g`` is the grid's; nothing is abbreviated to another one's name.
    """
    ordered = sorted(set(names))
    short: dict[str, str] = {}
    for name in ordered:
        initials = "".join(word[0] for word in name.split("_") if word)
        candidates = [initials, *(name[:end] for end in range(2, len(name)))]
        taken = {*short.values(), *ordered, "g"} - {name}
        short[name] = next((text for text in candidates if text and text not in taken), name)
    return short


def _grid_letters(short: Mapping[str, str]) -> str:
    """``g``, unless a parameter's whole name is g."""
    return "g" if "g" not in short.values() else "grid-"  # no abbreviation ends in a dash


def _folder_of(package: Path) -> Path:
    recorded = package / "trace" / "recorded"
    checkout = package.parent / "traces"
    if recorded.is_dir():
        return recorded
    # An installed package has strangers beside it; only a checkout has the project file there too.
    if checkout.is_dir() and (package.parent / "pyproject.toml").is_file():
        return checkout
    raise EvidenceError(
        "this installation of pipesim has no recorded traces",
        place=str(recorded),
        cause="the package was built without its folder of recordings",
        correction="name a folder or a file of traces, or record some with `pipesim capture NAME`",
    )


def _differences(meta: TraceMeta, protocol: str, params: Mapping[str, int], grid: int) -> tuple[tuple[str, int], ...]:
    """In what a recording is not the one asked for: a sentence and a distance each."""
    found: list[tuple[str, int]] = []
    if meta.protocol != protocol:
        found.append((f"protocol {meta.protocol} instead of {protocol}", 0))
    for name in sorted({*meta.params, *params}):
        recorded, wanted = meta.params.get(name), params.get(name)
        if recorded is None:
            found.append((f"no parameter {name}", 0))
        elif wanted is None:
            found.append((f"{name} {recorded}, which was not given", 0))
        elif recorded != wanted:
            found.append((f"{name} {recorded} instead of {wanted}", abs(recorded - wanted)))
    if meta.grid != grid:
        found.append((f"grid {meta.grid} instead of {grid}", abs(meta.grid - grid)))
    return tuple(found)


def _no_trace(
    stored: list[StoredTrace], protocol: str, params: Mapping[str, int], grid: int, folder: Path
) -> NoTraceError:
    same = [trace for trace in stored if trace.meta.protocol == protocol]
    if same:
        ranked = sorted(
            ((_differences(trace.meta, protocol, params, grid), trace) for trace in same),
            key=lambda entry: (len(entry[0]), sum(distance for _, distance in entry[0])),  # ties: by device and name
        )
        lines = [
            f"{trace.path.relative_to(folder)} ({', '.join(text for text, _ in differences)})"
            for differences, trace in ranked[:_NEAREST]
        ]
        cause = f"the nearest of {len(same)} recorded: {'; '.join(lines)}"
    elif stored:
        cause = f"only these protocols were recorded: {', '.join(sorted({trace.meta.protocol for trace in stored}))}"
    else:
        cause = "the folder holds no recording"
    words = "".join(f" {name}={params[name]}" for name in sorted(params))
    command = ["pipesim", "capture", protocol]
    command += [word for name in sorted(params) for word in ("-p", f"{name}={params[name]}")]
    command += ["--ctas", str(grid)] if grid > 1 else []
    return NoTraceError(
        f"no recorded trace of {protocol} with{words} grid={grid}",
        place=str(folder),
        cause=cause,
        correction=f"record it on a GPU: {shlex.join(command)}; or name another folder that has it: --traces FOLDER",
    )
