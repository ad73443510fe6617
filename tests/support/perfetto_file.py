"""A Perfetto file read back with Perfetto's own protobuf: processes, tracks, slices, arrows and counters by name."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

Track = tuple[str, str, str]  #: process, CTA, name


@dataclass(frozen=True)
class ReadSlice:
    """A slice or an instant, with its annotations; ``end`` is -1 if it is open. Times in nanoseconds."""

    track: Track
    name: str
    category: str
    begin: int
    end: int
    said: dict[str, int]


@dataclass
class PerfettoFile:
    """What a file shows. ``arrows``: pairs of numbers of slices."""

    tracks: list[Track] = field(default_factory=list)
    slices: list[ReadSlice] = field(default_factory=list)
    arrows: list[tuple[int, int]] = field(default_factory=list)
    counters: dict[Track, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))


def read(data: bytes) -> PerfettoFile:
    """The file; an assertion for whatever Perfetto would not understand."""
    trace = protos.Trace.FromString(data)
    names: dict[int, str] = {}
    parents: dict[int, int] = {}
    processes: set[int] = set()
    counters: set[int] = set()
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    found = PerfettoFile()
    opened: dict[int, list[int]] = defaultdict(list)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}

    def track(uuid: int) -> Track:
        group = parents[uuid]
        return names[parents[group]], names[group], names[uuid]

    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            _describe(packet.track_descriptor, names, parents, processes, counters)
            continue
        assert packet.trusted_packet_sequence_id
        for kind in ("event_names", "event_categories", "debug_annotation_names"):
            texts[kind] |= {entry.iid: entry.name for entry in getattr(packet.interned_data, kind)}
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == protos.TrackEvent.TYPE_COUNTER:
            assert event.track_uuid in counters
            found.counters[track(event.track_uuid)].append((packet.timestamp, event.counter_value))
        elif event.type == protos.TrackEvent.TYPE_SLICE_END:
            number = opened[event.track_uuid].pop()
            old = found.slices[number]
            found.slices[number] = ReadSlice(old.track, old.name, old.category, old.begin, packet.timestamp, old.said)
            ends |= dict.fromkeys(event.terminating_flow_ids, number)
        else:
            said = {texts["debug_annotation_names"][a.name_iid]: a.int_value for a in event.debug_annotations}
            instant = event.type == protos.TrackEvent.TYPE_INSTANT
            (category,) = event.category_iids
            found.slices.append(
                ReadSlice(
                    track(event.track_uuid), texts["event_names"][event.name_iid], texts["event_categories"][category],
                    packet.timestamp, packet.timestamp if instant else -1, said,
                )
            )  # fmt: skip
            starts |= dict.fromkeys(event.flow_ids, len(found.slices) - 1)
            if not instant:
                opened[event.track_uuid].append(len(found.slices) - 1)
    assert starts.keys() == ends.keys(), "every arrow has two ends"
    found.arrows = [(starts[flow], ends[flow]) for flow in starts]
    found.tracks = [track(uuid) for uuid in names if uuid in parents and parents[uuid] not in processes]
    return found


def _describe(
    described: Any, names: dict[int, str], parents: dict[int, int], processes: set[int], counters: set[int]
) -> None:
    uuid = described.uuid
    assert uuid not in names, "a track is described once"
    if described.HasField("process"):
        processes.add(uuid)
    names[uuid] = described.process.process_name or described.name
    if described.parent_uuid:
        assert described.parent_uuid in names
        parents[uuid] = described.parent_uuid
    if described.HasField("counter"):
        counters.add(uuid)
