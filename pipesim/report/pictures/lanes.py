"""The diagram of a protocol without its drawing: a lane for each role, a row for each group of barriers and each tile.

What signals, writes, waits or reads across the border of the CTA has its other end in one lane for all other CTAs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipesim.explain.anatomy.parts import Anatomy, Group, Signal, TilePart, Use
from pipesim.explain.ledger import Extent
from pipesim.report.text.words import NONE, number, size


@dataclass(frozen=True)
class Lane:
    """A role and how many agents it has, or the other CTAs of the cluster (``agents`` 0)."""

    name: str
    agents: int

    @property
    def title(self) -> str:
        """``producer``, ``consumer ×2``."""
        return f"{self.name} ×{self.agents}" if self.agents > 1 else self.name


@dataclass(frozen=True)
class Edge:
    """From the lane that signals or writes to the lane that waits or reads. They may be one."""

    source: int
    target: int
    remote: bool


@dataclass(frozen=True)
class LaneRow:
    """A group of barriers, or a tile: ``sources`` and ``targets`` are lanes, also those that no edge joins."""

    label: str
    note: str
    is_tile: bool
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Lanes:
    """The whole diagram. ``peers`` is the lane of the other CTAs, -1 if there are none."""

    lanes: tuple[Lane, ...]
    rows: tuple[LaneRow, ...]
    peers: int


def lanes_of(anatomy: Anatomy) -> Lanes:
    """The diagram of a CTA."""
    names = {role.name: n for n, role in enumerate(anatomy.roles)}
    lanes = tuple(Lane(role.name, role.agents) for role in anatomy.roles)
    peers = len(lanes) if anatomy.ctas > 1 else -1
    rows = [_group_row(group, names, anatomy.cta, peers) for group in anatomy.groups]
    rows += [_tile_row(tile, names, anatomy.cta, peers) for tile in anatomy.tiles]
    others = (Lane("other CTA" if anatomy.ctas == 2 else "other CTAs", 0),)
    return Lanes(lanes + (others if peers >= 0 else ()), tuple(rows), peers)


def group_label(group: Group) -> str:
    """``full[4]`` for all barriers of a name, else their stages: ``full[#2]``, ``full[0..3]``, ``full[0,2]``."""
    stages = group.stages
    if len(stages) == group.size:
        return f"{group.name}[{group.size}]"
    return f"{group.name}[{_stages(stages)}]"


def _stages(stages: Sequence[int]) -> str:
    if len(stages) == 1:
        return f"#{stages[0]}"
    if list(stages) == list(range(stages[0], stages[-1] + 1)):
        return f"{stages[0]}..{stages[-1]}"
    return ",".join(map(str, stages))


def tile_label(tile: TilePart) -> str:
    """``tile[4]``; memory outside all tiles is named by its space."""
    return f"{tile.name}[{tile.slots}]" if tile.name else f"({tile.space.name.lower()})"


def span(values: Extent) -> str:
    """``16 KiB``, ``8–16 KiB``, or ``16 bytes to 1 KiB``."""
    low, high = size(values.low), size(values.high)
    if values.low == values.high:
        return low
    least, _, unit = low.partition(" ")
    return f"{least}–{high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def _group_row(group: Group, names: dict[str, int], cta: int, peers: int) -> LaneRow:
    sources = [_lane(signal, names, cta, peers) for signal in group.signals]
    waiters = [names.get(wait.role, peers) for wait in group.waits]  # a role of other CTAs alone has no lane here
    edges = [Edge(s, t, s == peers) for s in sources for t in waiters]
    for signal in (*group.sent, *(s for s in group.signals if s.ctas == (cta,) and set(s.to) - {cta})):
        sources.append(names[signal.role])
        waiters.append(peers)
        edges.append(Edge(names[signal.role], peers, remote=True))
    note = f"count {NONE if group.count is None else number(group.count)}"
    return LaneRow(group_label(group), note, False, _once(sources), _once(waiters), tuple(dict.fromkeys(edges)))


def _tile_row(tile: TilePart, names: dict[str, int], cta: int, peers: int) -> LaneRow:
    sources = [_lane(use, names, cta, peers) for use in tile.writers]
    readers = [_lane(use, names, cta, peers) for use in tile.readers]
    edges = [Edge(s, t, peers in (s, t)) for s in sources for t in readers]
    for use in tile.writers:
        if use.ctas == (cta,) and set(use.to) - {cta}:
            readers.append(peers)
            edges.append(Edge(names[use.role], peers, remote=True))
    note = size(tile.nbytes) if tile.name else ""
    return LaneRow(tile_label(tile), note, True, _once(sources), _once(readers), tuple(dict.fromkeys(edges)))


def _lane(way: Signal | Use, names: dict[str, int], cta: int, peers: int) -> int:
    return names[way.role] if way.ctas == (cta,) else peers


def _once(lanes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(lanes)))
