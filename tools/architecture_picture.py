"""Draw docs/architecture.svg from the import contract: ``python tools/architecture_picture.py [--check]``.

The layers are those of the first contract in ``pyproject.toml``; the sentence in a box is the first of the package's
docstring. So the picture cannot show another architecture than the one that is enforced.
"""

from __future__ import annotations

import argparse
import ast
import sys
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
WIDTH, MARGIN, GAP, LINE = 960, 24, 12, 17
HEAD = 26  #: from the top of a box to its first line of text
CHARACTER = 6.6  #: the width of a character of the text, in pixels

STYLE = """
  .page { fill: #ffffff; } .box { fill: #f4f6f8; stroke: #8a97a5; } .name { font: 600 15px monospace; fill: #17222d; }
  .text { font: 12px sans-serif; fill: #3b4753; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #10161c; } .box { fill: #1a232c; stroke: #5d6b79; } .name { fill: #e8eef4; } .text { fill: #b7c2cd; }
  }
"""


def layers() -> list[list[str]]:
    """Each layer's packages, the highest layer first; ``hwkernels`` comes after the layers that may use it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = [each for each in contracts if each["name"] == "imports point downward only"]
    rows = [[name.strip() for name in layer.split("|")] for layer in found["layers"]]
    rows.insert(rows.index(["answers"]) + 1, ["hwkernels"])
    return rows


def sentence(package: str) -> str:
    """The first sentence of a package's or a module's docstring."""
    inside = ROOT / "pipesim"
    for path in (inside / package / "__init__.py", inside / f"{package}.py", ROOT / package / "__init__.py"):
        if path.is_file():
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".").replace("``", "")
    raise SystemExit(f"{package} is in the import contract and has neither a folder nor a file")


def box(left: float, top: float, width: float, height: float, name: str, lines: list[str]) -> str:
    """One package: a rectangle, its name, and its sentence."""
    rows = [
        f'<rect class="box" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6"/>',
        f'<text class="name" x="{left + 12:.0f}" y="{top + 22:.0f}">{escape(name)}</text>',
    ]
    for number, line in enumerate(lines):
        y = top + HEAD + 14 + number * LINE
        rows.append(f'<text class="text" x="{left + 12:.0f}" y="{y:.0f}">{escape(line)}</text>')
    return "\n".join(rows)


def picture() -> str:
    """The whole SVG: a row for each layer, an arrow at the side for the direction of imports."""
    top, rows = float(MARGIN), []
    inner = WIDTH - 2 * MARGIN - 40
    for layer in layers():
        width = (inner - GAP * (len(layer) - 1)) / len(layer)
        texts = [textwrap.wrap(sentence(name), int((width - 24) / CHARACTER)) for name in layer]
        height = HEAD + LINE * max(map(len, texts)) + 10
        for n, (name, lines) in enumerate(zip(layer, texts, strict=True)):
            rows.append(box(MARGIN + n * (width + GAP), top, width, height, name, lines))
        top += height + GAP
    x, end = WIDTH - MARGIN - 14, top - GAP
    arrow = (
        f'<path d="M{x} {MARGIN} V{end:.0f} m-6 -10 l6 10 l6 -10" fill="none" stroke="#8a97a5" stroke-width="2"/>'
        f'<text class="text" transform="translate({x + 14} {(MARGIN + end) / 2:.0f}) rotate(90)" text-anchor="middle">'
        "imports point downward only</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top - GAP + MARGIN:.0f}" role="img" '
        f'viewBox="0 0 {WIDTH} {top - GAP + MARGIN:.0f}">\n<title>The layers of pipesim</title>\n'
        f'<style>{STYLE}</style>\n<rect class="page" width="100%" height="100%"/>\n'
        + "\n".join(rows)
        + f"\n{arrow}\n</svg>\n"
    )


def main() -> int:
    """Write the picture, or with ``--check`` compare it with the one that is committed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if the committed picture is another one")
    if not parser.parse_args().check:
        PICTURE.write_text(picture(), encoding="utf-8")
        return 0
    if not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != picture():
        print("docs/architecture.svg is not what the import contract says: run python tools/architecture_picture.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
