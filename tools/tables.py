"""Write the tables of the twins from their protocols: ``python tools/tables.py``. ``--check`` only compares.

A table (``hwkernels/twins/*/NAME.table.h``) numbers the roles, barriers and recording sites of a kernel. For a protocol
of your own: ``pipesim table file.py:function``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.twins.tables import sources


def main() -> int:
    """Write or compare every table; 1 if one is not what its protocol says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not as it would be made")
    options = parser.parse_args()
    different = 0
    for source in sources():
        text = source.text()
        if source.path.is_file() and source.path.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            different += 1
            print(f"{source.path.name} is not what the protocol {source.protocol} says: run python tools/tables.py")
        else:
            source.path.write_text(text, encoding="utf-8")
            print(f"wrote {source.path}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
