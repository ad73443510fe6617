"""Write the tables of the twins from their protocols: ``python tools/tables.py``. ``--check`` only compares.

A table (``hwkernels/twins/hopper/NAME.table.h``) numbers the roles, barriers and recording sites of a kernel. For a
protocol of your own: ``pipesim table file.py:function``.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.source_recorder.table_file import Spelling, table_text, variants_of
from hwkernels.twins import REGISTRY
from hwkernels.twins.twin import Params, Twin
from pipesim.model.program import Program
from pipesim.targets import find

#: Sites that stand elsewhere than in program order: the traces that are stored came before the sites of the residual.
_MOVED = {"epilogue_residual": {"epilogue_arrive_output_empty": "epilogue_got_output_full"}}


def text_of(twin: Twin) -> str:
    """The table's text, for the usual parameters and others."""

    def build(params: Params) -> Program:
        twin.check(params)
        return find(twin.name).build(params, twice=False)

    variants = variants_of(build, twin.defines, find(twin.name).defaults, tuple(twin.ranges))
    head = (
        f"Made by tools/tables.py from the protocol {twin.name}: do not edit. table.cuh makes enums of it for the",
        "kernel, table.py parses it for the host. No include guard: it is included once for each kind of entry.",
    )
    return table_text(variants, Spelling(head, after=_MOVED.get(twin.name, {})))


def main() -> int:
    """Write or compare every table; 1 if one is not what its protocol says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not as it would be made")
    options = parser.parse_args()
    different = 0
    for twin in REGISTRY.values():
        text, path = text_of(twin), twin.table_file
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            different += 1
            print(f"{path.name} is not what the protocol {twin.name} says: run python tools/tables.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
