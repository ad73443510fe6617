"""The documentation shows what is really printed, and every file and operation it speaks of exists."""

import re

import pytest

from tests.support.lanes import long_but, slow_but
from tests.support.paths import ROOT
from tools import docs_output as tool

#: Pages whose blocks take more than a second, and are of kinds that other pages have.
LONG = {
    "docs/redundant.md",
    "docs/sweep.md",
    "docs/from-a-hang.md",
    "docs/diagnosis.md",
    "docs/ci.md",
    "docs/protocols.md",
    "docs/plain-cuda.md",
    "docs/tutorial.md",
}


@pytest.mark.parametrize(
    "name", long_but({*tool.PAGES} - LONG, slow_but(["docs/commands.md", "docs/reading-ptx.md"], tool.PAGES))
)
def test_every_block_is_what_is_printed_today(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert tool.page(text) == text, "run python tools/docs_output.py"


@pytest.mark.parametrize("name", tool.PAGES)
def test_links_lead_to_files(name):
    page = ROOT / name
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_an_excerpt_is_lines_of_the_file_from_the_only_one_that_begins_it():
    """Python keeps the indentation of the function that it is pasted into; C++ goes as far left as can be."""
    python = tool.excerpt("docs/examples/ring.py", "@p.init", "@p.role")
    assert python.startswith("    @p.init\n    def init() -> None:\n        Producer")
    assert tool.excerpt("docs/examples/scale.cu", "if (threadIdx.x == 0) {", "const int warp").startswith("if (thr")
    with pytest.raises(ValueError, match="too many values"):
        tool.excerpt("docs/examples/ring.py", "p.", "return p")
    with pytest.raises(ValueError, match="not enough values"):
        tool.excerpt("docs/examples/ring.py", "nothing of the kind", "return p")
