"""Perfetto's protobuf: a process for each run, a track for each warp under its CTA, arrows and counters.

Perfetto counts in whole nanoseconds; the picoseconds of the picture are rounded down. Made with the official package
``perfetto`` (extra ``export``). Its ``track_event.proto`` says what the fields mean: an arrow is a flow, which ends at
the end of the wait that it released.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from pipesim.errors import UsageError
from pipesim.scene.parts import OPEN, Counter, RunScene, Scene, SceneSlice
from pipesim.trace.activity import SliceKind
from pipesim.trace.arrays import np

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

_PACKETS = 4096  #: in a part of the file
_SEQUENCE = 1
_SAID = ("row", "iteration", "parity", "value", "phase")  #: annotations of a slice, by number from 1
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
            correction="pip install 'pipesim[export]', or export --to html",
        ) from error
    writer = _Writer(protos)
    for number, run in enumerate(scene.runs):
        yield from writer.run(run, number)


class _Writer:
    """One file. A file is the packets of its parts one after the other, so that each part is written by itself."""

    def __init__(self, protos: Any) -> None:
        self._protos = protos
        self._trace: Trace = protos.Trace()
        self._names: dict[str, int] = {}
        self._flows = 0
        self._started = False
        self._kinds = {kind: n + 1 for n, kind in enumerate(SliceKind)}
        self._shapes: dict[tuple[object, ...], _Shape] = {}

    def run(self, run: RunScene, number: int) -> Iterator[bytes]:
        """The packets of one process."""
        base = number * _PROCESS + 1
        tracks = self._tracks(run, base, _FIRST_PID + number)
        self._number_texts(run)
        yield self._trace.SerializeToString()
        self._trace = self._protos.Trace()
        starts, ends = _by_end(run, self._flows + 1)
        self._flows += len(run.arrows)
        packets: list[bytes] = []
        for index, each in enumerate(run.slices):
            self._slice(packets, each, tracks[each.track], starts[index], ends[index])
            if len(packets) >= _PACKETS:
                yield b"".join(packets)
                packets.clear()
        yield b"".join(packets)
        for n, counter in enumerate(run.counters):
            yield self._counter(base + _PROCESS // 2 + n, counter)

    def _number_texts(self, run: RunScene) -> None:
        """The packet that numbers the texts of a run; the first says that texts are numbered from here on."""
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        flags = self._protos.TracePacket
        packet.sequence_flags = flags.SEQ_NEEDS_INCREMENTAL_STATE
        texts = packet.interned_data
        if not self._started:
            self._started = True
            packet.sequence_flags = flags.SEQ_INCREMENTAL_STATE_CLEARED
            for kind, iid in self._kinds.items():
                texts.event_categories.add(iid=iid, name=kind.value)
            for n, said in enumerate(_SAID):
                texts.debug_annotation_names.add(iid=n + 1, name=said)
        for name in dict.fromkeys(each.name for each in run.slices):
            if name not in self._names:
                self._names[name] = len(self._names) + 1
                texts.event_names.add(iid=self._names[name], name=_text(name))

    def _tracks(self, run: RunScene, base: int, pid: int) -> list[int]:
        """Describe the process, its CTAs, their tracks and counters; the number of each track."""
        process = self._describe(base, "")
        process.process.pid = pid
        process.process.process_name = _text(run.label)
        process.child_ordering = self._protos.TrackDescriptor.EXPLICIT
        ctas = {cta: n for n, cta in enumerate(dict.fromkeys(track.cta for track in run.tracks))}
        places = {track.cta: track.place for track in run.tracks}
        for cta, n in ctas.items():
            group = self._describe(base + 1 + n, places[cta], base)
            group.sibling_order_rank = n
            group.child_ordering = self._protos.TrackDescriptor.EXPLICIT
        numbers = []
        for n, track in enumerate(run.tracks):
            numbers.append(base + 1 + len(ctas) + n)
            described = self._describe(numbers[-1], track.title, base + 1 + ctas[track.cta])
            described.sibling_order_rank = n
        for n, counter in enumerate(run.counters):
            parent = base + 1 + ctas[counter.cta] if counter.cta in ctas else base  # of a word of global memory
            described = self._describe(base + _PROCESS // 2 + n, f"{counter.name}: {counter.kind.value}", parent)
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

    def _slice(
        self, packets: list[bytes], each: SceneSlice, track: int, starts: Sequence[int], ends: Sequence[int]
    ) -> None:
        """The packet of an instant, or those of the beginning and the end of a slice."""
        _, kind, name, begin, end, row, _, parity, iteration, value, phase, *_ = each
        instant = begin == end and not ends
        types = self._protos.TrackEvent
        type_ = types.TYPE_INSTANT if instant else types.TYPE_SLICE_BEGIN
        numbers = (row, iteration, parity, value, phase)  # as in _SAID
        there = (row != -1, iteration != -1, parity != -1, value not in (0, -1), phase is not None)
        key = (type_, kind, there)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _Shape(self._protos, type_)
            shape.event.category_iids.append(self._kinds[kind])
            shape.annotate(compress(range(1, len(_SAID) + 1), there))
        shape.event.name_iid = self._names[name]
        for said, number in zip(shape.said, compress(numbers, there), strict=True):
            said.int_value = number
        shape.flows[:] = starts
        packets.append(shape.packet_at(begin, track))
        if instant or end == OPEN:
            return
        closing = self._shapes.get(("end",))
        if closing is None:
            closing = self._shapes["end",] = _Shape(self._protos, types.TYPE_SLICE_END)
        closing.ended[:] = ends
        packets.append(closing.packet_at(end, track))

    def _counter(self, uuid: int, counter: Counter) -> bytes:
        shape = _Shape(self._protos, self._protos.TrackEvent.TYPE_COUNTER)
        packets = []
        for at, value in counter.points:
            shape.event.counter_value = value
            packets.append(shape.packet_at(at, uuid))
        return b"".join(packets)


class _Shape:
    """A packet of which only numbers change from one event to the next: building each takes five times as long."""

    __slots__ = ("_packet", "_trace", "ended", "event", "flows", "said")

    def __init__(self, protos: Any, type_: int) -> None:
        self._trace: Trace = protos.Trace()
        self._packet: Any = self._trace.packet.add()
        self._packet.trusted_packet_sequence_id = _SEQUENCE
        self._packet.sequence_flags = protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        self.event: Any = self._packet.track_event
        self.event.type = type_
        self.flows: Any = self.event.flow_ids
        self.ended: Any = self.event.terminating_flow_ids
        self.said: list[Any] = []

    def annotate(self, numbers: Iterable[int]) -> None:
        """The event has these annotations, whose values follow."""
        self.said = [self.event.debug_annotations.add(name_iid=number) for number in numbers]

    def packet_at(self, at: int, track: int) -> bytes:
        """The packet at this time, in picoseconds, on this track."""
        self._packet.timestamp = at // 1000
        self.event.track_uuid = track
        part: bytes = self._trace.SerializeToString()
        return part


def _text(name: str) -> str:
    """A name as protobuf holds it: the one place where the text of others gets into the file."""
    return name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)


class _ByEnd:
    """The numbers of arrows at the slices at which they begin, or end: at each slice in their order.

    As two lists, because tens of thousands of small ones take ten megabytes.
    """

    def __init__(self, ends: list[int], numbers: list[int], slices: int) -> None:
        at = np.array(ends, dtype=np.int64)
        self._numbers: list[int] = np.array(numbers, dtype=np.int64)[np.argsort(at, kind="stable")].tolist()
        self._first: list[int] = [0, *np.cumsum(np.bincount(at, minlength=slices)).tolist()]

    def __getitem__(self, index: int) -> list[int]:
        return self._numbers[self._first[index] : self._first[index + 1]]


def _by_end(run: RunScene, first: int) -> tuple[_ByEnd, _ByEnd]:
    """The numbers, from ``first`` on, of the arrows that start, and that end, at each slice.

    One that the clocks show to start after it ends, by less than their uncertainty, would be drawn backwards: it is
    left out.
    """
    drawn = [n for n, arrow in enumerate(run.arrows) if arrow.at // 1000 <= arrow.to // 1000]
    numbers = [first + n for n in drawn]
    starts = _ByEnd([run.arrows[n].source for n in drawn], numbers, len(run.slices))
    return starts, _ByEnd([run.arrows[n].target for n in drawn], numbers, len(run.slices))
