"""Rewrite the golden reports, models and schemas, and what is pinned of protocols and PTX:
``python tools/update_golden.py``.

Read the difference before you commit it.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.formats.promela import to_promela
from pipesim.formats.schemas import schema, schema_text, versioned_name
from pipesim.formats.schemas.files import WRITTEN_BY_HAND
from tests.support.paths import GOLDEN, ROOT
from tests.support.promela_examples import EXAMPLES as MODEL_EXAMPLES
from tests.support.promela_examples import MODELS
from tests.support.protocol_counts import CASES, COUNTS, counted
from tests.support.ptx_programs import PINNED, pins
from tests.support.report_examples import EXAMPLES, WIDTH, render

REPORTS = GOLDEN / "report"
SCHEMAS = ROOT / "docs" / "schemas"  #: of the files that people write by hand; ``pipesim schema NAME`` prints every one


def schema_files() -> dict[str, str]:
    """The text of each committed schema, by the name of its file."""
    return {f"{versioned_name(made)}.json": schema_text(made) for made in map(schema, WRITTEN_BY_HAND)}


def main() -> None:
    """Write one file for each example, and remove those of examples that are gone."""
    ArgumentParser(description=__doc__).parse_args()
    REPORTS.mkdir(parents=True, exist_ok=True)
    written = set()
    for name in EXAMPLES:
        path = REPORTS / f"{name}.txt"
        path.write_text(render(name, WIDTH), encoding="utf-8")
        written.add(path)
    for path in sorted(set(REPORTS.glob("*.txt")) - written):
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    print(f"{len(written)} files in {REPORTS.relative_to(ROOT)}")
    for name, make in MODEL_EXAMPLES.items():
        (MODELS / f"{name}.pml").write_text(to_promela(make()), encoding="utf-8")
    print(f"{len(MODEL_EXAMPLES)} models in {MODELS.relative_to(ROOT)}")
    COUNTS.write_text("".join(f"{counted(*case)}\n" for case in CASES), encoding="utf-8")
    print(f"{len(CASES)} counts in {COUNTS.relative_to(ROOT)}")
    PINNED.write_text(pins(), encoding="utf-8")
    print(f"programs of kernels in {PINNED.relative_to(ROOT)}")
    for name, text in schema_files().items():
        (SCHEMAS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
