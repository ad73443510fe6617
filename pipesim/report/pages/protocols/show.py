"""``pipesim show``: a protocol as a diagram of lanes, then its parts in words. ``pipesim list``: a line for each."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from pipesim.answers.views.summary import ProtocolRow
from pipesim.explain.anatomy.parts import Anatomy, CtaKindParts
from pipesim.report.pictures import show_words as words
from pipesim.report.pictures.lanes import Lane, LaneRow, Lanes, group_label, lanes_of, tile_label
from pipesim.report.sentences.check import kind_words
from pipesim.report.text.layout import middle, pad, wrap, wrap_parts
from pipesim.report.text.words import count, listed, number, parameters

LEAST_LANE = 6  #: cells of the narrowest lane that still shows its marks
WIDEST_LANE = 18
_LABEL = 24  #: cells of the widest label of a row


def show_lines(anatomy: Anatomy, width: int, told: str = "") -> list[str]:
    """The diagram and the parts in lines of at most ``width`` cells, after the paragraphs of ``told``."""
    paragraphs = [wrap(text.replace("``", ""), width, "  ") for text in told.split("\n\n") if text.strip()]
    blocks = [_heading_lines(anatomy, width), *paragraphs, _diagram(lanes_of(anatomy), width), *_parts(anatomy, width)]
    lines: list[str] = []
    for block in blocks:
        lines += ([""] if lines and block else []) + block
    return lines


def _heading_lines(anatomy: Anatomy, width: int) -> list[str]:
    roles = tuple((role.name, len(role.warps)) for role in anatomy.roles)
    name = middle(anatomy.name, width // 2)
    parts = parameters(anatomy.params, roles)
    if anatomy.ctas > 1:
        parts.append(words.place_words(anatomy))
    return wrap_parts(parts, width, f"{name}   ") if parts else [name]


# the diagram


def _diagram(lanes: Lanes, width: int) -> list[str]:
    """A line for each row between two lines of the lanes' names; said in words where they do not fit beside each other.

    Where room is short the counts and sizes are left to the parts below.
    """
    if not lanes.lanes:
        return []
    label = min(_LABEL, max((cell_len(row.label) for row in lanes.rows), default=0))
    note = max((cell_len(row.note) for row in lanes.rows), default=0)
    left = 2 + label + 2 + note + 2
    if (width - left) // len(lanes.lanes) < 12:
        note, left = 0, 2 + label + 2
    lane = min(WIDEST_LANE, (width - left) // len(lanes.lanes))
    if lane < LEAST_LANE:
        return wrap_parts([f"{len(lanes.lanes)} roles do not fit side by side at this width"], width, "  ")
    centres = [left + lane // 2 + n * lane for n in range(len(lanes.lanes))]
    bare = _lifelines(lanes, centres, width)
    lines = [*_names(lanes.lanes, centres, lane, width), "".join(bare).rstrip()]
    for row in lanes.rows:
        head = "  " + pad(middle(row.label, label), label) + "  " + (pad(row.note, note) if note else "")
        lines.append((pad(head, left) + "".join(_row(row, lanes, centres, width)[left:])).rstrip())
    return [*lines, "".join(bare).rstrip(), *_legend(lanes, width)]


def _names(lanes: Sequence[Lane], centres: Sequence[int], lane: int, width: int) -> list[str]:
    """The lanes' names above them, every other one a line lower where they are too wide to stand in one line."""
    steps = 1 if all(cell_len(each.title) < lane for each in lanes) else 2
    lines = []
    for step in range(steps):
        line = ""
        for n in range(len(lanes)):
            if n % steps == step:
                name = middle(lanes[n].title, steps * lane - 1)
                start = min(centres[n] - cell_len(name) // 2, width - cell_len(name))
                line = pad(line, max(start, cell_len(line) + (1 if line else 0))) + name
            elif n % steps < step:  # the lane of the name above continues beside this line
                line = pad(line, centres[n]) + "│" if cell_len(line) <= centres[n] else line
        lines.append(middle(line, width))
    return lines


def _lifelines(lanes: Lanes, centres: Sequence[int], width: int) -> list[str]:
    cells = [" "] * width
    for n, centre in enumerate(centres):
        cells[centre] = "┊" if n == lanes.peers else "│"
    return cells


def _row(row: LaneRow, lanes: Lanes, centres: Sequence[int], width: int) -> list[str]:
    """One row: lines from who signals or writes to who waits or reads, dashed where they leave the CTA."""
    cells = _lifelines(lanes, centres, width)
    plain, dashed, crossing = ("═", "╍", "╪") if row.is_tile else ("─", "╌", "┼")
    for edge in sorted(row.edges, key=lambda edge: not edge.remote):  # within the CTA last, over what is remote
        low, high = sorted((centres[edge.source], centres[edge.target]))
        for at in range(low + 1, high):
            cells[at] = crossing if at in centres else dashed if edge.remote else plain
    heads = set()
    for edge in row.edges:
        if edge.source != edge.target:
            right = edge.source < edge.target
            heads.add(edge.target)
            cells[centres[edge.target] + (-1 if right else 1)] = "▶" if right else "◀"
    for lane in {*row.sources, *row.targets}:
        itself = any(edge.source == edge.target == lane for edge in row.edges)
        if lane in row.sources:
            cells[centres[lane]] = "◉" if itself and not row.is_tile else "▣" if itself else "■" if row.is_tile else "●"
        elif lane not in heads:
            cells[centres[lane]] = "○"
    for lane in heads - set(row.sources):
        cells[centres[lane]] = "┊" if lane == lanes.peers else "│"
    return cells


def _legend(lanes: Lanes, width: int) -> list[str]:
    """What the marks mean that the diagram has."""
    edges = [edge for row in lanes.rows for edge in row.edges]
    own = {row.is_tile for row in lanes.rows for edge in row.edges if edge.source == edge.target}
    joined = [{edge.target for edge in row.edges} for row in lanes.rows]
    alone = any(set(row.targets) - to - set(row.sources) for row, to in zip(lanes.rows, joined, strict=True))
    parts = ["● signals ─▶ waits"] if any(not row.is_tile for row in lanes.rows) else []
    parts += ["■ writes ═▶ reads"] if any(row.is_tile for row in lanes.rows) else []
    parts += ["◉ waits for its own signals"] if False in own else []
    parts += ["▣ reads what it writes"] if True in own else []
    parts += ["○ waits or reads, no supplier"] if alone else []
    parts += ["╌╍ to or from another CTA"] if any(edge.remote for edge in edges) else []
    return ["", *wrap_parts(parts, width, "  ")] if parts else []


# the parts in words


def _parts(anatomy: Anatomy, width: int) -> list[list[str]]:
    roles, cta = anatomy.roles, anatomy.cta
    barriers = [
        (
            group_label(group),
            [
                words.given_parts(group, roles, cta),
                *([part] for part in words.sent_parts(group, roles, cta)),
                [f"→ {words.waits_words(group, roles, cta)}"],
            ],
        )
        for group in anatomy.groups
    ]
    tiles = [
        (
            tile_label(tile),
            [
                [*words.tile_parts(tile), *words.use_parts(tile.writers, "written by", roles, cta)],
                words.use_parts(tile.readers, "read by", roles, cta),
            ],
        )
        for tile in anatomy.tiles
    ]
    meetings = [(words.meeting_label(m), [words.meeting_parts(m, roles, cta)]) for m in anatomy.meetings]
    named = [(role.name, [words.role_parts(role)]) for role in roles]
    others = [("other CTAs", [[part] for part in words.other_parts(anatomy.others)])] if anatomy.others else []
    kinds = [("kinds", [[_kind_words(each)] for each in anatomy.kinds])] if anatomy.kinds else []
    totals = [("totals", [words.total_parts(anatomy.totals)])]
    tables = [
        ("roles", named),
        ("mbarriers · arrivals and bytes per phase → who waits", barriers),
        ("tiles", tiles),
    ]
    tables += [("thread barriers", meetings), ("totals of a CTA", [*totals, *others]), ("CTAs of the grid", kinds)]
    label = min(_LABEL, max(cell_len(name) for _, rows in tables for name, _ in rows))
    return [_table(title, rows, label, width) for title, rows in tables if rows]


def _kind_words(each: CtaKindParts) -> str:
    """``16 like CTA 4 (blockIdx.x > 3 at gemm.py:31): other full and barrier 1``."""
    return f"{kind_words(each)}{f': other {listed(each.other)}' if each.other else ''}"


def _table(title: str, rows: Iterable[tuple[str, Sequence[Sequence[str]]]], label: int, width: int) -> list[str]:
    """A title, then each row's label with its lines beside it."""
    lines = [f"  {title}"]
    for name, paragraphs in rows:
        first = "  " + pad(middle(name, label), label) + "  "
        for parts in paragraphs:
            lines += wrap_parts(parts, width, first, " " * cell_len(first))
            first = " " * cell_len(first)
    return lines


def list_lines(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """A line for each protocol, its summary as far as it goes; then where to find the rest."""
    if not rows:
        return ["no protocols"]
    names = max(cell_len(name) for name, _ in rows)
    lines = [f"  {pad(name, names)}  {_begin(summary, width - names - 4)}".rstrip() for name, summary in rows]
    return [*lines, "", *wrap("pipesim list NAME says all about one, pipesim show NAME draws it", width)]


def _begin(summary: str, width: int) -> str:
    """As many words of a summary as there is room for, without the stop of a whole one."""
    if cell_len(summary) <= width:
        return summary.removesuffix(".")
    return wrap(summary, width - 2)[0].rstrip(",;:") + " …"


def protocol_lines(row: ProtocolRow, width: int) -> list[str]:
    """A protocol's name, summary, roles and barriers, its parameters as they are written after ``-p``, its traces."""
    roles = [count(warps, f"{name} warp") for name, warps in row.roles]
    roles += [f"in each of {row.ctas} CTAs"] if row.ctas > 1 else []
    barriers = [
        f"{name}[{size}]" + ("" if arrivals is None else f" count {number(arrivals)}")
        for name, size, arrivals in row.barriers
    ]
    lines = [*wrap(row.name, width), *wrap(row.summary, width, "  ")]
    lines += wrap_parts(roles, width, "  roles     ") if roles else []
    lines += wrap_parts(barriers, width, "  barriers  ") if barriers else []
    if row.params:
        lines += wrap(" ".join(f"{name}={value}" for name, value in row.params.items()), width, "  -p        ")
    recorded = [
        f"{trace.device}: {number(trace.recordings)}" + ("" if trace.usual else ", none of them with these parameters")
        for trace in row.traces
    ]
    return lines + wrap_parts(recorded or ["none"], width, "  traces    ")
