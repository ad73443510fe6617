"""Where the files of the checkout are that tests and tools read."""

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
#: A kernel with tensor maps and a cluster, its table and its protocol.
EXCHANGE = ROOT / "tests" / "support" / "exchange"
GOLDEN = ROOT / "tests" / "golden"
TRACES = ROOT / "traces"


def with_root(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which a child imports this checkout, and what this process was given from elsewhere."""
    path = [str(ROOT), *filter(None, [environment.get("PYTHONPATH", "")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(path)}
