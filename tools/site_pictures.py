"""The pictures of the pages, made by pipesim: ``python tools/site_pictures.py`` writes them, ``--check`` compares."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pipesim
from pipesim.report.pictures.drawing import CELL, LINE, MARGIN, TEXT_STYLE, arrowhead, box, label, px, svg_file
from pipesim.targets import find
from tools.stage_states import Diagram, diagram, edge_words, state_lines

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"

#: Of docs/structs.md: the struct, a protocol that uses it, and the barriers of its stages there.
STRUCTS = (
    ("ProducerConsumerPipeline", "producer_consumer", ("full", "empty")),
    ("InputTilePipeline", "gemm_sm100", ("input.full", "input.empty")),
    ("OutputTilePipeline", "gemm_sm100", ("output.full", "output.empty")),
    ("TileScheduler", "gemm_sm100", ("clc.full", "clc.empty")),
    ("EpiLoadPipeline", "conv_epilogue", ("epi_load.full", "epi_load.empty")),
    ("LoadOrderBarrier", "conv_epilogue", ("load_order",)),
    ("PipelineTmaAsync", "cutlass_sm90_cooperative", ("full", "empty")),
    ("PipelineUmmaAsync", "cutlass_sm100", ("accum.full", "accum.empty")),
    ("OrderedSequenceBarrier", "cutlass_sm90_pingpong", ("math_wg_order.group0",)),
    ("RolePipeline", "attention_sm100", ("S0_prod", "S0_cons")),
)
_STYLE = TEXT_STYLE + ".state{fill:#eaf2fc;stroke:#1f5fae}.way{fill:none;stroke:#33557f;stroke-width:1.4}"
_PAD, _BETWEEN, _LEFT = 8, 3 * LINE, 40  # inside a box; from one to the next, with the words; room for the way back


def pictures() -> dict[str, str]:
    """The text of each file."""
    made = {}
    for struct, name, bars in STRUCTS:
        made[f"states-{struct}.svg"] = states_svg(struct, diagram(find(name).build(), bars))
    with contextlib.chdir(ROOT):
        found = pipesim.check("docs/examples/row_max.ptx").findings[0].counterexample
        assert found is not None
        return {"hang.svg": found.svg(), **made}


def states_svg(struct: str, found: Diagram) -> str:
    """The states of a stage below each other, and the way from the last back to the first."""
    boxes = [state_lines(found, n) for n in range(len(found.states))]
    edges = [edge_words(said) for _, _, said in found.edges]
    wide = max(len(line) for lines in boxes for line in lines) * CELL + 4 * _PAD
    wide = max(wide, max(map(len, edges)) * CELL + wide / 2)
    tops = [MARGIN + sum(_height(lines) + _BETWEEN for lines in boxes[:n]) for n in range(len(boxes))]
    x, centre = MARGIN + _LEFT, MARGIN + _LEFT + 6 * CELL
    end = tops[-1] + _height(boxes[-1])
    body: list[str] = []
    for lines, top in zip(boxes, tops, strict=True):
        body += [box("state", x, top, wide, _height(lines), 4), *_text(lines, x + _PAD, top)]
        below = top + _height(lines)
        if top != tops[-1]:
            body.append(_way(f"M{px(centre)} {px(below)}V{px(below + _BETWEEN)}"))
    for top, lines, said in zip(tops, boxes, edges, strict=True):
        body.append(label(centre + _PAD, top + _height(lines) + _BETWEEN / 2 + 4, said))
    back, middle = MARGIN + _LEFT / 3, tops[0] + _height(boxes[0]) / 2
    body.append(_way(f"M{px(centre)} {px(end)}V{px(end + _BETWEEN)}H{px(back)}V{px(middle)}H{px(x)}"))
    title = f"the states of a stage of {struct}"
    head = arrowhead("next", "#33557f")
    return svg_file(title, _STYLE, head, body, x + wide + MARGIN, end + _BETWEEN + MARGIN)


def _height(lines: list[str]) -> float:
    return len(lines) * LINE + 2 * _PAD


def _text(lines: list[str], x: float, top: float) -> Iterator[str]:
    for n, line in enumerate(lines):
        yield label(x, top + _PAD + (n + 0.8) * LINE, line, "quiet" if " passes " in line else "")


def _way(path: str) -> str:
    return f'<path class="way" d="{path}" marker-end="url(#next)"/>'


def main(argv: list[str] | None = None) -> int:
    """Write or compare the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a picture is stale")
    options = parser.parse_args(argv)
    stale = 0
    for name, text in pictures().items():
        path = FOLDER / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if options.check:
            print(f"stale: docs/pictures/{name}; run python tools/site_pictures.py")
        else:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote docs/pictures/{name}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
