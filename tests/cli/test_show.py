"""``pipesim show``: the diagram of anything that has a name, as text, picture and JSON."""

from pathlib import Path
from xml.etree import ElementTree as ET

from pipesim.explain.anatomy.read import anatomy
from pipesim.lang.protocol import Protocol
from pipesim.report.pages.protocols.show import show_lines
from tests.support.fixture_types import Call

PC = "producer_consumer"


def diagram(text: str) -> list[str]:
    """The rows of the diagram, each as its words and marks."""
    return [" ".join(line.split()) for line in text.splitlines() if any(mark in line for mark in "●■")][:-1]


def test_a_built_in_protocol(call: Call) -> None:
    answer = call("show", PC, "-p", "consumer_warps=3")
    assert (answer.code, answer.err) == (0, "")
    assert diagram(answer.out) == [
        "full[4] count 1 ●────────────────▶│",
        "empty[4] count 3 │◀────────────────●",
        "tile[4] 16 KiB ■════════════════▶│",
    ]
    assert "consumer ×3" in answer.out


def test_a_picture(call: Call) -> None:
    assert call("show", PC, "--svg", "pc.svg").out == call("show", PC).out
    first = Path("pc.svg").read_text(encoding="utf-8")
    assert ET.fromstring(first).tag.endswith("svg")
    again = call("show", PC, "-p", "stages=2", "--svg", "pc.svg")
    assert (again.code, again.out) == (2, "")
    assert "pc.svg exists already" in again.err
    assert Path("pc.svg").read_text(encoding="utf-8") == first
    assert call("show", PC, "-p", "stages=2", "--svg", "pc.svg", "--force").code == 0
    assert "full[2]" in Path("pc.svg").read_text(encoding="utf-8")


def test_roles_that_do_not_fit_beside_each_other_are_said_so() -> None:
    """Every one of them is in the table below all the same; twenty do fit where there is room."""
    p = Protocol("wide")
    for n in range(20):
        p.role(f"role_number_{n}")(lambda w: w.work(1))
    found = anatomy(p.flatten())
    narrow, wide = show_lines(found, 80), show_lines(found, 200)
    assert "  20 roles do not fit side by side at this width" in narrow
    assert all(any(line.startswith(f"  role_number_{n} ") for line in narrow) for n in range(20))
    assert not any("do not fit" in line for line in wide)
