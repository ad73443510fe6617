"""The JSON of Chrome's trace viewer ("Trace Event Format"), which Perfetto opens too: no package is needed for it.

Times are microseconds with six digits, so that no picosecond is lost. An arrow binds to the slice around its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipesim.export.track_names import cta_name, track_name
from pipesim.scene.parts import OPEN, RunScene, Scene, SceneSlice

_LINES = 4096  #: in a part of the file


def chrome_parts(scene: Scene) -> Iterator[bytes]:
    """The file, in parts."""
    yield b'{"displayTimeUnit":"ns","traceEvents":[\n'
    lines: list[str] = []
    first = True
    for line in _lines(scene):
        lines.append(line)
        if len(lines) == _LINES:
            yield (("" if first else ",\n") + ",\n".join(lines)).encode("ascii")
            first = False
            lines.clear()
    if lines:
        yield (("" if first else ",\n") + ",\n".join(lines)).encode("ascii")
    notes = {run.label: list(run.notes) for run in scene.runs}
    yield f'\n],"otherData":{_text({"title": scene.title, "notes": notes})}}}\n'.encode("ascii")


def _lines(scene: Scene) -> Iterator[str]:
    flows = 0
    for number, run in enumerate(scene.runs):
        yield from _run(run, number + 1, flows)
        flows += len(run.arrows)


def _run(run: RunScene, pid: int, flows: int) -> Iterator[str]:
    yield _meta(pid, 0, "process_name", run.label)
    for n, track in enumerate(run.tracks):
        name = f"{cta_name(track.cta, track.sm)}, {track_name(track)}"
        yield _meta(pid, n, "thread_name", name)
        yield f'{{"ph":"M","pid":{pid},"tid":{n},"name":"thread_sort_index","args":{{"sort_index":{n}}}}}'
    names: dict[str, str] = {}
    for each in run.slices:
        yield _slice(each, pid, names, run.end)
    for n, arrow in enumerate(run.arrows):
        source, target = run.slices[arrow.source], run.slices[arrow.target]
        flow = f'"pid":{pid},"cat":"release","name":"release","id":{flows + n}'
        yield f'{{"ph":"s","tid":{source.track},"ts":{_us(arrow.at)},{flow}}}'
        yield f'{{"ph":"f","bp":"e","tid":{target.track},"ts":{_us(arrow.to)},{flow}}}'
    for counter in run.counters:
        name = _text(f"CTA {counter.cta} {counter.name}: {counter.kind.value}")
        for at, value in counter.points:
            yield f'{{"ph":"C","pid":{pid},"tid":0,"ts":{_us(at)},"name":{name},"args":{{"value":{value}}}}}'


def _slice(each: SceneSlice, pid: int, names: dict[str, str], end: int) -> str:
    name = names.get(each.name)
    if name is None:
        name = names[each.name] = _text(each.name)
    begin = f'"pid":{pid},"tid":{each.track},"ts":{_us(each.begin)},"name":{name},"cat":"{each.kind.value}"'
    args = f'"row":{each.row},"iteration":{each.iteration},"parity":{each.parity},"value":{each.value}'
    args += f',"phase":{each.phase}' if each.phase is not None else ""
    args += ',"latest possible end":true' if each.at_most else ""
    if each.begin == each.end:
        return f'{{"ph":"i","s":"t",{begin},"args":{{{args}}}}}'
    open_end = each.end == OPEN
    args += ',"never returned":true' if open_end else ""
    return f'{{"ph":"X",{begin},"dur":{_us((end if open_end else each.end) - each.begin)},"args":{{{args}}}}}'


def _meta(pid: int, tid: int, what: str, name: str) -> str:
    return f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}","args":{{"name":{_text(name)}}}}}'


def _us(ps: int) -> str:
    """Picoseconds as microseconds, exactly."""
    return f"{ps // 1_000_000}.{ps % 1_000_000:06}"


def _text(value: object) -> str:
    """A name as JSON, in ASCII: the one place where the text of others gets into the file."""
    return json.dumps(value)
