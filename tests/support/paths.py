"""Where the files of the checkout are that tests and tools read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
GOLDEN = ROOT / "tests" / "golden"
TRACES = ROOT / "traces"
