"""The SVG pictures of ``docs/pictures``: written by ``update_golden.py pictures``.

Each is what ``pipesim export`` writes, or the state diagram of a pipeline struct. ``python -m tools.docs_pictures``
takes the screenshot of the page of a counterexample, which needs Chromium and is not compared: fonts differ.
"""

import contextlib
import io
import tempfile
from pathlib import Path

from pipesim.cli.main import main as pipesim
from pipesim.targets import find
from tools.stage_states import diagram, states_svg

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
_ORDER = ("epilogue_residual", "-p", "first_tile_only=0", "-p", "tiles=8", "-p", "k_iters=1")
_RING = "traces/h200/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"
#: Each picture, and what `pipesim export` is given for it.
PICTURES: dict[str, tuple[str, ...]] = {
    "load-order-hang.svg": (*_ORDER, "--to", "svg", "--picture", "hang"),
    "hang.svg": ("docs/examples/row_max.ptx", "--to", "svg", "--picture", "counterexample"),
    "ring.svg": ("producer_consumer", _RING, "--to", "svg", "--between", "0..1500"),
}

BY_HAND = ("proved.svg",)

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
DIAGRAMS = {f"states-{row[0]}.svg": row for row in STRUCTS}
DRAWN = (*PICTURES, *DIAGRAMS)

PAGE, PAGE_SIZE = "load-order-page.png", (1280, 800)


def drawn(name: str) -> bytes:
    """The picture as it is drawn now."""
    if name in PICTURES:
        return exported(name, PICTURES[name])
    struct, protocol, barriers = DIAGRAMS[name]
    return states_svg(struct, diagram(find(protocol).build(), barriers)).encode()


def screenshot() -> bytes:
    """The page of the missed order of loads in a window, at its end."""
    from tests.support.devtools import Tab

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_bytes(exported(page.name, (*_ORDER, "--to", "html", "--picture", "counterexample")))
        with Tab(page, PAGE_SIZE) as tab:
            return tab.picture()


def exported(name: str, words: tuple[str, ...]) -> bytes:
    """What ``pipesim export`` writes to a file of this name."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / name
        code = pipesim(["export", *words, "-o", str(path)])
        if code:
            raise SystemExit(f"{name}: exit code {code}")
        return path.read_bytes()


if __name__ == "__main__":
    (FOLDER / PAGE).write_bytes(screenshot())
