"""Write what is made and committed: ``python tools/update_golden.py [PART ...]``, of all parts if none is named.

Golden reports, Promela models, what is pinned of protocols and of PTX, schemas, the tables of our kernels, and the
pictures of docs/pictures. Read the difference before you commit it.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.twins import REGISTRY
from pipesim.formats.promela import to_promela
from pipesim.formats.schemas import schema, schema_text, versioned_name
from pipesim.formats.schemas.files import WRITTEN_BY_HAND
from tests.support.paths import GOLDEN, ROOT
from tests.support.promela_examples import EXAMPLES as MODEL_EXAMPLES
from tests.support.promela_examples import MODELS
from tests.support.protocol_counts import CASES, COUNTS, counted
from tests.support.ptx_programs import PINNED, pins
from tests.support.report_examples import EXAMPLES, WIDTH, render
from tools import docs_pictures, tables

REPORTS = GOLDEN / "report"
SCHEMAS = ROOT / "docs" / "schemas"  #: of the files that people write by hand; ``pipesim schema NAME`` prints every one
Written = Iterator[tuple[Path, str | bytes]]  #: files, and what they hold


def schema_files() -> dict[str, str]:
    """The text of each committed schema, by the name of its file."""
    return {f"{versioned_name(made)}.json": schema_text(made) for made in map(schema, WRITTEN_BY_HAND)}


def _reports() -> Written:
    """One for each example; those of examples that are gone are removed."""
    for path in sorted(set(REPORTS.glob("*.txt")) - {REPORTS / f"{name}.txt" for name in EXAMPLES}):
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return ((REPORTS / f"{name}.txt", render(name, WIDTH)) for name in EXAMPLES)


#: What writes each part. The tables of roles, barriers and recording sites are what our kernels include.
PARTS: Mapping[str, Callable[[], Written]] = {
    "reports": _reports,
    "models": lambda: ((MODELS / f"{name}.pml", to_promela(make())) for name, make in MODEL_EXAMPLES.items()),
    "counts": lambda: iter([(COUNTS, "".join(f"{counted(*case)}\n" for case in CASES))]),
    "programs": lambda: iter([(PINNED, pins())]),
    "schemas": lambda: ((SCHEMAS / name, text) for name, text in schema_files().items()),
    "tables": lambda: ((twin.table_file, tables.text_of(twin)) for twin in REGISTRY.values()),
    "pictures": lambda: ((docs_pictures.FOLDER / name, docs_pictures.drawn(name)) for name in docs_pictures.DRAWN),
}


def main() -> None:
    """Write the files of the parts, and name those that are others now."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"of {', '.join(PARTS)}")
    for part in parser.parse_args().parts or PARTS:
        files = 0
        for path, text in PARTS[part]():
            data = text.encode() if isinstance(text, str) else text
            if not path.is_file() or path.read_bytes() != data:
                path.write_bytes(data)
                print(f"wrote {path.relative_to(ROOT)}")
            files += 1
        print(f"{part}: {files} files")


if __name__ == "__main__":
    main()
