"""Rewrite the golden reports and models and the pinned counts of the protocols: ``python tools/update_golden.py``.

Read the difference before you commit it.
"""

from __future__ import annotations

import runpy
from pathlib import Path

from pipesim.export.promela import to_promela

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "tests" / "report" / "examples.py"
GOLDEN = ROOT / "tests" / "golden" / "report"
PROMELA = ROOT / "tests" / "prove" / "promela_examples.py"
PROTOCOLS = ROOT / "tests" / "protocols" / "test_every_protocol.py"


def main() -> None:
    """Write one file for each example and width, and remove those of examples that are gone."""
    examples = runpy.run_path(str(EXAMPLES), run_name="report_examples")
    GOLDEN.mkdir(parents=True, exist_ok=True)
    written = set()
    for name in examples["EXAMPLES"]:
        for width in examples["widths"](name):
            path = GOLDEN / f"{name}-{width}.txt"
            path.write_text(examples["render"](name, width), encoding="utf-8")
            written.add(path)
    for path in sorted(set(GOLDEN.glob("*.txt")) - written):
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    print(f"{len(written)} files in {GOLDEN.relative_to(ROOT)}")
    models = runpy.run_path(str(PROMELA), run_name="promela_examples")
    for name, make in models["EXAMPLES"].items():
        (models["GOLDEN"] / f"{name}.pml").write_text(to_promela(make()), encoding="utf-8")
    print(f"{len(models['EXAMPLES'])} models in {models['GOLDEN'].relative_to(ROOT)}")
    every = runpy.run_path(str(PROTOCOLS), run_name="every_protocol")
    lines = [every["counted"](*case) for case in every["CASES"]]
    every["COUNTS"].write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} counts in {every['COUNTS'].relative_to(ROOT)}")


if __name__ == "__main__":
    main()
