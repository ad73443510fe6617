"""Which recordings a profile is fitted to: those that may be, each once, and of these enough of every kernel."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

from pipesim.conform.fit.observation import RunObservation, observe
from pipesim.errors import EvidenceError, ForeignFileError
from pipesim.model.ending import Ending
from pipesim.targets import find
from pipesim.timed.profile import Profile
from pipesim.trace.files import TRACE, read_meta, read_trace
from pipesim.trace.schema import INTERPRETED, READ_FROM, TraceMeta
from pipesim.trace.split import FILE, Split, SplitPart, read_split

Tell = Callable[[str], None]
_ABOVE = 3  #: folders in which a split is looked for: that of the file, and those above
_MOST_OPERATIONS = 1_500  #: of a program that is chosen among others: it is simulated often


@dataclass(frozen=True)
class RecordedFile:
    """A trace file that may be fitted. ``label``: what a profile calls it."""

    label: str
    path: Path
    meta: TraceMeta


@dataclass(frozen=True)
class Inputs:
    """The recordings that may be fitted, and how many are held out.

    ``repeated``: how many were given again, by the same or another name; ``foreign``: Parquet files in the folders
    that are not traces. ``each``: how many of a kernel are fitted, 0 for all.
    """

    files: tuple[RecordedFile, ...]
    left_out: int
    repeated: int = 0
    foreign: tuple[Path, ...] = ()
    each: int = 0


def choose_inputs(paths: Sequence[Path], *, split: bool = True, each: int = 0) -> Inputs:
    """The recordings among files and folders that may be fitted, each once.

    Where a split (``split.json``) lies in the folder of a recording, or in one of two above, those that are held out
    are left out, unless ``split`` is False. EvidenceError if nothing is left, or a file that was named is not a
    recording of a GPU.
    """
    found, foreign, seen = [], [], set[bytes]()
    left_out = repeated = 0
    for path, named in _files(paths):
        try:
            meta = read_meta(path)
        except ForeignFileError:
            if named:
                raise
            foreign.append(path)
            continue
        if not _is_usable(meta):
            if named:
                raise unusable(path)
            continue
        with TRACE.open(path) as file:
            digest = hashlib.sha256(file.read()).digest()
        if digest in seen:
            repeated += 1
            continue
        seen.add(digest)
        known = _split_of(path) if split else None
        if known is not None and known.part_of_trace(meta) is not SplitPart.FIT:
            left_out += 1
            continue
        found.append(RecordedFile(f"{path.parent.name}/{path.name}", path, meta))
    if not found:
        raise EvidenceError(
            "there is no recording to fit a profile to",
            cause=f"{left_out} are held out by {FILE}" if left_out else "no whole run of a protocol's kernel was given",
            correction="give other traces, or --no-split" if left_out else "give traces or folders of traces",
        )
    return Inputs(tuple(found), left_out, repeated, tuple(foreign), each)


def _is_usable(meta: TraceMeta) -> bool:
    whole = meta.status is Ending.FINISHED and not (meta.fault or meta.window)
    return meta.source == "hardware" and whole and not {READ_FROM, INTERPRETED} & meta.extra.keys()


def unusable(path: Path) -> EvidenceError:
    """The error of a trace that is none."""
    return EvidenceError(
        "a profile cannot be fitted to this trace",
        place=str(path),
        cause="it is simulated or interpreted, of a part of a run or one that did not finish, or of no protocol",
        correction="give whole runs that `pipesim capture` recorded",
    )


def observations_of(inputs: Inputs, base: Profile, tell: Tell) -> tuple[RunObservation, ...]:
    """Recordings as observations: of each kernel ``inputs.each``, whose configurations lie evenly among those given.

    Where there are more, those with large programs come last. EvidenceError if they are of several devices, or
    nothing in them can be compared with a simulation.
    """
    devices = sorted({each.meta.device.name for each in inputs.files})
    if len(devices) > 1:
        raise EvidenceError(
            "a profile is of one device, and these recordings are of several",
            cause=", ".join(devices),
            correction="give recordings of one of them",
        )
    found: list[RunObservation] = []
    for kernel in sorted({each.meta.protocol for each in inputs.files}):
        tell(f"reading recordings of {kernel}")
        found += _of_kernel([each for each in inputs.files if each.meta.protocol == kernel], inputs.each, base)
    if not found:
        raise EvidenceError(
            "nothing in these recordings can be compared with a simulation",
            cause="they have no events, and no launches without recording",
            correction="give recordings of `pipesim capture`",
        )
    place = {each.label: n for n, each in enumerate(inputs.files)}
    return tuple(sorted(found, key=lambda each: place[each.label]))


def _of_kernel(recordings: Sequence[RecordedFile], most: int, base: Profile) -> list[RunObservation]:
    """``most`` of these, 0 for all."""
    some = 0 < most < len(recordings)
    found: list[RunObservation] = []
    large: list[tuple[int, RecordedFile]] = []
    for each in _evenly(recordings) if some else recordings:
        if some and len(found) == most:
            break
        program = find(each.meta.protocol).build(each.meta.params, grid=each.meta.grid)
        operations = sum(map(len, program.code))
        if some and operations > _MOST_OPERATIONS:
            large.append((operations, each))
            continue
        observation = observe(each.label, program, read_trace(each.path), base)
        if observation is not None:
            found.append(observation)
    large.sort(key=lambda each: each[0])
    return found + (_of_kernel([each for _, each in large[: most - len(found)]], 0, base) if some else [])


def _evenly(recordings: Sequence[RecordedFile]) -> list[RecordedFile]:
    """In an order of which each beginning lies evenly: launches of one, some and many CTAs take turns, and among these
    the configurations in the order of their names.
    """
    by_size: dict[int, list[RecordedFile]] = defaultdict(list)
    for each in sorted(recordings, key=lambda each: each.path.name):
        by_size[min((each.meta.grid or 1).bit_length() // 4, 2)].append(each)
    turns = [_by_halving(by_size[size]) for size in sorted(by_size)]
    return [each for turn in zip_longest(*turns) for each in turn if each is not None]


def _by_halving(recordings: Sequence[RecordedFile]) -> list[RecordedFile]:
    """The middle one, then those in the middle of both halves, and so on."""
    found: list[RecordedFile] = []
    parts = [recordings]
    while parts:
        found += [part[len(part) // 2] for part in parts if part]
        parts = [half for part in parts if part for half in (part[: len(part) // 2], part[len(part) // 2 + 1 :])]
    return found


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """The files, and whether each was named itself."""
    for path in paths:
        if path.is_dir():
            yield from ((each, False) for each in sorted(path.rglob("*.parquet")))
        else:
            yield path, True


def _split_of(path: Path) -> Split | None:
    """The nearest split: of the folder in which a recording lies, or of one above."""
    beside = next((folder / FILE for folder in path.resolve().parents[:_ABOVE] if (folder / FILE).is_file()), None)
    return None if beside is None else _read_once(beside)


_read_once = cache(read_split)
