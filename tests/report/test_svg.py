"""The picture of a protocol: valid XML with the words and edges of the diagram, the same every time."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pipesim.explain.anatomy.parts import Anatomy
from pipesim.explain.anatomy.read import anatomy
from pipesim.protocols.hopper.producer_consumer import producer_consumer
from pipesim.report.pictures.svg import show_svg
from tests.support.diagram_protocols import PROTOCOLS

NS = "{http://www.w3.org/2000/svg}"


def parsed(found: Anatomy) -> ET.Element:
    return ET.fromstring(show_svg(found))


def edges(root: ET.Element) -> list[tuple[str, str, str, bool]]:
    return [
        (p.attrib["data-over"], p.attrib["data-from"], p.attrib["data-to"], "remote" in p.attrib["class"].split())
        for p in root.iter(f"{NS}path")
        if "data-over" in p.attrib
    ]


def texts(root: ET.Element) -> list[str]:
    return [t.text or "" for t in root.iter(f"{NS}text")]


def test_the_ring() -> None:
    root = parsed(anatomy(producer_consumer().flatten({"stages": 4})))
    assert edges(root) == [
        ("full[4]", "producer", "consumer", False),
        ("empty[4]", "consumer", "producer", False),
        ("tile[4]", "producer", "consumer", False),
    ]
    assert {
        "producer_consumer", "producer", "consumer ×2", "2 warps, 1 to 2", "stages 4", "full[4]", "count 2", "16 KiB",
        "count 1 · producer: 1 arrival expecting 16 KiB, copy of 16 KiB", "→ consumer ×2",
    } <= set(texts(root))  # fmt: skip


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_same_text_every_time(name: str) -> None:
    assert show_svg(anatomy(PROTOCOLS[name]().flatten())) == show_svg(anatomy(PROTOCOLS[name]().flatten()))


def test_a_name_that_xml_could_misread() -> None:
    found = anatomy(producer_consumer(tiles=4).flatten())
    strange = '<&"\x1b\udcff>'
    renamed = replace(found, name=strange, groups=tuple(replace(g, name=f"{strange}{g.count}") for g in found.groups))
    root = parsed(renamed)
    assert '<&"??>' in texts(root)
    assert edges(root)[0][0] == '<&"??>1[4]'
    show_svg(renamed).encode()
