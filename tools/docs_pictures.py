"""Draw the SVG pictures of ``docs/pictures``: ``python -m tools.docs_pictures [--check]``.

Each is what a command of ``pipesim export`` writes; ``--check`` exits with 1 if one is stale. The screenshot of the
page is made with a browser, by hand: the command is in docs/export.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from pathlib import Path

from pipesim.cli.main import main as pipesim

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
_ORDER = ("epilogue_residual", "-p", "first_tile_only=0", "-p", "tiles=8", "-p", "k_iters=1")
_ATTENTION = "traces/h200/attention_sm90-bn128-d128-f0-kb8-nc2-p1-qs1-s900-st2-g1.parquet"
#: Each picture, and what `pipesim export` is given for it.
PICTURES: dict[str, tuple[str, ...]] = {
    "load-order-hang.svg": (*_ORDER, "--to", "svg", "--picture", "hang"),
    "load-order-schedule.svg": (*_ORDER, "--to", "svg", "--picture", "counterexample"),
    "ring-hang.svg": ("docs/examples/ring_forgets.py:ring", "--to", "svg", "--picture", "hang"),
    "attention.svg": ("attention_sm90", _ATTENTION, "--to", "svg", "--between", "0..2500"),
}


def drawn(name: str) -> bytes:
    """The picture as it is drawn now."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / name
        code = pipesim(["export", *PICTURES[name], "-o", str(path)])
        if code:
            raise SystemExit(f"{name}: exit code {code}")
        return path.read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    stale = [name for name in PICTURES if not (FOLDER / name).exists() or (FOLDER / name).read_bytes() != drawn(name)]
    if options.check:
        for name in stale:
            print(f"docs/pictures/{name} is stale: run python -m tools.docs_pictures")
        return int(bool(stale))
    for name in stale:
        (FOLDER / name).write_bytes(drawn(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
