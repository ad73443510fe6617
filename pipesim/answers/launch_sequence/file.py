"""The launches of a file in their order, with streams, events and buffers: ``sequence`` of ``launches.json``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipesim.answers.views.launches import INDEX_FORMAT, INDEX_VERSION
from pipesim.bounds import MAX_LAUNCH_BYTES
from pipesim.errors import LaunchFileError
from pipesim.inputs import InputKind
from pipesim.ptx.launch.members import Members

_PAGE = "see docs/launches.md, Sequences"
_FILE = InputKind("file of launches", MAX_LAUNCH_BYTES, LaunchFileError, _PAGE)
_LAUNCH = ("ptx", "launch", "kernel", "stream", "programmatic", "buffers")
_ACTS = ("record", "wait", "synchronize")


@dataclass(frozen=True)
class SequencedLaunch:
    """A launch; one of a ``kernel`` of which there is no PTX. ``programmatic``: it may begin while the kernel before it
    in its stream runs.

    ``buffers``: allocation and offset of the memory of pointers and tensor maps, by their places in the parameters.
    """

    ptx: Path
    launch: Path
    stream: str
    programmatic: bool
    buffers: Mapping[str, tuple[str, int]]
    kernel: str = ""


@dataclass(frozen=True)
class StreamAct:
    """An event that is recorded in a ``stream``, or for which it waits; or the host waits for a stream ("" for all)."""

    act: str
    stream: str
    event: str = ""


def read_sequence(path: Path) -> tuple[SequencedLaunch | StreamAct, ...]:
    """The launches and what orders streams, in the order in which they were asked for. LaunchFileError."""
    data = _FILE.parse_json(_FILE.read_text(path), path.name)
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (INDEX_FORMAT, INDEX_VERSION):
        fact = f'this is not a file of launches: it has no "format": "{INDEX_FORMAT}", "version": {INDEX_VERSION}'
        raise LaunchFileError(fact, place=path.name, correction=_PAGE)
    given = Members(data, path.name, tuple(data))
    if not given.items("sequence", []):
        fact = "the file has no sequence of launches"
        raise LaunchFileError(fact, place=path.name, correction="write one, or use `pipesim launches --sequence`")
    steps = enumerate(given.items("sequence"))
    return tuple(_step(Members(each, given.place_of(f"sequence[{n}]"), (*_LAUNCH, *_ACTS)), path) for n, each in steps)


def _step(given: Members, path: Path) -> SequencedLaunch | StreamAct:
    for act in _ACTS:
        if act in given.data:
            named = given.text(act)
            return StreamAct(act, named) if act == "synchronize" else StreamAct(act, given.text("stream"), named)
    given_buffers = given.data.get("buffers", {})
    names = tuple(given_buffers) if isinstance(given_buffers, dict) else ()
    buffers = Members(given_buffers, given.place_of("buffers"), names)
    placed = {}
    for place in buffers.data:
        name, _, offset = buffers.text(place).partition("+")
        if offset and not (offset.isascii() and offset.isdecimal()):
            raise buffers.error(place, "expected an allocation and an offset in bytes, as A+256")
        placed[place] = name, int(offset or 0)
    programmatic = given.data.get("programmatic", False)
    if not isinstance(programmatic, bool):
        raise given.error("programmatic", "expected true or false")
    kernel, none = given.text("kernel", ""), "" if "kernel" in given.data else None
    files = path.parent / given.text("ptx", none), path.parent / given.text("launch", none)
    return SequencedLaunch(*files, given.text("stream", "0"), programmatic, placed, kernel)
