"""Perfetto's protobuf: a process for each run, a track for each warp under its CTA, arrows and counters.

Perfetto counts in whole nanoseconds; the picoseconds of the picture are rounded down. Made with the official package
``perfetto`` (extra ``export``). Its ``track_event.proto`` says what the fields mean: an arrow is a flow, which ends at
the end of the wait that it released.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pipesim.errors import UsageError
from pipesim.export.track_names import cta_name, track_name
from pipesim.scene.parts import OPEN, Arrow, RunScene, Scene, SceneSlice, SliceKind

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

_PACKETS = 4096  #: in a part of the file
_SEQUENCE = 1
_PROCESS = 1 << 32  #: from the numbers of one run's tracks to those of the next
_FIRST_PID = 1


def perfetto_parts(scene: Scene) -> Iterator[bytes]:
    """The file, in parts; UsageError where the package is not installed."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
    except ImportError as error:
        raise UsageError(
            "the package perfetto is not installed",
            cause="Perfetto's format is written with Perfetto's own package",
            correction="pip install 'pipesim[export]', or export --to chrome, which Perfetto opens too",
        ) from error
    writer = _Writer(protos)
    for number, run in enumerate(scene.runs):
        yield from writer.run(run, number)
    yield writer.rest()


class _Writer:
    """One file: interned texts, and packets of which a part is kept."""

    def __init__(self, protos: Any) -> None:
        self._protos = protos
        self._trace: Trace = protos.Trace()
        self._names: dict[str, int] = {}
        self._annotations: dict[str, int] = {}
        self._flows = 0
        self._started = False
        self._kinds = {kind: n + 1 for n, kind in enumerate(SliceKind)}

    def rest(self) -> bytes:
        """What is left of the file."""
        return self._cut()

    def run(self, run: RunScene, number: int) -> Iterator[bytes]:
        """The packets of one process."""
        base = number * _PROCESS + 1
        tracks = self._tracks(run, base, _FIRST_PID + number)
        arrows = _by_end(run.arrows)
        first_flow = self._flows
        self._flows += len(run.arrows)
        for index, each in enumerate(run.slices):
            self._slice(each, tracks[each.track], arrows[0].get(index, ()), arrows[1].get(index, ()), first_flow)
            if len(self._trace.packet) >= _PACKETS:
                yield self._cut()
        for n, counter in enumerate(run.counters):
            uuid = base + _PROCESS // 2 + n
            for at, value in counter.points:
                event = self._event(at, uuid, self._protos.TrackEvent.TYPE_COUNTER)
                event.counter_value = value
            if len(self._trace.packet) >= _PACKETS:
                yield self._cut()

    def _cut(self) -> bytes:
        part: bytes = self._trace.SerializeToString()
        self._trace = self._protos.Trace()
        return part

    def _tracks(self, run: RunScene, base: int, pid: int) -> list[int]:
        """Describe the process, its CTAs, their tracks and counters; the number of each track."""
        process = self._describe(base, "")
        process.process.pid = pid
        process.process.process_name = _text(run.label)
        process.child_ordering = self._protos.TrackDescriptor.EXPLICIT
        ctas = {cta: n for n, cta in enumerate(dict.fromkeys(track.cta for track in run.tracks))}
        sms = {track.cta: track.sm for track in run.tracks}
        for cta, n in ctas.items():
            group = self._describe(base + 1 + n, cta_name(cta, sms[cta]), base)
            group.sibling_order_rank = n
            group.child_ordering = self._protos.TrackDescriptor.EXPLICIT
        numbers = []
        for n, track in enumerate(run.tracks):
            numbers.append(base + 1 + len(ctas) + n)
            described = self._describe(numbers[-1], track_name(track), base + 1 + ctas[track.cta])
            described.sibling_order_rank = n
        for n, counter in enumerate(run.counters):
            described = self._describe(
                base + _PROCESS // 2 + n, f"{counter.name}: {counter.kind.value}", base + 1 + ctas[counter.cta]
            )
            described.counter.unit_name = counter.kind.value
            described.sibling_order_rank = len(run.tracks) + n
        return numbers

    def _describe(self, uuid: int, name: str, parent: int = 0) -> Any:
        described = self._trace.packet.add().track_descriptor
        described.uuid = uuid
        if name:
            described.name = _text(name)
        if parent:
            described.parent_uuid = parent
        return described

    def _event(self, at: int, track: int, kind: int) -> TrackEvent:
        packet = self._trace.packet.add()
        packet.timestamp = at // 1000
        packet.trusted_packet_sequence_id = _SEQUENCE
        if self._started:
            packet.sequence_flags = self._protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        else:
            self._begin(packet)
        event = packet.track_event
        event.type = kind
        event.track_uuid = track
        return event

    def _begin(self, packet: Any) -> None:
        """The first packet of the sequence says that texts are numbered from here on."""
        self._started = True
        packet.sequence_flags = self._protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        for kind, iid in self._kinds.items():
            category = packet.interned_data.event_categories.add()
            category.iid, category.name = iid, kind.value

    def _slice(
        self, each: SceneSlice, track: int, starts: tuple[int, ...], ends: tuple[int, ...], first_flow: int
    ) -> None:
        types = self._protos.TrackEvent
        instant = each.begin == each.end and not ends
        event = self._event(each.begin, track, types.TYPE_INSTANT if instant else types.TYPE_SLICE_BEGIN)
        packet = self._trace.packet[-1]
        event.name_iid = self._interned(packet, each.name)
        event.category_iids.append(self._kinds[each.kind])
        event.flow_ids.extend(first_flow + n + 1 for n in starts)
        self._annotate(packet, event, each)
        if instant or each.end == OPEN:
            return
        end = self._event(each.end, track, types.TYPE_SLICE_END)
        end.terminating_flow_ids.extend(first_flow + n + 1 for n in ends)

    def _interned(self, packet: Any, name: str) -> int:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = len(self._names) + 1
            entry = packet.interned_data.event_names.add()
            entry.iid, entry.name = found, _text(name)
        return found

    def _annotate(self, packet: Any, event: TrackEvent, each: SceneSlice) -> None:
        said = [("row", each.row), ("iteration", each.iteration), ("parity", each.parity), ("value", each.value or -1)]
        said += [("phase", each.phase)] if each.phase is not None else []
        for name, value in said:
            if value == -1 and name != "phase":
                continue
            iid = self._annotations.get(name)
            if iid is None:
                iid = self._annotations[name] = len(self._annotations) + 1
                entry = packet.interned_data.debug_annotation_names.add()
                entry.iid, entry.name = iid, name
            annotation = event.debug_annotations.add()
            annotation.name_iid, annotation.int_value = iid, value


def _text(name: str) -> str:
    """A name as protobuf holds it: the one place where the text of others gets into the file."""
    return name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)


def _by_end(arrows: tuple[Arrow, ...]) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """The numbers of the arrows that start, and that end, at each slice.

    One that the clocks show to start after it ends, by less than their uncertainty, would be drawn backwards: it is
    left out.
    """
    starts: defaultdict[int, list[int]] = defaultdict(list)
    ends: defaultdict[int, list[int]] = defaultdict(list)
    for number, arrow in enumerate(arrows):
        if arrow.at // 1000 <= arrow.to // 1000:
            starts[arrow.source].append(number)
            ends[arrow.target].append(number)
    return {n: tuple(some) for n, some in starts.items()}, {n: tuple(some) for n, some in ends.items()}
