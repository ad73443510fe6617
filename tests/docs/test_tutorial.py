"""What the tutorial says of its kernel and its protocol, beyond the blocks that are filled in by the tool."""

import re

from pipesim.model.ops import Op
from pipesim.targets import find
from tests.support.paths import EXAMPLES, ROOT

TABLE = dict(
    re.findall(r"^\| `(\w+\.\w+)` \| (\d+) \|", (ROOT / "docs" / "tutorial.md").read_text("utf-8"), re.MULTILINE)
)


def target(name: str):
    return find(f"{EXAMPLES / name}.py:scale")


def test_the_tables_counts_are_those_of_the_protocol_and_of_the_kernel():
    program = target("scale").build({})
    protocol = {
        program.barrier_name(op[1]).partition("[")[0]: str(op[2]) for op in program.operations if op[0] == Op.INIT
    }
    kernel = {
        f"{ring}.{side.lower()}": count
        for ring, side, count in re.findall(
            r"init\(s\.(in|out)(Full|Empty)\[n\], (\d)\)", (EXAMPLES / "scale.cu").read_text("utf-8")
        )
    }
    assert set(TABLE) == {"in.full", "in.empty", "out.full", "out.empty"}
    assert TABLE == protocol == kernel


def test_what_the_page_shows_of_the_protocol_can_be_pasted_together():
    """The blocks of sections 1 to 3, one behind the other, and the return that the text names: the file itself."""
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    shown = r"^<!-- excerpt: docs/examples/scale\.py [^\n]*\n```python\n(.*?)^```"
    blocks = re.findall(shown, page, re.DOTALL | re.MULTILINE)
    pasted = [line for block in [*blocks, "    return p\n"] for line in block.splitlines() if line]
    assert pasted == [line for line in (EXAMPLES / "scale.py").read_text("utf-8").splitlines() if line]
