"""Writes docs/schemas: the schemas of the files that people write by hand (``pipesim schema NAME`` prints every one).

``python tools/schemas.py``; with ``--check`` nothing is written, and the exit code is 1 if a file is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipesim.export.schemas import schema, schema_text, versioned_name
from pipesim.export.schemas.files import WRITTEN_BY_HAND

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"


def files() -> dict[str, str]:
    """The text of each file, by its name."""
    return {f"{versioned_name(made)}.json": schema_text(made) for made in map(schema, WRITTEN_BY_HAND)}


def main(argv: list[str] | None = None) -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a file is stale")
    options = parser.parse_args(argv)
    made = files()
    stale = [n for n, text in made.items() if not (p := FOLDER / n).is_file() or p.read_text("utf-8") != text]
    gone = [path for path in FOLDER.glob("*.json") if path.name not in made]
    for name in [*stale, *(path.name for path in gone)]:
        print(f"stale: docs/schemas/{name}; run python tools/schemas.py" if options.check else f"docs/schemas/{name}")
    if not options.check:
        for name in stale:
            (FOLDER / name).write_text(made[name], encoding="utf-8")
        for path in gone:
            path.unlink()
    return int(options.check and bool(stale or gone))


if __name__ == "__main__":
    sys.exit(main())
